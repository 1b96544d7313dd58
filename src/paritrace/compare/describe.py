"""Putting a pair of calls or a region into the words of the result: place, sites, slots, size (CP-8, CP-23)."""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec.structs import replace

from paritrace.compare.agreement import judged_slots
from paritrace.compare.blames import Blame, Root
from paritrace.compare.collective_fields import field_differences
from paritrace.compare.fields import difference_of
from paritrace.compare.flows import FromCall, source_of
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Agreement, Difference, DifferenceClass, Group, SlotDifference
from paritrace.compare.sites import place_of, shown_file
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Site

MAX_SLOTS = 8
MAX_READERS = 3
LOOKED_AT = 200  # calls behind one in which its readers are looked for
MAX_AROUND = 2
AROUND = "shown by the module around it"


def pair_difference(of: RankComparison, i: int, blame: Blame) -> Difference:
    """Describe a paired call that differs."""
    side, j = of.sides.baseline, of.sides.pairing.partner_a[i]
    call = side.calls[i]
    step, microbatch, phase = side.context_of(i)
    slots = _shown(slot_differences(of, i), blame)
    site = _site(side, i)
    scalars = SlotDifference("arguments" if slots else "", DifferenceClass.SCALARS, *_scalars(of, i, j))
    first = slots[0] if slots else scalars
    if slots and scalars.baseline != scalars.candidate:
        slots = [first, scalars, *slots[1:]]  # tensors differ because the call was asked for something else
    return Difference(
        rank=of.rank,
        step=step,
        microbatch=microbatch,
        phase=phase,
        level=side.level_of(i).value,
        function=side.recorded.functions[call.function].name,
        file=site.file,
        line=site.line,
        module=side.module_of(i),
        slot=first.slot,
        difference_class=first.difference_class,
        group=blame.group,
        baseline_record_id=call.id,
        candidate_record_id=of.sides.candidate.calls[j].id,
        undetermined_before=_undetermined_before(of, i, j),
        baseline_site=place_of(site),
        candidate_site=place_of(_site(of.sides.candidate, j)),
        baseline_source=of.lines.text(site, side=0),
        candidate_source=of.lines.text(_site(of.sides.candidate, j), side=1),
        slots=(*(slots or (first,)), *(_around(of, i, blame.root or ("call", i)) if not _has_size(slots) else ())),
        cause=blame.cause,
        next_to_see=_next_to_see(of, i),
    )


def slot_differences(of: RankComparison, i: int, *, directions: str = "io") -> list[tuple[str, int, SlotDifference]]:
    """Every slot of a pair that differs: direction, place in the baseline's list, description."""
    j = of.sides.pairing.partner_a[i]
    side = of.sides.baseline
    found: list[tuple[str, int, SlotDifference]] = []
    for direction in directions:
        for slot in judged_slots(of.sides, i, j, direction=direction):
            if slot.judged.agreement is Agreement.DIFFERENT and slot.pair is not None:
                name = side.recorded.names[slot.pair.baseline.name]
                found.append((direction, slot.place_a, difference_of(name, slot.pair)))
    return found


def _shown(slots: list[tuple[str, int, SlotDifference]], blame: Blame) -> list[SlotDifference]:
    """The slot that decided first; of a call that originates its outputs."""
    decided = [s for direction, place, s in slots if direction == "i" and place == blame.slot]
    outputs = [s for direction, _, s in slots if direction == "o"]
    rest = [s for direction, place, s in slots if direction == "i" and place != blame.slot]
    return [*decided, *outputs, *rest][:MAX_SLOTS]


def region_difference(of: RankComparison, place: int, shown_by: int) -> Difference:
    """Describe a stretch that originates: `shown_by` is the pair whose difference shows it (CP-8a)."""
    stretch = of.stretches.found[place]
    ours, theirs = of.sides.baseline, of.sides.candidate
    side, index = (ours, stretch.a[0]) if stretch.a else (theirs, stretch.b[0])
    step, microbatch, phase = side.context_of(index)
    sites = (_spanned(ours, stretch.a), _spanned(theirs, stretch.b))
    texts = (
        of.lines.text(_site(ours, stretch.a[0]), side=0) if stretch.a else "",
        of.lines.text(_site(theirs, stretch.b[0]), side=1) if stretch.b else "",
    )
    slots = [s for _, _, s in slot_differences(of, shown_by)] if shown_by >= 0 else []
    site = _site(side, index)
    first = slots[0] if slots else SlotDifference("", DifferenceClass.BITS_ONLY, "", "")
    around = _around(of, stretch.a[0], ("region", place)) if stretch.a and not _has_size(slots) else ()
    return Difference(
        rank=of.rank,
        step=step,
        microbatch=microbatch,
        phase=phase,
        level=side.level_of(index).value,
        function=side.recorded.functions[side.calls[index].function].name,
        file=site.file,
        line=site.line,
        module=side.module_of(index),
        slot=first.slot,
        difference_class=first.difference_class,
        group=Group.ORIGINATES,
        baseline_record_id=ours.calls[stretch.a[0]].id if stretch.a else -1,
        candidate_record_id=theirs.calls[stretch.b[0]].id if stretch.b else -1,
        undetermined_before=_before_region(of, place),
        region=True,
        region_calls=(len(stretch.a), len(stretch.b)),
        baseline_site=sites[0],
        candidate_site=sites[1],
        baseline_source=texts[0],
        candidate_source=texts[1],
        slots=(*slots[:MAX_SLOTS], *around),
        cause=_region_cause(of, place) + _gradient_reached(of, shown_by),
        next_to_see=_next_to_see(of, shown_by) if shown_by >= 0 else (),
    )


