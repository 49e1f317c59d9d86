"""A model for what the REST interface shows of agents. It speaks OpenAI's protocol and says the same each time.

It prints its port. A goal with "Make number" has it call the shell, for which it must be allowed; any other has it
write a file, which is learned as a trace. What is remembered of earlier goals comes with each, so those for traces are
first.
"""

import http.server
import json


def answer(messages):
    """Returns the text and the tool call of the next message."""
    turn = sum(message["role"] == "assistant" for message in messages)
    has_shell = any("Make number" in str(message["content"]) for message in messages if message["role"] == "user")
    if turn > 1 or (turn == 1 and has_shell):
        return "It's done.", None
    if has_shell:
        return "", ("shell", {"command": "echo made > made.txt"})
    if turn == 0:
        return "", ("read_file", {"path": "table.csv"})
    return "", ("write_file", {"path": "report.txt", "content": "See table.csv\n"})


class ModelHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        text, call = answer(messages)
        delta = {"role": "assistant", "content": text}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            delta["tool_calls"] = [{"index": 0, "id": f"t{len(messages)}", "type": "function", "function": function}]
        end = "tool_calls" if call else "stop"
        chunks = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}},
        ]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in chunks:
            whole = {"id": "x", "object": "chat.completion.chunk", "model": "m", **chunk}
            self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ModelHandler)
print(server.server_address[1], flush=True)
server.serve_forever()
