"""Marks of a pair of axes: the recording side of `Axes.plot` and similar methods. Part of `pyplot.py`."""

import builtins as _b
import math as _math

import _tracebook_axes_base as _around
from _tracebook_drawing import (
    ELSEWHERE, Bar, Bars, Handle, alpha_of, color, colors, column, dash_of, form, is_color, is_nested, listed, marker_of,
    next_color, nice_levels, numbers, plain, points, refuse, rows_of, shades, span, spread)


def __getattr__(name):
    raise AttributeError(f"matplotlib.{name} {ELSEWHERE}")


def _pick(*values, default=None):
    """Returns the first value that was given. matplotlib has two names for many options."""
    return next((one for one in values if one is not None), default)


class Axes(_around.Around):
    """One pair of axes."""

    name = "rectilinear"

    def _mark(self, kind, zorder=None, group=None, **said):
        mark = {"kind": kind, **said}
        if zorder is not None:
            mark["order"] = float(zorder)
        if group is not None:
            mark["group"] = group
        self._said["marks"].append(mark)
        return mark

    def _group(self):
        self._groups += 1
        return self._groups

    def _next(self):
        base = self._base or self
        base._colors += 1
        return next_color(base._colors - 1)

    def _shaded(self, handle):
        self.figure._last = (self, handle)
        return handle

    # Lines.

    def plot(self, *args, color=None, c=None, linewidth=None, lw=None, linestyle=None, ls=None, marker=None,
             markersize=None, ms=None, markerfacecolor=None, mfc=None, markeredgecolor=None, mec=None, markevery=None,
             alpha=None, label="", zorder=None, drawstyle=None, data=None, **options):
        refuse("plot", options, ("markeredgewidth", "mew", "scalex", "scaley"))
        groups, args = [], [data[one] if data is not None and isinstance(one, str) and one in data else one
                            for one in args]
        while args:
            taken = [args.pop(0)]
            if args and not isinstance(args[0], str):
                taken.append(args.pop(0))
            groups.append((taken, args.pop(0) if args and isinstance(args[0], str) else ""))
        made = []
        for taken, words in groups:
            f_color, f_marker, f_dash = form(words)
            y = taken[-1]
            many = [list(one) for one in zip(*(plain(row) for row in plain(y)))] if is_nested(y) else [y]
            across = [list(one) for one in zip(*(plain(row) for row in plain(taken[0])))] if len(taken) > 1 and is_nested(
                taken[0]) else None
            for at, one in enumerate(many):
                y = self._along("y", one)
                x = self._along("x", across[at] if across else taken[0]) if len(taken) > 1 else numbers(range(len(y)))
                if len(x) != len(y):
                    raise ValueError(f"x and y must have same first dimension, but have shapes ({len(x)},) and "
                                     f"({len(y)},)")
                own = _pick(color, c, f_color)
                dash = _pick(linestyle, ls, f_dash)
                if dash is None:
                    dash = "none" if f_marker else "-"
                if drawstyle and drawstyle.startswith("steps"):
                    x, y = _stairs(x, y, drawstyle.partition("-")[2] or "pre")
                every = markevery if isinstance(markevery, int) else 0
                name = label[at] if isinstance(label, (list, tuple)) and len(label) == len(many) else label
                mark = self._mark(
                    "line", zorder, x=column(x), y=column(y), color=_color(own) or self._next(),
                    width=float(_pick(linewidth, lw, default=_around.rcParams["lines.linewidth"])), dash=dash_of(dash),
                    marker=marker_of(_pick(marker, f_marker)), size=float(_pick(markersize, ms, default=6.0)),
                    face=_color(_pick(markerfacecolor, mfc)) or "", edge=_color(_pick(markeredgecolor, mec)) or "",
                    every=every, alpha=alpha_of(alpha), label="" if name is None else str(name))
                made.append(Handle(mark, self))
        return made

    def step(self, x, y, *args, where="pre", **options):
        if where not in ("pre", "post", "mid"):
            raise ValueError(f"{where!r} is not a valid value for where; supported values are 'pre', 'post', 'mid'")
        x, y = _stairs(self._along("x", x), numbers(y), where)
        return self.plot(x, y, *args, **options)

    def stairs(self, values, edges=None, fill=False, baseline=0, orientation="vertical", color=None, label="",
               alpha=None, linewidth=None, lw=None, **options):
        refuse("stairs", options, ("zorder", "linestyle", "ls"))
        linewidth = _pick(linewidth, lw)
        values = list(numbers(values))
        edges = list(numbers(edges)) if edges is not None else [float(at) for at in range(len(values) + 1)]
        x = [one for one in edges for _ in (0, 1)]
        y = [float(baseline)] + [one for one in values for _ in (0, 1)] + [float(baseline)]
        if fill:
            return self.fill(x, y, color=color, label=label, alpha=alpha)[0]
        x, y = (y, x) if orientation == "horizontal" else (x, y)
        return self.plot(x, y, color=color, label=label, alpha=alpha, linewidth=linewidth)[0]

    def semilogx(self, *args, base=10, **options):
        self.set_xscale("log", base=base)
        return self.plot(*args, **options)

    def semilogy(self, *args, base=10, **options):
        self.set_yscale("log", base=base)
        return self.plot(*args, **options)

    def loglog(self, *args, **options):
        self.set_xscale("log")
        self.set_yscale("log")
        return self.plot(*args, **options)

    def plot_date(self, x, y, fmt="o", **options):
        return self.plot(x, y, fmt, **options)

    # Points.

    def scatter(self, x, y, s=None, c=None, marker="o", cmap=None, norm=None, vmin=None, vmax=None, alpha=None,
                label="", color=None, edgecolors=None, edgecolor=None, facecolors=None, facecolor=None, linewidths=None,
                linewidth=None, lw=None, zorder=None, data=None, **options):
        refuse("scatter", options, ("plotnonfinite",))
        if data is not None:
            x, y = (data[one] if isinstance(one, str) else one for one in (x, y))
            c = data[c] if isinstance(c, str) and c in data else c
            s = data[s] if isinstance(s, str) else s
        x, y = self._along("x", x), self._along("y", y)
        if len(x) != len(y):
            raise ValueError("x and y must be the same size")
        own, values = None, None
        c = _pick(c, color, facecolors, facecolor)
        if c is not None and isinstance(c, str) and c == "none":
            own = ["none"]
        elif c is None:
            own = [self._next()]
        elif is_color(c) and not (not isinstance(c, str) and len(c) == len(x)):
            own = [_color(c)]
        else:
            first = plain(c)[0] if len(c) else 0
            if isinstance(first, (int, float)) and not isinstance(first, bool):
                values = shades(numbers(c), cmap, vmin, vmax, norm)
                if len(values["values"]) != len(x):
                    raise ValueError(f"'c' argument has {len(values['values'])} elements, which is inconsistent with "
                                     f"'x' and 'y' with size {len(x)}.")
            else:
                own = [_color(one) for one in plain(c)]
        edge = _pick(edgecolors, edgecolor)
        edge = "" if edge is None or isinstance(edge, str) and edge == "face" else _color(edge if is_color(edge) else
                                                                                          plain(edge)[0])
        if own == ["none"] and not edge:
            edge = self._next()
        return self._shaded(Handle(self._mark(
            "points", zorder, x=column(x), y=column(y), sizes=column(numbers(36.0 if s is None else s)),
            colors=own or [], values=values, marker=marker_of(marker) or "o", edge=edge, alpha=alpha_of(alpha),
            label=str(label or "")), self))

    def hexbin(self, x, y, C=None, gridsize=100, cmap=None, vmin=None, vmax=None, mincnt=None, bins=None, norm=None,
               alpha=None, **options):
        refuse("hexbin", options, ("linewidths", "edgecolors", "edgecolor", "extent"))
        if C is not None:
            raise TypeError(f"hexbin: the option 'C' {ELSEWHERE}")
        xs, ys = list(numbers(x)), list(numbers(y))
        wide = int(gridsize[0] if isinstance(gridsize, (list, tuple)) else gridsize)
        high = int(gridsize[1] if isinstance(gridsize, (list, tuple)) else wide / 3 ** 0.5)
        (left, right), (low, top) = (_b.min(xs), _b.max(xs)), (_b.min(ys), _b.max(ys))
        dx, dy = (right - left) / wide or 1.0, (top - low) / _b.max(high, 1) or 1.0
        counts = {}
        for a, b in zip(xs, ys):
            u, v = (a - left) / dx, (b - low) / dy
            i, j = _math.floor(u + 0.5), _math.floor(v + 0.5)
            k, m = _math.floor(u), _math.floor(v)
            near = (u - i) ** 2 + 3 * (v - j) ** 2 < (u - k - 0.5) ** 2 + 3 * (v - m - 0.5) ** 2
            cell = (float(i), float(j)) if near else (k + 0.5, m + 0.5)
            counts[cell] = counts.get(cell, 0) + 1
        fewest = 0 if mincnt is None else mincnt
        if not fewest:
            for i in range(wide + 1):
                for j in range(high + 1):
                    counts.setdefault((float(i), float(j)), 0)
                    if i < wide and j < high:
                        counts.setdefault((i + 0.5, j + 0.5), 0)
        cells = [(cell, count) for cell, count in counts.items() if count >= fewest]
        px, py = [], []
        corners = ((0.5, -1 / 6), (0.5, 1 / 6), (0, 1 / 3), (-0.5, 1 / 6), (-0.5, -1 / 6), (0, -1 / 3))
        for (i, j), _ in cells:
            px += [left + (i + a) * dx for a, _ in corners] + [_math.nan]
            py += [low + (j + b) * dy for _, b in corners] + [_math.nan]
        values = [float(count) for _, count in cells]
        if bins == "log":
            values = [_math.log10(one + 1) for one in values]
        return self._shaded(Handle(self._mark(
            "polygons", x=column(px), y=column(py), colors=[], values=shades(values, cmap, vmin, vmax, norm), edge="",
            alpha=alpha_of(alpha), label=""), self))

    # Bars.

    def _bars(self, name, x, y, width, height, own, edgecolor, alpha, label, options, hatch=None, zorder=None):
        refuse(name, options, ("linewidth", "lw", "ecolor", "capsize", "error_kw", "linestyle", "ls", "fill", "data"))
        if options.get("fill") is False:
            edgecolor, own = edgecolor or own or "k", "none"
        own = colors(own, len(x)) or [self._next()]
        names = label if isinstance(label, (list, tuple)) else None
        mark = self._mark("bars", zorder, x=column(x), y=column(y), width=column(width), height=column(height),
                          colors=own, edge=_color(edgecolor if edgecolor is None or is_color(edgecolor) else
                                                  plain(edgecolor)[0]) or "",
                          hatch=hatch or "", alpha=alpha_of(alpha), label="" if names else str(label or ""))
        if names:
            for at, word in enumerate(names):
                self._mark("bars", x=[], y=[], width=[], height=[], colors=[own[at % len(own)]], edge=mark["edge"],
                           alpha=mark["alpha"], label=str(word))
        made = Bars(Bar(mark, self, at) for at in range(len(x)))
        made._mark = mark
        return made

    def bar(self, x, height, width=0.8, bottom=None, align="center", color=None, edgecolor=None, alpha=None, label="",
            yerr=None, xerr=None, tick_label=None, hatch=None, log=False, zorder=None, facecolor=None, ec=None,
            **options):
        x, high = list(self._along("x", x)), list(numbers(height))
        x, high = (x * len(high) if len(x) == 1 else x), (high * len(x) if len(high) == 1 else high)
        if len(x) != len(high):
            raise ValueError(f"shape mismatch: objects cannot be broadcast to a single shape: {len(x)} and {len(high)}")
        wide, low = spread(_seconds(width), len(x)), spread(0.0 if bottom is None else bottom, len(x))
        left = [at - one / 2 for at, one in zip(x, wide)] if align == "center" else x
        if tick_label is not None:
            self.set_xticks(x, [tick_label] * len(x) if isinstance(tick_label, str) else tick_label)
        if log:
            self.set_yscale("log")
        made = self._bars("bar", left, low, wide, high, _pick(color, facecolor), _pick(edgecolor, ec), alpha, label,
                          options, hatch, zorder)
        if yerr is not None or xerr is not None:
            tops = [a + b for a, b in zip(low, high)]
            known = {"ecolor": options.get("ecolor", "k"), "capsize": options.get("capsize", 0),
                     **options.get("error_kw", {})}
            made.errorbar = self.errorbar([at + one / 2 for at, one in zip(left, wide)], tops, yerr, xerr, fmt="none",
                                          _group=made._mark, **known)
        return made

    def barh(self, y, width, height=0.8, left=None, align="center", color=None, edgecolor=None, alpha=None, label="",
             xerr=None, tick_label=None, hatch=None, log=False, zorder=None, ec=None, **options):
        y, wide = list(self._along("y", y)), list(numbers(width))
        wide = wide * len(y) if len(wide) == 1 else wide
        high, start = spread(height, len(y)), spread(0.0 if left is None else left, len(y))
        low = [at - one / 2 for at, one in zip(y, high)] if align == "center" else y
        if tick_label is not None:
            self.set_yticks(y, tick_label)
        if log:
            self.set_xscale("log")
        made = self._bars("barh", start, low, wide, high, color, _pick(edgecolor, ec), alpha, label, options, hatch,
                          zorder)
        made._lying = True
        if xerr is not None:
            ends = [a + b for a, b in zip(start, wide)]
            self.errorbar(ends, [at + one / 2 for at, one in zip(low, high)], None, xerr, fmt="none",
                          ecolor=options.get("ecolor", "k"), capsize=options.get("capsize", 0), _group=made._mark)
        return made

    def bar_label(self, bars, labels=None, fmt="%g", label_type="edge", padding=0, **options):
        mark = bars._mark
        x, y, wide, high = (listed(mark[name]) for name in ("x", "y", "width", "height"))
        lying = getattr(bars, "_lying", False)
        made = []
        for at in range(len(x)):
            value = wide[at] if lying else high[at]
            say = labels[at] if labels is not None else fmt(value) if callable(fmt) else (
                fmt.format(value) if "{" in fmt else fmt % value)
            if label_type == "center":
                made.append(self.text(x[at] + wide[at] / 2, y[at] + high[at] / 2, say, ha="center", va="center",
                                      fontsize=options.get("fontsize", 9), color=options.get("color", "k")))
                continue
            away = (3.0 + padding) * (1 if value >= 0 else -1)
            place = ((x[at] + wide[at], y[at] + high[at] / 2) if lying else (x[at] + wide[at] / 2, y[at] + high[at]))
            h = "center" if not lying else "left" if value >= 0 else "right"
            v = "center" if lying else "bottom" if value >= 0 else "top"
            one = self.text(*place, say, ha=h, va=v, fontsize=options.get("fontsize", 9),
                            color=options.get("color", "k"))
            one._mark["shift"] = [away if lying else 0.0, 0.0 if lying else away - 3.0]
            made.append(one)
        return made

    def broken_barh(self, xranges, yrange, facecolors=None, color=None, edgecolor=None, alpha=None, label="", **options):
        refuse("broken_barh", options, ("edgecolors", "linewidth"))
        starts, sizes = zip(*[tuple(plain(one)) for one in xranges])
        low, high = plain(yrange)
        count = len(starts)
        return self._bars("broken_barh", list(map(float, starts)), [float(low)] * count, list(map(float, sizes)),
                          [float(high)] * count, _pick(facecolors, color), edgecolor, alpha, label, {})

    def hist(self, x, bins=None, range=None, density=False, weights=None, cumulative=False, bottom=None, histtype="bar",
             align="mid", orientation="vertical", rwidth=None, log=False, color=None, label=None, stacked=False,
             edgecolor=None, ec=None, alpha=None, facecolor=None, zorder=None, hatch=None, data=None, **options):
        if histtype not in ("bar", "barstacked", "step", "stepfilled"):
            raise ValueError(f"hist: histtype={histtype!r} {ELSEWHERE}")
        refuse("hist", options, ("linewidth", "lw", "linestyle", "ls", "fill", "ecolor"))
        import numpy as np

        bins = 10 if bins is None else bins
        if data is not None and isinstance(x, str):
            x = data[x]
        many = is_nested(x) or (isinstance(x, (list, tuple)) and len(x) and hasattr(x[0], "tolist")
                                and getattr(x[0], "ndim", 0) > 0)
        sets = [numbers(one) for one in (zip(*plain(x)) if getattr(x, "ndim", 1) == 2 else x)] if many else [numbers(x)]
        names = label if isinstance(label, (list, tuple)) else [label] * len(sets)
        owns = [color] if color is not None and is_color(color) else list(color) if color is not None else []
        ends = [end for one in sets for end in span(column(one))] or [0.0, 1.0]
        whole = range or (_b.min(ends), _b.max(ends))
        counts, edges = [], None
        for at, one in enumerate(sets):
            heavy = weights[at] if many and weights is not None else weights
            source = np.array(list(one)) if not hasattr(one, "_source") else np.array(one._source).ravel()
            tall, edges = np.histogram(source, bins if edges is None else edges, whole, density, heavy)
            if cumulative:
                tall = np.cumsum(tall * (np.diff(edges) if density else 1))
                if cumulative == -1 or (not isinstance(cumulative, bool) and cumulative < 0):
                    tall = tall[-1] - tall
            counts.append(tall)
        cut = [float(one) for one in edges]
        wide = [b - a for a, b in zip(cut, cut[1:])]
        if log:
            (self.set_xscale if orientation == "horizontal" else self.set_yscale)("log")
        base = [0.0] * len(wide) if bottom is None else spread(bottom, len(wide))
        made = []
        side = len(sets) > 1 and not stacked and histtype == "bar"
        share = (rwidth or (0.8 if side else 1.0)) / (len(sets) if side else 1)
        for at, tall in enumerate(counts):
            tall = [float(one) for one in tall]
            own = owns[at % len(owns)] if owns else facecolor
            name = "" if names[at] is None else names[at]
            if histtype in ("step", "stepfilled"):
                xs = [one for one in cut for _ in (0, 1)]
                top = [a + b for a, b in zip(base, tall)]
                ys = [base[0]] + [one for one in top for _ in (0, 1)] + [base[-1]]
                xs, ys = (ys, xs) if orientation == "horizontal" else (xs, ys)
                if histtype == "step":
                    made.append(self.plot(xs, ys, color=_pick(own, edgecolor, ec), alpha=alpha, label=name,
                                          linewidth=_pick(options.get("linewidth"), options.get("lw")),
                                          linestyle=_pick(options.get("linestyle"), options.get("ls"))))
                else:
                    made.append(self.fill(xs, ys, color=own, alpha=alpha, label=name, edgecolor=_pick(edgecolor, ec)))
            else:
                shift = (1 - share * len(sets)) / 2 + share * at if side else (1 - share) / 2
                if align == "left":
                    shift -= 0.5
                left = [a + b * shift for a, b in zip(cut, wide)]
                slim = [one * share for one in wide]
                parts = (base, left, tall, slim) if orientation == "horizontal" else (left, base, slim, tall)
                made.append(self._bars("hist", *parts, own, _pick(edgecolor, ec), alpha, name, options, hatch, zorder))
            if stacked or histtype == "barstacked":
                base = [a + b for a, b in zip(base, tall)]
        return (counts, edges, made) if many else (counts[0], edges, made[0])

    def hist2d(self, x, y, bins=10, range=None, density=False, cmap=None, vmin=None, vmax=None, cmin=None, norm=None,
               **options):
        refuse("hist2d", options, ("alpha",))
        xs, ys = list(numbers(x)), list(numbers(y))
        across, up = (bins if isinstance(bins, (list, tuple)) else (bins, bins))
        (left, right), (low, top) = range or ((_b.min(xs), _b.max(xs)), (_b.min(ys), _b.max(ys)))
        across, up = int(across), int(up)
        wide, high = (right - left) / across or 1.0, (top - low) / up or 1.0
        rows = [[0.0] * across for _ in _b.range(up)]
        for a, b in zip(xs, ys):
            if left <= a <= right and low <= b <= top:
                rows[_b.min(int((b - low) / high), up - 1)][_b.min(int((a - left) / wide), across - 1)] += 1
        if density:
            rows = [[one / (len(xs) * wide * high) for one in row] for row in rows]
        shown = [[_math.nan if cmin is not None and one < cmin else one for one in row] for row in rows]
        image = self.imshow(shown, cmap, vmin=vmin, vmax=vmax, origin="lower", extent=(left, right, low, top),
                            aspect="auto", norm=norm)
        import numpy as np

        return (np.array([list(one) for one in zip(*rows)]), np.linspace(left, right, across + 1),
                np.linspace(low, top, up + 1), image)

    # Areas.

    def fill_between(self, x, y1, y2=0.0, where=None, color=None, facecolor=None, fc=None, alpha=None, label="",
                     zorder=None, edgecolor=None, step=None, **options):
        refuse("fill_between", options, ("linewidth", "lw", "linewidths", "edgecolors", "ec", "interpolate", "hatch",
                                         "linestyle", "ls"))
        x = self._along("x", x)
        low, high = numbers(y2), numbers(y1)
        low = list(low) * len(x) if len(low) == 1 else low
        high = list(high) * len(x) if len(high) == 1 else high
        if len(low) != len(x) or len(high) != len(x):
            raise ValueError("x, y1 and y2 must have the same size")
        if where is not None:
            keep = plain(where)
            low = [one if yes else _math.nan for one, yes in zip(low, keep)]
            high = [one if yes else _math.nan for one, yes in zip(high, keep)]
        if step:
            (same, low), (x, high) = _stairs(x, low, step), _stairs(x, high, step)
        return Handle(self._mark("area", zorder, x=column(x), low=column(low), high=column(high),
                                 color=_color(_pick(color, facecolor, fc)) or self._next(), alpha=alpha_of(alpha),
                                 label=str(label or "")), self)

    def fill_betweenx(self, y, x1, x2=0.0, where=None, color=None, facecolor=None, alpha=None, label="", **options):
        refuse("fill_betweenx", options, ("linewidth", "lw", "edgecolor", "zorder", "interpolate"))
        y = list(self._along("y", y))
        near, far = spread(x1, len(y)), spread(x2, len(y))
        keep = plain(where) if where is not None else [True] * len(y)
        xs, ys, run = [], [], []
        for at in range(len(y) + 1):
            if at < len(y) and keep[at]:
                run.append(at)
            elif run:
                xs += [near[one] for one in run] + [far[one] for one in reversed(run)] + [_math.nan]
                ys += [y[one] for one in run] + [y[one] for one in reversed(run)] + [_math.nan]
                run = []
        return self._polygons(xs, ys, _pick(color, facecolor), None, alpha, label)

    def _polygons(self, xs, ys, own, edge, alpha, label, zorder=None):
        own = [_color(own) or self._next()] if own is None or is_color(own) else [_color(one) for one in own]
        return Handle(self._mark("polygons", zorder, x=column(xs), y=column(ys), colors=own, values=None,
                                 edge=_color(edge) or "", alpha=alpha_of(alpha), label=str(label or "")), self)

    def fill(self, *args, color=None, facecolor=None, alpha=None, label="", edgecolor=None, ec=None, zorder=None,
             **options):
        refuse("fill", options, ("linewidth", "lw", "linestyle", "hatch"))
        made, args = [], list(args)
        while args:
            x = numbers(args.pop(0))
            y = numbers(args.pop(0))
            words = args.pop(0) if args and isinstance(args[0], str) else None
            own = _pick(color, facecolor, form(words)[0] if words else None)
            made.append(self._polygons(list(x), list(y), own, _pick(edgecolor, ec), alpha, label, zorder))
        return made

    def stackplot(self, x, *ys, labels=(), colors=None, alpha=None, baseline="zero", **options):
        refuse("stackplot", options, ("linewidth", "edgecolor", "lw"))
        rows = [numbers(one) for one in (plain(ys[0]) if len(ys) == 1 else ys)]
        count = len(rows[0])
        base = [0.0] * count
        if baseline == "sym":
            base = [-_b.sum(row[at] for row in rows) / 2 for at in range(count)]
        elif baseline != "zero":
            raise ValueError(f"stackplot: baseline={baseline!r} {ELSEWHERE}")
        made = []
        for at, row in enumerate(rows):
            top = [a + b for a, b in zip(base, row)]
            made.append(self.fill_between(x, top, base, alpha=alpha, label=labels[at] if at < len(labels) else "",
                                          color=colors[at % len(colors)] if colors else None))
            base = top
        self._side("y").setdefault("margin", 0.05)
        self._side("x").setdefault("margin", 0.0)
        return made

    # Errors, boxes, violins.

    def errorbar(self, x, y, yerr=None, xerr=None, fmt="", ecolor=None, elinewidth=None, capsize=0, color=None,
                 label="", alpha=None, capthick=None, barsabove=False, errorevery=1, zorder=None, _group=None,
                 **options):
        x, y = list(self._along("x", x)), list(self._along("y", y))
        own = _color(color) or _color(options.get("c")) or _color(form("" if fmt == "none" else fmt)[0]) or (
            None if fmt == "none" and ecolor is not None else self._next())
        line = _color(ecolor) or own
        group = self._group()
        if _group is not None:
            _group["group"] = group
        others = []
        for error, vertical in ((yerr, True), (xerr, False)):
            if error is None:
                continue
            both = is_nested(error) and len(error) == 2
            down, up = (spread(plain(error)[0], len(x)), spread(plain(error)[1], len(x))) if both else (
                spread(error, len(x)),) * 2
            xs, ys = [], []
            for at in range(0, len(x), errorevery):
                a, b = x[at], y[at]
                xs += [a, a] if vertical else [a - down[at], a + up[at]]
                ys += [b - down[at], b + up[at]] if vertical else [b, b]
            others.append(self._mark("segments", zorder, group, x=column(xs), y=column(ys), color=line,
                                     width=float(elinewidth or 1.4), alpha=alpha_of(alpha), label=""))
            if capsize:
                others.append(self._mark("line", zorder, group, x=column(xs), y=column(ys), color=line,
                                         width=float(capthick or 1.2), dash="none", marker="_" if vertical else "|",
                                         size=float(capsize) * 2, alpha=alpha_of(alpha), label=""))
        if fmt == "none":
            return Handle(others[0], self, others[1:]) if others else None
        main = self.plot(x, y, fmt, color=own, label=label, alpha=alpha, zorder=zorder, **options)[0]
        main._mark["group"] = group
        main._others = others
        return main

    def boxplot(self, x, notch=None, sym=None, vert=None, whis=1.5, positions=None, widths=None, patch_artist=False,
                tick_labels=None, labels=None, showmeans=False, meanline=False, showcaps=True, showfliers=True,
                showbox=True, orientation=None, boxprops=None, medianprops=None, whiskerprops=None, capprops=None,
                flierprops=None, meanprops=None, label=None, zorder=None, manage_ticks=True, data=None, **options):
        refuse("boxplot", options, ("autorange", "bootstrap"))
        if notch:
            raise TypeError(f"boxplot: the option 'notch' {ELSEWHERE}")
        import numpy as np

        groups = _groups(x)
        vert = orientation != "horizontal" and vert is not False
        places = list(numbers(positions)) if positions is not None else [float(at + 1) for at in range(len(groups))]
        widths = spread(widths if widths is not None else _b.min(0.5, _b.max(
            0.15, 0.15 * (_b.max(places) - _b.min(places)))), len(groups))
        turn = (lambda a, b: (a, b)) if vert else (lambda a, b: (b, a))
        found = {name: [] for name in ("boxes", "medians", "whiskers", "caps", "fliers", "means")}

        def lines(name, ends, props, width=1.2, own="k"):
            xs, ys = zip(*[turn(a, b) for a, b in ends])
            props = props or {}
            mark = self._mark("segments", zorder, x=list(xs), y=list(ys), color=_color(props.get("color", own)),
                              width=float(props.get("linewidth", props.get("lw", width))),
                              dash=dash_of(props.get("linestyle", props.get("ls", "-"))), alpha=1.0, label="")
            found[name].append(Handle(mark, self))

        for place, wide, values in zip(places, widths, groups):
            values = sorted(one for one in values if one == one)
            if not values:
                continue
            low, middle, high = (float(one) for one in np.percentile(values, [25, 50, 75]))
            if isinstance(whis, (list, tuple)):
                bottom, top = (float(one) for one in np.percentile(values, list(whis)))
            else:
                reach = whis * (high - low)
                inside = [one for one in values if low - reach <= one <= high + reach] or [low, high]
                bottom, top = _b.min(inside[0], low), _b.max(inside[-1], high)
            half, cap = wide / 2, wide / 4
            box = boxprops or {}
            if showbox:
                corner, size = turn(place - half, low), turn(2 * half, high - low)
                filled = patch_artist or "facecolor" in box
                fill = _color(box.get("facecolor", box.get("color", "C0"))) if filled else "none"
                mark = self._mark("bars", zorder if zorder is not None else 1.9, x=[corner[0]], y=[corner[1]],
                                  width=[size[0]], height=[size[1]], colors=[fill],
                                  edge=_color(box.get("edgecolor", "k" if patch_artist else box.get("color", "k"))),
                                  alpha=1.0, label=str(label or "") if place == places[0] else "")
                found["boxes"].append(Handle(mark, self))
            lines("whiskers", [(place, bottom), (place, low)], whiskerprops)
            lines("whiskers", [(place, high), (place, top)], whiskerprops)
            if showcaps:
                lines("caps", [(place - cap, bottom), (place + cap, bottom)], capprops)
                lines("caps", [(place - cap, top), (place + cap, top)], capprops)
            lines("medians", [(place - half, middle), (place + half, middle)], medianprops, 1.6, "C1")
            if showmeans:
                mean = _b.sum(values) / len(values)
                if meanline:
                    lines("means", [(place - half, mean), (place + half, mean)], {"ls": "--", **(meanprops or {})},
                          1.4, "C2")
                else:
                    at = turn(place, mean)
                    props = meanprops or {}
                    found["means"] += self.plot([at[0]], [at[1]], marker=props.get("marker", "^"), ls="none",
                                                color=props.get("markerfacecolor", "C2"))
            out = [one for one in values if one < bottom or one > top]
            if out and showfliers and sym != "":
                xs, ys = zip(*[turn(place, one) for one in out])
                props = flierprops or {}
                found["fliers"] += self.plot(list(xs), list(ys), ls="none", marker=props.get("marker", "o"), ms=5,
                                             color=props.get("markeredgecolor", "k"),
                                             mfc=props.get("markerfacecolor", "none"))
        if manage_ticks:
            names = tick_labels or labels or [f"{one:g}" for one in places]
            self._ticks("x" if vert else "y", places, names)
            self._side("x" if vert else "y")["limits"] = [_b.min(places) - 0.5, _b.max(places) + 0.5]
        return found

    def violinplot(self, dataset, positions=None, vert=None, widths=0.5, showmeans=False, showextrema=True,
                   showmedians=False, points=100, orientation=None, **options):
        refuse("violinplot", options, ("bw_method", "side", "quantiles"))
        groups = _groups(dataset)
        vert = orientation != "horizontal" and vert is not False
        places = list(numbers(positions)) if positions is not None else [float(at + 1) for at in range(len(groups))]
        widths = spread(widths, len(groups))
        turn = (lambda a, b: (a, b)) if vert else (lambda a, b: (b, a))
        own = self._next()
        bodies, ends, bars = [], [], []
        for place, wide, values in zip(places, widths, groups):
            values = list(values)
            count = len(values)
            mean = _b.sum(values) / count
            spread_of = (_b.sum((one - mean) ** 2 for one in values) / _b.max(count - 1, 1)) ** 0.5
            band = spread_of * count ** -0.2 or 1.0
            low, high = _b.min(values), _b.max(values)
            levels = [low + (high - low) * at / (points - 1) for at in range(points)]
            dense = [_b.sum(_math.exp(-((level - one) / band) ** 2 / 2) for one in values) for level in levels]
            most = _b.max(dense) or 1.0
            half = [wide / 2 * one / most for one in dense]
            ring = [turn(place + one, level) for one, level in zip(half, levels)]
            ring += [turn(place - one, level) for one, level in zip(reversed(half), reversed(levels))]
            bodies.append(self._polygons([a for a, _ in ring], [b for _, b in ring], own, None, 0.3, ""))
            cap = wide / 4
            bars += [turn(place, low), turn(place, high)] if showextrema else []
            marked = [low, high] if showextrema else []
            marked += [mean] if showmeans else []
            ordered = sorted(values)
            marked += [(ordered[(count - 1) // 2] + ordered[count // 2]) / 2] if showmedians else []
            ends += [turn(place + side * cap, one) for one in marked for side in (-1, 1)]
        for all_ends in (bars, ends):
            if all_ends:
                xs, ys = zip(*all_ends)
                self._mark("segments", x=list(xs), y=list(ys), color=own, width=1.4, alpha=1.0, label="")
        return {"bodies": bodies}

    def stem(self, *args, linefmt=None, markerfmt=None, basefmt=None, bottom=0, label="", orientation="vertical"):
        y = list(numbers(args[-1]))
        x = list(self._along("x", args[0])) if len(args) > 1 else [float(at) for at in range(len(y))]
        f_color, _, f_dash = form(linefmt or "C0-")
        own = _color(f_color) or self._next()
        group = self._group()
        m_color, m_mark, _ = form(markerfmt or "o")
        turn = (lambda a, b: (b, a)) if orientation == "horizontal" else (lambda a, b: (a, b))
        ends = [turn(a, c) for a, b in zip(x, y) for c in (float(bottom), b)]
        self._mark("segments", None, group, x=column([a for a, _ in ends]), y=column([b for _, b in ends]), color=own,
                   width=1.4, dash=dash_of(f_dash or "-"), alpha=1.0, label="")
        base = [turn(one, float(bottom)) for one in (_b.min(x), _b.max(x))]
        b_color, _, b_dash = form(basefmt or "C3-")
        self._mark("line", None, group, x=[a for a, _ in base], y=[b for _, b in base], color=_color(b_color or "C3"),
                   width=1.4, dash=dash_of(b_dash or "none" if basefmt == " " else b_dash or "-"), marker="", size=6.0,
                   alpha=1.0, label="")
        tips = [turn(a, b) for a, b in zip(x, y)]
        made = self.plot([a for a, _ in tips], [b for _, b in tips], ls="none", marker=m_mark or "o",
                         color=m_color or own, label=label)[0]
        made._mark["group"] = group
        return made

    def eventplot(self, positions, orientation="horizontal", lineoffsets=1, linelengths=1, linewidths=None, colors=None,
                  color=None, label=None, **options):
        refuse("eventplot", options, ("linestyles", "alpha"))
        rows = [numbers(one) for one in plain(positions)] if is_nested(positions) or (
            isinstance(positions, (list, tuple)) and len(positions) and hasattr(positions[0], "tolist")) else [
                numbers(positions)]
        offsets = list(numbers(lineoffsets))
        offsets = offsets if len(offsets) == len(rows) else [offsets[0] * at + (offsets[0] if len(rows) == 1 else 0)
                                                              for at in range(len(rows))]
        lengths = spread(linelengths, len(rows))
        own = _pick(colors, color)
        made = []
        for at, row in enumerate(rows):
            shade = _color(own if own is None or is_color(own) else own[at % len(own)]) or next_color(0)
            near, far = offsets[at] - lengths[at] / 2, offsets[at] + lengths[at] / 2
            along = [one for one in row for _ in (0, 1)]
            over = [one for _ in row for one in (near, far)]
            xs, ys = (along, over) if orientation == "horizontal" else (over, along)
            names = label if isinstance(label, (list, tuple)) else [label]
            made.append(Handle(self._mark("segments", x=column(xs), y=column(ys), color=shade,
                                          width=float(spread(linewidths or 1.5, len(rows))[at]), alpha=1.0,
                                          label=str(names[at] or "") if at < len(names) else ""), self))
        return made

    # Reference lines, bands, line collections.

    def _rule(self, name, at, vertical, own, width, dash, alpha, label, zorder, options):
        refuse(name, options, ("xmin", "xmax", "ymin", "ymax"))
        return Handle(self._mark("rule", zorder, at=self._along("x" if vertical else "y", [at])[0], vertical=vertical,
                                 color=_color(own) or next_color(0), width=float(width or 1.5), dash=dash_of(dash or "-"),
                                 alpha=alpha_of(alpha), label=str(label or "")), self)

    def axhline(self, y=0, xmin=0, xmax=1, color=None, linewidth=None, lw=None, linestyle=None, ls=None, alpha=None,
                label="", c=None, zorder=None, **options):
        return self._rule("axhline", y, False, _pick(color, c), _pick(linewidth, lw), _pick(linestyle, ls), alpha, label,
                          zorder, options)

    def axvline(self, x=0, ymin=0, ymax=1, color=None, linewidth=None, lw=None, linestyle=None, ls=None, alpha=None,
                label="", c=None, zorder=None, **options):
        return self._rule("axvline", x, True, _pick(color, c), _pick(linewidth, lw), _pick(linestyle, ls), alpha, label,
                          zorder, options)

    def _lines(self, name, along, near, far, vertical, own, linestyles, width, alpha, label, zorder, options):
        refuse(name, options, ())
        along = list(self._along("x" if vertical else "y", along))
        ends = [one for pair in zip(spread(near, len(along)), spread(far, len(along))) for one in pair]
        twice = [one for at in along for one in (at, at)]
        xs, ys = (twice, ends) if vertical else (ends, twice)
        own = own if own is None or is_color(own) else plain(own)[0]
        return Handle(self._mark("segments", zorder, x=column(xs), y=column(ys), color=_color(own) or next_color(0),
                                 width=float(width or 1.5), dash=dash_of(linestyles or "-"), alpha=alpha_of(alpha),
                                 label=str(label or "")), self)

    def hlines(self, y, xmin, xmax, colors=None, linestyles=None, label="", color=None, linestyle=None, ls=None,
               linewidth=None, linewidths=None, lw=None, alpha=None, zorder=None, **options):
        return self._lines("hlines", y, self._along("x", plain_list(xmin)), self._along("x", plain_list(xmax)), False,
                           _pick(colors, color), _pick(linestyles, linestyle, ls), _pick(linewidth, linewidths, lw),
                           alpha, label, zorder, options)

    def vlines(self, x, ymin, ymax, colors=None, linestyles=None, label="", color=None, linestyle=None, ls=None,
               linewidth=None, linewidths=None, lw=None, alpha=None, zorder=None, **options):
        return self._lines("vlines", x, ymin, ymax, True, _pick(colors, color), _pick(linestyles, linestyle, ls),
                           _pick(linewidth, linewidths, lw), alpha, label, zorder, options)

    def axline(self, xy1, xy2=None, slope=None, **options):
        (x, y) = (float(one) for one in xy1)
        if xy2 is not None:
            dx, dy = float(xy2[0]) - x, float(xy2[1]) - y
        else:
            dx, dy = 1.0, float(slope)
        if dx == 0:
            return self.axvline(x, **options)
        low, high = self.get_xlim()
        self._side("x")["limits"] = [low, high]
        self._side("y").setdefault("limits", list(self.get_ylim()))
        return self.plot([low, high], [y + (low - x) * dy / dx, y + (high - x) * dy / dx], **options)[0]

    def _band(self, name, low, high, vertical, own, alpha, label, zorder, options):
        refuse(name, options, ("xmin", "xmax", "ymin", "ymax", "linewidth", "lw", "edgecolor", "ec", "hatch", "ls",
                               "linestyle"))
        side = "x" if vertical else "y"
        low, high = self._along(side, [low, high])
        return Handle(self._mark("band", zorder, low=low, high=high, vertical=vertical, color=_color(own) or
                                 next_color(0), alpha=alpha_of(alpha), label=str(label or "")), self)

    def axhspan(self, ymin, ymax, xmin=0, xmax=1, color=None, facecolor=None, fc=None, alpha=None, label="",
                zorder=None, **options):
        return self._band("axhspan", ymin, ymax, False, _pick(color, facecolor, fc), alpha, label, zorder, options)

    def axvspan(self, xmin, xmax, ymin=0, ymax=1, color=None, facecolor=None, fc=None, alpha=None, label="",
                zorder=None, **options):
        return self._band("axvspan", xmin, xmax, True, _pick(color, facecolor, fc), alpha, label, zorder, options)

    def arrow(self, x, y, dx, dy, color=None, fc=None, ec=None, width=None, alpha=None, **options):
        refuse("arrow", options, ("head_width", "head_length", "length_includes_head", "linewidth", "lw", "zorder",
                                  "shape", "overhang", "linestyle", "ls"))
        return Handle(self._mark("segments", x=[float(x), float(x + dx)], y=[float(y), float(y + dy)],
                                 color=_color(_pick(color, fc, ec)) or next_color(0), width=1.5, arrows=True,
                                 alpha=alpha_of(alpha), label=""), self)

    def quiver(self, *args, color=None, scale=None, units=None, angles="uv", scale_units=None, width=None, cmap=None,
               pivot="tail", alpha=None, **options):
        refuse("quiver", options, ("headwidth", "headlength", "headaxislength", "minlength", "zorder", "label"))
        if len(args) in (3, 5):
            raise TypeError(f"quiver with colours by value {ELSEWHERE}")
        u, v = list(numbers(args[-2])), list(numbers(args[-1]))
        if len(args) == 4:
            x, y = list(numbers(args[0])), list(numbers(args[1]))
            if len(x) * len(y) == len(u) and len(x) != len(u):
                x, y = [a for _ in y for a in x], [b for b in y for _ in x]
        else:
            wide = len(plain(plain(args[0])[0])) if is_nested(args[0]) else len(u)
            x, y = [float(at % wide) for at in range(len(u))], [float(at // wide) for at in range(len(u))]
        if scale is None or scale_units != "xy":
            # Scale arrows so that one of average length is as long as the distance between two of them.
            sizes = [(a * a + b * b) ** 0.5 for a, b in zip(u, v)]
            usual = _b.sum(sizes) / _b.max(len(sizes), 1) or 1.0
            room = _b.max(_b.max(x) - _b.min(x), _b.max(y) - _b.min(y)) or 1.0
            scale = usual * _b.max(len(u) ** 0.5, 10.0) / room / 1.2
        part = {"tail": 0.0, "mid": 0.5, "middle": 0.5, "tip": 1.0}[pivot]
        xs, ys = [], []
        for a, b, da, db in zip(x, y, u, v):
            xs += [a - part * da / scale, a + (1 - part) * da / scale]
            ys += [b - part * db / scale, b + (1 - part) * db / scale]
        return Handle(self._mark("segments", x=column(xs), y=column(ys), color=_color(color) or "k", width=1.3,
                                 arrows=True, alpha=alpha_of(alpha), label=""), self)

    # Pies.

    def pie(self, x, explode=None, labels=None, colors=None, autopct=None, pctdistance=0.6, startangle=0,
            counterclock=True, wedgeprops=None, normalize=True, **options):
        refuse("pie", options, ("shadow", "textprops", "labeldistance", "radius", "center", "frame", "rotatelabels",
                                "hatch"))
        parts = list(numbers(x))
        total = _b.sum(parts) or 1.0
        shares = [autopct(one / total * 100) if callable(autopct) else autopct % (one / total * 100)
                  for one in parts] if autopct else []
        own = [_color(one) for one in colors] if colors is not None else [next_color(at) for at in range(len(parts))]
        width = (wedgeprops or {}).get("width")
        mark = self._mark("pie", parts=column(parts), colors=own, labels=[str(one) for one in labels or ()],
                          shares=[str(one) for one in shares], start=float(startangle or 0),
                          out=column(numbers(explode)) if explode is not None else [],
                          hole=1.0 - float(width) if width else 0.0, clockwise=not counterclock)
        self._said["off"] = self._said["equal"] = True
        self._legends = (mark, own)
        names = mark["labels"] + [""] * len(own)
        wedges = [Handle({"kind": "bars", "x": [], "y": [], "width": [], "height": [], "colors": [one], "edge": "",
                          "alpha": 1.0, "label": name}, self) for one, name in zip(own, names)]
        return (wedges, [], []) if autopct else (wedges, [])

    # Images and contours.

    def imshow(self, X, cmap=None, norm=None, aspect=None, interpolation=None, alpha=None, vmin=None, vmax=None,
               origin="upper", extent=None, zorder=None, **options):
        refuse("imshow", options, ("interpolation_stage", "filternorm", "resample", "filterrad", "label"))
        rows, wide, values, pixels = _image(X, origin == "lower")
        place = list(extent or (-0.5, wide - 0.5, -0.5, rows - 0.5))
        if extent is None and origin != "lower":
            place = [-0.5, wide - 0.5, rows - 0.5, -0.5]
        place = [float(one) for one in place]
        for axis, ends in (("x", place[:2]), ("y", place[2:])):
            self._side(axis).setdefault("limits", ends)
        self._said["equal"] = (aspect or "equal") in ("equal", 1, 1.0)
        if pixels is not None:
            mark = self._mark("pixels", zorder, rows=rows, columns=wide, colors=pixels, place=place)
        else:
            mark = self._mark("image", zorder, rows=rows, columns=wide, place=place,
                              shades=shades(values, cmap, vmin, vmax, norm))
        return self._shaded(Handle(mark, self))

    def matshow(self, Z, **options):
        return self.imshow(Z, **options)

    def pcolormesh(self, *args, cmap=None, norm=None, vmin=None, vmax=None, shading="auto", alpha=None, **options):
        refuse("pcolormesh", options, ("edgecolors", "rasterized", "linewidth", "zorder"))
        rows = rows_of(args[-1])
        high, wide = len(rows), len(rows[0])
        if len(args) == 1:
            edges = [float(at) for at in range(wide + 1)], [float(at) for at in range(high + 1)]
        else:
            edges = _edges(args[0], wide, False), _edges(args[1], high, True)
        even = _b.all(_is_even(one) for one in edges)
        if not even:
            return self._cells(rows, *edges, shades([one for row in rows for one in row], cmap, vmin, vmax, norm))
        extent = (edges[0][0], edges[0][-1], edges[1][0], edges[1][-1])
        return self.imshow(args[-1], cmap, norm, "auto", vmin=vmin, vmax=vmax, origin="lower", extent=extent)

    pcolor = pcolormesh

    def _cells(self, rows, across, up, scale):
        xs, ys = [], []
        for row in range(len(rows)):
            for at in range(len(rows[0])):
                xs += [across[at], across[at + 1], across[at + 1], across[at], _math.nan]
                ys += [up[row], up[row], up[row + 1], up[row + 1], _math.nan]
        for axis, ends in (("x", across), ("y", up)):
            self._side(axis).setdefault("limits", [ends[0], ends[-1]])
        return self._shaded(Handle(self._mark("polygons", x=column(xs), y=column(ys), colors=[], values=scale, edge="",
                                              alpha=1.0, label=""), self))

    def _contour(self, name, args, levels, cmap, norm, own, filled, vmin, vmax, options):
        refuse(name, options, ("linewidths", "alpha", "linestyles", "extend", "antialiased", "zorder"))
        if len(args) in (2, 4) and levels is None:
            args, levels = args[:-1], args[-1]
        rows = [list(numbers(row)) for row in rows_of(args[-1])]
        if len(args) > 1:
            x, y = plain(args[0]), plain(args[1])
            x = numbers(x[0]) if isinstance(plain(x[0]), (list, tuple)) else numbers(x)
            y = [numbers(row)[0] for row in y] if isinstance(plain(y[0]), (list, tuple)) else numbers(y)
        else:
            x, y = [float(at) for at in range(len(rows[0]))], [float(at) for at in range(len(rows))]
        if len(x) != len(rows[0]) or len(y) != len(rows):
            raise TypeError(f"Shapes of x ({len(x)},), y ({len(y)},) and z ({len(rows)}, {len(rows[0])}) do not fit")
        z = [one for row in rows for one in row]
        seen = [one for one in z if one == one] or [0.0]
        low, high = _b.min(seen), _b.max(seen)
        if levels is None or isinstance(levels, int):
            levels = nice_levels(low, high, levels or 7)
            if not filled:
                levels = [one for one in levels if low < one < high] or levels
        levels = list(numbers(levels))
        scale = shades(z, cmap, levels[0] if vmin is None else vmin, levels[-1] if vmax is None else vmax, norm)
        if filled and vmin is None and len(levels) > 2:
            # Bands have the color of their middle, so the color scale ends at the middles of the first and last bands.
            scale["low"], scale["high"] = (levels[0] + levels[1]) / 2, (levels[-1] + levels[-2]) / 2
        single = "" if own is None else _color(own if is_color(own) else plain(own)[0])
        return self._shaded(Handle(self._mark("contour", x=column(x), y=column(y), shades=scale, levels=levels,
                                              filled=filled, color=single), self))

    def contour(self, *args, levels=None, cmap=None, norm=None, colors=None, vmin=None, vmax=None, **options):
        return self._contour("contour", args, levels, cmap, norm, colors, False, vmin, vmax, options)

    def contourf(self, *args, levels=None, cmap=None, norm=None, colors=None, vmin=None, vmax=None, **options):
        if colors is not None:
            raise TypeError(f"contourf: the option 'colors' {ELSEWHERE}")
        return self._contour("contourf", args, levels, cmap, norm, None, True, vmin, vmax, options)

    def clabel(self, CS, *args, **options):
        CS._mark["labels"] = True
        return []

    # Text.

    def text(self, x, y, s, color=None, c=None, fontsize=None, size=None, ha=None, horizontalalignment=None, va=None,
             verticalalignment=None, rotation=0, bbox=None, transform=None, zorder=None, **options):
        refuse("text", options, ("fontweight", "weight", "alpha", "style", "family", "fontfamily", "fontstyle", "wrap",
                                 "backgroundcolor", "linespacing", "multialignment", "fontdict", "rotation_mode", "name"))
        inside = transform is not None and getattr(transform, "_inside", False)
        if not inside:
            x, y = self._along("x", [x])[0], self._along("y", [y])[0]
        ground = "" if bbox is None else _color(bbox.get("facecolor", bbox.get("fc", "w"))) or ""
        return Handle(self._mark("text", zorder, x=float(x), y=float(y), text=str(s), color=_color(_pick(color, c)) or
                                 "k", size=points(_pick(fontsize, size), 11.0),
                                 h=_pick(ha, horizontalalignment, default="left"),
                                 v=_pick(va, verticalalignment, default="bottom"), arrow=None, inside=inside,
                                 turn=90.0 if rotation == "vertical" else 0.0 if rotation == "horizontal" else
                                 float(rotation or 0), ground=ground), self)

    def annotate(self, text, xy, xytext=None, xycoords="data", textcoords=None, arrowprops=None, color=None,
                 fontsize=None, size=None, ha=None, horizontalalignment=None, va=None, verticalalignment=None,
                 bbox=None, rotation=0, **options):
        refuse("annotate", options, ("fontweight", "weight", "zorder", "annotation_clip", "alpha"))
        if xycoords not in ("data", "axes fraction"):
            raise ValueError(f"annotate: xycoords={xycoords!r} {ELSEWHERE}")
        if textcoords not in (None, "data", "offset points", "axes fraction", "offset pixels"):
            raise ValueError(f"annotate: textcoords={textcoords!r} {ELSEWHERE}")
        inside = xycoords == "axes fraction"
        point = [float(xy[0]), float(xy[1])] if inside else [self._along("x", [xy[0]])[0], self._along("y", [xy[1]])[0]]
        offset = textcoords in ("offset points", "offset pixels")
        at = point if xytext is None or offset else list(xytext)
        if at is not point and textcoords != "axes fraction":
            at = [self._along("x", [at[0]])[0], self._along("y", [at[1]])[0]]
        made = self.text(0, 0, text, color=color, fontsize=_pick(fontsize, size), bbox=bbox, rotation=rotation,
                         ha=_pick(ha, horizontalalignment), va=_pick(va, verticalalignment))
        mark = made._mark
        mark["x"], mark["y"] = float(at[0]), float(at[1])
        mark["inside"] = textcoords == "axes fraction" or (inside and at is point)
        if offset:
            mark["shift"] = [float(one) for one in xytext]
        if arrowprops is not None and xytext is not None and not inside:
            mark["arrow"] = point
            if "color" in arrowprops and color is None:
                made._mark["color"] = made._mark["color"]
        return made

    def add_patch(self, patch):
        patch._put(self)
        return patch

    add_artist = add_patch


# An alias, because method parameters named `color` shadow the function.
_color = color


def plain_list(value):
    value = plain(value)
    return value if isinstance(value, (list, tuple)) else [value]


def _seconds(width):
    """Returns a width as a number; a time span is converted to seconds."""
    return width.total_seconds() if hasattr(width, "total_seconds") else width


def _groups(x):
    if is_nested(x) or (isinstance(x, (list, tuple)) and len(x) and hasattr(x[0], "tolist") and getattr(
            x[0], "ndim", 0) > 0):
        if getattr(x, "ndim", 1) == 2:
            return [list(numbers(list(one))) for one in zip(*plain(x))]
        return [list(numbers(one)) for one in (x.values() if isinstance(x, dict) else x)]
    return [list(numbers(x))]


def _stairs(x, y, where):
    x, y = list(x), list(y)
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
    return xs, ys


def _image(X, lower):
    """Returns rows, columns, and either numbers or colors as bytes, from the top."""
    core = getattr(X, "_core", None)
    if core is not None and len(core.shape) == 2:
        shown = X[::-1] if lower else X
        return core.shape[0], core.shape[1], numbers(shown), None
    rows = rows_of(X)
    if lower:
        rows.reverse()
    if isinstance(plain(rows[0][0]), (list, tuple)):
        import base64

        flat = [plain(pixel)[:3] for row in rows for pixel in row]
        whole = _b.any(one > 1 for pixel in flat for one in pixel) or _b.all(
            isinstance(one, int) for pixel in flat for one in pixel)
        data = bytes(_b.min(_b.max(int(one if whole else one * 255 + 0.5), 0), 255) for pixel in flat for one in pixel)
        return len(rows), len(rows[0]), None, base64.b64encode(data).decode()
    return len(rows), len(rows[0]), numbers([one for row in rows for one in row]), None


def _edges(places, count, along_rows):
    places = plain(places)
    if is_nested(places):
        places = [plain(row)[0] for row in places] if along_rows else plain(places[0])
    places = list(numbers(places))
    if len(places) == count + 1:
        return places
    if len(places) != count:
        raise TypeError(f"{len(places)} places do not fit {count} cells")
    middle = [(a + b) / 2 for a, b in zip(places, places[1:])]
    if not middle:
        return [places[0] - 0.5, places[0] + 0.5]
    return [2 * places[0] - middle[0], *middle, 2 * places[-1] - middle[-1]]


def _is_even(places):
    step = (places[-1] - places[0]) / (len(places) - 1)
    return _b.all(abs(b - a - step) <= abs(step) * 1e-6 for a, b in zip(places, places[1:]))
