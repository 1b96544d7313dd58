"""Exports of Nsight Systems: four statements of a table, launches by process, clocks, losses (IN-11, IN-26; B-21)."""

import gzip
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError
from paritrace.inference.importers.nsys import NSYS
from paritrace.inference.importers.nsys_diagnostics import Diagnostic, diagnosed
from paritrace.inference.importing import Account, Asked, Scope
from paritrace.inference.records import Activity, ClockAlignment, Iteration, Loss, Observation
from paritrace.inference.vocabulary import ActivityKind, Domain, LossReason, LossStatus

DATA = Path(__file__).parents[2] / "data" / "inference" / "nsys"
PID, TID = 80, 81
PROCESS, THREAD = 1 << 48 | PID << 24, 1 << 48 | PID << 24 | TID
KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"

Rows = Sequence[Mapping[str, object]]


def export(folder: Path, tables: Mapping[str, Rows], *, name: str = "a.sqlite") -> Path:
    """Returns an export with these tables; an empty table has the columns `start` and `end`."""
    path = folder / name
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, rows in tables.items():
            columns = list(rows[0]) if rows else ["start", "end"]
            connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [tuple(row.values()) for row in rows])
    return path


def imported(path: Path, **options: str) -> tuple[list[Observation], Account]:
    reading = NSYS.open(Asked(path=path, scope=Scope("run", "session"), options=options))
    events: list[Observation] = []
    while True:
        try:
            events.append(next(reading.events))
        except StopIteration as end:
            account: Account = end.value
            return events, account


def work_of(events: list[Observation], domain: Domain = Domain.GPU) -> list[Activity]:
    return [one for one in events if isinstance(one, Activity) and one.domain is domain]


def kernel(correlation: object = 7, **more: object) -> dict[str, object]:
    return {
        "start": 100,
        "end": 110,
        "deviceId": 0,
        "streamId": 7,
        "correlationId": correlation,
        "globalPid": PROCESS,
        **more,
    }


def launch(correlation: int = 7, *, thread: int = THREAD) -> dict[str, object]:
    return {"start": 50, "end": 55, "correlationId": correlation, "globalTid": thread, "nameId": 1, "eventClass": 0}


@pytest.fixture(params=["nsysai_h100_2gpu_1s", "nsysai_healthy_1pct", "nsysai_mock"])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.sqlite"
    path.write_bytes(gzip.decompress((DATA / f"{path.name}.gz").read_bytes()))
    return path


def test_real_exports_are_read_and_left_as_they_are(real: Path) -> None:
    before = real.read_bytes()
    events, account = imported(real)
    work = work_of(events)
    launches = {(one.context.facts.pid, one.cuda_correlation_id) for one in work_of(events, Domain.RUNTIME)}
    unlaunched = sum((one.context.facts.pid, one.cuda_correlation_id) not in launches for one in work)
    known = {"nsysai_h100_2gpu_1s": (4368, 2276), "nsysai_healthy_1pct": (400, 0), "nsysai_mock": (3, 0)}
    assert (len(work), unlaunched) == known[real.stem]
    assert all(one.end_ns is not None and one.device_id is not None for one in work)
    assert [one.status for one in events if isinstance(one, Loss)] == [LossStatus.NOT_REPORTED]
    assert real.read_bytes() == before
    assert [path.name for path in real.parent.iterdir()] == [real.name]
    assert account.limits


