"""All of an append or nothing, once however often it is repeated, and nothing lost among processes (IN-5, IN-20)."""

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paritrace.errors import EvidenceError, HostError, ParitraceError
from paritrace.evidence.ids import Ref
from paritrace.files import Files
from paritrace.inference.appending import AppendOptions, append, init
from paritrace.inference.artifact import ARTIFACT_NAME, Events, place_of
from paritrace.inference.collecting import Collected
from paritrace.inference.committing import Committed
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.records import AnyEvent, Capabilities, Iteration
from paritrace.inference.streaming import streaming
from paritrace.inference.trace_collecting import ProfilerTrace
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.inference.evidence import ENGINE, RUN, SESSION, Adapter, claim, context, iteration, kernel, request
from tests.inference.importers.kineto_reading import kernel as kineto_kernel
from tests.inference.importers.kineto_reading import launch, written

QUICK: Files = FaultyFiles(at=0, fault=Fault.STOP)
WROTE = {"iteration": 1, "capabilities": 2}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    init(tmp_path / "run", run_id=RUN, options=AppendOptions(files=QUICK))
    return tmp_path / "run"


def add(run: Path, *events: Any, session: str | SessionFacts = SESSION, **options: Any) -> Committed:
    attachments = options.pop("attachments", ())
    return append(
        run,
        run_id=options.pop("run_id", RUN),
        session=session,
        engine_adapter=Adapter(events, attachments=attachments),
        options=AppendOptions(**({"files": QUICK} | options)),
    )


def held(run: Path) -> list[AnyEvent]:
    return list(Events(place_of(run)))


def names(run: Path) -> list[str]:
    return [one.iteration_ref.id for one in held(run) if isinstance(one, Iteration)]


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith((".lock", ".lease"))
    }


def test_events_are_written_with_their_contexts_and_capabilities_in_order(run: Path) -> None:
    before = (run / ARTIFACT_NAME).read_bytes()
    done = add(run, iteration("1"))
    assert done.written == WROTE
    assert [type(one).__name__ for one in held(run)] == ["Artifact", "Iteration", "Capabilities", "Capabilities"]
    assert (run / ARTIFACT_NAME).read_bytes().startswith(before)
    engine, trace = (one for one in held(run) if isinstance(one, Capabilities))
    assert (engine.component, engine.available) == ("engine_adapter", True)
    assert (trace.component, trace.available, trace.supported) == ("trace_collector", False, ())
    facts = trace.context.facts
    assert (facts.session_id, facts.clock_kind, facts.collection_mode, facts.provenance) == (
        SESSION,
        "wall",
        "active",
        "observed",
    )


def test_in5_a_trace_in_a_file_is_a_collector_and_its_account_its_capability(run: Path, tmp_path: Path) -> None:
    path = written(tmp_path, [launch(7), kineto_kernel(correlation=7)], schemaVersion=1)
    for times in (1, 0):
        done = append(
            run,
            run_id=RUN,
            session=SESSION,
            engine_adapter=Adapter([iteration("1")]),
            trace_collector=ProfilerTrace(path, {"operators": "yes"}),
            options=AppendOptions(files=QUICK),
        )
        assert done.written.get("activity", 0) == 2 * times
    (trace,) = (one for one in held(run) if isinstance(one, Capabilities) and one.component == "trace_collector")
    assert trace.available
    assert {"device", "launches"} <= set(trace.collected)
    assert trace.metadata["complete"] is True
    registered = {one["attachment_id"] for one in json.loads((run / "run.json").read_text())["attachments"]}
    assert set(trace.metadata["attachments"]) < registered


