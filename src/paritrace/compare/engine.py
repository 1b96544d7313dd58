"""Comparing two runs: the front door of the package (CP-1 to CP-9)."""

import dataclasses
import gc
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from weakref import ref

from msgspec.structs import replace

from paritrace.compare.across_ranks import across_ranks
from paritrace.compare.callrows import CallRows, RankRows
from paritrace.compare.collectives import folded, orders_alone
from paritrace.compare.coverage import side_coverage
from paritrace.compare.elementwise import with_elements
from paritrace.compare.findings import findings, first_of, firsts_of, origins_of
from paritrace.compare.folds_joined import with_folds
from paritrace.compare.judged_by import Envelopes, JudgedBy, joined
from paritrace.compare.judgement import envelope_used
from paritrace.compare.kept_slots import KeptSlots
from paritrace.compare.ladder import ladder, ladders_by_rank, ladders_by_step
from paritrace.compare.ledger import joined_ledger
from paritrace.compare.limits import limits_of
from paritrace.compare.map_uses import declared_maps
from paritrace.compare.placing import UNDECIDED
from paritrace.compare.policy_verdict import with_verdict
from paritrace.compare.rank_jobs import (
    Pair,
    RankDone,
    RankJob,
    compare_sessions,
    done,
    judges_of,
    limits_of_job,
    lines_of,
    no_search_for_cycles,
    run_job,
)
from paritrace.compare.rank_summary import RankSummary
from paritrace.compare.result import FORMAT, VERSION, Change, Comparison, Counts, Difference, Group, RunRef
from paritrace.compare.resume_joined import with_resume
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.compare.token_rows_joined import with_token_rows
from paritrace.compare.undetermined import MAX_ONE_SIDED, places_of, reasons_of, settled
from paritrace.evidence.calls import Level
from paritrace.process.pool import Pool
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView

NOT_EVALUATED = "not_evaluated"
DEFAULT = Settings()
CALLS_KEPT = 200_000  # of both sides: more ranks are compared again for their rows, so that memory holds one at a time


def compare(
    a: Run, b: Run, settings: Settings = DEFAULT, *, by: JudgedBy | None = None, pool: Pool | None = None
) -> Compared:
    """Compare candidate `b` with baseline `a`, rank by rank.

    Args:
        by: draws of the baseline that say how much difference round-off or repetition explains.
        pool: who compares the ranks; None: this process, one rank after another. The result is the same (CP-17).

    Returns:
        The comparison document and every call of both sides as rows. Nothing is written but, below the baseline, what
        was measured of its draws: a cache that may be removed.

    Raises:
        EvidenceError: Refused: a journal of another format or of a newer major version.
        HostError: Failed: `worker_died`, `worker_stuck`: one of the pool's processes did not give its result.
    """
    pairs, missing = _session_pairs(a, b, settings)
    compared = _one_by_one((a, b), pairs, settings, by) if pool is None else _pooled((a, b), pairs, settings, by, pool)
    ranks = across_ranks([done.summary for done in compared.done])
    changed = next((done.changed for done in compared.done if done.changed), ())
    result = _result(a, b, settings=settings, ranks=ranks, changed=changed, missing=missing)
    result = _settled(result, ranks, compared.rows)
    result = with_folds(result, (a, b), ranks=ranks, settings=settings)
    result = with_verdict(result, settings.policy, [rank.policy for rank in ranks])
    kept = KeptSlots((a, b), pairs, masks=settings.masks)
    result = with_elements(result, kept)
    result = with_resume(result, (a, b), settings=settings)
    without = [frozenset[str]().union(*(rank.without_rows[side] for rank in ranks)) for side in (0, 1)]
    result, tokens = with_token_rows(result, (a, b), settings=settings, by=by, without=(without[0], without[1]))
    rows = CallRows(compared.rows, regrouped=[rank.regrouped for rank in ranks], kept=kept)
    return Compared(result=result, rows=rows, token_rows=tokens)


class _Compared(NamedTuple):
    """All ranks, in order."""

    done: list[RankDone]
    rows: list[RankRows]


