"""The exception tree: who must act, what to do, and whether anything changed (P8).

First level by who must act: the caller (`RequestError`), whoever owns the evidence (`EvidenceError`), whoever
owns the machine (`HostError`) and we ourselves (`InternalError`). Findings are never exceptions.
"""

from enum import StrEnum

OUR_FAILURE = 125  # exit status where a failure of ours came before the workload; every other one is the workload's


class Outcome(StrEnum):
    """What an operation that raised left behind."""

    REFUSED = "refused"  # nothing changed, the caller may retry
    FAILED = "failed"  # state changed; the message says what it is now


class ParitraceError(Exception):
    """Every error of paritrace.

    `code` is stable and has an entry in docs/errors.md; `fix` says how to mend it in one line; `exit_status` is what
    the command line returns (SU-3: 2 is trouble). `details`: every single thing that is wrong, where there are several.
    """

    exit_status: int = 2

    def __init__(
        self,
        message: str,
        *,
        code: str,
        fix: str,
        outcome: Outcome = Outcome.REFUSED,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.fix = fix
        self.outcome = outcome
        self.details = details
        self.add_note("\n".join((*(f"  - {line}" for line in details), f"fix: {fix} [{code}]")))  # shown by tracebacks

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.code, self.fix, self.outcome, self.details))


class RequestError(ParitraceError):
    """The caller must act: an argument, an option or a request is wrong."""


class EvidenceError(ParitraceError):
    """The owner of the evidence must act: a run, journal or envelope is damaged, foreign or in conflict."""


class HostError(ParitraceError):
    """The owner of the machine must act: a full disk, a permission, a missing package."""


class InternalError(ParitraceError):
    """We must act: an invariant of paritrace itself did not hold."""


def _rebuild(
    kind: type[ParitraceError], message: str, code: str, fix: str, outcome: Outcome, details: tuple[str, ...]
) -> ParitraceError:
    return kind(message, code=code, fix=fix, outcome=outcome, details=details)
