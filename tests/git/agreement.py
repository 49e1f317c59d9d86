"""Compares what `tracebook git` says of a repository's history with what Git says.

    python tests/git/agreement.py PROGRAM REPOSITORY... [--commits 300] [--files 200] [--seed 1]
    python tests/git/agreement.py PROGRAM --made-of FOLDER [--seed 1]

PROGRAM is `tracebook`. A repository may be bare; it's cloned to a temporary folder. `--made-of` makes one of the notes
in a folder: random edits, renames, deletions and merges. Compared are, of the last commit's history:

- log: all commits with their authors, times and first lines;
- files: the commits that changed a file, through its renames, as `git log FILE` before each of them;
- blame: the commit of each line;
- shown, renames: what a commit changed in each file, and which files it renamed.

Prints counts, and the first differences of each kind. Exits with 1 if fewer of one kind agree than SHARES says.
"""

import argparse
import collections
import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The share of each kind that has to agree. libgit2 measures the similarity of renamed files in its own way, and a
# message or name in another encoding is shown with replacements.
SHARES = {"log": 0.999, "files": 0.98, "blame": 0.99, "shown": 0.99, "renames": 0.95}
SHOWN_DIFFERENCES = 5
MAX_BLAMED_BYTES = 4 << 20
ALL = "1000000"


def git(folder, *words, ok=True, **options):
    """Returns what Git prints, as bytes; None if it fails and `ok` says that it may. Settings of the user or of the
    machine make no difference."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    environment.update(options.pop("env", {}))
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, env=environment, **options)
    if done.returncode == 0:
        return done.stdout
    if ok:
        raise RuntimeError(f"git {' '.join(words)}: {text(done.stderr)[:2000]}")
    return None


def unless_missing(compare):
    """Makes a comparison return None where Git itself lacks contents: a snapshot may have no large files."""

    @functools.wraps(compare)
    def tried(*given):
        try:
            return compare(*given)
        except RuntimeError as error:
            if "unable to read" not in str(error):
                raise
            return None

    return tried


def text(data):
    return data.decode("utf-8", errors="replace")


class Tally:
    """How many things of one kind agree, and the first that don't."""

    def __init__(self, kind):
        self.kind, self.same, self.differences, self.left_out = kind, 0, [], 0

    def add(self, is_same, what, count=1):
        if is_same:
            self.same += count
        else:
            self.differences += [what] * count

    def report(self):
        """Prints the counts. Returns whether enough agree."""
        all_of_it = self.same + len(self.differences)
        left_out = f", {self.left_out} left out, since Git lacks contents" if self.left_out else ""
        print(f"  {self.kind}: {self.same} of {all_of_it} agree{left_out}")
        for what in list(dict.fromkeys(self.differences))[:SHOWN_DIFFERENCES]:
            print(f"    {what}")
        return self.same >= all_of_it * SHARES[self.kind]


