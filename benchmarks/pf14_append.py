"""PF-14: an append to an inference artifact of 60,000 activities, against one to an empty artifact, and Stormlog's."""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.measuring import Cost, Row, in_turn, print_table
from paritrace.evidence.ids import Ref
from paritrace.inference.appending import GivenEvents, append, init
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.records import Activity, Iteration, Observation
from paritrace.inference.vocabulary import Domain

RUN, SESSION = "benchmark", "inference"
ACTIVITIES = 60_000
FACTS: dict[str, Any] = {
    "run_id": RUN,
    "session_id": SESSION,
    "producer_id": "benchmark",
    "source": "benchmark",
    "clock_domain": "host/boot/monotonic_ns",
    "clock_kind": "monotonic",
    "collection_mode": "active",
    "provenance": "observed",
    "host": "host",
    "pid": 7,
    "device_uuid": "GPU-1",
}
EMPTY, LARGE, AGAIN, PEER = "empty", "large", "again", "Stormlog"


def context() -> Context:
    """The context of all events."""
    kinds = {
        "clock_kind": ClockKind(FACTS["clock_kind"]),
        "collection_mode": CollectionMode(FACTS["collection_mode"]),
        "provenance": Provenance(FACTS["provenance"]),
    }
    return Context(ContextFacts(**(FACTS | kinds)))


def activities(own: Context) -> Iterator[Observation]:
    """What the large artifact holds."""
    for number in range(ACTIVITIES):
        yield Activity(
            context=own,
            event_id=f"a{number}",
            activity_ref=Ref("benchmark", f"a{number}"),
            kind="kernel",
            domain=Domain.GPU,
            correlation_scope=Ref("benchmark", "trace"),
            runtime_correlation_id=str(number + 1),
            start_ns=number * 100,
            end_ns=number * 100 + 50,
        )


def adding(artifact: Path, own: Context, numbers: Iterator[int]) -> None:
    """One append of one iteration that is not there yet."""
    number = next(numbers)
    event = Iteration(context=own, event_id=f"i{number}", iteration_ref=Ref("benchmark", f"i{number}"))
    append(artifact, run_id=RUN, session=SESSION, engine_adapter=GivenEvents([event]))


def peer_of(folder: Path) -> Callable[[], None] | None:
    """One append of Stormlog to an artifact of as many activities; None where it is not installed."""
    try:
        capture = import_module("stormlog.infer.correlation_capture")
        events = import_module("stormlog.infer.correlation_events")
        sessions = import_module("stormlog.session")
    except ImportError:
        return None
    session = sessions.SessionSummary(
        session_id=SESSION, status="completed", started_at_ns=1, ended_at_ns=2, host="host", pid=7
    )
    own = events.CorrelationContext(**FACTS)
    artifact = folder / "artifact.jsonl"
    artifact.write_text("")
    numbers = count()

    class Engine:
        def collect(self, *, run_id: str, session_id: str) -> Any:
            number = next(numbers)
            ref = events.EntityRef(producer_id="benchmark", id=f"i{number}")
            found = [events.IterationEvent(context=own, event_id=f"i{number}", iteration_ref=ref)]
            if number == 0:
                found += [_theirs(events, own, one) for one in range(ACTIVITIES)]
            names = ("iterations",)
            able = capture.CaptureCapabilities(supported=names, enabled=names, collected=names)
            return capture.EngineCapture(capabilities=able, events=tuple(found))

    def add() -> None:
        capture.append_inference_capture(artifact, run_id=RUN, session=session, engine_adapter=Engine())

    add()
    return add


def _theirs(events: Any, own: Any, number: int) -> Any:
    return events.ActivityReferenceEvent(
        context=own,
        event_id=f"a{number}",
        activity_ref=events.EntityRef(producer_id="benchmark", id=f"a{number}"),
        activity_kind="kernel",
        activity_domain="gpu",
        attribution_status="unresolved",
        correlation_scope=events.EntityRef(producer_id="benchmark", id="trace"),
        runtime_correlation_id=number + 1,
        start_ns=number * 100,
        end_ns=number * 100 + 50,
    )


def main() -> None:
    """Print the table of PF-14."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, own, numbers = Path(scratch), context(), count()
        for name in (EMPTY, LARGE):
            init(folder / name, run_id=RUN)
        append(folder / LARGE, run_id=RUN, session=SESSION, engine_adapter=GivenEvents(activities(own)))
        things: dict[str, Callable[[], object]] = {
            name: partial(adding, folder / name, own, numbers) for name in (EMPTY, LARGE)
        }
        same = [Iteration(context=own, event_id="same", iteration_ref=Ref("benchmark", "same"))]
        things[AGAIN] = lambda: append(folder / LARGE, run_id=RUN, session=SESSION, engine_adapter=GivenEvents(same))
        peer = peer_of(folder)
        if peer is not None:
            things[PEER] = peer
        found = in_turn(things, runs=5, clock=time.process_time)
    print_table("PF-14", _rows(found), _notes(found))


def _rows(found: dict[str, Cost]) -> list[Row]:
    rows = [
        Row(f"an append to {ACTIVITIES} activities, CPU", found[LARGE].cpu / found[EMPTY].cpu, EMPTY, ("<=", 1.5)),
        Row(f"an append to {ACTIVITIES} activities, wall", found[LARGE].wall / found[EMPTY].wall, EMPTY),
        Row("an append of what is there", found[AGAIN].cpu / found[EMPTY].cpu, EMPTY),
    ]
    if PEER in found:
        rows.append(Row("Stormlog, the same append", found[PEER].cpu / found[LARGE].cpu, LARGE, (">=", 10.0)))
    return rows


def _notes(found: dict[str, Cost]) -> tuple[str, ...]:
    own = f"CPU time of the process; an append to {ACTIVITIES} activities takes {found[LARGE].cpu * 1e3:.1f} ms here."
    return (own,) if PEER in found else (own, "Stormlog is not installed here, so that it was not measured.")


if __name__ == "__main__":
    main()
