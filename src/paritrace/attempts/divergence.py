"""Where two trajectories of one task part, through the correspondence engine (AT-23): a rule."""

from enum import StrEnum
from hashlib import sha256
from itertools import accumulate

from msgspec import Struct

from paritrace.attempts.traces import Step, StepKind, Trace
from paritrace.correspondence.engine import correspond
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Records, Scopes


class Standing(StrEnum):
    """What a step is to the other trajectory."""

    SAME = "same"  # same call, same arguments, and no other result
    OTHER_RESULT = "other_result"  # same call, same arguments: the environment answered otherwise
    ARGUMENTS = "arguments"  # same tool, other arguments
    REORDERED = "reordered"  # same call elsewhere, independent of what it changed places with: not counted
    ORDER = "order"  # same call elsewhere, and nothing shows that the order did not matter
    ONLY = "only"  # the other trajectory has no step that is known to answer it


AGREEING = frozenset({Standing.SAME, Standing.OTHER_RESULT, Standing.REORDERED})


class PartingKind(StrEnum):
    """How two trajectories part."""

    ARGUMENTS = "arguments"  # the same tool with other arguments
    PATH = "path"  # another tool, or a step more
    ORDER = "order"
    ENDED = "ended"  # one of them ends where the other goes on


class Parting(Struct, frozen=True):
    """The first step that parts: places in the two trajectories, None where that one has ended.

    `arguments`: the names of the arguments that differ.
    """

    kind: PartingKind
    a: int | None
    b: int | None
    arguments: tuple[str, ...] = ()


class Recovery(StrEnum):
    """Whether the trajectories come together again."""

    TO_THE_END = "to_the_end"  # and stay together
    FOR_A_WHILE = "for_a_while"
    NEVER = "never"
    NOT_PARTED = "not_parted"


class Stretch(Struct, frozen=True):
    """Consecutive steps of one standing: places `[start, end)` in each trajectory; of ONLY, one side is empty."""

    standing: Standing
    a: tuple[int, int]
    b: tuple[int, int]


class Divergence(Struct, frozen=True):
    """How one trajectory differs from another.

    `before`: how many steps they take together before they part. `rejoins`: the stretches of agreeing steps after the
    parting. `other_results`: pairs of steps with the same arguments and another result, before the parting.
    `wording`: how many common turns were worded otherwise, of how many; wording is not compared as a step.
    `results_unknown`: paired steps of which one side has no recorded result.
    """

    standing_a: tuple[Standing, ...]
    standing_b: tuple[Standing, ...]
    partner_a: tuple[int, ...]
    before: int
    parting: Parting | None
    recovery: Recovery
    stretches: tuple[Stretch, ...]
    rejoins: tuple[Stretch, ...]
    other_results: tuple[tuple[int, int], ...]
    reordered: tuple[tuple[int, int], ...]
    wording: tuple[int, int]
    results_unknown: int

    def count(self, side: int, standing: Standing) -> int:
        """How many steps of a side (0: a) have this standing."""
        return (self.standing_a, self.standing_b)[side].count(standing)


def diverge(a: Trace, b: Trace) -> Divergence:
    """Returns where two trajectories part. Swapping them mirrors the result.

    Steps are paired by the engine: a call by its tool, of a shell by its program too. Its arguments and the history
    before it may serve as evidence of identity, its result may not. What is left unpaired stays unpaired.
    """
    pairing = correspond(_records(a), _records(b)).pairing
    partner_a, partner_b = tuple(pairing.partner_a), tuple(pairing.partner_b)
    moved = _moved(pairing)
    standing_a = tuple(_standing(a.steps, b.steps, i, j, i in moved) for i, j in enumerate(partner_a))
    standing_b = tuple(Standing.ONLY if i < 0 else standing_a[i] for i in partner_b)
    stretches = _stretches(standing_a, standing_b, partner_a, partner_b)
    parting = _parting(a, b, (standing_a, standing_b), partner_a)
    before = _before(standing_a, standing_b)
    rejoins = _rejoins(stretches, parting, (len(a.steps), len(b.steps)))
    pairs = [(i, j) for i, j in enumerate(partner_a) if j >= 0]
    parted_a = len(a.steps) if parting is None or parting.a is None else parting.a
    return Divergence(
        standing_a=standing_a,
        standing_b=standing_b,
        partner_a=partner_a,
        before=before,
        parting=parting,
        recovery=_recovery(parting, rejoins, (len(a.steps), len(b.steps))),
        stretches=stretches,
        rejoins=rejoins,
        other_results=tuple((i, j) for i, j in pairs if i < parted_a and standing_a[i] is Standing.OTHER_RESULT),
        reordered=tuple((i, j) for i, j in pairs if standing_a[i] is Standing.REORDERED),
        wording=_wording(a, b, pairs, standing_a),
        results_unknown=sum(
            a.steps[i].result_sha256 is None or b.steps[j].result_sha256 is None
            for i, j in pairs
            if standing_a[i] in AGREEING and a.steps[i].kind is StepKind.CALL
        ),
    )


