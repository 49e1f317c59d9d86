"""Checks that schemathesis has tested something: that the server accepted its token, and did what it was asked.

    check_answers.py ADDRESS TOKEN WORKSPACE

answers.json, which hooks.py writes, is in the current folder.
"""

import json
import pathlib
import sys
import urllib.error
import urllib.request

METHODS = ("get", "put", "post", "delete")
MAX_LIMITED_SHARE = 0.01
# A stream without an end, which .ci/schemathesis leaves out, and what succeeds only while another request is answered.
LEFT_OUT = ("GET /api/v1/events", "POST /api/v1/cells/stop")

address, token, workspace = sys.argv[1:]
troubles = []


def ask(path):
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


with open("answers.json") as file:
    rows = [(label, status, count) for label, status, is_own, count in json.load(file) if is_own]
total = sum(count for _, _, count in rows)

refused = [(label, count) for label, status, count in rows if status == 401]
if refused:
    most, _ = max(refused, key=lambda row: row[1])
    count = sum(count for _, count in refused)
    troubles.append(f"the run's own token was refused {count} times, most often by {most}")
try:
    ask("/api/v1/volumes")
except urllib.error.HTTPError as error:
    troubles.append(f"the run's own token gets {error.code} at the end")

# What was refused in the server's own words: each request that was good is sent twice again, without a token and with a
# wrong one.
own_id = token.split("_")[1]
entries = [json.loads(line) for path in pathlib.Path(workspace).glob("access-*.jsonl") for line in path.open()]
good = sum(entry.get("token") == own_id and entry["status"] < 300 for entry in entries)
without = sum(entry["status"] == 401 for entry in entries)
if without > 2 * good:
    troubles.append(f"the server refused {without} requests without a valid token, beside {good} that were good")

limited = sum(count for _, status, count in rows if status == 429)
if limited > MAX_LIMITED_SHARE * total:
    troubles.append(f"{limited} of {total} requests came too often (429)")

described = ask("/api/v1/openapi.json")["paths"]
operations = {f"{method.upper()} {path}" for path, has in described.items() for method in METHODS if method in has}
never = operations - set(LEFT_OUT) - {label for label, status, _ in rows if 200 <= status < 400}
for operation in sorted(never):
    met = sorted({status for label, status, _ in rows if label == operation})
    troubles.append(f"{operation} never succeeded: {', '.join(map(str, met)) or 'it was not called'}")

for trouble in troubles:
    print(f"schemathesis: {trouble}", file=sys.stderr)
if troubles:
    sys.exit(1)
print(f"ok: schemathesis: {total} requests, {len(operations)} operations, {limited} came too often")