def _one_by_one(runs: tuple[Run, Run], pairs: Sequence[Pair], settings: Settings, by: JudgedBy | None) -> _Compared:
    found = _Compared([], [])
    lines = lines_of(*runs)
    num_calls = 0
    teller = _most_whole(pairs)
    envelopes = None if by is None else _joint_envelopes(runs[0], pairs, settings, by)
    for pair in pairs:
        again = partial(compare_sessions, runs, pair, settings=settings, lines=lines, samples=by is not None)
        with no_search_for_cycles():
            of = again()
            found.done.append(done(of, envelopes, settings=settings, tells_changes=pair is teller))
            num_calls += len(of.sides.baseline.calls) + len(of.sides.candidate.calls)
            found.rows.append(RankRows(again, kept=of if num_calls <= CALLS_KEPT else None))
            if num_calls > CALLS_KEPT:
                of.origins.blames.let_go()
            held = ref(of.sides.baseline.calls)
            del of  # before the next is made: memory holds one that is not kept
            if num_calls > CALLS_KEPT and held() is not None:
                gc.collect()  # something of it refers back to it; looking for that goes through everything in memory
    return found


def _joint_envelopes(baseline: Run, pairs: Sequence[Pair], settings: Settings, by: JudgedBy) -> Envelopes:
    """Envelopes with one rate for all sessions that are compared."""
    envelopes = Envelopes(by, baseline, settings=settings, ranks=_ranks(pairs))
    if len(pairs) > 1:
        envelopes.limits = joined([envelopes.limits_of(view) for view, _ in pairs])
    return envelopes


def _ranks(pairs: Sequence[Pair]) -> frozenset[int]:
    return frozenset(view.rank for view, _ in pairs)


def _pooled(
    runs: tuple[Run, Run], pairs: Sequence[Pair], settings: Settings, by: JudgedBy | None, pool: Pool
) -> _Compared:
    teller, judges, lines = _most_whole(pairs), judges_of(by), lines_of(*runs)
    jobs = [
        RankJob(
            folders=(runs[0].folder, runs[1].folder),
            session_ids=(pair[0].session_id, pair[1].session_id),
            settings=settings,
            judges=judges,
            ranks=_ranks(pairs),
            tells_changes=pair is teller,
        )
        for pair in pairs
    ]
    if judges is not None and len(pairs) > 1:
        limits = joined(list(pool.results(limits_of_job, jobs)))
        jobs = [dataclasses.replace(job, limits=limits) for job in jobs]
    again = [partial(compare_sessions, runs, pair, settings=settings, lines=lines, samples=False) for pair in pairs]
    return _Compared(list(pool.results(run_job, jobs)), [RankRows(one, kept=None) for one in again])


def _settled(result: Comparison, ranks: Sequence[RankSummary], rows: Sequence[RankRows]) -> Comparison:
    """What is known around a first difference that stands first only since all ranks are known (CP-30)."""
    first = result.first_difference
    if first is None or first.region or first.group not in UNDECIDED or result.settled is not None:
        return result
    number = next((n for n, rank in enumerate(ranks) if rank.items and rank.items[0].difference is first), None)
    return result if number is None else replace(result, settled=settled(rows[number].comparison(), first))


def _most_whole(pairs: Sequence[tuple[SessionView, SessionView]]) -> tuple[SessionView, SessionView] | None:
    """The first pair whose sessions both wrote to their end: of one that was cut off, not all is known."""
    whole = (pair for pair in pairs if all(view.receipt is not None for view in pair))
    return next(whole, pairs[0] if pairs else None)


def _session_pairs(a: Run, b: Run, settings: Settings) -> tuple[list[tuple[SessionView, SessionView]], tuple[int, ...]]:
    """Pair sessions by rank and incarnation; ranks of one side only are missing (CP-9).

    A rank that has one session in each run, under unlike restarts, is paired too: there is one candidate.
    """
    ours, theirs = _by_rank(a, settings), _by_rank(b, settings)
    pairs: list[tuple[SessionView, SessionView]] = []
    for rank in sorted(ours.keys() & theirs.keys()):
        left, right = ours[rank], theirs[rank]
        if len(left) == len(right) == 1:
            pairs += zip(left.values(), right.values(), strict=True)
        else:
            pairs += [(left[restart], right[restart]) for restart in sorted(left.keys() & right.keys())]
    missing = (ours.keys() | theirs.keys()) - {view.rank for view, _ in pairs}
    return sorted(pairs, key=lambda pair: (pair[0].rank, pair[0].incarnation)), tuple(sorted(missing))


