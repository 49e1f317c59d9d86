"""Building blocks of drawing calls: colors, numbers as columns, format strings. Part of `pyplot.py`."""

import builtins as _b
import math as _math

import _tracebook_kernel as _kernel

ELSEWHERE = "is not in Tracebook's small matplotlib; a full Python kernel has it"


def __getattr__(name):
    raise AttributeError(f"matplotlib.{name} {ELSEWHERE}")


_words = (
    "aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc bisque ffe4c4 "
    "black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a burlywood deb887 cadetblue "
    "5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue 6495ed cornsilk fff8dc crimson dc143c "
    "cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey "
    "a9a9a9 darkkhaki bdb76b darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred "
    "8b0000 darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey 2f4f4f "
    "darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 "
    "dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc "
    "ghostwhite f8f8ff gold ffd700 goldenrod daa520 gray 808080 green 008000 greenyellow adff2f grey 808080 "
    "honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa "
    "lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff "
    "lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon "
    "ffa07a lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 lightslategrey 778899 lightsteelblue "
    "b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 "
    "mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 "
    "mediumslateblue 7b68ee mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue "
    "191970 mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive "
    "808000 olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 "
    "paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum "
    "dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1 "
    "saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 "
    "skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa springgreen 00ff7f steelblue "
    "4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white "
    "ffffff whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32").split()
COLORS = {name: "#" + value for name, value in zip(_words[::2], _words[1::2])}
COLORS.update({"b": "#0000ff", "g": "#008000", "r": "#ff0000", "c": "#00bfbf", "m": "#bf00bf", "y": "#bfbf00",
               "k": "#000000", "w": "#ffffff"})
COLORS.update(zip(("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown", "tab:pink", "tab:gray",
                   "tab:olive", "tab:cyan"),
                  ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22",
                   "#17becf")))
COLORS["tab:grey"] = COLORS["tab:gray"]
MARKERS = set(".,ov^<>sDdphH8*x+|_PX1234") | {"None", "none", "", " "}
DASHES = {"-": "-", "--": "--", ":": ":", "-.": "-.", "solid": "-", "dashed": "--", "dotted": ":", "dashdot": "-.",
          "none": "none", "None": "none", "": "none", " ": "none"}
# Options that only change how a figure looks on paper; accepted and ignored.
IGNORED = ("clip_on", "rasterized", "antialiased", "snap", "gid", "picker", "animated", "in_layout", "figure",
           "solid_capstyle", "dash_capstyle", "solid_joinstyle", "dash_joinstyle", "path_effects", "url", "visible")

# The color cycle; empty for the note's own colors.
cycle = []


def next_color(number):
    return cycle[number % len(cycle)] if cycle else f"C{number % 8}"


def color(value):
    """Returns a color as the figure stores it."""
    if value is None or isinstance(value, str) and value in ("none", "None"):
        return None if value is None else "none"
    if isinstance(value, str):
        known = COLORS.get(value) or COLORS.get(value.lower())
        if known:
            return known
        if len(value) > 1 and value[0] == "C" and value[1:].isdigit():
            return next_color(int(value[1:]))
        if value.startswith("#") and all(one in "0123456789abcdefABCDEF" for one in value[1:]):
            if len(value) in (4, 5):
                return "#" + "".join(one * 2 for one in value[1:4])
            if len(value) in (7, 9):
                return value[:7].lower()
        try:
            return color((float(value),) * 3)
        except ValueError:
            raise ValueError(f"{value!r} is not a valid value for color: a name, '#rrggbb' or three numbers") from None
    parts = [_math.floor(_b.min(_b.max(float(one), 0.0), 1.0) * 255 + 0.5) for one in list(value)[:3]]
    if len(parts) != 3:
        raise ValueError(f"{value!r} is not a valid value for color")
    return "#{:02x}{:02x}{:02x}".format(*parts)


def is_color(value):
    """Returns whether this is one color and not several."""
    if isinstance(value, str):
        return True
    value = plain(value)
    return (isinstance(value, (list, tuple)) and len(value) in (3, 4)
            and _b.all(isinstance(one, (int, float)) for one in value))


def colors(value, count):
    """Returns one color for all, or one for each."""
    if value is None:
        return None
    if is_color(value):
        return [color(value)]
    return [color(one) for one in plain(value)] or None


def alpha_of(value):
    return 1.0 if value is None else float(value)


