"""Describes the variables of a state, so that two states can be compared. Run in an instance that is discarded.

Values are compared by a digest of their content if that is cheap, else by their text if it contains no address.
"""

import hashlib
import json
import pickle
import re
import reprlib
import sys
import types

import _host

# Maximum bytes of an array that are compared. A larger one is compared by type, shape and its beginning.
_MAX_BYTES = 256 << 20
_MAX_TEXT = 1 << 20
_SHOWN = 80
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _parts_of_code(code):
    constants = [_parts_of_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), constants, list(code.co_names), list(code.co_varnames)]


def _content(value):
    """Returns a value's content as bytes, or None if it can't be determined."""
    if isinstance(value, types.FunctionType):
        parts = [_parts_of_code(value.__code__), repr(value.__defaults__), repr(value.__kwdefaults__)]
        return json.dumps(parts).encode()
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes") and not getattr(value.dtype, "hasobject", True):
        head = f"{value.dtype.str}{value.shape}".encode()
        return head + (value.tobytes() if value.nbytes <= _MAX_BYTES else value.reshape(-1)[: 1 << 20].tobytes())
    if type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "dtypes"):
        from pandas.util import hash_pandas_object

        columns = repr(list(getattr(value, "columns", [])))
        return f"{columns}{value.dtypes!r}".encode() + hash_pandas_object(value).values.tobytes()
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value).encode("utf-8", "surrogatepass")
    if isinstance(value, (set, frozenset)):
        return json.dumps(sorted(repr(one) for one in value)).encode()
    try:
        # `repr` has no pickle memo, so one shared object and two equal ones give the same bytes.
        pickler_bytes = pickle.dumps(value, 5)
        return repr(pickle.loads(pickler_bytes)).encode("utf-8", "surrogatepass") if _is_plain(value) else pickler_bytes
    except Exception:
        return None


def _is_plain(value):
    return type(value) in (list, tuple, dict) and len(repr(value)) < _MAX_TEXT and not _ADDRESS.search(repr(value))


def _about(value):
    shape = getattr(value, "shape", None)
    size = ""
    if isinstance(shape, tuple):
        size = " × ".join(map(str, shape)) or "1"
    elif hasattr(type(value), "__len__") and not isinstance(value, type):
        size = str(len(value))
    content = _content(value)
    by = "value"
    if content is None:
        text = repr(value)[:_MAX_TEXT]
        by = "unclear" if _ADDRESS.search(text) else "text"
        content = _ADDRESS.sub("", text).encode("utf-8", "surrogatepass")
    brief = " ".join(reprlib.repr(value).split())
    return {
        "type": type(value).__name__,
        "size": size,
        "value": _ADDRESS.sub("", brief)[:_SHOWN],
        "by": by,
        "digest": hashlib.sha256(content).hexdigest(),
    }


_found = {}
for _name, _value in list(sys.modules["__main__"].__dict__.items()):
    if not isinstance(_name, str) or _name.startswith("_") or isinstance(_value, types.ModuleType):
        continue
    _made = (type, types.FunctionType, types.BuiltinFunctionType)
    if isinstance(_value, _made) and getattr(_value, "__module__", None) != "__main__":
        continue
    try:
        _found[_name] = _about(_value)
    except BaseException as _error:
        _found[_name] = {"type": type(_value).__name__, "size": "", "value": "", "by": "unclear", "digest": ""}
_host.call(json.dumps(["reply", _found]).encode())
