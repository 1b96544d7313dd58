"""All that is said about the collectives of one rank, and what follows from it (CP-2a, CP-8)."""

from collections.abc import Sequence

from msgspec.structs import replace

from paritrace.compare.collective_calls import one_sided, other_fields, other_orders
from paritrace.compare.collective_counts import other_counts
from paritrace.compare.collective_reductions import reductions
from paritrace.compare.collective_words import FoundCollective
from paritrace.compare.placing import Placed
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import CollectiveDifference, CollectiveKind


def collective_statements(of: RankComparison) -> list[FoundCollective]:
    """Every statement about one rank's collectives in order of execution."""
    reduced = reductions(of)
    spoken_for = {i for found in reduced for i in found.pairs}
    fields = [found for found in other_fields(of) if not found.pairs <= spoken_for or _more_than_buckets(of, found)]
    alone = one_sided(of)
    return sorted((*reduced, *alone, *fields, *other_orders(of), *other_counts(of)), key=lambda found: found.moment)


def orders_alone(found: Sequence[FoundCollective]) -> list[Placed]:
    """Findings that no bits show: another order of collectives that the workload calls, not of buckets (CP-2a)."""
    orders = (each for each in found if each.told.kind is CollectiveKind.ORDER and not each.told.parameters)
    return [Placed(each.moment, each.difference, 0) for each in orders]


def folded(found: Sequence[FoundCollective]) -> tuple[CollectiveDifference, ...]:
    """Equal statements of several ranks as one, in the order of the first of each (CP-9)."""
    told: dict[tuple[CollectiveKind, str], CollectiveDifference] = {}
    for each in (one.told for one in found):
        known = told.setdefault((each.kind, each.sentence), each)
        if known is not each:
            told[each.kind, each.sentence] = replace(
                known,
                ranks=tuple(sorted({*known.ranks, *each.ranks})),
                steps=tuple(sorted({*known.steps, *each.steps})),
                records=(*known.records, *each.records),
                complete=known.complete and each.complete,
            )
    return tuple(told.values())


def _more_than_buckets(of: RankComparison, found: FoundCollective) -> bool:
    """Whether a pair differs in more than what its buckets hold."""
    ours, theirs = of.sides.baseline.collectives, of.sides.candidate.collectives
    (i,) = found.pairs
    return ours[i].route != theirs[of.sides.pairing.partner_a[i]].route
