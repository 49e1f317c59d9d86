"""matplotlib.pyplot for cells: what is asked for is written down as a figure, which is drawn where it is looked at.

Both styles work, `plt.plot(…)` and `fig, ax = plt.subplots()`. What is not here says so by name.
"""

import builtins as _b
import math as _math

import _tracebook_kernel as _kernel

_ELSEWHERE = "is not in Tracebook's small matplotlib; a full Python kernel has it"
_MIME = "application/vnd.tracebook.figure+json"


def __getattr__(name):
    raise AttributeError(f"matplotlib.pyplot.{name} {_ELSEWHERE}")


_COLORS = {
    "b": "#1f3fd6", "g": "#1a8a3a", "r": "#d62728", "c": "#17a2b8", "m": "#b535b5", "y": "#c9a800", "k": "#000000",
    "w": "#ffffff", "blue": "#1f3fd6", "green": "#1a8a3a", "red": "#d62728", "cyan": "#17a2b8", "magenta": "#b535b5",
    "yellow": "#e6c700", "black": "#000000", "white": "#ffffff", "gray": "#808080", "grey": "#808080",
    "orange": "#ff8c00", "purple": "#800080", "brown": "#8b4513", "pink": "#e377c2", "olive": "#808000",
    "navy": "#000080", "teal": "#008080", "gold": "#e0b000", "lightgray": "#d3d3d3", "lightgrey": "#d3d3d3",
    "darkgray": "#606060", "silver": "#c0c0c0", "skyblue": "#87ceeb", "steelblue": "#4682b4", "salmon": "#fa8072",
    "coral": "#ff7f50", "crimson": "#dc143c", "darkblue": "#00008b", "darkgreen": "#006400", "darkred": "#8b0000",
    "lightblue": "#add8e6", "lightgreen": "#90ee90", "indigo": "#4b0082", "violet": "#ee82ee", "tomato": "#ff6347",
    "royalblue": "#4169e1", "forestgreen": "#228b22", "firebrick": "#b22222", "turquoise": "#40e0d0",
    "tab:blue": "C0", "tab:orange": "C1", "tab:green": "C2", "tab:pink": "C3", "tab:red": "#d62728",
    "tab:purple": "C6", "tab:gray": "C7", "tab:brown": "#8c564b", "tab:olive": "#bcbd22", "tab:cyan": "C5",
}
_MARKERS = set(".,ov^<>sDd*x+") | {"None", "none", "", " "}
_DASHES = {"-": "-", "--": "--", ":": ":", "-.": "-.", "solid": "-", "dashed": "--", "dotted": ":", "dashdot": "-.",
           "none": "none", "None": "none", "": "none", " ": "none"}


def _color(color):
    if color is None or color == "none":
        return color
    if isinstance(color, str):
        if color in _COLORS:
            return _COLORS[color]
        if len(color) > 1 and color[0] == "C" and color[1:].isdigit():
            return color
        if color.startswith("#") and len(color) in (4, 5):
            return "#" + "".join(one * 2 for one in color[1:4])
        if color.startswith("#") and len(color) in (7, 9):
            return color[:7]
        try:
            return _color((float(color),) * 3)
        except ValueError:
            raise ValueError(f"{color!r} is not a color that Tracebook's small matplotlib knows; write it as "
                             "'#rrggbb'") from None
    parts = [_math.floor(_b.min(_b.max(float(one), 0.0), 1.0) * 255 + 0.5) for one in list(color)[:3]]
    return "#{:02x}{:02x}{:02x}".format(*parts)


