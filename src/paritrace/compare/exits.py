"""Calls whose output leaves the envelope while what came in is inside: what people mean by a fault (CP-8b): pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from paritrace.compare.agreement import Sides
from paritrace.compare.draws import numbers_against, summarised
from paritrace.compare.envelope import Envelope, Excess, Place
from paritrace.compare.strengths import Strengths, strengths
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

    envelope: Envelope
    exits: tuple[Exit, ...]
    outputs: dict[int, Excess]
    numbers: dict[Place, Excess]
    beyond: frozenset[Moment]
    inside: frozenset[Moment]
    weights: dict[int, bool]  # steps at which parameters that modules read are judged -> whether all are inside

    def around(self, sides: Sides, i: int) -> Excess | None:
        """The excess of the innermost judged call that is, or encloses, a call of the baseline."""
        return self.outputs.get(self.enclosing(sides, i))

    def enclosing(self, sides: Sides, i: int) -> int:
        """The innermost judged call that is, or encloses, a call of the baseline; -1 without any."""
        return next((at for at in (i, *parents(sides, i)) if at in self.outputs), -1)

    def gain(self, sides: Sides, i: int) -> Excess | None:
        """The error of a call's output in errors of its input, against the draws' (figure "gain"); None if unknown.

        `error` is the candidate's gain, `expected` the draws' median and `ratio` how many of those it is.
        """
        call = sides.baseline.calls[i]
        inputs = [place for n in range(len(call.inputs)) if (place := (call.id, "i", n)) in self.envelope.draws]
        outputs = [place for n in range(len(call.outputs)) if (place := (call.id, "o", n)) in self.envelope.draws]
        found = _found(sides, i)
        if not inputs or not outputs or not all(place in found for place in (*inputs, *outputs)):
            return None
        own = _gain([found[place].error for place in inputs], [found[place].error for place in outputs])
        draws = [
            _gain(
                [self.envelope.draws[place][draw].error for place in inputs],
                [self.envelope.draws[place][draw].error for place in outputs],
            )
            for draw in range(self.envelope.num_draws)
        ]
        known = [gain for gain in draws if gain is not None]
        if own is None or len(known) < len(draws):
            return None
        expected = median(known)
        reached = self.envelope.limit * self.envelope.units.error
        return Excess("gain", own / expected, reached, own, expected) if expected > 0.0 else None


def _gain(inputs: list[float], outputs: list[float]) -> float | None:
    came_in = max(inputs)
    return max(outputs) / came_in if came_in > 0.0 else None


def _out(excess: Excess) -> float:
    return excess.ratio / excess.reached if excess.reached else 0.0


def judge(sides: Sides, envelope: Envelope) -> Judged:
    """Judge every paired call that was summarised on both sides."""
    found = dict(_outputs(sides, envelope))
    worst = {i: max(by_output.values(), key=_out) for i, by_output in found.items()}
    exits = tuple(_exits(sides, envelope, found))
    numbers = dict(_numbers(sides, envelope))
    return Judged(
        envelope=envelope,
        exits=exits,
        outputs=worst,
        numbers=numbers,
        beyond=frozenset(_moment(sides, i) for i, excess in worst.items() if excess.beyond),
        inside=frozenset(_moment(sides, i) for i in worst),
        weights=_weights(sides, envelope, found),
    )


def _weights(sides: Sides, envelope: Envelope, found: Iterable[int]) -> dict[int, bool]:
    """Whether the parameters and buffers that modules read in forward are inside, step by step, where any differ."""
    side = sides.baseline
    weights: dict[int, bool] = {}
    for i in found:
        step, _, phase = side.context_of(i)
        own = [
            excess
            for place, excess in _slots(sides, envelope, i, side="i")
            if not _is_argument(side.recorded.names[side.calls[i].inputs[place].name])
        ]
        if own and phase == Phase.FORWARD:
            weights[step] = weights.get(step, True) and all(e is not None and not e.beyond for e in own)
    return weights


def _is_argument(slot: str) -> bool:
    return slot.startswith(("args", "kwargs"))  # what a caller passes; any other input is a parameter or buffer


def _numbers(sides: Sides, envelope: Envelope) -> Iterator[tuple[Place, Excess]]:
    for place, found in numbers_against(sides.baseline.recorded, sides.candidate.recorded):
        excess = None if found is None else envelope.excess(place, found)
        if excess is not None:
            yield place, excess


def _outputs(sides: Sides, envelope: Envelope) -> Iterator[tuple[int, dict[int, Excess]]]:
    for i, j in enumerate(sides.pairing.partner_a):
        if j >= 0:
            judged = {place: excess for place, excess in _slots(sides, envelope, i, side="o") if excess is not None}
            if judged:
                yield i, judged


def _found(sides: Sides, i: int) -> dict[Place, Strengths]:
    """How far every summarised slot of a paired call is from the baseline's."""
    call = sides.baseline.calls[i]
    return {
        (call.id, side, place): found
        for side in ("i", "o")
        for place, found in _measured(sides, i, side=side)
        if found is not None
    }


