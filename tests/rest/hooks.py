"""What the description of the REST interface can't say, for schemathesis."""

import schemathesis

METHODS = ("get", "put", "post", "delete")


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
