"""Hosts and recorders: kinds, states, typed errors, order, two callers, storage that fails (RR-1 to RR-10)."""

import errno
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from paritrace.errors import ParitraceError, RequestError
from paritrace.files import Files, Primitives
from paritrace.process.adapter_protocol import ResultStatus
from paritrace.process.cgroup_evidence import Exclusivity
from paritrace.process.kernel_log import KernelLog
from paritrace.process.resources import ResourceObservationUnavailable
from paritrace.process.stop_facts import Exited, Signalled, StopCause, StopReason
from paritrace.runs.adapters import HostState, HttpAdapter, InvocationError, NativePlugin, ProcessAdapter, PythonAdapter
from paritrace.runs.host import Host
from paritrace.runs.reading import open_run
from paritrace.runs.record_ends import End
from paritrace.runs.record_reading import ReadRecord, RecordState, read_records
from paritrace.runs.recorder import Recorder
from paritrace.runs.recording import RECORD_WRITE_FAILED
from paritrace.runs.verify import Finding, verify
from paritrace.testing.faults import Fault, FaultyPrimitives
from tests.runs.hosting import ADAPTER, ScriptedCgroups


def the_end(root: Path) -> End:
    (read,) = read_records(root)
    assert (read.state, read.problems) == (RecordState.COMPLETE, ())
    assert read.end is not None
    return read.end


def test_a_result_comes_back_and_its_record_has_no_input_and_no_output(tmp_path: Path) -> None:
    with Host(ADAPTER, artifacts=tmp_path, recorder=Recorder()) as host:
        assert (host.state, host.runtime_id) == (HostState.READY, host.runtime_id)
        result = host.invoke("request-1", input={"do": "echo", "x": [1, None]}, timeout_seconds=60)
    assert host.state.value == "gone"
    assert (result.status, result.output, result.error, result.events) == (
        ResultStatus.SUCCEEDED,
        {"do": "echo", "x": [1, None]},
        None,
        (),
    )
    end = the_end(tmp_path)
    assert (end.stop, end.request_id, end.runtime_id) == (None, "request-1", host.runtime_id)
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (3, None), "null is unknown, never zero"
    assert end.resources is not None
    assert end.resources.process_count == 1
    with open_run(tmp_path) as run:
        assert verify(run).verdict is Finding.INTACT
        ids = [row.attachment_id for row in run.envelope.attachments if row.kind.value == "run_record"]
    assert ids == [f"run_record:{host.runtime_id}/{result.invocation_id}"]


@pytest.mark.parametrize(
    ("given", "cause", "code"),
    [
        ({"do": "fail", "message": "m"}, StopCause.AGENT_FAILED, None),
        ({"do": "cancel"}, StopCause.UNCLASSIFIED, None),
        ({"do": "raise", "message": "m"}, StopCause.RUNNER_FAILED, "adapter_raised"),
        ({"do": "exit", "code": 0}, StopCause.UNCLASSIFIED, "host_crashed"),
        ({"do": "kill"}, StopCause.UNCLASSIFIED, "host_crashed"),
        ({"do": "chatter"}, StopCause.RUNNER_FAILED, "protocol_error"),
        ({"do": "other"}, StopCause.RUNNER_FAILED, "protocol_error"),
        ({"do": "lie"}, StopCause.RUNNER_FAILED, "protocol_error"),
    ],
)
def test_every_end_has_its_cause(tmp_path: Path, given: dict[str, Any], cause: StopCause, code: str | None) -> None:
    with Host(ADAPTER, artifacts=tmp_path, recorder=Recorder()) as host:
        if code is None:
            host.invoke(input=given)
        else:
            with pytest.raises(InvocationError) as raised:
                host.invoke(input=given)
            assert raised.value.code == code
    end = the_end(tmp_path)
    assert end.stop is not None
    assert end.stop.cause is cause
    assert (None if end.error is None else end.error.code) == code
    if code == "host_crashed":
        assert end.facts.wait == (Signalled(9) if given["do"] == "kill" else Exited(0))
    assert "memory" not in str(end.stop)


