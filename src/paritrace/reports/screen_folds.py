"""What runs of unlike layouts share, whole against whole, and the ratios of their figures (CP-12, CP-29)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.folds_result import FoldCount, FoldedSlot, FoldedState, Folds, FoldStatus
from paritrace.compare.result import Comparison
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, Section, paragraph
from paritrace.reports.wording import count, figure, listed, module_or_root

GROUPS = {
    "parameter": "weights",
    "buffer": "buffers",
    "batch": "batches",
    "gradient": "gradients",
    "optimizer_state": "optimizer state",
}
LOADED = ("parameter", "buffer", "batch")  # whose bits can agree whatever the layout; made from them, the rest follows
STATES_SHOWN = 3
REASONS_SHOWN = 3


def section(comparison: Comparison, /) -> Section:
    """Returns what agrees by fold, what does not and what its parts show, and the largest error of activations."""
    folds = comparison.folds
    if folds is None:
        return Section(anchor="folds", lines=())
    lines = (
        *paragraph(f"the layouts are unlike ({why(folds)}): wholes are compared with wholes, by fold", most=2),
        *(line for group in GROUPS if (line := _group(folds, group))),
        *_apart(folds),
        *_slots(folds),
    )
    return Section(anchor="folds", lines=lines, keep=3, most=14, spaced=True)


def ratios(comparison: Comparison, /) -> Section:
    """Returns the whole-number ratios of losses and gradient norms; they are attributed to nothing (A-15)."""
    lines = tuple(
        line
        for fact in comparison.ratios
        for line in paragraph(
            f"{fact.figure.replace('_', ' ')}, {fact.larger} larger: {fact.text} "
            f"({fact.values:,} of {count(fact.of_values, 'value')})",
            most=2,
        )
    )
    return Section(anchor="ratios", lines=lines)


def why(folds: Folds) -> str:
    """What is unlike, in words."""
    return "; ".join(folds.why)


def sentence(folds: Folds) -> str:
    """The finding of a comparison by fold, for the headline."""
    first = folds.counts[0].step if folds.counts else 0
    told = [
        _told(counts)
        for group in ("parameter", "batch")
        if (counts := [one for one in folds.counts if (one.step, one.group) == (first, group)])
    ]
    if not told:
        return "The layouts are unlike, and nothing was recorded that adds up over ranks."
    apart = [state for state in folds.states if state.status is FoldStatus.DIFFERS and state.group in LOADED]
    named = f"; {apart[0].name} differs first" if apart and apart[0].step == first else ""
    return f"By fold, {' and '.join(told)} at step {first}{named}."


def _group(folds: Folds, group: str) -> str:
    """`weights 12 of 12 agree by fold over 2 shards (elements-u64)`, with the first step where some do not."""
    counts = [one for one in folds.counts if one.group == group]
    if not counts:
        return ""
    first = [one for one in counts if one.step == counts[0].step]
    over = max(max(one.parts) for one in counts)
    parts = "ranks" if group == "batch" else "shards"
    scheme = f" ({folds.scheme})" if group == "parameter" else ""
    line = f"{_told(first)} by fold over {over} {parts}{scheme}, step {counts[0].step}"
    return shorten(line + _later(counts), width=CONTENT)


def _told(counts: Sequence[FoldCount]) -> str:
    group = GROUPS[counts[0].group]
    agree, total = sum(one.agree for one in counts), sum(one.total for one in counts)
    unknown = sum(one.not_checkable for one in counts)
    return f"{group} {agree:,} of {total:,} agree" + (f", {unknown:,} not checkable" if unknown else "")


def _later(counts: Sequence[FoldCount]) -> str:
    """What the other steps say: all of them, or the first that says otherwise."""
    rest = [one for one in counts if one.step != counts[0].step]
    other = next((one for one in rest if one.agree < one.total), None)
    if not rest:
        return ""
    if other is None:
        return f"; all at {count(len({one.step for one in rest}), 'later step')}"
    return f"; {other.agree:,} of {other.total:,} at step {other.step}"


def _apart(folds: Folds) -> Iterator[str]:
    """What should agree whatever the layout and does not, with what the parts show; the first step of each alone."""
    shown = [
        state
        for state in folds.states
        if state.status is not FoldStatus.AGREES and state.group in LOADED and state.step == _first_apart(folds)
    ]
    for state in shown[:STATES_SHOWN]:
        yield from paragraph(_state(state), most=3)
    if len(shown) > STATES_SHOWN:
        yield f"{len(shown) - STATES_SHOWN:,} more at step {shown[0].step}: paritrace explain folds"


def _first_apart(folds: Folds) -> int:
    """The first step at which loaded states or batches do not agree; later ones follow from gradients."""
    apart = [one.step for one in folds.counts if one.group in LOADED and one.agree < one.total]
    reduced = [one.step for one in folds.counts if one.group == "gradient" and one.agree < one.total]
    first = min(apart, default=-1)
    return first if first >= 0 and not any(step < first for step in reduced) else -1


def _state(state: FoldedState) -> str:
    verb = "differs" if state.status is FoldStatus.DIFFERS else f"is not checkable: {state.reason}"
    facts = f": {'; '.join(state.facts)}" if state.facts else ""
    return f"{state.group} {shorten(state.name, width=40)} {verb} at step {state.step}{facts}"


def _slots(folds: Folds) -> Iterator[str]:
    left_out = sum(folds.slots_not_compared.values())
    if folds.num_slots:
        head = (
            f"activations: {count(folds.num_slots, 'tensor')} compared by moments and samples, not by bits, no verdict"
        )
        yield shorten(head, width=CONTENT)
        if folds.slots:
            yield shorten(f"  {_slot(folds.slots[0])}", width=CONTENT)
    if left_out:
        reasons = sorted(folds.slots_not_compared.items(), key=lambda item: (-item[1], item[0]))
        told = listed([f"{reason} {number:,}" for reason, number in reasons], most=REASONS_SHOWN)
        yield shorten(f"activations not compared: {left_out:,} ({told})", width=CONTENT)


def _slot(slot: FoldedSlot) -> str:
    place = f"step {slot.step} {slot.phase}, {module_or_root(slot.module)} {slot.slot}"
    samples = "" if slot.sample_error is None else f", samples {figure(slot.sample_error)} ({slot.num_samples})"
    norm = "unknown" if slot.norm_error is None else figure(slot.norm_error)
    ratio = "" if slot.ratio is None else f", ratio {slot.ratio:.4g}"
    return f"largest error: {place}: norm {norm}{samples}{ratio}"
