"""Runs a note's cells in CPython: in a process of its own, or inside WebAssembly.

The built-in kernel doesn't use it, but `_tracebook.py`. `lib.rs` joins this file with those that both share
(`introspection.py`, `displays.py`, `variables.py`, `getpass.py`) and with `frames.py` as `CPYTHON_HARNESS`. The program
that embeds it creates one `Cells(send, ask)` and passes requests to it; what cells print and show is sent through
`send`. It works from Python 3.9 on, and without threads, signals, sockets or processes. Imports that only some cells
need are inside functions, because WebAssembly pays for each import at its start.
"""

import builtins
import codecs
import io
import linecache
import sys
import time
import types
from _weakref import ref as _weak

try:
    from _thread import RLock as _Lock
except ImportError:

    class _Lock:
        """Does nothing: without threads, no lock is needed."""

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None


# Frames of this file aren't the user's and are never shown.
_OWN = (lambda: 0).__code__.co_filename

# Longer reprs and traceback lines are cut: nobody reads them, and every window would have to lay them out.
_TEXT_LIMIT = 1 << 20
_LINE_LIMIT = 2_000
_WORDS_LIMIT = 10_000
_TRACEBACK_LIMIT = 200
# Longer representations of a value (in characters) aren't sent: a kernel's messages are limited to 64 MiB.
_FORM_LIMIT = 32 << 20
# Containers with more items than this are cut before they become text.
_ITEMS_LIMIT = 20_000
_ITEMS_SHOWN = 1_000
# Maximum depth of containers in a container of formulas.
_FORMULA_DEPTH = 20
# Maximum number of runs whose sources are kept for tracebacks.
_SOURCES_LIMIT = 1_000
# Printed text: the number of characters sent at once, the seconds that less may wait, and the number of lines in this
# time that are sent without waiting.
_CHUNK = 4 << 10
_WAIT = 0.05
_LINES_AT_ONCE = 16
# Maximum length of one message of printed text.
_STREAM_LIMIT = 1 << 20
# Maximum number of names in a namespace that are compared before and after a cell.
_NAMES_LIMIT = 10_000

_CO_COROUTINE = 0x80
_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST
_FUTURES = 0x1FF0000  # every flag of __future__ in compiled code

# Package names in the package index, where they differ from the module's name.
_PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "pptx": "python-pptx",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}

# Libraries whose values know their shape without running the cells' code.
_SHAPED = ("numpy", "pandas", "polars", "pyarrow", "scipy", "torch", "tensorflow", "jax", "jaxlib", "cupy", "xarray")

_BUILT_IN = (list, dict, set, frozenset, tuple, bytearray)
_SMALL = (bool, int, float, complex, type(None), types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)

# Method and MIME type. Every representation that an object has is sent; the window picks the richest that it can draw.
_HOOKS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
    ("_repr_pdf_", "application/pdf"),
)

_MISSING = object()


def _clean(text):
    """Replaces halves of surrogate pairs, so that every JSON reader accepts the text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _is_json(mime):
    return mime == "application/json" or mime.endswith("+json")


def _as_json(value):
    """Returns a value as plain JSON, or as text if JSON can't represent it."""
    import json

    try:
        return json.loads(_clean(json.dumps(value, default=str, allow_nan=False, ensure_ascii=False)))
    except (ValueError, TypeError, RecursionError):
        return _clean(str(value)[:_TEXT_LIMIT])


def _form(mime, form):
    if _is_json(mime):
        if isinstance(form, str):
            import json

            try:
                form = json.loads(form)
            except ValueError:
                return _clean(form)
        return _as_json(form)
    if isinstance(form, str):
        return _clean(form)
    if isinstance(form, (bytes, bytearray, memoryview)):
        import base64

        return base64.b64encode(form).decode("ascii")
    return _clean(str(form))


def _plain_text(value):
    """Returns the repr of a value, cut if too long to read. Large containers are cut before they are converted."""
    kind = type(value)
    if kind in (str, bytes, bytearray) and len(value) > _TEXT_LIMIT:
        return f"{value[:_TEXT_LIMIT]!r}\n... {len(value) - _TEXT_LIMIT} more"
    if kind in (list, tuple, set, frozenset, dict) and len(value) > _ITEMS_LIMIT:
        import itertools

        left = len(value) - _ITEMS_SHOWN
        if kind is dict:
            head = repr(dict(itertools.islice(value.items(), _ITEMS_SHOWN)))
        else:
            head = repr(kind(itertools.islice(value, _ITEMS_SHOWN)))
        text = f"{head}\n... {left} more items"
    else:
        text = repr(value)
    if len(text) > _TEXT_LIMIT:
        text = f"{text[:_TEXT_LIMIT]}\n... {len(text) - _TEXT_LIMIT} characters left out"
    return text


