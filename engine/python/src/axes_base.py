"""Parts of a pair of axes around its marks: limits, scales, ticks, text, legend. Part of `pyplot.py`."""

import builtins as _b
import math as _math
import sys as _sys

from _tracebook_drawing import (
    ELSEWHERE, Handle, color, column, cycle, map_name, numbers, plain, points, refuse, span, usual_map)


def __getattr__(name):
    raise AttributeError(f"matplotlib.{name} {ELSEWHERE}")


class _Settings(dict):
    """`rcParams`: appearance settings. Unsupported ones are stored, and reported once."""

    _said = set()
    _known = {"figure.figsize": (6.4, 4.0), "figure.dpi": 100, "savefig.dpi": 200, "font.size": 11,
              "lines.linewidth": 1.6, "axes.grid": False, "axes.facecolor": "", "figure.facecolor": "",
              "image.cmap": "viridis", "axes.prop_cycle": None, "axes.spines.top": True, "axes.spines.right": True}

    def reset(self):
        dict.clear(self)
        dict.update(self, self._known)
        cycle.clear()
        usual_map[0] = "viridis"

    def __setitem__(self, name, value):
        if name == "axes.prop_cycle":
            cycle[:] = [color(one) for one in value.colors]
        elif name == "image.cmap":
            usual_map[0] = map_name(value)
        elif name not in self._known and name not in self._said:
            self._said.add(name)
            print(f"matplotlib: the setting {name!r} {ELSEWHERE}", file=_sys.stderr)
        dict.__setitem__(self, name, value)

    def update(self, *others, **more):
        for name, value in dict(*others, **more).items():
            self[name] = value


rcParams = _Settings()
rcParams.reset()

# Set by styles: the background of axes and of figures, and whether text is light.
look = {"ground": "", "figure": "", "dark": False}


class Inside:
    """Type of `ax.transAxes`: positions are fractions of the axes."""

    _inside = True


class _Spine:
    def __init__(self, axes, sides):
        self._axes, self._sides = axes, sides

    def set_visible(self, visible):
        kept = set(self._axes._said.get("open", "")) - set(self._sides)
        self._axes._said["open"] = "".join(sorted(kept if visible else kept | set(self._sides)))

    def _looks(self, *values, **options):
        """Does nothing: the frame looks as in the note's other figures."""

    set_color = set_linewidth = set_edgecolor = set_linestyle = set_alpha = _looks

    def set_position(self, *where):
        raise AttributeError(f"Spine.set_position {ELSEWHERE}")


class _Spines(dict):
    def __getitem__(self, names):
        if isinstance(names, (list, tuple)):
            return _Spine(self._axes, [_LETTERS[name] for name in names])
        if isinstance(names, slice):
            return _Spine(self._axes, list(_LETTERS.values()))
        return _Spine(self._axes, [_LETTERS[names]])

    def values(self):
        return [self[name] for name in _LETTERS]

    def items(self):
        return [(name, self[name]) for name in _LETTERS]

    top = property(lambda self: self["top"])
    right = property(lambda self: self["right"])
    left = property(lambda self: self["left"])
    bottom = property(lambda self: self["bottom"])


_LETTERS = {"left": "l", "right": "r", "top": "t", "bottom": "b"}


