"""The screen of `paritrace isolate`: the modules that differ by themselves, in the order of execution (CP-26)."""

from collections import Counter
from collections.abc import Iterator

from paritrace.compare.isolating import holding
from paritrace.compare.judged_result import Functions, Isolated, JudgedCall
from paritrace.reports.harmless import cut, harmless
from paritrace.reports.judge_screen import figure, worst_output
from paritrace.reports.layout import CONTENT, Section, fit, paragraph

NAME = 38  # columns of a module's name
CLASS = 20


def isolate_screen(isolated: Isolated, /, *, directory: str = "") -> str:
    """Returns the screen as plain text."""
    sections = (
        Section("isolated", paragraph(_headline(isolated), most=3)),
        Section("apart", tuple(_apart(isolated)), keep=3, most=14, spaced=True),
        Section("rounding", tuple(_rounding(isolated)), keep=2, most=6, spaced=True),
        Section("equal", paragraph(_equal(isolated), most=2), spaced=True),
        Section("not_known", tuple(_undetermined(isolated)), keep=1, most=4),
        Section("left_out", tuple(_left_out(isolated)), keep=1, most=4),
        Section("weights", paragraph(_weights(isolated), most=2), spaced=True),
        Section("kept", (directory,) if directory else ()),
    )
    return "\n".join(harmless(line) for line in fit(sections, closing="more in the document: --json")) + "\n"


def _headline(isolated: Isolated) -> str:
    modules = {isolated.calls[place].module_baseline for place in isolated.apart}
    if not isolated.calls:
        return "no module call was replayed"
    number = "1 module call" if len(isolated.calls) == 1 else f"{len(isolated.calls):,} module calls, each"
    told = f"{number} on the inputs that the baseline gave its own"
    if not modules:
        return f"{told}: none is seen to compute another function"
    words = "1 module computes" if len(modules) == 1 else f"{len(modules):,} modules compute"
    return f"{told}: {words} another function by itself"


def _apart(isolated: Isolated) -> Iterator[str]:
    if not isolated.apart:
        return
    yield f"{'module':{NAME}} {'class':{CLASS}} {'apart':>8} {'float64':>8}  step"
    for place in isolated.apart:
        yield _row(isolated.calls[place])
    inside = holding(isolated.calls)
    if inside:
        number = "1 container" if len(inside) == 1 else f"{len(inside):,} containers"
        yield f"not told apart from what is inside: {number} of these"


def _row(call: JudgedCall) -> str:
    worst = worst_output(call)
    name = cut(call.module_baseline or "(root)", width=NAME)
    cls = cut(call.cls_candidate.rpartition(".")[2], width=CLASS)
    float64 = "?" if worst.why else figure(worst.apart_float64)
    return cut(f"{name:{NAME}} {cls:{CLASS}} {figure(worst.apart):>8} {float64:>8}  {call.step}", width=CONTENT)


def _rounding(isolated: Isolated) -> Iterator[str]:
    """Same function, other bits: the largest first."""
    found = [call for call in isolated.calls if call.functions is Functions.SAME]
    if not found:
        return
    yield f"{len(found):,} compute the same function and round otherwise; the largest:"
    for call in sorted(found, key=lambda one: -_largest(one))[:4]:
        name = cut(call.module_baseline or "(root)", width=NAME)
        yield f"{name:{NAME}} {_largest(call):>8.3g} ULP, nearer to float64: {call.nearer.value.replace('_', ' ')}"


def _largest(call: JudgedCall) -> float:
    errors = [error for tensor in call.tensors for error in (tensor.baseline, tensor.candidate) if error is not None]
    return max((error.largest or 0.0 for error in errors), default=0.0)


def _equal(isolated: Isolated) -> str:
    number = sum(call.functions is Functions.EQUAL for call in isolated.calls)
    return f"{number:,} give the same bits" if number else ""


def _undetermined(isolated: Isolated) -> Iterator[str]:
    found = Counter(
        worst_output(call).why for call in isolated.calls if call.functions is Functions.UNDETERMINED and call.tensors
    )
    for why, number in found.most_common():
        yield f"{number:,} undetermined: {why}"


def _left_out(isolated: Isolated) -> Iterator[str]:
    for name, why in isolated.left_out.items():
        yield f"{name}: {why}"


def _weights(isolated: Isolated) -> str:
    if isolated.own_weights:
        return "by the candidate's own parameters: weights that differ count as another function (--same-weights)"
    return "by the baseline's parameters on both sides: weights that differ are not seen"
