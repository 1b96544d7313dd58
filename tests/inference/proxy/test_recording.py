"""What the writer does where the artifact does not take events, and where too many come (IN-15, P4, P5)."""

import errno
import threading
import time
from collections.abc import Callable

import pytest

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.ids import Ref
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.importing import Imported
from paritrace.inference.proxy import recording
from paritrace.inference.proxy.recording import GATHERED_SECONDS, MOST_AT_ONCE, MOST_WAITING, Writer
from paritrace.inference.records import Loss, Observation, Stage

CONTEXT = Context(
    ContextFacts(
        run_id="run",
        session_id="s",
        producer_id="proxy",
        source="test",
        clock_domain="here",
        clock_kind=ClockKind.MONOTONIC,
        collection_mode=CollectionMode.PASSIVE,
        provenance=Provenance.OBSERVED,
    )
)


def event(number: int) -> Stage:
    ref = Ref("proxy", str(number))
    return Stage(context=CONTEXT, event_id=str(number), stage_ref=ref, name="in_flight", request_ref=ref)


class Artifact:
    """Takes what is appended; refuses the first times, or events of one id, and waits at a gate, as it is told."""

    def __init__(
        self,
        *,
        refuses: int = 0,
        error: Callable[[], Exception] = lambda: EvidenceError("torn", code="torn_tail", fix="recover it"),
        never: str | None = None,
    ) -> None:
        self.events: list[Observation] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self._refuses, self._error, self._never = refuses, error, never

    def append(self, imported: Imported) -> None:
        self.asked.set()
        self.gate.wait(20)
        taken = list(imported.events)
        if self._refuses or self._never in {one.event_id for one in taken}:
            self._refuses -= bool(self._refuses)
            raise self._error()
        self.events += taken


def test_events_are_written_in_order_and_all_of_them() -> None:
    artifact = Artifact()
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    writer.start()
    for number in range(5_000):
        writer.take(event(number))
    writer.close()
    assert [one.event_id for one in artifact.events] == [str(number) for number in range(5_000)]
    assert (writer.num_written, writer.num_unwritten, writer.failure) == (5_000, 0, None)


def test_traffic_that_never_pauses_is_written_all_the_same() -> None:
    """A batch is closed by the age of its first event: closed by a pause, it waited for 2,000 that came one by one."""
    artifact = Artifact()
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    writer.start()
    taken = 0
    until = time.monotonic() + 20
    while not artifact.asked.wait(GATHERED_SECONDS / 20) and time.monotonic() < until:
        writer.take(event(taken))
        taken += 1
    assert artifact.asked.is_set()
    assert taken < MOST_AT_ONCE / 10
    assert GATHERED_SECONDS <= 0.25  # what a kill may lose, as people are told
    writer.close()
    assert len(artifact.events) == taken


def test_what_an_artifact_refused_is_given_to_it_again() -> None:
    artifact = Artifact(refuses=1)
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    writer.start()
    writer.take(event(1))
    assert artifact.asked.wait(20)
    writer.take(event(2))
    writer.close()
    assert [one.event_id for one in artifact.events] == ["1", "2"]
    assert writer.num_unwritten == 0


def test_what_was_never_taken_is_told_at_the_end() -> None:
    writer = Writer(Artifact(refuses=10).append, context=CONTEXT, producer="proxy")
    writer.start()
    writer.take(event(1))
    writer.close()
    assert writer.num_unwritten == 1
    assert isinstance(writer.failure, EvidenceError)
    assert writer.failure.code == "torn_tail"


def test_beyond_the_bound_events_are_dropped_counted_and_told() -> None:
    artifact = Artifact()
    artifact.gate.clear()
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    writer.start()
    writer.take(event(-1))
    assert artifact.asked.wait(20)  # the writer waits inside its append
    for number in range(MOST_WAITING + 7):
        writer.take(event(number))
    artifact.gate.set()
    writer.close()
    losses = [one for one in artifact.events if isinstance(one, Loss)]
    stages = [one for one in artifact.events if isinstance(one, Stage)]
    assert len(stages) == MOST_WAITING + 1
    assert sum(one.count or 0 for one in losses) == 7
    assert recording.COMPONENT == "proxy"


FULL = HostError("write inference.jsonl: No space left on device", code="disk_full", fix="free space")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TypeError("what a client wrote"), "TypeError"),
        (RecursionError(), "RecursionError"),
        (EvidenceError("no", code="bad_event", fix="mend it"), "bad_event"),
    ],
    ids=str,
)
def test_an_event_that_cannot_be_written_is_a_loss_with_its_kind_and_no_other_event_is(
    error: Exception, kind: str
) -> None:
    artifact = Artifact(error=lambda: error, never="7")
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    for number in range(20):
        writer.take(event(number))
    writer.start()
    writer.close()
    stages = [one.event_id for one in artifact.events if isinstance(one, Stage)]
    (loss,) = (one for one in artifact.events if isinstance(one, Loss))
    assert stages == [str(number) for number in range(20) if number != 7]
    assert (loss.count, loss.metadata) == (1, {"error": kind})
    assert (writer.num_unwritten, writer.failure) == (0, None)


@pytest.mark.parametrize("error", [FULL, OSError(errno.ENOSPC, "full"), MemoryError()], ids=lambda one: repr(one)[:20])
def test_a_disk_that_is_full_for_a_while_loses_nothing(error: Exception) -> None:
    artifact = Artifact(refuses=2, error=lambda: error)
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    writer.start()
    for number in range(3):
        artifact.asked.clear()
        writer.take(event(number))
        assert artifact.asked.wait(20)
    writer.close()
    assert [one.event_id for one in artifact.events] == ["0", "1", "2"]
    assert (writer.num_unwritten, writer.failure) == (0, None)


def test_what_could_not_be_told_is_counted_once() -> None:
    artifact = Artifact()
    writer = Writer(artifact.append, context=CONTEXT, producer="proxy")
    writer.lost("ValueError")
    writer.lost("ValueError")
    writer.start()
    writer.take(event(1))
    writer.close()
    (loss,) = (one for one in artifact.events if isinstance(one, Loss))
    assert (loss.count, loss.metadata) == (2, {"error": "ValueError"})
