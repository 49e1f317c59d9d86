# Client of ipykernel for benchmarks: uses jupyter_client as notebooks do. Prepended to a benchmark's script.
import json, queue, sys, time

from jupyter_client.manager import KernelManager

figures = []


def start():
    begun = time.perf_counter()
    manager = KernelManager(kernel_name="python3", transport="ipc")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client, (time.perf_counter() - begun) * 1e3


def run(client, code):
    """Returns the milliseconds until the kernel reports that it's idle again."""
    begun = time.perf_counter()
    asked = client.execute(code)
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != asked:
            continue
        if message["msg_type"] == "error":
            raise RuntimeError(message["content"]["evalue"])
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    client.get_shell_msg(timeout=120)
    return (time.perf_counter() - begun) * 1e3


def percentile(times, percent):
    times = sorted(times)
    return times[max(1, -(-len(times) * percent // 100)) - 1]
