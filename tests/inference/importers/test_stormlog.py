"""Stormlog artifacts of schema 1 to 4, and the published package as an oracle where it is installed (IN-4)."""

import json
from pathlib import Path
from typing import Any

import pytest

from paritrace.inference.appending import AppendOptions, append_import, init
from paritrace.inference.importers.stormlog import STORMLOG
from paritrace.inference.importing import Account, Asked, Scope
from paritrace.inference.records import Activity, ClockAlignment, Loss, Membership, Observation, Request
from paritrace.testing.faults import Fault, FaultyFiles

CONTEXT: dict[str, Any] = {
    "run_id": "theirs",
    "session_id": "one",
    "producer_id": "engine",
    "source": "test",
    "clock_domain": "h/b/monotonic_ns",
    "clock_kind": "monotonic",
    "collection_mode": "active",
    "provenance": "observed",
    "host": "h",
    "pid": 7,
}
REQUEST, ITERATION = {"producer_id": "client", "id": "r"}, {"producer_id": "engine", "id": "i"}
ACTIVITY: dict[str, Any] = {
    "activity_ref": {"producer_id": "cupti", "id": "a"},
    "activity_kind": "kernel",
    "activity_domain": "gpu",
    "attribution_status": "unresolved",
    "runtime_correlation_id": 5,
    "stream_id": 7,
    "start_ns": 100,
    "end_ns": 200,
    "trace_attachment_id": "kineto:x",
}


def row(kind: str, event_id: str, version: int = 2, **fields: Any) -> dict[str, Any]:
    metadata = fields.pop("metadata", {})
    return {
        "schema_version": version,
        "event_type": f"infer.{kind}",
        "context": CONTEXT,
        "event_id": event_id,
        "metadata": metadata,
        **fields,
    }


ROWS: list[dict[str, Any]] = [
    {"event_type": "infer.session", "session_id": "one"},
    {"schema_version": 1, "event_type": "infer.request", "ttft_ms": 3},
    row("artifact", "id", artifact_kind="capture", created_at_ns=1),
    row("request", "r", request_ref=REQUEST, start_ns=1, end_ns=None, status="ok"),
    row("iteration", "i", iteration_ref=ITERATION, start_ns=1, end_ns=5),
    row("stage", "s", stage_ref={"producer_id": "engine", "id": "s"}, name="prefill", iteration_ref=ITERATION),
    row("membership", "m", request_ref=REQUEST, iteration_ref=ITERATION, role="decode", output_tokens=3),
    row("activity_ref", "a", **ACTIVITY),
    row(
        "activity_ref",
        "b",
        3,
        **(ACTIVITY | {"activity_ref": {"producer_id": "cupti", "id": "b"}}),
        metadata={"intervals": [[0, 10], [20, 5]]},
    ),
    row("capabilities", "c", component="engine", available=True, supported=["x"], enabled=["x"], collected=[]),
    row(
        "clock_alignment",
        "k",
        from_clock_domain="a",
        to_clock_domain="b",
        offset_ns=-3,
        uncertainty_ns=1,
        valid_from_ns=0,
        valid_to_ns=10,
    ),
    {"schema_version": 4, "event_type": "infer.context", "context_id": "ctx-1", "context": CONTEXT},
    {
        "schema_version": 4,
        "event_type": "infer.iteration",
        "context_id": "ctx-1",
        "event_id": "i4",
        "metadata": {},
        "iteration_ref": {"producer_id": "engine", "id": "i4"},
    },
]


def written(folder: Path, rows: list[dict[str, Any]], more: str = "") -> Path:
    path = folder / "artifact.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows) + more)
    return path


def imported(path: Path, scope: Scope = Scope("theirs", "one")) -> tuple[list[Observation], Account]:  # noqa: B008  frozen
    assert STORMLOG.recognises(path)
    events, source = [], STORMLOG.open(Asked(path, scope)).events
    while True:
        try:
            events.append(next(source))
        except StopIteration as ended:
            account: Account = ended.value
            return events, account