def _formula_of(value):
    """Returns a list or another container of formulas as LaTeX, after sympy's `init_printing()`.

    sympy tells IPython's shell then how to show them. Here it sets Python's display hook, which cells don't use.
    """
    sympy = sys.modules.get("sympy")
    if sympy is None or getattr(sys.displayhook, "__module__", None) != "sympy.interactive.printing":
        return None
    from sympy.printing.defaults import Printable

    seen, parts = 0, [(value, 0)]
    has_formula = False
    while parts:
        part, depth = parts.pop()
        kind = type(part)
        seen += 1
        if depth > _FORMULA_DEPTH or seen > _ITEMS_SHOWN:
            return None
        if kind is dict:
            parts += ((piece, depth + 1) for pair in part.items() for piece in pair)
        elif kind in (list, tuple, set, frozenset):
            parts += ((piece, depth + 1) for piece in part)
        elif isinstance(part, Printable):
            has_formula = True
        elif kind not in (int, float):
            return None
    return f"$\\displaystyle {sympy.latex(value)}$" if has_formula else None


class _Output(io.TextIOBase):
    """`sys.stdout` or `sys.stderr`."""

    encoding = "utf-8"
    errors = "replace"
    mode = "w"
    newlines = None
    line_buffering = True

    def __init__(self, cells, name):
        self.name = f"<{name}>"
        self.buffer = _Bytes(self)
        self._cells = cells
        self._stream = name

    def write(self, text, /):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self._cells._print(self._stream, text)
        self._cells.check()
        return len(text)

    def flush(self):
        self._cells.flush()

    def close(self):
        """Does nothing: closing the output would leave the next cell without one."""

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        raise io.UnsupportedOperation("fileno")

    def reconfigure(self, **options):
        """Does nothing: programs call it to ask for UTF-8, which is the only encoding here."""


class _Bytes(io.BufferedIOBase):
    """`sys.stdout.buffer` or `sys.stderr.buffer`: bytes that a cell writes are decoded as UTF-8."""

    def __init__(self, text):
        self._text = text
        # A character may come in pieces.
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.raw = self

    def writable(self):
        return True

    def write(self, data, /):
        data = bytes(data)
        self._text.write(self._decode(data))
        return len(data)

    def flush(self):
        self._text.flush()

    def close(self):
        """Does nothing, like `_Output.close`."""


class _Input(io.TextIOBase):
    encoding = "utf-8"
    errors = "strict"
    mode = "r"
    name = "<stdin>"

    def __init__(self, cells):
        self._cells = cells

    def readable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        raise io.UnsupportedOperation("fileno")

    def readline(self, size=-1, /):
        try:
            return self._cells._question("", False) + "\n"
        except EOFError:
            return ""

    def read(self, size=-1, /):
        return self.readline()


