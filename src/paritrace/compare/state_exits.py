"""State that leaves the envelope while what it is made from is inside: buffers behind the forward pass, gradients, and
what an optimizer makes of gradients (CP-8b, CP-10a)."""

from collections.abc import Iterator

from msgspec.structs import replace

from paritrace.compare.draws import state_place
from paritrace.compare.envelope import Excess
from paritrace.compare.exits import Judged
from paritrace.compare.figure_rows import DigestDifference
from paritrace.compare.outside import figure_difference, moment_of_figure
from paritrace.compare.placing import Placed
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Group
from paritrace.compare.state_groups import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER
from paritrace.evidence.calls import Phase

MADE = frozenset({PARAMETER, OPTIMIZER_STATE})
INSIDE = {
    BUFFER: "what the modules gave is inside",
    GRADIENT: "what the modules gave is inside",
    "state": "the gradients it is made from are inside",
}
PHASES = {BUFFER: Phase.FORWARD, GRADIENT: Phase.BACKWARD, "state": Phase.OPTIMIZER}
Out = tuple[DigestDifference, Excess]


def state_exits(of: RankComparison, judged: Judged) -> list[Placed]:
    """The first place of a rank at which buffers, gradients or an optimizer's work leave while all before is inside.

    Behind anything that is out before it there is none: it would be a consequence.
    """
    out = list(_out(of, judged))
    for step in sorted({step for step, _ in judged.inside}):
        if any(moment[0] < step for moment in judged.beyond) or _forward_or_loss_is_out(judged, step):
            return []
        buffers = [each for each in out if each[0].step == step + 1 and each[0].group == BUFFER]
        if buffers:
            return [_placed(of, buffers, BUFFER, step)]
        gradients = [each for each in out if each[0].step == step and each[0].group == GRADIENT]
        made = [each for each in out if each[0].step == step + 1 and each[0].group in MADE]
        if gradients:
            return [] if (step, Phase.BACKWARD) in judged.beyond else [_placed(of, gradients, GRADIENT, step)]
        if made and (step, Phase.BACKWARD) not in judged.beyond:
            return [_placed(of, made, "state", step)] if _gradients_are_inside(of, judged, step) else []
    return []


def _out(of: RankComparison, judged: Judged) -> Iterator[Out]:
    for figure in of.digests.different.values():
        excess = judged.states.get(state_place(figure.step, figure.microbatch, figure.group, figure.name))
        if excess is not None and excess.beyond:
            yield figure, excess


def _forward_or_loss_is_out(judged: Judged, step: int) -> bool:
    loss = any(place[:2] == (step, "loss") and excess.beyond for place, excess in judged.numbers.items())
    return loss or (step, Phase.FORWARD) in judged.beyond


def _gradients_are_inside(of: RankComparison, judged: Judged, step: int) -> bool:
    """Whether the gradients of a step were compared, and each that differs is judged and inside."""
    differing = [figure for figure in of.digests.different.of_step(step) if figure.group == GRADIENT]
    found = [judged.states.get(state_place(step, each.microbatch, GRADIENT, each.name)) for each in differing]
    seen = differing or of.digests.by_step().agrees(step, GRADIENT)
    return bool(seen) and all(excess is not None and not excess.beyond for excess in found)


def _placed(of: RankComparison, out: list[Out], what: str, step: int) -> Placed:
    figure, excess = max(out, key=lambda each: each[1].ratio / each[1].reached if each[1].reached else 0.0)
    before, more = INSIDE[what], len(out) - 1
    cause = f"{before} ({more:,} more {what}{'s' if more > 1 else ''} out)" if more else before
    difference = figure_difference(of, figure)
    place = replace(difference, group=Group.EXCEEDS, cause=cause, step=step, phase=PHASES[what].value)
    return Placed(moment_of_figure(figure), place, more, excess=excess)
