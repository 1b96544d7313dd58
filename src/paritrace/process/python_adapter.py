"""Serves a Python function as an adapter: `python -m paritrace.process.python_adapter MODULE:FUNCTION` (RR-6).

The function takes `(input, context, overrides, deadline_seconds)` by name and returns the output, or a mapping with
`status` and whatever else a result has. What it prints goes to standard error; standard output is the protocol's.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any, cast

import msgspec

from paritrace.process.adapter_protocol import FromAdapter, Hello, Invoke, Raised, Ready, Reply, ResultStatus
from paritrace.process.plain_values import NOT_FINITE, is_finite

_messages: msgspec.json.Decoder[Hello | Invoke] = msgspec.json.Decoder(Hello | Invoke)
_encoder = msgspec.json.Encoder()


def serve(target: str, lines: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each line until the input ends or something else than `hello` and `invoke` comes."""
    function = _function(target)
    for line in lines:
        try:
            message = _messages.decode(line)
        except msgspec.ValidationError:  # `stop`
            return
        answer: FromAdapter = Ready(adapter=target) if isinstance(message, Hello) else _invoked(function, message)
        answers.write(_encoder.encode(answer) + b"\n")
        answers.flush()


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    return cast("Callable[..., Any]", vars(import_module(module))[name])


def _invoked(function: Callable[..., Any], asked: Invoke) -> FromAdapter:
    try:
        found = function(
            input=asked.input,
            context=asked.context,
            overrides=asked.overrides,
            deadline_seconds=asked.deadline_seconds,
        )
        if isinstance(found, dict) and "status" in found:
            reply = msgspec.convert({**found, "type": "result", "invocation_id": asked.invocation_id}, Reply)
        else:
            reply = Reply(invocation_id=asked.invocation_id, status=ResultStatus.SUCCEEDED, output=found)
        _encoder.encode(reply)  # what is no JSON is the function's error, and the process serves the next one
        if not is_finite(msgspec.to_builtins(reply)):  # that encoder writes them as null
            raise ValueError(NOT_FINITE)
    except Exception as error:  # noqa: BLE001  the top of a process: whatever it was, its caller is told
        return Raised(invocation_id=asked.invocation_id, code=type(error).__name__, message=str(error))
    return reply


def main() -> None:
    """Keep the protocol's descriptors to ourselves, so that nothing the function prints gets between the lines."""
    lines, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())
    serve(sys.argv[1], lines, answers)


if __name__ == "__main__":
    main()
