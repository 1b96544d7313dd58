"""Device work of two traces, paired by the correspondence engine: where their sequences first part (IN-18).

A rule. Work is paired inside its stream by name and order alone; durations have no say, and are told beside the pairs
without a judgement: one trace of each side says nothing of noise.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from paritrace.correspondence.engine import correspond
from paritrace.correspondence.pairing import Pairing
from paritrace.inference.columns import UNKNOWN, listed
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.neutral import sequence_records

ONLY = "only"  # the name of a device's stream where both sides have one on it: numbers of streams mean nothing then
MOST_PARTINGS, MOST_NAMES = 20, 20


class Work(NamedTuple):
    """Device work of one side in the order of its streams. Durations are nanoseconds, UNKNOWN where there is none."""

    streams: list[tuple[str, str]]
    names: list[str]
    durations: list[int]
    untimed: int


class Side(Struct, frozen=True):
    """Of one trace: device work, how much of it has no start and so no place in a sequence, its streams."""

    work: int
    untimed: int
    streams: int


class Parting(Struct, frozen=True):
    """A place where one stream's sequences part.

    Attributes:
        after: how many paired pieces of the stream stand before it.
        baseline, candidate: names without a partner on each side there, in order; `num_` of each is how many there are.
        reason: why the first of them has none.
    """

    device: str
    stream: str
    after: int
    last_alike: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    num_baseline: int
    num_candidate: int
    reason: str


class NameTimes(Struct, frozen=True):
    """Summed durations of the pairs of one name, in nanoseconds; not judged."""

    name: str
    pairs: int
    baseline_ns: int
    candidate_ns: int


class KernelComparison(Struct, frozen=True):
    """Two traces' device work.

    Attributes:
        pairs: how many are paired; `by_basis`: by what.
        reordered: pairs whose order differs.
        unpaired_baseline, unpaired_candidate: how many have no partner, by reason.
        partings: where the sequences part, the first by stream; `num_partings` in all.
        times: names whose summed durations differ most, in nanoseconds.
    """

    baseline: Side
    candidate: Side
    pairs: int
    by_basis: dict[str, int]
    reordered: int
    unpaired_baseline: dict[str, int]
    unpaired_candidate: dict[str, int]
    partings: tuple[Parting, ...]
    num_partings: int
    times: tuple[NameTimes, ...]

    @property
    def alike(self) -> bool:
        """Whether every piece of device work has its partner, in its order."""
        return not (self.unpaired_baseline or self.unpaired_candidate or self.reordered)


def compare_kernels(baseline: TraceFacts, candidate: TraceFacts, /) -> KernelComparison:
    """Pair the device work of two traces."""
    sides = (_work(baseline), _work(candidate))
    ours, theirs = _streams_of_both(sides)
    pairing = correspond(
        sequence_records(sides[0].names, streams=ours), sequence_records(sides[1].names, streams=theirs)
    ).pairing
    partings = _partings(pairing, sides, (ours, theirs))
    bases = pairing.basis.counts()
    return KernelComparison(
        baseline=_side(sides[0]),
        candidate=_side(sides[1]),
        pairs=bases.total(),
        by_basis={basis.value: bases[basis] for basis in sorted(bases)},
        reordered=len(pairing.reordered),
        unpaired_baseline=_reasons(pairing, 0),
        unpaired_candidate=_reasons(pairing, 1),
        partings=tuple(partings[:MOST_PARTINGS]),
        num_partings=len(partings),
        times=_times(pairing, sides),
    )


def _work(facts: TraceFacts) -> Work:
    rows = facts.work
    start, end, stream = rows["start"], rows["end"], rows["stream"]
    placed = np.flatnonzero(start != UNKNOWN)
    order = placed[np.lexsort((placed, start[placed], stream[placed]))]
    durations = np.where(end == UNKNOWN, UNKNOWN, end - start)
    streams, names = facts.streams.values, facts.names.values
    return Work(
        streams=[streams[code] for code in listed(stream[order])],
        names=[names[code] for code in listed(rows["name"][order])],
        durations=listed(durations[order]),
        untimed=len(rows) - len(placed),
    )


def _streams_of_both(sides: tuple[Work, Work]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The streams of both sides under names that mean the same."""
    held: tuple[dict[str, set[str]], dict[str, set[str]]] = (defaultdict(set), defaultdict(set))
    for work, streams in zip(sides, held, strict=True):
        for device, stream in work.streams:
            streams[device].add(stream)
    single = {device for device in held[0] if len(held[0][device]) == 1 == len(held[1].get(device, ()))}
    ours, theirs = ([(one[0], ONLY) if one[0] in single else one for one in work.streams] for work in sides)
    return ours, theirs


