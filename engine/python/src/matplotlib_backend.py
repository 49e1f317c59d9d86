"""matplotlib's backend in Tracebook: figures as display lists, drawn by Tracebook's own plot code.

A figure is sent as JSON of the media type `application/vnd.tracebook.figure+json`: its canvas as a list of drawing
operations, with a PNG (from Agg) beside it for programs that can only show images. `engine/plot/src/display_list.rs`
reads it, and docs/decisions/0037 explains the design.

The module works with matplotlib 3.7 and newer, in every CPython: the science kernel, environments, Jupyter kernels.
`install()` costs nothing where matplotlib isn't used: it registers this module as `tracebook_backend` and sets it in
the environment; matplotlib imports it when `pyplot` creates its first figure. In a Jupyter kernel, a cell may start
other programs that have no such module. There, `ipython_setup.py` of `engine/jupyter` calls `install_in_shell()` when
matplotlib imports this module.
"""

import base64
import itertools
import json
import os
import sys

MODULE_NAME = "tracebook_backend"
FIGURE_MIME = "application/vnd.tracebook.figure+json"

# Limits of the reader: `MAX_OPERATIONS` and `MAX_NUMBERS` in engine/plot/src/display_list.rs.
_MAX_OPERATIONS = 50_000
_MAX_NUMBERS = 4_000_000
# A figure with longer JSON is sent as PNG alone.
_MAX_JSON_BYTES = 16_000_000
# A mesh with more cells or triangles than this is drawn by Agg.
_MAX_MESH_CELLS = 40_000
# An image with a longer PNG is reduced to half its size: it has twice the canvas' pixels only for sharpness.
_MAX_SHARP_PNG_BYTES = 400_000
# Pixels of a resampled image per pixel of the canvas.
_IMAGE_MAGNIFICATION = 2.0
# Maximum numbers in a list; more are packed.
_MAX_LISTED_NUMBERS = 24
# Maximum figures that can be drawn again with other limits after their cell has ended.
_MAX_LIVE_FIGURES = 20

_display = None
# IPython's shell in a Jupyter kernel, else None.
_shell = None
# Shown figures by their IDs, each with the part of its canvas that was shown, in inches.
_live_figures = {}


def install(display, module=None):
    """Makes this module matplotlib's backend. `display(data, metadata)` shows a bundle.

    Call it before cells run. It imports nothing of matplotlib. `module` is the module object, if it isn't in
    `sys.modules` yet.
    """
    global _display
    _display = display
    if module is not None:
        sys.modules[MODULE_NAME] = module
    os.environ["MPLBACKEND"] = "module://" + MODULE_NAME
    loaded = sys.modules.get("matplotlib")
    if loaded is not None:
        loaded.use("module://" + MODULE_NAME)


def install_in_shell(shell):
    """Shows figures through IPython's shell after each cell, while this is matplotlib's backend. Imports matplotlib."""
    global _display, _shell

    def shown(data, metadata):
        from IPython.display import display

        display(data, metadata=metadata, raw=True)

    _display, _shell = shown, shell
    _define_backend()
    shell.events.register("post_execute", flush_figures)


def _is_chosen():
    """Returns whether this backend shows figures: a Jupyter kernel's user may select another at any time."""
    if _shell is None:
        return True
    return dict.__getitem__(sys.modules["matplotlib"].rcParams, "backend") == "module://" + MODULE_NAME


def flush_figures():
    """Shows and closes all open figures. The harness calls it at the end of each cell."""
    if "matplotlib.pyplot" not in sys.modules or "show" not in globals() or not _is_chosen():
        return
    try:
        show()
    except Exception:
        if _shell is None:
            raise
        # IPython would report an error in its callbacks as one of its own.
        _shell.showtraceback()


def redraw(figure_id, limits):
    """Returns a shown figure as JSON with other limits of its axes, or `None` if it's gone or would be too large.

    `limits` has an entry for each pair of axes: its limits along x and along y, each `None` if it stays. The window
    asks for this while no cell runs. The figure's own limits are restored.
    """
    found = _live_figures.get(figure_id)
    return None if found is None else _redrawn(*found, limits)