def _slots(sides: Sides, envelope: Envelope, i: int, *, side: str) -> Iterator[tuple[int, Excess | None]]:
    """The summarised slots of one direction with their excess; None where nothing can be said of one that differs."""
    call = sides.baseline.calls[i]
    for place, found in _measured(sides, i, side=side):
        if side == "i" and found is not None and found.error == 0.0 == found.norm:
            continue  # nothing came in that differs on the samples
        yield place, None if found is None else envelope.excess((call.id, side, place), found)


def _measured(sides: Sides, i: int, *, side: str) -> Iterator[tuple[int, Strengths | None]]:
    """The slots of one direction that a side summarised, with how far they are apart; None where that is not known."""
    ours, theirs = sides.baseline, sides.candidate
    call, other = ours.calls[i], theirs.calls[sides.pairing.partner_a[i]]
    mine, others = (call.inputs, other.inputs) if side == "i" else (call.outputs, other.outputs)
    places = {theirs.recorded.names[slot.name]: place for place, slot in enumerate(others)}
    for place, slot in enumerate(mine):
        partner = places.get(ours.recorded.names[slot.name])
        left = summarised(ours.recorded, call, side, place)
        right = None if partner is None else summarised(theirs.recorded, other, side, partner)
        if left is not None or right is not None:
            yield place, None if left is None or right is None else strengths(left, right)


def _exits(sides: Sides, envelope: Envelope, found: dict[int, dict[int, Excess]]) -> Iterator[Exit]:
    """In order of execution; of a backward pass only the first gradient that is out, since its inputs are not seen."""
    calls = sides.baseline.calls
    out = {i: worst for i, judged in found.items() if (worst := _worst(judged)).excess.beyond}
    candidates = {i for i in out if _inside(sides, envelope, i, own=False)}
    enclosing = {parent for i in candidates for parent in parents(sides, i)}
    enclosing |= {parent for i in out if not _inside(sides, envelope, i, own=True) for parent in parents(sides, i)}
    started: set[Moment] = set()
    for i in sorted(out, key=lambda i: calls[i].left):
        step, _, phase = sides.baseline.context_of(i)
        if phase == Phase.BACKWARD:
            before = {(step, each.value) for each in (Phase.FORWARD, Phase.BACKWARD)}
            if not before & started:
                yield out[i]._replace(call=i)
        elif i in candidates and i not in enclosing:
            yield out[i]._replace(call=i)
        started.add((step, phase))


def _worst(judged: dict[int, Excess]) -> Exit:
    output, excess = max(judged.items(), key=lambda item: _out(item[1]))
    return Exit(-1, output, excess)


def _inside(sides: Sides, envelope: Envelope, i: int, *, own: bool) -> bool:
    """Whether everything summarised that came in is inside; what cannot be judged and differs is not.

    `own`: only the module's own parameters and buffers, which came into every module around it as well.
    """
    side = sides.baseline
    slots = side.calls[i].inputs
    return all(
        excess is not None and not excess.beyond
        for place, excess in _slots(sides, envelope, i, side="i")
        if not own or not _is_argument(side.recorded.names[slots[place].name])
    )


def parents(sides: Sides, i: int) -> Iterator[int]:
    """The calls of the baseline that enclose one, the innermost first."""
    side = sides.baseline
    at = side.index_of.get(side.calls[i].parent, -1)
    while at >= 0:
        yield at
        at = side.index_of.get(side.calls[at].parent, -1)


def _moment(sides: Sides, i: int) -> Moment:
    step, _, phase = sides.baseline.context_of(i)
    return step, phase
