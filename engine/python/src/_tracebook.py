"""Environment of cells in the built-in kernel: streams, display, input, and how values and errors are shown.

Frozen into the kernel as the module `_tracebook` and imported once when the kernel starts. `interpreter.rs` calls
`register`, `bundle` and `explain`. Imports that only some cells need are inside the functions that need them, because
every start pays for each import at the top.
"""

import builtins
import io
import linecache
import sys

import _tracebook_kernel as kernel

# Frames of this file aren't the user's and are never shown.
_OWN = (lambda: 0).__code__.co_filename

# Nor are frames of the modules that replace large libraries.
_OURS = ("numpy", "matplotlib", "matplotlib.pyplot", "_tracebook_axes", "_tracebook_axes_base", "_tracebook_drawing")

# Longer reprs and traceback lines are cut: nobody reads them, and every window would have to lay them out.
_TEXT_LIMIT = 1 << 20
_LINE_LIMIT = 2_000
_WORDS_LIMIT = 10_000
_TRACEBACK_LIMIT = 200
# Entries of a traceback that are formatted.
_ENTRIES_LIMIT = 2_000

# Advice added to the error when a cell imports a module that this Python doesn't have.
_OTHERS = (
    "the built-in Python doesn't have it; make an environment that does with `tracebook kernels env NOTE --add {name}`, "
    "or choose a Jupyter kernel with `tracebook kernels NOTE --use KERNEL`"
)
_IN_SCIENCE = (
    "the built-in Python doesn't have it; the science pack does: `tracebook run NOTE --kernel science` "
    "(`tracebook kernels install science` brings it), or make an environment with "
    "`tracebook kernels env NOTE --add {name}`"
)
_STANDARD = (
    "the built-in Python doesn't have this part of the standard library; an environment does: "
    "`tracebook kernels env NOTE`"
)
# Package names in the package index, where they differ from the module's name.
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
# The modules of the science pack, as in engine/science/pack/src/modules.rs, where a test compares them.
_SCIENCE = frozenset(
    """
    PIL attr attrs bs4 charset_normalizer cloudpickle contourpy cycler dateutil defusedxml et_xmlfile fontTools
    formulaic html5lib interface_meta isympy jinja2 joblib kiwisolver lxml markupsafe matplotlib more_itertools
    mpl_toolkits mpmath narwhals networkx numpy openpyxl packaging pandas patsy pylab pyparsing pypdf regex reportlab
    scipy seaborn six sklearn soupsieve statsmodels sympy tabulate threadpoolctl tlz tomli_w toolz tqdm
    typing_extensions tzdata webencodings wrapt xlrd xlsxwriter xmltodict yaml
    """.split()
)

# Maximum number of runs whose sources are kept for tracebacks.
_SOURCES_LIMIT = 1000


class _Output(io.TextIOBase):
    """`sys.stdout` or `sys.stderr`. Writing is a native function, so it's fast and adds no frame of ours."""

    encoding = "utf-8"
    errors = "replace"
    mode = "w"

    def __init__(self, name, write):
        self.name = name
        self.write = write
        self.flush = kernel.flush

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        raise io.UnsupportedOperation("fileno")

    def reconfigure(self, **options):
        """Does nothing: programs call it to ask for UTF-8, which is the only encoding here."""


class _Input(io.TextIOBase):
    encoding = "utf-8"
    errors = "strict"
    mode = "r"
    name = "<stdin>"

    def readable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        raise io.UnsupportedOperation("fileno")

    def readline(self, size=-1, /):
        try:
            return kernel.ask("", False) + "\n"
        except EOFError:
            return ""

    def read(self, size=-1, /):
        return self.readline()


def input(prompt="", /):
    """Ask for a line of text, below the cell or in the terminal."""
    return kernel.ask(str(prompt), False)


def display(*values, raw=False, metadata=None):
    """Show values below the cell, each in its richest form.

    raw: the values are dictionaries from MIME type to data, shown as they are.
    metadata: a dictionary that is sent along.
    """
    for value in values:
        data, about = (_texts(value), {}) if raw else _forms(value)
        kernel.display(data, _json({**about, **(metadata or {})}))


def table(rows, columns=None):
    """Rows as a table that can be sorted, filtered and copied: what a cell ends in, or displays.

    rows: dictionaries, sequences, a dictionary of columns, an array, a database's cursor.
    columns: the names of the columns.
    """
    from _tracebook_displays import Table

    return Table(rows, columns)


