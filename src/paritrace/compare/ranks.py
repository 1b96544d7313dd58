"""Comparing one process session of each side: correspondence, verdicts, stretches, origins, in that order."""

from dataclasses import dataclass

import numpy as np

from paritrace.compare.agreement import Agreements, Sides, agreements
from paritrace.compare.blames import Origins
from paritrace.compare.digests import Digests, compare_digests
from paritrace.compare.folds_apart import apart as laid_apart
from paritrace.compare.folds_apart import set_apart
from paritrace.compare.load import UNDEFINED, Recorded
from paritrace.compare.lookups import pairs_of
from paritrace.compare.map_uses import Uses, map_uses
from paritrace.compare.origins import find_origins
from paritrace.compare.regions import Regions
from paritrace.compare.result import Unpaired
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines
from paritrace.compare.translate import Side, translate
from paritrace.correspondence.engine import correspond
from paritrace.correspondence.stretches import Stretches, stretches
from paritrace.evidence.calls import Flag
from paritrace.evidence.gaps import CountedGap

BITS = "bits"
DROPPING = frozenset({CountedGap.DROPPED_QUEUE_FULL, CountedGap.DISK_FULL, CountedGap.OVER_BUDGET, UNDEFINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RankComparison:
    """Everything known of one rank of both runs."""

    rank: int
    sides: Sides
    verdicts: Agreements
    stretches: Stretches
    digests: Digests
    origins: Origins
    regions: Regions
    reasons: tuple[dict[int, Unpaired], dict[int, Unpaired]]  # in execution order
    lines: Lines
    unpaired: tuple[list[int], list[int]]  # the same calls as `reasons`, as rising indices
    maps: Uses  # what declared maps name here
    reading: tuple[Settings, Settings]  # how each side's names are read


def compare_rank(baseline: Recorded, candidate: Recorded, *, settings: Settings, lines: Lines) -> RankComparison:
    """Compare two sessions; nothing here reads files or decides what a person sees first."""
    ours, theirs = translate(baseline, candidate, settings=settings, lines=lines)
    found = correspond(ours.records, theirs.records)
    sides = Sides(
        baseline=ours,
        candidate=theirs,
        pairing=found.pairing,
        homes=found.homes,
        same_scheme=_scheme(baseline) == _scheme(candidate),
        apart=laid_apart(baseline, candidate, settings=settings),
    )
    reasons = (_reasons(ours, theirs, sides, 0), _reasons(theirs, ours, sides, 1))
    leave_out = tuple(
        {i for i, why in of.items() if why in (Unpaired.NOT_RECORDED, Unpaired.DROPPED)} for of in reasons
    )
    apart = stretches(found, leave_out=(leave_out[0], leave_out[1]))
    digests = compare_digests(baseline, candidate, settings=settings)
    set_apart(digests, sides.apart)
    verdicts = agreements(sides)
    regions = Regions(sides, verdicts, apart, digests)
    return RankComparison(
        rank=baseline.session.rank,
        sides=sides,
        verdicts=verdicts,
        stretches=apart,
        digests=digests,
        origins=find_origins(sides, verdicts, digests=digests, regions=regions),
        regions=regions,
        reasons=reasons,
        lines=lines,
        unpaired=(sorted(reasons[0]), sorted(reasons[1])),
        maps=map_uses([baseline], [candidate], settings=settings),
        reading=(
            settings.seen_from("baseline", baseline.session.rank),
            settings.seen_from("candidate", candidate.session.rank),
        ),
    )


def _scheme(side: Recorded) -> str | None:
    return None if side.header is None else side.header.schemes.get(BITS)


def _reasons(mine: Side, other: Side, sides: Sides, side: int) -> dict[int, Unpaired]:
    """Why each unpaired call of one side has no partner: what was recorded and seen comes before what was tried."""
    pairing = sides.pairing
    partners = pairing.partner_a if side == 0 else pairing.partner_b
    given = pairing.reason_a if side == 0 else pairing.reason_b
    used, _ = pairs_of(other.calls.column("context"), np.array(other.records.layers, dtype=np.int64))
    captured = {(other.recorded.contexts[context].step, layer) for context, layer in used}
    lost = bool(other.recorded.bytes_lost or DROPPING & other.recorded.gaps.keys())
    found: dict[int, Unpaired] = {}
    free: list[int] = np.flatnonzero(np.asarray(partners) < 0).tolist()
    for i in free:
        flags = mine.calls.values("flags")[i]
        if (mine.context_of(i)[0], mine.records.layers[i]) not in captured:
            found[i] = Unpaired.DROPPED if lost else Unpaired.NOT_RECORDED
        elif flags & Flag.COMPILED:
            found[i] = Unpaired.NOT_OBSERVABLE_COMPILED
        elif flags & Flag.LINK_AMBIGUOUS:
            found[i] = Unpaired.LINK_AMBIGUOUS
        else:
            found[i] = Unpaired.DROPPED if lost and given(i) is Unpaired.STREAM_MISSING else given(i)
    return found