def test_a_timeout_ends_the_host_and_what_follows_is_refused(tmp_path: Path) -> None:
    with Host(ADAPTER, artifacts=tmp_path, recorder=Recorder()) as host:
        with pytest.raises(InvocationError) as raised:
            host.invoke(input={"do": "hang", "deaf": False}, timeout_seconds=0.3)
        assert (raised.value.code, raised.value.retryable) == ("host_timeout", True)
        assert host.state is HostState.GONE
        with pytest.raises(InvocationError, match="gone") as again:
            host.invoke(input={"do": "echo"})
        assert again.value.code == "host_unavailable"
    end = the_end(tmp_path)
    assert end.stop is not None
    assert (end.stop.cause, end.stop.reason, end.stop.force_stopped) == (
        StopCause.AGENT_EXHAUSTED_BUDGET,
        StopReason.TIMEOUT,
        False,
    )
    assert end.resources is not None, "read under the lock, before the host was stopped (RS-11)"


@pytest.mark.slow
def test_a_host_that_is_deaf_is_killed_after_the_grace(tmp_path: Path) -> None:
    with Host(ADAPTER, artifacts=tmp_path, recorder=Recorder()) as host, pytest.raises(InvocationError):
        host.invoke(input={"do": "hang", "deaf": True}, timeout_seconds=0.3)
    end = the_end(tmp_path)
    assert end.stop is not None
    assert (end.stop.force_stopped, end.stop.exit) == (True, Signalled(9))
    assert end.facts.victims == ()


def test_a_python_adapter_keeps_its_prints_out_of_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "adapting.py").write_text(
        "def agent(input, context, overrides, deadline_seconds):\n"
        "    print('chatter')\n"
        "    if input == 'fail':\n"
        "        return {'status': 'failed', 'error': {'code': 'c', 'message': 'm'}}\n"
        "    if input == 'junk':\n"
        "        return {'status': 'succeeded', 'output': object()}\n"
        "    if input == 'nan':\n"
        "        return {'loss': [1.0, {'last': float('nan')}]}\n"
        "    if input == 'cost':\n"
        "        return {'status': 'succeeded', 'usage': {'cost': float('inf')}}\n"
        "    return {'got': input, 'left': deadline_seconds, 'task': context['task']}\n"
    )
    path = os.pathsep.join((str(tmp_path), *sys.path))
    adapter = PythonAdapter("adapting:agent", environment={"PYTHONPATH": path})
    with Host(adapter) as host:
        good = host.invoke(input=7, context={"task": "t"}, timeout_seconds=60)
        with pytest.raises(InvocationError) as raised:
            host.invoke(input="junk", context={"task": "t"})
        for what in ("nan", "cost"):
            with pytest.raises(InvocationError, match="NaN or infinity") as lost:
                host.invoke(input=what, context={"task": "t"})
            assert lost.value.code == "adapter_raised", "it would arrive as null, which is another value"
        bad = host.invoke(input="fail", context={"task": "t"})
    assert raised.value.code == "adapter_raised", "an output that is no JSON does not end the process"
    assert good.output == {"got": 7, "left": 60.0, "task": "t"}
    assert bad.error is not None
    assert (bad.status, bad.error.code) == (ResultStatus.FAILED, "c")


def test_planning_refuses_what_cannot_be_recorded(tmp_path: Path) -> None:
    refusals: tuple[tuple[Callable[[], Host], str], ...] = (
        (lambda: Host(ADAPTER, recorder=Recorder()), "no_artifact_root"),
        (lambda: Host(ADAPTER, artifacts=tmp_path, recorder=Recorder(), environment="docker"), "not_local"),
        (lambda: Host(HttpAdapter("http://x"), artifacts=tmp_path, recorder=Recorder()), "unsupported_adapter"),
        (lambda: Host(NativePlugin("x.so")), "unsupported_adapter"),
    )
    for made, code in refusals:
        with pytest.raises(RequestError) as refused:
            made()
        assert refused.value.code == code


def test_rr_9_an_artifact_root_alone_records_nothing_but_what_was_begun(tmp_path: Path) -> None:
    with Host(ADAPTER, artifacts=tmp_path) as host:
        result = host.invoke("r", input={"do": "echo", "secret": "s3cr3t"}, timeout_seconds=60)
    (read,) = read_records(tmp_path)
    assert (read.state, read.start, read.end) == (RecordState.INTERRUPTED, None, None)
    assert read.invocation is not None
    assert (read.invocation.request_id, read.invocation.invocation_id) == ("r", result.invocation_id)
    assert "s3cr3t" not in "".join(path.read_text() for path in tmp_path.rglob("*.json*"))


