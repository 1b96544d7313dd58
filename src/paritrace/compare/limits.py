"""The limits that every comparison carries (CP-23)."""

from paritrace.compare.result import EnvelopeUsed, Limit

NO_ENVELOPE = "no_envelope"

LIMITS = (
    Limit("pairs_are_candidates", "Pairs are candidates for correspondence, not semantic identity."),
    Limit("order_supposes_equal_execution", "Pairing by order supposes an equal order of execution."),
    Limit("equal_summaries_not_equal_tensors", "Equal summaries of inputs do not prove equal tensors."),
    Limit("ok_speaks_of_recorded_fields", "`ok` speaks of the recorded fields only."),
    Limit("first_of_the_compared", "The first difference among what was compared may not be the earliest."),
    Limit("links_are_no_data_flow", "Links and pairs are no data flow; flow is said only where it was recorded."),
    Limit("no_equivalence_no_cause", "A report is neither an equivalence result nor a root cause."),
    Limit(NO_ENVELOPE, "No perturbed baseline exists: differences are in bits, their importance is not judged."),
)


def limits_of(used: EnvelopeUsed | None) -> tuple[Limit, ...]:
    """The limits of one comparison: that nothing was judged is none where something was."""
    judged = used is not None and used.false_rate is not None
    return tuple(limit for limit in LIMITS if not judged or limit.code != NO_ENVELOPE)
