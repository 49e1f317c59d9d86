"""Results of pure cells, kept by what they were made of: the code and the values that it uses.

Frozen into the kernel as `_tracebook_pure` and imported when a cell is marked as pure. Entries are files in a folder that
the host grants; what cannot be kept is said, and the cell has run as any other.
"""

import hashlib
import importlib
import io
import os
import pickle
import sys
import types

_FOLDER = os.environ.get("TRACEBOOK_PURE", "")
# An entry, and all entries of a folder, in bytes.
_LARGEST = 64 << 20
_ALL = 256 << 20
_FORM = f"1 {sys.version}"

_names = sys.modules["__main__"].__dict__


def _mark(*parts):
    """Stands for what is known by its parts."""


class _Print(pickle._Pickler):
    """Writes what a value is, not where: equal values are equal bytes, also in another process."""

    def __init__(self, file):
        super().__init__(file, 4)
        self.fast = True
        self.seen = set()

    def reducer_override(self, value):
        if isinstance(value, types.ModuleType):
            return _mark, ("module", value.__name__)
        if isinstance(value, (set, frozenset)):
            return _mark, ("set", sorted(_digest(item, self.seen) for item in value))
        if type(value).__name__ == "ndarray" and type(value).__module__ == "numpy":
            return _mark, ("array", str(value.dtype), value.shape, value.tolist())
        if getattr(value, "__module__", None) != "__main__":
            return NotImplemented
        if isinstance(value, types.FunctionType):
            if id(value) in self.seen:
                return _mark, ("again", value.__qualname__)
            self.seen.add(id(value))
            code = value.__code__
            used = {name: _names[name] for name in sorted(_globals(code)) if name in _names}
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return _mark, ("function", _code(code), value.__defaults__, value.__kwdefaults__, cells, used)
        if isinstance(value, type):
            if id(value) in self.seen:
                return _mark, ("again", value.__qualname__)
            self.seen.add(id(value))
            hidden = ("__dict__", "__weakref__", "__doc__", "__firstlineno__", "__static_attributes__")
            own = {name: item for name, item in sorted(vars(value).items()) if name not in hidden}
            plain = {name: _plain(item) for name, item in own.items()}
            return _mark, ("class", value.__qualname__, value.__bases__, plain)
        return NotImplemented


def _plain(item):
    if isinstance(item, (staticmethod, classmethod)):
        return type(item).__name__, item.__func__
    if isinstance(item, property):
        return "property", item.fget, item.fset, item.fdel
    return item


def _code(code):
    inner = [_code(part) if isinstance(part, types.CodeType) else repr(part) for part in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, inner


def _globals(code):
    names = set(code.co_names)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            names |= _globals(part)
    return names


def _digest(value, seen=None):
    file = io.BytesIO()
    printer = _Print(file)
    if seen is not None:
        printer.seen = seen
    printer.dump(value)
    return hashlib.sha256(file.getvalue()).hexdigest()


class _Keep(pickle._Pickler):
    """Values as they are kept; what a cell defined for itself has no life outside of its process."""

    def reducer_override(self, value):
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if type(value).__name__ == "ndarray" and type(value).__module__ == "numpy":
            import numpy

            return numpy.array, (value.tolist(), str(value.dtype))
        if isinstance(value, (types.FunctionType, type)) and getattr(value, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is code")
        return NotImplemented


def key(code, uses):
    """What names the result of this code with these names as they are now. Raises what cannot be named."""
    parts = [_FORM, code]
    for name in sorted(uses):
        if name in _names:
            parts += [name, _digest(_names[name])]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find(key):
    """Brings the names of a kept result back; what was shown, as JSON, or nothing."""
    path = os.path.join(_FOLDER, key)
    try:
        with open(path, "rb") as file:
            shown, values = pickle.load(file)
        values = pickle.loads(values)
    except Exception:
        # None there, cut short, or of another program.
        return None
    _names.update(values)
    try:
        os.utime(path)
    except OSError:
        pass
    return shown


def keep(key, binds, shown):
    """Keeps a result; why not, as a text, or nothing."""
    if not _FOLDER:
        return "there is no folder for it"
    values = {name: _names[name] for name in binds if name in _names}
    file = io.BytesIO()
    try:
        _Keep(file, 4).dump(values)
        entry = pickle.dumps((shown, file.getvalue()), 4)
        if len(entry) > _LARGEST:
            return "it is larger than 64 MB"
        path = os.path.join(_FOLDER, key)
        with open(path + ".new", "wb") as out:
            out.write(entry)
        os.replace(path + ".new", path)
        _forget()
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def _forget():
    """Deletes what was used longest ago where there is too much."""
    entries = []
    for entry in os.scandir(_FOLDER):
        about = entry.stat()
        entries.append((about.st_mtime, about.st_size, entry.path))
    entries.sort(reverse=True)
    total = 0
    for _, size, path in entries:
        total += size
        if total > _ALL:
            os.remove(path)

