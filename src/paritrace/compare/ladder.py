"""The ladder: the order in which an engineer checks by hand, one mark per rung (CP-29)."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from paritrace.compare.digests import FiguresByStep
from paritrace.compare.draws import state_place
from paritrace.compare.exits import Judged
from paritrace.compare.outside import differing_contexts
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import LADDER, Change, LadderRow, Mark
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Phase, StepMark

CONFIG_KINDS = frozenset({"config", "argv", "determinism"})
MOST_ROWS = 256  # ranks, or steps, whose ladder is told
MOST_CELLS = 16_384  # ladders of one rank at one step that are made for the rows by step
MOVING_SETTINGS = ("scheduler", "scaler")


Moments = frozenset[tuple[int, str]]
"""Steps with a phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RungFacts:
    """What one rank gives to the ladder: its figures, and in which phases calls differ, pair, or stand apart."""

    figures: FiguresByStep
    differing: Moments
    paired: Moments
    apart: Moments
    has_code: bool
    has_config: bool
    reduced: dict[int, Mark]  # by step: whether the collectives that hold gradients gave the same
    judged: Judged | None  # by draws of the baseline: then `X` is beyond what they explain
    idle: tuple[frozenset[int], frozenset[int]]  # steps of which both sides say: no backward ran; no optimizer stepped


def rung_facts(rank: RankComparison, judged: Judged | None = None) -> RungFacts:
    """Take from one rank's comparison what the rungs of any step need."""
    ours, theirs = rank.sides.baseline, rank.sides.candidate
    regions = (rank.stretches.found[place] for place in rank.origins.regions)
    originating = [(ours, stretch.a[0]) if stretch.a else (theirs, stretch.b[0]) for stretch in regions]
    paired = rank.sides.paired_contexts()
    return RungFacts(
        figures=rank.digests.by_step(),
        differing=frozenset(
            {(ours.recorded.contexts[c].step, ours.recorded.contexts[c].phase.value) for c in differing_contexts(rank)}
            | {_moment(side, i) for side, i in originating}
        ),
        paired=frozenset({(ours.recorded.contexts[c].step, ours.recorded.contexts[c].phase.value) for c in paired}),
        apart=frozenset({_moment(ours, i) for i in rank.reasons[0]} | {_moment(theirs, j) for j in rank.reasons[1]}),
        judged=judged,
        has_code=bool(ours.recorded.code and theirs.recorded.code),
        has_config=bool(ours.recorded.config and theirs.recorded.config),
        reduced=_reductions(rank),
        idle=(_idle(rank, backwards=True), _idle(rank, backwards=False)),
    )


def _reductions(rank: RankComparison) -> dict[int, Mark]:
    """Of each step whether the results of the buckets of gradients agree on both sides (CA-31)."""
    marks: dict[int, list[Mark]] = defaultdict(list)
    ours = rank.sides.baseline
    for i, facts in ours.collectives.items():
        if facts.parameters:
            marks[ours.context_of(i)[0]].append(_reduction(rank, i))
    return {step: joined(found) for step, found in marks.items()}


def _reduction(rank: RankComparison, i: int) -> Mark:
    verdict = rank.verdicts.verdicts.get(i)
    if rank.sides.pairing.partner_a[i] < 0 or (verdict is not None and verdict.unseen_outputs):
        return Mark.UNDETERMINED
    return Mark.BEYOND if verdict is not None and (verdict.outputs or verdict.collective) else Mark.AGREES


def _moment(side: Side, i: int) -> tuple[int, str]:
    step, _, phase = side.context_of(i)
    return step, phase


def _idle(rank: RankComparison, *, backwards: bool) -> frozenset[int]:
    sides = (rank.sides.baseline.recorded, rank.sides.candidate.recorded)
    marks: dict[int, list[StepMark]] = defaultdict(list)
    for mark in (mark for side in sides for mark in side.steps):
        marks[mark.step].append(mark)
    return frozenset(
        step
        for step, both in marks.items()
        if len(both) == len(sides) and not any(m.backwards if backwards else m.optimizer_steps for m in both)
    )


def first_differing_step(rank: RankComparison) -> int | None:
    """The first step of a rank at which a call, a loss, a norm or a state differs."""
    compared = rank.digests.steps_inside()
    steps = {_made_in(key, compared) for key in rank.digests.different.heads}
    steps |= {rank.sides.baseline.recorded.contexts[context].step for context in differing_contexts(rank)}
    return min(steps, default=None)