class _Finder:
    """Finds replacement modules: the notebook's own, `getpass`, and `IPython` where it isn't installed."""

    def __init__(self, cells):
        self._cells = cells
        self._own = {"getpass": _run_getpass, "_tracebook_variables": _run_variables, "_tracebook_introspection": _run_look}
        self._own["_tracebook_displays"], self._own["_tracebook_commands"] = _run_shown, _run_commands
        self._stand_in = {
            "IPython": _run_ipython,
            "IPython.core": _run_ipython_package,
            "IPython.core.display": _run_ipython_display,
            "IPython.core.getipython": _run_getipython,
            "IPython.core.interactiveshell": _run_interactiveshell,
            "IPython.display": _run_ipython_display,
            "IPython.lib": _run_ipython_package,
            "IPython.lib.display": _run_ipython_display,
        }
        self._found = {}

    def find_spec(self, name, path=None, target=None):
        if name in self._own:
            return self._spec(name, self._own[name])
        if name in self._stand_in and not self._has_ipython():
            return self._spec(name, self._stand_in[name])
        if name == "IPython.core.display_functions" and self._has_ipython():
            return self._patched(name, path, self._show_in_note)
        if name == "asyncio.unix_events" and sys.platform == "wasi":
            return self._patched(name, path, _wait_without_sockets)
        return None

    def _spec(self, name, run):
        from importlib.machinery import ModuleSpec

        self._found[name] = run
        is_package = name in ("IPython", "IPython.core", "IPython.lib")
        return ModuleSpec(name, self, origin="Tracebook", is_package=is_package)

    def _has_ipython(self):
        known = sys.modules.get("IPython")
        if known is not None:
            return getattr(known, "__loader__", None) is not self
        return self._elsewhere("IPython", None) is not None

    def _elsewhere(self, name, path):
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path)
            if spec is not None:
                return spec
        return None

    def _patched(self, name, path, patch):
        """Returns the spec of another finder's module, which `patch` changes after it was run."""
        spec = self._elsewhere(name, path)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader

        class Loader:
            def create_module(self, spec):
                return loader.create_module(spec)

            def exec_module(self, module):
                loader.exec_module(module)
                patch(module)

        spec.loader = Loader()
        return spec

    def _show_in_note(self, module):
        """Replaces IPython's own functions: without its shell, they would only print."""
        module.display = self._cells.display
        module.update_display = self._cells.update_display
        module.clear_output = self._cells.clear_output
        module.publish_display_data = self._cells.publish

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self._found[module.__name__](self._cells, module)


def _run_source(module, source):
    exec(compile(source, _OWN, "exec", dont_inherit=True), module.__dict__)


def _run_getpass(cells, module):
    _run_source(module, _GETPASS_SOURCE)


def _run_variables(cells, module):
    _run_source(module, _VARIABLES_SOURCE)


def _run_shown(cells, module):
    _run_source(module, _SHOWN_SOURCE)


def _run_look(cells, module):
    _run_source(module, _LOOK_SOURCE)
    # In the built-in kernel, modules are frozen into the program; here they are files.
    module._standard = _standard
    module._modules = _modules
    module._names = cells.namespace


def _standard(name):
    """Returns a module that is imported already or is in the standard library, else introspection.py's `_MISSING`."""
    if name in sys.modules:
        return sys.modules[name]
    look = sys.modules["_tracebook_introspection"]
    top = name.partition(".")[0]
    standard = getattr(sys, "stdlib_module_names", sys.builtin_module_names)
    if top not in standard or top in look._SURPRISING:
        return look._MISSING
    import importlib
    import importlib.util
    import os

    try:
        spec = importlib.util.find_spec(top)
        # A file beside the note with the name of a standard module belongs to the cells, so it isn't run.
        own = spec is None or (spec.origin or "").startswith(os.getcwd() + os.sep)
        return look._MISSING if own else importlib.import_module(name)
    except Exception:
        return look._MISSING


_module_names = []


def _modules():
    """Returns the names of importable modules, as far as they are found without running them."""
    if not _module_names:
        import pkgutil

        standard = getattr(sys, "stdlib_module_names", sys.builtin_module_names)
        found = {name for name in standard if not name.startswith("_")}
        for number, module in enumerate(pkgutil.iter_modules()):
            if number >= 10_000:
                break
            if not module.name.startswith("_"):
                found.add(module.name)
        _module_names.extend(sorted(found))
    return _module_names


def _run_commands(cells, module):
    module._cells = cells
    _run_source(module, _COMMANDS_SOURCE)


def _get_ipython():
    """There is no shell of IPython's."""
    return None


def _run_ipython(cells, module):
    module.__version__ = "9.0.0"
    module.version_info = (9, 0, 0, "")
    module.get_ipython = _get_ipython

    _bring_along(module, ("core", "display", "lib"))


def _bring_along(module, names):
    """Makes modules below this one known, as `import IPython` does."""

    def __getattr__(name):
        import importlib

        if name not in names:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{module.__name__}.{name}")

    module.__getattr__ = __getattr__


def _run_ipython_package(cells, module):
    _bring_along(module, ("display", "getipython", "interactiveshell"))


def _run_getipython(cells, module):
    module.get_ipython = _get_ipython


def _run_interactiveshell(cells, module):
    module.InteractiveShell = _InteractiveShell


class _InteractiveShell:
    """What notebooks set of IPython's shell: which expressions of a cell are shown."""

    ast_node_interactivity = "last_expr"

    @classmethod
    def instance(cls):
        return cls


