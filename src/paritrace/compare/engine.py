"""Comparing two runs: the front door of the package (CP-1 to CP-9)."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from paritrace.compare.callrows import CallRows
from paritrace.compare.changes import changes
from paritrace.compare.collectives import collective_statements, folded, orders_alone
from paritrace.compare.coverage import side_coverage
from paritrace.compare.findings import findings, first_of, firsts_of, origins_of
from paritrace.compare.ladder import first_differing_step, ladder
from paritrace.compare.limits import LIMITS
from paritrace.compare.load import Recorded, load
from paritrace.compare.outside import outside_states
from paritrace.compare.placing import placed
from paritrace.compare.ranks import RankComparison, compare_rank
from paritrace.compare.result import FORMAT, VERSION, Comparison, Counts, Difference, Group, RunRef, Status
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines
from paritrace.compare.undetermined import by_place, by_reason, one_sided, settled
from paritrace.evidence.calls import Level
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView

NOT_EVALUATED = "not_evaluated"
DEFAULT = Settings()
SOURCES_KEPT = 256  # texts in memory: each is read once per comparison of a rank


def compare(a: Run, b: Run, settings: Settings = DEFAULT) -> Compared:
    """Compare candidate `b` with baseline `a`, rank by rank.

    Returns:
        The comparison document and every call of both sides as rows; nothing is written.

    Raises:
        EvidenceError: Refused: a journal of another format or of a newer major version.
    """
    pairs, missing = _session_pairs(a, b, settings)
    lines = Lines(_cached(a), _cached(b))
    ranks: list[RankComparison] = []
    loaded: tuple[list[Recorded], list[Recorded]] = ([], [])
    for ours, theirs in pairs:
        left, right = load(a, ours, settings=settings), load(b, theirs, settings=settings)
        loaded[0].append(left)
        loaded[1].append(right)
        ranks.append(compare_rank(left, right, settings=settings, lines=lines))
    result = _result(a, b, settings=settings, ranks=ranks, loaded=loaded, missing=missing)
    return Compared(result=result, rows=CallRows(ranks))


def _cached(run: Run) -> Callable[[str], str | None]:
    return lru_cache(maxsize=SOURCES_KEPT)(run.source)


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
    ranks: Sequence[RankComparison],
    loaded: tuple[list[Recorded], list[Recorded]],
    missing: tuple[int, ...],
) -> Comparison:
    # longer than 40 lines: one line for each key of the document, and nothing else
    statements = [collective_statements(rank) for rank in ranks]
    items = [placed(rank, told) for rank, told in zip(ranks, statements, strict=True)]
    first = first_of(items)
    changed = changes(loaded[0][0], loaded[1][0], lines=ranks[0].lines) if ranks else ()
    steps = _steps(ranks)
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
        levels_compared=_levels(ranks),
        counts=_counts(ranks),
        undetermined_by_reason=by_reason(ranks),
        undetermined_by_place=by_place(ranks),
        pairs_by_basis=dict(sorted(Counter(b.value for r in ranks for b in r.sides.pairing.basis.values()).items())),
        findings=findings(items, [orders_alone(told) for told in statements]),
        collectives=folded([told for rank in statements for told in rank]),
        first_by_rank=firsts_of(items),
        ladder=ladder(ranks, changed, step=step),
        ladder_step=step,
        changed=changed,
        origins=origins_of(items),
        first_difference=first,
        outside=tuple(state for rank in ranks for state in outside_states(rank)),
        recorded_on_one_side=one_sided(ranks),
        settled=settled(ranks, first),
        coverage={
            "baseline": side_coverage(a, loaded[0], settings),
            "candidate": side_coverage(b, loaded[1], settings),
        },
        limits=LIMITS,
        settings=settings.as_used(),
        reports={},
        schemes=_schemes(ranks),
    )


def _ladder_step(ranks: Sequence[RankComparison], first: Difference | None, *, steps: Sequence[int]) -> int:
    """The step of the first differing call; of a figure or state the step that made it; without any, the first."""
    if first is not None and first.level != Level.DIGEST and first.group is not Group.OUTSIDE:
        return first.step
    differing = first_differing_step(ranks)
    return min(steps, default=0) if differing is None else differing


def _reference(run: Run) -> RunRef:
    return RunRef(run_id=run.run_id, digest=run.digest, path=str(run.path))


def _steps(ranks: Sequence[RankComparison]) -> tuple[int, ...]:
    """The steps of which both sides stated something or have paired calls."""
    seen = {step for rank in ranks for step in rank.digests.steps_inside()}
    for rank in ranks:
        ours = rank.sides.baseline
        contexts = {ours.calls[i].context for i, j in enumerate(rank.sides.pairing.partner_a) if j >= 0}
        seen |= {ours.recorded.contexts[context].step for context in contexts}
    return tuple(sorted(seen))


def _levels(ranks: Sequence[RankComparison]) -> tuple[str, ...]:
    """The levels that both sides recorded anything of."""
    found: set[str] = set()
    for rank in ranks:
        sides = (rank.sides.baseline.recorded, rank.sides.candidate.recorded)
        ours, theirs = ({function.level.value for function in side.functions.values()} for side in sides)
        found |= ours & theirs
        if rank.digests.equal or rank.digests.different:
            found.add("digest")
    return tuple(sorted(found))


def _counts(ranks: Sequence[RankComparison]) -> Counts:
    statuses: Counter[Status] = Counter()
    for rank in ranks:
        paired = sum(j >= 0 for j in rank.sides.pairing.partner_a)
        judged = Counter(rank.verdicts.status(i) for i in rank.verdicts.verdicts)
        statuses.update(judged)
        statuses[Status.OK] += paired - judged.total()
    return Counts(
        calls_baseline=sum(len(rank.sides.baseline.calls) for rank in ranks),
        calls_candidate=sum(len(rank.sides.candidate.calls) for rank in ranks),
        paired=statuses.total(),
        ok=statuses[Status.OK],
        different=statuses[Status.DIFFERENT],
        incomparable=statuses[Status.INCOMPARABLE],
        undetermined_baseline=sum(len(rank.reasons[0]) for rank in ranks),
        undetermined_candidate=sum(len(rank.reasons[1]) for rank in ranks),
        reordered=sum(len(rank.sides.pairing.reordered) for rank in ranks),
    )


def _schemes(ranks: Sequence[RankComparison]) -> dict[str, str]:
    """The schemes that both sides share, by role."""
    headers = [side.recorded.header for rank in ranks for side in (rank.sides.baseline, rank.sides.candidate)]
    if not headers or any(header is None for header in headers):
        return {}
    schemes = [header.schemes for header in headers if header is not None]
    return {role: name for role, name in schemes[0].items() if all(other.get(role) == name for other in schemes)}
