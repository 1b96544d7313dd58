"""What an artifact holds: events by type, components, conflicts, references in vain, losses (IN-8)."""

from collections import Counter
from pathlib import Path

from paritrace.files import LOCAL, Files
from paritrace.inference.account_report import first_of, left_out
from paritrace.inference.artifact import Events, head_of, place_of
from paritrace.inference.context import Context
from paritrace.inference.device_time import loss_line
from paritrace.inference.records import Capabilities, Loss
from paritrace.inference.result import VERSION, ComponentLine, ShowReport
from paritrace.inference.sources import source_of
from paritrace.inference.standing import standing
from paritrace.runs.committed import check_committed

SHOW_FORMAT = "paritrace-infer-show"


def show_artifact(path: Path, *, files: Files = LOCAL) -> ShowReport:
    """Return what an artifact holds; its committed bytes are hashed again.

    Links are counted as they pass; of every other event some 300 bytes are held.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    place = place_of(path)
    head = head_of(place, files=files)
    counts: Counter[str] = Counter()
    contexts: set[Context] = set()
    for event in Events(place, files=files):
        counts[str(event.__struct_config__.tag)] += 1
        contexts.add(event.context)
    resolved = standing(place, files=files)
    losses = [loss_line(event) for event in resolved.told if isinstance(event, Loss)]
    components = [component_line(event) for event in resolved.told if isinstance(event, Capabilities)]
    intact = check_committed(place.folder, place.name, files=files)
    return ShowReport(
        format=SHOW_FORMAT,
        version=VERSION,
        artifact=source_of(place, head.context.facts.run_id, files=files),
        sessions=tuple(sorted({context.facts.session_id for context in contexts})),
        contexts=len(contexts),
        events=dict(sorted(counts.items())),
        conflicts=first_of(resolved.conflicts),
        conflicts_left_out=left_out(resolved.conflicts),
        dangling=first_of(resolved.dangling),
        dangling_left_out=left_out(resolved.dangling),
        components=tuple(sorted(components, key=lambda one: (one.component, one.session_id, one.collected))),
        loss=first_of(losses),
        loss_left_out=left_out(losses),
        index="intact" if intact else "changed, or not there",
    )


def component_line(event: Capabilities) -> ComponentLine:
    """Return a capability event for people."""
    reason = event.metadata.get("reason")
    return ComponentLine(
        component=event.component,
        session_id=event.context.facts.session_id,
        available=event.available,
        supported=len(event.supported),
        enabled=len(event.enabled),
        collected=len(event.collected),
        reason=reason if isinstance(reason, str) else "",
    )
