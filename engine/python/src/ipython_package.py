"""IPython for cells of the built-in Python: `IPython.display`, which is `ipython.py`, and what notebooks set of the shell."""

import builtins as _builtins
import sys as _sys
from types import ModuleType as _Module

import _tracebook_ipython as display

__path__ = []
__version__ = "9.0.0"
version_info = (9, 0, 0, "")
get_ipython = _builtins.get_ipython


class InteractiveShell:
    """What notebooks set of IPython's shell: which expressions of a cell are shown."""

    ast_node_interactivity = "last_expr"

    @classmethod
    def instance(cls):
        return cls


def _module(name, **members):
    made = _Module(f"IPython.{name}")
    made.__dict__.update(members)
    _sys.modules[made.__name__] = made
    return made


display.__name__ = "IPython.display"
core = _module(
    "core", __path__=[], display=display, getipython=_module("core.getipython", get_ipython=get_ipython),
    interactiveshell=_module("core.interactiveshell", InteractiveShell=InteractiveShell),
)
lib = _module("lib", __path__=[], display=display)
_sys.modules.update({"IPython.core.display": display, "IPython.display": display, "IPython.lib.display": display})