def _side(work: Work) -> Side:
    return Side(work=len(work.names), untimed=work.untimed, streams=len(set(work.streams)))


def _reasons(pairing: Pairing, side: int) -> dict[str, int]:
    reason = (pairing.reason_a, pairing.reason_b)[side]
    return dict(sorted(Counter(reason(place).value for place in pairing.unpaired(side)).items()))


class _Stretch(NamedTuple):
    """Unpaired work of one stream behind a paired piece of the baseline, -1: before all."""

    stream: tuple[str, str]
    last: int
    after: int
    ours: list[int]
    theirs: list[int]


def _partings(
    pairing: Pairing, sides: tuple[Work, Work], streams: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]]
) -> list[Parting]:
    """Return where sequences part: one for each stretch of unpaired work between two pairs of a stream."""
    stretches: dict[tuple[tuple[str, str], int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    last: dict[tuple[str, str], int] = {}
    counted: Counter[tuple[str, str]] = Counter()
    before_of: dict[int, int] = {}
    for place, partner in enumerate(pairing.partner_a):
        stream = streams[0][place]
        if partner >= 0:
            counted[stream] += 1
            last[stream] = place
            before_of[place] = counted[stream]
        else:
            stretches[stream, last.get(stream, -1)][0].append(place)
    last_b: dict[tuple[str, str], int] = {}
    for place, partner in enumerate(pairing.partner_b):
        stream = streams[1][place]
        if partner >= 0:
            last_b[stream] = partner
        else:
            stretches[stream, last_b.get(stream, -1)][1].append(place)
    found = [_Stretch(stream, at, before_of.get(at, 0), *both) for (stream, at), both in stretches.items()]
    return [_parting(pairing, sides, one) for one in sorted(found, key=lambda one: (one.after, one.stream))]


def _parting(pairing: Pairing, sides: tuple[Work, Work], stretch: _Stretch) -> Parting:
    (device, stream), last, after, ours, theirs = stretch
    reason = pairing.reason_a(ours[0]) if ours else pairing.reason_b(theirs[0])
    return Parting(
        device=device,
        stream=stream,
        after=after,
        last_alike=sides[0].names[last] if last >= 0 else "",
        baseline=tuple(sides[0].names[place] for place in ours[:MOST_NAMES]),
        candidate=tuple(sides[1].names[place] for place in theirs[:MOST_NAMES]),
        num_baseline=len(ours),
        num_candidate=len(theirs),
        reason=reason.value,
    )


def _times(pairing: Pairing, sides: tuple[Work, Work]) -> tuple[NameTimes, ...]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for place, partner in enumerate(pairing.partner_a):
        if partner < 0:
            continue
        ours, theirs = sides[0].durations[place], sides[1].durations[partner]
        if ours != UNKNOWN and theirs != UNKNOWN:
            of = sums[sides[0].names[place]]
            of[0], of[1], of[2] = of[0] + 1, of[1] + ours, of[2] + theirs
    found = [NameTimes(name, pairs, ours, theirs) for name, (pairs, ours, theirs) in sums.items() if ours != theirs]
    return tuple(sorted(found, key=lambda one: (-abs(one.candidate_ns - one.baseline_ns), one.name))[:MOST_NAMES])
