"""Calls whose output leaves the envelope while what came in is inside: what people mean by a fault (CP-8b): pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from paritrace.compare.agreement import Sides
from paritrace.compare.choices import Choice
from paritrace.compare.draws import numbers_against, states_against
from paritrace.compare.envelope import Envelope, Excess, Place
from paritrace.compare.load import Recorded
from paritrace.compare.measured import Measured
from paritrace.compare.settings import Settings
from paritrace.compare.strengths import Strengths
from paritrace.evidence.calls import Phase

Moment = tuple[int, str]
"""Step and phase."""


class Exit(NamedTuple):
    """A paired call, by the baseline's index, and by how much which of its outputs is out."""

    call: int
    output: int
    excess: Excess


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One rank of the candidate, judged by the baseline's envelope.

    `exits` are in order of execution, the innermost of nested calls. `outputs` has the excess of every judged call, by
    the worst of its outputs. `numbers` are losses and gradient norms. `beyond` and `inside` are the moments at which
    something judged is out, and at which something is judged at all.
    """

    false_rate: float
    exits: tuple[Exit, ...]
    outputs: dict[int, Excess]
    numbers: dict[Place, Excess]
    beyond: frozenset[Moment]
    inside: frozenset[Moment]
    states: dict[Place, Excess]  # parameters, buffers, gradients and optimizer states that differ
    until: Moment | None  # from this moment on nothing is judged: another discrete choice was made there
    weights: dict[int, bool]  # steps at which parameters that modules read are judged -> whether all are inside

    def around(self, sides: Sides, i: int) -> Excess | None:
        """The excess of the innermost judged call that is, or encloses, a call of the baseline."""
        return self.outputs.get(self.enclosing(sides, i))

    def enclosing(self, sides: Sides, i: int) -> int:
        """The innermost judged call that is, or encloses, a call of the baseline; -1 without any."""
        return next((at for at in (i, *parents(sides, i)) if at in self.outputs), -1)


def _out(excess: Excess) -> float:
    return excess.ratio / excess.reached if excess.reached else 0.0


def judge(measured: Measured, choice: Choice | None, *, reading: tuple[Settings, Settings]) -> Judged:
    """Judge every paired call that was summarised on both sides; nothing of the calls is kept.

    `reading`: how each side's names of states are read. `choice`: the first discrete choice that differs. What ends
    behind it is not judged: of other experts or tokens round-off explains no size.
    """
    sides, envelope = measured.sides, measured.envelope
    found = {
        i: judged
        for i, judged in _outputs(measured)
        if choice is None or sides.baseline.calls.values("left")[i] < choice.left
    }
    recorded = (sides.baseline.recorded, sides.candidate.recorded)
    worst = {i: max(by_output.values(), key=_out) for i, by_output in found.items()}
    return Judged(
        false_rate=envelope.false_rate,
        exits=tuple(_exits(measured, found)),
        outputs=worst,
        numbers=dict(_figures(envelope, numbers_against(*recorded), choice)),
        states=dict(_states(envelope, recorded, reading, choice)),
        beyond=frozenset(_moment(sides, i) for i, excess in worst.items() if excess.beyond),
        inside=frozenset(_moment(sides, i) for i in worst),
        until=None if choice is None else (choice.step, Phase.FORWARD.value),
        weights=_weights(measured, found),
    )


def _weights(measured: Measured, found: Iterable[int]) -> dict[int, bool]:
    """Whether the parameters and buffers that modules read in forward are inside, step by step, where any differ."""
    weights: dict[int, bool] = {}
    for i in found:
        step, _, phase = measured.sides.baseline.context_of(i)
        own = [
            measured.excess(i, "i", place)
            for place, _ in measured.came_in(i)
            if not is_argument(measured.sides, i, place)
        ]
        if own and phase == Phase.FORWARD:
            weights[step] = weights.get(step, True) and all(e is not None and not e.beyond for e in own)
    return weights


def is_argument(sides: Sides, i: int, place: int) -> bool:
    """Whether an input is what a caller passes; any other is a parameter or buffer of the module."""
    calls = sides.baseline.calls
    name = calls.values("name")[calls.inputs_of(i)[place]]
    return sides.baseline.recorded.names[name].startswith(("args", "kwargs"))


def _figures(
    envelope: Envelope, against: Iterable[tuple[Place, Strengths | None]], choice: Choice | None
) -> Iterator[tuple[Place, Excess]]:
    for place, found in against:
        behind = choice is not None and not _is_before(place, choice)
        excess = None if found is None or behind else envelope.excess(place, found)
        if excess is not None:
            yield place, excess


def _states(
    envelope: Envelope, recorded: tuple[Recorded, Recorded], reading: tuple[Settings, Settings], choice: Choice | None
) -> Iterator[tuple[Place, Excess]]:
    """As `_figures`, of states whose names are read alike; the draws know them by the baseline's own names."""
    ours, theirs = (settings.spelled for settings in reading)
    for (step, name, microbatch), excess in _figures(envelope, states_against(*recorded, read=(ours, theirs)), choice):
        group, _, own = name.partition(":")
        yield (step, f"{group}:{ours(own)}", microbatch), excess