class Compared:
    """A repository, and the program that reads it."""

    def __init__(self, program, folder, chance):
        self.program, self.folder, self.chance = program, folder, chance

    def ask(self, *words):
        """Returns what the program prints as JSON; None if it refuses."""
        words = [self.program, "git", words[0], "--json", "--workspace", str(self.folder.parent / "W"), *words[1:]]
        done = subprocess.run(words, cwd=self.folder, capture_output=True)
        if done.returncode != 0:
            print(f"    {' '.join(words[1:])}: {text(done.stderr).strip()[:300]}")
            return None
        return json.loads(done.stdout)

    def sample(self, things, most):
        return things if len(things) <= most else sorted(self.chance.sample(things, most), key=things.index)

    # log

    @functools.cached_property
    def parents(self):
        """The parents of each commit, newest first."""
        lines = text(git(self.folder, "log", "--format=%H %P", "HEAD")).splitlines()
        return {line.split()[0]: line.split()[1:] for line in lines}

    def compare_log(self, tally):
        fields = text(git(self.folder, "log", "-z", "--encoding=UTF-8", "--format=%H%n%at%n%ct%n%an%n%B", "HEAD"))
        theirs = {}
        for record in filter(None, fields.split("\0")):
            commit, written, committed, author, message = record.split("\n", 4)
            theirs[commit] = (int(written), int(committed), author, message.split("\n")[0])
        listed = self.ask("log", "--limit", ALL) or []
        ours = {
            one["id"]: (one["author_time"], one["commit_time"], one["author"], one["summary"]) for one in listed
        }
        for commit in theirs.keys() | ours.keys():
            mine, other = ours.get(commit), theirs.get(commit)
            tally.add(mine == other, f"{commit}: {mine} instead of {other}")
        place = {one["id"]: at for at, one in enumerate(listed)}
        wrong = [
            commit
            for commit, before in self.parents.items()
            if any(place.get(commit, 0) >= place.get(one, sys.maxsize) for one in before)
        ]
        tally.add(not wrong, f"after a parent: {wrong[:3]}")

    # files

    def files(self):
        """The paths of the last commit's regular files that aren't large."""
        rows = git(self.folder, "ls-tree", "-r", "-l", "-z", "HEAD").split(b"\0")
        found = []
        for row in filter(None, rows):
            about, path = row.split(b"\t", 1)
            mode, _, _, size = about.split()
            is_name = not path.startswith(b"-") and text(path).encode() == path
            # A snapshot may lack large files.
            is_here = size.isdigit() and (self.folder / text(path)).is_file()
            if mode.startswith(b"100") and is_name and is_here and int(size) <= MAX_BLAMED_BYTES:
                found.append(text(path))
        return found

    def old_name(self, path, commit, parent):
        """The name of a commit's file in a parent that has no file of this name; None if it's a new one."""
        words = ["diff-tree", "--follow", "-r", "-M", "-z", "--name-status", parent, commit, "--", path]
        parts = text(git(self.folder, *words)).split("\0")
        return parts[1] if parts[0].startswith("R") else None

    def blobs(self, pairs):
        """The content hashes of files in commits; None where there's none."""
        asked = "".join(f"{commit}:{path}\n" for commit, path in pairs)
        found = text(git(self.folder, "cat-file", "--batch-check=%(objectname)", input=asked.encode())).splitlines()
        return [None if line.endswith(" missing") else line for line in found]

    def is_renamed(self, path, commits):
        """Whether one of the commits that changed a file gave it its name."""
        pairs = [(commit, parent) for commit in commits for parent in self.parents[commit]]
        asked = [(commit, path) for commit, _ in pairs] + [(parent, path) for _, parent in pairs]
        blobs = self.blobs(asked) if asked else []
        for (commit, parent), here, before in zip(pairs, blobs, blobs[len(pairs) :]):
            if here and not before and self.old_name(path, commit, parent):
                return True
        return False

    def follow(self, path):
        """The commits that changed a file, through its renames: `git log FILE` goes only where a file came from, and
        so does this."""
        order = {commit: at for at, commit in enumerate(self.parents)}
        waiting = {(next(iter(self.parents)), path)}
        found, seen = set(), set(waiting)
        while waiting:
            # Many commits at once: a process for each would take minutes.
            batch = sorted(waiting, key=lambda place: order[place[0]])
            waiting = set()
            asked = batch + [(parent, name) for commit, name in batch for parent in self.parents[commit]]
            known = dict(zip(asked, self.blobs(asked)))
            for commit, name in batch:
                here, parents = known[commit, name], self.parents[commit]
                before = [known[parent, name] for parent in parents]
                if here in before:
                    ways = [(parents[before.index(here)], name)]
                else:
                    if here or parents:
                        found.add(commit)
                    ways = []
                    for parent, blob in zip(parents, before):
                        is_new = here and not blob
                        ways.append((parent, is_new and self.old_name(name, commit, parent) or name))
                for way in ways:
                    if way not in seen:
                        seen.add(way)
                        waiting.add(way)
        return sorted(found, key=order.get)

    @unless_missing
    def compare_file(self, path):
        theirs = text(git(self.folder, "log", "--format=%H", "HEAD", "--", f":(literal){path}")).split()
        listed = self.ask("log", "--limit", ALL, "--", path)
        if listed is None:
            return path, None, theirs
        ours = [one["id"] for one in listed]
        if set(ours) != set(theirs) and self.is_renamed(path, theirs):
            theirs = self.follow(path)
        return path, ours, theirs

    def compare_files(self, tally, workers, paths):
        for compared in workers.map(self.compare_file, paths):
            if compared is None:
                tally.left_out += 1
                continue
            path, ours, theirs = compared
            more = sorted(set(ours or []) - set(theirs))
            less = sorted(set(theirs) - set(ours or []))
            tally.add(not more and not less, f"{path}: not in Git's {more[:3]}, only in Git's {less[:3]}")

    # blame

    @unless_missing
    def blame(self, path):
        shown = git(self.folder, "blame", "--porcelain", "HEAD", "--", path)
        heads = re.finditer(rb"^([0-9a-f]{40}) \d+ \d+(?: \d+)?\n(?:[^\t\n].*\n)*\t", shown, re.M)
        return path, self.ask("blame", path), [text(head[1]) for head in heads]

    def compare_blame(self, tally, workers, paths):
        def is_blamed(path):
            data = (self.folder / path).read_bytes()
            try:
                data.decode()
            except UnicodeDecodeError:
                return False
            # Both count other line ends as parts of lines, and a carriage return alone isn't one for Git.
            return b"\0" not in data and b"\r" not in data

        for compared in workers.map(self.blame, filter(is_blamed, paths)):
            if compared is None:
                tally.left_out += 1
                continue
            path, ours, theirs = compared
            ours = [line["id"] for line in ours or []]
            if len(ours) != len(theirs):
                tally.add(False, f"{path}: {len(ours)} lines instead of {len(theirs)}", max(1, len(theirs)))
                continue
            for number, (mine, other) in enumerate(zip(ours, theirs), 1):
                tally.add(mine == other, f"{path}:{number}: {mine} instead of {other}")

    # show

    @unless_missing
    def show(self, commit):
        before = self.parents[commit][:1]
        words = ["diff-tree", "-p", "-M", "--root", "--no-commit-id", "--no-ext-diff", "--no-textconv", "-r"]
        theirs = git(self.folder, *words, *before, commit)
        message = text(git(self.folder, "show", "-s", "--encoding=UTF-8", "--format=%B", commit)).rstrip()
        return commit, self.ask("show", commit), text(theirs), message

    def compare_shown(self, shown, renames, workers, commits):
        for compared in workers.map(self.show, commits):
            if compared is None:
                shown.left_out += 1
                continue
            commit, ours, theirs, message = compared
            if ours is None or not ours["complete"]:
                shown.add(ours is not None, f"{commit}: it isn't shown")
                continue
            shown.add(ours["message"] == message, f"{commit}: the message is {ours['message']!r}, not {message!r}")
            (mine, moved), (other, moved_there) = changes(ours["diff"]), changes(theirs)
            for pair in moved | moved_there:
                renames.add(pair in moved and pair in moved_there, f"{commit}: {' -> '.join(pair)}")
            odd = {path for pair in moved ^ moved_there for path in pair}
            for path in (mine.keys() | other.keys()) - odd:
                shown.add(mine.get(path) == other.get(path), f"{commit}: {path}")


