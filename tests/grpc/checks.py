"""What the clients of .ci/grpc check in the same way."""

import time

import grpc


def until(what, holds):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"not within a minute: {what}")


def refused(code, call, detail=b""):
    """Checks that a call is refused with this code, and that the details of the error have these bytes."""
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, f"{error.code()} instead of {code}: {error.details()}"
        assert error.details(), "a refusal says why"
        details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
        assert detail in details, f"{detail} is not in {details}"
        return
    raise SystemExit(f"answered instead of {code}")