def progress(over=None, total=None, title=""):
    """A bar below the cell: `for x in progress(xs)`, or `with progress(total=10) as bar: bar.update()`."""
    from _tracebook_displays import Progress

    return Progress(over, total, title)


def exit(code=None):
    """Stop this cell. The kernel and its variables stay."""
    raise SystemExit(code)


def get_ipython():
    """There is no shell of IPython's."""
    return None


def help(*subject):
    """Print what is known about an object, or about what a text names."""
    import pydoc

    if not subject:
        print("help(object) prints what is known about the object.")
        return
    try:
        print(pydoc.render_doc(*subject, title="Help on %s:", renderer=pydoc.plaintext))
    except ImportError as error:
        print(error)


_loop = None


def awaited(coroutine):
    """Run a cell that awaits something, in the loop in which all such cells run."""
    global _loop
    import asyncio

    if _loop is None or _loop.is_closed():
        _loop = asyncio.new_event_loop()
    asyncio.set_event_loop(_loop)
    task = _loop.create_task(coroutine)
    try:
        return _loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        try:
            _loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        raise


# Method and MIME type. Every representation that an object has is sent; the window picks the richest that it can draw.
_HOOKS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
)


def bundle(value):
    """The forms of a value as ({MIME type: text}, metadata as JSON)."""
    data, about = _forms(value)
    return data, _json(about)


def _forms(value):
    data, about = {}, {}
    kind = type(value)
    # Look methods up on the type: an object that answers to every name (a mock, a proxy) has none of its own.
    for name, mime in (("_repr_mimebundle_", None), *_HOOKS):
        hook = getattr(kind, name, None)
        if hook is None or mime in data:
            continue
        try:
            form = hook(value)
        except NotImplementedError:
            continue
        except Exception as error:
            # Report the error, and keep the object's other representations.
            kernel.write_stderr("\n".join(explain(error)[2]) + "\n")
            continue
        if form is None:
            continue
        more = None
        if isinstance(form, tuple) and len(form) == 2:
            form, more = form
        if mime is None:
            data.update(form)
            about.update(more or {})
        else:
            data[mime] = form
            if more:
                about[mime] = more
    if "text/plain" not in data:
        text = repr(value)
        if len(text) > _TEXT_LIMIT:
            text = f"{text[:_TEXT_LIMIT]}\n... {len(text) - _TEXT_LIMIT} characters left out"
        data["text/plain"] = text
    return _texts(data), about


def _texts(data):
    return {str(mime): _text(mime, form) for mime, form in data.items()}


def _text(mime, form):
    if isinstance(form, str):
        return form
    if isinstance(form, (bytes, bytearray, memoryview)):
        import base64

        return base64.b64encode(form).decode("ascii")
    if mime == "application/json" or mime.endswith("+json"):
        return _json(form)
    return str(form)


def _json(value):
    if not value and isinstance(value, dict):
        return "{}"
    import json

    return json.dumps(value, default=str)


def shows_all():
    """Returns whether a cell set IPython's shell to show all expressions of cells, not only the last."""
    module = sys.modules.get("IPython.core.interactiveshell")
    return module is not None and module.InteractiveShell.ast_node_interactivity == "all"


def show(value):
    """Shows the value of an expression before the last."""
    if value is not None:
        kernel.display(*bundle(value))


