"""Code intelligence while a cell is written: completions at a position, the description of a name.

Frozen into the kernel as `_tracebook_introspection` and imported at the first request. It inspects what the cells have
made and runs none of their code: where finding a value would run code (a property, a call), nothing is known. Names
that no cell has bound yet are looked up in the standard library's modules that the note imports.
"""

import builtins
import importlib
import importlib.machinery
import inspect
import keyword
import sys

import _tracebook
from _tracebook_variables import values as plain, variables as rows

_MOST = 500
_DOC_LIMIT = 5_000

# The cells' variables: the namespace of `__main__`.
_names = sys.modules["__main__"].__dict__

_MISSING = object()

# Modules with side effects when they are imported.
_SURPRISING = ("__main__", "antigravity", "idlelib", "this", "tkinter", "turtle", "turtledemo")


def _is_part(c):
    return c == "_" or c.isalnum()


def _begin(code, at):
    while at > 0 and _is_part(code[at - 1]):
        at -= 1
    return at


def _dotted(code, end):
    """Returns the dotted name that ends at this position."""
    at = _begin(code, end)
    while at > 1 and code[at - 1] == "." and _is_part(code[at - 2]):
        at = _begin(code, at - 1)
    return code[at:end]


def _in_text(line):
    """Returns the quote of the string that a line ends in, `#` in a comment, else an empty string."""
    quote, at = "", 0
    while at < len(line):
        c = line[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c == "#":
            return c
        at += 1
    return quote


def _standard(name):
    """Returns a module of the program's own standard library, else `_MISSING`. A file beside the note never counts."""
    if name in sys.modules:
        return sys.modules[name]
    top = name.partition(".")[0]
    finders = (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter)
    if top in _SURPRISING or not any(finder.find_spec(top) for finder in finders):
        return _MISSING
    try:
        return importlib.import_module(name)
    except Exception:
        return _MISSING


def _imported(name, imports):
    """Returns what a note's import statements bind to a name, if it's from the standard library; else `_MISSING`."""
    for line in reversed(imports.split("\n")):
        words = line.replace(",", " , ").split()
        if words[:1] == ["from"] and "import" in words[2:]:
            source, bound = words[1], words[words.index("import") + 1 :]
        elif words[:1] == ["import"]:
            source, bound = "", words[1:]
        else:
            continue
        for part in " ".join(bound).strip("()").split(" , "):
            original, _, alias = part.strip().partition(" as ")
            if source and (alias.strip() or original) == name:
                module = _standard(source)
                return vars(module).get(original, _MISSING) if inspect.ismodule(module) else _MISSING
            if not source and alias.strip() == name:
                return _standard(original.strip())
            if not source and not alias and original.partition(".")[0] == name:
                _standard(original)
                return _standard(name)
    return _MISSING


def _value(dotted, imports=""):
    """Returns the value of a dotted name if no code of the cells has to run, else `_MISSING`."""
    first, *rest = dotted.split(".")
    value = _names.get(first, getattr(builtins, first, _MISSING))
    if value is _MISSING:
        value = _imported(first, imports)
    for name in rest:
        if value is _MISSING:
            break
        if inspect.ismodule(value):
            value = vars(value).get(name, _MISSING)
            continue
        static = inspect.getattr_static(value, name, _MISSING)
        if isinstance(static, property) or static is _MISSING:
            return _MISSING
        runs = getattr(type(static), "__get__", None)
        own = inspect.isroutine(static) or inspect.isdatadescriptor(static) and inspect.isbuiltin(runs)
        value = static if runs is None else getattr(value, name, _MISSING) if own else _MISSING
    return value


def _kind(value):
    if inspect.ismodule(value):
        return "module"
    if isinstance(value, type):
        return "class"
    if isinstance(value, property):
        return "property"
    return "function" if callable(value) or isinstance(value, (staticmethod, classmethod)) else "value"


def _call(code, at):
    """Returns the dotted name of the function whose parentheses enclose this position."""
    depth = 0
    while at > 0:
        at -= 1
        if code[at] in ")]}":
            depth += 1
        elif code[at] in "([{":
            if depth == 0:
                return _dotted(code, at) if code[at] == "(" else ""
            depth -= 1
    return ""


def _parameters(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, about in signature.parameters.items() if about.kind in named]


def _attributes(value, word):
    for name in sorted(dir(value)):
        if name.startswith(word) and (word.startswith("_") or not name.startswith("_")):
            yield name, _kind(inspect.getattr_static(value, name, None))


def _plain(code, at, word):
    function = _value(_call(code, at) or " ")
    if callable(function):
        yield from ((f"{name}=", "parameter") for name in _parameters(function))
    yield from ((name, _kind(value)) for name, value in sorted(_names.items()))
    yield from ((name, "keyword") for name in keyword.kwlist)
    yield from ((name, _kind(value)) for name, value in sorted(vars(builtins).items()))


def _modules():
    return sorted({name for name in (*sys.stdlib_module_names, "numpy", "matplotlib") if not name.startswith("_")})


def _matches(code, at, begin, word, imports):
    line = code[code.rfind("\n", 0, begin) + 1 : begin]
    quote = _in_text(line)
    if quote:
        # Keys of a dictionary: `name['`.
        owner = line[: -len(quote) - 1] if line.endswith(f"[{quote}") else ""
        value = _value(_dotted(owner, len(owner)) or " ") if owner else None
        keys = value if type(value) is dict else ()
        return [(key, "key") for key in keys if isinstance(key, str) and key.startswith(word)]
    words = line.split()
    if words[:1] == ["from"] and "import" in words:
        module = _standard(words[1])
        return list(_attributes(module, word)) if inspect.ismodule(module) else []
    if words[:1] in (["import"], ["from"]) and not line.endswith("."):
        return [(name, "module") for name in _modules() if name.startswith(word)]
    if line.endswith("."):
        dotted = _dotted(code, begin - 1) or " "
        value = _standard(dotted) if words[:1] in (["import"], ["from"]) else _value(dotted, imports)
        return [] if value is _MISSING else list(_attributes(value, word))
    hidden = not word.startswith("_")
    known = {}
    for name, kind in _plain(code, begin, word):
        if name.startswith(word) and not (hidden and name.startswith("_")):
            known.setdefault(name, kind)
    return list(known.items())


def complete(code, at, imports=""):
    at = min(at, len(code))
    begin = _begin(code, at)
    matches = _matches(code, at, begin, code[begin:at], imports)[:_MOST]
    kinds = [{"start": begin, "end": at, "text": name, "type": kind} for name, kind in matches]
    return _tracebook._json(
        {
            "status": "ok",
            "matches": [name for name, _ in matches],
            "cursor_start": begin,
            "cursor_end": at,
            "metadata": {"_jupyter_types_experimental": kinds},
        }
    )


def _about(dotted, value):
    if callable(value):
        try:
            lines = [f"{dotted}{inspect.signature(value)}"]
        except (TypeError, ValueError):
            lines = [f"{dotted}(…)"]
    elif inspect.ismodule(value):
        lines = [f"module {value.__name__}"]
    else:
        row = rows({"value": value})
        lines = [f"{dotted}: {type(value).__name__}" + (f" = {row[0]['value']}" if row and row[0]["value"] else "")]
    own = callable(value) or inspect.ismodule(value) or type(value).__module__ not in ("builtins", "numpy")
    doc = inspect.getdoc(value) if own else None
    if doc:
        lines += ["", doc[:_DOC_LIMIT]]
    return "\n".join(lines)


def inspect_at(code, at):
    at = min(at, len(code))
    end = at
    while end < len(code) and _is_part(code[end]):
        end += 1
    line = code[code.rfind("\n", 0, at) + 1 : at]
    text = None
    if not _in_text(line):
        for dotted in (_dotted(code, end), _call(code, at)):
            value = _value(dotted) if dotted and not dotted[0].isdigit() else _MISSING
            if value is not _MISSING:
                text = _about(dotted, value)
                break
    data = {} if text is None else {"text/plain": text}
    return _tracebook._json({"status": "ok", "found": text is not None, "data": data, "metadata": {}})


def variables():
    return _tracebook._json({"status": "ok", "variables": rows(_names)})


def values(names):
    return _tracebook._json({"status": "ok", "values": plain(_names, names.split("\n"))})