class _Axis:
    """`ax.xaxis` or `ax.yaxis`: its ticks and their labels."""

    def __init__(self, axes, name):
        self._axes, self._name = axes, name

    def set_major_formatter(self, formatter):
        if isinstance(formatter, str):
            self._axes._side(self._name)["form"] = formatter
            return
        said = getattr(formatter, "_form", None)
        if said is None:
            kind = "a function" if callable(formatter) and not hasattr(formatter, "_locate") else type(formatter).__name__
            raise TypeError(f"set_major_formatter: {kind} {ELSEWHERE}; a form such as '{{x:.1f}}' is")
        self._axes._side(self._name)["form"] = said

    def set_major_locator(self, locator):
        if not hasattr(locator, "_locate"):
            raise TypeError(f"set_major_locator: {type(locator).__name__} {ELSEWHERE}")
        self._axes._locators[self._name] = locator

    def set_minor_locator(self, locator):
        """Does nothing: minor ticks appear where there is room on a logarithmic scale."""

    set_minor_formatter = set_minor_locator

    def set_ticks(self, ticks, labels=None, **options):
        self._axes._ticks(self._name, ticks, labels)

    def set_ticklabels(self, labels, **options):
        self._axes._tick_labels(self._name, labels)

    def set_label_text(self, text, **options):
        self._axes._side(self._name)["label"] = str(text)

    def set_visible(self, visible):
        if not visible:
            self._axes._ticks(self._name, [], [])

    def grid(self, visible=True, **options):
        self._axes.grid(visible, axis=self._name)

    def set_inverted(self, inverted):
        getattr(self._axes, f"invert_{self._name}axis")()

    def _accepted(self, *args, **options):
        """Does nothing: x ticks are below the axes and y ticks at the left."""

    set_ticks_position = set_label_position = tick_bottom = tick_left = set_tick_params = label = _accepted

    def tick_top(self):
        raise AttributeError(f"axis.tick_top {ELSEWHERE}")

    def tick_right(self):
        raise AttributeError(f"axis.tick_right {ELSEWHERE}")

    def __getattr__(self, name):
        raise AttributeError(f"axis.{name} {ELSEWHERE}")