_InteractiveShell.__name__ = _InteractiveShell.__qualname__ = "InteractiveShell"


def _run_ipython_display(cells, module):
    module._cells, module._handle = cells, _DisplayHandle
    _run_source(module, _IPYTHON_SOURCE)


class _DisplayHandle:
    """Handle of a named display, which can be updated."""

    def __init__(self, cells, display_id):
        self._cells = cells
        self.display_id = display_id

    def display(self, value, **options):
        self._cells.display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        self._cells.update_display(value, display_id=self.display_id, **options)

    def __repr__(self):
        return f"<DisplayHandle display_id={self.display_id}>"


class Cells:
    """Runs cells in a namespace, and inspects it.

    send(kind, content): sends one message of the running request.
    ask(prompt, password): asks the user and waits; "\\x04" is the end of all input. Neither may call this object again.

    Create one before any cell runs: it replaces `sys.stdout`, `sys.stdin`, `__main__` and more.
    """

    def __init__(self, send, ask):
        self._send = send
        self._ask = ask
        self._lock = _Lock()
        # Printed text that waits: its stream, its pieces, and their length in characters; when the last text was sent,
        # and how many lines have been sent without waiting since.
        self._stream, self._pieces, self._letters = "stdout", [], 0
        self._sent, self._hurried = 0.0, 0
        # `_files` maps the file name of a run to the label of its cell; `_newest` maps a label to its newest file name.
        self._files, self._newest = {}, {}
        self._runs = self._count = self._displays = 0
        self._loop = None
        self._before = {}
        self._changes = {"defined": [], "changed": []}
        # Added to the error of a cell that was refused access; empty if nothing is refused.
        self.walls = ""
        # Added to the error of a cell whose import failed; `{package}` is the package's name.
        self.advice = "this Python doesn't have the package {package}"
        # Added instead if it's a part of the standard library, which no package brings.
        self.lacks = "this Python is built without this part of its standard library"
        # Added to errors whose messages don't say what to do: the start of the message, and what is added.
        self.hints = ()
        # Called where our own code ends: raises KeyboardInterrupt for an interrupt that arrived meanwhile.
        self.check = lambda: None
        # Called with the cell's value (None after an error) before it's shown. If one returns true, the value isn't
        # shown.
        self.after_cell = [self._show_figures]
        main = types.ModuleType("__main__")
        main.__builtins__ = builtins
        self.namespace = main.__dict__
        # Our caller may be the old `__main__`, whose functions need their globals.
        self._old_main, sys.modules["__main__"] = sys.modules.get("__main__"), main
        self._install(main)

    def _install(self, main):
        self.stdout, self.stderr = _Output(self, "stdout"), _Output(self, "stderr")
        sys.stdout = sys.__stdout__ = self.stdout
        sys.stderr = sys.__stderr__ = self.stderr
        sys.stdin = sys.__stdin__ = _Input(self)
        sys.argv = [""]
        tools = types.ModuleType("_tracebook")
        tools._json = lambda value: value
        kernel = types.ModuleType("_tracebook_kernel")
        kernel.ask = self._question
        kernel.display = self._display_forms
        sys.modules["_tracebook"], sys.modules["_tracebook_kernel"] = tools, kernel
        sys.modules.pop("getpass", None)
        sys.meta_path.insert(0, _Finder(self))

        def input(prompt="", /):
            """Ask for a line of text, below the cell or in the terminal."""
            return self._question(str(prompt), False)

        def exit(code=None):
            """Stop this cell. The kernel and its variables stay."""
            raise SystemExit(code)

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

        for function in (exit, help, input, progress, table):
            function.__qualname__ = function.__name__
            setattr(builtins, function.__name__, function)
        builtins.quit = exit
        builtins.display, builtins.get_ipython = self.display, _get_ipython

    # Cell output and input.

    def _print(self, stream, text):
        text = _clean(text)
        with self._lock:
            if stream != self._stream:
                self._flush()
                self._stream = stream
            self._pieces.append(text)
            self._letters += len(text)
            now = time.monotonic()
            # A process that was saved and resumed elsewhere may see an earlier time.
            if not 0 <= now - self._sent < _WAIT:
                self._hurried = 0
                self._flush()
            elif self._letters >= _CHUNK:
                self._flush()
            elif text.endswith("\n") and self._hurried < _LINES_AT_ONCE:
                self._hurried += 1
                self._flush()

    def flush(self):
        """Sends printed text that waits."""
        with self._lock:
            self._flush()

    def _flush(self):
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces, self._letters = [], 0
        self._sent = time.monotonic()
        for at in range(0, len(text), _STREAM_LIMIT):
            self._send("stream", {"name": self._stream, "text": text[at : at + _STREAM_LIMIT]})

    def _tell(self, kind, content):
        """Sends a message, after all text that was printed before it."""
        with self._lock:
            self._flush()
            self._send(kind, content)

    def _question(self, prompt, password):
        self.flush()
        answer = self._ask(_clean(prompt), bool(password))
        if answer == "\x04":
            if prompt:
                self._print("stdout", f"{prompt}\n")
            raise EOFError("EOF when reading a line")
        shown = "········" if password else answer
        self._print("stdout", f"{prompt}{shown}\n")
        return answer

    # Display of values.

    def _forms(self, value):
        """Returns the representations of a value as ({MIME type: representation}, metadata)."""
        data, about = {}, {}
        kind = type(value)
        # Look methods up on the type: an object that answers to every name (a mock, a proxy) has none of its own.
        for name, mime in (("_repr_mimebundle_", None), *_HOOKS):
            hook = getattr(kind, name, None)
            if hook is None or mime in data or isinstance(value, type):
                continue
            try:
                form = hook(value)
            except NotImplementedError:
                continue
            except Exception as error:
                # Report the error, and keep the object's other representations.
                self._print("stderr", "\n".join(self._explain(error)[2]) + "\n")
                continue
            if form is None:
                continue
            more = None
            if isinstance(form, tuple) and len(form) == 2:
                form, more = form
            if mime is None:
                data.update(form)
                about.update(more or {})
            elif form is not None:
                data[mime] = form
                if more:
                    about[mime] = more
        if "text/csv" not in data:
            try:
                table = _frame_table(value)
            except Exception:  # its other representations remain
                table = None
            if table is not None:
                data["text/csv"], shown, rows = table
                about.update(_cut_metadata(value, shown, rows))
        if kind in _BUILT_IN and "text/latex" not in data:
            try:
                formula = _formula_of(value)
            except Exception:  # its other representations remain
                formula = None
            if formula is not None:
                data["text/latex"] = formula
        if "text/plain" not in data:
            data["text/plain"] = _plain_text(value)
        return data, about

    def _content(self, data, about):
        sent = {}
        for mime, form in data.items():
            mime = str(mime)
            form = _form(mime, form)
            if isinstance(form, str) and len(form) > _FORM_LIMIT:
                self._print("stderr", f"{mime} of {len(form)} characters is too long to be shown\n")
                continue
            sent[mime] = form
        return {"data": sent, "metadata": _as_json(about) if about else {}}

    def _display_forms(self, data, metadata, name=None, again=False):
        """Shows what `displays.py` displays."""
        content = self._content(data, {})
        if name is not None:
            content["transient"] = {"display_id": name}
        self._tell("update_display_data" if again else "display_data", content)

    def display(self, *values, raw=False, metadata=None, display_id=None, update=False, include=None, exclude=None,
                transient=None, clear=False, **options):
        """Show values below the cell, each in its richest form.

        raw: the values are dictionaries from MIME type to data, shown as they are.
        metadata: a dictionary that is sent along.
        display_id: a name under which `update_display` shows something else later, or True for a new one.
        """
        if clear:
            self.clear_output(wait=True)
        if display_id is True:
            self._displays += 1
            display_id = f"display-{self._displays}-{time.time_ns()}"
        if update and display_id is None:
            raise TypeError("display_id required for update_display")
        for value in values:
            data, about = (value, {}) if raw else self._forms(value)
            if include or exclude:
                data = {mime: form for mime, form in data.items()
                        if (not include or mime in include) and (not exclude or mime not in exclude)}
            content = self._content(data, {**about, **(metadata or {})})
            if display_id is not None or transient:
                content["transient"] = {**(transient or {})}
                if display_id is not None:
                    content["transient"]["display_id"] = str(display_id)
            self._tell("update_display_data" if update else "display_data", content)
        self.check()
        return None if display_id is None else _DisplayHandle(self, display_id)

    def update_display(self, value, *, display_id, **options):
        """Show something else where `display` showed a value under this name."""
        self.display(value, display_id=display_id, update=True, **options)

    def clear_output(self, wait=False):
        """Remove what the cell has shown. wait: only when there is new output."""
        self._tell("clear_output", {"wait": bool(wait)})
        self.check()

    def publish(self, data, metadata=None, *, transient=None, update=False, **options):
        """Show representations by their MIME types."""
        self.display(data, raw=True, metadata=metadata, transient=transient, update=update,
                     display_id=(transient or {}).get("display_id"))

    def _show_figures(self, value):
        """Shows pyplot's open figures as PNG if its backend doesn't show them itself."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or not hasattr(pyplot, "get_fignums"):
            return False
        import matplotlib

        numbers = pyplot.get_fignums()
        if not numbers or str(matplotlib.get_backend()).lower() != "agg":
            return False
        try:
            for number in numbers:
                picture = io.BytesIO()
                figure = pyplot.figure(number)
                figure.savefig(picture, format="png", bbox_inches="tight")
                forms = {"image/png": picture.getvalue(), "text/plain": repr(figure)}
                self._tell("display_data", self._content(forms, {}))
        finally:
            pyplot.close("all")
        parts = value if type(value) in (list, tuple) else (value,)
        return all(type(part).__module__.partition(".")[0] == "matplotlib" for part in parts[:100])

    # Running.

    def execute(self, code, label="cell", forget=(), silent=False):
        """Runs a cell. Sends its output and its value or error; returns the content of the reply."""
        self._runs += 1
        self._count += not silent
        self._sent, self._hurried = 0.0, 0
        status = "ok"
        try:
            # Without what it has warned about before: each run of a cell warns, as in IPython.
            for name in (*forget, "__warningregistry__"):
                self.namespace.pop(name, None)
            self._before = _seen(self.namespace)
            self._run(code, label, silent)
        except BaseException as error:  # of the cell: it ends only the cell
            status = "error"
            try:
                self._fail(error)
            except BaseException:  # another interrupt; the cell has ended
                self._tell("error", {"ename": type(error).__name__, "evalue": "", "traceback": []})
            del error
        self.flush()
        try:
            self._changes = _compared(self._before, self.namespace)
        except BaseException:  # an interrupt that came too late
            self._changes = {"defined": [], "changed": []}
        self._before = {}
        return {"status": status, "execution_count": self._count, "cached": False}

    def defined_and_changed(self):
        """Returns the sorted names that the last cell defined, and those that it rebound or visibly changed."""
        return self._changes

    def _run(self, code, label, silent):
        self.check()
        source = code.replace("\r\n", "\n").replace("\r", "\n")
        parts, last = self._compile(source, self._register(label, source))
        try:
            for code, is_shown in parts:
                value = self._evaluate(code)
                if is_shown and value is not None and not silent:
                    self._tell("display_data", self._content(*self._forms(value)))
            value = None if last is None else self._evaluate(last)
        except BaseException:
            # Show the figures drawn so far; the error explains why there are no more.
            for hook in list(self.after_cell):
                hook(None)
            raise
        shown = False
        for hook in list(self.after_cell):
            shown = hook(value) is True or shown
        if value is None or silent or (shown and value is not None):
            return
        self.namespace["_"] = value
        data, about = self._forms(value)
        content = self._content(data, about)
        content["execution_count"] = self._count
        self._tell("execute_result", content)

    def _compile(self, source, file):
        """Compiles a cell and the expression that it ends with. Everything is compiled before anything runs.

        Returns the parts that run before that expression, each with whether its value is shown.
        """
        flags = _AWAIT
        tree = compile(source, file, "exec", flags | _ONLY_AST, dont_inherit=True)
        import ast

        # IPython compiles statement by statement, so that these may follow others.
        tree.body.sort(key=lambda node: not (isinstance(node, ast.ImportFrom) and node.module == "__future__"))
        parts, waiting, last = [], [], None
        shows_all = _interactivity() == "all"

        def end_part():
            nonlocal flags
            if waiting:
                body = compile(ast.Module(list(waiting), []), file, "exec", flags, dont_inherit=True)
                flags |= body.co_flags & _FUTURES
                parts.append((body, False))
                waiting.clear()

        for node in tree.body:
            is_shown = isinstance(node, ast.Expr) and (shows_all or node is tree.body[-1])
            if not is_shown or _ends_with_semicolon(source, node):
                waiting.append(node)
                continue
            end_part()
            code = compile(ast.Expression(node.value), file, "eval", flags, dont_inherit=True)
            if node is tree.body[-1]:
                last = code
            else:
                parts.append((code, True))
        end_part()
        return parts, last

    def _evaluate(self, code):
        value = eval(code, self.namespace)
        return self._awaited(value) if code.co_flags & _CO_COROUTINE else value

    def _awaited(self, coroutine):
        """Runs a cell that awaits something, in the event loop that all such cells share."""
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = _new_loop()
        asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            try:
                self._loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass
            raise

    # Errors.

    def _register(self, label, source):
        """Gives a run of a cell a file name of its own, so that tracebacks show the lines that ran, not newer ones."""
        name = f"{label} [{self._runs}]"
        linecache.cache[name] = len(source), None, source.splitlines(True), name
        self._files[name] = label
        self._newest[label] = name
        if len(self._files) > _SOURCES_LIMIT:
            oldest = next(iter(self._files))
            del self._files[oldest]
            linecache.cache.pop(oldest, None)
        return name

    def _shown(self, name):
        label = self._files.get(name)
        if label is None:
            return name
        return label if self._newest[label] == name else f"{label} (an earlier run)"

    def _fail(self, error):
        try:
            name, words, lines = self._explain(error)
        except KeyboardInterrupt:
            name, words, lines = type(error).__name__, "", [type(error).__name__]
        except BaseException:  # of the error's own __str__: only its class is shown
            name, words, lines = type(error).__name__, "", [type(error).__name__]
        content = {"ename": _clean(name), "evalue": _clean(words), "traceback": [_clean(line) for line in lines]}
        self._tell("error", content)

    def _explain(self, error):
        """Returns an exception as (name of its class, message, lines of its traceback)."""
        import traceback

        options = {"compact": True} if sys.version_info >= (3, 10) else {}
        report = traceback.TracebackException(type(error), error, error.__traceback__, **options)
        parts = [report]
        while parts:
            part = parts.pop()
            # Frames that lead to the cell (the event loop of a cell that awaits) aren't the user's either.
            first = next((at for at, frame in enumerate(part.stack) if frame.filename in self._files), 0)
            part.stack[:] = [frame for frame in part.stack[first:] if frame.filename != _OWN]
            for frame in part.stack:
                frame.filename = self._shown(frame.filename)
            if isinstance(getattr(part, "_str", None), str):
                # CPython's hint about a start without `site` doesn't help here.
                part._str = part._str.partition(". Site initialization is disabled")[0]
            if hasattr(part, "msg") and hasattr(part, "text"):
                # Errors that only compiling finds (a `return` outside a function) come without their source line.
                if part.text is None and part.lineno is not None and part.filename:
                    part.text = linecache.getline(part.filename, int(part.lineno)) or None
                part.filename = self._shown(part.filename)
            parts += filter(None, (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())))
        words = str(getattr(report, "_str", ""))
        if isinstance(error, PermissionError) and self.walls:
            words = report._str = f"{words} ({self.walls})"
        if isinstance(error, ModuleNotFoundError) and self.advice and _lacks(error.name):
            top = error.name.partition(".")[0]
            advice = self.advice.replace("{package}", _PACKAGES.get(top, top))
            if top in getattr(sys, "stdlib_module_names", ()):
                advice = self.lacks
            words = report._str = f"{words} ({advice})"
        for start, hint in self.hints:
            if words.startswith(start):
                words = report._str = f"{words} ({hint})"
        lines = "".join(report.format()).splitlines()
        if len(lines) > _TRACEBACK_LIMIT:
            head, tail = _TRACEBACK_LIMIT // 4, _TRACEBACK_LIMIT // 2
            lines[head:-tail] = [f"  ... {len(lines) - head - tail} lines left out ..."]
        lines = [line if len(line) <= _LINE_LIMIT else line[:_LINE_LIMIT] + "..." for line in lines]
        if isinstance(error, SyntaxError) and error.filename in self._files:
            words = words.replace(error.filename, self._shown(error.filename))
        return type(error).__name__, words[:_WORDS_LIMIT], lines

    # Information for editing code.

    def complete(self, code, at, imports=""):
        """Returns the completions at a position in characters. `imports`: the note's imports, one per line."""
        return self._look(lambda look: look.complete(code, at, imports))

    def inspect(self, code, at):
        """Returns what is known of the name at a position in characters."""
        return self._look(lambda look: look.inspect_at(code, at))

    def variables(self):
        """Returns the cells' variables as rows: name, type, size, abbreviated value."""
        return self._look(lambda look: look.variables())

    def values(self, names):
        """Returns the values of some variables as JSON data of limited size."""
        return self._look(lambda look: look.values("\n".join(names)))

    def redraw(self, figure, limits):
        """Returns a shown figure of matplotlib with other limits, which `redraw` of its backend describes."""
        return self._look(lambda _: {"figure": sys.modules["tracebook_backend"].redraw(figure, limits)})

    def rows(self, frame, first):
        """Returns a piece of a shown data frame, which `_frame_rows` describes."""
        return self._look(lambda _: {"frame": _frame_rows(frame, first)})

    def _look(self, question):
        try:
            import _tracebook_introspection

            return _as_json(question(_tracebook_introspection))
        except BaseException:  # code of the cells (a `__repr__`) failed or was interrupted
            return {"status": "error"}
        finally:
            self.flush()


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


