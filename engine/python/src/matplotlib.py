"""matplotlib for cells: `import matplotlib.pyplot` is `pyplot.py` beside this file; the rest is not here."""

import sys as _sys

import _tracebook_pyplot as pyplot

__path__ = []
__version__ = "3.10 (Tracebook's part of it)"
rcParams = pyplot.rcParams
_sys.modules["matplotlib.pyplot"] = pyplot
pyplot.__name__ = "matplotlib.pyplot"


def use(backend, **options):
    """Accepted: figures are shown below their cell."""


def __getattr__(name):
    raise AttributeError(f"matplotlib.{name} {pyplot._ELSEWHERE}")
