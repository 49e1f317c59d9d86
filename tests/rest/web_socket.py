"""Connects to `/api/v1/agent` of a server and calls a method, as a front end does; every build answers.

    web_socket.py ADDRESS
"""

import base64
import json
import os
import socket
import sys

host, port = sys.argv[1].split(":")
key = base64.b64encode(os.urandom(16)).decode()
head = f"""GET /api/v1/agent HTTP/1.1
Host: {host}:{port}
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Key: {key}
Sec-WebSocket-Version: 13

"""
with socket.create_connection((host, int(port)), timeout=30) as front_end:
    front_end.sendall(head.replace("\n", "\r\n").encode())
    stream = front_end.makefile("rb")
    status = stream.readline()
    assert b" 101 " in status, status
    while stream.readline().strip():
        pass
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "chat", "params": {"message": "Hello"}}).encode()
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(call))
    front_end.sendall(bytes([0x81, 0x80 | len(call)]) + mask + masked)
    while True:
        kind, length = stream.read(2)
        if length == 126:
            length = int.from_bytes(stream.read(2), "big")
        text = stream.read(length)
        if kind == 0x81:
            break
    answer = json.loads(text)
    assert answer["id"] == 1 and answer["error"]["code"] == -32001, answer
print("a front end is answered")