def _made_in(key: tuple[int, int, str, str], compared: Collection[int]) -> int:
    """Weights that differ at the begin of a step were made in the step before, where that was compared."""
    before = key[0] - 1
    made_before = key[2] == "begin" and key[3] in ("parameter", "buffer", "optimizer_state")
    return before if made_before and before in compared else key[0]


def ladder(ranks: Sequence[RungFacts], changed: Sequence[Change], *, step: int) -> dict[str, Mark]:
    """Give every rung its mark at one step; ranks are joined by the worst."""
    rules: dict[str, Callable[[RungFacts], Mark]] = {
        "code": lambda rank: _changed(changed, {"code"}, known=rank.has_code),
        "config": lambda rank: _config(rank, changed, step),
        "data": lambda rank: _state(rank, step, "batch"),
        "weights": lambda rank: _state(rank, step, "parameter", "buffer"),
        "rng": lambda rank: _state(rank, step, "rng"),
        "forward": lambda rank: _phase(rank, step, Phase.FORWARD, leads_to=_state(rank, step, "loss")),
        "loss": lambda rank: _number(rank, step, "loss"),
        "backward": lambda rank: _backward(rank, step),
        "reduced grads": lambda rank: _reached(rank, step, _sized(rank, _reduced(rank, step), step, "gradient")),
        "grad norm": lambda rank: _reached(rank, step, _number(rank, step, "grad_norm")),
        "optimizer": lambda rank: _optimizer(rank, step),
        "weights+1": lambda rank: _stepped(rank, step, _weights(rank, step + 1)),
    }
    return {rung: joined([rules[rung](rank) for rank in ranks]) for rung in LADDER}


def ladders_by_rank(
    ranks: Sequence[tuple[int, str, RungFacts]], changed: Sequence[Change], *, step: int
) -> tuple[LadderRow, ...]:
    """The ladder of each rank at one step; `ranks`: number, coordinate in its mesh, facts. Of many the first."""
    return tuple(
        LadderRow(step=step, marks=_as_text(ladder([facts], changed, step=step)), rank=rank, coordinate=coordinate)
        for rank, coordinate, facts in ranks[:MOST_ROWS]
    )


