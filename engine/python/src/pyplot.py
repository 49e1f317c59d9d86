"""matplotlib.pyplot for cells: calls are recorded as a figure, which is drawn where it's viewed.

Both styles work, `plt.plot(…)` and `fig, ax = plt.subplots()`. Errors name what isn't supported. The marks are in
`axes.py`, the parts around them in `axes_base.py`, and colors and columns in `drawing.py`.
"""

import builtins as _b

import _tracebook_kernel as _kernel
from _tracebook_axes_base import _Legend
from _tracebook_axes_base import look as _look
from _tracebook_axes_base import rcParams
from _tracebook_axes import Axes
from _tracebook_drawing import ELSEWHERE as _ELSEWHERE
from _tracebook_drawing import Bars as _Bars
from _tracebook_drawing import Handle as _Handle
from _tracebook_drawing import Packed as _Packed
from _tracebook_drawing import color as _color
from _tracebook_drawing import cycle as _cycle
from _tracebook_drawing import refuse as _refuse

_MIME = "application/vnd.tracebook.figure+json"
# If a figure's JSON is longer than this, its lines are reduced to what a screen shows.
_LONGEST = 40 << 20


def __getattr__(name):
    raise AttributeError(f"matplotlib.pyplot.{name} {_ELSEWHERE}")


