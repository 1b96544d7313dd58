"""Where the runs part: the ladder, the first difference, the source of both sides, its size (CP-29, CP-30)."""

from paritrace.compare.result import (
    LADDER,
    Comparison,
    Difference,
    DifferenceClass,
    Group,
    Mark,
    Settled,
    SlotDifference,
)
from paritrace.evidence.spans import ranges
from paritrace.reports.element_words import element_line
from paritrace.reports.harmless import cut, from_difference, shorten, shorten_path, width_of, wrap
from paritrace.reports.layout import CONTENT, Section, paragraph
from paritrace.reports.wording import (
    CLASSES,
    GROUPS,
    count,
    module_or_root,
    short_function,
    size_in_words,
    source_place,
)

AROUND = ("code", "config", "data", "weights", "rng")  # rungs before the step's own work
SITE_COLUMNS = 34
MODULE_COLUMNS = 34
SLOTS_SHOWN = 3
SLOT_COLUMNS = 34
TOLD_AS_SIZE = frozenset({DifferenceClass.SHAPE, DifferenceClass.NON_FINITE_APPEARED})
MEANINGS = {
    Mark.AGREES: "bits agree",
    Mark.INSIDE: "inside the envelope",
    Mark.BEYOND: "differs",
    Mark.UNDETERMINED: "undetermined or not seen",
    Mark.NOT_REACHED: "not reached",
}


def ladder(comparison: Comparison, /) -> Section:
    """Returns one mark per rung in the order in which an engineer checks by hand, with what the marks mean."""
    before = _rungs(comparison, [rung for rung in LADDER if rung in AROUND])
    within = _rungs(comparison, [rung for rung in LADDER if rung not in AROUND])
    used = [mark for mark in Mark if mark in comparison.ladder.values() or mark is Mark.UNDETERMINED]
    meanings = meanings_of(comparison)
    legend = "   ".join(f"{mark.value} {meanings[mark]}" for mark in used)
    lines = (f"{before}   | step {comparison.ladder_step}", within, legend)
    return Section(anchor="ladder", lines=lines, keep=3, spaced=True)


def meanings_of(comparison: Comparison, /) -> dict[Mark, str]:
    """Returns what the marks of this comparison mean, in words."""
    return MEANINGS if comparison.envelope is None else MEANINGS | {Mark.BEYOND: "beyond it, or differs"}


def _rungs(comparison: Comparison, rungs: list[str]) -> str:
    return "  ".join(f"{rung} {comparison.ladder.get(rung, Mark.UNDETERMINED).value}" for rung in rungs)


def first_difference(comparison: Comparison, /) -> Section:
    """Returns the line `first difference: FILE:LINE, step …`, and where other ranks part; with none to name, why."""
    first = comparison.first_difference
    if first is None:
        return Section(anchor="first", lines=_no_first_difference(comparison), spaced=True)
    others = _other_ranks(comparison, first)
    where = f", step {first.step}, rank {ranges(ranks_of(comparison, first))}, "
    if not first.file and first.level == "digest" and first.group is not Group.OUTSIDE:
        head = f"first difference: {first.slot or first.function}{where}{first.phase}; "
        lines = (head + "no call is named", *_origin(first), *others)
        return Section(anchor="first", lines=lines, keep=3, spaced=True)
    if first.group is Group.OUTSIDE and not first.file:
        head = f"first difference: {shorten(first.cause, width=50)}{where}before any call"
        return Section(anchor="first", lines=(head, *others), keep=1, spaced=True)
    module = shorten(module_or_root(first.module), width=MODULE_COLUMNS)
    room = CONTENT - len("first difference: ") - width_of(where) - width_of(module)
    head = f"first difference: {shorten_path(source_place(first), width=room)}{where}"
    return Section(anchor="first", lines=(head + module, *_origin(first), *others), keep=3, spaced=True)


def ranks_of(comparison: Comparison, place: Difference) -> tuple[int, ...]:
    """The ranks on which a place is the first difference, as the finding that tells it says."""
    for finding in comparison.findings:
        if (finding.place.baseline_record_id, finding.place.candidate_record_id, finding.place.step) == (
            place.baseline_record_id,
            place.candidate_record_id,
            place.step,
        ):
            return finding.ranks or (place.rank,)
    return (place.rank,)


def _other_ranks(comparison: Comparison, first: Difference) -> tuple[str, ...]:
    text = other_ranks(comparison, first)
    return (shorten(text, width=CONTENT),) if text else ()


