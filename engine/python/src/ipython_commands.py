"""What IPython's commands in cells do: `ipython_syntax.rs` turns them into calls of these functions.

The built-in Python has this file frozen as `_tracebook_commands`, and `cells.py` runs it when a cell first needs it.
"""

import sys

# Modules of packages, where their names differ.
_MODULES = {
    "beautifulsoup4": "bs4",
    "opencv-python": "cv2",
    "pillow": "PIL",
    "python-dateutil": "dateutil",
    "pyyaml": "yaml",
    "scikit-image": "skimage",
    "scikit-learn": "sklearn",
}
# Packages that only install others, which isn't done here.
_INSTALLERS = ("pip", "setuptools", "wheel")
# Longest text of a value in a list of variables, in characters.
_VALUE_LIMIT = 60


def refuse(why):
    """Fails with the reason why a command can't run here."""
    raise SyntaxError(why) from None


def installed(packages, why):
    """Does nothing if these packages are there already, and fails otherwise. `packages`: words of an installer."""
    names = packages.split()
    if not names or not all(_is_there(name) for name in names):
        refuse(why)
    print("Already installed:", " ".join(names))


def _is_there(package):
    import importlib.util
    import re

    named = re.match(r"[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)(\[[\w,-]*\])?([=<>!~][^/:]*)?$", package)
    if named is None:
        return False
    name = named[1].lower()
    if name in _INSTALLERS:
        return True
    try:
        if importlib.util.find_spec(_MODULES.get(name, name.replace("-", "_").replace(".", "_"))) is not None:
            return True
        from importlib.metadata import distribution

        return distribution(name) is not None
    except Exception:  # it isn't found, or what looks for it fails
        return False


def run(names, inside, path, words):
    """Runs a script as a program, and then adds its names to the cells'. inside: the script sees the cells' names."""
    import os

    if not os.path.exists(path) and os.path.exists(f"{path}.py"):
        path += ".py"
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    scope = names if inside else {"__name__": "__main__", "__file__": path}
    before, sys.argv = sys.argv, [path, *words.split()]
    try:
        exec(code, scope)
    except SystemExit as end:
        if end.code not in (None, 0):
            print("The script ended with", end.code)
    finally:
        sys.argv = before
        if not inside:
            names.update({name: value for name, value in scope.items() if not name.startswith("__")})


class Captured:
    """What a cell with `%%capture` printed and displayed."""

    def __init__(self, stdout, stderr, outputs, send):
        self.stdout, self.stderr, self.outputs, self._send = stdout, stderr, outputs, send

    def show(self):
        """Prints and displays it again."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            self._send(*output)

    __call__ = show

    def __str__(self):
        return self.stdout


def capture(names, words, body):
    """Runs the body of a cell and keeps what it prints and displays, under a name if `words` has one."""
    import io

    if "_cells" in globals():
        owner, attribute, hooks = _cells, "_tell", list(_cells.after_cell)
    else:
        import _tracebook
        import _tracebook_kernel

        owner, attribute, hooks = _tracebook_kernel, "display", [_tracebook.finish]
    words = words.split()
    out, err, outputs = io.StringIO(), io.StringIO(), []
    before, send = (sys.stdout, sys.stderr), getattr(owner, attribute)
    code = compile(body, sys._getframe(1).f_code.co_filename, "exec", dont_inherit=True)
    sys.stdout = sys.stdout if "--no-stdout" in words else out
    sys.stderr = sys.stderr if "--no-stderr" in words else err
    if "--no-display" not in words:
        setattr(owner, attribute, lambda *output: outputs.append(output))
    try:
        exec(code, names)
    finally:
        try:
            for hook in hooks:
                hook(None)
        finally:
            sys.stdout, sys.stderr = before
            setattr(owner, attribute, send)
    for name in words:
        if not name.startswith("-"):
            names[name] = Captured(out.getvalue(), err.getvalue(), outputs, send)


def pylab(names):
    """Adds the names of numpy and pyplot, as programs of the time before `import numpy as np` expect them."""
    import matplotlib
    import numpy
    from matplotlib import pyplot

    exec("from pylab import *", names)
    names.update(matplotlib=matplotlib, numpy=numpy, np=numpy, plt=pyplot, pyplot=pyplot)


def _own(names):
    return sorted(name for name in names if not name.startswith("_"))


def who(names):
    """Prints the names that cells have defined."""
    print("\t".join(_own(names)) or "There are no variables.")


def whos(names):
    """Prints the names that cells have defined, each with its type and value."""
    for name in _own(names):
        value = names[name]
        text = " ".join(repr(value).split()) if isinstance(value, (bool, int, float, str)) else ""
        text = text if len(text) <= _VALUE_LIMIT else text[:_VALUE_LIMIT] + "…"
        print(f"{name:<15} {type(value).__name__:<15} {text}".rstrip())


def reset(names):
    """Removes the names that cells have defined."""
    for name in _own(names):
        del names[name]


def cd(path):
    """Changes the working folder of the kernel."""
    import os

    os.chdir(os.path.expanduser(path or "~"))
    print(os.getcwd())