def plain(value):
    """Returns numbers as a list, and strings as they are."""
    if isinstance(value, Packed):
        return list(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    elif hasattr(value, "to_list"):
        value = value.to_list()
    elif not isinstance(value, (list, tuple)) and hasattr(value, "__iter__") and not isinstance(value, str):
        value = list(value)
    return value


class Packed:
    """Many numbers as the figure stores them. They are iterated over only on demand."""

    def __init__(self, source):
        self._source = source
        self.text, self._count, self.low, self.high = _kernel.packed(getattr(source, "_core", source))

    def __len__(self):
        return self._count

    def __iter__(self):
        return iter(self._source.ravel().tolist() if hasattr(self._source, "_core") else self._source)

    def __getitem__(self, at):
        return list(self)[at]

    def __add__(self, other):
        return list(self) + list(other)


_MANY = 256


def numbers(value):
    """Returns a flat list of numbers; many numbers are packed."""
    if isinstance(value, Packed):
        return value
    core = getattr(value, "_core", None)
    if core is not None and core.size > _MANY and core.kind in "bif":
        return Packed(value)
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, (list, tuple)) and len(value) > _MANY and _kernel.are_numbers(value):
        return Packed(list(value))
    value = plain(value)
    if not isinstance(value, (list, tuple)):
        value = [value]
    out = []
    for one in value:
        one = one if isinstance(one, (int, float)) else plain(one)
        if isinstance(one, (list, tuple)):
            out += numbers(one)
        else:
            out.append(_math.nan if one is None else float(one))
    return out


def column(values):
    """Returns a column as the figure stores it: short columns as lists, long ones packed."""
    if isinstance(values, Packed):
        return values
    if len(values) > _MANY:
        return Packed(values)
    return [one if _math.isfinite(one) else None for one in values]


def spread(value, count):
    found = numbers(value)
    return list(found) * count if len(found) == 1 else found


def listed(values):
    """Converts a column back to numbers."""
    return [_math.nan if one is None else one for one in values]


def span(values):
    """Returns the lowest and the highest value of a column, or an empty list if it has none."""
    if isinstance(values, Packed):
        return [values.low, values.high] if values.low <= values.high else []
    seen = [one for one in values if one is not None and one == one]
    return [_b.min(seen), _b.max(seen)] if seen else []


def rows_of(value):
    """Returns a table of numbers as rows."""
    rows = [list(plain(row)) for row in plain(value)]
    if not rows or not isinstance(rows[0], list) or not rows[0]:
        raise TypeError("this wants a table of numbers: rows of the same length")
    return rows


def is_nested(value):
    value = plain(value)
    return isinstance(value, (list, tuple)) and len(value) > 0 and isinstance(plain(value[0]), (list, tuple))


def refuse(name, options, known=()):
    for option in options:
        if option not in known and option not in IGNORED:
            raise TypeError(f"{name}: the option {option!r} {ELSEWHERE}")


def points(size, default):
    named = {"xx-small": 7.0, "x-small": 8.0, "small": 9.0, "medium": 10.0, "large": 12.0, "x-large": 14.0,
             "xx-large": 17.0}
    return float(named.get(size, default) if isinstance(size, str) else size or default)


def dash_of(value):
    if isinstance(value, (list, tuple)):
        return "--"
    if value not in DASHES:
        raise ValueError(f"{value!r} is not a valid value for ls; supported values are {', '.join(map(repr, DASHES))}")
    return DASHES[value]


def form(words):
    """Parses a format string such as "ro--" as (color, marker, dash)."""
    found = point = dash = None
    at = 0
    if words in COLORS and len(words) > 1:
        return words, None, None
    while at < len(words):
        if words[at:at + 2] in ("--", "-."):
            dash, at = words[at:at + 2], at + 2
        elif words[at] in "-:":
            dash, at = words[at], at + 1
        elif words[at] == "C" and words[at + 1:at + 2].isdigit():
            found, at = words[at:at + 2], at + 2
        elif words[at] in "bgrcmykw":
            found, at = words[at], at + 1
        elif words[at] in MARKERS:
            point, at = words[at], at + 1
        else:
            raise ValueError(f"{words!r} is not a valid format string (unrecognized character {words[at]!r})")
    return found, point, dash


def marker_of(value):
    if value is None or value in ("None", "none", "", " "):
        return ""
    if value not in MARKERS:
        raise ValueError(f"the marker {value!r} {ELSEWHERE}")
    return value


# The default colormap.
usual_map = ["viridis"]


def map_name(cmap):
    cmap = usual_map[0] if cmap is None else cmap
    name = cmap if isinstance(cmap, str) else getattr(cmap, "name", "")
    if not _kernel.has_map(name):
        raise ValueError(f"the colormap {name!r} {ELSEWHERE}; there are {', '.join(_kernel.maps())}")
    return name


