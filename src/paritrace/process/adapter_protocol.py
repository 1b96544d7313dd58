"""Messages between a runner and its adapter: one JSON object a line, each way (docs/formats/adapter-protocol.md)."""

from enum import StrEnum
from typing import Any

from msgspec import Struct

PROTOCOL = "paritrace-adapter"
PROTOCOL_VERSION = "1.0"


class ResultStatus(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ToAdapter(Struct, frozen=True, tag_field="type"):
    """Base of what the runner sends."""


class Hello(ToAdapter, frozen=True, tag="hello"):
    protocol: str
    version: str
    runtime_id: str


class Invoke(ToAdapter, frozen=True, tag="invoke"):
    """`deadline_seconds`: from when this was sent; null where there is none. The same as in invocation.json."""

    invocation_id: str
    request_id: str
    input: Any
    context: dict[str, Any]
    overrides: dict[str, Any]
    deadline_seconds: float | None


class Farewell(ToAdapter, frozen=True, tag="stop"):
    """End now; the input is closed behind it."""


class FromAdapter(Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """Base of what the adapter answers."""


class Ready(FromAdapter, frozen=True, tag="ready"):
    """The answer to `hello`."""

    adapter: str
    harness: str | None = None


class ResultError(Struct, frozen=True, forbid_unknown_fields=True):
    """What an adapter says went wrong. Its message reaches the caller and never a record."""

    code: str
    message: str
    retryable: bool = False


class Artifact(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: str
    path: str
    media_type: str | None = None


class ReportedUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens and cost as the adapter reports them; null is unknown, never zero (AT-6)."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    input_includes_cache: bool | None = None
    output_includes_reasoning: bool | None = None
    cost: float | None = None
    currency: str | None = None


class Reply(FromAdapter, frozen=True, tag="result"):
    """The result of one invocation: a failed one has an error, a succeeded one has none."""

    invocation_id: str
    status: ResultStatus
    output: Any = None
    error: ResultError | None = None
    usage: ReportedUsage | None = None
    artifacts: tuple[Artifact, ...] = ()


class Raised(FromAdapter, frozen=True, tag="error"):
    """The adapter could not produce a result at all."""

    invocation_id: str
    code: str
    message: str
    retryable: bool = False


Answer = Ready | Reply | Raised