class Around:
    """Base class of `Axes`: everything but its marks."""

    transAxes = Inside()
    transData = None

    def __init__(self, figure, place, exact=False):
        self.figure = figure
        self._place, self._exact = place, exact
        # The axes below these, if these lie over others.
        self._base = None
        self._shared = {}
        self.cla()

    def cla(self):
        self._said = {"place": self._place, "exact": self._exact, "sides": [{}, {}], "marks": []}
        for axis, name in self._shared.items():
            self._side(axis)["shared"] = name
        if rcParams["axes.facecolor"] or look["ground"]:
            self._said["ground"] = color(rcParams["axes.facecolor"] or look["ground"])
        if rcParams["axes.grid"]:
            self.grid(True)
        self._said["open"] = "".join(
            letter for name, letter in (("top", "t"), ("right", "r")) if not rcParams[f"axes.spines.{name}"])
        self._colors = self._groups = 0
        self._categories, self._locators = {}, {}

    clear = cla
    spines = property(lambda self: self._spines())
    xaxis = property(lambda self: _Axis(self, "x"))
    yaxis = property(lambda self: _Axis(self, "y"))
    fig = property(lambda self: self.figure)

    def _spines(self):
        made = _Spines()
        made._axes = self
        return made

    def _side(self, axis):
        return self._said["sides"]["xy".index(axis)]

    def _along(self, axis, values):
        """Converts values to numbers on an axis. Strings become indices in order of appearance, dates seconds."""
        if hasattr(values, "_core"):
            return numbers(values)
        values = plain(values)
        if not isinstance(values, (list, tuple)):
            return numbers(values)
        if _b.any(isinstance(one, str) for one in values):
            base = self._base if self._base is not None and "x" == axis else self
            places = base._categories.setdefault(axis, {})
            for one in values:
                places.setdefault(str(one), len(places))
            ticks = {"at": list(places.values()), "labels": list(places)}
            self._side(axis)["ticks"] = base._side(axis)["ticks"] = ticks
            return [float(places[str(one)]) for one in values]
        if values and hasattr(values[0], "toordinal"):
            from datetime import datetime, timezone

            def seconds(one):
                if not isinstance(one, datetime):
                    one = datetime(one.year, one.month, one.day)
                if one.tzinfo is not None:
                    one = one.astimezone(timezone.utc).replace(tzinfo=None)
                return (one - datetime(1970, 1, 1)).total_seconds()

            self._side(axis)["dates"] = True
            return [seconds(one) for one in values]
        return numbers(values)

    # Text.

    def set_title(self, label, fontdict=None, loc=None, pad=None, y=None, **options):
        self._said["title"] = str(label)
        self._said["title_at"] = loc or "center"

    def set_xlabel(self, label, *args, **options):
        self._side("x")["label"] = str(label)

    def set_ylabel(self, label, *args, **options):
        self._side("y")["label"] = str(label)

    def get_title(self):
        return self._said.get("title", "")

    def get_xlabel(self):
        return self._side("x").get("label", "")

    def get_ylabel(self):
        return self._side("y").get("label", "")

    # Limits.

    def _limit(self, axis, low, high):
        if isinstance(low, (list, tuple)) or hasattr(low, "tolist") and getattr(low, "ndim", 0):
            low, high = plain(low)
        old = self._limits(axis)
        ends = [old[at] if one is None else self._along(axis, [one])[0] for at, one in enumerate((low, high))]
        self._side(axis)["limits"] = ends
        return tuple(ends)

    def _limits(self, axis):
        if self._side(axis).get("limits"):
            return tuple(self._side(axis)["limits"])
        seen = []
        size, ends = {"x": ("width", ()), "y": ("height", ("low", "high"))}[axis]
        for mark in self._said["marks"]:
            kind = mark["kind"]
            if kind == "text":
                continue
            if kind in ("rule", "band"):
                if mark["vertical"] == (axis == "x"):
                    seen += [mark[name] for name in ("at", "low", "high") if name in mark]
            elif kind in ("image", "pixels"):
                seen += mark["place"][:2] if axis == "x" else mark["place"][2:]
            elif kind == "bars":
                seen += span(mark[axis]) + span(column([a + b for a, b in zip(_known(mark[axis]), _known(mark[size]))]))
            else:
                for name in (axis, *ends):
                    if name in mark:
                        seen += span(mark[name])
        if not seen:
            return 0.0, 1.0
        low, high = _b.min(seen), _b.max(seen)
        share = self._side(axis).get("margin", 0.05)
        if self._side(axis).get("scale") == "log" and low > 0:
            more = (high / low) ** share
            return low / more, high * more
        more = (high - low) * share or 0.05
        return low - more, high + more

    def set_xlim(self, left=None, right=None, *, xmin=None, xmax=None, **options):
        return self._limit("x", xmin if left is None else left, xmax if right is None else right)

    def set_ylim(self, bottom=None, top=None, *, ymin=None, ymax=None, **options):
        return self._limit("y", ymin if bottom is None else bottom, ymax if top is None else top)

    def get_xlim(self):
        return self._limits("x")

    def get_ylim(self):
        return self._limits("y")

    set_xbound, set_ybound, get_xbound, get_ybound = set_xlim, set_ylim, get_xlim, get_ylim

    def invert_xaxis(self):
        self._side("x")["limits"] = list(self.get_xlim())[::-1]

    def invert_yaxis(self):
        self._side("y")["limits"] = list(self.get_ylim())[::-1]

    def margins(self, *args, x=None, y=None, tight=True):
        both = args[0] if len(args) == 1 else None
        for axis, one in (("x", x if not args else both if both is not None else args[0]),
                          ("y", y if not args else both if both is not None else args[1])):
            if one is not None:
                self._side(axis)["margin"] = float(one)

    def set_xmargin(self, margin):
        self.margins(x=margin)

    def set_ymargin(self, margin):
        self.margins(y=margin)

    def autoscale(self, enable=True, axis="both", tight=None):
        for one in "xy" if axis == "both" else axis:
            self._side(one).pop("limits", None)
            if tight:
                self._side(one)["margin"] = 0.0

    def relim(self):
        """Does nothing: limits follow the marks automatically."""

    autoscale_view = relim

    # Scales.

    def _scale(self, axis, scale, options):
        if scale not in ("linear", "log"):
            raise ValueError(f"the scale {scale!r} {ELSEWHERE}")
        if options.get("base", 10) not in (2, 10, _math.e):
            raise ValueError(f"a logarithmic scale with base {options['base']} {ELSEWHERE}")
        self._side(axis)["scale"] = scale

    def set_xscale(self, scale, **options):
        self._scale("x", scale, options)

    def set_yscale(self, scale, **options):
        self._scale("y", scale, options)

    def get_xscale(self):
        return self._side("x").get("scale", "linear")

    def get_yscale(self):
        return self._side("y").get("scale", "linear")

    def axis(self, what=None, **options):
        if options:
            self.set_xlim(options.get("xmin"), options.get("xmax"))
            self.set_ylim(options.get("ymin"), options.get("ymax"))
        elif what in ("off", False) and what is not None:
            self._said["off"] = True
        elif isinstance(what, str) and what in ("equal", "scaled", "square", "image"):
            self._said["equal"] = True
        elif isinstance(what, str) and what == "tight":
            self.margins(0.0)
        elif what is None or what is True or isinstance(what, str) and what in ("on", "auto"):
            self._said["off"] = self._said.get("off", False) and what in (None, "auto")
        elif isinstance(what, (list, tuple)):
            self.set_xlim(what[:2])
            self.set_ylim(what[2:])
        else:
            raise ValueError(f"axis({what!r}) {ELSEWHERE}")
        return (*self.get_xlim(), *self.get_ylim())

    def set_axis_off(self):
        self._said["off"] = True

    def set_axis_on(self):
        self._said["off"] = False

    def set_aspect(self, aspect, **options):
        if not (aspect in ("equal", "auto") or aspect == 1):
            raise ValueError(f"set_aspect({aspect!r}) {ELSEWHERE}")
        self._said["equal"] = aspect != "auto"

    set_box_aspect = set_aspect

    def set_facecolor(self, value):
        self._said["ground"] = color(value)

    set_fc = set_facecolor

    def set_visible(self, visible):
        if not visible:
            self._said["off"], self._said["marks"] = True, []

    # Ticks.

    def _ticks(self, axis, ticks, labels):
        ticks = list(self._along(axis, plain(ticks))) if len(plain(ticks)) else []
        if labels is not None and len(plain(labels)) != len(ticks):
            raise ValueError(f"The number of FixedLocator locations ({len(ticks)}), usually from a call to set_ticks, "
                             f"does not match the number of labels ({len(plain(labels))}).")
        self._side(axis)["ticks"] = {"at": ticks, "labels": [] if labels is None else [_word(one) for one in plain(
            labels)]}
        self._locators.pop(axis, None)

    def _tick_labels(self, axis, labels):
        ticks = self._side(axis).get("ticks")
        if len(plain(labels)) == 0:
            self._side(axis)["quiet"] = True
        elif ticks is None:
            self._ticks(axis, range(len(plain(labels))), labels)
        else:
            ticks["labels"] = [_word(one) for one in plain(labels)]

    def _turn(self, axis, rotation):
        if rotation is not None:
            self._side(axis)["turn"] = 90.0 if rotation == "vertical" else 0.0 if rotation == "horizontal" else float(
                rotation)

    def set_xticks(self, ticks, labels=None, minor=False, rotation=None, **options):
        if not minor:
            self._ticks("x", ticks, labels)
        self._turn("x", rotation)

    def set_yticks(self, ticks, labels=None, minor=False, **options):
        if not minor:
            self._ticks("y", ticks, labels)

    def set_xticklabels(self, labels, rotation=None, **options):
        self._tick_labels("x", labels)
        self._turn("x", rotation)

    def set_yticklabels(self, labels, **options):
        self._tick_labels("y", labels)

    def get_xticks(self):
        import numpy as np

        from _tracebook_drawing import nice_levels

        known = self._side("x").get("ticks")
        return np.array(known["at"] if known else nice_levels(*self.get_xlim(), 6))

    def get_xticklabels(self):
        return [_TickLabel(self, "x")]

    def get_yticklabels(self):
        return [_TickLabel(self, "y")]

    def tick_params(self, axis="both", labelrotation=None, rotation=None, labelbottom=None, labelleft=None, **options):
        turned = labelrotation if labelrotation is not None else rotation
        if axis in ("x", "both"):
            self._turn("x", turned)
        for one, say in (("x", labelbottom), ("y", labelleft)):
            if say is not None:
                self._side(one)["quiet"] = not say

    def ticklabel_format(self, axis="both", style=None, useOffset=None, **options):
        if style == "plain":
            for one in "xy" if axis == "both" else axis:
                self._side(one)["form"] = "{x}"

    def minorticks_on(self):
        """Does nothing: minor ticks appear where there is room on a logarithmic scale."""

    minorticks_off = minorticks_on

    def label_outer(self):
        left, top, wide, high = self._place
        self._side("x")["quiet"] = top + high < 0.999
        self._side("y")["quiet"] = left > 0.001

    def grid(self, visible=True, which="major", axis="both", **options):
        for one in "xy" if axis == "both" else axis:
            self._side(one)["grid"] = True if visible is None else _b.bool(visible)

    def set_axisbelow(self, below):
        """Does nothing: the grid is always below the marks."""

    # Legend.

    def legend(self, *args, loc="best", handles=None, labels=None, title=None, ncol=None, ncols=None, frameon=True,
               fontsize=None, bbox_to_anchor=None, **options):
        refuse("legend", options, ("shadow", "framealpha", "fancybox", "prop", "borderaxespad", "handlelength",
                                   "title_fontsize", "labelspacing", "columnspacing", "borderpad", "numpoints",
                                   "scatterpoints", "edgecolor", "facecolor", "mode", "labelcolor", "markerscale",
                                   "handletextpad", "bbox_transform", "alignment"))
        if len(args) == 2:
            handles, labels = args
        elif args:
            first = list(args[0])
            handles, labels = (first, labels) if first and not isinstance(first[0], str) else (handles, first)
        marks = self._said["marks"]
        if handles is not None:
            chosen = [mark for one in handles for mark in _marks_of(one)]
            for mark in marks:
                if "label" in mark and not _b.any(mark is one for one in chosen):
                    mark["label"] = ""
            for one in handles:
                for mark in _marks_of(one):
                    # Marks made only for the legend aren't drawn anywhere else.
                    if not _b.any(mark is other for other in marks):
                        marks.append(mark)
        if labels is not None:
            named = [_marks_of(one)[0] for one in handles if _marks_of(one)] if handles is not None else [
                mark for mark in marks if "label" in mark and mark["kind"] not in ("text",) and (
                    mark.get("group") is None or mark["kind"] == "line" and mark.get("marker") not in ("_", "|"))]
            pie = getattr(self, "_legends", None)
            if handles is None and pie is not None:
                named = [self._mark("bars", x=[], y=[], width=[], height=[], colors=[one], edge="", alpha=1.0, label="")
                         for one in pie[1]]
            for mark, name in zip(named, labels):
                mark["label"] = str(name)
        elif handles is None and getattr(self, "_legends", None) is not None:
            mark, own = self._legends
            for name, one in zip(mark["labels"], own):
                self._mark("bars", x=[], y=[], width=[], height=[], colors=[one], edge="", alpha=1.0, label=name)
        places = ("best", "upper right", "upper left", "lower left", "lower right", "right", "center left",
                  "center right", "lower center", "upper center", "center")
        place = places[loc] if isinstance(loc, int) else loc if isinstance(loc, str) else "best"
        if place not in places:
            raise ValueError(f"{place!r} is not a valid value for loc; supported values are {', '.join(places)}")
        if bbox_to_anchor is not None and float(plain(bbox_to_anchor)[0]) >= 1.0 and "right" not in place:
            place = "outside"
        self._said["legend"] = {"place": place, "title": str(title or ""), "columns": int(ncols or ncol or 1),
                                "bare": not frameon, "size": points(fontsize, 10.0) if fontsize else 0.0}
        return _Legend(self._said["legend"])

    def get_legend_handles_labels(self):
        found = [mark for mark in self._said["marks"] if mark.get("label") and not mark["label"].startswith("_")]
        return [Handle(mark, self) for mark in found], [mark["label"] for mark in found]

    def get_legend(self):
        return _Legend(self._said["legend"]) if "legend" in self._said else None

    # Twin and inset axes.

    def _over(self, side):
        made = type(self)(self.figure, self._place, self._exact)
        made._base = self
        other = "x" if side == "y" else "y"
        name = self._side(other).setdefault("shared", self.figure._name())
        self._shared[other] = name
        made._shared[other] = name
        made.cla()
        for key in ("dates", "ticks", "scale"):
            if key in self._side(other):
                made._side(other)[key] = self._side(other)[key]
        made._said["over"] = [0, side]
        self.figure.axes.append(made)
        return made

    def twinx(self):
        return self._over("y")

    def twiny(self):
        return self._over("x")

    def inset_axes(self, bounds, **options):
        left, low, wide, high = bounds
        x, y, across, down = self._place
        made = type(self)(self.figure, [x + across * (0.08 + 0.88 * left), y + down * (0.08 + 0.8 * (1 - low - high)),
                                        across * wide * 0.88, down * high * 0.8], True)
        made._said["ground"] = "#ffffff" if not look["dark"] else "#000000"
        self.figure.axes.append(made)
        return made

    def set(self, **options):
        for name, value in options.items():
            setter = getattr(self, f"set_{name}")
            setter(*value) if name in ("xlim", "ylim") and isinstance(value, tuple) else setter(value)

    def get_figure(self):
        return self.figure

    def set_prop_cycle(self, *args, color=None, **options):
        cycle[:] = [_color(one) for one in (color or args[0].colors)]

    def has_data(self):
        return _b.bool(self._said["marks"])

    @property
    def lines(self):
        return [Handle(mark, self) for mark in self._said["marks"] if mark["kind"] == "line"]

    patches = property(lambda self: [Handle(mark, self) for mark in self._said["marks"] if mark["kind"] == "bars"])

    def remove(self):
        self.figure.axes.remove(self)

    def _json(self, all_axes):
        """Returns the description of these axes for the figure's JSON."""
        said = dict(self._said)
        for axis, locator in self._locators.items():
            said["sides"] = [dict(side) for side in said["sides"]]
            ticks = locator._locate(*sorted(self._limits(axis)))
            if ticks is not None:
                said["sides"]["xy".index(axis)]["ticks"] = {"at": ticks, "labels": []}
        if self._base is not None:
            said["over"] = [all_axes.index(self._base), said["over"][1]] if self._base in all_axes else None
        return said

    def __getattr__(self, name):
        raise AttributeError(f"Axes.{name} {ELSEWHERE}")


