"""Runs packages' own tests in the science kernel and in an environment, and counts them.

    python tests/data/tutorials/suites.py PROGRAM ENVIRONMENT [GROUP…] [--kernel NAME] [--seconds N] [--minutes N] \\
        [--tools FOLDER] [--out FOLDER]

`PROGRAM` is `tracebook`; `TRACEBOOK_KERNELS` names the folder of the science pack. `ENVIRONMENT` is a virtual
environment with the packages in the pack's versions: their wheels hold the tests, which the pack leaves out. pytest and
what it needs are pure Python and come from there or from the folder `--tools`; they are copied beside the note.
hypothesis is native by now: install an older one (`pip install --target FOLDER pytest hypothesis==6.140.3`).

Each file of tests has a note and so a kernel of its own: one which ends the kernel takes nothing else along. A line for
each file says what passed, failed and was skipped; failures are in `OUT/KERNEL-GROUP.txt`, and all counts in
`OUT/counts.json`. After `--minutes`, the files that are left are counted as such. At the end comes a table of all
groups, and one of the reasons for failures.
"""

import argparse
import collections
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
    "numpy-matrixlib": ("numpy/matrixlib/tests", ()),
    "numpy-testing": ("numpy/testing/tests", ()),
    "numpy-top": ("numpy/tests", ("test_ctypeslib", "test_scripts", "test_configtool")),
    "pandas-groupby": ("pandas/tests/groupby", ()),
    "pandas-io": ("pandas/tests/io", ("test_sql", "test_s3", "test_gcs", "test_parquet", "test_orc", "test_feather",
                                      "test_clipboard", "pytables", "test_spss", "test_fsspec", "test_http_headers",
                                      "test_iceberg", "test_network", "test_odf", "test_odswriter")),
}
COPIED = ("pytest", "py.py", "_pytest", "pluggy", "iniconfig", "hypothesis", "sortedcontainers", "pygments", "attr",
          "attrs", "_hypothesis_globals.py")
START = '''
import importlib, os, sys, types
here, kernel = os.getcwd(), {kernel!r}
if kernel == "science":
    sys.dont_write_bytecode, sys.pycache_prefix = False, here + "/bytecode"  # shared by all kernels of the group
sys.path.append(here + "/suites")  # behind the packages that are tested
# The pack's packages have no tests: they are found beside the note.
for name in {packages!r}:
    importlib.import_module(name).__path__.append(here + "/suites/" + name.replace(".", "/"))
try:
    import numpy._core._multiarray_tests
except ImportError:
    # The pack leaves this extension out, which numpy's conftest asks for the mode of the processor's arithmetic only.
    fake = sys.modules["numpy._core._multiarray_tests"] = types.ModuleType("numpy._core._multiarray_tests")
    fake.get_fpu_mode = lambda: 0
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = here + "/hypothesis"
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
    code = pytest.main([path, "-q", "--assert=plain", "--capture=sys", "-p", "no:cacheprovider",
        "-p", "no:faulthandler", "-p", "no:threadexception", "-p", "no:logging", f"--rootdir={here}/suites",
        "-c", f"{here}/suites/pytest.ini", "-m", "not slow and not network and not db and not single_cpu",
        f"--basetemp={here}/temporary", "-W", "ignore"], plugins=[count])
    import json
    print("\\nCOUNTED", json.dumps([count.passed, count.failed, count.skipped, int(code), count.why]))
'''


# What the failures that are known have in common: a reason, and what their messages contain.
REASONS = (
    ("no ctypes", r"_?ctypes"),
    ("a C extension for tests only, which the pack leaves out",
     r"_multiarray_tests|_umath_tests|_rational_tests|_operand_flag_tests|_struct_ufunc_tests|_pyx_|Cython"),
    ("no threads", r"can't start new thread"),
    ("no other processes", r"subprocess|os\.fork|os\.pipe|does not support processes"),
    ("no sockets or network", r"_?socket|urlopen|Network is unreachable"),
    ("no mmap", r"\bmmap\b"),
    ("a package that is not installed", r"No module named|Missing optional dependency|Import \w+ failed"),
    ("32-bit pointers", r"int32|32-bit|maximum supported dimension|array is too big|int too large to convert"),
    ("memory", r"MemoryError|Unable to allocate"),
)


def reason_of(message):
    """The reason for a failure: one of those that are known, or the beginning of its message without numbers."""
    for reason, pattern in REASONS:
        if re.search(pattern, message):
            return reason
    return re.sub(r"0x[0-9a-f]+|\d+", "N", " ".join(message.split()))[:90]


def prepare(folder, packages, environment, tools, source, kernel):
    """pytest beside the note; in science the tests, too."""
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
    if kernel == "environment":
        (folder / "notes/.venv").symlink_to(environment)
        return
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


