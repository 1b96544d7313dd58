"""From runs to an envelope: the slots of a baseline measured against those of its draws, call by call (CP-10, CP-10a).

A draw is the same program, so its calls are the baseline's, in the same order: they are matched by what they are and
which of their kind, never by what they compute. A draw that called otherwise has no figure at these places.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import isinf

from paritrace.compare.load import Recorded
from paritrace.compare.state_groups import OPTIMIZER_STATE
from paritrace.compare.strengths import Strengths, of_numbers, of_samples, strengths
from paritrace.compare.tabulated import Place
from paritrace.evidence.calls import Call, Detail, Slot

Summarised = tuple[Detail, str]
"""The full summary of a slot and its dtype."""


class Draws:
    """Collects the figures of draws, one after the other; holds of their origin what it needs and nothing of a draw.

    `around`: the run whose envelope it is to be, where that is another run of the same program than `origin`.
    """

    def __init__(self, origin: Recorded, *, around: Recorded | None = None) -> None:
        self._baseline = origin
        self._calls = dict(_keyed(origin))
        at = self._calls if around is None or around is origin else dict(_keyed(around))
        self._ids = {call.id: at[key].id for key, call in self._calls.items() if key in at}
        self._found: dict[Place, list[Strengths | None]] = defaultdict(list)
        self.num_draws = 0
        self._not_finite: set[int] = set()

    @property
    def not_finite(self) -> frozenset[int]:
        """The draws, by number, that somewhere have values that are not finite, where the baseline has none."""
        return frozenset(self._not_finite)

    def add(self, draw: Recorded) -> None:
        """Measure one draw against the baseline."""
        met = {place: found for key, call in _keyed(draw) for place, found in self._measured(key, call, draw)}
        met.update(numbers_against(self._baseline, draw))
        met.update(states_against(self._baseline, draw))
        for place in self._found.keys() | met.keys():
            known = self._found[place]
            known += [None] * (self.num_draws - len(known))
            known.append(met.get(place))
        self.num_draws += 1

    @property
    def found(self) -> Mapping[Place, Sequence[Strengths | None]]:
        """The figures of every slot, one per draw; None where a draw could not state them."""
        return self._found

    def _measured(self, key: Hashable, call: Call, draw: Recorded) -> Iterator[tuple[Place, Strengths | None]]:
        own = self._calls.get(key)
        if own is None or own.id not in self._ids:
            return
        for side, ours, theirs in (("i", own.inputs, call.inputs), ("o", own.outputs, call.outputs)):
            others = {draw.names[slot.name]: place for place, slot in enumerate(theirs)}
            for place, slot in enumerate(ours):
                other = others.get(self._baseline.names[slot.name])
                found = summarised(self._baseline, own, side, place)
                if found is not None and other is not None:
                    yield (self._ids[own.id], side, place), self._strengths(found, summarised(draw, call, side, other))

    def _strengths(self, ours: Summarised, theirs: Summarised | None) -> Strengths | None:
        found = None if theirs is None else strengths(ours, theirs)
        if found is None or not isinf(found.error):
            return found
        self._not_finite.add(self.num_draws)
        return None  # a place where draws are not finite measures nothing


SQUARED = 2  # an optimizer keeps squares of gradients: what scales these by a unit in the last place moves them by two
State = tuple[int, int, str, str]
"""Step, micro-batch, group, name."""
Reading = Callable[[str], str]


def state_place(step: int, microbatch: int, group: str, name: str) -> Place:
    """A tensor of the state inventory as a place of an envelope."""
    return (step, f"{group}:{name}", microbatch)


def states_against(
    baseline: Recorded, other: Recorded, *, read: tuple[Reading, Reading] = (str, str)
) -> Iterator[tuple[Place, Strengths | None]]:
    """The parameters, buffers, gradients and optimizer states of which both kept samples, by the baseline's own names.

    `read`: how each side's names are read; without it as they stand.
    """
    ours, theirs = _states(baseline, read[0]), _states(other, read[1])
    for state in ours.keys() & theirs.keys():
        units = SQUARED if state[2] == OPTIMIZER_STATE else 1
        name, mine = ours[state]
        yield state_place(*state[:3], name), of_samples(mine, theirs[state][1], units=units)


def _states(of: Recorded, read: Reading) -> dict[State, tuple[str, tuple[str, str]]]:
    """The own name of each tensor and its samples with their dtype; of one that was taken twice in a step none."""
    found: dict[State, tuple[str, tuple[str, str]]] = {}
    twice: set[State] = set()
    assert of.state_samples is not None  # who compares with draws loads them
    for record in of.state_samples:
        names = of.state_names.get(record.names)
        if names is None:
            continue  # lost with damaged lines
        for name, kind, samples in zip(names.names, names.kinds, record.samples, strict=False):
            state = (record.step, record.microbatch, names.group, read(name))
            if samples and kind in of.kinds:
                twice |= {state} & found.keys()
                found[state] = (name, (samples, of.kinds[kind].dtype))
    return {state: sampled for state, sampled in found.items() if state not in twice}


def numbers_against(baseline: Recorded, other: Recorded) -> Iterator[tuple[Place, Strengths | None]]:
    """The losses and gradient norms that both recorded; a step with several losses in one micro-batch has none here."""
    ours, theirs = _numbers(baseline), _numbers(other)
    for place in ours.keys() & theirs.keys():
        yield place, of_numbers(ours[place], theirs[place])


def _numbers(of: Recorded) -> dict[Place, float]:
    found: dict[Place, float] = {}
    several: set[Place] = set()
    marks = [((loss.step, "loss", loss.microbatch), loss.value) for loss in of.losses]
    marks += [((step.step, "grad_norm", 0), step.grad_norm) for step in of.steps]
    for place, value in marks:
        if isinstance(value, str):
            several |= {place} & found.keys()
            found[place] = float.fromhex(value)
    return {place: value for place, value in found.items() if place not in several}


def summarised(of: Recorded, call: Call, side: str, place: int) -> Summarised | None:
    """The full summary of a slot with its dtype; None where only a fingerprint was recorded."""
    detail = of.details.get((call.id, side, place))
    slots: tuple[Slot, ...] = call.inputs if side == "i" else call.outputs
    return None if detail is None else (detail, of.kinds[slots[place].kind].dtype)


def _keyed(of: Recorded) -> Iterator[tuple[Hashable, Call]]:
    """The calls that have summaries, each with what it is and which of its kind it is in the step."""
    wanted = {call for call, _, _ in of.details}
    counts: Counter[Hashable] = Counter()
    paths = _paths(of)
    for call in of.calls:
        if call.id not in wanted:
            continue
        context = of.contexts[call.context]
        kind = (
            context.step,
            context.microbatch,
            context.phase,
            of.functions[call.function].name,
            of.functions[call.function].level,
            paths.get(call.scope, ()),
            tuple(of.names[slot.name] for slot in call.outputs),
        )
        yield (kind, counts[kind]), call
        counts[kind] += 1


def _paths(of: Recorded) -> dict[int, Hashable]:
    """The path of every scope from the root: names and which call of it each is."""
    found: dict[int, Hashable] = {0: ()}
    for scope in of.scopes.values():  # parents stand before their children
        found[scope.id] = (found.get(scope.parent, ()), scope.module, scope.nth)
    return found