def __getattr__(name):
    # The rest needs matplotlib, which is imported only when matplotlib itself asks for its backend.
    if name.startswith("__") or "FigureCanvas" in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _define_backend()
    try:
        return globals()[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def _packed(numbers):
    """Returns numbers as JSON: a few as a list, many as little-endian 32-bit floats in base64."""
    import numpy as np

    numbers = np.asarray(numbers, dtype=np.float64).ravel()
    if len(numbers) <= _MAX_LISTED_NUMBERS:
        return [float(f"{x:.6g}") for x in numbers.tolist()]
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode()


def _runs(codes):
    """Returns the codes of a path as letters, each with its repeat count: `ML3Z`."""
    out = []
    for code, run in itertools.groupby(codes):
        count = sum(1 for _ in run)
        letter, points = {1: ("M", 1), 2: ("L", 1), 3: ("Q", 2), 4: ("C", 3), 79: ("Z", 1)}.get(code, ("", 1))
        if letter == "Z":
            count = 1
        count //= points
        if letter and count:
            out.append(letter if count == 1 else f"{letter}{count}")
    return "".join(out)


def _outline(vertices, codes):
    """Returns a path as JSON: its points, and its codes unless they are a single line."""
    import numpy as np

    vertices = np.asarray(vertices, dtype=np.float64).reshape(-1, 2)
    if codes is None:
        return {"v": _packed(vertices)}
    codes = np.asarray(codes)
    # Nothing after a STOP is drawn.
    stops = np.flatnonzero(codes == 0)
    if len(stops):
        vertices, codes = vertices[: stops[0]], codes[: stops[0]]
    kept = codes != 79
    if len(codes) and codes[0] == 1 and (codes[1:] == 2).all():
        return {"v": _packed(vertices)}
    return {"v": _packed(vertices[kept]), "c": _runs(codes.tolist())}


def _colour(rgba):
    red, green, blue, alpha = (min(max(round(float(part) * 255), 0), 255) for part in rgba)
    return f"#{red:02x}{green:02x}{blue:02x}" + ("" if alpha == 255 else f"{alpha:02x}")


def _png(pixels):
    """Encodes rows of RGBA pixels as PNG."""
    import io

    import numpy as np

    pixels = np.ascontiguousarray(pixels, dtype=np.uint8)
    if (pixels[..., 3] == 255).all():
        pixels = np.ascontiguousarray(pixels[..., :3])
    try:
        from PIL import Image

        out = io.BytesIO()
        Image.fromarray(pixels).save(out, format="png")
        return out.getvalue()
    except ImportError:
        pass
    import struct
    import zlib

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows, columns, depth = pixels.shape
    lines = np.zeros((rows, columns * depth + 1), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(rows, -1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 6 if depth == 4 else 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _boundaries(pixels):
    """Returns the rows that differ from the one above: the first row of each run, and the end."""
    import numpy as np

    flat = np.ascontiguousarray(pixels).reshape(len(pixels), -1)
    changed = np.flatnonzero((flat[1:] != flat[:-1]).any(axis=1)) + 1
    return np.concatenate([[0], changed, [len(pixels)]])


class TooLarge(Exception):
    """Raised when the display list would have more operations or numbers than a reader accepts."""


class _DisplayList:
    """The display list that a renderer writes: operations, and tables of the objects they share."""

    def __init__(self):
        self.operations = []
        self.clips, self.hatches, self.glyphs, self.series = [], [], [], []
        self._clip_numbers, self._hatch_numbers, self.glyph_map, self._glyph_numbers = {}, {}, {}, {}
        self._numbers = 0

    def add(self, operation, numbers):
        self._numbers += numbers
        if len(self.operations) >= _MAX_OPERATIONS or self._numbers > _MAX_NUMBERS:
            raise TooLarge
        self.operations.append(operation)

    def clip(self, key, make):
        if key not in self._clip_numbers:
            self._clip_numbers[key] = len(self.clips)
            self.clips.append(make())
        return self._clip_numbers[key]

    def hatch(self, key, make):
        if key not in self._hatch_numbers:
            self._hatch_numbers[key] = len(self.hatches)
            self.hatches.append(make())
        return self._hatch_numbers[key]

    def glyph(self, name):
        if name not in self._glyph_numbers:
            self._glyph_numbers[name] = len(self.glyphs)
            self.glyphs.append(_outline(*self.glyph_map[name]))
        return self._glyph_numbers[name]


def _define_backend():
    """Defines the names that matplotlib looks for in a backend's module."""
    import numpy as np
    from matplotlib import transforms
    from matplotlib._pylab_helpers import Gcf
    from matplotlib.backend_bases import FigureCanvasBase, FigureManagerBase, RendererBase
    from matplotlib.figure import Figure
    from matplotlib.path import Path

    class RendererTracebook(RendererBase):
        """Writes a display list. Coordinates are pixels of the canvas, from its top left."""

        def __init__(self, width, height, dpi, marked=None):
            super().__init__()
            self.width, self.height, self.dpi = float(width), float(height), float(dpi)
            self.list = _DisplayList()
            self._flip = transforms.Affine2D().scale(1, -1).translate(0, self.height)
            # Artists identified by their group's id: axes and series.
            self._marked = marked or {}
            self._groups, self._clip_paths = [], {}
            # Agg's renderer, while the current content can only be drawn as an image.
            self._agg = None
            self._agg_depth = 0

        # Size and units.

        def get_canvas_width_height(self):
            return self.width, self.height

        def points_to_pixels(self, points):
            return points * self.dpi / 72.0

        def get_image_magnification(self):
            return 1.0 if self._agg is not None else _IMAGE_MAGNIFICATION

        def option_image_nocomposite(self):
            return True

        def option_scale_image(self):
            return False

        def flipy(self):
            return True

        # Groups: the part of the figure that an operation belongs to.

        def open_group(self, s, gid=None):
            kind, number = self._marked.get(gid, (None, None))
            above = self._groups[-1] if self._groups else {}
            if kind == "axes":
                here = {"axes": number}
            elif kind == "series":
                here = {**above, "series": number}
            elif s in ("xtick", "ytick"):
                here = {**above, "part": s}
            else:
                here = above
            self._groups.append(here)

        def close_group(self, s):
            if self._groups:
                self._groups.pop()

        def _add(self, operation, numbers=4):
            if self._groups:
                operation.update(self._groups[-1])
            self.list.add(operation, numbers)

        # Content that can only be an image is drawn by Agg.

        def start_rasterizing(self):
            self._agg_depth += 1
            if self._agg is None:
                try:
                    from matplotlib.backends.backend_agg import RendererAgg
                except ImportError:
                    return
                self._agg = RendererAgg(self.width, self.height, self.dpi)

        def stop_rasterizing(self):
            self._agg_depth -= 1
            agg = self._agg
            if self._agg_depth > 0 or agg is None:
                return
            self._agg = None
            pixels = np.array(agg.buffer_rgba())
            rows = np.flatnonzero(pixels[..., 3].any(axis=1))
            columns = np.flatnonzero(pixels[..., 3].any(axis=0))
            if len(rows):
                top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
                self._picture(pixels[top:bottom, left:right], [left, top, right, bottom], {})

        def start_filter(self):
            self.start_rasterizing()
            if self._agg is not None:
                self._agg.start_filter()

        def stop_filter(self, filter_func):
            if self._agg is not None:
                self._agg.stop_filter(filter_func)
            self.stop_rasterizing()

        # The state of a drawing operation.

        def _clipped(self, gc):
            rectangle, (path, transform) = gc.get_clip_rectangle(), gc.get_clip_path()
            key, rect = (), None
            if rectangle is not None:
                rect = [rectangle.x0, self.height - rectangle.y1, rectangle.x1, self.height - rectangle.y0]
                key = tuple(rect)
            if path is None:
                if rect is None:
                    return {}
                return {"clip": self.list.clip(key, lambda: {"rect": _packed(rect)})}

            def make():
                shape = path.cleaned(transform + self._flip, remove_nans=True, curves=True)
                clip = _outline(shape.vertices, shape.codes)
                if rect is not None:
                    clip["rect"] = _packed(rect)
                return clip

            key += (id(path), *np.round(transform.frozen().get_matrix(), 6).ravel().tolist())
            # Keep the path alive, because its address is part of the key.
            self._clip_paths[id(path)] = path
            return {"clip": self.list.clip(key, make)}

        def _fill(self, gc, face):
            if face is None:
                return {}
            rgba = tuple(face)
            if len(rgba) == 3 or gc.get_forced_alpha():
                rgba = (*rgba[:3], gc.get_alpha())
            return {} if rgba[3] == 0 else {"fill": _colour(rgba)}

        def _stroke(self, gc):
            width, rgba = self.points_to_pixels(gc.get_linewidth()), gc.get_rgb()
            if width <= 0 or rgba[3] == 0:
                return {}
            out = {"edge": _colour(rgba), "width": round(float(width), 4)}
            offset, dashes = gc.get_dashes()
            if dashes is not None and len(dashes):
                scale = self.points_to_pixels(1.0)
                out["dash"] = [round(float(part) * scale, 4) for part in (offset or 0.0, *dashes)]
            join, cap = getattr(gc.get_joinstyle(), "value", gc.get_joinstyle()), gc.get_capstyle()
            cap = getattr(cap, "value", cap)
            if join != "round":
                out["join"] = join
            if cap != "butt":
                out["cap"] = cap
            return out

        def _hatched(self, gc):
            if not gc.get_hatch():
                return {}
            colour, width = gc.get_hatch_color(), self.points_to_pixels(gc.get_hatch_linewidth())
            colour = _colour(colour if len(colour) == 4 else (*colour, 1.0))

            def make():
                path = gc.get_hatch_path()
                hatch = _outline(path.vertices, path.codes)
                return {**hatch, "color": colour, "width": round(float(width), 4)}

            return {"hatch": self.list.hatch((gc.get_hatch(), colour, width), make)}

        def _state(self, gc):
            out = self._clipped(gc)
            if not gc.get_antialiased():
                out["aa"] = False
            if gc.get_snap() is not None:
                out["snap"] = bool(gc.get_snap())
            return out

        # Shapes.

        def draw_path(self, gc, path, transform, rgbFace=None):
            if self._agg is not None:
                return self._agg.draw_path(gc, path, transform, rgbFace)
            style = {**self._fill(gc, rgbFace), **self._hatched(gc), **self._stroke(gc)}
            if not style:
                return None
            open_line = "fill" not in style and "hatch" not in style
            # Keep one canvas of margin on each side, so that users can pan.
            room = (-self.width, -self.height, 2 * self.width, 2 * self.height) if open_line else None
            shape = path.cleaned(
                transform + self._flip, remove_nans=True, clip=room, simplify=open_line and path.should_simplify,
                curves=True, sketch=gc.get_sketch_params(),
            )
            if not open_line and shape.codes is not None and not ((shape.codes == 3) | (shape.codes == 4)).any():
                # 32-bit floats are too coarse for numbers far outside the canvas.
                if len(shape.vertices) and np.abs(shape.vertices).max() > 30_000:
                    far = transforms.Bbox.from_extents(-10_000, -10_000, 20_000, 20_000)
                    shape = shape.clip_to_bbox(far)
            outline = _outline(shape.vertices, shape.codes)
            if outline["v"]:
                self._add({"op": "path", **outline, **style, **self._state(gc)}, shape.vertices.size)
            return None

        def draw_markers(self, gc, marker_path, marker_trans, path, trans, rgbFace=None):
            if self._agg is not None:
                return self._agg.draw_markers(gc, marker_path, marker_trans, path, trans, rgbFace)
            style = {**self._fill(gc, rgbFace), **self._stroke(gc)}
            if not style:
                return None
            if path.codes is None:
                places = (trans + self._flip).transform(path.vertices)
            else:
                ends = [points[-2:] for points, _ in path.iter_segments(trans + self._flip, simplify=False)]
                places = np.array(ends).reshape(-1, 2)
            places = self._near(places)
            shape = (marker_trans + transforms.Affine2D().scale(1, -1)).transform_path(marker_path)
            if len(places):
                marker = _outline(shape.vertices, shape.codes)
                self._add({"op": "markers", "path": marker, "at": _packed(places), **style, **self._state(gc)},
                          places.size)
            return None

        def _near(self, places):
            """Returns the positions that aren't far outside the canvas."""
            with np.errstate(invalid="ignore"):
                near = (np.abs(places - [self.width / 2, self.height / 2]) < [1.5 * self.width + 100,
                                                                           1.5 * self.height + 100]).all(axis=1)
            return places[near]

        def draw_path_collection(self, gc, master_transform, paths, all_transforms, offsets, offset_trans, facecolors,
                                 edgecolors, linewidths, linestyles, antialiaseds, urls, offset_position, **more):
            if self._agg is not None:
                # Agg's own method takes transforms in another form.
                return RendererBase.draw_path_collection(
                    self, gc, master_transform, paths, all_transforms, offsets, offset_trans, facecolors, edgecolors,
                    linewidths, linestyles, antialiaseds, urls, offset_position, **more)
            shapes = max(len(paths), len(all_transforms))
            count = max(shapes, len(offsets))
            if gc.get_hatch() or count < 2 or len(paths) > 1:
                return RendererBase.draw_path_collection(
                    self, gc, master_transform, paths, all_transforms, offsets, offset_trans, facecolors, edgecolors,
                    linewidths, linestyles, antialiaseds, urls, offset_position, **more)
            # One path, in several sizes, at several positions.
            if not (len(facecolors) or len(edgecolors)) or not len(paths):
                return None
            places = (offset_trans + self._flip).transform(offsets) if len(offsets) else np.array([[0, self.height]])
            mirror = np.diag([1.0, -1.0, 1.0])
            master = transforms.Affine2D(master_transform.frozen().get_matrix()).get_matrix()
            turns = [mirror @ master @ np.asarray(own) for own in all_transforms] or [mirror @ master]
            turns = np.array([[m[0, 0], m[1, 0], m[0, 1], m[1, 1], m[0, 2], m[1, 2]] for m in turns])
            shape = paths[0]
            outline = _outline(shape.vertices, shape.codes)
            scale = self.points_to_pixels(1.0)
            out = {"op": "collection", "path": outline, "turns": _packed(turns), "at": _packed(places), "count": count}
            if np.ptp(turns, axis=0).max() == 0:
                out["turns"] = _packed(turns[:1])
            elif (turns[:, [1, 2, 4, 5]] == 0).all() and (turns[:, 0] == -turns[:, 3]).all():
                # Only the sizes differ.
                out["turns"], out["sizes"] = [1, 0, 0, -1, 0, 0], _packed(turns[:, 0])
            if len(facecolors):
                out["fills"] = self._palette(facecolors)
            if len(edgecolors) and (len(linewidths) == 0 or np.max(linewidths) > 0):
                out["edges"] = self._palette(edgecolors)
                widths = np.asarray(linewidths if len(linewidths) else [gc.get_linewidth()], dtype=float) * scale
                out["widths"] = _packed(widths[:1] if (widths == widths[0]).all() else widths)
                dashes = [[offset or 0.0, *(parts if parts is not None else ())] for offset, parts in linestyles]
                if any(len(dash) > 1 for dash in dashes):
                    out["dashes"] = [[round(float(part) * scale, 4) for part in dash] for dash in dashes]
            own = self._stroke(gc)
            state = {**self._state(gc), **{key: own[key] for key in ("join", "cap") if key in own}}
            state.pop("aa", None)
            if len(antialiaseds) and not np.any(antialiaseds):
                state["aa"] = False
            self._add({**out, **state}, places.size + turns.size + shape.vertices.size)
            return None

        def _palette(self, colours):
            """Returns colors as bytes (red, green, blue, opacity) in base64; a single one if all are equal."""
            from matplotlib import colors

            rgba = np.round(np.clip(colors.to_rgba_array(colours), 0, 1) * 255).astype(np.uint8)
            if (rgba == rgba[0]).all():
                rgba = rgba[:1]
            return base64.b64encode(rgba.tobytes()).decode()

        def draw_quad_mesh(self, gc, master_transform, meshWidth, meshHeight, coordinates, offsets, offsetTrans,
                           facecolors, antialiased, edgecolors):
            if self._agg is not None:
                return self._agg.draw_quad_mesh(gc, master_transform.frozen(), meshWidth, meshHeight, coordinates,
                                                offsets, offsetTrans, facecolors, antialiased, edgecolors)
            corners = (master_transform + self._flip).transform(np.asarray(coordinates).reshape(-1, 2))
            corners = corners.reshape(meshHeight + 1, meshWidth + 1, 2)
            if len(offsets):
                corners = corners + offsetTrans.transform(offsets)[0] * [1, -1]
            colours = np.round(np.clip(np.asarray(facecolors).reshape(-1, 4), 0, 1) * 255).astype(np.uint8)
            edged = len(edgecolors) > 0 and np.asarray(edgecolors).reshape(-1, 4)[:, 3].any()
            cells = meshWidth * meshHeight
            finite = np.isfinite(corners).all()
            if len(colours) != cells:
                colours = np.resize(colours, (cells, 4))
            xs, ys = corners[0, :, 0], corners[:, 0, 1]
            straight = finite and np.abs(corners[..., 0] - xs).max() < 1e-3
            straight = straight and np.abs(corners[..., 1] - ys[:, None]).max() < 1e-3
            if straight and not edged and cells > 0:
                # A grid of rectangles is drawn as an image whose columns and rows have their own sizes.
                pixels = colours.reshape(meshHeight, meshWidth, 4)
                if xs[-1] < xs[0]:
                    pixels, xs = pixels[:, ::-1], xs[::-1]
                if ys[-1] < ys[0]:
                    pixels, ys = pixels[::-1], ys[::-1]
                if (np.diff(xs) >= 0).all() and (np.diff(ys) >= 0).all():
                    return self._grid(pixels, xs, ys, self._state(gc))
            if cells > _MAX_MESH_CELLS or not finite:
                self.start_rasterizing()
                if self._agg is not None:
                    self.draw_quad_mesh(gc, master_transform, meshWidth, meshHeight, coordinates, offsets, offsetTrans,
                                        facecolors, antialiased, edgecolors)
                self.stop_rasterizing()
                return None
            out = {"op": "mesh", "columns": int(meshWidth), "v": _packed(corners), "fills": self._bytes(colours)}
            if edged:
                out["edges"] = self._palette(np.asarray(edgecolors).reshape(-1, 4))
                out["width"] = round(float(self.points_to_pixels(gc.get_linewidth())), 4)
            state = self._state(gc)
            state.pop("aa", None)
            if antialiased is not None and np.any(antialiased):
                state["aa"] = True
            return self._add({**out, **state}, corners.size)

        @staticmethod
        def _bytes(colours):
            return base64.b64encode(np.ascontiguousarray(colours).tobytes()).decode()

        def draw_gouraud_triangles(self, gc, triangles_array, colors_array, transform):
            if self._agg is not None:
                return self._agg.draw_gouraud_triangles(gc, triangles_array, colors_array, transform.frozen())
            if len(triangles_array) > _MAX_MESH_CELLS:
                self.start_rasterizing()
                if self._agg is not None:
                    self._agg.draw_gouraud_triangles(gc, triangles_array, colors_array, transform.frozen())
                return self.stop_rasterizing()
            points = (transform + self._flip).transform(np.asarray(triangles_array).reshape(-1, 2))
            colours = np.round(np.clip(np.asarray(colors_array).reshape(-1, 4), 0, 1) * 255).astype(np.uint8)
            return self._add({"op": "gouraud", "v": _packed(points), "fills": self._bytes(colours),
                              **self._state(gc)}, points.size)

        # Images.

        def draw_image(self, gc, x, y, im, transform=None):
            if self._agg is not None:
                return self._agg.draw_image(gc, x, y, im)
            pixels = np.asarray(im)
            if pixels.ndim != 3 or not pixels.size:
                return None
            if pixels.shape[2] == 3:
                pixels = np.dstack([pixels, np.full(pixels.shape[:2], 255, dtype=np.uint8)])
            rows, columns = pixels.shape[:2]
            magnification = self.get_image_magnification()
            left, bottom = float(x), self.height - float(y)
            # The first row is the lowest.
            place = [left, bottom - rows / magnification, left + columns / magnification, bottom]
            return self._picture(pixels[::-1], place, self._state(gc), gc.get_alpha() if gc.get_alpha() else 1.0)

        def _picture(self, pixels, place, state, alpha=1.0):
            rows, columns = _boundaries(pixels), _boundaries(pixels.swapaxes(0, 1))
            if len(rows) * len(columns) * 8 < pixels.shape[0] * pixels.shape[1]:
                # Areas of a single color: their edges are known, and stay sharp at any scale.
                xs = place[0] + columns * ((place[2] - place[0]) / pixels.shape[1])
                ys = place[1] + rows * ((place[3] - place[1]) / pixels.shape[0])
                return self._grid(pixels[rows[:-1]][:, columns[:-1]], xs, ys, state)
            data = _png(pixels)
            if len(data) > _MAX_SHARP_PNG_BYTES and min(pixels.shape[:2]) > 1:
                even = pixels[: len(pixels) // 2 * 2, : pixels.shape[1] // 2 * 2].astype(np.uint16)
                mean = (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2] + 2) // 4
                wide, high = place[2] - place[0], place[3] - place[1]
                place = [place[0], place[1], place[0] + wide * even.shape[1] / pixels.shape[1],
                         place[1] + high * even.shape[0] / pixels.shape[0]]
                data = _png(mean.astype(np.uint8))
            return self._add({"op": "image", "png": base64.b64encode(data).decode(), "xs": _packed(place[::2]),
                              "ys": _packed(place[1::2]), **state})

        def _grid(self, pixels, xs, ys, state):
            return self._add({"op": "image", "png": base64.b64encode(_png(pixels)).decode(), "xs": _packed(xs),
                              "ys": _packed(ys), "grid": True, **state}, len(xs) + len(ys))

        # Text as outlines, so that its layout is exactly matplotlib's.

        def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
            if self._agg is not None:
                return self._agg.draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            more = {}
            if mtext is not None and hasattr(mtext, "get_fontfeatures"):
                more = {"features": mtext.get_fontfeatures(), "language": mtext.get_language()}
            to_path, known = self._text2path, self.list.glyph_map
            if ismath == "TeX":
                placed, new, rects = to_path.get_glyphs_tex(prop, s, glyph_map=known, return_new_glyphs_only=True)
            elif ismath:
                placed, new, rects = to_path.get_glyphs_mathtext(prop, s, glyph_map=known,
                                                                 return_new_glyphs_only=True)
            else:
                font = to_path._get_font(prop)
                placed, new, rects = to_path.get_glyphs_with_font(font, s, glyph_map=known,
                                                                  return_new_glyphs_only=True, **more)
            known.update(new)
            glyphs = []
            for name, across, up, scale in placed:
                if len(known[name][0]):
                    glyphs += [self.list.glyph(name), round(float(across), 3), round(float(up), 3),
                               round(float(scale), 5)]
            boxes = []
            for corners, _ in rects:
                (left, low), (right, high) = np.min(corners[:4], axis=0), np.max(corners[:4], axis=0)
                boxes += [round(float(part), 3) for part in (left, low, right - left, high - low)]
            rgba = gc.get_rgb()
            if gc.get_forced_alpha():
                rgba = (*rgba[:3], gc.get_alpha())
            if not (glyphs or boxes) or rgba[3] == 0 or not (np.isfinite(x) and np.isfinite(y)):
                return None
            size = self.points_to_pixels(prop.get_size_in_points()) / to_path.FONT_SCALE
            out = {"op": "text", "text": s[:1_000], "at": [round(float(x), 3), round(float(y), 3)],
                   "size": round(float(size), 6), "color": _colour(rgba), "glyphs": glyphs}
            if angle:
                out["angle"] = round(float(angle), 4)
            if boxes:
                out["boxes"] = boxes
            return self._add({**out, **self._clipped(gc)}, len(glyphs) + len(boxes))

        def draw_tex(self, gc, x, y, s, prop, angle, *, mtext=None):
            if self._agg is not None:
                return self._agg.draw_tex(gc, x, y, s, prop, angle, mtext=mtext)
            return self.draw_text(gc, x, y, s, prop, angle, ismath="TeX", mtext=mtext)

    def all_axes(figure):
        """Returns the axes of a figure and its subfigures, including those nested in others."""
        found = list(figure.axes)
        for axes in found:
            found.extend(child for child in axes.child_axes if child not in found)
        return found

    def side(axes, axis, limits):
        """Describes one axis for the reader: its scale and limits. Dates are seconds since 1970."""
        converter = getattr(axis, "converter", None) or getattr(axis, "_converter", None)
        dates = type(converter).__name__ in ("DateConverter", "ConciseDateConverter", "_SwitchableDateConverter")
        unit = 86_400.0 if dates else 1.0
        scale = axis.get_scale()
        if getattr(axes, "name", "") != "rectilinear" or (scale == "log" and min(limits) <= 0):
            scale = "other"
        limits = [float(limit) * unit for limit in limits]
        if not np.isfinite(limits).all():
            limits, scale = [0.0, 1.0], "other"
        out = {"limits": limits, "scale": scale}
        if dates:
            out["dates"] = True
        return out

    def describe_axes(axes, height):
        frame = axes.bbox
        edges = (frame.x0, height - frame.y1, frame.x1, height - frame.y0)
        # A secondary axis is among the child axes, but has no title.
        title_of = getattr(axes, "get_title", lambda loc: "")
        label = title_of(loc="center") or title_of(loc="left") or title_of(loc="right")
        ink = axes.xaxis.label.get_color()
        from matplotlib import colors

        out = {
            "frame": [round(float(edge), 3) if np.isfinite(edge) else 0.0 for edge in edges],
            "sides": [side(axes, axes.xaxis, axes.get_xlim()), side(axes, axes.yaxis, axes.get_ylim())],
            "title": label[:200],
            "ink": _colour(colors.to_rgba(ink)),
        }
        for name, group in (("x", axes.get_shared_x_axes()), ("y", axes.get_shared_y_axes())):
            twins = group.get_siblings(axes)
            if len(twins) > 1:
                out["shared_" + name] = min(id(twin) for twin in twins)
        return out

    class FigureCanvasTracebook(FigureCanvasBase):
        """A canvas that writes its figure as a display list, or as PNG through Agg."""

        filetypes = {**FigureCanvasBase.filetypes, "tracebook": "Tracebook display list"}
        fixed_dpi = None

        def get_renderer(self):
            width, height = self.figure.bbox.size
            return RendererTracebook(width, height, self.figure.dpi)

        def draw(self):
            # For layout only: the drawing itself is discarded.
            self.figure.draw_without_rendering()
            super().draw()

        def print_tracebook(self, filename, **options):
            """Writes the display list as JSON."""
            from matplotlib.collections import Collection
            from matplotlib.image import _ImageBase
            from matplotlib.lines import Line2D

            figure = self.figure
            width, height = figure.bbox.size
            marked, gids, series = {}, [], []
            every = all_axes(figure)

            def mark(artist, kind, number):
                gids.append((artist, artist.get_gid()))
                name = f"tracebook-{kind}-{number}"
                marked[name] = (kind, number)
                artist.set_gid(name)

            for number, axes in enumerate(every):
                mark(axes, "axes", number)
                for artist in axes.get_children():
                    label = str(artist.get_label())
                    if isinstance(artist, (Line2D, Collection, _ImageBase)) and not label.startswith("_"):
                        mark(artist, "series", len(series))
                        series.append(label[:200])
            left, bottom = figure.transFigure.transform((0.0, 0.0))
            # A later drawing must have the same canvas, although its labels may need another one.
            figure._tracebook_canvas = transforms.Bbox.from_bounds(
                *(float(part) / figure.dpi for part in (-left, -bottom, width, height)))
            renderer = RendererTracebook(width, height, figure.dpi, marked)
            try:
                figure.draw(renderer)
            finally:
                for artist, gid in gids:
                    artist.set_gid(gid)
            made, shared = renderer.list, {}
            described = [describe_axes(axes, renderer.height) for axes in every]
            for axes in described:
                for name in ("shared_x", "shared_y"):
                    if name in axes:
                        axes[name] = shared.setdefault(axes[name], len(shared))
            title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
            title = title or ", ".join(axes["title"] for axes in described if axes["title"])
            out = {
                "width": float(width), "height": float(height), "title": title[:200],
                "display_list": {
                    "version": 1, "dpi": float(figure.dpi), "axes": described, "clips": made.clips,
                    "hatches": made.hatches, "glyphs": made.glyphs, "series": series, "ops": made.operations,
                },
            }
            text = json.dumps(out, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            filename.write(text.encode("utf-8"))

    def display_list(figure, tight=True, box=None):
        """Returns the figure as JSON, or `None` if it would be too large. `box`: the part to draw, in inches."""
        import io

        out = io.BytesIO()
        try:
            with _canvas(figure) as canvas:
                box = ("tight" if tight else None) if box is None else box
                canvas.print_figure(out, format="tracebook", dpi=figure.dpi, bbox_inches=box,
                                    facecolor=figure.get_facecolor(), edgecolor=figure.get_edgecolor())
        except TooLarge:
            return None
        text = out.getvalue().decode("utf-8")
        return text if len(text) <= _MAX_JSON_BYTES else None

    class _canvas:
        """Context manager for a figure's canvas: its own if it's this backend's, else a temporary one."""

        def __init__(self, figure):
            self.figure = figure

        def __enter__(self):
            self.before = self.figure.canvas
            if not isinstance(self.before, FigureCanvasTracebook):
                FigureCanvasTracebook(self.figure)
            return self.figure.canvas

        def __exit__(self, *error):
            if self.figure.canvas is not self.before:
                self.figure.set_canvas(self.before)

    def picture(figure, tight=True):
        """Returns the figure as PNG, or `None` if Agg is missing."""
        import io

        out = io.BytesIO()
        try:
            with _canvas(figure) as canvas:
                canvas.print_figure(out, format="png", dpi=figure.dpi, bbox_inches="tight" if tight else None,
                                    facecolor=figure.get_facecolor(), edgecolor=figure.get_edgecolor())
        except ImportError:
            return None
        return out.getvalue()

    def mimebundle(figure):
        """Returns the data and metadata of a figure's display bundle."""
        data, about = {"text/plain": repr(figure)}, {}
        png = picture(figure)
        try:
            text = display_list(figure)
        except Exception:
            # An artist that only Agg can draw.
            if png is None:
                raise
            text = None
        if text is not None:
            head = json.loads(text[: text.index(',"display_list"')] + "}")
            # Another kernel, or an earlier state of this one, must not take one figure for the other. Comparing two
            # runs leaves out what is written like an address.
            figure_id = "0x" + os.urandom(8).hex()
            _live_figures[figure_id] = figure, figure._tracebook_canvas
            while len(_live_figures) > _MAX_LIVE_FIGURES:
                _live_figures.pop(next(iter(_live_figures)))
            # IPython publishes the value as it is; the harness reads JSON as text.
            data[FIGURE_MIME] = text if _shell is None else json.loads(text)
            about[FIGURE_MIME] = {**head, "figure": figure_id}
        if png is not None:
            data["image/png"] = base64.b64encode(png).decode()
        return data, about

    def show_figure(figure):
        data, about = mimebundle(figure)
        _display(data, about)
        figure._tracebook_displays, figure.stale = True, False

    class FigureManagerTracebook(FigureManagerBase):
        """A figure of pyplot."""

        def show(self):
            show_figure(self.canvas.figure)

        @classmethod
        def pyplot_show(cls, *args, **options):
            show(*args, **options)

    FigureCanvasTracebook.manager_class = FigureManagerTracebook

    def show(*args, **options):
        """Shows all open figures that changed or weren't shown yet, and closes them."""
        try:
            for manager in Gcf.get_all_fig_managers():
                figure = manager.canvas.figure
                if not (getattr(figure, "_tracebook_displays", False) and not figure.stale):
                    show_figure(figure)
        finally:
            # A figure that can't be drawn would otherwise fail again after each cell.
            Gcf.destroy_all()

    def new_figure_manager(num, *args, FigureClass=Figure, **options):
        return new_figure_manager_given_figure(num, FigureClass(*args, **options))

    def new_figure_manager_given_figure(num, figure):
        canvas = FigureCanvasTracebook(figure)
        return FigureManagerTracebook(canvas, num)

    def figure_bundle(figure, include=None, exclude=None):
        if not _is_chosen():
            return None
        data, about = mimebundle(figure)
        figure._tracebook_displays, figure.stale = True, False
        return data, about

    # A figure that is a cell's value is shown like any other.
    Figure._repr_mimebundle_ = figure_bundle

    def _redrawn(figure, box, limits):
        every = all_axes(figure)
        before = [(axes, axes.get_xlim(), axes.get_ylim(), axes.get_autoscalex_on(), axes.get_autoscaley_on())
                  for axes in every]
        # A new layout would move the axes away from the pointer.
        layout = figure.get_layout_engine()
        try:
            if layout is not None:
                figure.set_layout_engine("none")
            for axes, sides in zip(every, limits):
                for asked, axis, change in zip(sides, (axes.xaxis, axes.yaxis), (axes.set_xlim, axes.set_ylim)):
                    if asked is not None:
                        unit = 86_400.0 if side(axes, axis, (1.0, 2.0)).get("dates") else 1.0
                        change(*(float(limit) / unit for limit in asked))
            return display_list(figure, box=box)
        finally:
            for axes, across, up, auto_x, auto_y in before:
                axes.set_xlim(across, auto=auto_x)
                axes.set_ylim(up, auto=auto_y)
            if layout is not None:
                figure.set_layout_engine(layout)

    globals().update(
        FigureCanvas=FigureCanvasTracebook, FigureManager=FigureManagerTracebook, RendererTracebook=RendererTracebook,
        new_figure_manager=new_figure_manager, new_figure_manager_given_figure=new_figure_manager_given_figure,
        show=show, display_list=display_list, picture=picture, mimebundle=mimebundle,
        _redrawn=_redrawn, Path=Path,
    )