def test_diagnostics_clocks_and_uuids_of_a_real_export(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(gzip.decompress((DATA / "nsysai_mock.sqlite.gz").read_bytes()))
    events, account = imported(path)
    assert account.counts["diagnostic:CUPTI events produced"] == 43
    assert any(one.startswith("warning: CUDA device 0: Unified Memory") for one in account.limits)
    offsets = {
        one.to_clock_domain.rpartition("/")[2]: one.offset_ns for one in events if isinstance(one, ClockAlignment)
    }
    assert offsets == {"unix_epoch_ns": 1776781226557295056, "system_clock_ns": 515396806359142}
    (work, *_) = work_of(events)
    assert work.context.facts.device_uuid == "554a6988-03dd-6206-3dd1-f43fb60a3ed0"
    assert work.context.facts.source_version == "2026.1.1.204"


def test_absent_empty_unknown_and_present_are_four_statements(tmp_path: Path) -> None:
    def said(tables: Mapping[str, Rows]) -> str:
        return imported(export(tmp_path, tables))[1].limits[0]

    assert said({RUNTIME: [launch()]}) == "kernels: not recorded (the export has no such table)"
    assert said({KERNEL: []}) == f"kernels: 0 (recorded, table {KERNEL} is empty)"
    assert said({KERNEL: [{"begin": 1}]}) == f"kernels: not read (table {KERNEL} lacks start, end)"
    assert said({KERNEL: [kernel()]}) == f"kernels: 1 (table {KERNEL})"


def test_a_table_that_cannot_be_read_is_never_complete(tmp_path: Path) -> None:
    assert not imported(export(tmp_path, {KERNEL: [{"begin": 1}]}))[1].complete


def test_versions_are_numbers(tmp_path: Path) -> None:
    row: dict[str, object] = {"start": 1, "end": 2, "eventType": 59, "text": "ProfilerStep#1", "globalTid": THREAD}
    tables = {
        "NVTX_EVENTS_V3": [{**row, "text": "ProfilerStep#3"}],
        "NVTX_EVENTS_V10": [row],
        "NVTX_EVENTS": [{**row, "text": "ProfilerStep#0"}],
    }
    events, account = imported(export(tmp_path, tables))
    assert [one.anchor for one in events if isinstance(one, Iteration)] == ["ProfilerStep#1"]
    assert "NVTX ranges: 1 (table NVTX_EVENTS_V10)" in account.limits


def test_equal_correlations_of_two_processes_are_two(tmp_path: Path) -> None:
    other = THREAD + (1 << 24)
    tables = {
        KERNEL: [kernel(), kernel(globalPid=PROCESS + (1 << 24)), kernel(globalPid=PROCESS + (2 << 24))],
        RUNTIME: [launch(), launch(thread=other), launch(9)],
    }
    events, account = imported(export(tmp_path, tables))
    assert [one.context.facts.pid for one in work_of(events)] == [PID, PID + 1, PID + 2]
    assert [(one.context.facts.pid, one.thread_id) for one in work_of(events, Domain.RUNTIME)] == [
        (PID, "81"),
        (PID + 1, "81"),
    ]
    assert account.counts["launches without device work"] == 1


def test_device_work_without_a_process_is_of_the_only_one_that_launches(tmp_path: Path) -> None:
    row = {name: value for name, value in kernel().items() if name != "globalPid"}
    assert work_of(imported(export(tmp_path, {KERNEL: [row], RUNTIME: [launch()]}))[0])[0].context.facts.pid == PID
    two = {KERNEL: [row], RUNTIME: [launch(), launch(thread=THREAD + (1 << 24))]}
    assert work_of(imported(export(tmp_path, two))[0])[0].context.facts.pid is None


def test_graph_level_work_is_kept_and_without_times_where_none_were_collected(tmp_path: Path) -> None:
    rows = [kernel(graphId=3), kernel(graphId=4, start=0, end=0)]
    events, account = imported(export(tmp_path, {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": rows}))
    timed, untimed = work_of(events)
    assert (timed.kind, timed.graph_id, timed.end_ns) == (ActivityKind.GRAPH_LEVEL, "3", 110)
    assert (untimed.start_ns, untimed.metadata["time"]) == (None, "not_collected")
    assert account.counts["graphs without times"] == 1
    lost = [(one.reason, one.count) for one in events if isinstance(one, Loss)]
    assert lost == [(LossReason.NO_TIME, 1), (LossReason.UNKNOWN, None)]


def test_one_launch_of_a_graph_says_nothing_of_operations(tmp_path: Path) -> None:
    events, _ = imported(export(tmp_path, {KERNEL: [kernel(graphNodeId=5), kernel(graphNodeId=None)]}))
    assert [one.metadata.get("no_op_attribution") for one in work_of(events)] == ["graph", None]


def test_a_device_that_rows_name_twice_is_not_named(tmp_path: Path) -> None:
    devices = [{"gpuId": 0, "cudaId": 0, "pid": PID, "uuid": "a"}, {"gpuId": 1, "cudaId": 0, "pid": PID, "uuid": "b"}]
    events, _ = imported(export(tmp_path, {KERNEL: [kernel()], "TARGET_INFO_CUDA_DEVICE": devices}))
    assert work_of(events)[0].context.facts.device_uuid is None


@pytest.mark.parametrize("value", [None, "text", b"bytes", 1.5])
def test_values_of_other_types_are_unknown(tmp_path: Path, value: object) -> None:
    (work,) = work_of(imported(export(tmp_path, {KERNEL: [kernel(value, start=value, deviceId=value)]}))[0])
    assert (work.start_ns, work.end_ns, work.cuda_correlation_id) == (None, None, "")


@pytest.mark.parametrize("name", ["a%20b#c?.sqlite", "mode=rwc&x.sqlite", "☃ ;'\".sqlite"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    assert len(work_of(imported(export(tmp_path, {KERNEL: [kernel()]}, name=name))[0])) == 1
    assert os.listdir(tmp_path) == [name]


def test_a_report_is_registered_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.nsys-rep"
    path.write_bytes(b"anything")
    assert NSYS.recognises(path)
    reading = NSYS.open(Asked(path=path, scope=Scope("run", "session")))
    assert [one.path for one in reading.attachments] == [str(path)]
    (loss,), account = imported(path)
    assert isinstance(loss, Loss)
    assert loss.reason is LossReason.UNSUPPORTED
    assert not account.complete


def test_a_damaged_database_gives_what_could_be_read(tmp_path: Path) -> None:
    path = export(tmp_path, {KERNEL: [kernel(place) for place in range(2000)]})
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    path.write_bytes(bytes(data))
    events, account = imported(path)
    assert not account.complete
    assert account.limits[0].startswith("the database is damaged")
    assert 0 < len(work_of(events)) < 2000
    path.write_bytes(b"SQLite format 3\0 and nothing of it")
    with pytest.raises(EvidenceError, match="cannot be read as a database"):
        NSYS.open(Asked(path=path, scope=Scope("run", "session")))


@pytest.mark.parametrize(
    ("text", "count", "status"),
    [
        ("12 CUDA events were dropped", 12, LossStatus.REPORTED),
        ("0 events lost", 0, LossStatus.ZERO_REPORTED),
        ("Not all CUDA events might have been collected.", None, LossStatus.REPORTED),
        ("CUPTI buffers are full", None, LossStatus.REPORTED),
    ],
)
def test_diagnostics_that_tell_a_loss_are_one(text: str, count: int | None, status: LossStatus) -> None:
    found = diagnosed([Diagnostic(3, text), Diagnostic(1, "Profiling has started.")])
    assert [(one.count, one.status) for one in found.losses] == [(count, status)]
    assert found.warnings == (f"error: {text}",)
