"""All that is said about the collectives of one rank, and what follows from it (CP-2a, CP-8)."""

from paritrace.compare.collective_calls import one_sided, other_fields, other_orders
from paritrace.compare.collective_counts import other_counts
from paritrace.compare.collective_reductions import reductions
from paritrace.compare.collective_words import FoundCollective
from paritrace.compare.ranks import RankComparison


def collective_statements(of: RankComparison) -> list[FoundCollective]:
    """Every statement about one rank's collectives in order of execution."""
    reduced = reductions(of)
    spoken_for = {i for found in reduced for i in found.pairs}
    fields = [found for found in other_fields(of) if not found.pairs <= spoken_for or _more_than_buckets(of, found)]
    alone = one_sided(of)
    told = {(found.told.group, step) for found in (*reduced, *alone, *fields) for step in found.told.steps}
    counts = other_counts(of, told=told)
    return sorted((*reduced, *alone, *fields, *other_orders(of), *counts), key=lambda found: found.moment)


def _more_than_buckets(of: RankComparison, found: FoundCollective) -> bool:
    """Whether a pair differs in more than what its buckets hold."""
    ours, theirs = of.sides.baseline.collectives, of.sides.candidate.collectives
    (i,) = found.pairs
    return ours[i].route != theirs[of.sides.pairing.partner_a[i]].route
