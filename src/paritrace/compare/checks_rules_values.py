"""Invariants of values: finite, not narrowed in secret, recomputed alike (CP-25): pure rules."""

from collections.abc import Iterator
from math import isfinite

from paritrace.compare.checks_facts import Place, SessionFacts
from paritrace.compare.checks_nonfinite import NonFinite
from paritrace.compare.checks_result import Evidence, Invariant
from paritrace.compare.checks_rules_parameters import NAMES_KEPT, not_checkable, outcome
from paritrace.evidence.gaps import CaptureGap, Gap

FINITE = "no summarised tensor holds NaN or +inf"
LOSSES = "each loss is finite"
NORMS = "each gradient norm is finite"
NARROWING = "no float32 value is narrowed unseen"
RECOMPUTED = "recomputed calls agree with their originals"
NONE_RECOMPUTED = "no recomputed call was recorded"  # holds of nothing: said, so that nobody takes it for a test
NO_SUMMARIES = "no full summary was recorded (level module has them, level op with --statistics)"


def value_invariants(facts: SessionFacts, /, *, rank: int) -> Iterator[Invariant]:
    """Yields the invariants that rest on calls, summaries and marks."""
    yield _finite(facts, rank=rank)
    yield _losses(facts, rank=rank)
    yield _norms(facts, rank=rank)
    yield _narrowing(facts, rank=rank)
    yield _recomputed(facts, rank=rank)


def at(place: Place, /, *, facts: tuple[str, ...], total: int) -> Evidence:
    """Returns the evidence of one place."""
    steps = (place.step,) if place.step >= 0 else ()
    return Evidence(
        facts=facts,
        steps=steps,
        record_ids=(place.record_id,),
        total=total,
        file=place.file,
        line=place.line,
        module=place.module,
    )


def _finite(facts: SessionFacts, *, rank: int) -> Invariant:
    identity = "values.finite"
    found = facts.non_finites
    if not found.slots_read:
        return not_checkable(identity, FINITE, NO_SUMMARIES, rank=rank)
    read = f"{found.slots_read:,} slots read"
    masks = _masks(facts)
    if found.first is None:
        return outcome(identity, FINITE, Evidence(facts=(read, *masks)), rank=rank, failed=False)
    place = facts.definitions.place(found.first.call)
    said = (
        f"first in {_slot(found.first)} of {place.called}: {_non_finite_counts(found.first)}",
        read,
        *masks,
    )
    evidence = at(place, facts=said, total=found.slots_with)
    return outcome(identity, FINITE, evidence, rank=rank, failed=True, step=place.step)


def _masks(facts: SessionFacts) -> tuple[str, ...]:
    found = facts.non_finites
    if found.first_negative_infinity is None:
        return ()
    place = facts.definitions.place(found.first_negative_infinity.call)
    where = f"{place.called} at {place.file}:{place.line}"
    return (f"{found.slots_with_negative_infinity_only:,} slots hold -infinity alone, as masks do; first {where}",)


def _slot(found: NonFinite) -> str:
    slots = found.call.inputs if found.direction == "i" else found.call.outputs
    side = "input" if found.direction == "i" else "output"
    return f"{side} {found.slot} of {len(slots)}"


def _non_finite_counts(found: NonFinite) -> str:
    counts = found.counts
    return f"{counts.nan:,} NaN, {counts.positive_infinity:,} +infinity, {counts.negative_infinity:,} -infinity"


def _losses(facts: SessionFacts, *, rank: int) -> Invariant:
    known = [(mark.step, mark.value) for mark in facts.losses]
    return _numbers("loss.finite", LOSSES, known, rank=rank)


def _norms(facts: SessionFacts, *, rank: int) -> Invariant:
    known = [(mark.step, mark.grad_norm) for mark in facts.steps]
    return _numbers("gradients.norm_finite", NORMS, known, rank=rank)


def _numbers(identity: str, words: str, found: list[tuple[int, str | Gap[CaptureGap]]], *, rank: int) -> Invariant:
    values = [(step, _number(text)) for step, text in found if not isinstance(text, Gap)]
    if not values:
        return not_checkable(identity, words, "none was recorded", rank=rank)
    bad = [(step, value) for step, value in values if not isfinite(value)]
    said = [f"{len(values):,} of {len(found):,} recorded"]
    said += [f"step {step}: {value}" for step, value in bad[:NAMES_KEPT]]
    steps = tuple(step for step, _ in bad[:NAMES_KEPT])
    evidence = Evidence(facts=tuple(said), steps=steps, total=len(bad))
    return outcome(identity, words, evidence, rank=rank, failed=bool(bad), step=steps[0] if steps else -1)


def _number(text: str) -> float:
    """Returns the value of `float.hex()` text or of the repr of a number that is not finite."""
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        return float("nan")


def _narrowing(facts: SessionFacts, *, rank: int) -> Invariant:
    identity = "dtypes.no_hidden_narrowing"
    found = facts.narrowings
    declared = sorted(found.declared.values(), key=lambda narrowing: narrowing.first.id)
    said: list[str] = []
    for narrowing in declared[:NAMES_KEPT]:
        place = facts.definitions.place(narrowing.first)
        said.append(
            f"{narrowing.wide} to {narrowing.narrow}: {place.called} at {place.file}:{place.line}, "
            f"{narrowing.count:,} calls from step {place.step}"
        )
    total = len(declared) + found.places_left_out
    if found.hidden is None:
        if not found.slots_read and not declared:
            return not_checkable(identity, NARROWING, NO_SUMMARIES, rank=rank)
        return outcome(identity, NARROWING, Evidence(facts=tuple(said), total=total), rank=rank, failed=False)
    place = facts.definitions.place(found.hidden.call)
    hidden = (
        f"output {found.hidden.slot} of {place.called}: all {found.hidden.num_elements:,} elements fit bfloat16, "
        "those of its input do not"
    )
    evidence = at(place, facts=(hidden, *said), total=found.num_hidden)
    return outcome(identity, NARROWING, evidence, rank=rank, failed=True, step=place.step)


def _recomputed(facts: SessionFacts, *, rank: int) -> Invariant:
    identity = "recomputation.equals_original"
    found = facts.recomputations
    if not facts.levels & {"module", "op"}:
        return not_checkable(identity, RECOMPUTED, "no calls were captured (level module or op)", rank=rank)
    total = found.equal + found.different + found.not_comparable
    if total and not found.equal and not found.different:
        return not_checkable(identity, RECOMPUTED, f"of {total:,} none could be compared", rank=rank)
    counts = (
        f"{total:,} recomputed: {found.equal:,} agree, {found.different:,} differ, "
        f"{found.not_comparable:,} not comparable"
    )
    if found.first_different is None:
        said = counts if total else "nothing was recomputed in what was recorded"
        words = RECOMPUTED if total else NONE_RECOMPUTED
        return outcome(identity, words, Evidence(facts=(said,), total=total), rank=rank, failed=False)
    place = facts.definitions.place(found.first_different.call)
    one = found.first_different
    first = f"first: output {one.slot} of {place.called}, original call {one.original}"
    evidence = at(place, facts=(first, counts), total=found.different)
    return outcome(identity, RECOMPUTED, evidence, rank=rank, failed=True, step=place.step)
