"""Makes notes of the packages' own tutorials, and records what their cells give in native CPython.

Run it with a CPython that has the packages in the versions of the science pack, on a folder with their sources:

    pip download --no-deps --no-binary :all: numpy==2.5.2 scipy==1.18.1 scikit-learn==1.9.1
    apt-get download python-pandas-doc        # the archive of pandas has no documentation
    python tests/data/tutorials/convert.py SOURCES [NOTE…]

`SOURCES` holds the unpacked archives. Only code and headings are taken; README.md names origin and license.

A statement whose output the tutorial shows ends a cell. Beside each note lies `NAME.json`: for each cell its text
(what it prints, then its value), the number of figures, whether it warns, and where the text comes from: `tutorial` if
the tutorial shows it and native CPython agrees, else `native`. `varies` says that only its form is to be compared: the
tutorial says so, or two native runs differ.
"""

import ast
import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCIPY = "scipy-1.18.1/doc/source/tutorial"
# Name of the note, its source, title, cells of ours before all others, and the heading that it ends before.
NOTES = (
    ("pandas-10min", "pandas-doc/usr/share/doc/python-pandas-doc/html/_sources/user_guide/10min.rst.txt",
     "10 minutes to pandas", "import numpy as np\n\nnp.random.seed(20130101)", None),
    ("numpy-quickstart", "numpy-2.5.2/doc/source/user/quickstart.rst", "NumPy quickstart", None, None),
    ("scipy-special", f"{SCIPY}/special.rst", "Special functions", None, None),
    ("scipy-integrate", f"{SCIPY}/integrate.rst", "Integration",
     "import matplotlib.pyplot as plt\nimport numpy as np", None),
    ("scipy-optimize", f"{SCIPY}/optimize.rst", "Optimization", None, "Global optimization"),
    ("scipy-interpolate", f"{SCIPY}/interpolate/1D.rst", "1-D interpolation", None, None),
    ("scipy-fft", f"{SCIPY}/fft.rst", "Fourier transforms", None, None),
    ("scipy-linalg", f"{SCIPY}/linalg.rst", "Linear algebra", None, None),
    ("scikit-learn", "scikit_learn-1.9.1/doc/getting_started.rst", "Getting started with scikit-learn", None, None),
)
# What is written differently today, and what needs something that no kernel has: replaced or, with None, left out.
REPLACED = {
    'freq="S"': 'freq="s"',
    'freq="M"': 'freq="ME"',
    '.asfreq("H", "s")': '.asfreq("h", "s")',
}
# Statements that contain this are left out: they need PyTables, another program, or what isn't in the text.
LEFT_OUT = ("to_hdf", "read_hdf", "foo.h5", "<TAB>", "testlib", "LowLevelCallable", "integrate.nquad(func, [[0, 10]", "%timeit", "timeit.timeit", "help(", "np.info")
VARIES = re.compile(r"may vary|\+SKIP|random")
NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.I)


class Cells:
    """The parts of a note: headings (level, text) and cells (source, wanted text or None, varies)."""

    def __init__(self):
        self.parts, self.open = [], []

    def heading(self, level, text):
        self.close()
        self.parts.append((level, text))

    def add(self, source, want=None, varies=False, ends=False):
        if any(word in source for word in LEFT_OUT):
            return
        for old, new in REPLACED.items():
            source = source.replace(old, new)
        if "trust-krylov" in source:
            # It traces its steps, which aren't the same after other roundings.
            source = source.replace("'disp': True", "'disp': False")
        self.open.append(source.rstrip())
        if want or ends:
            self.close(want or None, varies)

    def close(self, want=None, varies=False):
        if self.open:
            self.parts.append(("\n".join(self.open), want, varies))
        self.open = []


def headings(text):
    """Where the headings of a text begin and end, with level and words."""
    found, marks = [], []
    for match in re.finditer(r"(?m)^(?:([=\-*~^\"'+#])\1{2,}\n)?(\S[^\n]*)\n([=\-*~^\"'+#])\3{2,}$", text):
        over, words, under = match.groups()
        if len(set(words)) == 1 or (match.end() - match.start(3)) < min(len(words) - 2, 8):
            continue
        style = (over, under)
        if style not in marks:
            marks.append(style)
        words = re.sub(r":\w+:`~?([^`<]*?)(?:\s*<[^`]*>)?`", r"`\1`", words).replace("``", "`")
        found.append((match.start(), match.end(), marks.index(style) + 1, words))
    return found


def raising(source):
    """Code that is to fail, so that the cells below it run."""
    body = textwrap.indent(source.rstrip(), "    ")
    return f"try:\n{body}\nexcept Exception as error:\n    print(f\"{{type(error).__name__}}: {{error}}\")"


def from_doctests(text, cells):
    for piece in doctest.DocTestParser().parse(text):
        if isinstance(piece, str):
            if piece.strip():
                cells.close()
            continue
        source, want = piece.source, piece.want
        if piece.exc_msg:
            cells.close()
            cells.add(raising(source), re.sub(r"^[\w.]*\.", "", piece.exc_msg))
            continue
        varies = bool(VARIES.search(want) or "+SKIP" in source)
        source = re.sub(r"\s*# ?doctest:[^\n]*", "", source)
        cells.add(source, want.replace("<BLANKLINE>", ""), varies)


