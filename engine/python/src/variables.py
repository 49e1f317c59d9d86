"""Lists a namespace's variables as rows (name, type, size, abbreviated value), and returns some of their values.

Runs in the embedded kernel and, sent as text, in a kernel of the user's own. It changes nothing. It runs the `__len__`,
`shape` and `__repr__` of the variables, as printing would.
"""

_ROWS = 500
_WIDE = 120


def variables(namespace):
    import reprlib
    import types

    brief = reprlib.Repr()
    brief.maxstring = brief.maxlong = brief.maxother = _WIDE
    plain = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, type(None))
    shell = namespace.get("get_ipython")
    hidden = set(getattr(shell(), "user_ns_hidden", ())) if callable(shell) else set()

    def size(value):
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return ""
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            return " × ".join(map(str, shape)) or "1"
        return str(len(value)) if hasattr(type(value), "__len__") else ""

    def words(name, value):
        if isinstance(value, types.FunctionType):
            code = value.__code__
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            return f"{name}({', '.join(names)})"
        if isinstance(value, type):
            return ""
        text = brief.repr(value) if type(value) in plain else repr(value)
        text = " ".join(text[: 4 * _WIDE].split())
        return text if len(text) <= _WIDE else text[:_WIDE] + "…"

    rows = []
    for name, value in list(namespace.items()):
        if not isinstance(name, str) or name.startswith("_") or name in hidden:
            continue
        if isinstance(value, types.ModuleType):
            continue
        # Names that were only imported aren't variables of the cells.
        made = (type, types.FunctionType, types.BuiltinFunctionType)
        if isinstance(value, made) and getattr(value, "__module__", None) != "__main__":
            continue
        row = {"name": name, "type": type(value).__name__, "size": "", "value": ""}
        for key, say in (("size", lambda: size(value)), ("value", lambda: words(name, value))):
            try:
                row[key] = say()
            except Exception as error:
                row[key] = f"<{type(error).__name__}>"
        rows.append(row)
        if len(rows) >= _ROWS:
            break
    return rows


class _Plain:
    """Converts values to JSON data of limited size. It runs nothing of the cells' own classes."""

    def __init__(self):
        self.left = 100_000

    def of(self, value, depth=0):
        self.left -= 1
        if self.left < 0 or depth > 6:
            return None
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int:
            return value if abs(value) < 2**63 else str(value)
        if type(value) is float:
            return value if value == value and abs(value) != float("inf") else None
        if type(value) is str:
            return value[:2_000]
        if type(value) is dict:
            return {str(key)[:200]: self.of(one, depth + 1) for key, one in list(value.items())[:10_000]
                    if type(key) in (str, int, float, bool)}
        if type(value) in (list, tuple, range, set, frozenset):
            return [self.of(one, depth + 1) for one, _ in zip(value, range(10_000))]
        if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
            return self.of(value[:10_000].tolist() if getattr(value, "shape", ()) else value.tolist(), depth + 1)
        row = variables({"value": value})
        return row[0]["value"] if row else None


def values(namespace, names):
    """Returns the values of some variables for a generated view."""
    bounded = _Plain()
    return {name: bounded.of(namespace[name]) for name in names[:100] if name in namespace}
