"""matplotlib for cells. `matplotlib.pyplot` is `pyplot.py` beside this file. Errors name what isn't supported."""

import math as _math
import sys as _sys
from types import ModuleType as _Module

import _tracebook_kernel as _kernel
import _tracebook_pyplot as pyplot

__path__ = []
__version__ = "3.10 (Tracebook's part of it)"
rcParams = pyplot.rcParams
style = pyplot.style
rc = pyplot.rc
_sys.modules["matplotlib.pyplot"] = pyplot
pyplot.__name__ = "matplotlib.pyplot"
from _tracebook_drawing import color as _color  # noqa: E402
from _tracebook_drawing import column as _column  # noqa: E402
from _tracebook_drawing import map_name as _map_name  # noqa: E402
from _tracebook_drawing import numbers as _numbers  # noqa: E402


def use(backend, **options):
    """Accepted: figures are shown below their cell."""


def _module(name, **members):
    made = _Module(f"matplotlib.{name}")
    made.__dict__.update(members)

    def missing(member):
        raise AttributeError(f"matplotlib.{name}.{member} {pyplot._ELSEWHERE}")

    made.__getattr__ = missing
    _sys.modules[made.__name__] = made
    return made


# Colormaps and norms.


class Normalize:
    """The ends of a scale of colours."""

    _log = False

    def __init__(self, vmin=None, vmax=None, clip=False):
        self.vmin, self.vmax = vmin, vmax

    def __call__(self, value):
        bent = _math.log if self._log else float
        low, high = bent(self.vmin), bent(self.vmax)
        if hasattr(value, "__iter__"):
            import numpy as np

            return np.array([(bent(one) - low) / (high - low) for one in _numbers(value)])
        return (bent(value) - low) / (high - low)


class LogNorm(Normalize):
    """The ends of a logarithmic scale of colours."""

    _log = True


class Colormap:
    """A scale of colours: called with shares from 0 to 1 (or whole numbers) it gives colours."""

    def __init__(self, name, N=256):
        self.name, self.N = _map_name(name), _kernel.map_size(_map_name(name))

    def __call__(self, value, alpha=None):
        if hasattr(value, "__iter__"):
            return [self(one) for one in value]
        share = (value + 0.5) / self.N if isinstance(value, int) and not isinstance(value, bool) else float(value)
        return (*(one / 255 for one in _kernel.shade(self.name, share)), 1.0 if alpha is None else alpha)

    @property
    def colors(self):
        return [self(at) for at in range(self.N)]

    def reversed(self):
        return Colormap(self.name.removesuffix("_r") if self.name.endswith("_r") else self.name + "_r")

    def resampled(self, count):
        return self


class _Maps(dict):
    def __getitem__(self, name):
        return Colormap(name)

    def __iter__(self):
        return iter(_kernel.maps())

    def get_cmap(self, name):
        return Colormap(name)


class _ScalarMappable:
    def __init__(self, norm=None, cmap=None):
        raise TypeError(f"matplotlib.cm.ScalarMappable {pyplot._ELSEWHERE}")


colormaps = _Maps()
colors = _module("colors", Normalize=Normalize, LogNorm=LogNorm, Colormap=Colormap,
                 to_hex=lambda value, keep_alpha=False: pyplot._hex(value),
                 to_rgb=lambda value: tuple(int(pyplot._hex(value)[at:at + 2], 16) / 255
                                            for at in (1, 3, 5)))
cm = _module("cm", get_cmap=Colormap, ScalarMappable=_ScalarMappable, **{
    name: Colormap(name) for name in _kernel.maps()})
pyplot.cm = cm
pyplot.colormaps = colormaps
pyplot.Normalize = Normalize


# Formatters and locators of ticks.


class _Form:
    def __init__(self, form):
        self._form = form


class PercentFormatter(_Form):
    """Shares as per cent."""

    def __init__(self, xmax=100, decimals=None, symbol="%", **options):
        if xmax not in (1, 100):
            raise ValueError(f"PercentFormatter({xmax}) {pyplot._ELSEWHERE}")
        places = 0 if decimals is None else decimals
        self._form = f"{{x:.{places}%}}" if xmax == 1 else f"{{x:.{places}f}}{symbol}"


class FuncFormatter:
    """Not supported: ticks are formatted where the figure is viewed, and there is no Python there."""

    def __init__(self, function):
        raise TypeError(f"matplotlib.ticker.FuncFormatter {pyplot._ELSEWHERE}; a form such as '{{x:.1f}}' is")


class MultipleLocator:
    """Ticks at multiples."""

    def __init__(self, base=1.0, offset=0.0):
        self._base = float(base)

    def _locate(self, low, high):
        count = (high - low) / self._base
        if count > 200:
            raise RuntimeError(f"MultipleLocator({self._base:g}) makes {count:.0f} ticks")
        first = _math.ceil(low / self._base - 1e-9)
        return [first * self._base + at * self._base for at in range(int(count + 1e-9) + 1)
                if first * self._base + at * self._base <= high * (1 + 1e-12) + 1e-12]


