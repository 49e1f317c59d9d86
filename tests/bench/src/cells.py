# Compares Tracebook's kernel with ipykernel, driven by jupyter_client as notebooks do.
count, chain = int(sys.argv[1]), int(sys.argv[2])


def interrupt(manager, client, code, patience):
    asked = client.execute(code)
    time.sleep(0.5)
    begun = time.perf_counter()
    manager.interrupt_kernel()
    while time.perf_counter() - begun < patience:
        try:
            message = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        state = message["content"].get("execution_state")
        if message["parent_header"].get("msg_id") == asked and state == "idle":
            return (time.perf_counter() - begun) * 1e3
    return None


starts = []
for _ in range(5):
    manager, client, took = start()
    starts.append(took)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
figures.append(["ipykernel: kernel ready, p50", percentile(starts, 50), "ms"])

manager, client, _ = start()
try:
    with open(f"/proc/{manager.provisioner.pid}/statm") as file:
        figures.append(["ipykernel: memory of a kernel", int(file.read().split()[1]) * 4096 / 1e6, "MB"])
except (OSError, AttributeError):
    pass
figures.append(["ipykernel: first cell, kernel there", run(client, "1 + 1"), "ms"])
times = [run(client, "1 + 1") for _ in range(count)]
figures.append(["ipykernel: trivial cell, p50", percentile(times, 50), "ms"])
figures.append(["ipykernel: trivial cell, p99", percentile(times, 99), "ms"])
cells = ["x0 = 1"] + [f"x{n} = x{n - 1} + 1" for n in range(1, chain)]
times = [sum(run(client, cell) for cell in cells) for _ in range(3)]
figures.append([f"ipykernel: chain of {chain} cells", percentile(times, 50), "ms"])
figures.append(["ipykernel: 100,000 printed lines", run(client, "for i in range(100_000): print(i)"), "ms"])
figures.append(["ipykernel: 1 MB in one print", run(client, "print('x' * 1_000_000)"), "ms"])
figures.append(["ipykernel: interrupt of while True", interrupt(manager, client, "while True: pass", 20), "ms"])
took = interrupt(manager, client, "sum(range(10 ** 11))", 20)
name = "ipykernel: interrupt of a native loop"
figures.append([name, took, "ms"] if took else [name, None, "it has not stopped after 20 s"])
client.stop_channels()
manager.shutdown_kernel(now=True)
print(json.dumps(figures))
