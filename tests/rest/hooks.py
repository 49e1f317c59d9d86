"""What the description of the REST interface can't say, for schemathesis, and what its requests were answered.

.ci/schemathesis sets TRACEBOOK_TOKEN, the token of the run, and TRACEBOOK_OTHER_TOKENS, ids of tokens to revoke. The
names of traces are in traces.dict.
"""

import atexit
import collections
import json
import os

import schemathesis

METHODS = ("get", "put", "post", "delete")
OWN_TOKEN = os.environ["TRACEBOOK_TOKEN"]
OWN_ID = OWN_TOKEN.split("_")[1]
with open("traces.dict") as names:
    KEPT_TRACE = names.readline().strip().strip('"')
# What no request deletes, by the parameter that names it.
KEPT = {"tokenId": OWN_ID, "traceName": KEPT_TRACE}
other_ids = os.environ["TRACEBOOK_OTHER_TOKENS"].split()
answers = collections.Counter()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Leaves idempotency keys out: one key is for one request only, and generated keys are for many.

    tests/it/line/http_api.rs has their tests.
    """
    for operations in raw_schema["paths"].values():
        for method in METHODS:
            operation = operations.get(method, {})
            kept = [one for one in operation.get("parameters", []) if one.get("name") != "idempotency-key"]
            if "parameters" in operation:
                operation["parameters"] = kept


@schemathesis.hook
def before_call(context, case, kwargs):
    """Has the run revoke other tokens than its own, without which every further request would be refused, and keep a
    trace.

    schemathesis makes links of its own from what answers hold, also from the list of tokens to their revocation.
    """
    for parameter, kept in KEPT.items():
        is_deletion = case.method.upper() == "DELETE" and case.operation.path.endswith("{%s}" % parameter)
        if is_deletion and case.path_parameters.get(parameter) == kept:
            is_token = parameter == "tokenId" and other_ids
            case.path_parameters[parameter] = other_ids.pop() if is_token else "none-is-left"


@schemathesis.hook
def after_call(context, case, response):
    """Counts answers. Requests that schemathesis sends without a token, to see them refused, don't come here."""
    is_own = response.request.headers.get("Authorization") == f"Bearer {OWN_TOKEN}"
    answers[case.operation.label, response.status_code, is_own] += 1


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Allows that a list or a number is taken for the text of a note or for a file: these are bytes of any kind."""
    is_raw = (case.media_type or "").startswith(("text/markdown", "application/octet-stream"))
    return not (is_raw and failure.code == "ST201" and "in body" in failure.message)


@atexit.register
def write_answers():
    rows = [[label, status, is_own, count] for (label, status, is_own), count in answers.items()]
    with open("answers.json", "w") as file:
        json.dump(rows, file)
