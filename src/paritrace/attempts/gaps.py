"""Why a figure of an attempt is not known, from one closed list (AT-5)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.attempts.origins import Origin


class AttemptGap(StrEnum):
    """Why evidence of an attempt, or a figure made from it, is not there or cannot be used."""

    RESULT_MISSING = "result_missing"  # an expected result is not there
    RECORD_MISSING = "record_missing"  # an expected request record is not there
    RECORD_TRUNCATED = "record_truncated"  # a record begins and never ends, or its last line is torn
    RESULT_INVALID = "result_invalid"  # evidence is there and cannot be read: damaged, foreign, another digest
    IDENTITY_MISMATCH = "identity_mismatch"  # the id inside a file is not the one the manifest names (AT-2)
    IDENTITY_CONFLICT = "identity_conflict"  # one id, different bytes: none is chosen (AT-2)
    RECORD_RESULT_CONFLICT = "record_result_conflict"  # a record disagrees with its result: the result wins (AT-3)
    RETRY_DESTROYED = "retry_destroyed"  # the tool deleted what an earlier try left: its spend is unknown (AT-16)
    USAGE_ABSENT = "usage_absent"
    USAGE_FIELD_ABSENT = "usage_field_absent"
    USAGE_IMPLAUSIBLE = "usage_implausible"  # zero tokens where something shows that work was done
    CONVENTION_UNKNOWN = "convention_unknown"  # whether input includes cache, or output reasoning, is not declared
    CONVENTION_VIOLATED = "convention_violated"  # cached > input although input is said to include it
    COST_ABSENT = "cost_absent"
    PRICING_UNVERIFIED = "pricing_unverified"
    MODEL_UNPRICED = "model_unpriced"  # the rate card does not have the model: never 0 (AT-8)
    DURATION_ABSENT = "duration_absent"  # a scope of time that was not recorded
    REQUEST_LIST_UNVERIFIED = "request_list_unverified"  # nobody declared the list of requests complete
    ATTEMPT_LIST_UNVERIFIED = "attempt_list_unverified"  # nobody declared the list of attempts complete
    LEGACY_ONLY = "legacy_only"  # only a counter without declared source, scope or coverage (AT-3)
    RAISED_WITHOUT_ACCOUNTING = "raised_without_accounting"  # it ended by an error that left no accounting


OF_USAGE = frozenset(
    {
        AttemptGap.USAGE_ABSENT,
        AttemptGap.USAGE_FIELD_ABSENT,
        AttemptGap.USAGE_IMPLAUSIBLE,
        AttemptGap.CONVENTION_UNKNOWN,
        AttemptGap.CONVENTION_VIOLATED,
    }
)
OF_COST = frozenset({AttemptGap.COST_ABSENT, AttemptGap.PRICING_UNVERIFIED, AttemptGap.MODEL_UNPRICED})


class Noted(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A gap as it was met: how many things it touches, in a few words, and where it was seen."""

    reason: AttemptGap
    count: int = 1
    detail: str = ""  # never text of the workload: no prompts, outputs or error messages (P7)
    origin: Origin | None = None
