"""States that differed before any call read them, and figures of steps that differ without any call (CA-29)."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from paritrace.compare.figure_rows import DigestDifference
from paritrace.compare.flows import FromOrigin
from paritrace.compare.lookups import Numbers, distinct, looked_up
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Difference, DifferenceClass, Group, Outside
from paritrace.compare.telling import told_state
from paritrace.evidence.calls import Phase

FIGURES = ("begin", "batch", "loss", "grads", "grad_norm")
EXPLAINING = frozenset({Group.ORIGINATES, Group.REWIRED, Group.CONTAINS})
READ_BY_CALLS = frozenset({"begin", "batch"})
PHASE_OF = {
    "begin": Phase.FORWARD,
    "batch": Phase.FORWARD,
    "loss": Phase.FORWARD,
    "grads": Phase.BACKWARD,
    "grad_norm": Phase.BACKWARD,
}


class Moment(NamedTuple):
    """A place in the order of execution that calls and figures share."""

    step: int
    at: int  # when the call ended, or the call before the figure did, in the baseline's sequence numbers
    figure: int  # 0: a call; figures stand after the call that ended there, in their own order
    microbatch: int = 0


def moment_of_call(of: RankComparison, i: int) -> Moment:
    """Where a call of the baseline stands among the figures of its step."""
    step, microbatch, _ = of.sides.baseline.context_of(i)
    return Moment(step, of.sides.baseline.calls.values("left")[i], 0, microbatch)


def moment_of_figure(found: DigestDifference) -> Moment:
    """Where a figure stands among the calls of its step."""
    order = FIGURES.index(found.moment) + 1 if found.moment in FIGURES else len(FIGURES) + 1
    return Moment(found.step, found.at, order, found.microbatch)


def calls_before(of: RankComparison, moment: Moment) -> list[int]:
    """The differing calls that ended before a moment."""
    contexts = of.sides.baseline.recorded.contexts.values()
    calls, used, left = _differing(of)
    step = looked_up(used, {c.id: (c.step > moment.step) - (c.step < moment.step) for c in contexts})
    earlier = looked_up(used, {c.id: int(moment.figure > 0 or c.microbatch < moment.microbatch) for c in contexts})
    before = (step < 0) | ((step == 0) & ((left < moment.at) | ((left == moment.at) & (earlier > 0))))
    found: list[int] = calls[before].tolist()
    return found


def last_call(of: RankComparison) -> Moment | None:
    """When the last differing call ended."""
    contexts = of.sides.baseline.recorded.contexts
    calls, used, left = _differing(of)
    if not len(calls):
        return None
    last = max(contexts[context].step for context in distinct(used).tolist())
    inside = looked_up(used, {c.id: int(c.step == last) for c in contexts.values()}) > 0
    at = left[inside].max()
    return max(moment_of_call(of, i) for i in calls[inside & (left == at)].tolist())


def _differing(of: RankComparison) -> tuple[Numbers, Numbers, Numbers]:
    """The differing calls, their contexts and when they ended."""
    calls = of.origins.blames.order
    columns = of.sides.baseline.calls
    return calls, columns.column("context")[calls], columns.column("left")[calls]


def differing_contexts(of: RankComparison) -> list[int]:
    """The contexts of the baseline in which a call differs."""
    found: list[int] = distinct(_differing(of)[1]).tolist()
    return found


def unexplained(of: RankComparison) -> list[DigestDifference]:
    """The figures of the earliest moment that differs when no call differed before it, in order of their names."""
    figures = of.digests.different.of_step(min((head[0] for head in of.digests.different.heads), default=None))
    earliest = min(map(moment_of_figure, figures), default=None)
    if earliest is None:
        return []
    differing = sorted(found for found in figures if moment_of_figure(found) == earliest)
    before = calls_before(of, earliest)
    if any(_explains(of, i) for i in before) or (before and not stands_first(of, differing[0])):
        return []
    return [found for found in differing if not _written(of, found)]


def _written(of: RankComparison, found: DigestDifference) -> bool:
    """Whether a stretch of unpaired calls made it, and is named for that."""
    blame = of.origins.states.get(found[:5])
    return blame is not None and blame.root is not None and blame.root[1] in of.origins.regions


def stands_first(of: RankComparison, found: DigestDifference) -> bool:
    """Whether a figure is what a run begins with: calls before it set the run up and are no part of a step."""
    if found.moment != "begin":
        return False
    heads = chain(of.digests.equal.heads, of.digests.different.heads)
    return found.step == min(head[0] for head in heads if head[2] == "begin")


def _explains(of: RankComparison, i: int) -> bool:
    """Whether a call that differs while a run is set up says itself why: then what it wrote is no riddle."""
    blame = of.origins.blames[i]
    if blame.root is not None and blame.root[0] == "region" and blame.root[1] in of.origins.regions:
        return True
    if blame.group in EXPLAINING or (blame.outside is not None and blame.outside.name):
        return True
    if blame.group is not Group.PROPAGATES or blame.root is None or blame.root[0] != "call" or blame.root[1] == i:
        return False
    return _explains(of, blame.root[1])


def outside_states(of: RankComparison) -> Iterator[Outside]:
    """The states that differed before any recorded call did, and those that a call read: the outside, by name."""
    told: set[tuple[str, str]] = set()
    for figure in unexplained(of):
        if figure.moment in READ_BY_CALLS:
            told.add((figure.group, figure.name))
            yield _outside(of, figure)
    for i, blame in of.origins.blames.single.items():
        if blame.outside is None or (blame.outside.kind.value, blame.outside.name) in told or not blame.outside.name:
            continue
        told.add((blame.outside.kind.value, blame.outside.name))
        yield _read_by(of, i, blame.outside, blame.slot)


def _outside(of: RankComparison, figure: DigestDifference) -> Outside:
    return Outside(
        rank=of.rank,
        step=figure.step,
        moment=figure.moment,
        group=figure.group,
        name=figure.name,
        baseline=figure.baseline,
        candidate=figure.candidate,
    )


def _read_by(of: RankComparison, i: int, origin: FromOrigin, place: int) -> Outside:
    """A source that no inventory shows, by the first call that read it."""
    ours, theirs = of.sides.baseline, of.sides.candidate
    slot = ours.calls[i].inputs[place]
    name = ours.recorded.names[slot.name]
    others = theirs.calls[of.sides.pairing.partner_a[i]].inputs
    other = next(other for other in others if theirs.recorded.names[other.name] == name)
    return Outside(
        rank=of.rank,
        step=ours.context_of(i)[0],
        moment="read",
        group=origin.kind.value,
        name=origin.name,
        baseline=str(slot.bits),
        candidate=str(other.bits),
    )


def figure_difference(of: RankComparison, figure: DigestDifference) -> Difference:
    """Describe a figure of a step as the place where the runs part: no call is named."""
    read = figure.moment in READ_BY_CALLS
    written = of.origins.states.get(figure[:5])
    told = told_state(of.digests, figure) if read else ""
    module = figure.name.rpartition(".")[0] if figure.group in ("parameter", "buffer", "gradient") else ""
    return Difference(
        rank=of.rank,
        step=figure.step,
        microbatch=figure.microbatch,
        phase=PHASE_OF.get(figure.moment, Phase.FORWARD).value,
        level="digest",
        function=figure.group,
        file="",
        line=0,
        module=module,
        slot=figure.name,
        difference_class=DifferenceClass.BITS_ONLY,
        group=written.group if written else Group.OUTSIDE if read else Group.UNDETERMINED,
        baseline_record_id=-1,
        candidate_record_id=-1,
        undetermined_before=_unpaired_before(of, figure),
        cause=written.cause if written else told,
    )


def _unpaired_before(of: RankComparison, figure: DigestDifference) -> int:
    """The unpaired calls of both sides that had ended when the figure was taken."""
    sides = ((of.sides.baseline, figure.at), (of.sides.candidate, figure.other_at))
    return sum(
        side.calls.values("left")[i] <= at for (side, at), found in zip(sides, of.reasons, strict=True) for i in found
    )
