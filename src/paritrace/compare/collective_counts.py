"""How many collectives each group made in a step, by the group's own sequence number (CA-2, level digest)."""

from collections.abc import Iterator

from paritrace.compare.collective_evidence import steps_with_operators
from paritrace.compare.collective_words import FoundCollective, sides_of
from paritrace.compare.outside import Moment
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import (
    CollectiveDifference,
    CollectiveKind,
    Difference,
    DifferenceClass,
    Group,
    SlotDifference,
)
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Phase

BEFORE_GRADIENTS = 3  # among the figures of a step: with its loss, before its gradients are looked at


def other_counts(of: RankComparison) -> Iterator[FoundCollective]:
    """Groups that made another number of collectives in a step, the first step of each.

    Where both sides recorded operators each collective is known by itself, and a sum would say it again.
    """
    counts = tuple(_counts(side) for side in sides_of(of))
    seen: set[str] = set()
    for step in sorted((counts[0].keys() & counts[1].keys()) - steps_with_operators(of)):
        ours, theirs = counts[0][step], counts[1][step]
        for group in sorted(ours.keys() & theirs.keys() - seen):
            if ours[group] != theirs[group]:
                seen.add(group)
                yield _found(of, step, group, counts=(ours[group], theirs[group]))


def _counts(side: Side) -> dict[int, dict[str, int]]:
    return {record.step: record.counts for record in side.recorded.distributed.counts}


def _found(of: RankComparison, step: int, group: str, *, counts: tuple[int, int]) -> FoundCollective:
    sentence = (
        f"At step {step} group {group} made {_collectives(counts[0])} in the baseline and {counts[1]} in the candidate"
    )
    return FoundCollective(
        moment=Moment(step, _loss_at(of, step), BEFORE_GRADIENTS),
        told=CollectiveDifference(
            kind=CollectiveKind.COUNT,
            sentence=sentence,
            ranks=(of.rank,),
            steps=(step,),
            phase=Phase.BACKWARD.value,
            group=group,
            operation="",
            parameters=(),
            baseline=str(counts[0]),
            candidate=str(counts[1]),
            records=(),
        ),
        difference=Difference(
            rank=of.rank,
            step=step,
            microbatch=0,
            phase=Phase.BACKWARD.value,
            level="digest",
            function="collectives",
            file="",
            line=0,
            module="",
            slot=f"group {group}",
            difference_class=DifferenceClass.SCALARS,
            group=Group.UNDETERMINED,
            baseline_record_id=-1,
            candidate_record_id=-1,
            undetermined_before=0,
            slots=(SlotDifference(f"group {group}", DifferenceClass.SCALARS, str(counts[0]), str(counts[1])),),
            cause="no recorded call shows which",
            collective=sentence,
        ),
    )


def _collectives(number: int) -> str:
    return f"{number} collective" if number == 1 else f"{number} collectives"


def _loss_at(of: RankComparison, step: int) -> int:
    """Where the baseline stood when the step's loss was known: collectives of gradients come behind."""
    return max(of.digests.sides[0].places(step=step, moment="loss"), default=-1)
