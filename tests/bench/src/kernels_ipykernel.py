# Compares Tracebook's kernels with ipykernel, driven by jupyter_client as notebooks do. It has no saved states: all it
# can do instead is run the cells again.
count, starts = int(sys.argv[1]), int(sys.argv[2])
trivial, imports, frame, pandas_cell = sys.argv[3:7]


def memory(manager):
    with open(f"/proc/{manager.provisioner.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


ready = []
for _ in range(starts):
    manager, client, took = start()
    ready.append(took)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
figures.append(["ipykernel: ready, p50", percentile(ready, 50), "ms"])
manager, client, _ = start()
figures.append(["ipykernel: first cell", run(client, trivial), "ms"])
times = [run(client, trivial) for _ in range(count)]
figures.append(["ipykernel: trivial cell, p50", percentile(times, 50), "ms"])
figures.append(["ipykernel: trivial cell, p99", percentile(times, 99), "ms"])
figures.append(["ipykernel: memory", memory(manager), "MB"])
try:
    figures.append(["ipykernel: import numpy and pandas", run(client, imports), "ms"])
    run(client, frame)
    times = [run(client, pandas_cell) for _ in range(30)]
    figures.append(["ipykernel: a pandas cell (groupby of 1M rows)", percentile(times, 50), "ms"])
    figures.append(["ipykernel: memory with pandas and the frame", memory(manager), "MB"])
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    begun = time.perf_counter()
    manager, client, _ = start()
    for code in (imports, frame, pandas_cell):
        run(client, code)
    figures.append(["ipykernel: run all again in a new process", (time.perf_counter() - begun) * 1e3, "ms"])
except RuntimeError as why:
    figures.append(["ipykernel: cells with pandas", None, str(why)])
client.stop_channels()
manager.shutdown_kernel(now=True)
print(json.dumps(figures))
