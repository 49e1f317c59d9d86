"""Guest side of the science kernel: passes requests to `Cells`, and its messages to the host.

Run once per instance, after `HARNESS` and `BACKEND`, the texts of the harness and of matplotlib's backend, and
`FOLDERS`, the paths of the folders that this instance sees, in the order of their descriptors. It lives in the module
`_tracebook_cells`, so that the cells' `__main__` contains no name of ours. Its state is the guest's memory, which is
saved and restored with everything else.
"""

import builtins
import functools
import io
import json
import os
import signal
import stat
import sys
import time
import types

import _host

_FOLDER = "/note"
# Longest sleep in seconds; no Python code runs meanwhile.
_NAP = 0.02
# Descriptors below this number are checked for open files.
_FILES_LIMIT = 64


def _door(kind, content):
    return _host.call(json.dumps([kind, content], ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _send(kind, content):
    _door(kind, content)


def _ask(prompt, password):
    answer = json.loads(_door("input_request", {"prompt": prompt, "password": password}))
    if answer is None:
        raise KeyboardInterrupt
    return answer


# The host sets the state that a signal would set; this handler then raises KeyboardInterrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
_sleep = time.sleep


def _sleep_in_naps(seconds, /):
    """Delay execution for this many seconds, which may be a fraction. KeyboardInterrupt ends it."""
    if not isinstance(seconds, (int, float)) or not _NAP < seconds < 1e9:
        return _sleep(seconds)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _sleep(min(left, _NAP))


_sleep_in_naps.__name__ = _sleep_in_naps.__qualname__ = "sleep"
time.sleep = _sleep_in_naps


class _NullDevice(io.RawIOBase):
    """`/dev/null`, which WASI has no way to grant: reads nothing, and discards what is written."""

    def __init__(self, mode):
        self.name, self.mode = os.devnull, mode

    def readable(self):
        return self.mode[0] == "r" or "+" in self.mode

    def writable(self):
        return self.mode != "rb"

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        return 0

    def readinto(self, buffer):
        return 0

    def write(self, data):
        return memoryview(data).nbytes


_open = io.open


@functools.wraps(_open)
def _open_or_null(
    file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None
):
    path = file.__fspath__() if hasattr(file, "__fspath__") else file
    kind = mode.replace("b", "").replace("t", "") if isinstance(mode, str) else ""
    if path not in (os.devnull, os.fsencode(os.devnull)) or kind not in ("r", "w", "a", "r+", "w+", "a+"):
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    raw = _NullDevice(kind + "b")
    if "b" in mode and buffering == 0:
        return raw
    buffered = (io.BufferedRandom if "+" in kind else io.BufferedReader if kind == "r" else io.BufferedWriter)(raw)
    if "b" in mode:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    text.mode = mode
    return text


# `pathlib` calls `io.open`.
builtins.open = io.open = _open_or_null

_harness = types.ModuleType("_tracebook_harness")
exec(compile(HARNESS, "<tracebook>", "exec"), _harness.__dict__)
del HARNESS

try:
    os.chdir(_FOLDER)
except OSError:
    pass  # cells then have to use absolute paths
sys.path.insert(0, _FOLDER)
# The first descriptor that a file of a cell can have.
_first = os.open("/dev/null", os.O_RDONLY) if os.path.exists("/dev/null") else 3
# Open files: descriptor, path, flags, place, and None. For those that native code opened: the mark of their content.
_open_files = []
# Descriptors that native code still uses, though their files could not be opened again.
_lost = set()
# The C library in this memory knows folders by their descriptors, also after a restore into another instance.
_folders = FOLDERS
del FOLDERS

cells = _harness.Cells(_send, _ask)
_ELSEWHERE = "run the note in an environment: `tracebook kernels env NOTE`"
cells.lacks = f"Science doesn't have this part of the standard library; {_ELSEWHERE}"
cells.hints = (
    ("can't start new thread", f"Science has no threads; {_ELSEWHERE}"),
    ("module 'os' has no attribute 'pipe'", f"Science has no other processes; {_ELSEWHERE}"),
)

# Send matplotlib figures as data.
_backend = types.ModuleType("tracebook_backend")
exec(compile(BACKEND, "<tracebook>", "exec"), _backend.__dict__)
del BACKEND
_backend.install(lambda data, metadata: cells._tell("display_data", {"data": data, "metadata": metadata}), _backend)
cells.after_cell.append(lambda value: _backend.flush_figures())


def _note_files():
    """Records the open files, because their descriptors aren't part of memory."""
    found = {number for number in range(4, _FILES_LIMIT) if _is_file(number)}
    before = [path for _, path, *_ in _open_files if path is not None]
    _open_files.clear()
    _lost.intersection_update(number for number in list(_lost) if _is_folder(number))
    if not found:
        return
    for raw in _files_of(found):
        if isinstance(raw.name, str):
            flags = {"rb": os.O_RDONLY, "wb": os.O_WRONLY, "ab": os.O_WRONLY | os.O_APPEND}.get(raw.mode, os.O_RDWR)
            place = raw.tell() if raw.seekable() else 0
            entry = (raw.fileno(), os.path.join(os.getcwd(), raw.name), flags, place, None)
            if entry not in _open_files:
                _open_files.append(entry)
    # Those of SQLite, and whatever else native code has opened.
    hidden = found.difference(number for number, *_ in _open_files)
    for paths in (lambda: before, _database_paths):
        for number, path in _named(hidden, paths()) if hidden else ():
            hidden.discard(number)
            _open_files.append((number, path, os.O_RDWR, 0, _content_mark(os.fstat(number))))
    _open_files.extend((number, None, 0, 0, ()) for number in hidden)
    _open_files.sort(key=_number)


def _named(numbers, paths):
    """Returns these descriptors with those of these paths, or of SQLite's journals beside them, that they have."""
    named = []
    for path in [base + end for base in paths for end in ("", "-journal", "-wal")]:
        try:
            known = os.stat(path)
        except OSError:
            continue
        named += [(number, path) for number in numbers if os.path.samestat(os.fstat(number), known)]
    return dict(named).items()


def _database_paths():
    """Returns the paths of all databases that SQLite has open. It opens them without a file object."""
    import gc

    connection = getattr(sys.modules.get("sqlite3"), "Connection", None)
    found = []
    for value in gc.get_objects() if connection is not None else ():
        if issubclass(type(value), connection):
            try:
                rows = connection.cursor(value)
                rows.row_factory = None
                found += [os.fsdecode(row[2]) for row in rows.execute("PRAGMA database_list") if row[2]]
            except Exception:
                pass  # it's closed, or its owner forbids the question
    return found


def _content_mark(about):
    return about.st_ino, about.st_size, about.st_mtime_ns


def _files_of(numbers):
    """Yields the open file objects with one of these descriptors."""
    import gc

    for value in gc.get_objects():
        raw = getattr(value, "raw", None) if isinstance(value, io.BufferedIOBase) else value
        if isinstance(raw, io.FileIO) and not raw.closed and raw.fileno() in numbers:
            yield raw


def _is_file(number):
    try:
        return stat.S_ISREG(os.fstat(number).st_mode)
    except OSError:
        return False


def _is_folder(number):
    try:
        return stat.S_ISDIR(os.fstat(number).st_mode)
    except OSError:
        return False


def execute(request):
    request = json.loads(request)
    if request.get("file") is not None:
        cells.namespace["__file__"] = request["file"]
    reply = cells.execute(request["code"], request["label"], request["forget"], request["silent"])
    while True:
        try:
            cells.flush()
            reply.update(cells.defined_and_changed())
            try:
                _note_files()
            except Exception:
                _open_files.clear()  # they are closed after a restore
            _door("reply", reply)
            return
        except KeyboardInterrupt:
            continue  # the cell had already ended


def look(request):
    kind, content = json.loads(request)
    _door("reply", getattr(cells, kind)(*content))


def restored(folders):
    """Reopens the files that were open when this state was saved. A file that no longer exists stays closed.

    SQLite's are reopened only if nobody has changed them, since it remembers what they contain. Replies with the
    folders of this memory. If the instance's aren't the same, it opens nothing and replies so.
    """
    if json.loads(folders)[: len(_folders)] != _folders:
        _door("reply", {"folders": _folders})
        return
    gone = {}
    native = [(path, mark) for _, path, _, _, mark in _open_files if path is not None and mark is not None]
    is_intact = all(_is_unchanged(path, mark) for path, mark in native)
    held = []
    for number, path, flags, place, mark in sorted([*_open_files, *((n, None, 0, 0, ()) for n in _lost)], key=_number):
        if mark is None or is_intact and path is not None:
            if not _reopen(number, path, flags, place, held):
                gone[number] = path
            continue
        # Native code would use the next file that gets this number. It can do nothing with a folder.
        _reopen(number, _FOLDER, os.O_RDONLY, 0, held)
        if number not in _lost and path is not None:
            gone[number] = path
        _lost.add(number)
    for number in held:
        os.close(number)
    if gone:
        # Another file may get their numbers, and must not be taken for them.
        for raw in list(_files_of(gone)):
            try:
                raw.close()
            except OSError:
                pass  # there is nothing to close
    _door("reply", {"gone": list(gone.values()), "folders": _folders})


def _number(entry):
    return entry[0]


def _is_unchanged(path, mark):
    try:
        return _content_mark(os.stat(path)) == mark
    except OSError:
        return False


def _reopen(number, path, flags, place, held):
    """Opens a file under a number, and returns whether it could. Numbers before it that nothing has are `held`."""
    try:
        while (opened := os.open(path, flags)) < number:
            held.append(opened)
        if opened != number:
            os.close(opened)
            return False
        if place:
            os.lseek(opened, place, os.SEEK_SET)
        return True
    except OSError:
        return False
