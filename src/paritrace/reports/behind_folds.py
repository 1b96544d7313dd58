"""What the comparison by fold and the ratios rest on (P9)."""

from paritrace.compare.folds_result import FoldedSlot, FoldedState
from paritrace.compare.result import Comparison
from paritrace.reports.behind import Behind
from paritrace.reports.screen_folds import GROUPS, why
from paritrace.reports.wording import figure, module_or_root


def folds(comparison: Comparison, _part: str) -> Behind:
    """Counts of every moment, then every whole that does not agree, then the tensors with the largest errors."""
    found = comparison.folds
    if found is None:
        return Behind("The ranks of both runs correspond one to one: nothing was folded.")
    facts = [f"declared: {text}" for text in found.declared]
    facts += [
        f"step {one.step}, {one.moment}: {GROUPS[one.group]} {one.agree:,} of {one.total:,} agree, "
        f"{one.differ:,} differ, {one.not_checkable:,} not checkable; parts {one.parts[0]} and {one.parts[1]}"
        for one in found.counts
    ]
    facts += [_state(state) for state in found.states]
    facts += [_slot(slot) for slot in found.slots]
    facts += [f"not compared, {reason}: {number:,} tensors" for reason, number in found.slots_not_compared.items()]
    return Behind(f"Compared by fold ({found.scheme}), because of {why(found)}.", facts=tuple(facts))


def _state(state: FoldedState) -> str:
    told = [text for text in (state.reason, *state.facts) if text]
    return f"step {state.step}, {state.group} {state.name} {state.status.value}: {'; '.join(told) or 'other elements'}"


def _slot(slot: FoldedSlot) -> str:
    errors = {
        "norm": slot.norm_error,
        "mean": slot.mean_error,
        "bounds": slot.range_error,
        "samples": slot.sample_error,
    }
    told = ", ".join(f"{name} {figure(value)}" for name, value in errors.items() if value is not None)
    place = f"step {slot.step}, {slot.phase}, {module_or_root(slot.module)} {slot.slot}"
    facts = "".join(f"; {fact}" for fact in slot.facts)
    return f"{place}: {told} ({slot.num_samples} samples, ranks {slot.ranks[0]} and {slot.ranks[1]}){facts}"


def ratios(comparison: Comparison, _part: str) -> Behind:
    """Each ratio with the values that show it."""
    facts = tuple(
        f"{fact.figure}: {fact.larger} is {fact.ratio} times the other from step {fact.first_step} on, "
        f"{fact.values:,} of {fact.of_values:,} values; {fact.text}"
        for fact in comparison.ratios
    )
    return Behind("Whole-number ratios of losses and gradient norms, rank by rank; nothing is attributed.", facts=facts)