def _has_size(slots: Sequence[SlotDifference]) -> bool:
    return any(slot.relative_error is not None for slot in slots)


def _around(of: RankComparison, i: int, root: Root) -> list[SlotDifference]:
    """What the module call around a call shows of the size, where the call itself has fingerprints alone (CA-28).

    Nothing where that module differs by something else already: that is not the size of what is told here.
    """
    side = of.sides.baseline
    parent: int = side.index_of.get(side.calls[i].parent, -1)
    blame = of.origins.blames.get(parent)
    if parent < 0 or blame is None or blame.root != root:
        return []
    found = [slot for _, _, slot in slot_differences(of, parent, directions="o") if slot.relative_error is not None]
    module = side.module_of(parent) or side.recorded.functions[side.calls[parent].function].name
    return [replace(slot, slot=f"{module} {slot.slot}", note=AROUND) for slot in found[:MAX_AROUND]]


def _spanned(side: Side, items: list[int]) -> str:
    """FILE:LINE or FILE:A-B of a stretch: the lines of the file in which most of its calls stand."""
    if not items:
        return ""
    by_file: dict[str, list[int]] = {}
    for index in items:
        site = _site(side, index)
        by_file.setdefault(shown_file(site), []).append(site.line)
    file, lines = max(by_file.items(), key=lambda entry: (len(entry[1]), entry[0]))
    first, last = min(lines), max(lines)
    return f"{file}:{first}" if first == last else f"{file}:{first}-{last}"


def _region_cause(of: RankComparison, place: int) -> str:
    stretch = of.stretches.found[place]
    if not stretch.a or not stretch.b:
        side, items = (of.sides.baseline, stretch.a) if stretch.a else (of.sides.candidate, stretch.b)
        name = "baseline" if stretch.a else "candidate"
        functions = dict.fromkeys(side.recorded.functions[side.calls[i].function].name for i in items)
        return f"recorded on the {name} only: {', '.join(list(functions)[:3])}; its inputs agree"
    return "inputs of the unaligned stretch agree, its output differs"


def _gradient_reached(of: RankComparison, shown_by: int) -> str:
    """Whose gradient shows a region of the backward pass, where a parameter's accumulation reads it."""
    label = of.sides.baseline.records.labels[shown_by] if shown_by >= 0 else ""
    return f"; the gradient of {label} shows it" if label else ""


def _site(side: Side, i: int) -> Site:
    return side.recorded.sites[side.calls.values("site")[i]]


def _scalars(of: RankComparison, i: int, j: int) -> tuple[str, str]:
    ours, theirs = of.sides.baseline, of.sides.candidate
    left = ours.recorded.scalars.get(ours.calls[i].scalars)
    right = theirs.recorded.scalars.get(theirs.calls[j].scalars)
    first, second = ({} if side is None else dict(side.values) for side in (left, right))
    for field in field_differences((ours.collectives.get(i), theirs.collectives.get(j))):
        first[field.name], second[field.name] = field.baseline, field.candidate
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return tuple(", ".join(f"{_argument(n)}={side.get(n, 'absent')}" for n in names) for side in (first, second))  # type: ignore[return-value]  # two sides make two texts


def _argument(name: str) -> str:
    return f"args[{name}]" if name.isdecimal() else name


def _undetermined_before(of: RankComparison, i: int, j: int) -> int:
    return bisect_left(of.unpaired[0], i) + bisect_left(of.unpaired[1], j)


def _before_region(of: RankComparison, place: int) -> int:
    stretch = of.stretches.found[place]
    before = 0
    for side, items in enumerate((stretch.a, stretch.b)):
        before += bisect_left(of.unpaired[side], items[0] if items else stretch.after[side])
    return before


def _next_to_see(of: RankComparison, i: int) -> tuple[str, ...]:
    """The caller, the writers upstream and the readers downstream of a pair (CP-23)."""
    side = of.sides.baseline
    call = side.calls[i]
    told: list[str] = []
    parent: int | None = side.index_of.get(call.parent)
    if parent is not None:
        told.append(f"caller {_named(side, parent)}")
    for slot in call.inputs[:MAX_READERS]:
        source = source_of(side, slot)
        if isinstance(source, FromCall):
            told.append(f"writer {_named(side, source.call)}")
    readers = side.calls.readers(i, until=i + LOOKED_AT)[:MAX_READERS]
    told += [f"reader {_named(side, reader)}" for reader in readers]
    return tuple(dict.fromkeys(told))


def _named(side: Side, index: int) -> str:
    return f"{_function(side, index)}{_at(side, index)}"


def _function(side: Side, index: int) -> str:
    return side.recorded.functions[side.calls.values("function")[index]].name


def _at(side: Side, index: int) -> str:
    place = place_of(_site(side, index))
    return f" at {place}" if place else ""