def test_in23_a_trace_that_is_none_refuses_the_append_or_is_told(run: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text("no trace")
    collector = ProfilerTrace(tmp_path / "trace.txt")
    asked: dict[str, Any] = {"run_id": RUN, "session": SESSION, "trace_collector": collector}
    before = everything(run)
    with pytest.raises(EvidenceError) as refused:
        append(run, engine_adapter=Adapter([iteration("1")]), options=AppendOptions(files=QUICK), **asked)
    assert refused.value.code == "unrecognised_source"
    assert everything(run) == before
    append(run, engine_adapter=Adapter([iteration("1")]), options=AppendOptions(files=QUICK, keep_going=True), **asked)
    (trace,) = (one for one in held(run) if isinstance(one, Capabilities) and one.component == "trace_collector")
    assert not trace.available
    assert "unrecognised_source" in str(trace.metadata["reason"])


def test_a_context_is_defined_once(run: Path) -> None:
    add(run, iteration("1"))
    add(run, iteration("2"))
    lines = (run / ARTIFACT_NAME).read_bytes().splitlines()
    defined = [line for line in lines if b'"type":"context"' in line]
    assert len(defined) == len(set(defined)) == 2


def test_the_same_evidence_three_times_is_there_once(run: Path) -> None:
    assert add(run, iteration("1"), kernel("k", context=ENGINE)).num_written == 4
    bytes_then = everything(run)
    for _ in range(2):
        done = add(run, iteration("1"), kernel("k", context=ENGINE))
        assert (done.num_written, done.already_present) == (0, 4)
    assert everything(run) == bytes_then


def test_what_is_there_within_one_append_is_there_once(run: Path) -> None:
    done = add(run, iteration("1"), iteration("1"))
    assert (done.num_written, done.already_present) == (3, 1)


def test_a_tuple_in_metadata_is_no_conflict_the_second_time(run: Path) -> None:
    add(run, iteration("1", metadata={"x": (1, 2)}))
    assert add(run, iteration("1", metadata={"x": [1, 2]})).already_present == 3


def raising(**_: Any) -> Collected:
    raise RuntimeError("secret words")


class Broken:
    collect = staticmethod(raising)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "another content under one event id": (lambda run: add(run, iteration("1", end_ns=5)), "event_conflict"),
    "another content of one iteration": (
        lambda run: add(run, Iteration(context=ENGINE, event_id="x", iteration_ref=Ref("engine", "1"))),
        "event_conflict",
    ),
    "two contents in one append": (lambda run: add(run, request("a"), request("a", status="ok")), "event_conflict"),
    "another run": (lambda run: add(run, iteration("2"), run_id="run-2"), "other_run"),
    "an event of another run": (lambda run: add(run, iteration("2", context=context(run_id="x"))), "bad_event"),
    "an event of another session": (lambda run: add(run, iteration("2", context=context(session_id="x"))), "bad_event"),
    "no event": (lambda run: add(run, {"type": "iteration"}), "bad_event"),
    "an event only init writes": (lambda run: add(run, held(run)[0]), "bad_event"),
    "an empty id": (
        lambda run: add(run, Iteration(context=ENGINE, event_id="", iteration_ref=Ref("a", "b"))),
        "bad_event",
    ),
    "a value of another type": (lambda run: add(run, iteration("2", batch_ref="x")), "bad_event"),
    "a context that does not hold": (lambda run: add(run, iteration("2", context=context(pid=-1))), "bad_event"),
    "a lone surrogate": (lambda run: add(run, iteration("2", metadata={"x": "\ud800"})), "bad_event"),
    "a trace nobody registered": (
        lambda run: add(run, iteration("2", trace_attachment_id="trace:x")),
        "attachment_unknown",
    ),
    "an adapter that raises": (
        lambda run: append(
            run, run_id=RUN, session=SESSION, engine_adapter=Broken(), options=AppendOptions(files=QUICK)
        ),
        "collector_failed",
    ),
    "a session with other facts": (
        lambda run: add(run, iteration("2"), session=SessionFacts(session_id=SESSION, world_size=8)),
        "session_conflict",
    ),
    "a session id that is none": (lambda run: add(run, session="../x"), "bad_id"),
    "an envelope of another run": (lambda run: add(run, iteration("2"), envelope=other_envelope(run)), "other_run"),
    "a torn tail": (lambda run: add(torn(run), iteration("2")), "torn_tail"),
    "a line that is no event": (lambda run: add(torn(run, b"{}\n"), iteration("2")), "invalid_line"),
    "an artifact that was cut off": (lambda run: add(cut(run), iteration("2")), "artifact_cut_off"),
    "no artifact": (lambda run: add(run.parent), "no_artifact"),
    "something else": (lambda run: add(foreign(run)), "not_an_artifact"),
    "a second init": (init, "artifact_exists"),
}


def other_envelope(run: Path) -> Path:
    init(run.parent / "other", run_id="other", options=AppendOptions(files=QUICK))
    return run.parent / "other" / "run.json"


def torn(run: Path, tail: bytes = b'{"type":"iter') -> Path:
    with (run / ARTIFACT_NAME).open("ab") as file:
        file.write(tail)
    return run


def cut(run: Path) -> Path:
    whole = (run / ARTIFACT_NAME).read_bytes()
    (run / ARTIFACT_NAME).write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    return run


