"""The screen of `paritrace judge`: same function or not, each side's error, which is nearer to float64 (CP-26)."""

import math
from collections.abc import Iterator

from paritrace.compare.judged_result import Functions, Judged, JudgedCall, JudgedTensor, Nearer
from paritrace.compare.ulps import BOUNDS, UlpErrors
from paritrace.reports.harmless import harmless
from paritrace.reports.layout import Section, fit, paragraph

MOST_TENSORS = 12
NAME = 22  # columns of the path of a tensor
NOBODY_IS_RIGHT = "Nearer to float64 is not the same as right: which function was meant, nobody can see from here."


def judge_screen(judged: Judged, /, *, directory: str = "") -> str:
    """Returns the screen as plain text."""
    call = judged.call
    sections = (
        Section("judged", paragraph(f"{judged.finding}: {judged.about}, step {call.step}, rank {call.rank}", most=4)),
        Section("same", tuple(_verdict(call)), keep=3, most=6, spaced=True),
        Section("nearer", tuple(_nearer_lines(call)), keep=2, most=4),
        Section("outputs", tuple(_table(call, gradient=False)), keep=3, most=8, spaced=True),
        Section("gradients", tuple(_table(call, gradient=True)), keep=2, most=MOST_TENSORS, spaced=True),
        Section("histogram", tuple(_histogram(call)), keep=1, most=4, spaced=True),
        Section("remarks", tuple(line for text in _remarks(judged) for line in paragraph(text, most=2)), most=6),
        Section("kept", (directory,) if directory else ()),
    )
    closing = "more in the document: --json"
    return "\n".join(harmless(line) for line in fit(sections, closing=closing)) + "\n"


def verdict(call: JudgedCall, /) -> str:
    """Says whether both sides compute one function, and where their gradients do not."""
    backward = _backward(call)
    if call.functions is Functions.EQUAL and backward:
        return f"On the same inputs both sides give the same bits. {backward}"
    return f"{_forward(call)} {backward}".strip()


def _backward(call: JudgedCall) -> str:
    """Of gradients that are another function although the outputs are not."""
    apart = [tensor for tensor in call.tensors if tensor.gradient and tensor.functions is Functions.DIFFERENT]
    if call.functions is Functions.DIFFERENT or not apart:
        return ""
    worst = max(apart, key=lambda tensor: tensor.apart_float64 or 0.0)
    number = "1 gradient is" if len(apart) == 1 else f"{len(apart)} gradients are"
    return f"But {number} another function: that of {worst.path} is {figure(worst.apart_float64)} apart in float64."


def _forward(call: JudgedCall) -> str:
    if call.refused:
        return f"not judged: {call.refused}"
    worst = worst_output(call)
    match call.functions:
        case Functions.EQUAL:
            return "On the same inputs both sides give the same bits: the finding is not made in this call."
        case Functions.SAME:
            return (
                f"On these inputs the two sides compute the same function: {figure(worst.apart)} apart as recorded, "
                f"{figure(worst.apart_float64)} in float64, where round-off vanishes."
            )
        case Functions.DIFFERENT:
            if worst.why:
                return f"The two sides compute different functions: of {worst.path}, {worst.why}."
            return (
                "The two sides compute different functions: in float64, where round-off vanishes, they are still "
                f"{figure(worst.apart_float64)} apart (as recorded {figure(worst.apart)})."
            )
        case Functions.UNDETERMINED:
            return f"Whether the two sides compute the same function is undetermined: {worst.why}."


def worst_output(call: JudgedCall, /) -> JudgedTensor:
    """The output that the verdict is about: the first of the verdict's kind, the one furthest apart."""
    found = [tensor for tensor in call.tensors if not tensor.gradient and tensor.functions is call.functions]
    found = found or list(call.tensors)
    return max(found, key=lambda tensor: (tensor.apart_float64 or 0.0, tensor.apart or 0.0))


