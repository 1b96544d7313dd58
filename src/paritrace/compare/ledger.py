"""The error ledger: how far the outputs of paired calls are apart, in order of execution, beside what was expected of
them (CP-16, CP-29): pure."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from paritrace.compare.envelope import Excess
from paritrace.compare.exits import Judged
from paritrace.compare.judgement import RankJudgement
from paritrace.compare.measured import Measured, summaries_of_pair
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Ledger, LedgerEntry
from paritrace.compare.strengths import strengths
from paritrace.evidence.calls import Level

MOST_OF_RANK = 1_000  # outputs measured of one rank: of more, some that lie evenly among them
MOST = 2_000  # of all ranks, as a report shows them


def ledger_of_rank(of: RankComparison, by: RankJudgement | None) -> Ledger:
    """The outputs of one rank that were summarised: those judged by draws, else those that differ."""
    if by is None or by.judged is None or by.measured is None:
        return _unjudged(of)
    judged, measured = by.judged, by.measured
    calls = sorted(judged.outputs)
    beyond = [i for i in calls if judged.outputs[i].beyond]
    shown = sorted({*_spread(beyond, MOST_OF_RANK // 2), *_spread(calls, MOST_OF_RANK // 2)})
    before = _Before(of)
    entries = [_judged(of, i, judged, measured, undetermined=before.up_to(i)) for i in shown]
    return Ledger(entries=tuple(entries), total=len(calls))


def joined_ledger(ranks: Sequence[Ledger]) -> Ledger | None:
    """The ledgers of all ranks as one; None where nothing was measured."""
    entries = [entry for rank in ranks for entry in rank.entries]
    if not entries:
        return None
    out = [place for place, entry in enumerate(entries) if entry.beyond]
    shown = sorted({*_spread(out, MOST // 2), *_spread(range(len(entries)), MOST // 2)})
    return Ledger(entries=tuple(entries[place] for place in shown), total=sum(rank.total for rank in ranks))


def _spread(items: Sequence[int], most: int) -> list[int]:
    """At most so many of the items, evenly, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[place * (len(items) - 1) // (most - 1)] for place in range(most)]


class _Before:
    """Counts the baseline's undetermined calls between one call and the next that is asked for."""

    def __init__(self, of: RankComparison) -> None:
        self._unpaired = of.unpaired[0]
        self._seen = 0

    def up_to(self, i: int) -> int:
        at = bisect_left(self._unpaired, i)
        found, self._seen = at - self._seen, at
        return found


def _judged(of: RankComparison, i: int, judged: Judged, measured: Measured, *, undetermined: int) -> LedgerEntry:
    excess = judged.outputs[i]
    return _entry(of, i, excess.error, excess=excess, inside=_inside(measured, i, excess), undetermined=undetermined)


def _inside(measured: Measured, i: int, excess: Excess) -> float | None:
    """Up to which error the output of an excess stays inside; None where its draws have no width of this figure."""
    for place in measured.slots(i, "o"):
        if measured.excess(i, "o", place) == excess:
            return measured.envelope.largest_error_inside(measured.place_of(i, "o", place))
    return None


def _unjudged(of: RankComparison) -> Ledger:
    """Without draws: the calls that differ and were summarised, by the largest error of their outputs."""
    side = of.sides.baseline
    levels = [number for number, function in side.recorded.functions.items() if function.level is Level.MODULE]
    differing = np.sort(of.origins.blames.order)
    modules: list[int] = differing[np.isin(side.calls.column("function")[differing], levels)].tolist()
    before = _Before(of)
    entries = [
        _entry(of, i, error, undetermined=before.up_to(i))
        for i in _spread(modules, MOST_OF_RANK)
        if of.sides.pairing.partner_a[i] >= 0 and (error := max(_errors(of, i), default=0.0)) > 0.0
    ]
    total = len(entries) if len(modules) <= MOST_OF_RANK else len(modules)
    return Ledger(entries=tuple(entries), total=total)


def _errors(of: RankComparison, i: int) -> Iterator[float]:
    for _, left, right in summaries_of_pair(of.sides, i, "o"):
        found = strengths(left, right) if left is not None and right is not None else None
        if found is not None:
            yield found.error


def _entry(
    of: RankComparison,
    i: int,
    error: float,
    *,
    undetermined: int,
    excess: Excess | None = None,
    inside: float | None = None,
) -> LedgerEntry:
    side, j = of.sides.baseline, of.sides.pairing.partner_a[i]
    step, _, phase = side.context_of(i)
    return LedgerEntry(
        rank=of.rank,
        step=step,
        phase=phase,
        module=side.module_of(i),
        function=side.recorded.functions[side.calls.values("function")[i]].name,
        baseline_record_id=side.calls.values("id")[i],
        candidate_record_id=of.sides.candidate.calls.values("id")[j],
        error=error if isfinite(error) else None,
        expected=None if excess is None or not isfinite(excess.expected) else excess.expected,
        inside_up_to=inside,
        beyond=None if excess is None else excess.beyond,
        figure="" if excess is None else excess.figure,
        undetermined_before=undetermined,
    )
