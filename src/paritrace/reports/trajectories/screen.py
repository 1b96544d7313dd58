"""The screen of one task: where two trajectories part, what came before and after it, and what was not seen (AT-23)."""

from collections.abc import Iterable

from paritrace.attempts.divergence import Divergence, Standing, Stretch
from paritrace.attempts.origins import Origin
from paritrace.attempts.traces import Trace
from paritrace.reports.harmless import cut, harmless, shorten
from paritrace.reports.layout import CONTENT, HEIGHT, Section, fit, next_step, paragraph
from paritrace.reports.trajectories.document import Held, numbers
from paritrace.reports.trajectories.words import SIGNS, call, headline, plural, recovery, tool, tools

MOST_BEFORE = 3  # calls that were answered otherwise before the parting
RANGE = 9  # columns of a range of steps


def screen(one: Held, *, next_line: str = "", height: int = HEIGHT) -> str:
    """Returns the screen of one task; `next_line` is the command that shows more."""
    a, b, found = one.task.a, one.task.b, one.divergence
    sections = [
        Section("A", (_side(a, one.task.num_a),)),
        Section("B", (_side(b, one.task.num_b),)),
        Section("parting", tuple(_parting(a, b, found)), keep=3, spaced=True),
        Section("before", tuple(_before(a, found)), most=MOST_BEFORE + 2),
        Section("after", tuple(_after(a, b, found)), keep=1, most=3),
        Section("map", tuple(_map(a, b, found)), keep=4, spaced=True),
        Section("not_known", tuple(_not_known(a, b, found)), keep=1, most=4, spaced=True),
    ]
    title = paragraph(f"{harmless(a.task_id)}: {headline(a, b, found)}", most=2)
    following = next_step(next_line)
    body = fit(sections, height=height - len(title) - len(following), closing="more stretches: --json lists them all")
    return "\n".join([*title, *body, *following]) + "\n"


def _side(trace: Trace, num_attempts: int) -> str:
    parts = [plural(len(trace.steps), "step")]
    if trace.outcome:
        parts.append(f"outcome {harmless(trace.outcome)}")
    if num_attempts > 1:
        parts.append(f"the first of {num_attempts:,} attempts")
    if trace.inherited:
        parts.append(f"{plural(trace.inherited, 'step')} before it copied from an earlier trajectory")
    said = ", ".join(parts)
    return f"{said}: {shorten(trace.attempt_id, width=max(20, CONTENT - len(said) - 2))}"


def _parting(a: Trace, b: Trace, found: Divergence) -> Iterable[str]:
    parting = found.parting
    if parting is None:
        return
    ours = None if parting.a is None else a.steps[parting.a]
    theirs = None if parting.b is None else b.steps[parting.b]
    for side, step, other in (("A", ours, theirs), ("B", theirs, ours)):
        if step is None:
            yield f"{side}  has ended"
            continue
        compared = other if other is not None and tool(step) == tool(other) else None
        lead = f"{side}  {step.number:>3}  "
        yield lead + call(step, width=CONTENT - len(lead), beside=compared)
    yield f"where     {_place(ours.origin if ours is not None else None)}"
    yield f"          {_place(theirs.origin if theirs is not None else None)}"


def _place(origin: Origin | None) -> str:
    if origin is None:
        return "-"
    parts = (origin.source, origin.member, origin.pointer)
    return shorten(" ".join(part for part in parts if part), width=CONTENT - 10)


def _before(a: Trace, found: Divergence) -> Iterable[str]:
    if not found.other_results:
        return
    count = plural(len(found.other_results), "common call")
    yield f"{count} got another result on the two sides; the last of them:"
    for i, j in reversed(found.other_results[-MOST_BEFORE:]):
        lead = f"A {i + 1:>3}  B {j + 1:>3}  "
        yield lead + call(a.steps[i], width=CONTENT - len(lead))


def _after(a: Trace, b: Trace, found: Divergence) -> Iterable[str]:
    said = recovery(found, (len(a.steps), len(b.steps)))
    yield from paragraph(said, most=2)


def _map(a: Trace, b: Trace, found: Divergence) -> Iterable[str]:
    """Both trajectories as a list of stretches: what they share, what differs, what one has alone."""
    if not found.stretches:
        return
    yield f"{'A':>{RANGE}}   {'B':>{RANGE}}"
    for stretch in found.stretches:
        yield f"{_range(stretch.a)}   {_range(stretch.b)}   {_sign(stretch)} {_told(stretch, a, b)}"


def _range(places: tuple[int, int]) -> str:
    shown = numbers(places)
    if shown is None:
        return f"{'-':>{RANGE}}"
    first, last = shown
    return f"{first if first == last else f'{first}-{last}':>{RANGE}}"


def _sign(stretch: Stretch) -> str:
    if stretch.standing is Standing.ONLY:
        return "<" if stretch.a[1] > stretch.a[0] else ">"
    return SIGNS[stretch.standing]


def _told(stretch: Stretch, a: Trace, b: Trace) -> str:
    ours, theirs = a.steps[slice(*stretch.a)], b.steps[slice(*stretch.b)]
    match stretch.standing:
        case Standing.SAME:
            said = f"the same: {tools(ours)}"
        case Standing.OTHER_RESULT:
            said = f"the same, another result: {tools(ours)}"
        case Standing.ARGUMENTS:
            said = f"other arguments: {tools(ours)}"
        case Standing.REORDERED:
            said = f"the same in another place, independent: {tools(ours)} (not counted)"
        case Standing.ORDER:
            said = f"the same in another place: {tools(ours)}"
        case Standing.ONLY:
            said = f"A alone: {tools(ours)}" if ours else f"B alone: {tools(theirs)}"
    return cut(said, width=CONTENT - 2 * RANGE - 8)


def _not_known(a: Trace, b: Trace, found: Divergence) -> Iterable[str]:
    if Standing.ONLY in found.standing_a and Standing.ONLY in found.standing_b:
        yield "which steps of A alone answer which of B alone: nothing recorded tells"
    if found.results_unknown:
        yield f"results of {plural(found.results_unknown, 'common call')}: not recorded on one side or both"
    differs, compared = found.wording
    if differs:
        yield f"what was said beside the calls differs in {differs:,} of {compared:,} common turns; it is not compared"
    if found.reordered and any(
        a.steps[i].result_sha256 is None or b.steps[j].result_sha256 is None for i, j in found.reordered
    ):
        yield "some calls in another order were asked for in one turn: independent, whatever they returned"
