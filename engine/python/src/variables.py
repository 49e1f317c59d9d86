"""The variables of a namespace as rows of a table: name, type, size, and the value in short.

Runs in the embedded kernel and, handed over as text, in a kernel of the user's own. It changes nothing. It runs the
`__len__`, `shape` and `__repr__` of what it lists, as printing would.
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
        # What was only imported is no variable of the cells.
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
