# A screen of its own for scripts that use the window as a person does. Source it, set `width`, `height`, `program`, `shots`
# and `title`, and call `open_screen`.
# Needs: xvfb openbox xdotool wmctrl imagemagick python3.

work=$(mktemp -d)
pids=()
finish() {
  local code=$?
  [ "$code" -eq 0 ] || import -window root "$shots/failed.png" 2>/dev/null || true
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT

ok() { echo "ok: $*"; }
no() { echo "not ok: $*"; exit 1; }
until_true() { # until_true SECONDS WHAT COMMAND…: tries until it succeeds.
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || no "$what"
    sleep 0.2
  done
  ok "$what"
}
actions=0
click() { xdotool mousemove "$1" "$2" sleep 0.3 click 1 sleep 1; actions=$((actions + 1)); }
keys() { xdotool key "$1" sleep 1; actions=$((actions + 1)); }
words() { xdotool type --delay 40 -- "$1"; sleep 1; }
look() { import -window root "$shots/$1.png"; }
tracebook() { HOME=$home "$program" --workspace "$home/workspace" "$@"; }
title_has() { xdotool search --onlyvisible --name "$1" | grep -q .; }

# A model server of this machine, on port 8080, that plays llama.cpp: asked to write, it writes a note; it answers
# anything else with ANSWER.
serve_model() { # serve_model ANSWER
  cat >"$work/server.py" <<'PY'
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        data = json.dumps({"object": "list", "data": [{"id": "small-model", "owned_by": "llamacpp"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = request["messages"][-1]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        words = sys.argv[1].split(" ")
        parts = [{"delta": {"role": "assistant", "content": word if at == 0 else " " + word}} for at, word in enumerate(words)]
        end = "stop"
        if last["role"] == "user" and "Write it into a note" in json.dumps(last["content"]):
            content = json.dumps({"path": "Answer.md", "content": "# Answer\n\n" + sys.argv[1] + "\n"})
            call = {"index": 0, "id": "call-1", "type": "function", "function": {"name": "write_file", "arguments": content}}
            parts, end = [{"delta": {"role": "assistant", "tool_calls": [call]}}], "tool_calls"
        for part in [*parts, {"delta": {}, "finish_reason": end}]:
            self.wfile.write(b"data: " + json.dumps({"choices": [{"index": 0, **part}]}).encode() + b"\n\n")
            self.wfile.flush()
            time.sleep(0.05)
        self.wfile.write(b"data: [DONE]\n\n")


ThreadingHTTPServer(("127.0.0.1", 8080), Server).serve_forever()
PY
  python3 "$work/server.py" "$1" &
  pids+=($!)
}

# Opens a screen on a free number, with a window manager that leaves the window its whole place.
open_screen() {
  mkfifo "$work/number"
  Xvfb -displayfd 3 -screen 0 "${width}x${height}x24" +extension GLX -noreset -nolisten tcp 3>"$work/number" 2>"$work/xvfb.log" &
  pids+=($!)
  local number
  read -r number <"$work/number"
  export DISPLAY=:$number LIBGL_ALWAYS_SOFTWARE=1
  unset WAYLAND_DISPLAY
  cat >"$work/openbox.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <applications>
    <application class="*"><decor>no</decor><maximized>yes</maximized><focus>yes</focus></application>
  </applications>
</openbox_config>
XML
  openbox --config-file "$work/openbox.xml" 2>"$work/openbox.log" &
  pids+=($!)
  until_true 10 "a screen with a window manager" wmctrl -m
}

start_program() { # start_program NAME: the program in a fresh home.
  home=$work/$1
  mkdir -p "$home/own"
  (cd "$home" && HOME=$home exec "$program" --workspace "$home/workspace") >"$work/$1.log" 2>&1 &
  app=$!
  pids+=("$app")
  until_true 30 "$1: the window is there" title_has '^Tracebook'
  xdotool windowfocus --sync "$(xdotool search --onlyvisible --name '^Tracebook' | sed -n 1p)"
  sleep 3 # the first frames
}

stop_program() {
  wmctrl -i -c "$(xdotool search --onlyvisible --name '^Tracebook' | sed -n 1p)"
  wait "$app" || no "the program ended with $?"
}
