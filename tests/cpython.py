"""Runs CPython's own tests of the modules that notebooks use most in Tracebook's embedded kernel, in its sandbox.

    python tests/cpython.py PROGRAM [--tests FOLDER] [--write docs/conformance.md] [--only MODULE...]

PROGRAM is `tracebook`. FOLDER is CPython's `Lib/test`, by default that of the Python that runs this script. Each module
is run by `tracebook run` in a note of its own, with a time limit. A test in which the kernel ends counts as failed, and
the others continue without it. Prints a line for each module; `--write` writes the table in the docs.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MODULES = """
csv math statistics random itertools functools collections datetime json re string textwrap heapq bisect copy dataclasses
enum contextlib operator pprint base64 struct array fractions decimal hashlib zlib calendar time sqlite3 glob fnmatch
pathlib typing list dict set int float complex tuple range slice sort fstring format generators exceptions with
""".split()

SECONDS = 150
AGAIN = 4

CELL = '''```python timeout={seconds}
import _imp, sys, unittest
sys.argv = ['test']
# The whole standard library is frozen into the kernel: tests that ask for modules from files would find none.
_imp._override_frozen_modules_for_tests = lambda on: None
skipped_for_good = {skip!r}

class Lines(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        print('> ' + test.id(), flush=True)

def all_tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_tests(test)
        elif test.id() not in skipped_for_good:
            yield test

loader = unittest.TestLoader()
tests = list(all_tests(loader.loadTestsFromName('test.test_{module}')))
print('= ' + str(len(tests)), flush=True)
result = Lines()
for test in tests:
    bad = len(result.failures) + len(result.errors)
    unittest.TestSuite([test]).run(result)
    ok = len(result.failures) + len(result.errors) == bad
    if not ok:
        print('! ' + (result.failures + result.errors)[-1][1].strip().splitlines()[-1][:300])
    print('< ' + test.id() + ' ' + ('ok' if ok else 'bad'), flush=True)
print('. ' + str(len(result.skipped)))
```
'''


def run(program, folder, module):
    """Returns the counts of all, passed, failed and skipped tests, and the reason if the module as a whole failed."""
    skip, done, total, skipped, why = [], {}, 0, 0, ""
    for _ in range(AGAIN):
        note = folder / "notes" / f"{module}.md"
        note.write_text(CELL.format(module=module, skip=sorted({*skip, *done}), seconds=SECONDS), encoding="utf-8")
        ran = subprocess.run(
            [program, "--workspace", folder / "W", "run", note.name, "--timeout", str(SECONDS)],
            capture_output=True, text=True, errors="replace", timeout=SECONDS * 2,
        )
        begun = None
        for line in ran.stdout.splitlines():
            if line.startswith("= "):
                total = max(total, int(line[2:]) + len(done) + len(skip))
            elif line.startswith("> "):
                begun = line[2:]
            elif match := re.fullmatch(r"< (.*) (ok|bad)", line):
                done[match[1]] = match[2]
                begun = None
            elif line.startswith("! ") and begun and "_FailedTest" in begun:
                why = line[2:]
            elif line.startswith(". "):
                skipped += int(line[2:])
        if ran.returncode == 0:
            break
        if why:
            break
        lines = [line for text in (ran.stderr, ran.stdout) for line in text.splitlines() if line.strip()]
        why = lines[-1][:160] if lines else "nothing was printed"
        if begun is None:
            break
        # The kernel ended, or ran out of time, in this test.
        skip.append(begun)
    passed = sum(state == "ok" for state in done.values()) - skipped
    failed = sum(state == "bad" for state in done.values()) + len(skip)
    return {"module": module, "tests": total, "passed": passed, "failed": failed, "skipped": skipped,
            "left": max(total - passed - failed - skipped, 0), "why": why}


def table(rows, tests, version):
    whole = {key: sum(row[key] for row in rows) for key in ("tests", "passed", "failed", "skipped", "left")}
    share = lambda row: 100 * row["passed"] / max(row["passed"] + row["failed"], 1)
    lines = [
        "# CPython's own tests in the embedded kernel",
        "",
        f"Made by `python3 tests/cpython.py target/release/tracebook --tests {tests} --write docs/conformance.md`:",
        f"the tests of CPython {version} for the modules that notebooks use most, each run by `tracebook run` in the sandbox that every cell",
        "has (no network, no other processes, no files but those of its folder). The embedded kernel is RustPython with the",
        "standard library of Python 3.14, so some tests ask for what has changed since; others ask for what the sandbox",
        "forbids, or for what only CPython has (reference counts, its C modules, its messages). “Not reached” are tests behind a",
        "module's time limit.",
        "",
        f"Of the {whole['passed'] + whole['failed']} tests that were reached {whole['passed']} pass ({share(whole):.1f} %);",
        f"{whole['skipped']} skip themselves, {whole['left']} were not reached. The last column is the share of those reached.",
        "",
        "| module | tests | pass | fail | skip | not reached | |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        last = f"{share(row):.0f} %" if row["tests"] else row["why"]
        numbers = " | ".join(str(row[key]) for key in ("tests", "passed", "failed", "skipped", "left"))
        lines.append(f"| {row['module']} | {numbers} | {last} |")
    return "\n".join(lines) + "\n"


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("--tests", type=pathlib.Path)
    words.add_argument("--write", type=pathlib.Path)
    words.add_argument("--only", nargs="+", help="modules, as `json csv`")
    asked = words.parse_args()
    if asked.tests is None:
        import test

        asked.tests = pathlib.Path(test.__path__[0])
    version = re.search(r"python(3\.\d+)", str(asked.tests))
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        ignore = shutil.ignore_patterns("__pycache__", "cjkencodings", "test_asyncio", "test_capi", "test_tkinter")
        shutil.copytree(asked.tests, folder / "notes" / "test", ignore=ignore)
        # Markdown among the tests' data isn't one of our notes.
        for note in (folder / "notes").rglob("*.md"):
            note.unlink()
        for module in MODULES:
            (folder / "notes" / f"{module}.md").write_text("", encoding="utf-8")
        program = pathlib.Path(asked.program).resolve()
        subprocess.run([program, "--workspace", folder / "W", "open", folder / "notes"], check=True, capture_output=True)
        for module in asked.only or MODULES:
            try:
                row = run(program, folder, module)
            except subprocess.TimeoutExpired:
                row = {"module": module, "tests": 0, "passed": 0, "failed": 0, "skipped": 0, "left": 0, "why": "no end"}
            rows.append(row)
            print(json.dumps(row), flush=True)
    if asked.write:
        asked.write.write_text(table(rows, asked.tests, version[1] if version else "?"), encoding="utf-8")


sys.exit(main())
