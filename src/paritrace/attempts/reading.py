"""What a result file and a run record say of one request: parsing of bytes that somebody else read: pure (AT-3)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from paritrace.attempts.accounts import Accounting, AccountingSource, Amount, Cost, PricingBasis, PricingKind, Usage
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.manifest import Execution
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import is_object, parse_lines

UNRECORDED = "a currency that was not recorded"
_Tokens = Annotated[int, Meta(ge=0, le=2**63 - 1)]  # a count below zero is none, and no file that says so is believed

DETAILED = "nemo_fabric.detailed_token_usage.v1"


class Seen(Struct, frozen=True):
    """What one evidence file says of a request. `ended`: False for a record that begins and never ends."""

    request_id: str | None
    execution: Execution
    accounting: Accounting | None
    ended: bool = True
    torn: bool = False  # its last line is cut off
    raised: bool = False  # it ended by an error that returned no result
    elapsed_seconds: float | None = None


class Unusable(Struct, frozen=True):
    """A file that says nothing that can be used, and why."""

    reason: AttemptGap
    detail: str


class _Usage(Struct, frozen=True):
    """The counters of a result, as adapters report them; null is unknown.

    The second half is as our own run records spell it (docs/formats/run-record.md); a record has one half or the other.
    """

    input_tokens: _Tokens | None = None
    cached_input_tokens: _Tokens | None = None
    output_tokens: _Tokens | None = None
    input_tokens_include_cache: bool | None = None
    cost_usd: Amount | None = None
    metadata: dict[str, Any] | None = None
    cache_write_input_tokens: _Tokens | None = None
    reasoning_tokens: _Tokens | None = None
    input_includes_cache: bool | None = None
    output_includes_reasoning: bool | None = None
    cost: Amount | None = None
    currency: str | None = None


class _Detailed(Struct, frozen=True):
    input_tokens: _Tokens | None = None
    cached_input_tokens: _Tokens | None = None
    cache_write_input_tokens: _Tokens | None = None
    input_tokens_include_cache: bool | None = None
    output_tokens: _Tokens | None = None
    reasoning_tokens: _Tokens | None = None
    output_tokens_include_reasoning: bool | None = None


class _Line(Struct, frozen=True):
    """One line of a record that is a JSON object, by its number from 1."""

    number: int
    content: dict[str, Any]


class _Result(Struct, frozen=True):
    request_id: str
    status: str
    usage: _Usage | None = None


class _End(Struct, frozen=True):
    request_id: str
    status: str | None = None
    error: dict[str, Any] | None = None
    elapsed_seconds: Amount | None = None
    usage: _Usage | None = None
    accounting: Accounting | None = None


def result_of(data: bytes, *, origin: Origin) -> Seen | Unusable:
    """Returns what a full result says; a file that is none is `result_invalid`."""
    try:
        result = msgspec.json.decode(data, type=_Result)
        at = Origin(origin.source, origin.line, "/usage", origin.member)
        return Seen(result.request_id, _execution(result.status), _accounting(result.usage, at))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Unusable(AttemptGap.RESULT_INVALID, _kind(error))


def record_of(data: bytes, *, origin: Origin) -> Seen | Unusable:
    """Returns what a run record says: its end line, or that it only began.

    A line that is refused is passed over and the rest is read; a record without any usable line is `result_invalid`.
    """
    values, refusals = parse_lines(data, path=origin.source)
    refused = {one.line for one in refusals}
    usable = [_Line(number, value) for number, value in values if is_object(value) and number not in refused]
    torn = data.count(b"\n") + 1 in refused  # a last line without its newline
    start = next((one for one in usable if _word(one) == "start"), None)
    end = next((one for one in reversed(usable) if _word(one) == "end"), None)
    if end is not None:
        try:
            return _ended(end, origin=origin, torn=torn)
        except (msgspec.ValidationError, OverflowError) as error:
            return Unusable(AttemptGap.RESULT_INVALID, _kind(error))
    if start is None:
        return Unusable(AttemptGap.RECORD_TRUNCATED if torn else AttemptGap.RESULT_INVALID, "has no line of a record")
    name = start.content.get("request_id")
    return Seen(name if isinstance(name, str) else None, Execution.UNKNOWN, None, ended=False, torn=torn)


def _word(line: _Line) -> object:
    return line.content.get("line", line.content.get("type"))


def _ended(line: _Line, *, origin: Origin, torn: bool) -> Seen:
    end = msgspec.convert(line.content, _End)
    at = Origin(origin.source, line.number, "/usage", origin.member)
    return Seen(
        end.request_id,
        Execution.FAILED if end.status is None and end.error is not None else _execution(end.status),
        _accounting(end.usage, at) if end.accounting is None else end.accounting,
        torn=torn,
        raised=end.error is not None and end.usage is None and end.accounting is None,
        elapsed_seconds=end.elapsed_seconds,
    )


def _accounting(usage: _Usage | None, origin: Origin) -> Accounting | None:
    if usage is None:
        return None
    return Accounting(
        AccountingSource.ADAPTER_REPORTED,
        usage=(_counters(usage, origin),),
        costs=tuple(_costs(usage, origin)),
        complete=True,  # a result's usage speaks of its whole invocation
        origin=origin,
    )


def _costs(usage: _Usage, origin: Origin) -> Iterator[Cost]:
    place = Origin(origin.source, origin.line, origin.pointer)
    if usage.cost_usd is not None:
        yield Cost(usage.cost_usd, PricingBasis(PricingKind.PROVIDER_REPORTED), place)
    if usage.cost is not None:
        basis = PricingBasis(PricingKind.UNKNOWN, id="reported by the adapter", currency=usage.currency or UNRECORDED)
        yield Cost(usage.cost, basis, place)


def _counters(usage: _Usage, origin: Origin) -> Usage:
    """The detailed counters where there is any of them, else the top ones: the two are never mixed (AT-6)."""
    detailed = (usage.metadata or {}).get(DETAILED)
    if isinstance(detailed, Mapping) and any(
        value is not None for value in cast("Mapping[str, object]", detailed).values()
    ):
        fine = msgspec.convert(detailed, _Detailed)
        return Usage(
            input_tokens=fine.input_tokens,
            cached_input_tokens=fine.cached_input_tokens,
            cache_write_input_tokens=fine.cache_write_input_tokens,
            output_tokens=fine.output_tokens,
            reasoning_tokens=fine.reasoning_tokens,
            input_includes_cache=fine.input_tokens_include_cache,
            output_includes_reasoning=fine.output_tokens_include_reasoning,
            origin=origin,
        )
    return Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_input_tokens=usage.cache_write_input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        input_includes_cache=usage.input_tokens_include_cache
        if usage.input_includes_cache is None
        else usage.input_includes_cache,
        output_includes_reasoning=usage.output_includes_reasoning,
        origin=origin,
    )


def _execution(status: str | None) -> Execution:
    return Execution(status) if status in ("succeeded", "failed", "cancelled") else Execution.UNKNOWN


def _kind(error: Exception) -> str:
    """The kind of fault; a value of the file is never quoted (P7)."""
    return str(error).partition(" - at ")[0].partition(":")[0]