_color = color


def _known(values):
    return [_math.nan if one is None else one for one in values]


def _word(label):
    return str(getattr(label, "_text", label))


def _marks_of(handle):
    if isinstance(handle, (list, tuple)) and not hasattr(handle, "_mark"):
        return [mark for one in handle for mark in _marks_of(one)]
    mark = getattr(handle, "_mark", None)
    return [mark] if isinstance(mark, dict) and "kind" in mark else []


class _Legend:
    def __init__(self, said):
        self._said = said

    def set_title(self, title, **options):
        self._said["title"] = str(title)

    def get_frame(self):
        return self

    def set_visible(self, visible):
        self._said["bare"] = not visible

    def __getattr__(self, name):
        raise AttributeError(f"Legend.{name} {ELSEWHERE}")


class _TickLabel:
    def __init__(self, axes, axis):
        self._axes, self._axis = axes, axis

    def set_rotation(self, rotation):
        self._axes._turn(self._axis, rotation)

    def _looks(self, *args, **options):
        """Does nothing: ticks look as in the note's other figures."""

    set_ha = set_fontsize = set_color = set_horizontalalignment = set_size = set_fontweight = _looks
    set_rotation_mode = set_va = set_visible = _looks

    def get_text(self):
        return ""

    def set(self, rotation=None, **options):
        self._axes._turn(self._axis, rotation)
