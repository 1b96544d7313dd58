"""What is kept of one rank when its calls are let go: ranks are compared one after another (CP-17)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from paritrace.compare.blames import Root
from paritrace.compare.collective_members import Asked, Entered, Key, asked, begun, entered, given_to
from paritrace.compare.collective_words import FoundCollective
from paritrace.compare.collectives import collective_statements
from paritrace.compare.coverage import SessionCoverage, session_coverage
from paritrace.compare.distributed import coordinate_of
from paritrace.compare.folds_apart import Apart
from paritrace.compare.folds_ratios import RankFigures, figures_of
from paritrace.compare.judgement import RankJudgement, exits_of, judged_items, within
from paritrace.compare.ladder import RungFacts, first_differing_step, rung_facts
from paritrace.compare.ledger import ledger_of_rank
from paritrace.compare.load import Recorded
from paritrace.compare.map_uses import MapUse, Uses
from paritrace.compare.outside import Moment, last_call, moment_of_figure, outside_states
from paritrace.compare.placing import Placed, placed
from paritrace.compare.policy import Policy, Tally
from paritrace.compare.policy_ranks import tallies
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Counts, Group, Ledger, OneSided, Outside, Settled, Status, UndeterminedPlace
from paritrace.compare.undetermined import by_place, by_reason, one_sided, settled

NOTHING_MEASURED = Ledger(entries=(), total=0)
NOBODY = frozenset[str]()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSummary:
    """The parts of the result that one rank gives; pairs are of (baseline, candidate)."""

    rank: int
    items: list[Placed]
    statements: list[FoundCollective]
    steps: frozenset[int]
    levels: frozenset[str]
    counts: Counts
    reasons: tuple[Counter[str], Counter[str]]
    places: Counter[UndeterminedPlace]
    bases: Counter[str]
    rungs: RungFacts
    differing_step: int | None
    outside: tuple[Outside, ...]
    one_sided: tuple[OneSided, ...]
    settled: Settled | None  # around this rank's own first difference
    schemes: tuple[dict[str, str] | None, dict[str, str] | None]  # None: a journal without its header
    coverage: tuple[SessionCoverage, SessionCoverage]
    apart: Apart  # how far both ranks are laid out otherwise
    figures: tuple[RankFigures, RankFigures]  # losses and gradient norms
    restarts: tuple[int, int]
    entered: Mapping[Key, Entered]  # what this rank gives to collectives, for what other ranks say of them
    asked: Mapping[Root, tuple[Asked, ...]]  # statements that stand only if other ranks' inputs agree
    last: Moment | None  # where the last difference in bits stands
    follows: list[Placed] = field(default_factory=list[Placed])  # what goes back to another rank
    regrouped: Mapping[Root, Group] = field(default_factory=dict[Root, Group])  # by what other ranks show
    judgement: RankJudgement | None = None  # by draws of the baseline, where there are any
    exits: list[Placed] = field(default_factory=list[Placed])
    given: Mapping[Root, tuple[Asked, ...]] = field(default_factory=dict[Root, tuple[Asked, ...]])  # inside its exits
    begun: Mapping[Key, int] = field(default_factory=dict[Key, int])  # collectives, where other ranks may ask
    within: list[Placed] = field(default_factory=list[Placed])
    maps: Uses = field(default_factory=dict[str, MapUse])  # what declared maps name here
    policy: tuple[Tally, ...] = ()  # what this rank gives to each rule
    coordinate: str = ""  # where the rank stands in its mesh
    ledger: Ledger = NOTHING_MEASURED
    without_rows: tuple[frozenset[str], frozenset[str]] = (
        NOBODY,
        NOBODY,
    )  # sessions of both sides without rows of tokens


def summarise(
    of: RankComparison, judgement: RankJudgement | None = None, *, policy: Policy | None = None
) -> RankSummary:
    """Take from one rank's comparison all that the result needs of it but its rows."""
    statements = collective_statements(of) if of.sides.apart is Apart.NO else []  # those belong to the layout
    items = placed(of, statements)
    judged = None if judgement is None else judgement.judged
    named = items if judgement is None else judged_items(of, items, judgement)
    exits = [] if judgement is None else exits_of(of, judgement, led=any(item.leads for item in named))
    sides = (of.sides.baseline.recorded, of.sides.candidate.recorded)
    return RankSummary(
        rank=of.rank,
        items=named,
        statements=statements,
        steps=frozenset(_steps(of)),
        levels=frozenset(_levels(of)),
        counts=_counts(of),
        reasons=by_reason(of),
        places=by_place(of),
        bases=Counter({basis.value: count for basis, count in of.sides.pairing.basis.counts().items()}),
        rungs=rung_facts(of, judged),
        differing_step=first_differing_step(of),
        outside=tuple(outside_states(of)),
        one_sided=one_sided(of),
        settled=settled(of, items[0].difference if items else None),
        schemes=(_schemes(sides[0]), _schemes(sides[1])),
        coverage=(session_coverage(sides[0]), session_coverage(sides[1])),
        apart=of.sides.apart,
        figures=(figures_of(sides[0]), figures_of(sides[1])),
        restarts=(sides[0].session.incarnation, sides[1].session.incarnation),
        entered=entered(of),
        asked=asked(of, items),
        last=_last(of),
        judgement=None if judgement is None else judgement.kept(),
        exits=exits,
        given={item.root: given_to(of, item.root[1]) for item in exits if item.root is not None},
        begun=begun(of) if exits else {},
        within=[] if judgement is None else within(of, judgement),
        maps=of.maps,
        policy=tallies(of, policy),
        coordinate=coordinate_of(sides[0].distributed.meshes.values()),
        ledger=ledger_of_rank(of, judgement),
        without_rows=(_without_rows(sides[0]), _without_rows(sides[1])),
    )


