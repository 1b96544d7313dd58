"""What a finding, the first difference and the ends of an unnamed one rest on (P9)."""

from paritrace.compare.result import Comparison, Difference, Finding
from paritrace.reports.behind import Behind, pair_of
from paritrace.reports.element_words import element_facts
from paritrace.reports.wording import CLASSES, GROUPS, count, module_or_root, size_in_words, source_place


def finding(finding: Finding) -> Behind:
    facts = [f"strength: {finding.strength}", *place_facts(finding.place)]
    if finding.consequences:
        facts.append(f"{count(finding.consequences, 'later call')} differ as consequences of it")
    return Behind(finding.sentence, facts=tuple(facts), record_ids=pair_of(finding.place))


def place_facts(place: Difference) -> list[str]:
    facts = [
        f"place: {source_place(place)}, step {place.step}, {place.phase}, rank {place.rank}",
        f"call: {place.function} in {module_or_root(place.module)} (level {place.level})",
        f"group: {place.group.value}: {GROUPS[place.group]}{f': {place.cause}' if place.cause else ''}",
        f"before it: {count(place.undetermined_before, 'undetermined call')}",
        _source("baseline", place.baseline_site, place.baseline_source, place=place),
        _source("candidate", place.candidate_site, place.candidate_source, place=place),
    ]
    if place.region:
        facts.append(f"a region of {place.region_calls[0]:,} baseline and {place.region_calls[1]:,} candidate calls")
    for slot in place.slots:
        note = f" ({slot.note})" if slot.note else ""
        facts.append(f"{slot.slot}: {CLASSES[slot.difference_class]}{note}; {size_in_words(slot)}")
        facts.append(f"    baseline {slot.baseline}  candidate {slot.candidate}")
        facts += [f"    bytes [{begin:,}, {end:,}) differ" for begin, end in slot.byte_ranges]
        facts += [f"    {fact}" for fact in (element_facts(slot.elements) if slot.elements is not None else ())]
        facts += [f"    not compared element by element: {slot.elements_why}"] if slot.elements_why else []
    return facts + [f"look next: {line}" for line in place.next_to_see]


def _source(side: str, site: str, source: str, *, place: Difference) -> str:
    if not site:  # of a stretch or a missing collective one side may have no call
        return f"{side}: {'no call here' if place.region or place.collective else 'no source line recorded'}"
    return f"{side} {site}: {source or '(source text not recorded)'}"


def first(comparison: Comparison, _part: str) -> Behind:
    first = comparison.first_difference
    if first is None:
        return Behind("No first difference is named.", facts=tuple(settled_facts(comparison)))
    return Behind("The first difference in bits, in execution order.", tuple(place_facts(first)), pair_of(first))


def settled(comparison: Comparison, _part: str) -> Behind:
    known = comparison.settled
    ids = () if known is None else tuple(p for d in (known.last_equal, known.first_different) if d for p in pair_of(d))
    return Behind("What is known around what cannot be named.", tuple(settled_facts(comparison)), record_ids=ids)


def settled_facts(comparison: Comparison) -> list[str]:
    known = comparison.settled
    if known is None:
        return ["nothing is left to settle"]
    facts = [f"between: {known.between_baseline:,} baseline and {known.between_candidate:,} candidate calls"]
    facts += [f"because of {reason}: {number:,}" for reason, number in sorted(known.why.items())]
    return facts + [f"would settle it: {line}" for line in known.would_settle]