def _records(trace: Trace) -> Records:
    steps = trace.steps
    count = len(steps)
    histories = _histories(steps)
    arguments = [step.arguments_sha256 for step in steps]
    return Records(
        streams=["trajectory"] * count,
        layers=[0] * count,
        scopes=[0] * count,
        entries=[0] * count,
        keys=[(step.kind, step.name, step.program) for step in steps],
        inputs=arguments,
        links=[-1] * count,
        replays=[0] * count,
        labels=[""] * count,
        tree=Scopes(parents=[-1], names=[""], facts=[""]),
        anchor_inputs=lambda i: arguments[i] if steps[i].arguments else None,
        names=lambda i: (histories[i],),
    )


def _histories(steps: tuple[Step, ...]) -> list[str]:
    """Returns for each step a digest of all calls up to and with it: equal where both did the same so far."""
    found: list[str] = []
    state = ""
    for step in steps:
        state = sha256(f"{state} {step.kind} {step.name} {step.program} {step.arguments_sha256}".encode()).hexdigest()
        found.append(state)
    return found


def _moved(pairing: Pairing) -> set[int]:
    """Returns the places in a whose pair crosses another one: the engine's reordered pairs, and any that still do."""
    moved = set(pairing.reordered)
    rest = [(i, j) for i, j in enumerate(pairing.partner_a) if j >= 0 and i not in moved]
    highest = list(accumulate((j for _, j in rest), max))
    lowest = list(accumulate((j for _, j in reversed(rest)), min))[::-1]
    for k, (i, j) in enumerate(rest):
        if (k > 0 and highest[k - 1] > j) or (k + 1 < len(rest) and lowest[k + 1] < j):
            moved.add(i)
    return moved


def _standing(a: tuple[Step, ...], b: tuple[Step, ...], i: int, j: int, moved: bool) -> Standing:
    if j < 0:
        return Standing.ONLY
    ours, theirs = a[i], b[j]
    if ours.arguments_sha256 != theirs.arguments_sha256:
        return Standing.ARGUMENTS
    known = ours.result_sha256 is not None and theirs.result_sha256 is not None
    other = known and ours.result_sha256 != theirs.result_sha256
    if not moved:
        return Standing.OTHER_RESULT if other else Standing.SAME
    together = _shares_turn(a, i) and _shares_turn(b, j)
    return Standing.REORDERED if together or (known and not other) else Standing.ORDER


def _shares_turn(steps: tuple[Step, ...], i: int) -> bool:
    """Says whether a step was asked for together with a neighbour: neither could depend on the other's result."""
    turn = steps[i].turn
    return any(0 <= k < len(steps) and steps[k].turn == turn for k in (i - 1, i + 1))


def _before(a: tuple[Standing, ...], b: tuple[Standing, ...]) -> int:
    return min(_first(a), _first(b))


def _first(standings: tuple[Standing, ...]) -> int:
    return next((i for i, standing in enumerate(standings) if standing not in AGREEING), len(standings))


def _parting(
    a: Trace, b: Trace, standings: tuple[tuple[Standing, ...], tuple[Standing, ...]], partner_a: tuple[int, ...]
) -> Parting | None:
    first_a, first_b = _first(standings[0]), _first(standings[1])
    if first_a == len(a.steps) and first_b == len(b.steps):
        return None
    at = min(first_a, first_b)
    place_a = at if at < len(a.steps) else None
    place_b = at if at < len(b.steps) else None
    if place_a is None or place_b is None:
        return Parting(PartingKind.ENDED, place_a, place_b)
    if partner_a[at] == at and standings[0][at] is Standing.ARGUMENTS:
        return Parting(PartingKind.ARGUMENTS, at, at, differing(a.steps[at], b.steps[at]))
    ordered = Standing.ORDER in (standings[0][at], standings[1][at]) and Standing.ONLY not in (
        standings[0][at],
        standings[1][at],
    )
    return Parting(PartingKind.ORDER if ordered else PartingKind.PATH, at, at)


