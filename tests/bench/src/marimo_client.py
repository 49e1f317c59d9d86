# Client of marimo's editor for benchmarks: uses its websocket as its page does. Prepended to a benchmark's script.
import http.client, json, os, signal, socket, subprocess, sys, tempfile, time

from websockets.sync.client import connect

figures = []
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "note.py")
with open(path, "w") as file:
    file.write("import marimo\napp = marimo.App()\nif __name__ == '__main__':\n    app.run()\n")
words = ["edit", "--headless", "--no-token", "--no-skew-protection", "--skip-update-check", "--port", str(port), path]
server = subprocess.Popen(
    [sys.executable, "-m", "marimo", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)


def post(what, content):
    """Sends a request over a connection of its own, which is closed when the answer has arrived."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    head = {"Content-Type": "application/json", "Marimo-Session-Id": "s_bench"}
    line.request("POST", f"/api/kernel/{what}", json.dumps(content), head)
    answer = line.getresponse()
    answer.read()
    line.close()
    if answer.status >= 300:
        raise RuntimeError(f"{what}: {answer.status}")


def percentile(times, percent):
    times = sorted(times)
    return times[max(1, -(-len(times) * percent // 100)) - 1]
