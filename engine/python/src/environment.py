# The CPython process that `environment.rs` starts. It reads requests from one pipe and writes replies to another, one
# JSON object per line. Joined with `cells.py`, whose names it uses. Output of native code goes to descriptors 1 and 2.


class _Pipes:
    """Reads requests and writes replies. Only the main thread reads; every thread of a cell may write."""

    def __init__(self, incoming, outgoing):
        self._incoming, self._outgoing = incoming, outgoing
        self._rest = b""
        self._lock = _Lock()

    def read(self):
        """Returns the next request, or None at the end."""
        import json
        import os

        while b"\n" not in self._rest:
            more = os.read(self._incoming, 1 << 20)
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def wait(self, seconds):
        """Waits for a request. An interrupt ends the wait without losing data."""
        import select

        return b"\n" in self._rest or bool(select.select([self._incoming], [], [], seconds)[0])

    def write(self, message):
        import json
        import os

        line = memoryview(json.dumps(message, default=str).encode("ascii") + b"\n")
        with self._lock:
            while line:
                line = line[os.write(self._outgoing, line) :]


def serve(incoming, outgoing, start):
    """Runs cells until the pipe ends. `start` holds the texts that errors add: `advice` and `walls`."""
    import os
    import signal
    from _thread import get_ident

    pipes, main = _Pipes(incoming, outgoing), get_ident()
    state = {"running": False, "pending": False, "sending": False, "questions": 0}

    def check():
        if state["pending"] and state["running"] and get_ident() == main:
            state["pending"] = False
            raise KeyboardInterrupt

    def interrupted(number, frame):
        # Our own code isn't interrupted midway: it calls `check` when it's done.
        own = frame is None or frame.f_code.co_filename == _OWN or state["sending"]
        if state["running"] and not own:
            raise KeyboardInterrupt
        state["pending"] = True

    def woken(number, frame):
        # This wakes a blocked call. An interrupt that came between our last `check` and the cell's own code is
        # raised now.
        if state["pending"] and state["running"]:
            state["pending"] = False
            interrupted(number, frame)

    def send(kind, content):
        if get_ident() != main:
            pipes.write({"send": kind, "content": content})
            return
        state["sending"] = True
        try:
            pipes.write({"send": kind, "content": content})
        finally:
            state["sending"] = False

    def ask(prompt, password):
        if get_ident() != main:
            raise RuntimeError("only the cell itself can ask, none of its threads")
        return wait_for_answer({"prompt": prompt, "password": password})

    def web(request):
        if get_ident() != main:
            raise RuntimeError("only the program itself can ask the host, none of its threads")
        return wait_for_answer({"web": request})

    def wait_for_answer(question):
        state["questions"] += 1
        number = state["questions"]
        pipes.write({"ask": number, **question})
        while True:
            check()
            if not pipes.wait(0.05):
                continue
            answer = pipes.read()
            if answer is None:
                return "\x04"
            # Skip the answer to an earlier question that was interrupted.
            if answer.get("do") == "answer" and answer.get("number") == number:
                return answer["text"]

    cells = Cells(send, ask)
    cells.check = check
    cells.advice, cells.walls = start["advice"], start["walls"]
    _draw_figures(cells, start["backend"])
    if start["web"]:
        _relay_web(web, start["web"])
    sys.path.insert(0, "")
    sys.dont_write_bytecode = True
    flush_native = _native_flush()
    try:
        import faulthandler

        faulthandler.enable(file=2)
    except Exception:  # a Python without it reports less when it crashes
        pass
    signal.signal(signal.SIGURG, woken)
    pipes.write({"ready": {"version": sys.version.split()[0], "prefix": sys.prefix}})

    def answer(request):
        do = request["do"]
        if do == "execute":
            if request["file"] is not None:
                cells.namespace["__file__"] = request["file"]
            reply = cells.execute(request["code"], request["label"], request["forget"], request["silent"])
            return {"reply": reply, "changes": cells.defined_and_changed()}
        if do == "complete":
            return {"reply": cells.complete(request["code"], request["at"], request["imports"])}
        if do == "inspect":
            return {"reply": cells.inspect(request["code"], request["at"])}
        if do == "variables":
            return {"reply": cells.variables()}
        if do == "redraw":
            return {"reply": cells.redraw(request["figure"], request["limits"])}
        if do == "rows":
            return {"reply": cells.rows(request["frame"], request["first"])}
        return {"reply": cells.values(request["names"])}

    signal.signal(signal.SIGINT, interrupted)
    while True:
        request = pipes.read()
        if request is None or request["do"] == "shutdown":
            break
        if request["do"] == "prepare":
            # A pending interrupt came too late for the previous cell.
            state["pending"] = False
            pipes.write({"prepared": True})
        elif request["do"] != "answer":
            # A cell may have installed another handler. Restore ours before the next cell runs: this call runs code
            # that isn't ours and could be interrupted.
            signal.signal(signal.SIGINT, interrupted)
            state["running"] = True
            reply = answer(request)
            state["running"] = False
            flush_native()
            pipes.write(reply)
    os.close(incoming)


def _draw_figures(cells, source):
    """Sends matplotlib figures as data. `source` is the text of the backend."""
    backend = types.ModuleType("tracebook_backend")
    exec(compile(source, _OWN, "exec"), backend.__dict__)
    backend.install(lambda data, metadata: cells._tell("display_data", {"data": data, "metadata": metadata}), backend)
    cells.after_cell.append(lambda value: backend.flush_figures())


def _relay_web(web, source):
    """Lets a tool's program ask the host, which applies the policy. `source` is the text of the module."""
    sys.modules["_tracebook_kernel"].web = web
    module = sys.modules["_tracebook_web"] = types.ModuleType("_tracebook_web")
    exec(compile(source, _OWN, "exec"), module.__dict__)


def _native_flush():
    """Returns a function that flushes native code's output, which C buffers if it isn't a terminal."""
    try:
        import ctypes

        flush = ctypes.CDLL(None).fflush
    except Exception:  # a Python without ctypes
        return lambda: None
    return lambda: flush(None)