def test_snapshots_are_refused_by_type_when_there_is_nothing_to_read(tmp_path: Path) -> None:
    host = Host(ADAPTER)
    with pytest.raises(ResourceObservationUnavailable):
        host.resource_snapshot()
    with host:
        snapshot = host.resource_snapshot()
        assert (snapshot.process_count, snapshot.subject) == (1, host.runtime_id)
    with pytest.raises(ResourceObservationUnavailable):
        host.resource_snapshot()


def test_a_live_snapshot_does_not_wait_for_an_invocation(tmp_path: Path) -> None:
    with Host(ADAPTER) as host:
        failed: list[str] = []

        def call() -> None:
            with pytest.raises(InvocationError) as raised:
                host.invoke(input={"do": "hang", "deaf": False}, timeout_seconds=1)
            failed.append(raised.value.code)

        caller = threading.Thread(target=call)
        caller.start()
        until = time.monotonic() + 60
        while host.state is not HostState.BUSY and time.monotonic() < until:
            time.sleep(0.001)
        assert host.resource_snapshot().process_count == 1
        caller.join()
        assert failed == ["host_timeout"]


def recorder(tmp_path: Path, log: list[str], **settings: Any) -> Recorder:
    made = Recorder(**settings)
    made.cgroups = ScriptedCgroups(tmp_path / "counter", log)
    made.log = KernelLog("/nowhere")
    return made


class Told(Primitives):
    """Names every operation on the record and the invocation file, in order."""

    def __init__(self, log: list[str]) -> None:
        self._log = log
        self._record = -1

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        if path.name == "run-record.jsonl" and flags & 1:
            self._log.append("create")
            self._record = fd
        return fd

    def write(self, fd: int, data: memoryview) -> int:
        if fd == self._record:
            self._log.append("start line" if b'"line":"start"' in bytes(data) else "end line")
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        if fd == self._record:
            self._log.append("sync")
            self._record = -1
        super().fsync(fd)

    def rename(self, source: Path, target: Path) -> None:
        if target.name == "invocation.json":
            self._log.append("invocation file")
        super().rename(source, target)


def test_rr_3_the_order_of_a_record_is_exact(tmp_path: Path) -> None:
    log: list[str] = []
    made = recorder(tmp_path, log)
    made.files = Files(Told(log))
    with Host(ADAPTER, artifacts=tmp_path / "run", recorder=made) as host:
        host.invoke(input={"do": "echo"}, timeout_seconds=60)
        assert log == ["count", "create", "start line", "invocation file", "count", "end line", "sync"]
        del log[:]
        with pytest.raises(InvocationError):
            host.invoke(input={"do": "kill"}, timeout_seconds=60)
    crashed = ["count", "create", "start line", "invocation file", "count", "count", "end line", "sync"]
    assert log == crashed, "after a crash the counter is read again once the exit was seen"


def test_of_two_reads_after_a_crash_the_larger_stays_and_a_rise_with_a_victim_is_the_cause(tmp_path: Path) -> None:
    made = recorder(tmp_path, [], exclusive=True)
    with Host(ADAPTER, artifacts=tmp_path / "run", recorder=made) as host, pytest.raises(InvocationError):
        host.invoke(input={"do": "kill", "count": 1, "counter": str(tmp_path / "counter")})
    end = the_end(tmp_path / "run")
    assert end.stop is not None
    assert (end.stop.cause, end.stop.reason, end.stop.exit) == (
        StopCause.SANDBOX_FAILED,
        StopReason.OUT_OF_MEMORY,
        Signalled(9),
    )
    assert end.facts.exclusivity is Exclusivity.DECLARED


def test_a_stranger_in_the_cgroup_contradicts_what_was_declared(tmp_path: Path) -> None:
    made = recorder(tmp_path, [], exclusive=True)
    assert isinstance(made.cgroups, ScriptedCgroups)
    made.cgroups.strangers = frozenset({2**30})
    with Host(ADAPTER, artifacts=tmp_path / "run", recorder=made) as host, pytest.raises(InvocationError):
        host.invoke(input={"do": "kill", "count": 1, "counter": str(tmp_path / "counter")})
    end = the_end(tmp_path / "run")
    assert end.stop is not None
    assert (end.stop.cause, end.stop.oom_in_scope) == (
        StopCause.UNCLASSIFIED,
        "scope_not_exclusive (contradicted)",
    )