def other_ranks(comparison: Comparison, first: Difference, /) -> str:
    """Where the ranks part that do not part there: each in its own order, and those without any difference."""
    told = {place.rank: place for place in comparison.first_by_rank}
    rest = [rank for rank in comparison.ranks_compared if rank not in ranks_of(comparison, first)]
    if not rest or first.rank not in told:
        return ""
    groups: dict[str, list[int]] = {}
    for rank in rest:
        groups.setdefault(_place_on(told[rank]) if rank in told else "no difference found", []).append(rank)
    return "on " + "; ".join(f"rank {ranges(ranks)}: {what}" for what, ranks in groups.items())


def _place_on(place: Difference) -> str:
    where = source_place(place) if place.file else place.slot or place.cause
    return f"first at {shorten_path(where, width=SITE_COLUMNS)}, step {place.step}, {place.phase}"


def _no_first_difference(comparison: Comparison) -> tuple[str, ...]:
    if comparison.outside:
        one = comparison.outside[0]
        line = f"first difference: {one.group} {one.name}, step {one.step} ({one.moment}), rank {one.rank}; no call"
        return paragraph(line, most=2)
    if comparison.settled is not None:
        return ("first difference: undetermined, between the two calls under [settled]",)
    return ("first difference: none among the paired calls",)


def _origin(first: Difference) -> tuple[str, ...]:
    return paragraph(origin_text(first), most=2)


def origin_text(first: Difference, /) -> str:
    """Returns the call, where its difference comes from, and how much before it is undetermined."""
    called = f", {short_function(first.function)}" if first.level != "digest" else ""
    line = f"{first.phase}{called}; {first.group.value}: {first.cause or GROUPS[first.group]}"
    before = first.undetermined_before
    return line + (
        f"; {count(before, 'call')} before it undetermined" if before else "; every call before it is paired"
    )


def where(comparison: Comparison, /) -> Section:
    """Returns the source of both sides: FILE:LINE and what the recorded source says there."""
    place = _shown_difference(comparison)
    if place is None or not (place.baseline_site or place.candidate_site):
        return Section(anchor="where", lines=())
    shown = [shorten_path(site, width=SITE_COLUMNS) for site in (place.baseline_site, place.candidate_site)]
    columns = max(map(width_of, shown))
    alone = place.region or bool(place.collective)  # a side may have no such call
    lines = [
        _source_line("baseline ", shown[0], place.baseline_source, columns=columns, region=alone),
        _source_line("candidate", shown[1], place.candidate_source, columns=columns, region=alone),
    ]
    if place.region and all(place.region_calls):
        ours, theirs = place.region_calls
        lines.append(f"a stretch of {count(ours, 'call')} of the baseline against {theirs:,} of the candidate")
    lines += [f"see also   {shorten(_short_names(line), width=CONTENT - 11)}" for line in place.next_to_see[:2]]
    return Section(anchor="where", lines=tuple(lines), keep=2)


def _shown_difference(comparison: Comparison) -> Difference | None:
    return comparison.findings[0].place if comparison.findings else comparison.first_difference


def _short_names(text: str) -> str:
    """Classes without their modules, files without their folders: `caller LlamaDecoderLayer at modeling_llama.py:1`."""
    return " ".join(short_function(word).rpartition("/")[2] for word in text.split(" "))


def _source_line(side: str, site: str, source: str, *, columns: int, region: bool) -> str:
    if not site:
        return f"{side}  {'no call here' if region else 'no source line recorded'}"
    padded = site + " " * (columns - width_of(site))
    return cut(f"{side}  {padded}  {source.strip() or '(source text not recorded)'}", width=CONTENT)


def size(comparison: Comparison, /) -> Section:
    """Returns how the slots of the first difference differ, with estimates where samples exist (CA-28)."""
    place = _shown_difference(comparison)
    if place is None or (place.group is Group.OUTSIDE and not place.file):
        return Section(anchor="size", lines=tuple(_consequences(comparison)))
    slots = place.slots
    shown = sorted(slots, key=lambda slot: _rank_of(slot, first=slots[0]))[:SLOTS_SHOWN]
    whole = next((slot for slot in shown if slot.elements is not None), None)
    lines = [line for slot in shown for line in (*_slot_lines(slot), *(element_line(slot) if slot is whole else ()))]
    if not slots:
        lines.append(f"{place.slot or 'outputs'}: {CLASSES[place.difference_class]}; size not recorded")
    if len(slots) > SLOTS_SHOWN:
        lines.append(f"and {count(len(slots) - SLOTS_SHOWN, 'more slot')}")
    lines += _consequences(comparison)
    return Section(anchor="size", lines=tuple(lines), keep=2 if whole is None else 3)


