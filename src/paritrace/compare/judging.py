"""From two replays of one call to what is said of it: same function or not, and which is nearer to float64 (CP-26).

Round-off vanishes in float64, by the ratio of the dtypes' precisions; a wrong epsilon, another scale or another mask
does not. So two sides whose float64 results agree compute one function, and the difference between them is rounding.
"""

import math

from msgspec import Struct

from paritrace.compare.judged_result import Functions, JudgedCall, JudgedTensor, Nearer
from paritrace.compare.ulps import FORMATS, UlpErrors, Values, apart, ulp_errors
from paritrace.evidence.replays import Replayed, ReplayedTensor

SAME_FUNCTION = 1e-9  # float64 results this near are of one function, whatever dtype was recorded
ROUNDING_ROOM = 2.0**14  # how much more than the precisions' ratio round-off may shrink less by, in unlike algorithms
CLEARLY_NEARER = 2.0  # an error this many times smaller is nearer; less is one rounding more or less
FLOAT64_EPSILON = 2.0**-52


class Answer(Struct, frozen=True):
    """A replay with its tensors by key, floating ones in float64."""

    replayed: Replayed
    arrays: dict[str, Values]


def judged_call(baseline: Answer, candidate: Answer, /, *, rank: int, step: int, number: int) -> JudgedCall:
    """Returns what is said of one call, replayed by the programs of both sides on the same inputs."""
    ours, theirs = baseline.replayed, candidate.replayed
    refused = [f"{side}: {of.refused}" for side, of in (("baseline", ours), ("candidate", theirs)) if of.refused]
    tensors = () if refused else tuple(_tensors(baseline, candidate))
    outputs = [tensor for tensor in tensors if not tensor.gradient]
    if not outputs and not refused:
        refused.append(f"no output in common: {_paths(ours)} and {_paths(theirs)}")
    return JudgedCall(
        module_baseline=ours.module,
        module_candidate=theirs.module,
        cls_baseline=ours.cls,
        cls_candidate=theirs.cls,
        rank=rank,
        step=step,
        number=number,
        functions=_worst(outputs),
        nearer=_nearer_of_all(outputs),
        tensors=tensors if outputs else (),
        remarks=() if refused else _remarks(baseline, candidate),
        refused="; ".join(refused),
    )


def _paths(of: Replayed) -> str:
    return ", ".join(tensor.path for tensor in of.tensors if not tensor.gradient) or "no tensor"


def _tensors(baseline: Answer, candidate: Answer) -> list[JudgedTensor]:
    others = {(tensor.path, tensor.gradient): tensor for tensor in candidate.replayed.tensors}
    return [
        _judged(own, others[own.path, own.gradient], baseline, candidate)
        for own in baseline.replayed.tensors
        if (own.path, own.gradient) in others
    ]


def _judged(own: ReplayedTensor, other: ReplayedTensor, baseline: Answer, candidate: Answer) -> JudgedTensor:
    ours, our_wide = _arrays(own, baseline)
    theirs, their_wide = _arrays(other, candidate)
    made = JudgedTensor(
        path=own.path,
        gradient=own.gradient,
        dtype_baseline=own.dtype,
        dtype_candidate=other.dtype,
        shape=own.shape,
        functions=Functions.UNDETERMINED,
        nearer=Nearer.NO_REFERENCE,
        apart=None,
        apart_float64=None,
    )
    unlike = _begun_otherwise(baseline, candidate) if own.gradient else ""
    if unlike:
        return _with(made, why=unlike)
    if ours.shape != theirs.shape:
        return _with(made, functions=Functions.DIFFERENT, why=f"the candidate's shape is {list(other.shape)}")
    equal = own.dtype == other.dtype and _same_values(ours, theirs)
    if own.dtype not in FORMATS or other.dtype not in FORMATS:
        return _with(
            made, functions=Functions.EQUAL if equal else Functions.DIFFERENT, why="it holds no floating numbers"
        )
    made = _with(made, apart=apart(ours, theirs))
    if our_wide is None or their_wide is None:
        return _with(
            made, functions=Functions.EQUAL if equal else Functions.UNDETERMINED, why=_no_reference(baseline, candidate)
        )
    return _against_reference(
        _with(made, apart_float64=apart(our_wide, their_wide, ours, theirs)),
        (ours, our_wide),
        (theirs, their_wide),
        equal=equal,
        narrow=_narrow(baseline, candidate),
    )


def _begun_otherwise(baseline: Answer, candidate: Answer) -> str:
    """Why gradients of the two sides are not held against each other; "" where the same outputs were given theirs."""
    ours, theirs = (answer.replayed.begun for answer in (baseline, candidate))
    if set(ours) == set(theirs):
        return ""
    names = [", ".join(one) or "no output" for one in (ours, theirs)]
    return f"the backward begins at {names[0]} of the baseline and at {names[1]} of the candidate"