class Figure:
    """A figure: axes on a grid."""

    def __init__(self, figsize=None, number=1):
        self.number = number
        self._size = tuple(figsize or rcParams["figure.figsize"])
        self._title = ""
        self._ground, self._dark = _ground(), _look["dark"]
        self.axes = []
        self._names = 0
        self._last = None
        self._shown = False

    def _name(self):
        """Returns a new name for an axis that several axes share."""
        self._names += 1
        return self._names

    def add_subplot(self, *place, projection=None, polar=False, sharex=None, sharey=None, **options):
        _refuse("add_subplot", options, ("label", "facecolor", "frameon", "aspect"))
        if polar or projection not in (None, "rectilinear"):
            raise ValueError(f"the projection {projection or 'polar'!r} {_ELSEWHERE}")
        if len(place) == 1 and isinstance(place[0], _Spec):
            return self._at(place[0].place, sharex, sharey)
        if len(place) == 1 and isinstance(place[0], int) and place[0] > 99:
            place = place[0] // 100, place[0] // 10 % 10, place[0] % 10
        rows, columns, at = place or (1, 1, 1)
        first, last = (at, at) if isinstance(at, int) else at
        if not 1 <= first <= last <= rows * columns:
            raise ValueError(f"num must be an integer with 1 <= num <= {rows * columns}, not {at}")
        across, down = (first - 1) % columns, (first - 1) // columns
        wide, high = (last - 1) % columns - across + 1, (last - 1) // columns - down + 1
        return self._at([across / columns, down / rows, wide / columns, high / rows], sharex, sharey)

    def _at(self, place, sharex=None, sharey=None):
        axes = Axes(self, place)
        for axis, other in (("x", sharex), ("y", sharey)):
            if other is not None:
                name = other._side(axis).setdefault("shared", self._name())
                axes._shared[axis] = other._shared[axis] = name
        axes.cla()
        self.axes.append(axes)
        return axes

    def add_axes(self, rect, **options):
        left, low, wide, high = rect
        axes = Axes(self, [left, 1.0 - low - high, wide, high], True)
        self.axes.append(axes)
        return axes

    def subplots(self, nrows=1, ncols=1, sharex=False, sharey=False, squeeze=True, gridspec_kw=None, subplot_kw=None,
                 width_ratios=None, height_ratios=None, **options):
        _refuse("subplots", options, ("num", "clear"))
        if (subplot_kw or {}).get("projection") or (subplot_kw or {}).get("polar"):
            raise ValueError(f"the projection {(subplot_kw.get('projection') or 'polar')!r} {_ELSEWHERE}")
        known = gridspec_kw or {}
        spec = GridSpec(nrows, ncols, self, width_ratios or known.get("width_ratios"),
                        height_ratios or known.get("height_ratios"))
        made = [[self._at(spec[row, column].place) for column in range(ncols)] for row in range(nrows)]
        for axis, shared in (("x", sharex), ("y", sharey)):
            names = {}
            for row in range(nrows):
                for at, one in enumerate(made[row]):
                    key = {True: 0, "all": 0, "row": row, "col": at}.get(shared)
                    if key is None:
                        continue
                    one._shared[axis] = one._side(axis)["shared"] = names.setdefault(key, self._name())
                    inner = axis == "x" and row + 1 < nrows and shared != "row" or axis == "y" and at and shared != "col"
                    one._side(axis)["quiet"] = _b.bool(inner)
        if squeeze and nrows == ncols == 1:
            return made[0][0]
        if squeeze and 1 in (nrows, ncols):
            return _Grid([one for row in made for one in row])
        return _Grid([_Grid(row) for row in made])

    def subplot_mosaic(self, mosaic, sharex=False, sharey=False, width_ratios=None, height_ratios=None, empty_sentinel=".",
                       **options):
        _refuse("subplot_mosaic", options, ("gridspec_kw",))
        if isinstance(mosaic, str):
            mosaic = [list(line.strip()) for line in mosaic.replace(";", "\n").strip().splitlines()]
        spec = GridSpec(len(mosaic), len(mosaic[0]), self, width_ratios, height_ratios)
        made = {}
        for name in dict.fromkeys(one for row in mosaic for one in row):
            if name == empty_sentinel:
                continue
            at = [(row, column) for row, line in enumerate(mosaic) for column, one in enumerate(line) if one == name]
            rows, columns = [row for row, _ in at], [column for _, column in at]
            made[name] = self._at(spec[min(rows):max(rows) + 1, min(columns):max(columns) + 1].place)
        return made

    def add_gridspec(self, nrows=1, ncols=1, **options):
        return GridSpec(nrows, ncols, self, options.get("width_ratios"), options.get("height_ratios"))

    def suptitle(self, text, **options):
        self._title = str(text)

    def supxlabel(self, text, **options):
        raise AttributeError(f"Figure.supxlabel {_ELSEWHERE}")

    def text(self, x, y, s, **options):
        axes = Axes(self, [0.0, 0.0, 1.0, 1.0], True)
        axes.set_axis_off()
        self.axes.insert(0, axes)
        return axes.text(x, y, s, transform=Axes.transAxes, **{name: options[name] for name in options
                                                              if name != "transform"})

    def colorbar(self, mappable=None, cax=None, ax=None, label="", orientation="vertical", location=None, ticks=None,
                 **options):
        _refuse("colorbar", options, ("shrink", "aspect", "pad", "fraction", "extend", "format", "drawedges", "use_gridspec"))
        mark = getattr(mappable, "_mark", None)
        axes = getattr(mappable, "_axes", None)
        if axes is None:
            if self._last is None:
                raise RuntimeError("No mappable was found to use for colorbar creation. First define a mappable such as "
                                   "an image (with imshow) or a contour set (with contourf).")
            axes, mark = self._last[0], self._last[1]._mark
        if ax is not None and not isinstance(ax, (list, tuple)):
            axes = ax if mark is None or mark in ax._said["marks"] else axes
        if cax is not None:
            raise TypeError(f"colorbar: the option 'cax' {_ELSEWHERE}")
        bar = axes._said["colorbar"] = {"label": str(label), "below": orientation == "horizontal" or location == "bottom"}
        at = next((at for at, one in enumerate(axes._said["marks"]) if one is mark), None)
        if at is not None:
            bar["mark"] = at
        return _Colorbar(bar)

    def legend(self, *args, **options):
        if not self.axes:
            raise ValueError("there are no axes that a legend could explain")
        return self.axes[0].legend(*args, **options)

    def gca(self):
        return self.axes[-1] if self.axes else self.add_subplot()

    def sca(self, axes):
        sca(axes)

    def get_axes(self):
        return list(self.axes)

    def delaxes(self, axes):
        self.axes.remove(axes)

    def set_size_inches(self, *size, **options):
        self._size = tuple(size[0] if len(size) == 1 else size)

    def set_figwidth(self, width):
        self._size = (width, self._size[1])

    def set_figheight(self, height):
        self._size = (self._size[0], height)

    def get_size_inches(self):
        return self._size

    def set_facecolor(self, value):
        self._ground = _color(value)

    def tight_layout(self, *args, **options):
        """Accepted: figures are always laid out so that nothing overlaps."""

    subplots_adjust = set_tight_layout = set_constrained_layout = set_layout_engine = tight_layout
    align_labels = align_ylabels = align_xlabels = set_dpi = tight_layout

    def autofmt_xdate(self, rotation=30, **options):
        for one in self.axes:
            one._turn("x", rotation)

    def clf(self):
        self.axes, self._title = [], ""

    clear = clf

    def _json(self):
        import json

        columns = []

        def held(value):
            if isinstance(value, _Packed):
                columns.append(value.text)
                return f"\0column {len(columns) - 1}"
            if hasattr(value, "tolist"):
                return value.tolist()
            raise TypeError(f"{type(value).__name__} is nothing that a figure holds")

        # An inch is a hundred points here, as on usual screens.
        text = json.dumps({"width": self._size[0] * 100.0, "height": self._size[1] * 100.0, "title": self._title,
                           "ground": self._ground, "dark": self._dark,
                           "axes": [axes._json(self.axes) for axes in self.axes]}, default=held)
        return _kernel.with_columns(text, columns) if columns else text

    def savefig(self, fname, dpi=None, format=None, **options):
        _refuse("savefig", options, ("bbox_inches", "transparent", "facecolor", "pad_inches", "edgecolor", "metadata",
                                     "orientation", "bbox_extra_artists"))
        name = getattr(fname, "name", fname) if not isinstance(fname, str) else fname
        form = (format or str(name).rpartition(".")[2] or "png").lower()
        if form not in ("png", "svg"):
            raise ValueError(f"savefig: the format {form!r} {_ELSEWHERE}; there are png and svg")
        scale = 2.0 if dpi in (None, "figure") else float(dpi) / 100.0
        data = bytes(_kernel.render(self._json(), form, scale))
        if hasattr(fname, "write"):
            fname.write(data)
        else:
            with open(fname, "wb") as file:
                file.write(data)

    def show(self, *args, **options):
        self._shown = True
        kernel_display(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        self._shown = True
        text = self._json()
        if len(text) > _LONGEST:
            text = _kernel.lighter(text)
        titles = [one for one in (*(axes._said.get("title") for axes in self.axes), self._title) if one]
        # Shown before the figure itself is read.
        about = {"width": self._size[0] * 100.0, "height": self._size[1] * 100.0, "title": ", ".join(titles)[:200]}
        return {_MIME: text, "text/plain": repr(self)}, {_MIME: about}

    def __repr__(self):
        size = "{:g}x{:g}".format(self._size[0] * 100, self._size[1] * 100)
        return f"<Figure size {size} with {len(self.axes)} Axes>"

    def __getattr__(self, name):
        raise AttributeError(f"Figure.{name} {_ELSEWHERE}")


def _ground():
    return _color(rcParams["figure.facecolor"] or _look["figure"] or None) or ""


class _Spec:
    """A part of a grid."""

    def __init__(self, place):
        self.place = place


class GridSpec:
    """A grid of axes; `[row, column]` or slices of it are parts."""

    def __init__(self, nrows, ncols, figure=None, width_ratios=None, height_ratios=None, **options):
        self._sides = _shares(nrows, height_ratios), _shares(ncols, width_ratios)

    def __getitem__(self, key):
        if not isinstance(key, tuple):
            columns = len(self._sides[1]) - 1
            key = (key // columns, key % columns) if isinstance(key, int) else (slice(None), key)
        (top, down), (left, right) = (self._ends(*one) for one in zip(key, self._sides))
        return _Spec([left, top, right - left, down - top])

    @staticmethod
    def _ends(key, edges):
        count = len(edges) - 1
        if isinstance(key, slice):
            first, last, _ = key.indices(count)
        else:
            first = key + count if key < 0 else key
            last = first + 1
        if not 0 <= first < last <= count:
            raise IndexError("index out of the grid's bounds")
        return edges[first], edges[last]

    def subplots(self, **options):
        raise AttributeError(f"GridSpec.subplots {_ELSEWHERE}")


def _shares(count, ratios):
    ratios = [float(one) for one in ratios or [1] * count]
    if len(ratios) != count:
        raise ValueError(f"Expected the given number of ratios to match the grid: {count}")
    whole, edges = _b.sum(ratios), [0.0]
    for one in ratios:
        edges.append(edges[-1] + one / whole)
    return edges


class _Colorbar:
    def __init__(self, said):
        self._said = said
        self.ax = self

    def set_label(self, label, **options):
        self._said["label"] = str(label)

    set_ylabel = set_title = set_label

    def _accepted(self, *args, **options):
        """Does nothing: a color bar has its own ticks."""

    set_ticks = set_ticklabels = tick_params = minorticks_on = _accepted

    def __getattr__(self, name):
        raise AttributeError(f"Colorbar.{name} {_ELSEWHERE}")


class _Grid(list):
    """Rows of axes, which can be unpacked, iterated over, or indexed by `[row, column]`."""

    def __getitem__(self, key):
        if isinstance(key, tuple):
            first, rest = key[0], key[1:]
            if isinstance(first, slice):
                return _Grid([row[rest if len(rest) > 1 else rest[0]] for row in list.__getitem__(self, first)])
            return list.__getitem__(self, first)[rest if len(rest) > 1 else rest[0]]
        found = list.__getitem__(self, key)
        return _Grid(found) if isinstance(key, slice) else found

    @property
    def flat(self):
        return iter(self.ravel())

    def ravel(self, *args):
        return _Grid([one for row in self for one in (row if isinstance(row, _Grid) else [row])])

    flatten = ravel

    def tolist(self):
        return [list(row) if isinstance(row, _Grid) else row for row in self]

    @property
    def shape(self):
        return (len(self), len(self[0])) if self and isinstance(self[0], _Grid) else (len(self),)

    @property
    def size(self):
        return len(self.ravel())

    @property
    def T(self):
        return _Grid([_Grid(row) for row in zip(*self)]) if self and isinstance(self[0], _Grid) else self


def kernel_display(value):
    _b.display(value)


# The current figure.

_figures = {}
_current = [0]


def figure(num=None, figsize=None, dpi=None, facecolor=None, **options):
    _refuse("figure", options, ("tight_layout", "constrained_layout", "layout", "clear", "edgecolor", "frameon"))
    if isinstance(num, Figure):
        num = num.number
    if num is None:
        num = _b.max((one for one in _figures if isinstance(one, int)), default=0) + 1
    if num not in _figures:
        _figures[num] = Figure(figsize, num)
        if facecolor is not None:
            _figures[num].set_facecolor(facecolor)
    _current[0] = num
    return _figures[num]


def gcf():
    return _figures[_current[0]] if _current[0] in _figures else figure()


def gca():
    return gcf().gca()


def sca(axes):
    axes.figure.axes.remove(axes)
    axes.figure.axes.append(axes)


def axes(arg=None, **options):
    return gcf().add_subplot(**options) if arg is None else gcf().add_axes(arg)


def subplot(*place, **options):
    # Axes that already exist at this position become the current ones, instead of the new ones.
    before = list(gcf().axes)
    made = gcf().add_subplot(*place, **options)
    for known in before:
        if known._place == made._place and known._base is None:
            gcf().axes.pop()
            sca(known)
            return known
    return made


def subplots(nrows=1, ncols=1, figsize=None, sharex=False, sharey=False, squeeze=True, gridspec_kw=None, subplot_kw=None,
             width_ratios=None, height_ratios=None, **options):
    made = figure(figsize=figsize, **options)
    return made, made.subplots(nrows, ncols, sharex, sharey, squeeze, gridspec_kw, subplot_kw, width_ratios, height_ratios)


def subplot_mosaic(mosaic, figsize=None, layout=None, **options):
    made = figure(figsize=figsize)
    return made, made.subplot_mosaic(mosaic, **options)


def subplot2grid(shape, loc, rowspan=1, colspan=1, **options):
    spec = GridSpec(*shape)
    row, column = loc
    return gcf().add_subplot(spec[row:row + rowspan, column:column + colspan])


def show(*args, **options):
    for number in list(_figures):
        kernel_display(_figures[number])
    close("all")


def close(which=None):
    if which == "all":
        _figures.clear()
    else:
        _figures.pop(getattr(which, "number", which or _current[0]), None)


def fignum_exists(num):
    return num in _figures


def get_fignums():
    return list(_figures)


def savefig(*args, **options):
    gcf().savefig(*args, **options)


def suptitle(text, **options):
    gcf().suptitle(text)


def figtext(x, y, s, **options):
    return gcf().text(x, y, s, **options)


def colorbar(mappable=None, cax=None, ax=None, **options):
    return gcf().colorbar(mappable, cax, ax, **options)


def clim(vmin=None, vmax=None):
    gcf()._last[1].set_clim(vmin, vmax)


def set_cmap(cmap):
    rcParams["image.cmap"] = cmap


def tight_layout(*args, **options):
    gcf()


subplots_adjust = tight_layout


def clf():
    gcf().clf()


def cla():
    gca().cla()


def delaxes(axes=None):
    gcf().axes.remove(axes or gca())


def ion():
    """Accepted: figures are shown below their cell."""


ioff = draw = ion


def pause(interval):
    """Accepted: figures are shown below their cell."""


def get_cmap(name="viridis", lut=None):
    from matplotlib.colors import Colormap

    return Colormap(name)


def xticks(ticks=None, labels=None, rotation=None, **options):
    axes = gca()
    if ticks is not None:
        axes.set_xticks(ticks, labels)
    axes._turn("x", rotation)
    return (axes.get_xticks(), axes.get_xticklabels()) if ticks is None else None


def yticks(ticks=None, labels=None, **options):
    if ticks is not None:
        gca().set_yticks(ticks, labels)


def xlim(*limits, **options):
    return gca().set_xlim(*limits, **options) if limits or options else gca().get_xlim()


def ylim(*limits, **options):
    return gca().set_ylim(*limits, **options) if limits or options else gca().get_ylim()


def rc(group, **options):
    for name, value in options.items():
        rcParams[f"{group}.{name}"] = value


def rcdefaults():
    rcParams.reset()
    style.use("default")


class cycler(list):
    """A cycle of colors: `cycler(color=[…])`."""

    def __init__(self, *args, color=None):
        if color is None and len(args) == 2 and args[0] == "color":
            color = args[1]
        if color is None:
            raise ValueError(f"a cycler of anything but colours {_ELSEWHERE}")
        self.colors = list(color)


def _hex(value):
    """Returns a color as hexadecimal digits, including the note's own colors."""
    found = _color(value)
    return found if found.startswith("#") else "#{:02x}{:02x}{:02x}".format(*_kernel.named_color(found))


def _forward(name, method):
    def call(*args, **options):
        return getattr(gca(), method)(*args, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(Axes, method).__doc__
    return call


for _name in ("plot", "scatter", "bar", "barh", "bar_label", "broken_barh", "hist", "hist2d", "hexbin", "fill",
              "fill_between", "fill_betweenx", "stackplot", "errorbar", "pie", "imshow", "matshow", "pcolormesh",
              "pcolor", "contour", "contourf", "clabel", "step", "stairs", "stem", "eventplot", "boxplot", "violinplot",
              "axhline", "axvline", "axline", "axhspan", "axvspan", "hlines", "vlines", "arrow", "quiver", "text",
              "annotate", "grid", "legend", "axis", "semilogx", "semilogy", "loglog", "margins", "tick_params",
              "ticklabel_format", "minorticks_on", "minorticks_off", "autoscale", "twinx", "twiny", "plot_date"):
    globals()[_name] = _forward(_name, _name)
for _name in ("title", "xlabel", "ylabel", "xscale", "yscale"):
    globals()[_name] = _forward(_name, f"set_{_name}")

# Color cycle, axes background, figure background, grid, light text.
_STYLES = {
    "default": ("", "", "", False, False),
    "classic": ("b g r c m y k", "", "", False, False),
    "ggplot": ("#E24A33 #348ABD #988ED5 #777777 #FBC15E #8EBA42 #FFB5B8", "#E5E5E5", "", True, False),
    "bmh": ("#348ABD #A60628 #7A68A6 #467821 #D55E00 #CC79A7 #56B4E9 #009E73 #F0E442 #0072B2", "#eeeeee", "", True,
            False),
    "fivethirtyeight": ("#008fd5 #fc4f30 #e5ae38 #6d904f #8b8b8b #810f7c", "#f0f0f0", "#f0f0f0", True, False),
    "grayscale": ("0.00 0.40 0.60 0.70", "", "", False, False),
    "dark_background": ("#8dd3c7 #feffb3 #bfbbd9 #fa8174 #81b1d2 #fdb462 #b3de69 #bc82bd #ccebc4 #ffed6f", "", "#000000",
                        False, True),
    "tableau-colorblind10": ("#006BA4 #FF800E #ABABAB #595959 #5F9ED1 #C85200 #898989 #A2C8EC #FFBC79 #CFCFCF", "", "",
                             False, False),
}
_SEABORN = "#4C72B0 #55A868 #C44E52 #8172B2 #CCB974 #64B5CD"
for _name in ("seaborn-v0_8", "seaborn-v0_8-darkgrid", "seaborn-v0_8-dark"):
    _STYLES[_name] = (_SEABORN, "#EAEAF2", "", _name != "seaborn-v0_8-dark", False)
for _name in ("seaborn-v0_8-whitegrid", "seaborn-v0_8-white", "seaborn-v0_8-ticks"):
    _STYLES[_name] = (_SEABORN, "", "", _name == "seaborn-v0_8-whitegrid", False)
for _name in ("seaborn-v0_8-colorblind", "seaborn-v0_8-deep", "seaborn-v0_8-notebook", "seaborn-v0_8-paper",
              "seaborn-v0_8-talk", "seaborn-v0_8-poster", "seaborn-v0_8-muted", "seaborn-v0_8-pastel"):
    _STYLES[_name] = (_SEABORN, "", "", False, False)


class _Style:
    """Styles: the colors, backgrounds and grids of some of matplotlib's."""

    available = sorted(_STYLES)

    def use(self, styles):
        for name in [styles] if isinstance(styles, (str, dict)) else styles:
            if isinstance(name, dict):
                rcParams.update(name)
                continue
            if name not in _STYLES:
                raise OSError(f"the style {name!r} {_ELSEWHERE}; there are {', '.join(self.available)}")
            colors, ground, whole, grid, dark = _STYLES[name]
            _cycle[:] = [_color(one) for one in colors.split()]
            _look.update(ground=ground, figure=whole, dark=dark)
            rcParams["axes.grid"] = grid

    def context(self, styles, after_reset=False):
        from contextlib import contextmanager

        @contextmanager
        def within():
            before = list(_cycle), dict(_look), dict(rcParams)
            self.use(styles)
            try:
                yield
            finally:
                _cycle[:] = before[0]
                _look.update(before[1])
                dict.update(rcParams, before[2])

        return within()


style = _Style()


def xkcd(*args, **options):
    raise AttributeError(f"matplotlib.pyplot.xkcd {_ELSEWHERE}")


def _after_cell(value):
    """Shows what a cell drew and didn't show. Returns whether the cell's value is only a handle of a drawing."""
    if _b.any(one.axes and not one._shown for one in _figures.values()):
        for number in list(_figures):
            if _figures[number].axes and not _figures[number]._shown:
                kernel_display(_figures[number])
    _figures.clear()
    if isinstance(value, Figure):
        if not value._shown:
            kernel_display(value)
        return True
    return _b.any(isinstance(one, (_Handle, _Bars, _Legend, Axes, Figure, _Colorbar, _Grid)) for one in _parts(value))


def _parts(value):
    """Returns a value, or its parts: calls return lists and dictionaries of what they drew."""
    if isinstance(value, dict) and value and len(value) < 20:
        return [part for one in value.values() for part in _parts(one)]
    if isinstance(value, (list, tuple)) and value and not isinstance(value, (_Bars, _Grid)):
        return [part for one in value for part in (one if isinstance(one, list) and one else [one])]
    return [value]
