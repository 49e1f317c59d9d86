"""Cached results of pure cells, keyed by the cell's code and the values that it uses.

Frozen into the kernel as `_tracebook_pure` and imported when a cell is marked as pure. The host stores the entries,
each for one note with its grants; this process requests them and hands them over. An entry is data: values of a closed
list of types, as JSON. If a value has no such form, this is reported, and the cell runs like any other.
"""

import base64
import hashlib
import importlib
import io
import json
import pickle
import sys
import types

import _tracebook_kernel

_FORM = f"2 {sys.version}"
# Modules that come with the kernel; they and their parts are stored by name.
_SHIPPED = frozenset(sys.stdlib_module_names) | {"numpy", "matplotlib"}

_names = sys.modules["__main__"].__dict__


def _mark(*parts):
    """Placeholder for a value that is identified by its parts."""


class _Print(pickle._Pickler):
    """Pickler that writes what a value is, not where: equal values give equal bytes, even in another process."""

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


class _Unkept(Exception):
    """A value that can't be represented as data."""


def _is_shipped(module):
    return isinstance(module, str) and module.partition(".")[0] in _SHIPPED


class _Encoder:
    """Encodes values as a table of nodes that refer to each other by number, so shared objects stay shared."""

    def __init__(self):
        self.nodes = []
        self.seen = {}
        # Keeps objects alive, because `seen` identifies them by `id`.
        self.alive = []

    def node(self, value):
        known = self.seen.get(id(value))
        if known is not None:
            return known
        at = len(self.nodes)
        self.nodes.append(None)
        self.seen[id(value)] = at
        self.alive.append(value)
        self.nodes[at] = self.form(value)
        return at

    def all(self, values):
        return [self.node(value) for value in values]

    def form(self, value):
        kind = type(value)
        if value is None or kind is bool:
            return ["const", value]
        if value is Ellipsis:
            return ["ellipsis"]
        if kind is int:
            return ["int", hex(value)]
        if kind is float:
            return ["float", repr(value)]
        if kind is complex:
            return ["complex", repr(value.real), repr(value.imag)]
        if kind is str:
            return ["str", value]
        if kind is bytes or kind is bytearray:
            return [kind.__name__, base64.b64encode(value).decode()]
        if kind in (list, tuple, set, frozenset):
            return [kind.__name__, self.all(value)]
        if kind is dict:
            return ["dict", self.all(value), self.all(value.values())]
        if kind is range or kind is slice:
            return [kind.__name__, self.all((value.start, value.stop, value.step))]
        if kind is types.ModuleType:
            if _is_shipped(value.__name__):
                return ["module", value.__name__]
            raise _Unkept(f"the module {value.__name__} is code")
        if kind.__module__ == "numpy" and hasattr(value, "dtype") and hasattr(value, "shape"):
            return ["array", kind.__name__, str(value.dtype), self.node(list(value.shape)), self.node(value.tolist())]
        special = _SPECIAL.get((kind.__module__, kind.__qualname__))
        if special is not None:
            return ["made", kind.__module__, kind.__qualname__, self.all(special(value))]
        name, module = getattr(value, "__qualname__", None), getattr(value, "__module__", None)
        if isinstance(name, str) and name.isidentifier() and _is_shipped(module):
            if getattr(sys.modules.get(module), name, None) is value:
                return ["part", module, name]
        if isinstance(value, (types.FunctionType, type)):
            raise _Unkept(f"{value.__qualname__} is code")
        raise _Unkept(f"a value of type {kind.__qualname__} has no form as data")


def _datetime(value):
    if value.tzinfo is not None:
        raise _Unkept("a time with a time zone has no form as data")
    return value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond


def _time(value):
    if value.tzinfo is not None:
        raise _Unkept("a time with a time zone has no form as data")
    return value.hour, value.minute, value.second, value.microsecond