def _against_reference(
    made: JudgedTensor, ours: tuple[Values, Values], theirs: tuple[Values, Values], *, equal: bool, narrow: str
) -> JudgedTensor:
    """Judge both sides against float64: against one reference where there is one, else each against its own."""
    same = _is_same(made)
    if not same and narrow:
        return _with(made, functions=Functions.UNDETERMINED, why=f"float64 was narrowed in place by {narrow}")
    reference = ours[1] if same else theirs[1]
    own = ulp_errors(ours[0], ours[1], dtype=made.dtype_baseline)
    other = ulp_errors(theirs[0], reference, dtype=made.dtype_candidate)
    if not same:
        return _with(made, functions=Functions.DIFFERENT, baseline=own, candidate=other)
    functions = Functions.EQUAL if equal else Functions.SAME
    return _with(made, functions=functions, nearer=nearer(own, other), baseline=own, candidate=other)


def nearer(own: UlpErrors, other: UlpErrors, /) -> Nearer:
    """Returns which of two errors against one reference is clearly smaller, by the norm of all errors."""
    if own.non_finite_apart != other.non_finite_apart:
        return Nearer.BASELINE if own.non_finite_apart < other.non_finite_apart else Nearer.CANDIDATE
    if own.relative is None or other.relative is None or max(own.largest or 0, other.largest or 0) <= 1:
        return Nearer.NEITHER
    if own.relative * CLEARLY_NEARER <= other.relative:
        return Nearer.BASELINE
    return Nearer.CANDIDATE if other.relative * CLEARLY_NEARER <= own.relative else Nearer.NEITHER


def _is_same(made: JudgedTensor) -> bool:
    """Whether the float64 results agree as those of one function do, given how far the recorded ones are apart.

    Where both recorded nothing but zeros, what float64 makes of zero is round-off.
    """
    if made.apart_float64 is None or made.apart is None:
        return True
    wider = max(FORMATS[made.dtype_baseline].epsilon, FORMATS[made.dtype_candidate].epsilon)
    shrunk = made.apart * FLOAT64_EPSILON / wider * ROUNDING_ROOM
    return made.apart_float64 <= max(SAME_FUNCTION, 0.0 if math.isinf(shrunk) else shrunk)


def _same_values(one: Values, other: Values) -> bool:
    return one.tobytes() == other.tobytes()


def _arrays(tensor: ReplayedTensor, answer: Answer) -> tuple[Values, Values | None]:
    end = "_gradient" if tensor.gradient else ""
    return answer.arrays[f"recorded{end}/{tensor.path}"], answer.arrays.get(f"float64{end}/{tensor.path}")


def _no_reference(baseline: Answer, candidate: Answer) -> str:
    return baseline.replayed.no_reference or candidate.replayed.no_reference or "float64 gave no such tensor"


def _narrow(baseline: Answer, candidate: Answer) -> str:
    return ", ".join(dict.fromkeys((*baseline.replayed.narrow, *candidate.replayed.narrow)))


_ORDER = (Functions.DIFFERENT, Functions.UNDETERMINED, Functions.SAME, Functions.EQUAL)


def _worst(tensors: list[JudgedTensor]) -> Functions:
    found = [tensor.functions for tensor in tensors]
    return min(found, key=_ORDER.index, default=Functions.UNDETERMINED)


def _nearer_of_all(tensors: list[JudgedTensor]) -> Nearer:
    """One side, where no output says the other; outputs of unlike functions have no common reference."""
    found = {tensor.nearer for tensor in tensors if tensor.functions is not Functions.EQUAL}
    if not found:
        return Nearer.NEITHER if tensors else Nearer.NO_REFERENCE
    if Nearer.NO_REFERENCE in found:
        return Nearer.NO_REFERENCE
    sides = found - {Nearer.NEITHER}
    return sides.pop() if len(sides) == 1 else Nearer.NEITHER


def _remarks(baseline: Answer, candidate: Answer) -> tuple[str, ...]:
    found: list[str] = []
    for side, answer in (("baseline", baseline.replayed), ("candidate", candidate.replayed)):
        if answer.not_forced:
            found.append(f"the {side}'s own: {', '.join(answer.not_forced)}")
        if answer.random:
            times = "once" if answer.random == 1 else f"{answer.random} times"
            found.append(f"the {side} draws random numbers {times}, from the recorded state")
        if answer.drawn:
            found.append(f"no gradient of {', '.join(answer.drawn)} was recorded: a random one stands in ({side})")
        if answer.no_gradients:
            found.append(f"no gradients of the {side}: {answer.no_gradients}")
    return (*found, *_unpaired(baseline, candidate))


def _unpaired(baseline: Answer, candidate: Answer) -> list[str]:
    ours = {(tensor.path, tensor.gradient) for tensor in baseline.replayed.tensors}
    theirs = {(tensor.path, tensor.gradient) for tensor in candidate.replayed.tensors}
    said = {"baseline": sorted(ours - theirs), "candidate": sorted(theirs - ours)}
    return [
        f"only the {side} has {', '.join(('gradient of ' if gradient else '') + path for path, gradient in found)}"
        for side, found in said.items()
        if found
    ]


def _with(made: JudgedTensor, **changes: object) -> JudgedTensor:
    from msgspec.structs import replace

    return replace(made, **changes)