def unquoted(name):
    """Returns a name as it is, where Git has put it in quotes."""
    if not name.startswith('"'):
        return name
    short = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
    data, rest = bytearray(), name[1:-1]
    while rest:
        if rest[0] != "\\":
            data += rest[0].encode()
            rest = rest[1:]
        elif rest[1] in short:
            data.append(short[rest[1]])
            rest = rest[2:]
        else:
            data.append(int(rest[1:4], 8))
            rest = rest[4:]
    return text(bytes(data))


def changes(diff):
    """Returns what a diff changes: of each path, how often each line goes and comes; and the renames."""
    files, renames = {}, set()
    for part in re.split(r"^diff --git ", diff, flags=re.M)[1:]:
        head, *hunks = re.split(r"^@@ ", part, flags=re.M)
        lines = head.split("\n")
        named = lambda begin: next((unquoted(line[len(begin) :]) for line in lines if line.startswith(begin)), None)
        old, new = named("rename from "), named("rename to ")
        if old is not None:
            renames.add((old, new))
        if new is None:
            # Both names are the same.
            both = lines[0]
            new = unquoted(both.split('" "b/')[0] + '"')[2:] if both.startswith('"') else both[2 : len(both) // 2]
        counts = collections.Counter()
        for hunk in hunks:
            counts.update(line for line in hunk.split("\n")[1:] if line[:1] in "+-" and line)
        kinds = [line.split(" mode")[0] for line in lines if line.startswith(("new file", "deleted file"))]
        files[new] = (kinds, any(line.startswith("Binary files") for line in lines), counts)
    return files, renames


def make_repository(folder, source, chance):
    """Makes a repository of the notes in a folder, with random commits on branches."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    time = 1_700_000_000

    def commit(message):
        nonlocal time
        time += chance.randrange(1, 5_000)
        dates = {"GIT_AUTHOR_DATE": f"{time - chance.randrange(2_000)} +0100", "GIT_COMMITTER_DATE": f"{time} +0000"}
        who = {"GIT_AUTHOR_NAME": chance.choice(["Ada", "Grace", "Zoë"]), "GIT_COMMITTER_NAME": "Ada"}
        mail = {"GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_EMAIL": "a@example.org"}
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", message, env={**dates, **who, **mail})

    notes = sorted(path for path in Path(source).rglob("*.md") if path.stat().st_size < 100_000)
    for path in chance.sample(notes, min(len(notes), 40)):
        place = folder / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
    commit("First")

    def edit(path, number):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        for _ in range(chance.randrange(1, 5)):
            at = chance.randrange(len(lines) + 1)
            lines[at : at + chance.randrange(3)] = [f"line of step {number}: größer → ½\n"] * chance.randrange(3)
        path.write_text("".join(lines), encoding="utf-8")

    def step(number):
        files = sorted(path for path in folder.rglob("*.md") if path.is_file())
        for path in chance.sample(files, min(len(files), 3)):
            kind = chance.randrange(24)
            if kind < 20:
                edit(path, number)
            elif kind < 23:
                place = chance.choice([folder, path.parent, folder / f"sub {number % 4}"]) / f"moved {number}-{kind}.md"
                place.parent.mkdir(exist_ok=True)
                if not place.exists():
                    path.rename(place)
                    if kind > 20:
                        edit(place, number)
            elif len(files) > 20:
                path.unlink()
        commit(f"Step {number}\n\nWith a body.")

    for number in range(150):
        if number % 10 == 3:
            git(folder, "switch", "-q", "-c", "side")
            step(number)
            git(folder, "switch", "-q", "main")
        step(number)
        if number % 10 == 6:
            names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
            time += 1
            dates = {"GIT_AUTHOR_DATE": f"{time} +0000", "GIT_COMMITTER_DATE": f"{time} +0000"}
            git(folder, "merge", "-q", "-X", "ours", "--no-edit", "side", ok=False, env={**names, **dates})
            if (folder / ".git/MERGE_HEAD").exists():
                # Renamed on both sides, or changed here and deleted there: all that's there stays.
                commit("Merge")
            git(folder, "branch", "-q", "-D", "side")


def compare(program, folder, options):
    print(options.name)
    compared = Compared(program, folder, random.Random(options.seed))
    tallies = {kind: Tally(kind) for kind in SHARES}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        compared.compare_log(tallies["log"])
        paths = compared.sample(compared.files(), options.files)
        compared.compare_files(tallies["files"], workers, paths)
        compared.compare_blame(tallies["blame"], workers, paths)
        commits = compared.sample(list(compared.parents), options.commits)
        compared.compare_shown(tallies["shown"], tallies["renames"], workers, commits)
    return all([tally.report() for tally in tallies.values()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("repositories", nargs="*", type=Path)
    parser.add_argument("--made-of", type=Path)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = str(options.program.resolve())
    good = []
    for source in [*options.repositories, *filter(None, [options.made_of])]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "repository"
            options.name = f"{source}, seed {options.seed}"
            if source == options.made_of:
                make_repository(folder, source, random.Random(options.seed))
            else:
                git(".", "clone", "-q", "-n", "--no-tags", "--single-branch", str(source.resolve()), str(folder))
                git(folder, "reset", "-q")
                git(folder, "checkout-index", "-a", ok=False)
            good.append(compare(program, folder, options))
    if not good:
        parser.error("name a repository, or a folder with --made-of")
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