def _plain(value):
    """Numbers as a list, words as they are."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    elif not isinstance(value, (list, tuple)) and hasattr(value, "__iter__") and not isinstance(value, str):
        value = list(value)
    return value


def _numbers(value):
    value = _plain(value)
    if not isinstance(value, (list, tuple)):
        value = [value]
    out = []
    for one in value:
        one = _plain(one)
        out += _numbers(one) if isinstance(one, (list, tuple)) else [_math.nan if one is None else float(one)]
    return out


def _column(values):
    """A column as the figure holds it: short ones as they are, long ones packed."""
    if len(values) > 256:
        import base64
        from array import array

        return base64.b64encode(array("d", values).tobytes()).decode()
    return [one if _math.isfinite(one) else None for one in values]


def _refuse(name, options, known=()):
    for option in options:
        if option not in known:
            raise TypeError(f"{name}: the option {option!r} {_ELSEWHERE}")


_IGNORED = ("zorder", "clip_on", "rasterized", "antialiased", "snap", "gid", "picker", "animated", "in_layout", "figure")


def _format(words):
    """A format string such as "ro--" as (color, marker, dash)."""
    color = marker = dash = None
    at = 0
    while at < len(words):
        if words[at:at + 2] in ("--", "-."):
            dash, at = words[at:at + 2], at + 2
        elif words[at] in "-:":
            dash, at = words[at], at + 1
        elif words[at] == "C" and words[at + 1:at + 2].isdigit():
            color, at = words[at:at + 2], at + 2
        elif words[at] in "bgrcmykw":
            color, at = words[at], at + 1
        elif words[at] in _MARKERS:
            marker, at = words[at], at + 1
        else:
            raise ValueError(f"{words!r} is not a valid format string (unrecognized character {words[at]!r})")
    return color, marker, dash


class _Handle:
    """What a drawing call gives back: enough to name it in a legend."""

    def __init__(self, mark):
        self._mark = mark

    def set_label(self, label):
        self._mark["label"] = str(label)

    def get_label(self):
        return self._mark.get("label", "")

    def set_color(self, color):
        self._mark["color"] = _color(color)

    def get_color(self):
        return self._mark.get("color")

    def set_data(self, x, y):
        self._mark["x"], self._mark["y"] = _column(_numbers(x)), _column(_numbers(y))

    def __getattr__(self, name):
        raise AttributeError(f"{name} of what was drawn {_ELSEWHERE}")


class _Bars(list):
    """The rectangles of a bar call."""


class Axes:
    """One pair of axes."""

    def __init__(self, figure, place):
        self.figure = figure
        self._place = place
        self._twin = None
        self.cla()

    def cla(self):
        self._said = {"place": self._place, "marks": []}
        self._colors = 0
        self._categories = {}

    clear = cla

    def _mark(self, kind, **said):
        mark = {"kind": kind, **said}
        self._said["marks"].append(mark)
        return mark

    def _next(self):
        self._colors += 1
        return f"C{(self._colors - 1) % 8}"

    def _along(self, axis, values):
        """Numbers of an axis; words become places in the order in which they come."""
        values = _plain(values)
        if isinstance(values, (list, tuple)) and _b.any(isinstance(one, str) for one in values):
            places = self._categories.setdefault(axis, {})
            for one in values:
                places.setdefault(str(one), len(places))
            self._said[f"{axis}ticks"] = {"at": list(places.values()), "labels": list(places)}
            return [float(places[str(one)]) for one in values]
        if isinstance(values, (list, tuple)) and values and hasattr(values[0], "toordinal"):
            from datetime import datetime

            seconds = [(one if isinstance(one, datetime) else datetime(one.year, one.month, one.day)).timestamp()
                       for one in values]
            low, high = _b.min(seconds), _b.max(seconds)
            shown = [low + (high - low) * at / 4 for at in range(5)]
            form = "%Y" if high - low > 3e8 else "%Y-%m-%d" if high - low > 2e5 else "%m-%d %H:%M"
            self._said[f"{axis}ticks"] = {"at": shown, "labels": [datetime.fromtimestamp(one).strftime(form)
                                                                    for one in shown]}
            return seconds
        return _numbers(values)

    # Marks.

    def plot(self, *args, color=None, c=None, linewidth=None, lw=None, linestyle=None, ls=None, marker=None,
             markersize=None, ms=None, alpha=1.0, label="", **options):
        _refuse("plot", options, _IGNORED + ("markerfacecolor", "markeredgecolor", "mfc", "mec", "drawstyle", "markevery"))
        groups, args = [], list(args)
        while args:
            taken = [args.pop(0)]
            if args and not isinstance(args[0], str):
                taken.append(args.pop(0))
            form = args.pop(0) if args and isinstance(args[0], str) else ""
            groups.append((taken, form))
        made = []
        for taken, form in groups:
            f_color, f_marker, f_dash = _format(form)
            y = _plain(taken[-1])
            columns = [list(column) for column in zip(*y)] if y and isinstance(y, (list, tuple)) and isinstance(
                _plain(y[0]), (list, tuple)) else [y]
            for column in columns:
                y = self._along("y", column)
                x = self._along("x", taken[0]) if len(taken) > 1 else [float(at) for at in range(len(y))]
                if len(x) != len(y):
                    raise ValueError(f"x and y must have same first dimension, but have shapes ({len(x)},) and "
                                     f"({len(y)},)")
                own = color if color is not None else c if c is not None else f_color
                dash = linestyle if linestyle is not None else ls if ls is not None else f_dash
                point = marker if marker is not None else f_marker
                if point is not None and point not in _MARKERS:
                    raise ValueError(f"the marker {point!r} {_ELSEWHERE}")
                if dash is None:
                    dash = "none" if f_marker and linestyle is None and ls is None else "-"
                mark = self._mark(
                    "line", x=_column(x), y=_column(y), color=_color(own) or self._next(),
                    width=float(linewidth or lw or 1.6), dash=_DASHES[dash],
                    marker="" if point in (None, "None", "none", " ") else point,
                    size=float(markersize or ms or 6.0), alpha=float(1.0 if alpha is None else alpha),
                    label=str(label if label is not None else ""))
                made.append(_Handle(mark))
        return made

    def step(self, x, y, *args, where="pre", **options):
        x, y = self._along("x", x), _numbers(y)
        xs, ys = [], []
        for at in range(len(x)):
            if at and where == "pre":
                xs, ys = xs + [x[at - 1]], ys + [y[at]]
            elif at and where == "post":
                xs, ys = xs + [x[at]], ys + [y[at - 1]]
            elif at:
                middle = (x[at - 1] + x[at]) / 2
                xs, ys = xs + [middle, middle], ys + [y[at - 1], y[at]]
            xs.append(x[at])
            ys.append(y[at])
        return self.plot(xs, ys, *args, **options)

    def semilogx(self, *args, **options):
        self._said["xlog"] = True
        return self.plot(*args, **options)

    def semilogy(self, *args, **options):
        self._said["ylog"] = True
        return self.plot(*args, **options)

    def loglog(self, *args, **options):
        self._said["xlog"] = self._said["ylog"] = True
        return self.plot(*args, **options)

    def scatter(self, x, y, s=None, c=None, marker="o", cmap="viridis", vmin=None, vmax=None, alpha=1.0, label="",
                color=None, edgecolors=None, linewidths=None, **options):
        _refuse("scatter", options, _IGNORED)
        x, y = self._along("x", x), self._along("y", y)
        if len(x) != len(y):
            raise ValueError("x and y must be the same size")
        colors, shades = [], None
        c = _plain(c if color is None else color)
        if c is None:
            colors = [self._next()]
        elif isinstance(c, str) or isinstance(c, (list, tuple)) and len(c) in (3, 4) and len(c) != len(x):
            colors = [_color(c)]
        elif c and isinstance(c[0], (int, float)):
            shades = _shades(_numbers(c), cmap, vmin, vmax)
        else:
            colors = [_color(one) for one in c]
        return self._shaded(_Handle(self._mark(
            "points", x=_column(x), y=_column(y), sizes=_column(_numbers(36.0 if s is None else s)), colors=colors,
            values=shades, marker=marker or "o", alpha=float(1.0 if alpha is None else alpha), label=str(label or ""))))

    def _shaded(self, handle):
        self.figure._last = (self, handle)
        return handle

    def _bars(self, name, x, y, width, height, color, edgecolor, alpha, label, options):
        _refuse(name, options, _IGNORED + ("linewidth", "lw", "hatch", "log", "ecolor", "capsize"))
        color = _plain(color)
        if color is None:
            colors = [self._next()]
        elif isinstance(color, (list, tuple)) and color and not isinstance(color[0], (int, float)):
            colors = [_color(one) for one in color]
        else:
            colors = [_color(color)]
        mark = self._mark("bars", x=_column(x), y=_column(y), width=_column(width), height=_column(height),
                          colors=colors, edge=_color(edgecolor) or "", alpha=float(1.0 if alpha is None else alpha),
                          label=str(label or ""))
        return _Bars(_Handle(mark) for _ in x)

    def bar(self, x, height, width=0.8, bottom=0.0, align="center", color=None, edgecolor=None, alpha=1.0, label="",
            yerr=None, tick_label=None, **options):
        x, high = self._along("x", x), _numbers(height)
        high = high * len(x) if len(high) == 1 else high
        wide, low = _spread(width, len(x)), _spread(bottom, len(x))
        left = [at - one / 2 for at, one in zip(x, wide)] if align == "center" else x
        if tick_label is not None:
            self.set_xticks(x, tick_label)
        made = self._bars("bar", left, low, wide, high, color, edgecolor, alpha, label, options)
        if yerr is not None:
            self.errorbar([at + one / 2 for at, one in zip(left, wide)], [a + b for a, b in zip(low, high)], yerr,
                          fmt="none", ecolor="k", capsize=options.get("capsize", 0))
        return made

    def barh(self, y, width, height=0.8, left=0.0, align="center", color=None, edgecolor=None, alpha=1.0, label="",
             **options):
        y, wide = self._along("y", y), _numbers(width)
        wide = wide * len(y) if len(wide) == 1 else wide
        high, start = _spread(height, len(y)), _spread(left, len(y))
        low = [at - one / 2 for at, one in zip(y, high)] if align == "center" else y
        return self._bars("barh", start, low, wide, high, color, edgecolor, alpha, label, options)

    def bar_label(self, bars, labels=None, fmt="%g", padding=0):
        mark = bars[0]._mark
        x, y, wide, high = (_unpacked(mark[name]) for name in ("x", "y", "width", "height"))
        for at in range(len(x)):
            self.text(x[at] + wide[at] / 2, y[at] + high[at], labels[at] if labels is not None else fmt % high[at],
                      ha="center", va="bottom", fontsize=9)

    def hist(self, x, bins=10, range=None, density=False, weights=None, cumulative=False, histtype="bar",
             orientation="vertical", color=None, edgecolor=None, alpha=1.0, label="", **options):
        if histtype not in ("bar", "step", "stepfilled"):
            raise ValueError(f"hist: histtype={histtype!r} {_ELSEWHERE}")
        import numpy as np

        x = _plain(x)
        if x and isinstance(_plain(x[0]), (list, tuple)):
            labels = label if isinstance(label, (list, tuple)) else [label] * len(x)
            low, high = range or (_b.min(_numbers(x)), _b.max(_numbers(x)))
            return [self.hist(one, bins, (low, high), density, weights, cumulative, histtype, orientation, None,
                              edgecolor, 0.6, word) for one, word in zip(x, labels)]
        counts, edges = np.histogram(_numbers(x), bins, range, density, weights)
        if cumulative:
            counts = np.cumsum(counts * (np.diff(edges) if density else 1))
        tall, cut = _numbers(counts), _numbers(edges)
        wide = [b - a for a, b in zip(cut, cut[1:])]
        if histtype == "step":
            xs = [one for one in cut for _ in (0, 1)]
            ys = [0.0] + [one for one in tall for _ in (0, 1)] + [0.0]
            return counts, edges, self.plot(xs, ys, color=color, alpha=alpha, label=label, **options)
        flat = [0.0] * len(tall)
        if orientation == "horizontal":
            made = self._bars("hist", flat, cut[:-1], tall, wide, color, edgecolor, alpha, label, options)
        else:
            made = self._bars("hist", cut[:-1], flat, wide, tall, color, edgecolor or "#ffffff", alpha, label, options)
        return counts, edges, made

    def fill_between(self, x, y1, y2=0.0, where=None, color=None, facecolor=None, alpha=0.3, label="", **options):
        _refuse("fill_between", options, _IGNORED + ("linewidth", "lw", "edgecolor", "interpolate", "step"))
        x = self._along("x", x)
        low, high = _spread(y2, len(x)), _spread(y1, len(x))
        if where is not None:
            keep = _plain(where)
            low = [one if yes else _math.nan for one, yes in zip(low, keep)]
            high = [one if yes else _math.nan for one, yes in zip(high, keep)]
        return _Handle(self._mark("area", x=_column(x), low=_column(low), high=_column(high),
                                  color=_color(color or facecolor) or self._next(),
                                  alpha=float(1.0 if alpha is None else alpha), label=str(label or "")))

    def stackplot(self, x, *ys, labels=(), colors=None, alpha=0.8):
        rows = _plain(ys[0]) if len(ys) == 1 else [_plain(one) for one in ys]
        base = [0.0] * len(_numbers(x))
        for at, row in enumerate(rows):
            top = [a + b for a, b in zip(base, _numbers(row))]
            self.fill_between(x, top, base, alpha=alpha, label=labels[at] if at < len(labels) else "",
                              color=colors[at % len(colors)] if colors else None)
            base = top

    def errorbar(self, x, y, yerr=None, xerr=None, fmt="", ecolor=None, elinewidth=None, capsize=0, color=None,
                 label="", alpha=1.0, **options):
        x, y = self._along("x", x), self._along("y", y)
        own = _color(color) or _color(_format("" if fmt == "none" else fmt)[0]) or (
            None if fmt == "none" and ecolor is not None else self._next())
        line = _color(ecolor) or own
        for error, vertical in ((yerr, True), (xerr, False)):
            if error is None:
                continue
            error = _plain(error)
            both = isinstance(error, (list, tuple)) and len(error) == 2 and isinstance(_plain(error[0]), (list, tuple))
            down, up = (_spread(error[0], len(x)), _spread(error[1], len(x))) if both else (_spread(error, len(x)),) * 2
            xs, ys = [], []
            for a, b, low, high in zip(x, y, down, up):
                if vertical:
                    xs, ys = xs + [a, a], ys + [b - low, b + high]
                else:
                    xs, ys = xs + [a - low, a + high], ys + [b, b]
            self._mark("segments", x=_column(xs), y=_column(ys), color=line, width=float(elinewidth or 1.2),
                       alpha=float(alpha), label="")
            if capsize:
                ends = [(xs[at], ys[at]) for at in range(len(xs))]
                self._mark("line", x=_column([a for a, _ in ends]), y=_column([b for _, b in ends]), color=line,
                           width=1.0, dash="none", marker="+", size=float(capsize) * 2, alpha=float(alpha), label="")
        if fmt == "none":
            return None
        return self.plot(x, y, fmt, color=own, label=label, alpha=alpha, **options)[0]

    def pie(self, x, labels=None, colors=None, autopct=None, startangle=0, explode=None, **options):
        _refuse("pie", options, _IGNORED + ("shadow", "textprops", "wedgeprops", "counterclock", "normalize"))
        parts = _numbers(x)
        total = _b.sum(parts) or 1.0
        shares = [autopct(one / total * 100) if callable(autopct) else autopct % (one / total * 100)
                  for one in parts] if autopct else []
        colors = [_color(one) for one in colors] if colors is not None else [f"C{at % 8}" for at in range(len(parts))]
        self._mark("pie", parts=_column(parts), colors=colors, labels=[str(one) for one in labels or ()],
                   shares=shares, start=float(startangle))
        self._said["off"] = self._said["equal"] = True

    def imshow(self, X, cmap="viridis", vmin=None, vmax=None, origin="upper", extent=None, aspect="equal", alpha=None,
               **options):
        _refuse("imshow", options, _IGNORED + ("interpolation", "norm"))
        rows = [list(_plain(row)) for row in _plain(X)]
        if rows and isinstance(rows[0][0], (list, tuple)):
            raise ValueError(f"imshow of colours (three numbers a pixel) {_ELSEWHERE}")
        high, wide = len(rows), len(rows[0])
        if origin == "lower":
            rows.reverse()
        while high * wide > 40_000:
            # More cells than anybody tells apart: every second one is shown.
            rows = [row[::2] for row in rows[::2]]
            place = extent or (-0.5, wide - 0.5, high - 0.5, -0.5)
            extent, (high, wide) = place, (len(rows), len(rows[0]))
        place = list(extent or ((-0.5, wide - 0.5, -0.5, high - 0.5) if origin == "lower" else
                                (-0.5, wide - 0.5, high - 0.5, -0.5)))
        self._said.setdefault("xlim", [float(place[0]), float(place[1])])
        self._said.setdefault("ylim", [float(place[2]), float(place[3])])
        self._said["equal"] = aspect == "equal"
        return self._shaded(_Handle(self._mark("image", rows=high, columns=wide, place=[float(one) for one in place],
                                               shades=_shades(_numbers(rows), cmap or "viridis", vmin, vmax))))

    matshow = imshow

    def pcolormesh(self, *args, cmap="viridis", vmin=None, vmax=None, shading="auto"):
        x, y = (_numbers(_plain(args[0])), _numbers(_plain(args[1]))) if len(args) > 1 else (None, None)
        extent = (_b.min(x), _b.max(x), _b.min(y), _b.max(y)) if x else None
        return self.imshow(args[-1], cmap, vmin, vmax, "lower", extent, "auto")

    def _contour(self, name, args, levels, cmap, colors, filled, options):
        _refuse(name, options, _IGNORED + ("linewidths", "alpha", "linestyles", "extend"))
        if len(args) in (2, 4) and levels is None:
            args, levels = args[:-1], args[-1]
        rows = [_numbers(row) for row in _plain(args[-1])]
        if len(args) > 1:
            x, y = _plain(args[0]), _plain(args[1])
            x = _numbers(x[0]) if isinstance(_plain(x[0]), (list, tuple)) else _numbers(x)
            y = [_numbers(row)[0] for row in y] if isinstance(_plain(y[0]), (list, tuple)) else _numbers(y)
        else:
            x, y = [float(at) for at in range(len(rows[0]))], [float(at) for at in range(len(rows))]
        z = [one for row in rows for one in row]
        low, high = _b.min(z), _b.max(z)
        if levels is None or isinstance(levels, int):
            count = levels or 8
            levels = [low + (high - low) * at / count for at in range(count + 1)]
            levels = levels if filled else levels[1:-1]
        levels = _numbers(levels)
        shades = _shades(z, cmap or "viridis", levels[0], levels[-1])
        return self._shaded(_Handle(self._mark("contour", x=_column(x), y=_column(y), shades=shades, levels=levels,
                                               filled=filled)))

    def contour(self, *args, levels=None, cmap=None, colors=None, **options):
        return self._contour("contour", args, levels, cmap, colors, False, options)

    def contourf(self, *args, levels=None, cmap=None, colors=None, **options):
        return self._contour("contourf", args, levels, cmap, colors, True, options)

    def clabel(self, *args, **options):
        """Accepted; the levels stand in the colorbar."""

    def boxplot(self, x, tick_labels=None, labels=None, vert=True, widths=0.5, showfliers=True, positions=None,
                **options):
        _refuse("boxplot", options, _IGNORED + ("patch_artist", "showmeans", "notch", "whis", "sym"))
        import numpy as np

        x = _plain(x)
        groups = [_numbers(one) for one in x] if isinstance(_plain(x[0]), (list, tuple)) else [_numbers(x)]
        places = _numbers(positions) if positions is not None else [float(at + 1) for at in range(len(groups))]
        color = self._next()
        for place, values in zip(places, groups):
            low, middle, high = (float(one) for one in np.percentile(values, [25, 50, 75]))
            reach = 1.5 * (high - low)
            inside = [one for one in values if low - reach <= one <= high + reach]
            bottom, top = _b.min(inside), _b.max(inside)
            half = widths / 2
            turn = (lambda a, b: (a, b)) if vert else (lambda a, b: (b, a))

            def lines(points, own, width):
                xs, ys = zip(*[turn(a, b) for a, b in points])
                self._mark("segments", x=list(xs), y=list(ys), color=own, width=width, alpha=1.0, label="")

            corner, size = turn(place - half, low), turn(2 * half, high - low)
            self._mark("bars", x=[corner[0]], y=[corner[1]], width=[size[0]], height=[size[1]], colors=[color],
                       edge=color, alpha=0.25, label="")
            cap = half / 2
            lines([(place, bottom), (place, low), (place, high), (place, top), (place - cap, bottom),
                   (place + cap, bottom), (place - cap, top), (place + cap, top)], color, 1.2)
            lines([(place - half, middle), (place + half, middle)], "C1", 1.8)
            out = [one for one in values if not low - reach <= one <= high + reach]
            if out and showfliers:
                xs, ys = zip(*[turn(place, one) for one in out])
                self._mark("points", x=_column(list(xs)), y=_column(list(ys)), sizes=[14.0], colors=[color],
                           values=None, marker="o", alpha=0.7, label="")
        names = tick_labels or labels or [str(at + 1) for at in range(len(groups))]
        self._said["xticks" if vert else "yticks"] = {"at": places, "labels": [str(one) for one in names]}
        self._said["xlim" if vert else "ylim"] = [places[0] - 0.5, places[-1] + 0.5]

    def stem(self, x, y=None, **options):
        y, x = (_numbers(x), None) if y is None else (_numbers(y), _numbers(x))
        x = [float(at) for at in range(len(y))] if x is None else x
        color = self._next()
        self._mark("segments", x=_column([one for at in x for one in (at, at)]),
                   y=_column([one for at in y for one in (0.0, at)]), color=color, width=1.2, alpha=1.0, label="")
        return self.plot(x, y, "o", color=color)

    def _rule(self, name, at, vertical, color, linewidth, lw, linestyle, ls, alpha, label, options):
        _refuse(name, options, _IGNORED + ("xmin", "xmax", "ymin", "ymax"))
        return _Handle(self._mark("rule", at=float(at), vertical=vertical, color=_color(color) or self._next(),
                                  width=float(linewidth or lw or 1.4), dash=_DASHES[linestyle or ls or "-"],
                                  alpha=float(alpha or 1.0), label=str(label or "")))

    def axhline(self, y=0, color=None, linewidth=None, lw=None, linestyle=None, ls=None, alpha=1.0, label="", c=None,
                **options):
        return self._rule("axhline", y, False, color or c, linewidth, lw, linestyle, ls, alpha, label, options)

    def axvline(self, x=0, color=None, linewidth=None, lw=None, linestyle=None, ls=None, alpha=1.0, label="", c=None,
                **options):
        return self._rule("axvline", x, True, color or c, linewidth, lw, linestyle, ls, alpha, label, options)

    def hlines(self, y, xmin, xmax, colors=None, **options):
        y = _numbers(y)
        low, high = _spread(xmin, len(y)), _spread(xmax, len(y))
        self._mark("segments", x=[one for pair in zip(low, high) for one in pair], y=[one for at in y for one in (at, at)],
                   color=_color(colors) or self._next(), width=1.4, alpha=1.0, label=str(options.get("label", "")))

    def vlines(self, x, ymin, ymax, colors=None, **options):
        x = _numbers(x)
        low, high = _spread(ymin, len(x)), _spread(ymax, len(x))
        self._mark("segments", x=[one for at in x for one in (at, at)], y=[one for pair in zip(low, high) for one in pair],
                   color=_color(colors) or self._next(), width=1.4, alpha=1.0, label=str(options.get("label", "")))

    def axhspan(self, ymin, ymax, color=None, alpha=0.2, **options):
        low, high = self.get_xlim()
        self._said["xlim"] = [low, high]
        self._bars("axhspan", [low], [float(ymin)], [high - low], [float(ymax) - ymin], color, None, alpha,
                   options.pop("label", ""), options)

    def axvspan(self, xmin, xmax, color=None, alpha=0.2, **options):
        low, high = self.get_ylim()
        self._said["ylim"] = [low, high]
        self._bars("axvspan", [float(xmin)], [low], [float(xmax) - xmin], [high - low], color, None, alpha,
                   options.pop("label", ""), options)

    def text(self, x, y, s, color="k", fontsize=None, size=None, ha=None, horizontalalignment=None, va=None,
             verticalalignment=None, **options):
        _refuse("text", options, _IGNORED + ("fontweight", "weight", "rotation", "bbox", "transform", "alpha", "style",
                                             "family", "fontstyle"))
        self._mark("text", x=float(x), y=float(y), text=str(s), color=_color(color), size=_points(fontsize or size, 11.0),
                   h=ha or horizontalalignment or "left", v=va or verticalalignment or "bottom", arrow=None)

    def annotate(self, text, xy, xytext=None, arrowprops=None, color="k", fontsize=None, ha="left", va="bottom",
                 textcoords="data", **options):
        _refuse("annotate", options, _IGNORED + ("bbox", "xycoords", "size", "fontweight"))
        if textcoords != "data":
            raise ValueError(f"annotate: textcoords={textcoords!r} {_ELSEWHERE}")
        at = xy if xytext is None else xytext
        self._mark("text", x=float(at[0]), y=float(at[1]), text=str(text), color=_color(color), h=ha, v=va,
                   size=_points(fontsize, 11.0),
                   arrow=[float(one) for one in xy] if arrowprops is not None and xytext is not None else None)

    # What stands around them.

    def set_title(self, label, *_, **options):
        self._said["title"] = str(label)

    def set_xlabel(self, label, **options):
        self._said["xlabel"] = str(label)

    def set_ylabel(self, label, **options):
        self._said["ylabel"] = str(label)

    def get_title(self):
        return self._said.get("title", "")

    def _limit(self, axis, low, high):
        if isinstance(low, (list, tuple)) or hasattr(low, "tolist"):
            low, high = _plain(low)
        old = self._limits(axis)
        self._said[f"{axis}lim"] = [float(old[0] if low is None else low), float(old[1] if high is None else high)]
        return tuple(self._said[f"{axis}lim"])

    def _limits(self, axis):
        if f"{axis}lim" in self._said:
            return tuple(self._said[f"{axis}lim"])
        values = []
        for mark in self._said["marks"]:
            size = {"x": "width", "y": "height"}[axis]
            for name in (axis, *(("low", "high") if axis == "y" else ())):
                if isinstance(mark.get(name), (list, str)):
                    found = _unpacked(mark[name])
                    values += found
                    if isinstance(mark.get(size), (list, str)):
                        values += [a + b for a, b in zip(found, _unpacked(mark[size]))]
        values = [one for one in values if one == one]
        if not values:
            return 0.0, 1.0
        low, high = _b.min(values), _b.max(values)
        more = (high - low) * 0.05 or 0.05
        return low - more, high + more

    def set_xlim(self, left=None, right=None, **options):
        return self._limit("x", options.get("xmin", left), options.get("xmax", right))

    def set_ylim(self, bottom=None, top=None, **options):
        return self._limit("y", options.get("ymin", bottom), options.get("ymax", top))

    def get_xlim(self):
        return self._limits("x")

    def get_ylim(self):
        return self._limits("y")

    def _scale(self, axis, scale):
        if scale not in ("linear", "log"):
            raise ValueError(f"the scale {scale!r} {_ELSEWHERE}")
        self._said[f"{axis}log"] = scale == "log"

    def set_xscale(self, scale, **options):
        self._scale("x", scale)

    def set_yscale(self, scale, **options):
        self._scale("y", scale)

    def _ticks(self, axis, ticks, labels):
        ticks = _numbers(ticks)
        self._said[f"{axis}ticks"] = {"at": ticks, "labels": [] if labels is None else [str(one) for one in labels]}

    def set_xticks(self, ticks, labels=None, **options):
        self._ticks("x", ticks, labels)

    def set_yticks(self, ticks, labels=None, **options):
        self._ticks("y", ticks, labels)

    def set_xticklabels(self, labels, **options):
        self._said["xticks"]["labels"] = [str(one) for one in labels]

    def set_yticklabels(self, labels, **options):
        self._said["yticks"]["labels"] = [str(one) for one in labels]

    def tick_params(self, *args, **options):
        """Accepted; ticks look as the note's other figures."""

    def grid(self, visible=True, *args, **options):
        self._said["grid"] = True if visible is None else _b.bool(visible)

    def legend(self, *args, loc="best", **options):
        _refuse("legend", options, _IGNORED + ("fontsize", "frameon", "ncol", "ncols", "title", "bbox_to_anchor",
                                               "shadow", "handles", "labels", "framealpha"))
        names = options.get("labels") or (args[-1] if args else None)
        handles = options.get("handles") or (args[0] if len(args) > 1 else None)
        if names is not None:
            marks = [one._mark for one in handles] if handles is not None else [
                mark for mark in self._said["marks"] if "label" in mark]
            for mark, name in zip(marks, names):
                mark["label"] = str(name)
        where = {1: "upper right", 2: "upper left", 3: "lower left", 4: "lower right", 0: "best"}
        self._said["legend"] = where.get(loc, loc if isinstance(loc, str) else "best")

    def axis(self, what=None):
        if what in ("off", False):
            self._said["off"] = True
        elif what in ("equal", "scaled", "square", "image"):
            self._said["equal"] = True
        elif what in ("on", True, "auto", "tight", None):
            pass
        elif isinstance(what, (list, tuple)):
            self._said["xlim"], self._said["ylim"] = [float(one) for one in what[:2]], [float(one) for one in what[2:]]
        else:
            raise ValueError(f"axis({what!r}) {_ELSEWHERE}")
        return (*self.get_xlim(), *self.get_ylim())

    def set_axis_off(self):
        self._said["off"] = True

    def set_aspect(self, aspect, **options):
        self._said["equal"] = aspect in ("equal", 1, 1.0)

    def invert_xaxis(self):
        self._said["xlim"] = list(self.get_xlim())[::-1]

    def invert_yaxis(self):
        self._said["ylim"] = list(self.get_ylim())[::-1]

    def margins(self, *args, **options):
        """Accepted; the room around the marks is the figure's own."""

    def set(self, **options):
        for name, value in options.items():
            getattr(self, f"set_{name}")(value)

    def get_figure(self):
        return self.figure

    def __getattr__(self, name):
        raise AttributeError(f"Axes.{name} {_ELSEWHERE}")


