"""What may have made the runs part: changes around them, states outside the calls, one-sided calls, more findings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paritrace.compare.judged_words import ROUND_OFF
from paritrace.compare.repeats import is_beyond
from paritrace.compare.result import (
    Change,
    Comparison,
    DifferenceClass,
    EnvelopeUsed,
    Finding,
    Mark,
    OneSided,
    Outside,
    SlotDifference,
)
from paritrace.evidence.spans import ranges
from paritrace.reports.harmless import from_difference, harmless, shorten, shorten_path, width_of
from paritrace.reports.layout import CONTENT, MARGIN, WIDTH, Section
from paritrace.reports.leading import is_finding
from paritrace.reports.wording import (
    CLASSES,
    count,
    figure,
    listed,
    module_or_root,
    short_function,
    source_place,
)

KIND_COLUMNS = 11
NAME_COLUMNS = 40
NOTHING = "(none)"
MANY = frozenset({"package", "environment"})
MANY_SHOWN = 3


def changed(comparison: Comparison, /) -> Section:
    """Returns what differs around the runs; compared before any tensor (CA-30)."""
    lines = (*_changes(comparison.changed), *said_of_changes(comparison))
    return Section(anchor="changed", lines=lines, most=6, spaced=True)


def said_of_changes(comparison: Comparison, /) -> Iterator[str]:
    """Yields what is said beside the changes: of which nothing is known, or that none is recorded."""
    unknown = [rung for rung in ("code", "config") if comparison.ladder.get(rung) in (None, Mark.UNDETERMINED)]
    if unknown:
        yield f"{' and '.join(unknown)}: undetermined, not recorded on both sides"
    elif not comparison.changed:
        yield "nothing recorded around the runs differs (code, config, packages, devices, switches)"


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    """The changes in their order; many packages or environment names on one line, which explain lists."""
    by_kind = Counter(change.kind for change in changes)
    crowded = {kind for kind, number in by_kind.items() if kind in MANY and number > MANY_SHOWN}
    for change in changes:
        if change.kind not in crowded:
            yield from _change(change)
    for kind in sorted(crowded):
        names = [shorten(change.name, width=NAME_COLUMNS) for change in changes if change.kind == kind]
        text = f"{kind.ljust(KIND_COLUMNS)}  {len(names):,} differ: {listed(names, most=MANY_SHOWN)}"
        yield shorten(text, width=CONTENT)


def _change(change: Change) -> list[str]:
    """One line "before -> after"; two lines, as a diff has them, where one is too short for both."""
    head = (
        f"{shorten(change.kind, width=KIND_COLUMNS).ljust(KIND_COLUMNS)}  {shorten(change.name, width=NAME_COLUMNS)}  "
    )
    room = CONTENT - width_of(head)
    sides = f"{harmless(change.baseline or NOTHING)} -> {harmless(change.candidate or NOTHING)}"
    if width_of(sides) <= room:
        return [head + sides]
    before, after = from_difference(change.baseline or NOTHING, change.candidate or NOTHING, width=room - 2)
    return [f"{head}- {shorten(before, width=room - 2)}", f"{' ' * width_of(head)}+ {shorten(after, width=room - 2)}"]


def outside(comparison: Comparison, /) -> Section:
    """Returns the parameters, buffers, generators and batches that differed before a call read them (CA-29)."""
    return Section(anchor="outside", lines=tuple(_outside(state) for state in comparison.outside), most=4)


def _outside(state: Outside) -> str:
    text = f"{state.group} {shorten(state.name, width=44)} differed at step {state.step} ({state.moment})"
    return f"{text}, rank {state.rank}"


def one_sided(comparison: Comparison, /) -> Section:
    """Returns calls that one side alone recorded between two pairs (CP-21); not called inserted or deleted."""
    groups: dict[tuple[str, str, str, int], list[OneSided]] = {}
    for call in comparison.recorded_on_one_side:
        groups.setdefault((call.side, call.function, call.file, call.line), []).append(call)
    most = 2 if comparison.findings else 4  # beside a finding they are a hint; without one they are what there is
    return Section(anchor="one_sided", lines=tuple(_one_sided(calls) for calls in groups.values()), most=most)


def _one_sided(calls: Sequence[OneSided]) -> str:
    """One line for the calls of one line of source, wherever that line ran."""
    first = calls[0]
    what = shorten(short_function(first.function), width=24)
    total = sum(call.count for call in calls)
    head = (
        f"{first.side} alone: {count(total, 'call')} {what} at {shorten_path(f'{first.file}:{first.line}', width=26)}, "
    )
    head += f"step {ranges({call.step for call in calls})}, "
    modules = list(dict.fromkeys(module_or_root(call.module) for call in calls))
    return head + shorten(listed(modules, most=1), width=max(8, CONTENT - len(head)))


def other_findings(comparison: Comparison, /) -> Section:
    """Returns the one table: the findings after the first, one line each."""
    findings = comparison.findings[1:] if is_finding(comparison) else comparison.findings
    if not findings:
        return Section(anchor="findings", lines=())
    return Section(
        anchor="findings", lines=tuple(_table(findings, comparison.envelope)), keep=2, most=7, spaced=True, bare=True
    )


def _table(findings: tuple[Finding, ...], used: EnvelopeUsed | None) -> list[str]:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, width=WIDTH)
    for heading, width in (("", MARGIN - 2), ("step", 5), ("phase", 9), ("rank", 4), ("also parts at", 32)):
        table.add_column(heading, no_wrap=True, width=width)
    table.add_column("how", no_wrap=True, width=16)
    table.add_column("size", no_wrap=True, width=8)
    for finding in findings:
        table.add_row(*(Text(cell) for cell in _row(finding, used)))
    console = Console(file=StringIO(), width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    with console.capture() as drawn:
        console.print(table)
    return [line.rstrip() for line in drawn.get().splitlines()]


def _row(finding: Finding, used: EnvelopeUsed | None) -> list[str]:
    place = finding.place
    where = f"{short_function(place.function)} {f'in {place.module}' if place.module else f'at {source_place(place)}'}"
    return [
        shorten(f"[{finding.id}]", width=MARGIN - 2),
        str(place.step),
        shorten(place.phase, width=9),
        shorten(ranges(finding.ranks or (place.rank,)), width=4),
        shorten(where, width=32),
        shorten(_how(finding, used), width=16),
        _largest(place.slots),
    ]


def _how(finding: Finding, used: EnvelopeUsed | None) -> str:
    """The class of the difference; of mere values, what judged them says: `inside round-off`."""
    place = finding.place
    if place.collective:
        return "collectives"
    if used is None or finding.ratio is None or place.difference_class is not DifferenceClass.VALUES:
        return CLASSES[place.difference_class]
    return f"{'beyond' if is_beyond(finding) else 'inside'} {ROUND_OFF[used.kind]}"


def _largest(slots: tuple[SlotDifference, ...]) -> str:
    errors = [slot.relative_error for slot in slots if slot.relative_error is not None]
    return figure(max(errors)) if errors else "unknown"