def _without_rows(side: Recorded) -> frozenset[str]:
    return NOBODY if side.has_token_rows else frozenset({side.session.session_id})


def _last(of: RankComparison) -> Moment | None:
    step = max((head[0] for head in of.digests.different.heads), default=None)
    figures = [moment_of_figure(found) for found in of.digests.different.of_step(step)]
    latest = last_call(of)
    return max(figures if latest is None else [*figures, latest], default=None)


def _schemes(side: Recorded) -> dict[str, str] | None:
    return None if side.header is None else side.header.schemes


def _steps(of: RankComparison) -> set[int]:
    """The steps of which both sides stated something or have paired calls."""
    ours = of.sides.baseline
    contexts = of.sides.paired_contexts()
    return of.digests.steps_inside() | {ours.recorded.contexts[context].step for context in contexts}


def _levels(of: RankComparison) -> set[str]:
    """The levels that both sides recorded anything of."""
    sides = (of.sides.baseline.recorded, of.sides.candidate.recorded)
    ours, theirs = ({function.level.value for function in side.functions.values()} for side in sides)
    found = ours & theirs
    if of.digests.equal or of.digests.different:
        found.add("digest")
    return found


def _counts(of: RankComparison) -> Counts:
    statuses = of.verdicts.statuses()
    paired = int(np.count_nonzero(np.asarray(of.sides.pairing.partner_a) >= 0))
    statuses[Status.OK] += paired - statuses.total()
    return Counts(
        calls_baseline=len(of.sides.baseline.calls),
        calls_candidate=len(of.sides.candidate.calls),
        paired=paired,
        ok=statuses[Status.OK],
        different=statuses[Status.DIFFERENT],
        incomparable=statuses[Status.INCOMPARABLE],
        undetermined_baseline=len(of.reasons[0]),
        undetermined_candidate=len(of.reasons[1]),
        reordered=len(of.sides.pairing.reordered),
    )