def _points(size, default):
    named = {"xx-small": 7.0, "x-small": 8.0, "small": 9.0, "medium": 11.0, "large": 13.0, "x-large": 15.0}
    return float(named.get(size, size) if isinstance(size, str) else size or default)


def _spread(value, count):
    found = _numbers(value)
    return found * count if len(found) == 1 else found


def _unpacked(column):
    if isinstance(column, str):
        import base64
        from array import array

        made = array("d")
        made.frombytes(base64.b64decode(column))
        return list(made)
    return [_math.nan if one is None else one for one in column]


def _shades(values, cmap, low, high):
    name = cmap if isinstance(cmap, str) else getattr(cmap, "name", "viridis")
    known = ("viridis", "plasma", "inferno", "magma", "hot", "gray", "grey", "Blues", "coolwarm", "RdBu", "bwr")
    if name.removesuffix("_r") not in known:
        raise ValueError(f"the colormap {name!r} {_ELSEWHERE}; there are {', '.join(known)}")
    seen = [one for one in values if _math.isfinite(one)] or [0.0]
    return {"values": _column(values), "low": float(_b.min(seen) if low is None else low),
            "high": float(_b.max(seen) if high is None else high), "map": name}


class Figure:
    """A figure: axes on a grid."""

    def __init__(self, figsize=None, number=1):
        self.number = number
        self._size = tuple(figsize or rcParams["figure.figsize"])
        self._title = ""
        self.axes = []
        self._last = None
        self._shown = False

    def add_subplot(self, *place, **options):
        if len(place) == 1 and isinstance(place[0], int) and place[0] > 99:
            place = place[0] // 100, place[0] // 10 % 10, place[0] % 10
        rows, columns, at = place or (1, 1, 1)
        first, last = (at, at) if isinstance(at, int) else at
        across, down = (first - 1) % columns, (first - 1) // columns
        wide, high = (last - 1) % columns - across + 1, (last - 1) // columns - down + 1
        axes = Axes(self, [across / columns, down / rows, wide / columns, high / rows])
        self.axes.append(axes)
        return axes

    def subplots(self, nrows=1, ncols=1, sharex=False, sharey=False, squeeze=True, **options):
        made = [[self.add_subplot(nrows, ncols, row * ncols + column + 1) for column in range(ncols)]
                for row in range(nrows)]
        if squeeze and nrows == ncols == 1:
            return made[0][0]
        if squeeze and 1 in (nrows, ncols):
            return _Grid([one for row in made for one in row])
        return _Grid([_Grid(row) for row in made])

    def suptitle(self, text, **options):
        self._title = str(text)

    def colorbar(self, mappable=None, ax=None, label="", **options):
        axes = ax if ax is not None else (self._last or (self.gca(), None))[0]
        axes._said["colorbar"] = str(label)
        return _Colorbar(axes)

    def gca(self):
        return self.axes[-1] if self.axes else self.add_subplot()

    def set_size_inches(self, *size):
        self._size = tuple(size[0] if len(size) == 1 else size)

    def get_size_inches(self):
        return self._size

    def tight_layout(self, *args, **options):
        """Accepted: figures are always laid out so that nothing overlaps."""

    subplots_adjust = autofmt_xdate = tight_layout

    def clf(self):
        self.axes, self._title = [], ""

    clear = clf

    def _json(self):
        import json

        # An inch is a hundred points here, as on the usual screen.
        return json.dumps({"width": self._size[0] * 100.0, "height": self._size[1] * 100.0, "title": self._title,
                           "axes": [axes._said for axes in self.axes]})

    def savefig(self, fname, dpi=None, format=None, **options):
        _refuse("savefig", options, ("bbox_inches", "transparent", "facecolor", "pad_inches", "edgecolor", "metadata"))
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

    def show(self):
        self._shown = True
        kernel_display(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        self._shown = True
        return {_MIME: _kernel.lighter(self._json()), "text/plain": repr(self)}

    def __repr__(self):
        size = "{:g}x{:g}".format(self._size[0] * 100, self._size[1] * 100)
        return f"<Figure size {size} with {len(self.axes)} Axes>"

    def __getattr__(self, name):
        raise AttributeError(f"Figure.{name} {_ELSEWHERE}")


class _Colorbar:
    def __init__(self, axes):
        self._axes = axes

    def set_label(self, label, **options):
        self._axes._said["colorbar"] = str(label)


class _Grid(list):
    """Axes in rows, to be taken apart, gone through, or asked for by `[row, column]`."""

    def __getitem__(self, key):
        if isinstance(key, tuple):
            for one in key[:-1]:
                self = list.__getitem__(self, one)
            return self[key[-1]]
        return list.__getitem__(self, key)

    @property
    def flat(self):
        return iter(self.ravel())

    def ravel(self):
        return _Grid([one for row in self for one in (row if isinstance(row, _Grid) else [row])])

    flatten = ravel

    @property
    def shape(self):
        return (len(self), len(self[0])) if self and isinstance(self[0], _Grid) else (len(self),)


def kernel_display(value):
    _b.display(value)


# The current figure.

rcParams = {"figure.figsize": (6.4, 4.0), "figure.dpi": 100, "font.size": 11, "lines.linewidth": 1.6, "axes.grid": False}
_figures = {}
_current = [0]


def figure(num=None, figsize=None, **options):
    _refuse("figure", options, ("dpi", "facecolor", "tight_layout", "constrained_layout", "layout", "clear", "edgecolor"))
    if num is None:
        num = _b.max(_figures, default=0) + 1
    if num not in _figures:
        _figures[num] = Figure(figsize, num)
    _current[0] = num
    return _figures[num]


def gcf():
    return _figures[_current[0]] if _current[0] in _figures else figure()


def gca():
    return gcf().gca()


def sca(axes):
    axes.figure.axes.remove(axes)
    axes.figure.axes.append(axes)


def axes(*args, **options):
    return gcf().add_subplot()


def subplot(*place, **options):
    made = gcf().add_subplot(*place)
    for known in gcf().axes[:-1]:
        if known._place == made._place:
            gcf().axes.pop()
            sca(known)
            return known
    return made


def subplots(nrows=1, ncols=1, figsize=None, sharex=False, sharey=False, squeeze=True, **options):
    made = figure(figsize=figsize, **{name: options[name] for name in options if name not in (
        "gridspec_kw", "subplot_kw")})
    return made, made.subplots(nrows, ncols, squeeze=squeeze)


def show(*args, **options):
    for number in sorted(_figures):
        kernel_display(_figures[number])
    close("all")


def close(which=None):
    if which == "all":
        _figures.clear()
    else:
        _figures.pop(getattr(which, "number", which or _current[0]), None)


def savefig(*args, **options):
    gcf().savefig(*args, **options)


def suptitle(text, **options):
    gcf().suptitle(text)


def colorbar(mappable=None, ax=None, label="", **options):
    return gcf().colorbar(mappable, ax, label)


def tight_layout(*args, **options):
    gcf()


subplots_adjust = tight_layout


def clf():
    gcf().clf()


def cla():
    gca().cla()


def ion():
    """Accepted: figures are shown below their cell."""


ioff = ion


def get_cmap(name="viridis"):
    return name


def xticks(ticks=None, labels=None, **options):
    if ticks is not None:
        gca().set_xticks(ticks, labels)


def yticks(ticks=None, labels=None, **options):
    if ticks is not None:
        gca().set_yticks(ticks, labels)


def xlim(*limits, **options):
    return gca().set_xlim(*limits, **options) if limits or options else gca().get_xlim()


def ylim(*limits, **options):
    return gca().set_ylim(*limits, **options) if limits or options else gca().get_ylim()


def _forward(name, method):
    def call(*args, **options):
        return getattr(gca(), method)(*args, **options)

    call.__name__ = call.__qualname__ = name
    return call


for _name in ("plot", "scatter", "bar", "barh", "bar_label", "hist", "fill_between", "stackplot", "errorbar", "pie",
              "imshow", "matshow", "pcolormesh", "contour", "contourf", "clabel", "step", "stem", "boxplot", "axhline",
              "axvline", "axhspan", "axvspan", "hlines", "vlines", "text", "annotate", "grid", "legend", "axis",
              "semilogx", "semilogy", "loglog", "margins", "tick_params"):
    globals()[_name] = _forward(_name, _name)
for _name in ("title", "xlabel", "ylabel", "xscale", "yscale"):
    globals()[_name] = _forward(_name, f"set_{_name}")


class _Style:
    """Accepted: figures look as the note around them."""

    available = ["default"]

    def use(self, *_):
        """Accepted, and changes nothing."""

    def context(self, *_):
        from contextlib import nullcontext

        return nullcontext()


style = _Style()


def _after_cell(value):
    """Shows what a cell drew and did not show. Says whether the cell's value is only a handle of what was drawn."""
    if _b.any(one.axes and not one._shown for one in _figures.values()):
        for number in sorted(_figures):
            if _figures[number].axes and not _figures[number]._shown:
                kernel_display(_figures[number])
    _figures.clear()
    if isinstance(value, Figure):
        if not value._shown:
            kernel_display(value)
        return True
    parts = value if isinstance(value, (list, tuple)) and value else [value]
    return _b.any(isinstance(one, (_Handle, _Bars, Axes, Figure, _Colorbar, _Grid)) for one in parts)
