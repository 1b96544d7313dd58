"""A check of a trace in the document and on the screens of `paritrace check` (IN-26, CP-25)."""

from collections import Counter
from pathlib import Path
from typing import assert_never

from paritrace.compare.checks_result import FORMAT, VERSION, Checked, Evidence, Invariant, Outcome
from paritrace.compare.result import RunRef
from paritrace.inference.export_invariants import export_invariants
from paritrace.inference.trace_invariants import Held, TraceInvariant, trace_invariants
from paritrace.inference.trace_reading import ExportRead, TraceRead

LIMITS = (
    "`pass` speaks of what the trace holds: what the profiler dropped without a word cannot be seen",
    "calls of the runtime are taken for launches by their names",
    "a failed invariant names a fact, not its cause; some profilers and programs mean it so",
)
WHOLE_TRACE = -1  # of rank and step


def checked_trace(read: TraceRead | ExportRead, /, *, path: Path) -> Checked:
    """Returns what one trace says about itself. Its run is the file: named by it, with the digest of its bytes."""
    if isinstance(read, TraceRead):
        found = trace_invariants(read.text, read.facts)
    else:
        found = export_invariants(read.facts, read.account)
    invariants = tuple(_invariant(one) for one in found)
    counts = Counter(invariant.status.value for invariant in invariants)
    return Checked(
        format=FORMAT,
        version=VERSION,
        run=RunRef(run_id=path.name, digest=read.sha256, path=str(path)),
        invariants=invariants,
        coverage={},
        counts={outcome.value: counts[outcome.value] for outcome in Outcome},
        limits=LIMITS,
    )


def _invariant(one: TraceInvariant) -> Invariant:
    evidence = Evidence(facts=one.facts, names=one.names, total=one.total, reason=one.reason)
    return Invariant(one.id, _outcome(one.status), WHOLE_TRACE, WHOLE_TRACE, one.name, evidence)


def _outcome(held: Held) -> Outcome:
    match held:
        case Held.PASS:
            return Outcome.PASS
        case Held.FAIL:
            return Outcome.FAIL
        case Held.NOT_CHECKABLE:
            return Outcome.NOT_CHECKABLE
        case Held.NOT_APPLICABLE:
            return Outcome.NOT_APPLICABLE
        case _:
            assert_never(held)
