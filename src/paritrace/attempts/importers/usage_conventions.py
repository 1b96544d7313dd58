"""What the numbers of a usage record themselves prove of its convention (AT-6): a rule, never a guess."""

from msgspec import Struct


class Counts(Struct, frozen=True):
    """Counters of one record as the source wrote them; None is not there."""

    input_tokens: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    output_tokens: int | None = None
    total: int | None = None


class Proven(Struct, frozen=True):
    """None: the numbers prove nothing. `nothing_else`: a cache counter that is not there is zero."""

    input_includes_cache: bool | None
    output_includes_reasoning: bool | None
    nothing_else: bool = False


def proven(counts: Counts) -> Proven:
    """Returns what the total of a record proves of its parts.

    Input plus output is the total: nothing was counted beside them, neither cache nor reasoning. Together with the
    cache it is the total: the cache was counted beside the input, reasoning was not counted beside the output. Without
    a total, more cache than input cannot be a part of the input.
    """
    cache = (counts.cached or 0) + (counts.cache_write or 0)
    if counts.input_tokens is None:
        return Proven(None, None)
    too_much = False if cache > counts.input_tokens else None
    if counts.total is None or counts.output_tokens is None:
        return Proven(too_much, None)
    beside = counts.total - counts.input_tokens - counts.output_tokens
    if beside == 0:
        return Proven(True if too_much is None else None, True)
    return Proven(False, True, nothing_else=True) if beside == cache else Proven(too_much, None)