def shades(values, cmap, low, high, norm=None):
    """Describes numbers that a colormap turns into colors."""
    if norm is not None:
        log = getattr(norm, "_log", None)
        if log is None:
            raise ValueError(f"the norm {type(norm).__name__} {ELSEWHERE}")
        low, high = norm.vmin if low is None else low, norm.vmax if high is None else high
    log = norm is not None and norm._log
    held = column(values)
    seen = span([one for one in values if one > 0] if log else held) or [1.0 if log else 0.0, 1.0]
    return {"values": held, "low": float(seen[0] if low is None else low),
            "high": float(seen[1] if high is None else high), "map": map_name(cmap), "log": log}


def nice_levels(low, high, count):
    """Returns about `count` round levels, from below the lowest to above the highest value."""
    if not high > low:
        return [low - 0.5, low + 0.5]
    rough = (high - low) / count
    ten = 10.0 ** _math.floor(_math.log10(rough))
    step = next(part * ten for part in (1, 2, 2.5, 5, 10, 20) if part * ten >= rough * 0.9999)
    first = _math.floor(low / step + 1e-9)
    last = _math.ceil(high / step - 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]


class Handle:
    """Result of a drawing call: enough to name it in a legend and to change its appearance."""

    def __init__(self, mark, axes=None, others=()):
        self._mark, self._axes, self._others = mark, axes, list(others)

    axes = property(lambda self: self._axes)

    def set_label(self, label):
        self._mark["label"] = str(label)

    def get_label(self):
        return self._mark.get("label", "")

    def set_color(self, value):
        for mark in (self._mark, *self._others):
            if "colors" in mark:
                mark["colors"] = [color(value)]
            else:
                mark["color"] = color(value)

    set_facecolor = set_fc = set_color

    def get_color(self):
        return self._mark.get("color", (self._mark.get("colors") or [None])[0])

    get_facecolor = get_color

    def set_edgecolor(self, value):
        self._mark["edge"] = color(value)

    set_ec = set_edgecolor

    def set_alpha(self, value):
        self._mark["alpha"] = alpha_of(value)

    def set_linewidth(self, value):
        self._mark["width"] = float(value)

    set_lw = set_linewidth

    def set_linestyle(self, value):
        self._mark["dash"] = dash_of(value)

    set_ls = set_linestyle

    def set_marker(self, value):
        self._mark["marker"] = marker_of(value)

    def set_hatch(self, value):
        self._mark["hatch"] = value or ""

    def set_zorder(self, value):
        self._mark["order"] = float(value)

    def set_data(self, x, y):
        self._mark["x"], self._mark["y"] = column(numbers(x)), column(numbers(y))

    def get_xdata(self):
        return listed(self._mark["x"])

    def get_ydata(self):
        return listed(self._mark["y"])

    def set_text(self, text):
        self._mark["text"] = str(text)

    def set_clim(self, low=None, high=None):
        scale = self._mark.get("shades") or self._mark.get("values")
        scale["low"], scale["high"] = float(low), float(high)

    def get_height(self):
        return self._mark["height"][0]

    def remove(self):
        for mark in (self._mark, *self._others):
            if self._axes is not None and mark in self._axes._said["marks"]:
                self._axes._said["marks"].remove(mark)

    def set(self, **options):
        for name, value in options.items():
            getattr(self, f"set_{name}")(value)

    def __getattr__(self, name):
        raise AttributeError(f"{name} of what was drawn {ELSEWHERE}")


class Bar(Handle):
    """One rectangle of a bar call."""

    def __init__(self, mark, axes, at):
        super().__init__(mark, axes)
        self._at = at

    def _of(self, name):
        return listed(self._mark[name])[self._at]

    def get_x(self):
        return self._of("x")

    def get_y(self):
        return self._of("y")

    def get_width(self):
        return self._of("width")

    def get_height(self):
        return self._of("height")

    def set_color(self, value):
        count = len(self._mark["x"])
        have = self._mark["colors"]
        self._mark["colors"] = [have[at % len(have)] for at in range(count)]
        self._mark["colors"][self._at] = color(value)

    set_facecolor = set_fc = set_color


class Bars(list):
    """The rectangles of a bar call."""

    _mark = None
    errorbar = None
    patches = property(lambda self: self)

    def set_label(self, label):
        self._mark["label"] = str(label)

    def get_label(self):
        return self._mark["label"]