def _ends_with_semicolon(source, last):
    """Returns whether `;` follows the last expression, which means that its value isn't shown."""
    lines = source.split("\n")
    rest = lines[last.end_lineno - 1].encode("utf-8")[last.end_col_offset :]
    return rest.lstrip().startswith(b";")


def _interactivity():
    """Returns which expressions of a cell are shown, as notebooks set it in IPython's shell: "last_expr" or "all"."""
    module = sys.modules.get("IPython.core.interactiveshell")
    return module and getattr(getattr(module, "InteractiveShell", None), "ast_node_interactivity", None)


def _new_loop():
    """Returns a new event loop."""
    import asyncio

    try:
        return asyncio.new_event_loop()
    except (OSError, AttributeError, ImportError, NotImplementedError, RuntimeError):
        return _loop_without_sockets()


def _wait_without_sockets(module):
    """Lets asyncio make loops that need no sockets, in WebAssembly."""
    for name in ("_DefaultEventLoopPolicy", "DefaultEventLoopPolicy"):  # depends on the version of Python
        policy = getattr(module, name, None)
        if policy is not None:
            policy._loop_factory = staticmethod(_loop_without_sockets)


def _loop_without_sockets():
    """Returns a new event loop that can wait only for time to pass."""
    import asyncio

    class Selector:
        def select(self, timeout=None):
            if timeout is None:
                raise RuntimeError("the cell awaits something that never happens here: there are no threads or sockets")
            if timeout > 0:
                time.sleep(timeout)
            return []

    class Loop(asyncio.BaseEventLoop):
        def __init__(self):
            super().__init__()
            self._selector = Selector()

        def _process_events(self, events):
            return None

        def _write_to_self(self):
            return None

    return Loop()


