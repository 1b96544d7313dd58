"""B-01 to B-22: traces as they are found, from the file to what the commands say of it (IN-10, IN-11, IN-19)."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.generated_trace import write as write_large
from paritrace.cli.entry import paritrace
from paritrace.evidence.ids import Ref
from paritrace.files import LOCAL
from paritrace.inference.artifact import Events, place_of
from paritrace.inference.records import Activity, ClockAlignment
from paritrace.reports.formats import Cut
from paritrace.reports.inference.trace_file import TraceFile, write_trace_file
from paritrace.reports.traces.verifying import read_back
from tests.inference.importers.kineto_reading import annotation, kernel, launch, written
from tests.inference.importers.test_nsys import KERNEL, RUNTIME, export
from tests.inference.importers.test_nsys import kernel as nsys_kernel
from tests.inference.importers.test_nsys import launch as nsys_launch

WORK = json.dumps(kernel(correlation=7))
WITHIN_SECONDS = 300.0


def document(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(paritrace, [*arguments, "--json"], catch_exceptions=False, standalone_mode=False)
    found: dict[str, Any] = json.loads(done.output)
    return found


def imported(folder: Path, trace: Path | str | bytes, *, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """What `infer import` says of a trace; its text may be given in its place. The run is `folder/run`."""
    if not isinstance(trace, Path):
        text, trace = trace, folder / "trace.json"
        trace.write_bytes(text if isinstance(text, bytes) else text.encode())
    run = folder / "run"
    if not run.exists():
        document("infer", "init", str(run))
    named = [word for option in options for word in ("--with", option)]
    return document("infer", "import", "trace", str(trace), "--run", str(run), *named)


def activities(folder: Path) -> list[Activity]:
    return [one for one in Events(place_of(folder / "run")) if isinstance(one, Activity)]


def invariants(trace: Path) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in document("check", str(trace))["invariants"]}


def drawn(folder: Path) -> TraceFile:
    return write_trace_file(folder / "run", folder / "drawn.pftrace", cut=Cut(), files=LOCAL)


def test_b01_a_control_byte_ends_the_reading_where_it_stands_and_the_file_is_registered_as_it_is(
    tmp_path: Path,
) -> None:
    text = b'{"traceEvents":[' + WORK.encode() + b',{"ph":"X","name":"\x01<module>","ts":1,"dur":1,"pid":1,"tid":1}]}'
    told = imported(tmp_path, text)
    assert (told["complete"], told["counts"]["events"]) == (False, 1)
    assert any("raw control character" in one and "1 events before" in one for one in told["limits"])
    (attachment,) = [
        one
        for one in json.loads((tmp_path / "run" / "run.json").read_text())["attachments"]
        if one["kind"] == "profiler_trace"
    ]
    assert attachment["sha256"] == hashlib.sha256(text).hexdigest()


def test_b03_a_lower_case_nan_is_no_value_and_no_zero(tmp_path: Path) -> None:
    counter = '{"ph":"C","name":"finance","pid":1,"ts":1,"args":{"value":nan}}'
    told = imported(tmp_path, f'{{"traceEvents":[{WORK},{counter}]}}')
    assert (told["complete"], told["counts"]["values_not_a_number"], told["counts"]["events"]) == (True, 1, 2)


def test_b04_a_text_that_ends_in_backslashes_is_read(tmp_path: Path) -> None:
    odd = r'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"v":"value\\\\"}}'
    told = imported(tmp_path, f'{{"traceEvents":[{odd},{WORK}]}}')
    assert (told["complete"], told["counts"]["device"]) == (True, 1)


@pytest.mark.parametrize("text", ["[\n%s,\n", '{"traceEvents":[%s', '{"traceEvents":[%s,]}', "[%s,]"])
def test_b06_a_trace_without_its_end_gives_what_it_has_and_is_never_complete(tmp_path: Path, text: str) -> None:
    told = imported(tmp_path, text % WORK)
    assert (told["complete"], told["counts"]["device"], told["written"]["activity"]) == (False, 1, 1)
    assert any("ends in the middle" in one or "a comma stands behind the last event" in one for one in told["limits"])


def test_b08_ids_beyond_64_bits_stay_two(tmp_path: Path) -> None:
    ids = (18446744073709551616, 18446744073709551617)
    assert float(ids[0]) == float(ids[1])
    events = [launch(ids[0]), launch(ids[1], ts=60), *(kernel(correlation=one) for one in ids)]
    events += [annotation("ProfilerStep#0", ts=40, dur=18), annotation("ProfilerStep#1", ts=58, dur=20)]
    imported(tmp_path, written(tmp_path, events))
    work = [one for one in activities(tmp_path) if one.domain == "gpu"]
    assert [one.cuda_correlation_id for one in work] == [str(one) for one in ids]
    account = document("infer", "account", str(tmp_path / "run"))
    assert [sum(work["activities"] for work in one["work"]) for one in account["iterations"]] == [1, 1]


def test_b09_one_launch_of_a_graph_has_all_its_kernels(tmp_path: Path) -> None:
    kernels = [kernel(name, ts=100 + 20 * place, correlation=7) for place, name in enumerate("abc")]
    trace = written(tmp_path, [annotation("ProfilerStep#0", ts=40, dur=100), launch(7), *kernels])
    assert imported(tmp_path, trace)["counts"]["launches_repeated"] == 0
    linked = document("infer", "link", str(tmp_path / "run"))
    assert (linked["gpu"]["activities"], linked["gpu"]["linked"]) == (3, 3)
    (iteration,) = document("infer", "account", str(tmp_path / "run"))["iterations"]
    assert [(one["activities"], one["busy_ns"]) for one in iteration["work"]] == [(3, 30_000)]


def test_b10_work_without_a_launch_record_is_counted_and_given_to_nobody(tmp_path: Path) -> None:
    kernels = [kernel("of the launch", correlation=7), kernel("of none", ts=101, correlation=9)]
    trace = written(tmp_path, [annotation("ProfilerStep#0", ts=40, dur=100), launch(7), *kernels])
    imported(tmp_path, trace)
    linked = document("infer", "link", str(tmp_path / "run"))["gpu"]
    assert (linked["by_reason"], linked["linked_fraction"]) == ({"no_launch_record": 1}, 0.5)
    (device,) = document("infer", "account", str(tmp_path / "run"))["devices"]
    assert (device["activities"], device["unlinked"], device["summed_ns"]) == (2, 1, 20_000)
    found = invariants(trace)["device.has_launch"]
    assert (found["status"], found["evidence"]["facts"]) == ("fail", ["1 of 2 pieces of device work"])


@pytest.mark.parametrize("sentinel", [0, -1, 2**32 - 1, None, ""])
def test_b11_what_is_no_id_joins_nothing(tmp_path: Path, sentinel: object) -> None:
    events = [annotation("ProfilerStep#0", ts=40, dur=100), launch(sentinel)]
    imported(tmp_path, written(tmp_path, [*events, *(kernel(correlation=sentinel) for _ in range(5))]))
    linked = document("infer", "link", str(tmp_path / "run"))["gpu"]
    assert linked["linked"] == 0
    assert set(linked["by_reason"]) <= {"sentinel", "no_key"}
    assert sum(linked["by_reason"].values()) == 5


def test_b13_work_at_time_0_makes_no_trace_of_fifty_years(tmp_path: Path) -> None:
    events = [kernel("timed", ts=1.6e15), kernel("not", ts=0, dur=0), kernel("later", ts=1.6e15 + 1.2e6, dur=0.5)]
    told = imported(tmp_path, written(tmp_path, events))
    assert told["counts"]["time:at_zero"] == 1
    (device,) = document("infer", "account", str(tmp_path / "run"))["devices"]
    assert (device["unmeasured"], device["busy_ns"], device["activities"]) == (1, 10_500, 3)
    assert drawn(tmp_path).left_out == {"no_duration_recorded": 1}
    (part,) = read_back(tmp_path / "drawn.pftrace", files=LOCAL)
    assert part.summed_ns == 10_500


@pytest.mark.parametrize(("ts", "dur"), [(100, -1), (1615207264504915, -1615207264504915)])
def test_b15_what_is_unfinished_has_no_end(tmp_path: Path, ts: int, dur: int) -> None:
    told = imported(tmp_path, written(tmp_path, [kernel("whole"), kernel("unfinished", ts=ts, dur=dur)]))
    assert told["counts"]["time:unfinished"] == 1
    (one,) = [one for one in activities(tmp_path) if one.name == "unfinished"]
    assert (one.start_ns, one.end_ns) == (ts * 1000, None)
    (device,) = document("infer", "account", str(tmp_path / "run"))["devices"]
    assert (device["unmeasured"], device["busy_ns"]) == (1, 10_000)


def test_b16_annotations_without_a_record_of_the_device_are_counted_from_both_sides(tmp_path: Path) -> None:
    here = [annotation("step", ts=100 * place, dur=90) for place in range(1, 51)]
    there = [annotation("step", ts=100 * place, dur=90, cat="gpu_user_annotation") for place in range(14, 51)]
    loss = "INFO: Record counts: Out-of-range = 13, Blocklisted runtime = 0, CUPTI stopped early? = 0"
    trace = written(tmp_path, [*here, *there, kernel()], INFO=[loss])
    found = invariants(trace)
    missing = found["annotations.on_device"]
    told = ["13 of 50 annotations whose name has a record of the device elsewhere"]
    assert (missing["status"], missing["evidence"]["facts"]) == ("fail", told)
    assert found["trace.no_loss"]["status"] == "fail"
    imported(tmp_path, trace)
    lost = {one["what"]: one["count"] for one in document("infer", "account", str(tmp_path / "run"))["loss"]}
    assert 13 in lost.values()


def test_b17_times_are_whole_nanoseconds_and_two_traces_meet_by_their_base_times_alone(tmp_path: Path) -> None:
    bases = (1_712_000_000_000_000_000, 1_712_000_000_001_600_000)
    assert 1672924880617000.123 == 1672924880617000.0 + 0.125  # what a float makes of it
    text = WORK.replace("100", "1672924880617000.123")
    for name, base in zip("ab", bases, strict=True):
        (tmp_path / f"{name}.json").write_text(f'{{"baseTimeNanoseconds":{base},"traceEvents":[{text}]}}')
        imported(tmp_path, tmp_path / f"{name}.json", options=("host=here",))
    assert {one.start_ns for one in activities(tmp_path)} == {1_672_924_880_617_000_123}
    (clocks,) = drawn(tmp_path).time_lines
    assert len(clocks) == 2
    offsets = [one.offset_ns for one in Events(place_of(tmp_path / "run")) if isinstance(one, ClockAlignment)]
    assert abs(offsets[0] - offsets[1]) == 1_600_000
    zeros = {int(part.facts["zero_ns"]) for part in read_back(tmp_path / "drawn.pftrace", files=LOCAL)}
    assert max(zeros) - min(zeros) == 1_600_000


def test_b17_a_trace_without_a_base_time_is_not_laid_over_another(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"baseTimeNanoseconds":1712000000000000000,"traceEvents":[{WORK}]}}')
    (tmp_path / "b.json").write_text(f'{{"traceEvents":[{WORK}]}}')
    told = [imported(tmp_path, tmp_path / f"{name}.json", options=("host=here",)) for name in "ab"]
    assert any("no common time base with other traces" in one for one in told[1]["limits"])
    assert len(drawn(tmp_path).time_lines) == 2


def test_b19_ranks_of_one_pid_stay_two_and_overlapping_work_is_kept(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / str(rank)).mkdir()
        events = [
            annotation("ProfilerStep#0", ts=40, dur=100),
            launch(7),
            kernel("first", ts=100, dur=30, correlation=7),
            kernel("beside it", ts=110, dur=40, correlation=7),
        ]
        world = {"rank": rank, "world_size": 2}
        imported(tmp_path, written(tmp_path / str(rank), events, distributedInfo=world, host_name="here"))
    linked = document("infer", "link", str(tmp_path / "run"))["gpu"]
    assert (linked["activities"], linked["linked"]) == (4, 4)
    refs = {one.activity_ref for one in activities(tmp_path)}
    assert len(refs) == 6
    assert all(isinstance(one, Ref) for one in refs)
    shown = drawn(tmp_path)
    parts = read_back(tmp_path / "drawn.pftrace", files=LOCAL)
    of_ranks = {rank: sum(part.slices for part in parts if part.facts["rank"] == rank) for rank in ("0", "1")}
    assert of_ranks == {"0": 4, "1": 4}  # a range, a launch and both kernels of each
    assert sum(part.summed_ns for part in parts) == 2 * (100_000 + 5_000 + 30_000 + 40_000)
    assert (shown.arrows, shown.left_out) == (0, {})


def test_b21_a_table_that_is_not_there_is_not_one_without_rows(tmp_path: Path) -> None:
    recorded = export(tmp_path, {RUNTIME: [nsys_launch()], "StringIds": [{"id": 1, "value": "cudaLaunchKernel"}]})
    empty = export(tmp_path, {RUNTIME: [nsys_launch()], KERNEL: []}, name="b.sqlite")
    assert any(one.startswith("kernels: not recorded") for one in imported(tmp_path, recorded)["limits"])
    assert any(one.startswith("kernels: 0 (recorded") for one in imported(tmp_path, empty)["limits"])
    assert activities(tmp_path) == []  # a call of the host is no work of a device


def test_b21_of_several_versions_of_a_table_the_highest_number_is_read(tmp_path: Path) -> None:
    versions = {f"NVTX_EVENTS_V{number}": [{"start": 1, "end": 9, "text": f"v{number}"}] for number in (3, 10)}
    told = imported(tmp_path, export(tmp_path, {KERNEL: [nsys_kernel()], **versions}))
    assert any("NVTX_EVENTS_V10" in one for one in told["limits"])
    assert not any("NVTX_EVENTS_V3" in one for one in told["limits"])


_IMPORT = """
import resource, sys
from pathlib import Path
from paritrace.inference.trace_reading import read_trace
read = read_trace(Path(sys.argv[1]))
print(len(read.facts.work["id"]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_b22_memory_does_not_grow_with_the_text_of_a_trace(tmp_path: Path) -> None:
    peaks: list[int] = []
    for megabytes in (10, 110):
        kernels = write_large(tmp_path / "large.json", num_bytes=megabytes << 20)
        command = [sys.executable, "-c", _IMPORT, str(tmp_path / "large.json")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_SECONDS, check=True)
        found, kilobytes = done.stdout.split()
        assert int(found) == kernels
        peaks.append(int(kilobytes))
    assert peaks[1] - peaks[0] < 40 << 10  # 100 MB more of text; columns of numbers are kept of it
