"""What token counters say under their conventions: calls, inclusive totals, bounds (AT-6, AT-7): pure."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.accounts import Accounting, AccountingSource, Counting, Usage
from paritrace.attempts.figures import Figure, added, known, unknown
from paritrace.attempts.gaps import AttemptGap


class Tokens(StrEnum):
    """What is counted. Input includes what was read from and written to a cache, output includes reasoning."""

    INPUT = "input_tokens"
    CACHED_INPUT = "cached_input_tokens"
    CACHE_WRITE_INPUT = "cache_write_input_tokens"
    OUTPUT = "output_tokens"
    REASONING = "reasoning_tokens"


COUNTERS = tuple(str(one) for one in Tokens)


class Calls(Struct, frozen=True):
    """Usage records as calls: `own` enter sums, `inherited` were replayed by a fork and are reported apart (AT-7)."""

    own: tuple[Usage, ...]
    inherited: tuple[Usage, ...]
    num_merged: int  # records that were another sight of a call that is counted


def calls_of(records: Iterable[Usage]) -> Calls:
    """Returns the calls that usage records speak of.

    Records of one response id are one call with the largest counts seen, which are the last of a stream; cumulative
    counters of one stream are one figure, the largest. The order of the records changes nothing.
    """
    listed = list(records)
    own = _merged([one for one in listed if not one.inherited_from])
    inherited = _merged([one for one in listed if one.inherited_from])
    return Calls(own, inherited, len(listed) - len(own) - len(inherited))


def _merged(records: list[Usage]) -> tuple[Usage, ...]:
    alone: list[Usage] = []
    groups: dict[tuple[str, ...], Usage] = {}
    for record in records:
        key = _key(record)
        if key is None:
            alone.append(record)
        else:
            groups[key] = _larger(groups[key], record) if key in groups else record
    return (*alone, *groups.values())


def _key(record: Usage) -> tuple[str, ...] | None:
    """What records of one figure have in common; None where a record stands for itself."""
    model = record.model or ""
    if record.counting is Counting.CUMULATIVE:
        return ("stream", record.stream, model, record.inherited_from)
    return ("response", record.response_id, model, record.inherited_from) if record.response_id else None


def _larger(first: Usage, second: Usage) -> Usage:
    """Returns one record with the larger of every counter; a convention that they do not share is unknown."""
    counts = {name: _max(getattr(first, name), getattr(second, name)) for name in COUNTERS}
    return replace(
        first,
        **counts,
        input_includes_cache=_shared(first.input_includes_cache, second.input_includes_cache),
        output_includes_reasoning=_shared(first.output_includes_reasoning, second.output_includes_reasoning),
        work_shown=first.work_shown or second.work_shown,
    )


def _max(first: int | None, second: int | None) -> int | None:
    there = [one for one in (first, second) if one is not None]
    return max(there) if there else None


def _shared(first: bool | None, second: bool | None) -> bool | None:
    return first if first == second else None


def token_figures(accounting: Accounting | None) -> dict[Tokens, Figure]:
    """Returns every token figure of an account.

    Gaps: `usage_absent`, `legacy_only`, and those of its calls. An account that is not declared to cover every call
    has `request_list_unverified` beside its figures.
    """
    if accounting is None or not accounting.usage:
        return dict.fromkeys(Tokens, unknown(AttemptGap.USAGE_ABSENT))
    if accounting.source is AccountingSource.LEGACY:
        return dict.fromkeys(Tokens, unknown(AttemptGap.LEGACY_ONLY))
    own = calls_of(accounting.usage).own
    extra = () if accounting.complete else (AttemptGap.REQUEST_LIST_UNVERIFIED,)
    return {kind: added([figure(call) for call in own], *extra) for kind, figure in FIGURES.items()}


def inclusive_input(call: Usage) -> Figure:
    """Returns the input tokens of a call, with what a cache gave and took (AT-6).

    The number exists only if the flag proves it or every component is known. Counters that contradict the flag are
    `convention_violated`; counters that rule one reading out leave the other (D-12).
    """
    parts = (call.cached_input_tokens, call.cache_write_input_tokens)
    if call.input_tokens == 0 and _worked(call):
        return unknown(AttemptGap.USAGE_IMPLAUSIBLE)
    return _inclusive(call.input_tokens, parts, call.input_includes_cache)


def inclusive_output(call: Usage) -> Figure:
    """Returns the output tokens of a call, reasoning included, by the same rule."""
    if call.output_tokens == 0 and call.input_tokens in (0, None) and call.work_shown:
        return unknown(AttemptGap.USAGE_IMPLAUSIBLE)
    return _inclusive(call.output_tokens, (call.reasoning_tokens,), call.output_includes_reasoning)


def _worked(call: Usage) -> bool:
    return call.work_shown or any(getattr(call, name) for name in COUNTERS)


def _inclusive(primary: int | None, parts: tuple[int | None, ...], includes: bool | None) -> Figure:
    there = sum(part for part in parts if part is not None)
    if primary is None:
        return unknown(AttemptGap.USAGE_FIELD_ABSENT, low=0 if includes is None else there)
    over = there > primary
    if includes:
        return unknown(AttemptGap.CONVENTION_VIOLATED) if over else known(primary)
    whole = all(part is not None for part in parts)
    if includes is False or over:  # more in the parts than in the whole: the whole does not include them
        return known(primary + there) if whole else unknown(AttemptGap.USAGE_FIELD_ABSENT, low=primary + there)
    if whole and not there:
        return known(primary)
    return Figure(primary, primary + there if whole else None, (AttemptGap.CONVENTION_UNKNOWN,))


def _as_it_is(name: str) -> Callable[[Usage], Figure]:
    def figure(call: Usage) -> Figure:
        value: int | None = getattr(call, name)
        return unknown(AttemptGap.USAGE_FIELD_ABSENT) if value is None else known(value)

    return figure


FIGURES: Mapping[Tokens, Callable[[Usage], Figure]] = {
    Tokens.INPUT: inclusive_input,
    Tokens.CACHED_INPUT: _as_it_is("cached_input_tokens"),
    Tokens.CACHE_WRITE_INPUT: _as_it_is("cache_write_input_tokens"),
    Tokens.OUTPUT: inclusive_output,
    Tokens.REASONING: _as_it_is("reasoning_tokens"),
}