def _seen(namespace):
    """Returns the marks of a namespace's values by name, to detect changes. Keeps no large value alive."""
    import itertools

    names = itertools.islice(list(namespace.items()), _NAMES_LIMIT)
    return {name: _mark(value) for name, value in names if _counts(name)}


def _counts(name):
    return isinstance(name, str) and name != "_" and not (name.startswith("__") and name.endswith("__"))


def _mark(value):
    """Returns (identity, type, size) of a value, to detect changes.

    The identity is a weak reference where possible, because the `id` of an object that's gone may be reused.
    """
    kind = type(value)
    if kind in _SMALL or (kind in (str, bytes) and len(value) < 1_000):
        return value, kind, None
    size = None
    if kind in _BUILT_IN:
        size = len(value)
    elif kind.__module__.partition(".")[0] in _SHAPED:
        try:
            size = tuple(value.shape)
        except Exception:
            size = None
    try:
        return _weak(value), kind, size
    except TypeError:
        return id(value), kind, size


def _is_same(mark, value):
    known, kind, size = mark
    if type(value) is not kind:
        return False
    again, _, now = _mark(value)
    if type(known) is not type(again) or now != size:
        return False
    if isinstance(known, int) and kind is not int:
        return known == again
    if isinstance(known, _weak) and kind is not _weak:
        return known() is value
    return known is again


def _compared(before, namespace):
    now = {name: value for name, value in list(namespace.items())[:_NAMES_LIMIT] if _counts(name)}
    defined = sorted(name for name in now if name not in before)
    changed = sorted(name for name, value in now.items() if name in before and not _is_same(before[name], value))
    return {"defined": defined, "changed": changed}
