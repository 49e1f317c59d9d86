"""IPython for cells of the built-in Python: only `IPython.display`, which is `ipython.py` beside this file."""

import sys as _sys
from types import ModuleType as _Module

import _tracebook_ipython as display

__path__ = []
__version__ = "9.0.0"
version_info = (9, 0, 0, "")


def get_ipython():
    """There is no shell of IPython's."""
    return None


core = _Module("IPython.core")
core.__path__ = []
core.display = display
display.__name__ = "IPython.display"
_sys.modules.update({"IPython.core": core, "IPython.core.display": display, "IPython.display": display})
