"""Where the baseline differs from its own repeats, and whether the first finding is free of that (A-08)."""

from collections.abc import Iterator

from paritrace.compare.repeats import is_beyond, shared
from paritrace.compare.result import Comparison, Difference, Repeats, SelfDifference
from paritrace.reports.behind import Behind
from paritrace.reports.harmless import harmless, shorten, shorten_path
from paritrace.reports.layout import CONTENT, Section, paragraph
from paritrace.reports.wording import count, module_or_root, short_function, source_place

MODULE_COLUMNS = 40
NAME_COLUMNS = 40
SITE_COLUMNS = 40
SHARED = {
    "at": "{} stands at that call: bits do not put it down to the change",
    "after": "{} comes after it, and may follow: bits do not put it down to the change",
}


def section(comparison: Comparison, /) -> Section:
    """Returns the place and what it means for the first finding; nothing where all repeats agree or none was given."""
    found = comparison.repeats
    if found is None or not (found.num_differing or found.num_unknown):
        return Section(anchor="repeats", lines=())
    return Section(anchor="repeats", lines=tuple(_lines(comparison, found)), keep=3, most=3, spaced=True)


def sentence(found: Repeats) -> str:
    """Whether a baseline repeats itself and, where not, the first place."""
    compared = found.num_repeats - found.num_unknown
    if not compared:
        return f"Whether the baseline repeats itself is not known: {count(found.num_repeats, 'repeat')} not comparable"
    if not found.num_differing:
        return f"the baseline repeats itself bit for bit in {count(compared, 'repeat')}"
    where = f"first at {in_words(found.places[0].place)}" if found.places else "no call can be named"
    return f"the baseline does not repeat itself: {where}, {found.num_differing} of {count(compared, 'repeat')}"


def in_words(place: Difference) -> str:
    """`encoder.norm aten.add.Tensor train.py:12 (step 0, rank 0, forward)`."""
    when = f"(step {place.step}, rank {place.rank}, {place.phase or 'before any call'})"
    if place.level == "digest":
        what = place.slot if place.slot == place.function else f"{place.function.replace('_', ' ')} {place.slot}"
        return f"{shorten(harmless(place.cause or what), width=NAME_COLUMNS)} {when}"
    module = shorten(harmless(module_or_root(place.module)), width=MODULE_COLUMNS)
    called = shorten(harmless(short_function(place.function)), width=NAME_COLUMNS)
    return f"{module} {called} {shorten_path(source_place(place), width=SITE_COLUMNS)} {when}"


def _lines(comparison: Comparison, found: Repeats) -> Iterator[str]:
    yield from paragraph(sentence(found), most=2)
    first = next(iter(comparison.findings), None)
    how = "" if first is None or is_beyond(first) else shared(found, first.place)
    if first is not None and how:
        yield shorten(SHARED[how].format(first.id), width=CONTENT)


def repeats(comparison: Comparison, _part: str) -> Behind:
    """Every place at which repeats first differ from the baseline, with the baseline's record (P9)."""
    found = comparison.repeats
    if found is None:
        return Behind("The baseline was not held against repeats of its own: --noise RUN does that.")
    facts = [_told(one) for one in found.places]
    if found.num_unknown:
        facts.append(f"{count(found.num_unknown, 'repeat')} could not be held against it: no rank or step in common")
    return Behind(sentence(found), facts=tuple(facts))


def _told(one: SelfDifference) -> str:
    ids = f", baseline:{one.place.baseline_record_id}" if one.place.baseline_record_id >= 0 else ""
    return f"{count(one.num_repeats, 'repeat')} first at {in_words(one.place)}{ids}"