def _is_before(place: Place, choice: Choice) -> bool:
    """Whether a figure of a step was taken before a choice: of its own step only what the step began with."""
    begun = place[1].startswith(("parameter:", "buffer:", "optimizer_state:"))
    return place[0] < choice.step or (begun and place[0] == choice.step)


def _outputs(measured: Measured) -> Iterator[tuple[int, dict[int, Excess]]]:
    for i in measured.summarised():
        places = ((place, measured.excess(i, "o", place)) for place in measured.slots(i, "o"))
        judged = {place: excess for place, excess in places if excess is not None}
        if judged:
            yield i, judged


def _exits(measured: Measured, found: dict[int, dict[int, Excess]]) -> Iterator[Exit]:
    """In order of execution; of a backward pass only the first gradient that is out, since its inputs are not seen.

    Behind an exit what comes in has to be as a draw's typically is: a part of the other's difference may have come in,
    also by weights of a later step, and lie just inside.
    """
    sides = measured.sides
    out = {i: worst for i, judged in found.items() if (worst := _worst(judged)).excess.beyond}
    candidates = {i for i in out if _is_inside(measured, i, own=False)}
    enclosing = {parent for i in candidates for parent in parents(sides, i)}
    enclosing |= {parent for i in out if not _is_inside(measured, i, own=True) for parent in parents(sides, i)}
    started: set[Moment] = set()
    left = False  # whether something has left in a forward pass
    for i in sorted(out, key=sides.baseline.calls.values("left").__getitem__):
        step, _, phase = sides.baseline.context_of(i)
        if phase == Phase.BACKWARD:
            before = {(step, each.value) for each in (Phase.FORWARD, Phase.BACKWARD)}
            if not before & started:
                yield out[i]._replace(call=i)
        elif i in candidates and i not in enclosing and (not left or is_typical(measured, i)):
            left = True
            yield out[i]._replace(call=i)
        started.add((step, phase))


def _worst(judged: dict[int, Excess]) -> Exit:
    output, excess = max(judged.items(), key=lambda item: _out(item[1]))
    return Exit(-1, output, excess)


def _is_inside(measured: Measured, i: int, *, own: bool) -> bool:
    """Whether everything summarised that came in is inside; what cannot be judged and differs is not.

    `own`: only the module's own parameters and buffers, which came into every module around it as well.
    """
    return all(
        (excess := measured.excess(i, "i", place)) is not None and not excess.beyond
        for place, _ in measured.came_in(i)
        if not own or not is_argument(measured.sides, i, place)
    )


def is_typical(measured: Measured, i: int) -> bool:
    """Whether everything that came in is no further out than a draw typically is somewhere."""
    return all(
        found is not None and measured.envelope.is_typical(measured.place_of(i, "i", place), found)
        for place, found in measured.came_in(i)
    )


def parents(sides: Sides, i: int) -> Iterator[int]:
    """The calls of the baseline that enclose one, the innermost first."""
    index_of, outer = sides.baseline.index_of, sides.baseline.calls.values("parent")
    at: int = index_of.get(outer[i], -1)
    while at >= 0:
        yield at
        at = index_of.get(outer[at], -1)


def _moment(sides: Sides, i: int) -> Moment:
    step, _, phase = sides.baseline.context_of(i)
    return step, phase
