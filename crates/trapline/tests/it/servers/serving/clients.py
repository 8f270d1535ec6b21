"""What the scripts need: code generated from the protos, a channel, and a way to wait."""

import importlib
import sys
import tempfile
import time
from pathlib import Path

import grpc
from grpc_tools import protoc


def generated(protos, name):
    """The messages and the stubs of one proto file, made anew by grpcio's own compiler."""
    out = tempfile.mkdtemp(prefix="trapline-protos-")
    code = protoc.main(["protoc", f"-I{protos}", f"--python_out={out}", f"--grpc_python_out={out}", f"{protos}/{name}"])
    assert code == 0, f"protoc cannot read {name}"
    sys.path.insert(0, out)
    module = str(Path(name).with_suffix("")).replace("/", ".")
    return importlib.import_module(module + "_pb2"), importlib.import_module(module + "_pb2_grpc")


def channel(address):
    channel = grpc.insecure_channel(address)
    grpc.channel_ready_future(channel).result(timeout=30)
    return channel


def until(what, happened, seconds=30):
    """Asks until there is an answer, and gives it."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        answer = happened()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen")


def same(got, expected, what=""):
    assert got == expected, f"{what}: expected {expected!r}, got {got!r}"


def refused(code, call, words=""):
    """The call fails with this code, and says these words."""
    try:
        result = call()
        if hasattr(result, "__next__"):
            list(result)
    except grpc.RpcError as error:
        same(error.code(), code, error.details())
        assert words in (error.details() or ""), error.details()
        return
    raise AssertionError(f"{code} was expected, and the call succeeded")