def _rank_of(slot: SlotDifference, *, first: SlotDifference) -> int:
    """Other arguments explain the most, then comes the slot that decided, then sizes; fingerprints alone are last."""
    if slot.difference_class is DifferenceClass.SCALARS:
        return 0
    if slot is first:
        return 1
    return 2 if slot.relative_error is not None else 3


def _scalar_lines(name: str, slot: SlotDifference) -> list[str]:
    """Both sides on one line; on two where one is too short for both, from where they part if need be."""
    whole = f"{name}: {slot.baseline} -> {slot.candidate}"
    if width_of(whole) <= CONTENT:
        return [cut(whole, width=CONTENT)]
    head = f"{name}: "
    before, after = from_difference(slot.baseline, slot.candidate, width=CONTENT - len(head))
    return [
        cut(f"{head}{before}", width=CONTENT),
        cut(f"{' ' * (len(head) - 3)}-> {after}", width=CONTENT),
    ]


def _slot_lines(slot: SlotDifference) -> list[str]:
    name = shorten(slot.slot or "arguments", width=SLOT_COLUMNS)
    if slot.difference_class is DifferenceClass.SCALARS:
        return _scalar_lines(name, slot)
    if slot.difference_class is DifferenceClass.BITS_ONLY and slot.relative_error is None:
        return [cut(f"{name}: bits differ; only fingerprints were recorded, so no size", width=CONTENT)]
    note = f" ({slot.note})" if slot.note and slot.num_samples_differing != 0 else ""
    lines = [
        cut(f"{name}: {CLASSES[slot.difference_class]}{note}", width=CONTENT),
        cut(f"  {size_in_words(slot)}", width=CONTENT),
    ]
    spans = joined_ranges(slot.byte_ranges)
    if len(spans) > 1 or (spans and spans[0][0] > 0):  # one range from the first byte on says nothing of the place
        lines.append(cut(f"  look at bytes {' '.join(f'[{a:,}, {b:,})' for a, b in spans[:3])}", width=CONTENT))
    elif not spans and (slot.baseline or slot.candidate) and slot.difference_class not in TOLD_AS_SIZE:
        half = (CONTENT - 4) // 2 - 2
        lines.append(f"  {shorten(slot.baseline, width=half)} -> {shorten(slot.candidate, width=half)}")
    return lines


def joined_ranges(ranges: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """Neighbouring byte ranges as one."""
    joined: list[tuple[int, int]] = []
    for begin, end in ranges:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


def _consequences(comparison: Comparison) -> list[str]:
    if not comparison.findings or not comparison.findings[0].consequences:
        return []
    return [consequences_text(comparison.findings[0].consequences)]


def consequences_text(number: int, /) -> str:
    verb = "differs as a consequence" if number == 1 else "differ as consequences"
    return f"{count(number, 'later call')} {verb} (counted, not listed)"


def settled(comparison: Comparison, /) -> Section:
    """Returns what is known around a difference that cannot be named, and what would settle it (CP-30)."""
    known = comparison.settled
    if known is None:
        return Section(anchor="settled", lines=())
    lines = [
        f"last known equal       {_call(known.last_equal)}",
        f"first known different  {_call(known.first_different)}",
        f"between them           {_between(known)}",
        *_shares(known),
        *_would_settle(known),
    ]
    return Section(anchor="settled", lines=tuple(lines), keep=5, spaced=True)


def _call(place: Difference | None) -> str:
    if place is None:
        return "none"
    name = source_place(place) if place.file else place.slot or place.function
    text = f"{name}, step {place.step}, {place.phase}, rank {place.rank}, {module_or_root(place.module)}"
    return shorten(text, width=CONTENT - 23)


def _would_settle(known: Settled) -> list[str]:
    lines: list[str] = []
    for text in known.would_settle[:3]:
        wrapped = wrap(text, width=CONTENT - 23)[:2]
        lines += [f"{'would settle it' if number == 0 else '':23}{line}" for number, line in enumerate(wrapped)]
    return lines


def _between(known: Settled) -> str:
    return f"{count(known.between_baseline, 'call')} of the baseline, {known.between_candidate:,} of the candidate"


def _shares(known: Settled) -> list[str]:
    total = sum(known.why.values())
    if not total:
        return []
    by_size = sorted(known.why.items(), key=lambda item: (-item[1], item[0]))
    text = ", ".join(f"{reason} {number:,} of {total:,}" for reason, number in by_size)
    wrapped = wrap(text, width=CONTENT - 23)[:2]
    return [f"{'why' if number == 0 else '':23}{line}" for number, line in enumerate(wrapped)]
