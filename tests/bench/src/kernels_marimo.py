# Compares Tracebook's kernels with marimo's editor, driven over its own websocket as its page does.
count = int(sys.argv[1])
trivial, imports, frame, pandas_cell = sys.argv[3:7]


def run(page, name, code):
    """Returns the milliseconds until the run has finished."""
    begun = time.perf_counter()
    post("run", {"cellIds": [name], "codes": [code]})
    until = begun + 120
    while (left := until - time.perf_counter()) > 0:
        if json.loads(page.recv(timeout=left)).get("op") == "completed-run":
            break
    return (time.perf_counter() - begun) * 1e3


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
        figures.append(["marimo: ready, its server running", (time.perf_counter() - begun) * 1e3, "ms"])
        post("instantiate", {"objectIds": [], "values": [], "autoRun": True})
        figures.append(["marimo: first cell", run(page, "one", trivial), "ms"])
        times = [run(page, "one", trivial) for _ in range(count)]
        figures.append(["marimo: trivial cell, p50", percentile(times, 50), "ms"])
        figures.append(["marimo: trivial cell, p99", percentile(times, 99), "ms"])
        figures.append(["marimo: import numpy and pandas", run(page, "imports", imports), "ms"])
        run(page, "frame", frame)
        times = [run(page, "groups", pandas_cell) for _ in range(30)]
        figures.append(["marimo: a pandas cell (groupby of 1M rows)", percentile(times, 50), "ms"])
finally:
    server.send_signal(signal.SIGKILL)
    for child in os.popen(f"pgrep -P {server.pid}").read().split():
        os.kill(int(child), signal.SIGKILL)
print(json.dumps(figures))