def foreign(run: Path) -> Path:
    (run.parent / "x.jsonl").write_bytes(b"\n")
    return run.parent / "x.jsonl"


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_changes_nothing(run: Path, what: str) -> None:
    add(run, iteration("1"))
    doing, code = REFUSED[what]
    before = everything(run)
    with pytest.raises(ParitraceError) as caught:
        doing(run)
    assert caught.value.code == code
    assert caught.value.outcome == "refused"
    after = everything(run)
    after[ARTIFACT_NAME] = (
        before[ARTIFACT_NAME] if what in ("a torn tail", "a line that is no event") else after[ARTIFACT_NAME]
    )
    if what != "an artifact that was cut off":
        assert after == before
    assert "secret" not in str(caught.value)


def test_a_conflict_is_named(run: Path) -> None:
    add(run, iteration("1"), iteration("2"))
    with pytest.raises(EvidenceError) as caught:
        add(run, iteration("1"), iteration("2", end_ns=7))
    assert caught.value.details == ("iteration event i:2",)


def test_numbers_that_are_not_finite_are_never_written(run: Path) -> None:
    with pytest.raises(ValueError, match="nan"):
        add(run, iteration("2", metadata={"x": math.nan}))


def test_an_adapter_that_fails_is_left_out_where_that_is_asked(run: Path) -> None:
    options = AppendOptions(keep_going=True, files=QUICK)
    done = append(
        run,
        run_id=RUN,
        session=SESSION,
        engine_adapter=Broken(),
        trace_collector=Adapter([kernel("k", context=ENGINE)]),
        options=options,
    )
    assert done.written == {"activity": 1, "capabilities": 2}
    engine = next(one for one in held(run) if isinstance(one, Capabilities))
    assert not engine.available
    assert engine.metadata["reason"].startswith("collector_failed")
    assert "secret" not in engine.metadata["reason"]


def test_an_adapter_that_does_not_answer_is_given_up_at_its_deadline(run: Path) -> None:
    never = threading.Event()

    class Silent:
        def collect(self, *, run_id: str, session_id: str) -> Collected:
            never.wait(60)
            return Collected(events=())

    before = everything(run)
    with pytest.raises(HostError) as caught:
        append(
            run,
            run_id=RUN,
            session=SESSION,
            trace_collector=Silent(),
            options=AppendOptions(deadline_seconds=0.05, files=QUICK),
        )
    never.set()
    assert caught.value.code == "collector_timeout"
    assert everything(run) == before


def test_a_missing_last_newline_is_supplied(run: Path) -> None:
    add(run, iteration("1"))
    artifact = run / ARTIFACT_NAME
    whole = artifact.read_bytes()
    with streaming(run, run_id=RUN, session_id=SESSION) as writer:
        writer.write(iteration("2"))
    artifact.write_bytes(artifact.read_bytes()[:-1])
    add(run, iteration("3"))
    assert names(run) == ["1", "2", "3"]
    assert artifact.read_bytes().startswith(whole)


def test_what_a_streaming_writer_left_is_committed_and_while_it_lives_nobody_appends(run: Path) -> None:
    with streaming(run, run_id=RUN, session_id=SESSION) as writer:
        writer.write(iteration("1"))
        with pytest.raises(EvidenceError) as caught:
            add(run, iteration("2"))
        assert caught.value.code == "writer_lives"
        writer.write(iteration("3"))
    assert add(run, iteration("1"), iteration("2")).already_present == 1
    assert names(run) == ["1", "3", "2"]
    assert verified(run) is Finding.INTACT


def test_an_attachment_is_registered_once_with_its_digest(run: Path) -> None:
    trace = run.parent / "trace.json"
    trace.write_bytes(b"{}")
    reference = Reference(
        kind=AttachmentKind.PROFILER_TRACE, title="trace.json", path=str(trace), attachment_id="trace:x"
    )
    for _ in range(2):
        add(run, iteration("1", trace_attachment_id="trace:x"), attachments=(reference,))
    add(run, iteration("2", trace_attachment_id="trace:x"))
    rows = [
        row for row in json.loads((run / "run.json").read_text())["attachments"] if row["attachment_id"] == "trace:x"
    ]
    assert [(row["path"], row["num_bytes"]) for row in rows] == [("../trace.json", 2)]
    trace.write_bytes(b"[]")
    with pytest.raises(EvidenceError) as caught:
        add(run, iteration("3"), attachments=(reference,))
    assert caught.value.code == "attachment_conflict"


def verified(run: Path) -> Finding:
    with open_run(run) as opened:
        return verify(opened).verdict


def test_a_run_with_an_artifact_verifies_and_a_changed_byte_is_found(run: Path) -> None:
    add(run, iteration("1"))
    add(run, iteration("2"))
    assert verified(run) is Finding.INTACT
    artifact = run / ARTIFACT_NAME
    artifact.write_bytes(artifact.read_bytes().replace(b'"end_ns":1000', b'"end_ns":1001', 1))
    assert verified(run) is Finding.CHANGED


