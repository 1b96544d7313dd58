"""The limits that every comparison carries (CP-23)."""

from paritrace.compare.envelope import MIN_DRAWS
from paritrace.compare.result import EnvelopeUsed, Limit

NO_ENVELOPE = "no_envelope"
FEW = Limit(
    "noise_not_estimable",
    f"Fewer than {MIN_DRAWS} repeats or draws: differences are in bits, their importance is not judged.",
)

LIMITS = (
    Limit("pairs_are_candidates", "Pairs are candidates for correspondence, not semantic identity."),
    Limit("order_supposes_equal_execution", "Pairing by order supposes an equal order of execution."),
    Limit("equal_summaries_not_equal_tensors", "Equal summaries of inputs do not prove equal tensors."),
    Limit("ok_speaks_of_recorded_fields", "`ok` speaks of the recorded fields only."),
    Limit("first_of_the_compared", "The first difference among what was compared may not be the earliest."),
    Limit("links_are_no_data_flow", "Links and pairs are no data flow; flow is said only where it was recorded."),
    Limit("no_equivalence_no_cause", "A report is neither an equivalence result nor a root cause."),
    Limit(NO_ENVELOPE, "No envelope exists: differences are in bits, their importance is not judged."),
)


def limits_of(used: EnvelopeUsed | None) -> tuple[Limit, ...]:
    """The limits of one comparison: that nothing was judged is none where something was, and why is told."""
    if used is None:
        return LIMITS
    others = tuple(limit for limit in LIMITS if limit.code != NO_ENVELOPE)
    if used.false_rate is not None:
        return others
    return (*others, FEW) if used.num_draws < MIN_DRAWS else LIMITS
