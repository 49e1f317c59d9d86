"""Writes what there is to `NAME.dict` files, from which schemathesis.toml has schemathesis draw.

    known_values.py ADDRESS TOKEN
"""

import json
import sys
import time
import urllib.request

# File, path of the list, its name in the answer, and the field of each item.
LISTS = (
    ("runs", "/runs", "runs", "id"),
    ("approvals", "/approvals/pending", None, "action_id"),
    ("traces", "/traces", "traces", "name"),
    ("memories", "/memory", "memories", "experience_id"),
)

MAX_WAIT_SECONDS = 60

address, token = sys.argv[1:]
end = time.monotonic() + MAX_WAIT_SECONDS
for file, path, name, field in LISTS:
    values = []
    # The workspace was just opened, and is read in the background.
    while len(values) < 2:
        request = urllib.request.Request(f"{address}/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            listed = json.load(answer)
        values = [item[field] for item in (listed[name] if name else listed)]
        if len(values) < 2 and time.monotonic() > end:
            sys.exit(f"schemathesis: there is too little for {path} to show: {listed}")
        time.sleep(0.2)
    with open(f"{file}.dict", "w") as lines:
        lines.writelines(f'"{value}"\n' for value in values)
