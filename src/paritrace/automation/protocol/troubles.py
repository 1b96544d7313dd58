"""What makes a capture a failed one: every cause by its code, and the one error that tells them all (AU-4, AU-15)."""

from collections.abc import Sequence

from msgspec import Struct

from paritrace.errors import EvidenceError, Outcome, ParitraceError


class Trouble(Struct, frozen=True, forbid_unknown_fields=True):
    """One cause, with its code and how to mend it."""

    code: str
    message: str
    fix: str


def of_error(error: ParitraceError, *, what: str = "") -> Trouble:
    """Return an error that a rank met, as it stands in its receipt."""
    return Trouble(error.code, f"{what}{error.message}", error.fix)


def failure(troubles: Sequence[Trouble]) -> EvidenceError:
    """Return the failure of an operation by its first cause, with all of them in `details`."""
    first, details = troubles[0], tuple(f"{one.code}: {one.message}" for one in troubles)
    code = first.code
    return EvidenceError(first.message, code=code, fix=first.fix, outcome=Outcome.FAILED, details=details)
