"""Element-wise figures in words, for the first screen and for `explain` (CP-11)."""

from paritrace.compare.element_figures import ElementFigures, Index
from paritrace.compare.result import SlotDifference
from paritrace.reports.harmless import cut
from paritrace.reports.layout import CONTENT
from paritrace.reports.wording import figure

NO_BOUND = "more"


def element_line(slot: SlotDifference, /) -> tuple[str, ...]:
    """Returns one line for the first screen; none where there are no figures."""
    return () if slot.elements is None else (cut(f"  {in_words(slot.elements)}", width=CONTENT),)


def in_words(of: ElementFigures, /) -> str:
    """Returns counts, the first mismatch and the sizes; what is not finite comes first."""
    compared = of.num_elements - of.num_masked
    parts: list[str] = []
    if of.num_non_finite_apart:
        parts.append(f"{of.num_non_finite_apart:,} not finite on one side, first at {_at(of.first_non_finite)}")
    elif of.num_nan_both:
        parts.append(f"{of.num_nan_both:,} NaN on both sides")
    first = f", first {_at(of.first)}" if of.num_mismatches else ""
    parts.append(f"{of.num_mismatches:,} of {compared:,} elements differ{first}")
    if of.max_absolute is not None and of.num_mismatches:
        parts.append(f"max {figure(of.max_absolute)}{_relative(of)}")
    return "; ".join(parts)


def element_facts(of: ElementFigures, /) -> list[str]:
    """Returns what `explain` tells of a slot's elements, one line each."""
    facts = [f"whole: {in_words(of)}"]
    if of.mask:
        facts.append(f"mask {of.mask}: {of.num_masked:,} of {of.num_elements:,} elements are padding")
    if of.num_mismatches:
        facts.append(f"first mismatch: {of.first_values[0]} -> {of.first_values[1]} at {_at(of.first)}")
    if any(of.num_non_finite):
        baseline, candidate = of.num_non_finite
        facts.append(f"not finite: {baseline:,} of the baseline, {candidate:,} of the candidate")
    if of.num_other_bits is not None and of.num_other_bits != of.num_mismatches:
        facts.append(f"{of.num_other_bits:,} elements have other bits, {of.num_mismatches:,} another value")
    if of.max_absolute is not None and of.num_mismatches:
        facts.append(f"largest distance {figure(of.max_absolute)} at {_at(of.max_absolute_at)}")
    if of.num_from_zero:
        facts.append(f"{of.num_from_zero:,} differ where the baseline is 0, without a relative size")
    if of.ulps:
        facts.append("ULP: " + ", ".join(f"{_bound(bound)} {number:,}" for bound, number in of.ulps))
    if of.cosine is not None:
        facts.append(f"cosine 1 - {1 - of.cosine:.1e}")
    return facts


def _relative(of: ElementFigures) -> str:
    relative = "" if of.max_relative is None else f", rel {figure(of.max_relative)}"
    return f"{relative}, {of.max_ulp:,} ULP" if of.max_ulp else relative


def _bound(bound: int) -> str:
    return f"<= {bound:,}:" if bound > 0 else f"{NO_BOUND}:"


def _at(index: Index) -> str:
    return f"[{', '.join(map(str, index))}]"
