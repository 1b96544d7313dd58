"""What belongs together inside one trace: device work and its launch, a launch and the range around it (IN-7, IN-10).

A rule. It repeats for one trace what linking does over a whole artifact, so that a trace can be checked by itself.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from paritrace.inference.columns import UNKNOWN, Numbers, Table, listed
from paritrace.inference.importers.kineto_facts import TraceFacts

ANY_THREAD = -1
NO_LAUNCH, SENTINEL, SEVERAL = -1, -2, -3  # instead of the place of a launch


class Busy(Struct, frozen=True):
    """Device time of one device in nanoseconds: the union of its work, and the sum of its pieces."""

    busy_ns: int
    summed_ns: int
    num_timed: int


class Launched(Struct, frozen=True):
    """For each piece of device work the place of its launch, or why it has none; launches whose id came before."""

    places: Numbers
    num_repeated: int
    num_unused: int  # launches to which no device work belongs


def busy_by_device(facts: TraceFacts, /) -> dict[str, Busy]:
    """Return device time by device; work without times is not in it."""
    start, end, device = facts.work["start"], facts.work["end"], facts.work["device"]
    timed = (start != UNKNOWN) & (end != UNKNOWN)
    names = facts.devices.values
    return {
        names[code]: _busy(start[timed & (device == code)], end[timed & (device == code)]) for code in range(len(names))
    }


def _busy(start: Numbers, end: Numbers) -> Busy:
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    before = np.concatenate((start[:1], reached[:-1]))
    busy = np.maximum(0, end - np.maximum(start, before))
    return Busy(busy_ns=int(busy.sum()), summed_ns=int((end - start).sum()), num_timed=len(start))


def launched(facts: TraceFacts, /) -> Launched:
    """Join device work to launches by correlation id; two launches of one id belong to nobody."""
    ids, wanted = facts.launches["id"], facts.work["id"]
    order = np.argsort(ids, kind="stable")
    first = np.searchsorted(ids[order], wanted, side="left")
    count = np.searchsorted(ids[order], wanted, side="right") - first
    places = np.full(len(wanted), NO_LAUNCH, dtype=np.int64)
    one = count == 1
    places[one] = order[first[one]]
    places[count > 1] = SEVERAL
    places[wanted == UNKNOWN] = SENTINEL
    distinct = np.unique(ids)
    return Launched(
        places=places,
        num_repeated=len(ids) - len(distinct),
        num_unused=int((~np.isin(ids, wanted)).sum()),
    )


def ranges_around(facts: TraceFacts, launches: Numbers, /, *, any_thread: bool, steps_only: bool = False) -> Numbers:
    """Return for each launch, given by place, how many innermost ranges hold it whole: 0, 1, or 2 for more.

    Args:
        any_thread: a range of any thread counts; else only one of the launch's own.
        steps_only: only the steps of a profiler count.
    """
    ranges = _spans(facts.ranges, steps_only=steps_only, any_thread=any_thread)
    start, end = facts.launches["start"], facts.launches["end"]
    thread = np.full(len(start), ANY_THREAD) if any_thread else facts.launches["thread"]
    found = np.zeros(len(launches), dtype=np.int64)
    order = np.lexsort((start[launches], thread[launches]))
    opened: list[tuple[int, int]] = []
    at, current = 0, None
    for place in listed(order):
        launch = int(launches[place])
        where = (int(thread[launch]), int(start[launch]), int(end[launch]))
        if where[1] == UNKNOWN or where[2] == UNKNOWN:
            continue
        if where[0] != current:
            opened, current = [], where[0]
        while at < len(ranges) and ranges[at][:2] <= where[:2]:
            if ranges[at][0] == current:
                opened.append(ranges[at][1:])
            at += 1
        opened = [one for one in opened if one[1] > where[1]]
        found[place] = min(2, num_innermost([one for one in opened if where[2] <= one[1]]))
    return found


def num_innermost(holding: list[tuple[int, int]], /) -> int:
    """Return how many of these spans, which share a moment, hold none of the others; equal ones count each."""
    return sum(
        not any(other != one and one[0] <= other[0] and other[1] <= one[1] for other in holding) for one in holding
    )


def _spans(ranges: Table, *, steps_only: bool, any_thread: bool) -> list[tuple[int, int, int]]:
    chosen = ranges["is_step"] == 1 if steps_only else np.ones(len(ranges), dtype=np.bool_)
    thread = np.full(len(ranges), ANY_THREAD) if any_thread else ranges["thread"]
    rows = zip(listed(thread[chosen]), listed(ranges["start"][chosen]), listed(ranges["end"][chosen]), strict=True)
    return sorted(rows)


def links(facts: TraceFacts, of: Launched, /) -> Counter[str]:
    """Return how much device work stands in exactly one innermost range of its launch's thread, or why not."""
    counts: Counter[str] = Counter()
    for word, place in (("no_launch_record", NO_LAUNCH), ("sentinel", SENTINEL), ("ambiguous_launch", SEVERAL)):
        counts[word] = int((of.places == place).sum())
    held = ranges_around(facts, of.places[of.places >= 0], any_thread=False)
    counts["linked"] = int((held == 1).sum())
    counts["outside_every_range"] = int((held == 0).sum())
    counts["ambiguous_range"] = int((held == 2).sum())
    return +counts


def steps_of_any_thread(facts: TraceFacts, of: Launched, /) -> Counter[str]:
    """Return in how many steps of a profiler, on any thread, launches stand: an estimate, and never a link."""
    if not len(facts.ranges):
        return Counter()
    held = ranges_around(facts, of.places[of.places >= 0], any_thread=True, steps_only=True)
    return +Counter({word: int((held == number).sum()) for number, word in enumerate(("none", "one", "several"))})


def partial_overlaps(spans: Iterable[tuple[int, int]], /) -> int:
    """Return how many of these spans begin inside another and end outside: what never happens on one thread.

    Args:
        spans: by their start, of equal ones the longest first.
    """
    opened: list[int] = []
    found = 0
    for start, end in spans:
        while opened and opened[-1] <= start:
            opened.pop()
        if opened and end > opened[-1]:
            found += 1
        else:
            opened.append(end)
    return found