class MaxNLocator:
    """About this many ticks; whole numbers if requested."""

    def __init__(self, nbins=None, integer=False, **options):
        self._count, self._whole = nbins if isinstance(nbins, int) else 8, integer

    def _locate(self, low, high):
        from _tracebook_drawing import nice_levels

        ticks = [one for one in nice_levels(low, high, self._count) if low <= one <= high]
        if self._whole:
            step = max(1, _math.ceil((high - low) / self._count))
            ticks = [float(at) for at in range(_math.ceil(low / step) * step, _math.floor(high) + 1, step)]
        return ticks


class FixedLocator:
    """Ticks at these places."""

    def __init__(self, locs, nbins=None):
        self._places = [float(one) for one in locs]

    def _locate(self, low, high):
        return self._places


class NullLocator:
    """No ticks."""

    def _locate(self, low, high):
        return []


class AutoLocator:
    """The default ticks."""

    def _locate(self, low, high):
        return None


AutoMinorLocator = LogLocator = AutoLocator
ticker = _module("ticker", PercentFormatter=PercentFormatter, FuncFormatter=FuncFormatter,
                 StrMethodFormatter=_Form, FormatStrFormatter=_Form, MultipleLocator=MultipleLocator,
                 MaxNLocator=MaxNLocator, FixedLocator=FixedLocator, NullLocator=NullLocator, AutoLocator=AutoLocator,
                 AutoMinorLocator=AutoMinorLocator, LogLocator=LogLocator,
                 NullFormatter=lambda: _Form("{x:.0}"), ScalarFormatter=lambda *args, **options: _Form(""))
gridspec = _module("gridspec", GridSpec=pyplot.GridSpec)
pyplot.MaxNLocator, pyplot.MultipleLocator = MaxNLocator, MultipleLocator


# Patches and lines that are added to axes, or only shown in a legend.


class _Patch(pyplot._Handle):
    def __init__(self, x, y, color=None, facecolor=None, fc=None, edgecolor=None, ec=None, alpha=None, label="",
                 fill=True, linewidth=None, lw=None, zorder=None, hatch=None, linestyle=None, ls=None, angle=0, **options):
        pyplot._refuse("patch", options)
        first = next((one for one in (color, facecolor, fc) if one is not None), "C0")
        edge = next((one for one in (edgecolor, ec, color) if one is not None), None)
        mark = {"kind": "polygons", "x": _column(x), "y": _column(y), "colors": [_color(first) if fill else "none"],
                "values": None, "edge": _color(edge) or ("#000000" if not fill else ""),
                "alpha": 1.0 if alpha is None else float(alpha), "label": str(label or "")}
        if zorder is not None:
            mark["order"] = float(zorder)
        super().__init__(mark)

    def _put(self, axes):
        self._axes = axes
        axes._said["marks"].append(self._mark)


class Patch(_Patch):
    """A swatch for a legend."""

    def __init__(self, **options):
        super().__init__([], [], **options)


class Rectangle(_Patch):
    """A rectangle from its lower left corner."""

    def __init__(self, xy, width, height, **options):
        (x, y), width, height = map(float, xy), float(width), float(height)
        super().__init__([x, x + width, x + width, x], [y, y, y + height, y + height], **options)


class Polygon(_Patch):
    """Corners, joined."""

    def __init__(self, xy, closed=True, **options):
        points = [tuple(map(float, one)) for one in xy]
        super().__init__([a for a, _ in points], [b for _, b in points], **options)


class Ellipse(_Patch):
    """An ellipse around its middle."""

    def __init__(self, xy, width, height, angle=0, **options):
        x, y = map(float, xy)
        turn = _math.radians(angle)
        ring = [(width / 2 * _math.cos(at * _math.tau / 96), height / 2 * _math.sin(at * _math.tau / 96))
                for at in range(96)]
        super().__init__([x + a * _math.cos(turn) - b * _math.sin(turn) for a, b in ring],
                         [y + a * _math.sin(turn) + b * _math.cos(turn) for a, b in ring], **options)


class Circle(Ellipse):
    """A circle around its middle."""

    def __init__(self, xy, radius=5, **options):
        super().__init__(xy, 2 * radius, 2 * radius, **options)


class Line2D(pyplot._Handle):
    """A line for a legend."""

    def __init__(self, xdata, ydata, color=None, lw=None, linewidth=None, linestyle=None, ls=None, marker=None,
                 markersize=None, ms=None, markerfacecolor=None, label="", alpha=None, **options):
        from _tracebook_drawing import dash_of, marker_of

        pyplot._refuse("Line2D", options, ("markeredgecolor", "mec", "mfc"))
        super().__init__({"kind": "line", "x": [], "y": [], "color": _color(color) or "C0",
                          "width": float(lw or linewidth or 1.6), "dash": dash_of(linestyle or ls or "-"),
                          "marker": marker_of(marker), "size": float(markersize or ms or 6.0),
                          "face": _color(markerfacecolor) or "", "alpha": 1.0 if alpha is None else float(alpha),
                          "label": str(label or "")})


patches = _module("patches", Patch=Patch, Rectangle=Rectangle, Polygon=Polygon, Ellipse=Ellipse, Circle=Circle)
lines = _module("lines", Line2D=Line2D)
pyplot.Rectangle, pyplot.Circle, pyplot.Polygon, pyplot.Line2D = Rectangle, Circle, Polygon, Line2D
figure = _module("figure", Figure=pyplot.Figure)
axes = _module("axes", Axes=pyplot.Axes)


def __getattr__(name):
    raise AttributeError(f"matplotlib.{name} {pyplot._ELSEWHERE}")