def nearer(call: JudgedCall, /) -> str:
    """Says which side is nearer to the float64 reference, of one function only."""
    if call.refused or call.functions is Functions.EQUAL:
        return ""
    match call.nearer:
        case Nearer.BASELINE | Nearer.CANDIDATE:
            return f"The {call.nearer.value} is nearer to the float64 reference. {NOBODY_IS_RIGHT}"
        case Nearer.NEITHER:
            largest = [error.largest or 0.0 for error in _errors(call)]
            return (
                f"Neither is nearer to the float64 reference: both are within {figure(max(largest, default=0.0))} ULP."
            )
        case Nearer.NO_REFERENCE:
            if call.functions is Functions.DIFFERENT:
                return "Which is nearer is not said: two functions have no reference in common."
            return "There is no reference, so no direction of error is claimed."


def figure(value: float | None, /) -> str:
    """A figure with two significant digits; `not known` where there is none."""
    if value is None:
        return "not known"
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "not by a number"
    return f"{value:.2g}"


def _verdict(call: JudgedCall) -> Iterator[str]:
    yield from paragraph(verdict(call), most=5)


def _nearer_lines(call: JudgedCall) -> Iterator[str]:
    text = nearer(call)
    if text:
        yield from paragraph(text, most=3)


def _errors(call: JudgedCall) -> list[UlpErrors]:
    found = [error for tensor in call.tensors if not tensor.gradient for error in (tensor.baseline, tensor.candidate)]
    return [error for error in found if error is not None]


def _table(call: JudgedCall, *, gradient: bool) -> Iterator[str]:
    rows = [tensor for tensor in call.tensors if tensor.gradient == gradient]
    if not rows:
        return
    yield f"{'max / median in ULP':{NAME}}{'apart':>8} {'float64':>8}  {'baseline':>15} {'candidate':>15}  nearer"
    for tensor in rows:
        name = tensor.path if len(tensor.path) < NAME else f"…{tensor.path[2 - NAME :]}"
        errors = f"{_ulps(tensor.baseline):>15} {_ulps(tensor.candidate):>15}"
        yield f"{name:{NAME}}{_short(tensor.apart):>8} {_short(tensor.apart_float64):>8}  {errors}  {_word(tensor)}"


def _short(value: float | None) -> str:
    return "?" if value is None else "inf" if math.isinf(value) else f"{value:.2g}"


def _ulps(errors: UlpErrors | None) -> str:
    if errors is None or errors.largest is None or errors.median is None:
        return "?"
    return f"{errors.largest:.3g} / {errors.median:.2g}"


def _word(tensor: JudgedTensor) -> str:
    match tensor.functions:
        case Functions.DIFFERENT:
            return "other function"
        case Functions.UNDETERMINED:
            return "?"
        case Functions.EQUAL:
            return "equal bits"
        case Functions.SAME:
            return tensor.nearer.value


def _histogram(call: JudgedCall) -> Iterator[str]:
    """Of the output that the verdict is about."""
    if call.refused or not call.tensors:
        return
    tensor = worst_output(call)
    if tensor.baseline is None or tensor.candidate is None:
        return
    heads = "".join(f"{f'<={bound:g}':>9}" for bound in BOUNDS) + f"{'more':>9}"
    yield f"{f'ULP of {tensor.path}':{NAME}.{NAME}}{heads}"
    for side, errors in (("baseline", tensor.baseline), ("candidate", tensor.candidate)):
        yield f"{side:{NAME}}" + "".join(f"{count:>9,}" for count in errors.histogram)


def _remarks(judged: Judged) -> Iterator[str]:
    call = judged.call
    if call.reproduces is False:
        yield "the baseline's replay does not give the recorded output bit for bit: something else goes into this call"
    if call.functions is Functions.DIFFERENT:
        yield "errors are against each side's own float64 result"
    yield from call.remarks
    others = [other for other in judged.other_ranks if other.functions is not call.functions]
    if judged.other_ranks:
        number = len(judged.other_ranks)
        said = "1 other rank replayed too" if number == 1 else f"{number} other ranks replayed too"
        yield f"{said}, with the same answer" if not others else f"{said}; on {len(others)} the answer is another"