def _by_rank(run: Run, settings: Settings) -> dict[int, dict[int, SessionView]]:
    """The sessions of the wanted ranks, by rank and incarnation."""
    found: dict[int, dict[int, SessionView]] = {}
    for view in run.sessions:
        if _wanted(view.rank, settings):
            found.setdefault(view.rank, {})[view.incarnation] = view
    return found


def _wanted(rank: int, settings: Settings) -> bool:
    return settings.ranks is None or rank in settings.ranks


def _result(
    a: Run,
    b: Run,
    *,
    settings: Settings,
    ranks: Sequence[RankSummary],
    changed: tuple[Change, ...],
    missing: tuple[int, ...],
) -> Comparison:
    # longer than 40 lines: one line for each key of the document, and nothing else
    items = [rank.items for rank in ranks]
    used = envelope_used([rank.judgement for rank in ranks if rank.judgement is not None])
    first = first_of(items)
    steps = tuple(sorted({step for rank in ranks for step in rank.steps}))
    step = _ladder_step(ranks, first, steps=steps)
    return Comparison(
        format=FORMAT,
        version=VERSION,
        baseline=_reference(a),
        candidate=_reference(b),
        verdict=NOT_EVALUATED,
        ranks_compared=tuple(sorted({rank.rank for rank in ranks})),
        ranks_missing=missing,
        steps_compared=steps,
        levels_compared=tuple(sorted({level for rank in ranks for level in rank.levels})),
        counts=_counts(ranks),
        undetermined_by_reason=reasons_of([rank.reasons for rank in ranks]),
        undetermined_by_place=places_of([rank.places for rank in ranks]),
        pairs_by_basis=dict(sorted(sum((rank.bases for rank in ranks), Counter[str]()).items())),
        findings=findings(
            items,
            exits=[rank.exits for rank in ranks],
            extra=[[*rank.within, *orders_alone(rank.statements)] for rank in ranks],
        ),
        ladder=ladder([rank.rungs for rank in ranks], changed, step=step),
        ladder_step=step,
        ladder_by_rank=ladders_by_rank([(one.rank, one.coordinate, one.rungs) for one in ranks], changed, step=step),
        ladder_by_step=ladders_by_step([one.rungs for one in ranks], changed, steps=steps, step=step),
        ledger=joined_ledger([one.ledger for one in ranks]),
        changed=changed,
        origins=origins_of(items),
        first_difference=first,
        outside=tuple(state for rank in ranks for state in rank.outside),
        recorded_on_one_side=tuple(record for rank in ranks for record in rank.one_sided)[:MAX_ONE_SIDED],
        settled=next((rank.settled for rank in ranks if rank.items and rank.items[0].difference is first), None),
        coverage={
            "baseline": side_coverage(a, [rank.coverage[0] for rank in ranks], settings),
            "candidate": side_coverage(b, [rank.coverage[1] for rank in ranks], settings),
        },
        limits=limits_of(used),
        settings=settings.as_used(),
        reports={},
        schemes=_schemes(ranks),
        collectives=folded([told for rank in ranks for told in rank.statements]),
        first_by_rank=firsts_of(items, [rank.follows for rank in ranks]),
        envelope=used,
        maps=declared_maps(settings, [rank.maps for rank in ranks]),
    )


def _ladder_step(ranks: Sequence[RankSummary], first: Difference | None, *, steps: Sequence[int]) -> int:
    """The step of the first differing call; of a figure or state the step that made it; without any, the first."""
    if first is not None and first.level != Level.DIGEST and first.group is not Group.OUTSIDE:
        return first.step
    differing = min((rank.differing_step for rank in ranks if rank.differing_step is not None), default=None)
    return min(steps, default=0) if differing is None else differing


def _reference(run: Run) -> RunRef:
    return RunRef(run_id=run.run_id, digest=run.digest, path=str(run.path))


def _counts(ranks: Sequence[RankSummary]) -> Counts:
    """The counts of all ranks."""
    return Counts(**{name: sum(getattr(rank.counts, name) for rank in ranks) for name in Counts.__struct_fields__})


def _schemes(ranks: Sequence[RankSummary]) -> dict[str, str]:
    """The schemes that both sides share, by role."""
    schemes = [scheme for rank in ranks for scheme in rank.schemes]
    known = [scheme for scheme in schemes if scheme is not None]
    if not known or len(known) < len(schemes):
        return {}
    return {role: name for role, name in known[0].items() if all(other.get(role) == name for other in known)}