def differing(a: Step, b: Step) -> tuple[str, ...]:
    """Returns the names of the arguments that differ or stand on one side alone, in order."""
    ours = {argument.name: argument.sha256 for argument in a.arguments}
    theirs = {argument.name: argument.sha256 for argument in b.arguments}
    return tuple(sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)))


def _stretches(
    standing_a: tuple[Standing, ...],
    standing_b: tuple[Standing, ...],
    partner_a: tuple[int, ...],
    partner_b: tuple[int, ...],
) -> tuple[Stretch, ...]:
    """Returns both trajectories as one list; a pair that crosses others stands where its step in a stands."""
    found: list[Stretch] = []
    i = j = 0
    placed: set[int] = set()
    while i < len(standing_a) or j < len(standing_b):
        if j in placed:
            j += 1
        elif i < len(standing_a) and partner_a[i] < 0:
            _extend(found, Stretch(Standing.ONLY, (i, i + 1), (j, j)))
            i += 1
        elif j < len(standing_b) and partner_b[j] < 0:
            _extend(found, Stretch(Standing.ONLY, (i, i), (j, j + 1)))
            j += 1
        else:
            partner = partner_a[i]
            _extend(found, Stretch(standing_a[i], (i, i + 1), (partner, partner + 1)))
            placed.add(partner)
            i += 1
    return tuple(found)


def _extend(found: list[Stretch], one: Stretch) -> None:
    last = found[-1] if found else None
    if last is not None and _goes_on(last, one):
        found[-1] = Stretch(one.standing, (last.a[0], one.a[1]), (last.b[0], one.b[1]))
    else:
        found.append(one)


def _goes_on(last: Stretch, one: Stretch) -> bool:
    if last.standing is not one.standing or last.a[1] != one.a[0] or last.b[1] != one.b[0]:
        return False
    return one.standing is not Standing.ONLY or _side(last) == _side(one)


def _side(stretch: Stretch) -> int:
    return 0 if stretch.a[1] > stretch.a[0] else 1


def _rejoins(stretches: tuple[Stretch, ...], parting: Parting | None, lengths: tuple[int, int]) -> tuple[Stretch, ...]:
    """Returns the runs of agreeing steps after the parting, other results and all, in order on both sides."""
    if parting is None:
        return ()
    start_a = lengths[0] if parting.a is None else parting.a
    start_b = lengths[1] if parting.b is None else parting.b
    found: list[Stretch] = []
    for stretch in stretches:
        if stretch.standing not in (Standing.SAME, Standing.OTHER_RESULT):
            continue
        if stretch.a[0] < start_a or stretch.b[0] < start_b:
            continue
        last = found[-1] if found else None
        if last is not None and last.a[1] == stretch.a[0] and last.b[1] == stretch.b[0]:
            found[-1] = Stretch(Standing.SAME, (last.a[0], stretch.a[1]), (last.b[0], stretch.b[1]))
        else:
            found.append(Stretch(Standing.SAME, stretch.a, stretch.b))
    return tuple(found)


def _recovery(parting: Parting | None, rejoins: tuple[Stretch, ...], lengths: tuple[int, int]) -> Recovery:
    if parting is None:
        return Recovery.NOT_PARTED
    if not rejoins:
        return Recovery.NEVER
    last = rejoins[-1]
    return Recovery.TO_THE_END if (last.a[1], last.b[1]) == lengths else Recovery.FOR_A_WHILE


def _wording(a: Trace, b: Trace, pairs: list[tuple[int, int]], standings: tuple[Standing, ...]) -> tuple[int, int]:
    said = [
        (a.steps[i].said_sha256, b.steps[j].said_sha256)
        for i, j in pairs
        if standings[i] in AGREEING and (a.steps[i].said_sha256 is not None or b.steps[j].said_sha256 is not None)
    ]
    return sum(ours != theirs for ours, theirs in said), len(said)
