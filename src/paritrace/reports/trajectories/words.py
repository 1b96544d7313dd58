"""How steps, partings and recoveries of trajectories are spelled for people."""

from collections import Counter
from collections.abc import Sequence

from paritrace.attempts.divergence import Divergence, Parting, PartingKind, Recovery, Standing
from paritrace.attempts.traces import Argument, Step, StepKind, Trace
from paritrace.reports.harmless import cut, harmless, width_of

MOST_NAMED = 4  # tools that are named of a stretch
CONTEXT = 24  # characters before the first that differs

SIGNS: dict[Standing, str] = {
    Standing.SAME: "=",
    Standing.OTHER_RESULT: "r",
    Standing.ARGUMENTS: "~",
    Standing.REORDERED: "^",
    Standing.ORDER: "x",
    Standing.ONLY: " ",
}
"""One sign for each standing; a step of one side alone is `<` or `>`."""


def plural(count: int, word: str) -> str:
    """Returns `1 step`, `2 steps`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def tool(step: Step) -> str:
    """Returns the tool of a step; of a shell, what it runs."""
    if step.kind is StepKind.MESSAGE:
        return "answer"
    return f"{step.name} {step.program}" if step.program else step.name


def tools(steps: Sequence[Step]) -> str:
    """Returns which tools some steps call, the most frequent first."""
    counts = Counter(tool(step) for step in steps)
    named = [f"{name} x{count}" if count > 1 else name for name, count in counts.most_common(MOST_NAMED)]
    rest = len(counts) - len(named)
    return harmless(", ".join([*named, *([f"{rest} more"] if rest else [])]))


def call(step: Step, *, width: int, beside: Step | None = None) -> str:
    """Returns a step as a call, in at most `width` columns.

    `beside`: the step that it is held against; the arguments that differ come first, each from where it differs.
    """
    others = {} if beside is None else {one.name: one for one in beside.arguments}
    ordered = sorted(step.arguments, key=lambda one: _agrees(one, others) if beside is not None else False)
    given = ", ".join(_argument(one, others.get(one.name)) for one in ordered)
    named = harmless(step.name if step.kind is StepKind.CALL else "answer")
    text = f"{named}({given})" if given or step.kind is StepKind.CALL else named
    return text if width_of(text) <= width else cut(text, width=width)


def _agrees(argument: Argument, others: dict[str, Argument]) -> bool:
    other = others.get(argument.name)
    return other is not None and other.sha256 == argument.sha256


def _argument(argument: Argument, other: Argument | None) -> str:
    text = argument.text
    if other is not None and other.sha256 != argument.sha256:
        text = _from_difference(text, other.text)
    quoted = f'"{harmless(text)}"'
    return f"{harmless(argument.name)}={quoted}" if argument.name else quoted


def _from_difference(text: str, other: str) -> str:
    """Returns a text from a little before where it leaves another one."""
    same = next((k for k, (ours, theirs) in enumerate(zip(text, other, strict=False)) if ours != theirs), None)
    at = min(len(text), len(other)) if same is None else same
    return text if at <= CONTEXT * 2 else f"…{text[at - CONTEXT :]}"


def kind(a: Trace, parting: Parting) -> str:
    """Returns how two trajectories part, in a word or two, to be counted."""
    match parting.kind:
        case PartingKind.ARGUMENTS:
            answer = parting.a is not None and a.steps[parting.a].kind is StepKind.MESSAGE
            return "in an answer" if answer else "by other arguments"
        case PartingKind.PATH:
            return "by another path"
        case PartingKind.ORDER:
            return "by another order"
        case PartingKind.ENDED:
            return "by an end"


def brief(a: Trace, found: Divergence) -> str:
    """Returns how two trajectories part, for a column."""
    parting = found.parting
    if parting is None:
        return "the same path"
    match parting.kind:
        case PartingKind.ARGUMENTS:
            answer = parting.a is not None and a.steps[parting.a].kind is StepKind.MESSAGE
            return "another answer" if answer else "other arguments"
        case PartingKind.PATH:
            return _path(found, parting)
        case PartingKind.ORDER:
            return "another order"
        case PartingKind.ENDED:
            return "B ends" if parting.b is None else "A ends"


AFTER: dict[Recovery, str] = {
    Recovery.NOT_PARTED: "",
    Recovery.TO_THE_END: "to the end",
    Recovery.FOR_A_WHILE: "for a while",
    Recovery.NEVER: "no",
}


def headline(a: Trace, b: Trace, found: Divergence) -> str:
    """Returns in one sentence where two trajectories part."""
    parting = found.parting
    if parting is None:
        extra = [
            f"{plural(len(found.reordered), 'independent call')} in another order" if found.reordered else "",
            f"{plural(len(found.other_results), 'call')} answered otherwise" if found.other_results else "",
        ]
        said = "; ".join(part for part in extra if part)
        return f"the same path: all {plural(len(a.steps), 'step')} agree" + (f" ({said})" if said else "")
    where = f"after {plural(found.before, 'common step')}" if found.before else "at the first step"
    return f"they part {where}: {how(a, b, found, parting)}"


def how(a: Trace, b: Trace, found: Divergence, parting: Parting) -> str:
    """Returns how two trajectories part, in a few words."""
    match parting.kind:
        case PartingKind.ENDED:
            ended, left = ("B", len(a.steps)) if parting.b is None else ("A", len(b.steps))
            on = "A" if ended == "B" else "B"
            at = parting.a if parting.a is not None else parting.b
            return f"{ended} ends, {on} goes on for {plural(left - (at or 0), 'step')}"
        case PartingKind.ARGUMENTS:
            if parting.a is not None and a.steps[parting.a].kind is StepKind.MESSAGE:
                return "the answers differ"
            names = ", ".join(harmless(name) or "its one argument" for name in parting.arguments)
            return f"the same call with other arguments ({names})"
        case PartingKind.ORDER:
            return "the same calls in another order"
        case PartingKind.PATH:
            return _path(found, parting)


def _path(found: Divergence, parting: Parting) -> str:
    """An extra step where the other side's step is answered later on; otherwise another path."""
    alone_a = parting.a is not None and found.standing_a[parting.a] is Standing.ONLY
    alone_b = parting.b is not None and found.standing_b[parting.b] is Standing.ONLY
    if alone_a != alone_b:
        side, standings, at = ("A", found.standing_a, parting.a) if alone_a else ("B", found.standing_b, parting.b)
        return f"{side} takes {plural(_run(standings, at or 0), 'step')} more"
    return "another path"


