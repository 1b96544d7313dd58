"""What counters grew by between two scrapes, and why not where that cannot be said: pure (IN-13)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import isfinite

from msgspec import Struct

from paritrace.inference.importers.exposition import Histogram, Identity, Labels, Scrape, ScrapeFailed


class DeltaGap(StrEnum):
    """Why a series has no difference between two scrapes: the closed list of IN-13."""

    SCRAPE_MISSING = "scrape_missing"
    SCRAPE_FAILED = "scrape_failed"
    ENGINE_RESTART = "engine_restart"  # the server's process started between the two
    COUNTER_RESET = "counter_reset"  # it fell
    COUNTER_RECREATED = "counter_recreated"  # its `_created` time moved
    SERIES_MISSING = "series_missing"  # it has a number in one scrape at most
    BUCKET_BOUNDARIES_CHANGED = "bucket_boundaries_changed"
    NOT_ENABLED = "not_enabled"  # the server does not export it, before or after


class Grown(Struct, frozen=True, tag_field="kind", tag="delta"):
    """What a counter grew by."""

    name: str
    labels: Labels
    delta: float


class GrownHistogram(Struct, frozen=True, tag_field="kind", tag="histogram"):
    """What a histogram grew by; `buckets` are cumulative, as exposed, by upper bound."""

    name: str
    labels: Labels
    buckets: tuple[tuple[str, float], ...]
    count: float | None
    sum: float | None


class Unresolved(Struct, frozen=True, tag_field="kind", tag="gap"):
    """A series without a difference; `name` is `*` where the reason holds for every one."""

    name: str
    labels: Labels
    gap: DeltaGap
    detail: str = ""


Delta = Grown | GrownHistogram | Unresolved


def deltas(
    before: Scrape | ScrapeFailed | None, after: Scrape | ScrapeFailed | None, *, wanted: Sequence[str] = ()
) -> tuple[Delta, ...]:
    """Returns the difference of every counter and histogram of two scrapes of one server, or why it has none.

    Gauges have no difference: they say what is now.

    Args:
        wanted: families that have to be there; one that neither scrape has is `not_enabled`.
    """
    for which, scrape in (("before", before), ("after", after)):
        if scrape is None:
            return (Unresolved("*", (), DeltaGap.SCRAPE_MISSING, which),)
        if isinstance(scrape, ScrapeFailed):
            return (Unresolved("*", (), DeltaGap.SCRAPE_FAILED, f"{which}: {scrape.detail}"),)
    assert isinstance(before, Scrape)
    assert isinstance(after, Scrape)
    if before.process_starts != after.process_starts:
        return (Unresolved("*", (), DeltaGap.ENGINE_RESTART, _starts(before, after)),)
    return (*_counters(before, after), *_histograms(before, after), *_not_enabled(before, after, wanted))


def _starts(before: Scrape, after: Scrape) -> str:
    def said(scrape: Scrape) -> str:
        return ", ".join(f"{value:.3f}" for value in scrape.process_starts.values()) or "not exported"

    return f"process_start_time_seconds {said(before)}, then {said(after)}"


def _counters(before: Scrape, after: Scrape) -> Iterator[Delta]:
    for series in sorted({*before.counters, *after.counters}):
        old, new = before.counters.get(series), after.counters.get(series)
        gap = _why_not(series, before, after, old=old, new=new)
        if gap is not None:
            yield gap
        else:
            assert old is not None
            assert new is not None
            yield Grown(series.name, series.labels, new - old)


def _histograms(before: Scrape, after: Scrape) -> Iterator[Delta]:
    for series in sorted({*before.histograms, *after.histograms}):
        old, new = before.histograms.get(series), after.histograms.get(series)
        if old is None or new is None:
            yield _missing(series, old)
        elif [bound for bound, _ in old.buckets] != [bound for bound, _ in new.buckets]:
            detail = f"{len(old.buckets)} bounds, then {len(new.buckets)}"
            yield Unresolved(series.name, series.labels, DeltaGap.BUCKET_BOUNDARIES_CHANGED, detail)
        else:
            yield _grown_histogram(series, before, after, old=old, new=new)


def _grown_histogram(series: Identity, before: Scrape, after: Scrape, *, old: Histogram, new: Histogram) -> Delta:
    pairs = [(a, b) for (_, a), (_, b) in zip(old.buckets, new.buckets, strict=True)]
    for one in ((old.count, new.count), *pairs):
        gap = _why_not(series, before, after, old=one[0], new=one[1])
        if gap is not None:
            return gap
    buckets = tuple((bound, b - a) for (bound, a), (_, b) in zip(old.buckets, new.buckets, strict=True))
    return GrownHistogram(
        series.name, series.labels, buckets, _minus(new.count, old.count), _minus(new.sum, old.sum)
    )  # a sum may fall where observations are negative: it decides nothing


def _minus(new: float | None, old: float | None) -> float | None:
    return None if new is None or old is None or not isfinite(new - old) else new - old


def _why_not(
    series: Identity, before: Scrape, after: Scrape, *, old: float | None, new: float | None
) -> Unresolved | None:
    if old is None or new is None:
        return _missing(series, old)
    first, second = before.created.get(series), after.created.get(series)
    if first != second:
        return Unresolved(series.name, series.labels, DeltaGap.COUNTER_RECREATED, f"{first}, then {second}")
    for which, value in (("before", old), ("after", new)):
        if not isfinite(value):  # what it counts is not there: neither that it fell nor what it grew by
            return Unresolved(series.name, series.labels, DeltaGap.SERIES_MISSING, f"{value:g} {which}")
    if new < old:
        return Unresolved(series.name, series.labels, DeltaGap.COUNTER_RESET, f"{old:.17g}, then {new:.17g}")
    return None


def _missing(series: Identity, old: object) -> Unresolved:
    where = "not there after" if old is not None else "not there before"
    return Unresolved(series.name, series.labels, DeltaGap.SERIES_MISSING, where)


def _not_enabled(before: Scrape, after: Scrape, wanted: Sequence[str]) -> Iterator[Delta]:
    there = {one.name for scrape in (before, after) for one in (*scrape.counters, *scrape.histograms)}
    for name in wanted:
        if name not in there:
            yield Unresolved(name, (), DeltaGap.NOT_ENABLED)
