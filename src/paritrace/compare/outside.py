"""States that differed before any call read them, and figures of steps that differ without any call (CA-29)."""

from collections.abc import Iterator
from typing import NamedTuple

from paritrace.compare.digests import DigestDifference, moment_order
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Difference, DifferenceClass, Group, Outside
from paritrace.evidence.calls import Phase

READ_BY_CALLS = frozenset({"begin", "batch"})
PHASE_OF = {
    "begin": Phase.FORWARD,
    "batch": Phase.FORWARD,
    "loss": Phase.FORWARD,
    "grads": Phase.BACKWARD,
    "grad_norm": Phase.BACKWARD,
}


class Moment(NamedTuple):
    """A place in a run that calls and figures share: step, micro-batch, and the order inside it."""

    step: int
    microbatch: int
    order: int


ORDER = {"begin": 0, "batch": 1, "forward": 2, "loss": 3, "backward": 4, "grads": 5, "grad_norm": 6, "optimizer": 7}


def moment_of_call(of: RankComparison, i: int) -> Moment:
    """Where a call of the baseline stands among the figures of its step."""
    step, microbatch, phase = of.sides.baseline.context_of(i)
    return Moment(step, microbatch, ORDER[phase])


def moment_of_figure(found: DigestDifference) -> Moment:
    """Where a figure stands among the calls of its step."""
    return Moment(found.step, found.microbatch, ORDER.get(found.moment, 0))


def unexplained(of: RankComparison) -> list[DigestDifference]:
    """The figures of the earliest moment that differs when no call differed before it, in order of their names."""
    differing = sorted(of.digests.different, key=lambda key: (moment_order(key), key))
    if not differing:
        return []
    earliest = moment_of_figure(of.digests.different[differing[0]])
    calls = [moment_of_call(of, i) for i in of.origins.blames]
    if any(moment < earliest for moment in calls):
        return []
    return [of.digests.different[k] for k in differing if moment_of_figure(of.digests.different[k]) == earliest]


def outside_states(of: RankComparison) -> Iterator[Outside]:
    """The states that differed before any recorded call did: the outside, by name."""
    found = [figure for figure in unexplained(of) if figure.moment in READ_BY_CALLS]
    steps = {figure.step for figure in found}
    taken = {(figure.moment, figure.group, figure.name) for figure in found}
    batches = [f for f in of.digests.different.values() if f.step in steps and f.moment == "batch"]
    found += [f for f in batches if (f.moment, f.group, f.name) not in taken]
    for figure in found:
        yield Outside(
            rank=of.rank,
            step=figure.step,
            moment=figure.moment,
            group=figure.group,
            name=figure.name,
            baseline=figure.baseline,
            candidate=figure.candidate,
        )


def figure_difference(of: RankComparison, figure: DigestDifference) -> Difference:
    """Describe a figure of a step as the place where the runs part: no call is named."""
    read = figure.moment in READ_BY_CALLS
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
        group=Group.OUTSIDE if read else Group.UNDETERMINED,
        baseline_record_id=-1,
        candidate_record_id=-1,
        undetermined_before=sum(of.sides.baseline.context_of(i)[0] <= figure.step for i in of.reasons[0]),
        cause=f"{figure.group.replace('_', ' ')} {figure.name}" if read else "",
    )
