"""The ladder: the order in which an engineer checks by hand, one mark per rung (CP-29)."""

from collections.abc import Callable, Sequence

from paritrace.compare.digests import Key
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import LADDER, Change, Mark
from paritrace.evidence.calls import Phase

CONFIG_KINDS = frozenset({"config", "argv", "determinism"})


def first_differing_step(ranks: Sequence[RankComparison]) -> int | None:
    """The first step at which a call, a loss, a norm or a state differs."""
    steps = [_made_in(rank, key) for rank in ranks for key in rank.digests.different]
    steps += [rank.sides.baseline.context_of(i)[0] for rank in ranks for i in rank.origins.blames]
    return min(steps, default=None)


def _made_in(rank: RankComparison, key: Key) -> int:
    """Weights that differ at the begin of a step were made in the step before, where that was compared."""
    before = key[0] - 1
    made_before = key[2] == "begin" and key[3] in ("parameter", "buffer", "optimizer_state")
    return before if made_before and before in rank.digests.steps_inside() else key[0]


def ladder(ranks: Sequence[RankComparison], changed: Sequence[Change], *, step: int) -> dict[str, Mark]:
    """Give every rung its mark at one step; ranks are joined by the worst."""
    rules: dict[str, Callable[[RankComparison], Mark]] = {
        "code": lambda rank: _changed(changed, {"code"}, known=_has_code(rank)),
        "config": lambda rank: _changed(changed, CONFIG_KINDS, known=_has_config(rank)),
        "data": lambda rank: _state(rank, step, "batch"),
        "weights": lambda rank: _state(rank, step, "parameter", "buffer"),
        "rng": lambda rank: _state(rank, step, "rng"),
        "forward": lambda rank: _phase(rank, step, Phase.FORWARD, leads_to=_state(rank, step, "loss")),
        "loss": lambda rank: _state(rank, step, "loss"),
        "backward": lambda rank: _backward(rank, step),
        "reduced grads": lambda rank: _reached(rank, step, _state(rank, step, "gradient")),
        "grad norm": lambda rank: _reached(rank, step, _state(rank, step, "grad_norm")),
        "optimizer": lambda rank: _optimizer(rank, step),
        "weights+1": lambda rank: _stepped(rank, step, _state(rank, step + 1, "parameter", "buffer")),
    }
    return {rung: joined([rules[rung](rank) for rank in ranks]) for rung in LADDER}


def joined(marks: Sequence[Mark]) -> Mark:
    """One mark for all ranks: a difference outranks a doubt, a doubt outranks agreement."""
    for mark in (Mark.BEYOND, Mark.UNDETERMINED, Mark.INSIDE, Mark.AGREES):
        if mark in marks:
            return mark
    return Mark.NOT_REACHED if marks else Mark.UNDETERMINED


def _changed(changed: Sequence[Change], kinds: set[str] | frozenset[str], *, known: bool) -> Mark:
    if any(change.kind in kinds for change in changed):
        return Mark.BEYOND
    return Mark.AGREES if known else Mark.UNDETERMINED


def _has_code(rank: RankComparison) -> bool:
    return bool(rank.sides.baseline.recorded.code and rank.sides.candidate.recorded.code)


def _has_config(rank: RankComparison) -> bool:
    return bool(rank.sides.baseline.recorded.config and rank.sides.candidate.recorded.config)


def _state(rank: RankComparison, step: int, *groups: str) -> Mark:
    if rank.digests.differs(step, *groups):
        return Mark.BEYOND
    return Mark.AGREES if rank.digests.agrees(step, *groups) else Mark.UNDETERMINED


def _phase(rank: RankComparison, step: int, phase: Phase, *, leads_to: Mark) -> Mark:
    """A phase's calls agree when none differs and none is unpaired, or when what they lead to agrees."""
    ours, theirs = rank.sides.baseline, rank.sides.candidate
    if any(ours.context_of(i)[::2] == (step, phase.value) for i in rank.origins.blames):
        return Mark.BEYOND
    if any(_stands_in(rank, place, (step, phase.value)) for place in rank.origins.regions):
        return Mark.BEYOND
    paired = any(
        j >= 0 and ours.context_of(i)[::2] == (step, phase.value) for i, j in enumerate(rank.sides.pairing.partner_a)
    )
    apart = any(ours.context_of(i)[::2] == (step, phase.value) for i in rank.reasons[0]) or any(
        theirs.context_of(j)[::2] == (step, phase.value) for j in rank.reasons[1]
    )
    if paired and (not apart or leads_to is Mark.AGREES):
        return Mark.AGREES
    return Mark.UNDETERMINED


def _stands_in(rank: RankComparison, place: int, moment: tuple[int, str]) -> bool:
    """Whether a stretch that originates belongs to this step and phase."""
    stretch = rank.stretches.found[place]
    side, index = (rank.sides.baseline, stretch.a[0]) if stretch.a else (rank.sides.candidate, stretch.b[0])
    return side.context_of(index)[::2] == moment


def _backward(rank: RankComparison, step: int) -> Mark:
    gradients = _state(rank, step, "gradient")
    return _reached(rank, step, _phase(rank, step, Phase.BACKWARD, leads_to=gradients))


def _optimizer(rank: RankComparison, step: int) -> Mark:
    calls = _phase(rank, step, Phase.OPTIMIZER, leads_to=_state(rank, step + 1, "parameter"))
    state = _state(rank, step + 1, "optimizer_state")
    if Mark.BEYOND in (calls, state):
        return Mark.BEYOND
    if calls is not Mark.AGREES and rank.digests.differs(step + 1, "parameter"):
        return Mark.UNDETERMINED  # its own state agrees, and what it wrote does not
    return _stepped(rank, step, Mark.AGREES if Mark.AGREES in (calls, state) else Mark.UNDETERMINED)


def _reached(rank: RankComparison, step: int, mark: Mark) -> Mark:
    """`.` where both sides say that no backward ran in this step."""
    return Mark.NOT_REACHED if mark is not Mark.BEYOND and _none(rank, step, backwards=True) else mark


def _stepped(rank: RankComparison, step: int, mark: Mark) -> Mark:
    """`.` where both sides say that no optimizer stepped."""
    return Mark.NOT_REACHED if mark is not Mark.BEYOND and _none(rank, step, backwards=False) else mark


def _none(rank: RankComparison, step: int, *, backwards: bool) -> bool:
    sides = (rank.sides.baseline.recorded, rank.sides.candidate.recorded)
    marks = [mark for side in sides for mark in side.steps if mark.step == step]
    return len(marks) == len(sides) and not any(m.backwards if backwards else m.optimizer_steps for m in marks)
