# Makes figures and data frames native in a Jupyter kernel of Python. The bridge runs it unseen right after the kernel's
# start, in a namespace of its own, joined with `engine/python/src/frames.py`; `BACKEND_SOURCE` is the text of
# `matplotlib_backend.py` there. It imports neither matplotlib nor pandas, and changes nothing that other programs of
# the user see: no file, no variable of the environment.

import importlib.machinery
import sys

_BACKEND = "tracebook_backend"
# What ipykernel chooses for those who choose nothing.
_DEFAULT_BACKENDS = ("inline", "module://matplotlib_inline.backend_inline")
# With an older one, figures stay as IPython shows them; the second one is the oldest that knows IPython 9.
_OLDEST_MATPLOTLIB = (3, 7)
_OLDEST_MATPLOTLIB_FOR_IPYTHON_9 = (3, 9)


class _Finder:
    """Finds the backend for matplotlib, and notices when a cell imports matplotlib."""

    def __init__(self, shell):
        self._shell = shell

    def find_spec(self, name, path=None, target=None):
        if name == _BACKEND:
            return importlib.machinery.ModuleSpec(name, self, origin="Tracebook")
        return self._observed(name, path, target) if name == "matplotlib" else None

    def _observed(self, name, path, target):
        """The specification of matplotlib, whose loader tells once it's there."""
        spec = None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None and spec is None:
                spec = find(name, path, target)
        try:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                _choose_backend(module)

            spec.loader.exec_module = exec_module
        except Exception:  # there is no matplotlib, or none that can be observed
            pass
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        try:
            exec(compile(BACKEND_SOURCE, "<tracebook>", "exec"), module.__dict__)
            module.install_in_shell(self._shell)
        except Exception:  # a matplotlib that works differently
            _become_default(module, self._shell)


def _choose_backend(matplotlib):
    """Makes this the backend unless the user has chosen one. Their later choice counts, as always."""
    try:
        chosen = dict.__getitem__(matplotlib.rcParams, "backend")
        is_new_ipython = sys.modules["IPython"].version_info[0] >= 9
        oldest = _OLDEST_MATPLOTLIB_FOR_IPYTHON_9 if is_new_ipython else _OLDEST_MATPLOTLIB
        if chosen in _DEFAULT_BACKENDS and matplotlib.__version_info__[:2] >= oldest:
            matplotlib.rcParams["backend"] = "module://" + _BACKEND
    except Exception:
        pass


def _become_default(module, shell):
    """Makes a module that can't be the backend work like IPython's."""
    import matplotlib
    from matplotlib_inline import backend_inline

    module.__dict__.pop("__getattr__", None)
    module.__dict__.update({name: value for name, value in vars(backend_inline).items() if not name.startswith("__")})
    matplotlib.interactive(True)
    backend_inline.configure_inline_support(shell, _DEFAULT_BACKENDS[-1])


def _frame_bundle(value, **options):
    """A data frame as a table of the window, beside the forms that IPython finds."""
    own = getattr(type(value), "_repr_mimebundle_", None)
    if own is not None:
        return own(value, **options)
    try:
        table = _frame_table(value)
    except Exception:  # it has its other forms
        table = None
    if table is None:
        return None
    text, shown, rows = table
    return {"text/csv": text}, {"text/csv": {"rows": shown, "all_rows": rows}} if shown < rows else {}


def _set_up(shell):
    sys.meta_path.insert(0, _Finder(shell))
    loaded = sys.modules.get("matplotlib")
    # Imported by what the user starts kernels with; if it has no backend yet, it would take the default.
    if loaded is not None and "matplotlib_inline.backend_inline" not in sys.modules:
        _choose_backend(loaded)
    bundles = shell.display_formatter.mimebundle_formatter
    for module in ("pandas", "pandas.core.frame", "polars", "polars.dataframe.frame"):
        if bundles.for_type_by_name(module, "DataFrame") is None:
            bundles.for_type_by_name(module, "DataFrame", _frame_bundle)


if "IPython" in sys.modules:
    _shell = sys.modules["IPython"].get_ipython()
    if _shell is not None:
        _set_up(_shell)