def test_a_session_more_is_listed_in_the_envelope(run: Path) -> None:
    other = context(session_id="second")
    add(run, iteration("1", context=other), session="second")
    envelope = json.loads((run / "run.json").read_text())
    assert [(row["session_id"], row["role"]) for row in envelope["sessions"]] == [
        (SESSION, "inference_capture"),
        ("second", "inference_capture"),
    ]


def test_an_artifact_beside_no_envelope_gets_one(run: Path) -> None:
    (run / "run.json").unlink()
    add(run, iteration("1"))
    envelope = json.loads((run / "run.json").read_text())
    assert (envelope["run_id"], [row["kind"] for row in envelope["attachments"]]) == (RUN, ["inference_jsonl"])


def test_an_index_that_is_gone_or_old_is_made_anew(run: Path) -> None:
    add(run, iteration("1"))
    for name in (".inference.jsonl.identities", ".inference.jsonl.index.json"):
        (run / name).unlink()
        assert add(run, iteration("1")).already_present == 3
        with pytest.raises(EvidenceError):
            add(run, iteration("1", end_ns=7))
    (run / ".inference.jsonl.identities").write_bytes(b"half of a row")
    assert add(run, iteration("1")).already_present == 3
    assert verified(run) is Finding.INTACT


def test_a_link_to_an_artifact_is_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "alias.jsonl").symlink_to(run / ARTIFACT_NAME)
    add(tmp_path / "alias.jsonl", iteration("1"))
    assert (tmp_path / "alias.jsonl").is_symlink()
    assert names(run) == ["1"]


def test_modes_are_kept(run: Path) -> None:
    for name, mode in ((ARTIFACT_NAME, 0o640), ("run.json", 0o604)):
        (run / name).chmod(mode)
    add(run, iteration("1"))
    assert [(run / name).stat().st_mode & 0o777 for name in (ARTIFACT_NAME, "run.json")] == [0o640, 0o604]


def test_ids_of_anybody_are_kept_whole(run: Path) -> None:
    hostile = ["\u202e\x1b[31m", "x" * 10_000, '"}\n{"', "\x00", "😀"]
    add(run, *(iteration(name) for name in hostile))
    assert names(run) == hostile
    assert add(run, *(iteration(name) for name in hostile)).num_written == 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP, Fault.FAIL])
def test_a_kill_at_any_operation_leaves_the_old_state_or_the_new_one(tmp_path: Path, fault: Fault) -> None:
    at, found = 0, set()
    while True:
        at += 1
        run = tmp_path / str(at)
        init(run, run_id=RUN, options=AppendOptions(files=QUICK))
        files = FaultyFiles(at=at, fault=fault)
        try:
            add(run, iteration("1"), files=files)
        except (Stopped, ParitraceError):
            files.faulty.release()
        done = add(run, iteration("2"))
        found.add(done.recovered.value)
        assert names(run) in (["2"], ["1", "2"])
        assert verified(run) is Finding.INTACT
        add(run, iteration("1"))
        assert sorted(names(run)) == ["1", "2"]
        if not files.faulty.happened:
            break
    assert at > 60
    assert found == {"nothing", "rolled_back", "rolled_forward"}


APPENDING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from tests.inference.evidence import Adapter, RUN, SESSION, iteration
from paritrace.inference.appending import append
for number in range(int(sys.argv[3])):
    adapter = Adapter([iteration(f"{sys.argv[2]}-{number:02}")])
    append(Path(sys.argv[1]), run_id=RUN, session=SESSION, engine_adapter=adapter)
"""


@pytest.mark.slow
def test_four_processes_append_fifteen_times_at_once_and_nothing_is_lost(run: Path) -> None:
    root = str(Path(__file__).parents[2])
    started = [
        subprocess.Popen([sys.executable, "-c", APPENDING, str(run), str(number), "15", root], env=os.environ)
        for number in range(4)
    ]
    assert [process.wait(timeout=300) for process in started] == [0, 0, 0, 0]
    found = names(run)
    assert len(found) == len(set(found)) == 60
    for number in range(4):
        own = [name for name in found if name.startswith(f"{number}-")]
        assert own == sorted(own)
    assert verified(run) is Finding.INTACT


def test_a_claimed_and_an_unclaimed_activity_are_both_kept(run: Path) -> None:
    done = add(run, iteration("1"), claim("c", "1", context=ENGINE), kernel("k", context=ENGINE))
    assert done.written == {"activity": 2, "capabilities": 2, "iteration": 1}
