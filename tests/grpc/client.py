"""A client of `mixagent.AgentService` that grpcio-tools made from its description, and the services of `tracebook.v1`
in v1_client.py. See .ci/grpc.

client.py PROGRAM SCRATCH PROTO
"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import grpc
import mixagent_pb2 as pb
import mixagent_pb2_grpc as rpc
import v1_client
from checks import refused, until

program, scratch, proto = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
SEED = proto.parents[4] / "shared/reference/mixos-go.md"
environment = {**os.environ, "HOME": str(scratch), "TRACEBOOK_KEYRING": "off"}


def tracebook(*words):
    command = [program, "--workspace", str(scratch / "W"), *words]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


class Model(http.server.BaseHTTPRequestHandler):
    """A model that wants to run a command, and then says that it's done."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        has_acted = any(message["role"] == "assistant" for message in asked["messages"])
        if "Say hello" in json.dumps(asked["messages"]):
            delta, end = {"content": "Hello."}, "stop"
        elif has_acted:
            delta, end = {"content": "It is made."}, "stop"
        else:
            function = {"name": "shell", "arguments": json.dumps({"command": "echo made > made.txt"})}
            delta = {"tool_calls": [{"index": 0, "id": "t0", "type": "function", "function": function}]}
            end = "tool_calls"
        lines = [
            {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
            {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        ]
        body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


def check_description():
    """Compares the description with the seed's, where the seed is at hand."""
    if not SEED.exists():
        return
    block = re.search(r"```protobuf\n(.*?)```", SEED.read_text(), re.S).group(1)
    ours = [line.strip() for line in proto.read_text().splitlines()]
    at = 0
    for line in filter(None, map(str.strip, block.splitlines())):
        if not line.startswith("//"):
            at = ours.index(line, at) + 1


def exercise(channel, tokens):
    agents = rpc.AgentServiceStub(channel)

    def shown(name):
        return [("authorization", f"Bearer {tokens[name]}")]

    everything, reader, approver = shown("all"), shown("reader"), shown("approver")
    task = pb.Task(type="build", description="Make it", context={"color": "red"}, priority=2)
    # Without a token, with a wrong one, and without the scope.
    code = grpc.StatusCode
    refused(code.UNAUTHENTICATED, lambda: agents.SubmitTask(task))
    wrong = [("authorization", "Bearer tb_000000000000_wrong")]
    refused(code.UNAUTHENTICATED, lambda: agents.SubmitTask(task, metadata=wrong))
    refused(code.PERMISSION_DENIED, lambda: agents.SubmitTask(task, metadata=reader))
    refused(code.PERMISSION_DENIED, lambda: agents.SubmitDecision(pb.Decision(action_id="x"), metadata=everything))
    for hostile in ["", "../../etc/passwd", "--stop", "a\nb", "\x00", "é" * 500]:
        for call in [agents.GetTaskStatus, agents.CancelTask]:
            try:
                call(pb.TaskID(id=hostile), metadata=everything)
                raise SystemExit(f"answered: {hostile!r}")
            except grpc.RpcError as error:
                assert error.code() in (code.INVALID_ARGUMENT, code.NOT_FOUND), (hostile, error)
    # A task that asks, is decided, and completes.
    made = agents.SubmitTask(task, metadata=everything)
    assert made.accepted and made.task_id, made

    def status(task_id):
        return agents.GetTaskStatus(pb.TaskID(id=task_id), metadata=reader)

    def pending():
        import urllib.request

        request = urllib.request.Request(tokens["rest"] + "/api/v1/approvals/pending")
        request.add_header("Authorization", f"Bearer {tokens['approver']}")
        return json.load(urllib.request.urlopen(request, context=tokens["tls"]))

    waiting = until("a decision is needed", pending)
    decision = pb.Decision(action_id=waiting[0]["action_id"], approved=True, comment="fine")
    assert agents.SubmitDecision(decision, metadata=approver).approved
    until("it completes", lambda: status(made.task_id).status == "completed")
    done = status(made.task_id)
    assert done.progress == 1.0 and json.loads(done.result)["answer"] == "It is made.", done
    # Another one is canceled while it waits.
    second = agents.SubmitTask(task, metadata=everything)
    until("a decision is needed", pending)
    assert agents.CancelTask(pb.TaskID(id=second.task_id), metadata=everything).canceled
    until("it has failed", lambda: status(second.task_id).status == "failed")
    # A message to an agent of the workspace comes back as its answer; one to a program waits for it.
    stream = agents.StreamMessages(pb.AgentID(id="desk"), metadata=everything)
    sent = pb.AgentMessage(from_agent="desk", to_agent="assistant", payload=b"Say hello")
    assert agents.SendMessage(sent, metadata=everything).task_id
    answer = next(stream)
    assert (answer.from_agent, answer.type, answer.payload) == ("assistant", "answer", b"Hello."), answer
    for number in range(3):
        note = pb.AgentMessage(from_agent="a", to_agent="desk", type="note", payload=bytes([number]), timestamp=number + 1)
        agents.SendMessage(note, metadata=everything)
    got = [next(stream) for _ in range(3)]
    assert [(one.payload, one.timestamp) for one in got] == [(bytes([n]), n + 1) for n in range(3)], got
    stream.cancel()
    # A program asks for an approval, and gets the decision.
    ask = pb.ApprovalRequest(action_id="deploy-1", action_type="deploy", description="Deploy", agent="ops", risk_level=3)
    asked = agents.RequestApproval.future(ask, metadata=everything)
    until("it's shown", pending)
    agents.SubmitDecision(pb.Decision(action_id="deploy-1", approved=False, comment="no"), metadata=approver)
    answer = asked.result(timeout=30)
    assert (answer.approved, answer.comment) == (False, "no"), answer
    # One that gives up is no longer shown.
    given_up = agents.RequestApproval.future(ask, metadata=everything)
    until("it's shown", pending)
    given_up.cancel()
    until("it's gone", lambda: not pending())


def serve(*words):
    command = [program, "--workspace", str(scratch / "W"), "serve", "--json", "--listen", "127.0.0.1:0", *words]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    return server, json.loads(server.stdout.readline())["url"]


def main():
    check_description()
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    (scratch / "notes").mkdir()
    (scratch / "notes/Boat.md").write_text("# Boat\n")
    shelf = "views:\n  - type: table\n    name: all\n    order: [file.name]\n"
    (scratch / "notes/Shelf.base").write_text(shelf)
    tracebook("init")
    address = f"http://127.0.0.1:{model.server_address[1]}/v1"
    provider = f'test: {{wire: openai, base_url: "{address}", model: m, context: 32000}}'
    config = f"llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    {provider}\n"
    (scratch / "W/config.yaml").write_text(config)
    tracebook("open", str(scratch / "notes"))
    scopes = {"all": "read,agent", "reader": "read", "approver": "read,approve", "writer": "read,write,run"}
    tokens = {}
    for name, allowed in scopes.items():
        made = tracebook("tokens", "create", name, "--scopes", allowed, "--json")
        tokens[name] = json.loads(made)["token"]
    certificate = scratch / "cert.pem"
    for words in [[], ["--host", "localhost", "--tls-cert", str(certificate), "--tls-key", str(scratch / "key.pem")]]:
        server, url = serve(*words)
        try:
            port = url.rsplit(":", 1)[1]
            if words:
                import ssl

                credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
                channel = grpc.secure_channel(f"localhost:{port}", credentials)
                tls = ssl.create_default_context(cafile=str(certificate))
                tokens |= {"rest": f"https://localhost:{port}", "tls": tls}
            else:
                channel = grpc.insecure_channel(f"127.0.0.1:{port}")
                tokens |= {"rest": url, "tls": None}
            with channel:
                exercise(channel, tokens)
                v1_client.exercise(channel, tokens)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    print("grpcio submits, decides, streams, cancels, writes, searches and runs cells, in the clear and over TLS")


main()
