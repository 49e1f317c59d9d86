"""`urllib` for tools: requests go through the host, which applies the policy. This process has no network.

Frozen into the kernel as `_tracebook_web`; the program of a tool that may use the network installs it.
"""

import base64
import email.message
import io
import json
import urllib.error
import urllib.request
import _tracebook_kernel as kernel


class Response(io.BytesIO):
    """A response, with the interface of `urllib`'s."""

    def __init__(self, body, url, status, headers):
        super().__init__(body)
        self.url, self.status, self.code, self.headers = url, status, status, headers
        self.reason = ""

    def getcode(self):
        return self.status

    def geturl(self):
        return self.url

    def info(self):
        return self.headers

    def getheader(self, name, default=None):
        return self.headers.get(name, default)


class _Opener:
    """Takes the place of `urllib.request`'s opener."""

    addheaders = []

    def open(self, fullurl, data=None, timeout=None):
        request = fullurl if isinstance(fullurl, urllib.request.Request) else urllib.request.Request(fullurl, data)
        body = request.data if data is None else data
        if body is not None and not isinstance(body, (bytes, bytearray)):
            body = b"".join(body) if not isinstance(body, str) else body.encode()
        wanted = {"url": request.full_url, "method": request.get_method(), "headers": dict(request.header_items())}
        if body is not None:
            wanted["body"] = base64.b64encode(bytes(body)).decode("ascii")
            wanted["headers"].setdefault("Content-type", "application/x-www-form-urlencoded")
        answer = json.loads(kernel.web(json.dumps(wanted)))
        if "error" in answer:
            raise urllib.error.URLError(answer["error"])
        headers = email.message.Message()
        for name, value in answer["headers"]:
            headers[name] = value
        url, status = answer["url"], answer["status"]
        response = Response(base64.b64decode(answer["body"]), url, status, headers)
        if status >= 400:
            raise urllib.error.HTTPError(url, status, f"status {status}", headers, response)
        return response


class CommandError(OSError):
    """A command that failed; `output` is what it printed."""

    def __init__(self, output):
        super().__init__(output.strip() or "the command failed")
        self.output = output


def shell(command):
    """Run a line of shell in the sandbox and return what it prints."""
    answer = json.loads(kernel.web(json.dumps({"command": command})))
    if "error" in answer:
        raise OSError(answer["error"])
    if not answer["success"]:
        raise CommandError(answer["output"])
    return answer["output"]


def install_shell():
    """From here on `shell(command)` is there without an import."""
    import builtins

    builtins.shell = shell


def install():
    """From here on `urllib.request.urlopen` asks the host."""
    urllib.request.install_opener(_Opener())