def test_every_schema_is_read_and_what_it_means_is_kept(tmp_path: Path) -> None:
    events, account = imported(written(tmp_path, ROWS))
    assert account.complete
    assert account.counts == {
        "activity": 2,
        "capabilities": 1,
        "clock_alignment": 1,
        "iteration": 2,
        "membership": 1,
        "not_imported:infer.artifact": 1,
        "not_imported:infer.request": 1,
        "not_imported:infer.session": 1,
        "request": 1,
        "stage": 1,
    }
    plain, fine = (one for one in events if isinstance(one, Activity))
    assert (plain.runtime_correlation_id, plain.stream_id, plain.trace_attachment_id) == ("5", "7", None)
    assert (fine.intervals, fine.metadata) == (((0, 10), (20, 5)), {"stormlog_trace_attachment_id": "kineto:x"})
    (alignment,) = [one for one in events if isinstance(one, ClockAlignment)]
    assert (alignment.valid_from_ns, alignment.valid_to_ns) == (0, 9)
    (membership,) = [one for one in events if isinstance(one, Membership)]
    assert (membership.tokens, membership.metadata) == (3, {"tokens": {"output_tokens": 3}})


def test_another_run_keeps_its_name_in_metadata(tmp_path: Path) -> None:
    events, _ = imported(written(tmp_path, ROWS), Scope("ours", "two"))
    (request,) = [one for one in events if isinstance(one, Request)]
    assert (request.context.facts.run_id, request.event_id) == ("ours", "theirs:one:r")
    assert request.metadata["stormlog"] == {"run_id": "theirs", "session_id": "one"}


BAD = {
    "a version nobody knows": row("iteration", "x", 5, iteration_ref=ITERATION),
    "intervals in schema 2": row("activity_ref", "x", **ACTIVITY, metadata={"intervals": [[0, 1]]}),
    "schema 3 without intervals": row("activity_ref", "x", 3, **ACTIVITY),
    "an unknown field": row("iteration", "x", iteration_ref=ITERATION, colour=1),
    "an end before its start": row("iteration", "x", iteration_ref=ITERATION, start_ns=2, end_ns=1),
    "a context nobody defined": {
        "schema_version": 4,
        "event_type": "infer.iteration",
        "context_id": "ctx-9",
        "event_id": "x",
    },
    "a boolean for a number": row("iteration", "x", iteration_ref=ITERATION, start_ns=True),
}


@pytest.mark.parametrize("what", BAD)
def test_a_row_that_does_not_hold_is_a_loss_with_its_line(tmp_path: Path, what: str) -> None:
    events, account = imported(written(tmp_path, [*ROWS, BAD[what]]))
    (loss,) = [one for one in events if isinstance(one, Loss)]
    assert (account.complete, account.counts["lines_not_read"], loss.metadata["line"]) == (False, 1, len(ROWS) + 1)


def test_a_torn_last_line_is_a_loss(tmp_path: Path) -> None:
    events, account = imported(written(tmp_path, ROWS, '{"schema_version": 2, "event_'))
    assert not account.complete
    assert [one.reason for one in events if isinstance(one, Loss)] == ["truncated"]


def test_an_import_is_there_once(tmp_path: Path) -> None:
    options = AppendOptions(files=FaultyFiles(at=0, fault=Fault.STOP))
    init(tmp_path / "run", run_id="ours", options=options)
    path = written(tmp_path, ROWS)
    done = []
    for _ in range(2):
        source = STORMLOG.open(Asked(path, Scope("ours", "inference")))
        done.append(
            append_import(
                tmp_path / "run",
                source,
                component="import:stormlog",
                run_id="ours",
                session="inference",
                options=options,
            )
        )
    assert [one.committed.num_written for one in done] == [10, 0]


def test_the_published_package_reads_the_same_events(tmp_path: Path) -> None:
    codec = pytest.importorskip("stormlog.infer.correlation_codec")
    path = written(tmp_path, ROWS)
    theirs = [one for _, one in codec.iter_inference_events(path)]
    correlated = [one for one in theirs if not hasattr(one, "raw") and one.EVENT_TYPE != "infer.artifact"]
    ours, _ = imported(path)
    assert [one.event_id for one in ours] == [one.event_id for one in correlated]
    for mine, other in zip(ours, correlated, strict=True):
        assert mine.context.facts.clock_domain == other.context.clock_domain
        for name in ("start_ns", "end_ns", "status", "offset_ns", "role", "component"):
            assert getattr(mine, name, None) == getattr(other, name, None)
        for name in ("runtime_correlation_id", "stream_id"):
            number = getattr(other, name, None)
            assert getattr(mine, name, None) == (None if number is None else str(number))