# Classes whose values are rebuilt from plain ones, with the arguments for each.
_SPECIAL = {
    ("datetime", "date"): lambda value: (value.year, value.month, value.day),
    ("datetime", "datetime"): _datetime,
    ("datetime", "time"): _time,
    ("datetime", "timedelta"): lambda value: (value.days, value.seconds, value.microseconds),
    ("decimal", "Decimal"): lambda value: (str(value),),
    ("fractions", "Fraction"): lambda value: (value.numerator, value.denominator),
    ("uuid", "UUID"): lambda value: (value.hex,),
    ("collections", "OrderedDict"): lambda value: (list(value.items()),),
    ("collections", "Counter"): lambda value: (dict(value),),
    ("collections", "deque"): lambda value: (list(value), value.maxlen),
}


class _Decoder:
    """Decodes a table of nodes. It creates values of the types above and calls nothing else."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.made = {}

    def node(self, at):
        if at in self.made:
            return self.made[at]
        tag, *rest = self.nodes[at]
        if tag == "list":
            value = self.made[at] = []
            value.extend(self.node(item) for item in rest[0])
        elif tag == "dict":
            value = self.made[at] = {}
            value.update(zip(self.all(rest[0]), self.all(rest[1])))
        elif tag == "set":
            value = self.made[at] = set()
            value.update(self.all(rest[0]))
        else:
            value = self.made[at] = self.value(tag, *rest)
        return value

    def all(self, numbers):
        return [self.node(number) for number in numbers]

    def value(self, tag, *rest):
        if tag == "const" and (rest[0] is None or isinstance(rest[0], bool)):
            return rest[0]
        if tag == "ellipsis":
            return Ellipsis
        if tag == "int":
            return int(rest[0], 16)
        if tag == "float":
            return float(rest[0])
        if tag == "complex":
            return complex(float(rest[0]), float(rest[1]))
        if tag == "str":
            return str(rest[0])
        if tag == "bytes":
            return base64.b64decode(rest[0])
        if tag == "bytearray":
            return bytearray(base64.b64decode(rest[0]))
        if tag == "tuple":
            return tuple(self.all(rest[0]))
        if tag == "frozenset":
            return frozenset(self.all(rest[0]))
        if tag == "range":
            return range(*self.all(rest[0]))
        if tag == "slice":
            return slice(*self.all(rest[0]))
        if tag == "module" and _is_shipped(rest[0]):
            return importlib.import_module(rest[0])
        if tag == "part" and _is_shipped(rest[0]) and rest[1].isidentifier():
            return getattr(importlib.import_module(rest[0]), rest[1])
        if tag == "array":
            import numpy

            kind, dtype, shape, items = rest
            value = numpy.array(self.node(items), dtype).reshape(tuple(self.node(shape)))
            return value if kind == "ndarray" else value[()]
        if tag == "made" and (rest[0], rest[1]) in _SPECIAL:
            return getattr(importlib.import_module(rest[0]), rest[1])(*self.all(rest[2]))
        raise ValueError(tag)


def key(code, uses):
    """Returns the key of a result: this code with the names' current values. Raises an error if one has no digest."""
    parts = [_FORM, code]
    for name in sorted(uses):
        if name in _names:
            parts += [name, _digest(_names[name])]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find(key):
    """Restores the names of a kept result. Returns what was shown as JSON, or None."""
    try:
        entry = _tracebook_kernel.pure_find(key)
        if entry is None:
            return None
        entry = json.loads(entry)
        decoder = _Decoder(entry["nodes"])
        values = {name: decoder.node(at) for name, at in entry["names"].items()}
    except Exception:
        # Written by another program.
        return None
    _names.update(values)
    return json.dumps(entry["shown"])


def keep(key, binds, shown):
    """Keeps a result. Returns the reason as text if it can't, else None."""
    encoder = _Encoder()
    try:
        names = {name: encoder.node(_names[name]) for name in binds if name in _names}
        entry = json.dumps({"shown": json.loads(shown), "nodes": encoder.nodes, "names": names})
        return _tracebook_kernel.pure_keep(key, entry)
    except Exception as error:
        return str(error) or type(error).__name__