def ladders_by_step(
    ranks: Sequence[RungFacts], changed: Sequence[Change], *, steps: Sequence[int], step: int
) -> tuple[LadderRow, ...]:
    """The ladder of all ranks at each step; of many steps some from shortly before `step` on."""
    most = max(1, min(MOST_ROWS, MOST_CELLS // max(1, len(ranks))))
    start = max(0, min(bisect_left(steps, step) - most // 4, len(steps) - most))
    return tuple(
        LadderRow(step=one, marks=_as_text(ladder(ranks, changed, step=one))) for one in steps[start : start + most]
    )


def _as_text(marks: dict[str, Mark]) -> str:
    return "".join(marks[rung].value for rung in LADDER)


def joined(marks: Sequence[Mark]) -> Mark:
    """One mark for all ranks: a difference outranks a doubt, a doubt outranks agreement."""
    for mark in (Mark.BEYOND, Mark.UNDETERMINED, Mark.INSIDE, Mark.AGREES):
        if mark in marks:
            return mark
    return Mark.NOT_REACHED if marks else Mark.UNDETERMINED


def _config(rank: RungFacts, changed: Sequence[Change], step: int) -> Mark:
    """Settings, and what moves them by the step: schedulers and the scale of the loss."""
    moved = _state(rank, step, *MOVING_SETTINGS) is Mark.BEYOND
    return Mark.BEYOND if moved else _changed(changed, CONFIG_KINDS, known=rank.has_config)


def _changed(changed: Sequence[Change], kinds: set[str] | frozenset[str], *, known: bool) -> Mark:
    if any(change.kind in kinds for change in changed):
        return Mark.BEYOND
    return Mark.AGREES if known else Mark.UNDETERMINED


def _state(rank: RungFacts, step: int, *groups: str) -> Mark:
    if rank.figures.differs(step, *groups):
        return Mark.BEYOND
    return Mark.AGREES if rank.figures.agrees(step, *groups) else Mark.UNDETERMINED


def _phase(rank: RungFacts, step: int, phase: Phase, *, leads_to: Mark) -> Mark:
    """A phase's calls agree when none differs and none is unpaired, or when what they lead to agrees."""
    moment = (step, phase.value)
    if moment in rank.differing:
        return _of_calls(rank, moment)
    if moment in rank.paired and (moment not in rank.apart or leads_to is Mark.AGREES):
        return Mark.AGREES
    return Mark.UNDETERMINED


def _of_calls(rank: RungFacts, moment: tuple[int, str]) -> Mark:
    """The mark of a phase whose calls differ in bits: what an envelope says of it, where there is one."""
    if rank.judged is None or moment in rank.judged.beyond:
        return Mark.BEYOND
    behind = rank.judged.until is not None and moment[0] >= rank.judged.until[0]
    return Mark.INSIDE if moment in rank.judged.inside and not behind else Mark.UNDETERMINED


def _number(rank: RungFacts, step: int, group: str) -> Mark:
    """A loss or a norm, which an envelope judges like any output."""
    mark = _state(rank, step, group)
    if mark is not Mark.BEYOND or rank.judged is None:
        return mark
    excesses = [excess for place, excess in rank.judged.numbers.items() if place[:2] == (step, group)]
    if any(excess.beyond for excess in excesses):
        return Mark.BEYOND
    return Mark.INSIDE if excesses else Mark.UNDETERMINED


def _weights(rank: RungFacts, step: int) -> Mark:
    """Parameters at the begin of a step: an envelope judges their samples, or those that modules were seen to read."""
    mark = _sized(rank, _state(rank, step, "parameter", "buffer"), step, "parameter", "buffer")
    if mark is not Mark.UNDETERMINED or rank.judged is None:
        return mark
    inside = rank.judged.weights.get(step)
    return Mark.UNDETERMINED if inside is None else Mark.INSIDE if inside else Mark.BEYOND


def _sized(rank: RungFacts, mark: Mark, step: int, *groups: str) -> Mark:
    """What an envelope says of states that differ in bits: inside only where it judges every one of them."""
    if mark is not Mark.BEYOND or rank.judged is None:
        return mark
    differing = [(h, names) for h, names in rank.figures.different.items() if h[0] == step and h[3] in groups]
    places = [state_place(head[0], head[1], head[3], name) for head, names in differing for name in names]
    found = [rank.judged.states.get(place) for place in places]
    if any(excess is not None and excess.beyond for excess in found):
        return Mark.BEYOND
    return Mark.INSIDE if found and None not in found else Mark.UNDETERMINED


def _backward(rank: RungFacts, step: int) -> Mark:
    gradients = _state(rank, step, "gradient")
    return _reached(rank, step, _phase(rank, step, Phase.BACKWARD, leads_to=gradients))


def _optimizer(rank: RungFacts, step: int) -> Mark:
    calls = _phase(rank, step, Phase.OPTIMIZER, leads_to=_state(rank, step + 1, "parameter"))
    state = _state(rank, step + 1, "optimizer_state")
    if Mark.BEYOND in (calls, state):
        return _sized(rank, Mark.BEYOND, step + 1, "optimizer_state", "parameter")
    if calls is not Mark.AGREES and rank.figures.differs(step + 1, "parameter"):
        return Mark.UNDETERMINED  # its own state agrees, and what it wrote does not
    return _stepped(rank, step, Mark.AGREES if Mark.AGREES in (calls, state) else Mark.UNDETERMINED)


def _reduced(rank: RungFacts, step: int) -> Mark:
    """The gradients as the inventory shows them; where it does not, as the buckets that hold them came back."""
    gradients = _state(rank, step, "gradient")
    buckets = rank.reduced.get(step, Mark.UNDETERMINED)
    return gradients if gradients is not Mark.UNDETERMINED and buckets is not Mark.BEYOND else buckets


def _reached(rank: RungFacts, step: int, mark: Mark) -> Mark:
    """`.` where both sides say that no backward ran in this step."""
    return Mark.NOT_REACHED if mark is not Mark.BEYOND and step in rank.idle[0] else mark


def _stepped(rank: RungFacts, step: int, mark: Mark) -> Mark:
    """`.` where both sides say that no optimizer stepped."""
    return Mark.NOT_REACHED if mark is not Mark.BEYOND and step in rank.idle[1] else mark