def test_two_callers_take_turns_and_a_kill_of_one_never_enters_the_others_record(tmp_path: Path) -> None:
    made = recorder(tmp_path, [], exclusive=True)
    counter = str(tmp_path / "counter")
    with Host(ADAPTER, artifacts=tmp_path / "run", recorder=made) as host:
        given = {f"good-{n}": {"do": "echo"} for n in range(4)}
        kills = {f"oom-{n}": {"do": "fail", "message": "m", "count": n + 1, "counter": counter} for n in range(4)}
        calls = [
            threading.Thread(target=host.invoke, args=(name,), kwargs={"input": asked})
            for name, asked in (given | kills).items()
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
    found = read_records(tmp_path / "run")
    reads: dict[str, ReadRecord] = {read.start.request_id: read for read in found if read.start}
    assert len(reads) == 8
    for name, read in reads.items():
        assert read.end is not None
        if name.startswith("good"):
            assert (read.end.stop, read.end.facts.rises) == (None, ())
        else:
            assert read.end.stop is not None
            assert read.end.stop.cause is StopCause.AGENT_FAILED, "a returned failure stays the agent's (SC-5)"
            assert len(read.end.facts.rises) <= 1, "counters were set in any order: each sees its own bracket alone"


def outcome(root: Path, made: Recorder, do: str) -> tuple[tuple[object, ...], tuple[str, ...]]:
    with Host(ADAPTER, artifacts=root, recorder=made) as host:
        try:
            result = host.invoke("r", input={"do": do, "message": "m"}, timeout_seconds=60)
        except InvocationError as error:
            return (error.code, error.message, error.stage, error.retryable), tuple(e.kind for e in error.events)
    return (result.status, result.output, result.error, result.usage), tuple(e.kind for e in result.events)


class Failing(Told):
    """Fails one operation on the record by its name."""

    def __init__(self, what: str) -> None:
        super().__init__([])
        self._what = what

    def _fail(self, what: str) -> None:
        if what == self._what:
            raise OSError(errno.EIO, "planted")

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == "run-record.jsonl" and flags & 1:
            self._fail("create")
        return super().open(path, flags, mode)

    def write(self, fd: int, data: memoryview) -> int:
        if fd == self._record:
            self._fail("start line" if b'"line":"start"' in bytes(data) else "end line")
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        if fd == self._record:
            self._fail("sync")
        super().fsync(fd)


@pytest.mark.parametrize("do", ["echo", "fail", "raise"])
@pytest.mark.parametrize("what", ["create", "start line", "end line", "sync"])
def test_failed_storage_changes_nothing_and_adds_one_event(tmp_path: Path, do: str, what: str) -> None:
    made = Recorder()
    right, none = outcome(tmp_path / "right", made, do)
    assert none == ()
    made.files = Files(Failing(what))
    assert outcome(tmp_path / "failed", made, do) == (right, (RECORD_WRITE_FAILED,))


@pytest.mark.slow
def test_a_fault_at_any_file_operation_changes_no_result(tmp_path: Path) -> None:
    counting = Recorder()
    primitives = FaultyPrimitives(at=10**9, fault=Fault.FAIL)
    counting.files = Files(primitives)
    right, _ = outcome(tmp_path / "right", counting, "echo")
    met: set[str] = set()
    for at in range(1, primitives.count + 1):
        made = Recorder()
        made.files = Files(FaultyPrimitives(at=at, fault=Fault.FAIL, number=errno.EIO))
        got, events = outcome(tmp_path / str(at), made, "echo")
        if got[0] == "artifact_write_failed":
            met.add("invocation file")
            continue
        assert got == right
        assert events in ((), (RECORD_WRITE_FAILED,))
        met |= set(events)
    assert met == {"invocation file", RECORD_WRITE_FAILED}


def test_rr_3_slow_storage_never_shortens_the_adapters_budget(tmp_path: Path) -> None:
    slow = threading.Event()

    class Slow(Primitives):
        def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
            if path.name == "run-record.jsonl" and flags & 1:
                slow.wait(0.5)
            return super().open(path, flags, mode)

    made = Recorder()
    made.files = Files(Slow())
    with Host(ADAPTER, artifacts=tmp_path, recorder=made) as host:
        assert host.invoke(input={"do": "deadline"}, timeout_seconds=0.4).output == 0.4
    (read,) = read_records(tmp_path)
    assert read.invocation is not None
    assert read.start is not None
    assert read.invocation.started_monotonic_ns - read.start.monotonic_ns >= 400_000_000


SECRET = "s3cr3t-t0k3n"


def test_rr_2_secrets_in_every_field_never_reach_the_disk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    secrets = {"do": "echo", "prompt": SECRET}
    made = Recorder(context_keys=("task",), agent="a", models={"judge-role": "m"})
    with Host(ADAPTER, artifacts=tmp_path, recorder=made) as host:
        for given in (secrets, {"do": "fail", "message": SECRET}, {"do": "raise", "message": SECRET}):
            context = {"task": "t-1", "api-key-name": SECRET, "nested": {"x": SECRET}}
            with suppress(InvocationError):
                host.invoke(input=given, context=context, overrides={"temperature-name": SECRET})
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in written
    for name in (b"api-key-name", b"nested", b"temperature-name", b"judge-role", b"t-1"):
        assert name in written


def test_rr_11_long_values_are_cut_with_a_mark_and_names_are_whole(tmp_path: Path) -> None:
    role, key = "r" * 300, "k" * 300
    made = Recorder(models={role: "m" * 300}, context_keys=(key,), agent="é" * 300)
    with Host(ADAPTER, artifacts=tmp_path, recorder=made) as host:
        host.invoke(input={"do": "echo"}, context={key: "v" * 300, "o" * 300: 1}, overrides={"p" * 300: 1})
    (read,) = read_records(tmp_path)
    assert read.start is not None
    assert read.start.names.models == {role: "m" * 255 + "…"}
    assert read.start.context.values == {key: "v" * 255 + "…"}
    assert (read.start.context.names, read.start.context.override_names) == (("o" * 300,), ("p" * 300,))
    assert read.start.names.agent == "é" * 255 + "…"


def test_two_hosts_of_one_process_share_a_run_directory(tmp_path: Path) -> None:
    with (
        Host(ADAPTER, artifacts=tmp_path, recorder=Recorder()) as one,
        Host(ADAPTER, artifacts=tmp_path, recorder=Recorder()) as other,
    ):
        assert one.invoke(input={"do": "echo"}).events == ()
        assert other.invoke(input={"do": "echo"}).events == ()
    assert len(read_records(tmp_path)) == 2
    with open_run(tmp_path) as run:
        assert verify(run).verdict is Finding.INTACT


def test_errors_survive_a_pickle() -> None:
    with Host(ADAPTER) as host, pytest.raises(InvocationError) as raised:
        host.invoke(input={"do": "raise", "message": "m"})
    again = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(again, ParitraceError)
    assert (again.code, again.message) == (raised.value.code, raised.value.message)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "asked",
    [
        *({"timeout_seconds": bad} for bad in (float("nan"), float("inf"), -1, 0, True, "x", 1e12)),
        {"request_id": "../x"},
        {"input": object()},
        {"input": CYCLE},
        {"input": {"x": float("nan")}},
        {"overrides": {"x": [1.0, float("inf")]}},
        {"input": "\ud800"},
        {"context": {"a": object()}},
    ],
)
def test_rr_6_what_cannot_be_sent_is_refused_and_the_host_serves_the_next_one(
    tmp_path: Path, busy_host: Host, asked: dict[str, Any]
) -> None:
    with pytest.raises(RequestError) as refused:
        busy_host.invoke(**asked)
    assert refused.value.code in ("bad_id", "bad_invocation")
    assert busy_host.invoke(input={"do": "echo"}).status is ResultStatus.SUCCEEDED


@pytest.fixture(scope="module")
def busy_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with Host(ADAPTER, artifacts=tmp_path_factory.mktemp("run"), recorder=Recorder()) as host:
        yield host


def test_a_host_that_was_interrupted_in_the_middle_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with Host(ADAPTER) as host:
        monkeypatch.setattr("paritrace.process.adapter_process.AdapterProcess.exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            host.invoke(input={"do": "echo"})
        assert host.state is HostState.GONE
        with pytest.raises(InvocationError) as refused:
            host.invoke(input={"do": "echo"})
        assert refused.value.code == "host_unavailable"


def test_long_requests_and_answers_cost_time_by_their_length(tmp_path: Path) -> None:
    with Host(ADAPTER) as host:
        assert len(host.invoke(input={"do": "echo", "x": "y" * 20_000_000}).output["x"]) == 20_000_000


def test_a_host_that_cannot_start_says_so() -> None:
    with pytest.raises(ParitraceError) as refused:
        Host(ProcessAdapter(("/no/such/adapter",))).start()
    assert refused.value.code == "host_unavailable"
    with pytest.raises(InvocationError) as silent:
        Host(ProcessAdapter(("true",))).start()
    assert silent.value.code == "host_unavailable"