def run_group(kernel, name, given, packages, until):
    source, left_out = GROUPS[name]
    folder = given.out / f"{kernel}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    prepare(folder, packages, given.environment.resolve(), given.tools or packages, source, kernel)
    # The environment's packages have their tests; those of the pack are beside the note.
    root, shown = (folder / "notes/suites", "suites/") if kernel == "science" else (packages, f"{packages}/")
    found = sorted(path.relative_to(root).as_posix() for path in (root / source).rglob("test_*.py"))
    files = [path for path in found if not any(word in path for word in left_out)]
    setup = START.replace("{packages!r}", repr(extended(source) if kernel == "science" else []))
    setup = setup.replace("{kernel!r}", repr(kernel))
    environment = dict(os.environ, HOME=str(folder))
    workspace = ["--workspace", str(folder / "W")]
    totals, begun = [0, 0, 0], time.monotonic()
    lines, failures = [], []
    for number, path in enumerate(files, 1):
        note = folder / "notes" / f"t{number}.md"
        note.write_text(f"---\nfaithful: false\nstate: off\n---\n```python timeout={given.seconds}\n{setup}\n```\n\n"
                        f"```python timeout={given.seconds}\nrun({shown + path!r})\n```\n")
    subprocess.run([given.program, *workspace, "open", str(folder / "notes")], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    left = 0
    for number, path in enumerate(files, 1):
        start = time.monotonic()
        if start > until:
            left += 1
            continue
        done = subprocess.run([given.program, *workspace, "run", f"t{number}", "--json", "--kernel", kernel],
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
            failures.append((path, f"no count: {errors}\n{texts[-2000:]}"))
            print(lines[-1], flush=True)
            continue
        passed, failed, skipped, code, why = json.loads(counted[1])
        totals = [a + b for a, b in zip(totals, (passed, failed, skipped))]
        failures += why
        lines.append(f"{path}: {passed} passed, {failed} failed, {skipped} skipped, {took:.0f} s (exit {code})")
        print(lines[-1], flush=True)
    told = "\n".join(f"{test}\n    {message}\n" for test, message in failures)
    (given.out / f"{kernel}-{name}.txt").write_text("\n".join(lines) + "\n\n" + told)
    shutil.rmtree(folder, ignore_errors=True)
    reasons = collections.Counter(reason_of(message) for _, message in failures)
    counts = dict(zip(("passed", "failed", "skipped"), totals), group=name, kernel=kernel, files=len(files), left=left,
                  uncounted=sum(": no count, " in line for line in lines), reasons=dict(reasons.most_common()),
                  seconds=round(time.monotonic() - begun))
    print("\n".join(["", *HEAD, row_of(counts), ""]), flush=True)
    return counts


HEAD = ("| Group | Kernel | Passed | Failed | Skipped | Files | Seconds |", "|---|---|---:|---:|---:|---:|---:|")


def row_of(counts):
    files = str(counts["files"])
    if counts["left"] or counts["uncounted"]:
        files = f"{counts['files'] - counts['left'] - counts['uncounted']} of {files}"
    numbers = [f"{counts[key]:,}" for key in ("passed", "failed", "skipped")]
    return f"| `{counts['group']}` | {counts['kernel']} | {' | '.join(numbers)} | {files} | {counts['seconds']:,} |"


def print_tables(all_counts):
    print("\n".join((*HEAD, *(row_of(counts) for counts in all_counts if counts["left"] < counts["files"]))))
    reasons = collections.defaultdict(lambda: collections.Counter())
    for counts in all_counts:
        for reason, number in counts["reasons"].items():
            reasons[reason][counts["kernel"]] += number
    print("\n| Reason for failures | Science | Environment |\n|---|---:|---:|")
    for reason, numbers in sorted(reasons.items(), key=lambda pair: -sum(pair[1].values())):
        shown = reason.replace("|", "\\|")
        print(f"| {shown} | {numbers['science']} | {numbers['environment']} |")


def main():
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("program")
    reader.add_argument("environment", type=Path)
    reader.add_argument("group", nargs="*", default=list(GROUPS))
    reader.add_argument("--kernel", choices=("science", "environment"), help="only this one")
    reader.add_argument("--seconds", type=int, default=300, help="for one file of tests")
    reader.add_argument("--minutes", type=float, default=float("inf"), help="for all groups")
    reader.add_argument("--tools", type=Path, help="folder with pytest and what it needs")
    reader.add_argument("--out", type=Path, default=Path("/tmp/tracebook-suites"))
    given = reader.parse_args()
    packages = next(given.environment.resolve().glob("lib/python3*/site-packages"))
    given.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * given.minutes
    all_counts = []
    # The environment first: it's done in a few minutes.
    for kernel in [given.kernel] if given.kernel else ["environment", "science"]:
        for name in given.group:
            all_counts.append(run_group(kernel, name, given, packages, until))
            (given.out / "counts.json").write_text(json.dumps(all_counts, indent=1) + "\n")
    print_tables(all_counts)


if __name__ == "__main__":
    main()
