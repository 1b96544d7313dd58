"""Makes the parts of a page that say where two runs part: place, slots, both sources (CP-8, CP-29)."""

from collections.abc import Mapping, Sequence

from paritrace.compare.result import Difference, DifferenceClass, SlotDifference
from paritrace.evidence.spans import ranges
from paritrace.reports.behind import pair_of
from paritrace.reports.html.page import CallRef, Place, SlotRow, SourceLine, SourceSide
from paritrace.reports.screen_place import joined_ranges, origin_text
from paritrace.reports.wording import CLASSES, count, module_or_root, short_function, size_in_words, source_place

Texts = Mapping[tuple[str, str], str]
"""(side, file as its site names it) -> the recorded source text."""

AROUND = 4  # lines shown before and after those that are marked
MOST_LINES = 60
MOST_RANGES = 8


def place(of: Difference, /, *, ranks: Sequence[int], texts: Texts) -> Place:
    """Returns a difference in words.

    Args:
        ranks: all ranks of which it is true.
        texts: the sources that are at hand; without one, the single line that the result holds is shown.
    """
    return Place(
        where=source_place(of),
        step=of.step,
        phase=of.phase,
        ranks=ranges(ranks or (of.rank,)),
        module=module_or_root(of.module),
        function=short_function(of.function),
        origin=origin_text(of),
        calls=tuple(CallRef(side.value, rank, number) for side, rank, number in pair_of(of)),
        slots=tuple(_slot(slot) for slot in of.slots),
        sources=_sources(of, texts),
        stretch=_stretch(of),
        next_to_see=of.next_to_see,
    )


def _stretch(of: Difference) -> str:
    if not (of.region and all(of.region_calls)):
        return ""
    ours, theirs = of.region_calls
    return f"a stretch of {count(ours, 'call')} of the baseline against {theirs:,} of the candidate"


def _slot(slot: SlotDifference) -> SlotRow:
    spans = joined_ranges(slot.byte_ranges)
    shown = " ".join(f"[{begin:,}, {end:,})" for begin, end in spans[:MOST_RANGES])
    more = f" and {len(spans) - MOST_RANGES:,} more" if len(spans) > MOST_RANGES else ""
    scalars = slot.difference_class is DifferenceClass.SCALARS
    note = f" ({slot.note})" if slot.note else ""
    return SlotRow(
        slot=slot.slot or "arguments",
        how=CLASSES[slot.difference_class] + note,
        size="" if scalars else size_in_words(slot),
        baseline=slot.baseline,
        candidate=slot.candidate,
        bytes=shown + more,
    )


def _sources(of: Difference, texts: Texts) -> tuple[SourceSide, ...]:
    if not (of.baseline_site or of.candidate_site):
        return ()
    alone = of.region or bool(of.collective)  # a side may have no such call
    return (
        source_side("baseline", of.baseline_site, of.baseline_source, texts=texts, may_lack=alone),
        source_side("candidate", of.candidate_site, of.candidate_source, texts=texts, may_lack=alone),
    )


def source_side(side: str, site: str, source: str, /, *, texts: Texts, may_lack: bool = False) -> SourceSide:
    """Returns what one side's source says at `site` (FILE:LINE or FILE:A-B), with the lines around it."""
    if not site:
        why = "no call here" if may_lack else "no source line recorded"
        return SourceSide(side, "", "", 0, (), why)
    file, first, last = parted(site)
    text = texts.get((side, file))
    if text is not None and first:
        return SourceSide(side, site, file, first, excerpt(text, first, last))
    if source.strip():
        return SourceSide(side, site, file, first, (SourceLine(first, source.strip(), marked=True),))
    return SourceSide(side, site, file, first, (), "source text not recorded")


def parted(site: str, /) -> tuple[str, int, int]:
    """Returns the file, the first and the last line of a site; lines are 0 where it has none."""
    file, _, lines = site.rpartition(":")
    first, _, last = lines.partition("-")
    if not file or not first.isdecimal() or (last and not last.isdecimal()):
        return site, 0, 0
    return file, int(first), int(last or first)


def excerpt(text: str, first: int, last: int, /) -> tuple[SourceLine, ...]:
    """Returns the lines `first` to `last` of a text, marked, with a few around them, without the indent of all."""
    lines = text.expandtabs(4).splitlines()
    begin, end = max(1, first - AROUND), min(len(lines), last + AROUND, first + MOST_LINES)
    shown = lines[begin - 1 : end]
    indent = min((len(line) - len(line.lstrip()) for line in shown if line.strip()), default=0)
    return tuple(
        SourceLine(number, line[indent:], marked=first <= number <= last) for number, line in enumerate(shown, begin)
    )
