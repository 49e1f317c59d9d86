# Shows figures and data frames natively in a Jupyter kernel of Python. The bridge runs it silently right after the
# kernel starts, in a namespace of its own, joined with `engine/python/src/frames.py`. `BACKEND_SOURCE` is the text of
# `matplotlib_backend.py` in that folder. It imports neither matplotlib nor pandas, and changes nothing that other
# programs of the user see: no file, no environment variable.

import importlib.machinery
import sys

_BACKEND = "tracebook_backend"
# Backends that ipykernel selects for users who select none.
_DEFAULT_BACKENDS = ("inline", "module://matplotlib_inline.backend_inline")
# Oldest matplotlib versions for this backend; with older ones, figures stay as IPython shows them. The second is the
# oldest that supports IPython 9.
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
        """Returns the spec of matplotlib with a loader that calls `_choose_backend` after the import."""
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
        except Exception:  # there is no matplotlib, or its loader can't be wrapped
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
    """Selects this backend unless the user has selected one. A later choice of theirs applies as usual."""
    try:
        chosen = dict.__getitem__(matplotlib.rcParams, "backend")
        is_new_ipython = sys.modules["IPython"].version_info[0] >= 9
        oldest = _OLDEST_MATPLOTLIB_FOR_IPYTHON_9 if is_new_ipython else _OLDEST_MATPLOTLIB
        if chosen in _DEFAULT_BACKENDS and matplotlib.__version_info__[:2] >= oldest:
            matplotlib.rcParams["backend"] = "module://" + _BACKEND
    except Exception:
        pass


def _become_default(module, shell):
    """Makes the module of a backend that can't be used work like IPython's."""
    import matplotlib
    from matplotlib_inline import backend_inline

    module.__dict__.pop("__getattr__", None)
    module.__dict__.update({name: value for name, value in vars(backend_inline).items() if not name.startswith("__")})
    matplotlib.interactive(True)
    backend_inline.configure_inline_support(shell, _DEFAULT_BACKENDS[-1])


def _frame_bundle(value, **options):
    """Returns a data frame as a table for the window, in addition to the representations that IPython finds."""
    own = getattr(type(value), "_repr_mimebundle_", None)
    if own is not None:
        return own(value, **options)
    try:
        table = _frame_table(value)
    except Exception:  # its other representations remain
        table = None
    if table is None:
        return None
    text, shown, rows = table
    return {"text/csv": text}, _cut_metadata(value, shown, rows)


def _set_up(shell):
    sys.meta_path.insert(0, _Finder(shell))
    loaded = sys.modules.get("matplotlib")
    # The user's kernel startup code may have imported matplotlib. Without a backend yet, it would take the default one.
    if loaded is not None and "matplotlib_inline.backend_inline" not in sys.modules:
        _choose_backend(loaded)
    # The bridge asks for the rest of a table by this.
    shell._tracebook_frame_rows = _frame_rows
    bundles = shell.display_formatter.mimebundle_formatter
    names = [(module, "DataFrame") for module in ("pandas", "pandas.core.frame", "polars", "polars.dataframe.frame")]
    for module, name in [*names, ("pyarrow.lib", "Table"), ("pyarrow.lib", "RecordBatch")]:
        if bundles.for_type_by_name(module, name) is None:
            bundles.for_type_by_name(module, name, _frame_bundle)


if "IPython" in sys.modules:
    _shell = sys.modules["IPython"].get_ipython()
    if _shell is not None:
        _set_up(_shell)