def from_directives(text, cells):
    """Blocks of `ipython::`, as pandas has them: what each expression gives is shown."""
    for block in re.finditer(r"(?m)^\.\. ipython:: *(?:python)?\n((?:[ \t]+[^\n]*\n|\n)*)", text + "\n"):
        body = textwrap.dedent(block[1])
        if "@verbatim" in body:
            continue
        fails = ":okexcept:" in body
        lines = [line for line in body.splitlines() if not re.match(r"(:\w+:|@savefig)", line.strip())]
        code = "\n".join(lines).strip("\n")
        if fails:
            cells.close()
            cells.add(raising(code), ends=True)
            continue
        comment = 0
        for statement in ast.parse(code).body:
            end = statement.end_lineno
            source = "\n".join(code.splitlines()[comment:end]).strip("\n")
            comment = end
            shown = isinstance(statement, ast.Expr) and not source.rstrip().endswith(";")
            cells.add(source, ends=shown)
        cells.close()


def convert(path, title, setup, end):
    text = path.read_text(encoding="utf-8")
    cells = Cells()
    found = headings(text)
    if end:
        stop = next(start for start, _, _, words in found if words.lower().startswith(end.lower()))
        text, found = text[:stop], [heading for heading in found if heading[0] < stop]
    read = from_directives if ".. ipython::" in text and ">>>" not in text else from_doctests
    if setup:
        cells.add(setup, ends=True)
    place, top = 0, True
    for start, after, level, words in found:
        read(text[place:start], cells)
        place = after
        if not top:
            cells.heading(max(level, 2), words)
        top = False
    read(text[place:], cells)
    cells.close()
    return cells.parts


def run_cells(sources):
    """What each cell gives in this Python, each in order with the same variables, in a folder of its own."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.show = lambda *args, **options: None
    results, names = [], {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, source in enumerate(sources, 1):
            out, value = io.StringIO(), None
            with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("default")
                tree = ast.parse(source)
                last = tree.body[-1]
                is_shown = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
                shown = tree.body.pop() if is_shown else None
                try:
                    exec(compile(tree, f"cell {number}", "exec"), names)
                    if shown:
                        value = eval(compile(ast.Expression(shown.value), f"cell {number}", "eval"), names)
                except Exception as error:
                    raise SystemExit(f"cell {number} fails natively: {error!r}\n{source}") from error
                text = out.getvalue() + ("" if value is None else repr(value))
            results.append({"text": text, "figures": len(plt.get_fignums()), "warns": bool(caught)})
            plt.close("all")
    return results


def run_apart(sources):
    """The same in a process of its own, so that options which one note sets don't reach the next."""
    command = [sys.executable, __file__, "--cells"]
    done = subprocess.run(command, input=json.dumps(sources), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def tokens(text):
    """Numbers and what is between them, without white space."""
    text = re.sub(r"#[^\n]*may vary[^\n]*", "", text)
    place = 0
    for match in NUMBER.finditer(text):
        yield from "".join(text[place : match.start()].split())
        number = match[0]
        yield 0.0 if number.startswith("0x") else float(number)
        place = match.end()
    yield from "".join(text[place:].split())


def agrees(want, got, tolerance=1e-8):
    """Equal but for white space and the last digits of numbers."""
    want, got = list(tokens(want)), list(tokens(got))
    if len(want) != len(got):
        return False
    for one, other in zip(want, got):
        if isinstance(one, float) != isinstance(other, float):
            return False
        if isinstance(one, float):
            if abs(one - other) > tolerance + 1e-6 * abs(other):
                return False
        elif one != other:
            return False
    return True


def main(sources, names):
    for name, path, title, setup, end in NOTES:
        if names and name not in names:
            continue
        parts = convert(sources / path, title, setup, end)
        cells = [part for part in parts if isinstance(part[0], str)]
        codes = [code for code, _, _ in cells]
        first, second = run_apart(codes), run_apart(codes)
        expected = []
        for (_, want, varies), one, other in zip(cells, first, second):
            comes, digits = "native", {}
            # "0.97...": the tutorial promises no more digits.
            if want and (promised := re.fullmatch(r"\d+\.(\d+)\.\.\.\s*", want)):
                digits = {"tolerance": 10.0 ** -len(promised[1])}
                comes = "tutorial" if agrees(want.replace("...", ""), one["text"], digits["tolerance"]) else "native"
            # The tutorials show numpy's scalars as numpy 1 did.
            plain = re.sub(r"np\.(?:float64|int64|bool|complex128)\(([^()]*|\([^()]*\))\)", r"\1", one["text"])
            if want and not varies and agrees(want, plain.replace("np.True_", "True").replace("np.False_", "False")):
                comes = "tutorial"
                if agrees(want, one["text"]):
                    one["text"] = want.rstrip("\n")
            varies = varies or not agrees(one["text"], other["text"])
            expected.append({**one, "from": comes, **digits, **({"varies": True} if varies else {})})
        lines = [f"# {title}", "", f"The code of `{path}`, made by `convert.py`. Its license is BSD-3-Clause.", ""]
        for part in parts:
            if isinstance(part[0], str):
                lines += ["```python", part[0], "```", ""]
            else:
                lines += [f"{'#' * part[0]} {part[1]}", ""]
        (HERE / f"{name}.md").write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")
        rows = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in expected)
        (HERE / f"{name}.json").write_text(f"[\n{rows}\n]\n", encoding="utf-8")
        of_tutorial = sum(cell["from"] == "tutorial" for cell in expected)
        print(f"{name}: {len(expected)} cells, {of_tutorial} as the tutorial shows, "
              f"{sum('varies' in cell for cell in expected)} that vary, {sum(cell['figures'] for cell in expected)} figures")
        wanted = [(want, one) for (_, want, varies), one in zip(cells, expected) if want and one["from"] == "native" and not varies]
        if os.environ.get("SHOW_DIFFERENCES"):
            for want, one in wanted:
                print("--- tutorial\n" + want + "--- native\n" + one["text"])


if __name__ == "__main__" and sys.argv[1] == "--cells":
    print(json.dumps(run_cells(json.load(sys.stdin))))
elif __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