def _run(standings: Sequence[Standing], start: int) -> int:
    end = start
    while end < len(standings) and standings[end] is Standing.ONLY:
        end += 1
    return end - start


def recovery(found: Divergence, lengths: tuple[int, int]) -> str:
    """Returns whether two trajectories come together again, in a few words; "" where nothing follows the parting."""
    parting = found.parting
    if parting is None or all(at is None or at + 1 == n for at, n in zip((parting.a, parting.b), lengths, strict=True)):
        return ""
    match found.recovery:
        case Recovery.NOT_PARTED:
            return ""
        case Recovery.NEVER if parting.kind is PartingKind.ENDED:
            return ""
        case Recovery.NEVER:
            return "never together again"
        case Recovery.FOR_A_WHILE:
            return f"{_first_rejoin(found)}; apart at the end"
        case Recovery.TO_THE_END:
            last = found.rejoins[-1]
            steps = plural(last.a[1] - last.a[0], "step")
            if len(found.rejoins) == 1:
                return f"together again from A {last.a[0] + 1} and B {last.b[0] + 1} to the end ({steps})"
            return f"{_first_rejoin(found)}; together to the end from A {last.a[0] + 1} and B {last.b[0] + 1} ({steps})"


def _first_rejoin(found: Divergence) -> str:
    first = found.rejoins[0]
    steps = plural(first.a[1] - first.a[0], "step")
    again = f", and {plural(len(found.rejoins) - 1, 'time')} more" if len(found.rejoins) > 1 else ""
    return f"together again at A {first.a[0] + 1} and B {first.b[0] + 1} for {steps}{again}"
