# Compares Tracebook's cells with marimo's editor, driven over its own websocket as its page does.
count, chain = int(sys.argv[1]), int(sys.argv[2])


def completed(page, patience=120):
    """Waits until the run has finished. Returns None if it doesn't in time."""
    until = time.perf_counter() + patience
    while (left := until - time.perf_counter()) > 0:
        try:
            message = json.loads(page.recv(timeout=left))
        except TimeoutError:
            return None
        if message.get("op") == "completed-run":
            return True
    return None


def drain(page):
    """Discards earlier messages."""
    while True:
        try:
            page.recv(timeout=0.02)
        except TimeoutError:
            return


def run(page, names, codes):
    drain(page)
    begun = time.perf_counter()
    post("run", {"cellIds": names, "codes": codes})
    completed(page)
    return (time.perf_counter() - begun) * 1e3


def interrupt(page, name, code, patience):
    post("run", {"cellIds": [name], "codes": [code]})
    time.sleep(0.5)
    drain(page)
    begun = time.perf_counter()
    post("interrupt", {})
    return (time.perf_counter() - begun) * 1e3 if completed(page, patience) else None


try:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit("marimo has ended")
            time.sleep(0.05)
    begun = time.perf_counter()
    with connect(f"ws://127.0.0.1:{port}/ws?session_id=s_bench", max_size=None) as page:
        while json.loads(page.recv(timeout=60)).get("op") != "kernel-ready":
            pass
        figures.append(["marimo: kernel ready, its server running", (time.perf_counter() - begun) * 1e3, "ms"])
        post("instantiate", {"objectIds": [], "values": [], "autoRun": True})
        figures.append(["marimo: first cell", run(page, ["one"], ["1 + 1"]), "ms"])
        times = [run(page, ["one"], ["1 + 1"]) for _ in range(count)]
        figures.append(["marimo: trivial cell, p50", percentile(times, 50), "ms"])
        figures.append(["marimo: trivial cell, p99", percentile(times, 99), "ms"])
        names = [f"c{n}" for n in range(chain)]
        cells = ["x0 = 1"] + [f"x{n} = x{n - 1} + 1" for n in range(1, chain)]
        times = [run(page, names, cells) for _ in range(3)]
        figures.append([f"marimo: chain of {chain} cells", percentile(times, 50), "ms"])
        lines = run(page, ["lines"], ["for i in range(100_000): print(i)"])
        figures.append(["marimo: 100,000 printed lines", lines, "ms"])
        figures.append(["marimo: 1 MB in one print", run(page, ["much"], ["print('x' * 1_000_000)"]), "ms"])
        for name, code in [("while True", "while True: pass"), ("a native loop", "sum(range(10 ** 11))")]:
            took = interrupt(page, "loop", code, 20)
            name = f"marimo: interrupt of {name}"
            figures.append([name, took, "ms"] if took else [name, None, "it has not stopped after 20 s"])
finally:
    server.send_signal(signal.SIGKILL)
    for child in os.popen(f"pgrep -P {server.pid}").read().split():
        os.kill(int(child), signal.SIGKILL)
print(json.dumps(figures))
