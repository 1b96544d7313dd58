"""Whether two arms can be compared, field by field: pure (IN-17, IN-27)."""

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from paritrace.inference.comparison.conditions import REQUIRED, Condition, class_of
from paritrace.inference.comparison.vocabulary import Compatibility, FieldClass, Stated

Fields = Mapping[str, Condition]
KNOWN = frozenset({Stated.OBSERVED, Stated.REPORTED})


class FieldVerdict(Struct, frozen=True):
    """One field of the two arms; values are of each arm, one where its runs agree."""

    name: str
    kind: FieldClass
    status: Compatibility
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    detail: str


def compatibility(
    baseline: Sequence[Fields], candidate: Sequence[Fields], *, treatments: Collection[str] = ()
) -> tuple[FieldVerdict, ...]:
    """Returns a verdict for every field that a run has or that a comparison needs.

    Args:
        treatments: fields that are meant to differ: what is compared.
    """
    names = sorted({*REQUIRED, *treatments, *(name for run in (*baseline, *candidate) for name in run)})
    return tuple(_field(name, baseline, candidate, treated=name in treatments) for name in names)


def overall(verdicts: Sequence[FieldVerdict]) -> Compatibility:
    """Returns the worst of all fields."""
    found = {one.status for one in verdicts}
    for status in (Compatibility.INCOMPATIBLE, Compatibility.UNVERIFIED):
        if status in found:
            return status
    return Compatibility.COMPATIBLE


def _field(name: str, baseline: Sequence[Fields], candidate: Sequence[Fields], *, treated: bool) -> FieldVerdict:
    first, second = _values(name, baseline), _values(name, candidate)
    kind = class_of(name)
    stated = [run[name].stated for run in (*baseline, *candidate) if name in run]
    missing = len(baseline) + len(candidate) - len(stated)
    status, detail = _judged(kind, first, second, treated=treated)
    if status is Compatibility.COMPATIBLE and kind in (FieldClass.IDENTITY, FieldClass.LAUNCH):
        if missing:
            status, detail = Compatibility.UNVERIFIED, f"not recorded by {missing} of {len(stated) + missing} runs"
        elif not set(stated) <= KNOWN:
            weakest = max(stated, key=list(Stated).index)
            status, detail = Compatibility.UNVERIFIED, f"{weakest.value}, not observed"
    return FieldVerdict(name, kind, status, first, second, detail)


def _judged(
    kind: FieldClass, first: tuple[str, ...], second: tuple[str, ...], *, treated: bool
) -> tuple[Compatibility, str]:
    """What the values say, before how they are known."""
    inside = len(first) > 1 or len(second) > 1
    differs = bool(first and second) and first != second
    if treated:
        return _treated(first, second, inside=inside)
    match kind:
        case FieldClass.IDENTITY | FieldClass.UNCLASSIFIED:
            if inside:
                return Compatibility.INCOMPATIBLE, "differs between the runs of one arm"
            if differs:
                return Compatibility.INCOMPATIBLE, "differs"
            if kind is FieldClass.UNCLASSIFIED and bool(first) != bool(second):
                return Compatibility.UNVERIFIED, "recorded by one arm only, and nobody said what it is"
            return Compatibility.COMPATIBLE, ""
        case FieldClass.LAUNCH:
            if inside or differs:
                return Compatibility.UNVERIFIED, "differs, and is not named as what is compared: a covariate"
            return Compatibility.COMPATIBLE, ""
        case FieldClass.OBSERVATION | FieldClass.LABEL:
            return Compatibility.COMPATIBLE, ""
        case _:
            assert_never(kind)


def _treated(first: tuple[str, ...], second: tuple[str, ...], *, inside: bool) -> tuple[Compatibility, str]:
    if inside:
        return Compatibility.INCOMPATIBLE, "what is compared differs between the runs of one arm"
    if first and first == second:
        return Compatibility.INCOMPATIBLE, "what is compared is the same in both arms"
    return Compatibility.COMPATIBLE, "what is compared"


def _values(name: str, arm: Sequence[Fields]) -> tuple[str, ...]:
    """The different values of an arm; a bool and a number of the same spelling are two."""
    return tuple(sorted({_spelled(run[name].value) for run in arm if name in run}))


def _spelled(value: str | int | float | bool) -> str:
    return value if isinstance(value, str) else repr(value)
