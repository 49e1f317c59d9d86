"""Runs packages' own tests in the science kernel, and counts them.

    python tests/data/tutorials/suites.py PROGRAM ENVIRONMENT [GROUP…] [--seconds N] [--minutes N] [--tools FOLDER] \\
        [--out FOLDER]

`PROGRAM` is `tracebook`; `TRACEBOOK_KERNELS` names the folder of the science pack. `ENVIRONMENT` is a virtual
environment with the packages in the pack's versions: their wheels hold the tests, which the pack leaves out. pytest and
what it needs are pure Python and come from there or from the folder `--tools`; they are copied beside the note.
hypothesis is native by now: install an older one (`pip install --target FOLDER pytest hypothesis==6.140.3`).

Each file of tests has a note and so a kernel of its own: one which ends the kernel takes nothing else along. A line for
each file says what passed, failed and was skipped; failures are in `OUT/GROUP.txt`, and all counts in `OUT/counts.json`.
After `--minutes`, the files that are left are counted as such. The last line says for each group how it ended.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

# Group: folder of tests (in site-packages), files that are left out, tests that are deselected, each with a reason.
GROUPS = {
    "numpy-core": ("numpy/_core/tests", ("test_multithreading", "test_mem_policy", "test_cython", "test_limited_api",
                                         "test_extint128", "test_cpu_features", "test_mem_overlap")),
    "numpy-lib": ("numpy/lib/tests", ()),
    "numpy-linalg": ("numpy/linalg/tests", ()),
    "numpy-fft": ("numpy/fft/tests", ()),
    "numpy-ma": ("numpy/ma/tests", ()),
    "numpy-polynomial": ("numpy/polynomial/tests", ()),
    "numpy-random": ("numpy/random/tests", ("test_extending",)),
    "pandas-groupby": ("pandas/tests/groupby", ()),
    "pandas-io": ("pandas/tests/io", ("test_sql", "test_s3", "test_gcs", "test_parquet", "test_orc", "test_feather",
                                      "test_clipboard", "pytables", "test_spss", "test_fsspec", "test_http_headers",
                                      "test_iceberg", "test_network", "test_odf", "test_odswriter")),
}
COPIED = ("pytest", "py.py", "_pytest", "pluggy", "iniconfig", "hypothesis", "sortedcontainers", "pygments",
          "_hypothesis_globals.py")
START = '''
import importlib, os, sys, warnings
sys.dont_write_bytecode, sys.pycache_prefix = False, "/note/bytecode"  # shared by all kernels of the group
sys.path.append("/note/suites")  # behind the pack: its packages are the ones that are tested
# The pack's packages have no tests: they are found beside the note.
def with_tests(name):
    importlib.import_module(name).__path__.append("/note/suites/" + name.replace(".", "/"))
for name in {packages!r}:
    with_tests(name)
# The pack leaves this extension out, which numpy's conftest asks for the mode of the processor's arithmetic only.
import types
fake = sys.modules["numpy._core._multiarray_tests"] = types.ModuleType("numpy._core._multiarray_tests")
fake.get_fpu_mode = lambda: 0
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = "/note/hypothesis"
import pytest

class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.why = 0, 0, 0, []
    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self.passed += 1
        elif report.skipped or hasattr(report, "wasxfail"):
            self.skipped += 1
        elif report.failed:
            self.failed += 1
            crash = getattr(report.longrepr, "reprcrash", None)
            self.why.append((report.nodeid, str(crash.message if crash else report.longrepr)[:300]))
    def pytest_collectreport(self, report):
        if report.failed:
            self.failed += 1
            self.why.append((report.nodeid, str(report.longrepr)[-300:]))

def run(path):
    count = Count()
    code = pytest.main([path, "-q", "--assert=plain", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:faulthandler",
        "-p", "no:threadexception", "-p", "no:logging", "--rootdir=/note/suites",
        "-c", "/note/suites/pytest.ini", "-m", "not slow and not network and not db and not single_cpu",
        "--basetemp=/note/temporary", "-W", "ignore"], plugins=[count])
    import json
    print("\\nCOUNTED", json.dumps([count.passed, count.failed, count.skipped, int(code), count.why]))
'''


def prepare(folder, packages, tools, source):
    """The tests, and pytest, beside the note."""
    suites = folder / "notes" / "suites"
    suites.mkdir(parents=True)
    (suites / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    network\n    db\n    single_cpu\n"
                                       "    clipboard\n    arm_slow\n    skip_ubsan\n    xfail_pypy\n    parametrize\n"
                                       "    leaks_references\n    valgrind_error\n    thread_unsafe\n    iterations\n")
    for name in COPIED:
        path = tools / name
        if path.is_dir():
            shutil.copytree(path, suites / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        elif path.exists():
            shutil.copy(path, suites / name)
    top = source.split("/")[0]
    target = suites / source
    shutil.copytree(packages / source, target, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    parts = Path(source).parts
    for depth in range(1, len(parts)):
        init = suites.joinpath(*parts[:depth]) / "__init__.py"
        if not init.exists():
            # Of a package of the pack: only a mark for pytest, it isn't imported.
            original = packages.joinpath(*parts[:depth]) / "__init__.py"
            init.write_text(original.read_text() if "tests" in parts[:depth] else "")
    for extra in ("conftest.py",):
        if (packages / top / extra).exists():
            shutil.copy(packages / top / extra, suites / top / extra)
    if top == "pandas":
        for extra in sorted((packages / "pandas/tests").glob("*.py")):
            shutil.copy(extra, suites / "pandas/tests" / extra.name)
        for extra in ("extension/base", "io"):
            if not (suites / "pandas/tests" / extra).exists():
                shutil.copytree(packages / "pandas/tests" / extra, suites / "pandas/tests" / extra,
                                ignore=shutil.ignore_patterns("__pycache__", "data"))


def extended(source):
    """The packages of the pack that get a folder of tests."""
    parts = source.split("/")
    return [".".join(parts[:depth]) for depth in range(1, parts.index("tests") + 1)]


def run_group(name, program, packages, tools, out, seconds, until):
    source, left_out = GROUPS[name]
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    prepare(folder, packages, tools, source)
    found = sorted((folder / "notes/suites" / source).rglob("test_*.py"))
    files = [path.relative_to(folder / "notes").as_posix() for path in found]
    files = [path for path in files if not any(word in path for word in left_out)]
    setup = START.replace("{packages!r}", repr(extended(source)))
    environment = dict(os.environ, HOME=str(folder))
    workspace = ["--workspace", str(folder / "W")]
    totals, begun = [0, 0, 0], time.monotonic()
    lines, failures = [], []
    for number, path in enumerate(files, 1):
        note = folder / "notes" / f"t{number}.md"
        note.write_text(f"---\nfaithful: false\nstate: off\n---\n```python timeout={seconds}\n" + setup + "\n```\n\n"
                        f"```python timeout={seconds}\nrun('/note/{path}')\n```\n")
    subprocess.run([program, *workspace, "open", str(folder / "notes")], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    left = 0
    for number, path in enumerate(files, 1):
        start = time.monotonic()
        if start > until:
            left += 1
            continue
        done = subprocess.run([program, *workspace, "run", f"t{number}", "--json", "--kernel", "science"],
                              capture_output=True, text=True, env=environment)
        texts, errors = "", done.stderr
        for line in done.stdout.splitlines():
            row = json.loads(line)
            texts += row.get("text", "") if isinstance(row.get("text"), str) else ""
            if row["output_type"] == "error":
                errors += f"{row['ename']}: {row['evalue']}\n"
        counted = re.search(r"^COUNTED (.*)$", texts, re.M)
        took = time.monotonic() - start
        if not counted:
            lines.append(f"{path}: no count, {took:.0f} s: {errors.strip()[-300:]}")
            failures.append(f"{path}\n{errors}\n{texts[-2000:]}\n")
            print(lines[-1], flush=True)
            continue
        passed, failed, skipped, code, why = json.loads(counted[1])
        totals = [a + b for a, b in zip(totals, (passed, failed, skipped))]
        failures += [f"{test}\n    {message}\n" for test, message in why]
        lines.append(f"{path}: {passed} passed, {failed} failed, {skipped} skipped, {took:.0f} s (exit {code})")
        print(lines[-1], flush=True)
    (out / f"{name}.txt").write_text("\n".join(lines) + "\n\n" + "\n".join(failures))
    shutil.rmtree(folder, ignore_errors=True)
    counts = dict(zip(("passed", "failed", "skipped"), totals), files=len(files), left=left,
                  uncounted=sum(": no count, " in line for line in lines), seconds=round(time.monotonic() - begun))
    print(describe(name, counts), flush=True)
    return counts


def describe(name, counts):
    left = f", {counts['left']} not run for lack of time" if counts["left"] else ""
    return (f"== {name}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped, "
            f"{counts['uncounted']} of {counts['files']} files without a count{left}, {counts['seconds']} s")


def main():
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("program")
    reader.add_argument("environment", type=Path)
    reader.add_argument("group", nargs="*", default=list(GROUPS))
    reader.add_argument("--seconds", type=int, default=300, help="for one file of tests")
    reader.add_argument("--minutes", type=float, default=float("inf"), help="for all groups")
    reader.add_argument("--tools", type=Path, help="folder with pytest and what it needs")
    reader.add_argument("--out", type=Path, default=Path("/tmp/tracebook-suites"))
    given = reader.parse_args()
    packages = next(given.environment.glob("lib/python3*/site-packages"))
    given.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * given.minutes
    all_counts = {}
    for name in given.group:
        all_counts[name] = run_group(name, given.program, packages, given.tools or packages, given.out, given.seconds,
                                     until)
        (given.out / "counts.json").write_text(json.dumps(all_counts, indent=1) + "\n")
    print("\n".join(describe(name, counts) for name, counts in all_counts.items()))


if __name__ == "__main__":
    main()
