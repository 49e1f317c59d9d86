"""Compares the tests of two commits by name, so that none is lost while crates and names change.

    python3 tests/earlier_tests.py [BEFORE [AFTER]]

BEFORE is 68a233a by default, the commit from which the crates were split; AFTER is the work tree by default. Counts the
functions that follow `#[test]` (also `#[tokio::test]` and those inside `proptest!`), and those that a macro of the same
file makes from its arguments. A test is lost if AFTER has fewer functions of its name than BEFORE. Exits with 1 if a
lost test has no row in `SUCCESSORS`, if a successor doesn't exist, or, for the default BEFORE, if a row isn't needed.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = "68a233a"

# Tests that are gone by name since FIRST: the commit that removed each, why, and the tests of its subject today.
SUCCESSORS = {
    "files_of_other_programs_are_read_and_come_back": (
        "39c90144",
        "Sessions and runs of other programs are compared field by field, in a file of their own.",
        ["files_of_other_programs_come_back_field_by_field", "what_is_changed_here_changes_only_that"],
    ),
    "hosts_are_allowed_by_name": (
        "a1e91b63",
        "Addresses are parsed once for the policy and for the request, in engine/agent/src/web_address.rs.",
        ["hosts_are_what_they_mean", "lists_name_hosts", "typed_patterns_of_addresses_are_parsed"],
    ),
    "private_addresses_are_known": (
        "a1e91b63",
        "The same addresses, each with the name of its range, in engine/agent/src/web_address.rs.",
        ["ranges_have_names"],
    ),
    "stems_are_english": (
        "31ec33a5",
        "Words are stemmed by the language of their passage.",
        ["stems_ignore_accents_and_keep_identifiers"],
    ),
    "the_map_of_architecture_is_the_tree": (
        "0aecbf60",
        "ARCHITECTURE.md no longer lists files, but has a paragraph for each crate.",
        ["architecture_describes_every_crate_and_names_files_that_are_there"],
    ),
}

TEST = re.compile(
    r"#\[(?:\w+::)*test(?:\([^\]]*\))?\]\s*"
    # Other attributes and comments may stand between.
    r"(?:#\[[^\]]*\]\s*|//[^\n]*\n\s*)*"
    r"(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?fn\s+(\$?\w+)"
)
MACRO = re.compile(r"macro_rules!\s*(\w+)\s*\{")


def tests_of(text):
    """Returns the names of all tests of a Rust file, a name as often as it's declared."""
    names = []
    macros = {}
    for match in TEST.finditer(text):
        if match[1].startswith("$"):
            # The last macro that begins before this place.
            macro = [found[1] for found in MACRO.finditer(text, 0, match.start())][-1:]
            macros.update({name: macros.get(name, 0) + 1 for name in macro})
        else:
            names.append(match[1])
    for macro, copies in macros.items():
        for call in re.finditer(rf"\b{macro}!\s*[({{\[]([^)}}\]]*)[)}}\]]", text):
            names += re.findall(r"\b[a-z_]\w*", call[1]) * copies
    return names


def git(*words, **options):
    """Runs git in the repository and returns its standard output as bytes."""
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, stdout=subprocess.PIPE, **options).stdout


def tests_at(commit):
    """Counts the tests of a commit by name; `None` is the work tree."""
    if commit is None:
        listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.rs")
        paths = {ROOT / path for path in listed.decode().split("\0") if path}
        texts = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
    else:
        listed = git("ls-tree", "-r", "-z", commit).decode().split("\0")
        blobs = [row.split("\t")[0].split()[2] for row in listed if row.endswith(".rs")]
        out = git("cat-file", "--batch", input="".join(f"{blob}\n" for blob in blobs).encode())
        texts = []
        while out:
            head, out = out.split(b"\n", 1)
            size = int(head.split()[2])
            texts.append(out[:size].decode("utf-8"))
            out = out[size + 1 :]
    return collections.Counter(name for text in texts for name in tests_of(text))


def main(before=FIRST, after=None):
    earlier, later = tests_at(before), tests_at(after)
    lost = sorted(name for name in earlier if later[name] < earlier[name])
    print(f"{before}: {earlier.total()} tests; {after or 'work tree'}: {later.total()} tests; {len(lost)} lost by name")
    wrong = []
    for name in lost:
        if name not in SUCCESSORS:
            wrong.append(f"{name}: {earlier[name]} before, {later[name]} after, and no row says why")
            continue
        commit, why, successors = SUCCESSORS[name]
        print(f"  {name} ({commit}): {why}\n    now: {', '.join(successors)}")
        wrong += [f"{name}: its successor {other} doesn't exist" for other in successors if not later[other]]
    if before == FIRST:
        wrong += [f"{name}: the row isn't needed" for name in SUCCESSORS if name not in lost]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:3]))
    except subprocess.CalledProcessError as error:
        print(f"git failed with status {error.returncode}: is the commit in this clone?", file=sys.stderr)
        sys.exit(2)