def finish(value):
    """Shows the figures that a cell drew. Returns whether its value needs no display of its own."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot is not None and pyplot._after_cell(value)


# `_runs` maps the file name of a run to the label of its cell; `_newest` maps a label to its newest file name.
_runs = {}
_newest = {}


def register(label, run, source):
    """Give a run of a cell a file name of its own, under which tracebacks find the lines that ran, not newer ones."""
    name = f"{label} [{run}]"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    _runs[name] = label
    _newest[label] = name
    if len(_runs) > _SOURCES_LIMIT:
        oldest = next(iter(_runs))
        del _runs[oldest]
        linecache.cache.pop(oldest, None)
    return name


def _shown(name):
    label = _runs.get(name)
    if label is None:
        return name
    return label if _newest[label] == name else f"{label} (an earlier run)"


def _lacks(name):
    """Returns whether neither this Python nor the note's folder has the top-level module of `name`.

    False if the module exists but lacks a part of its own.
    """
    top = (name or "").partition(".")[0]
    if not top or top in sys.modules:
        return False
    import importlib.util

    try:
        return importlib.util.find_spec(top) is None
    except (ImportError, ValueError):
        return False


def _shorten(error):
    """Cuts the middle out of very long tracebacks, and returns how many entries that were.

    Formatting the entries of an endless recursion, a million, would take minutes.
    """
    cut, found, seen = 0, [error], set()
    while found:
        error = found.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        found += [error.__cause__, error.__context__]
        if isinstance(error, BaseExceptionGroup):
            found += error.exceptions
        ahead = last = error.__traceback__
        count = 0
        while ahead is not None:
            ahead = ahead.tb_next
            count += 1
        extra = count - _ENTRIES_LIMIT
        if extra > 0:
            for _ in range(_ENTRIES_LIMIT // 2 - 1):
                last = last.tb_next
            rest = last
            for _ in range(extra):
                rest = rest.tb_next
            last.tb_next = rest.tb_next
            cut += extra
    return cut


def explain(error):
    """Returns an exception as (name of its class, message, lines of its traceback)."""
    import traceback

    hidden = {_OWN}
    for name in _OURS:
        if name in sys.modules:
            hidden.add(sys.modules[name].__getattr__.__code__.co_filename)
    if "_tracebook_commands" in sys.modules:
        hidden.add(sys.modules["_tracebook_commands"].refuse.__code__.co_filename)
    cut = _shorten(error)
    report = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    parts = [report]
    while parts:
        part = parts.pop()
        # Frames that lead to the cell (the event loop of a cell that awaits) aren't the user's either.
        first = next((at for at, frame in enumerate(part.stack) if frame.filename in _runs), 0)
        part.stack[:] = [frame for frame in part.stack[first:] if frame.filename not in hidden]
        for frame in part.stack:
            frame.filename = _shown(frame.filename)
        if part._is_syntax_error:
            # Errors that only compiling finds (a `return` outside a function) come without their source line.
            if part.text is None and part.lineno is not None:
                part.text = linecache.getline(part.filename, int(part.lineno))
            part.filename = _shown(part.filename)
        parts += filter(None, (part.__cause__, part.__context__, *(part.exceptions or ())))
    if isinstance(error, PermissionError) and kernel.walls():
        report._str = f"{report._str} ({kernel.walls()})"
    if isinstance(error, ModuleNotFoundError) and _lacks(error.name):
        top = error.name.partition(".")[0]
        words = _IN_SCIENCE if top in _SCIENCE else _OTHERS
        if top in sys.stdlib_module_names:
            words = _STANDARD
        report._str = f"{report._str} ({words.format(name=_PACKAGES.get(top, top))})"
    lines = "".join(report.format()).splitlines()
    if cut:
        lines.insert(1, f"  ... {cut:,} entries left out ...")
    if len(lines) > _TRACEBACK_LIMIT:
        head, tail = _TRACEBACK_LIMIT // 4, _TRACEBACK_LIMIT // 2
        lines[head:-tail] = [f"  ... {len(lines) - head - tail} lines left out ..."]
    lines = [line if len(line) <= _LINE_LIMIT else line[:_LINE_LIMIT] + "..." for line in lines]
    # Don't call `str(error)`: the report has called it already, and a cell's own `__str__` may be slow.
    words = report._str
    if report._is_syntax_error and error.filename in _runs:
        words = words.replace(error.filename, _shown(error.filename))
    return type(error).__name__, words[:_WORDS_LIMIT], lines


try:
    import posix

    # Where `zoneinfo` finds time zones. Builds of CPython know this from their configuration.
    posix.environ.setdefault(b"PYTHONTZPATH", b"/usr/share/zoneinfo")
except ImportError:  # on Windows, no folder has them
    pass

sys.stdout = sys.__stdout__ = _Output("<stdout>", kernel.write_stdout)
sys.stderr = sys.__stderr__ = _Output("<stderr>", kernel.write_stderr)
sys.stdin = sys.__stdin__ = _Input()
sys.argv = [""]
# No program can be started as Python: `sys.executable` would be the notebook program itself.
sys.executable = sys._base_executable = ""

for _name in (display, exit, get_ipython, help, input, progress, table):
    setattr(builtins, _name.__name__, _name)
builtins.quit = exit
