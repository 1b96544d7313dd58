"""The public names of inference evidence, gathered (IN-25)."""

from pathlib import Path

from paritrace.evidence.ids import Ref
from paritrace.inference.appending import AppendOptions, append, init
from paritrace.inference.artifact import Events, place_of
from paritrace.inference.collecting import Collected, EngineAdapter, TraceCollector
from paritrace.inference.committing import Committed
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.device_time import account
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.linking import link
from paritrace.inference.records import (
    Activity,
    Artifact,
    Capabilities,
    ClockAlignment,
    Iteration,
    Link,
    Loss,
    Membership,
    Request,
    Stage,
)
from paritrace.inference.resolution import resolve
from paritrace.inference.trace_collecting import ProfilerTrace
from paritrace.inference.vocabulary import Attribution, Basis, Domain, LinkReason, LossReason, LossStatus

__all__ = [
    "Activity",
    "AppendOptions",
    "Artifact",
    "Attribution",
    "Basis",
    "Capabilities",
    "ClockAlignment",
    "ClockKind",
    "Collected",
    "CollectionMode",
    "Committed",
    "Context",
    "ContextFacts",
    "Domain",
    "EngineAdapter",
    "Events",
    "Iteration",
    "Link",
    "LinkReason",
    "Loss",
    "LossReason",
    "LossStatus",
    "Membership",
    "ProfilerTrace",
    "Provenance",
    "Ref",
    "Request",
    "SessionFacts",
    "Stage",
    "TraceCollector",
    "account",
    "append",
    "init",
    "link",
    "read",
    "resolve",
]


def read(run: Path) -> Events:
    """Return the events of a run's artifact, read from the file each time they are gone through.

    Going through them raises EvidenceError, Refused: `no_artifact`, `invalid_line`, `torn_tail`.
    """
    return Events(place_of(run))
