"""Compares how Tracebook and marimo read the names of cells, on every Python cell of the given notebooks and notes.

    pip install marimo
    python tests/agreement.py PROGRAM NOTEBOOK|NOTE...

PROGRAM is `tracebook`. Both sides see each cell alone: what it defines, and what it uses of other cells. Names that
begin with an underscore are local to a cell in marimo and are left out. Prints each difference and a count; exits with
1 if fewer than 99 of 100 cells agree.
"""

import builtins
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from marimo._ast.compiler import compile_cell


def cells(paths):
    """Returns the sources of all Python cells, without duplicates."""
    seen = []
    for path in paths:
        if Path(path).suffix == ".md":
            # A note: the text between its fences.
            found = re.findall(r"^```python[^\n]*\n(.*?)^```$", Path(path).read_text(encoding="utf-8"), re.M | re.S)
            seen += [source for source in found if source.strip() and source not in seen]
            continue
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        for cell in notebook.get("cells", []):
            if cell.get("cell_type") == "code":
                source = cell.get("source", "")
                source = source if isinstance(source, str) else "".join(source)
                if source.strip() and source not in seen and "```" not in source and "\n%" not in f"\n{source}":
                    seen.append(source)
    return seen


def theirs(source):
    """Returns the names that marimo reads, or None if it refuses the cell."""
    try:
        cell = compile_cell(source, cell_id="0")
    except (SyntaxError, ValueError, TypeError):
        return None
    local = lambda name: name.startswith("_") or name in dir(builtins)
    return {n for n in cell.defs if not local(n)}, {n for n in cell.refs if not local(n) and n not in cell.defs}


def ours(program, sources):
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "notes" / "cells.md"
        note.parent.mkdir()
        note.write_text("".join(f"```python\n{source.rstrip()}\n```\n\n" for source in sources), encoding="utf-8")
        call = lambda *words: subprocess.run(
            [program, "--workspace", f"{folder}/W", *words], check=True, capture_output=True, text=True
        ).stdout
        call("open", str(note.parent))
        found = json.loads(call("cells", "cells.md", "--json"))["cells"]
    local = lambda name: name.startswith("_") or name in dir(builtins)
    return [
        ({n for n in cell["binds"] if not local(n)}, {n for n in cell["wants"] if not local(n)}) for cell in found
    ]


def main(program, paths):
    sources = [source for source in cells(paths) if theirs(source) is not None]
    own = ours(program, sources)
    assert len(own) == len(sources), f"{len(sources)} cells in, {len(own)} out"
    different = 0
    for source, mine in zip(sources, own):
        other = theirs(source)
        if mine != other:
            different += 1
            print(f"--- {source}\n    Tracebook: {mine}\n    marimo:    {other}")
    print(f"{len(sources) - different} of {len(sources)} cells agree")
    return int(different * 100 > len(sources))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
