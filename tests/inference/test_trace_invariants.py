"""What a trace says against itself (IN-26; B-01, B-10, B-11, B-13, B-15, B-16, B-17)."""

import json
from pathlib import Path

import pytest

from paritrace.evidence.digests import sha256_hex
from paritrace.inference.trace_invariants import Held, TraceInvariant, trace_invariants
from paritrace.inference.trace_reading import read_trace
from tests.inference.importers.kineto_reading import DATA, annotation, kernel, launch, written

COUNTS = "INFO: a] Record counts: Out-of-range = {}, Blocklisted runtime = 9, CUPTI stopped early? = 0"


def found(path: Path) -> dict[str, TraceInvariant]:
    read = read_trace(path)
    return {one.id: one for one in trace_invariants(read.text, read.facts)}


def of(folder: Path, events: list[dict[str, object]], **members: object) -> dict[str, TraceInvariant]:
    return found(written(folder, events, **members))


def test_a_trace_that_says_everything_holds(tmp_path: Path) -> None:
    events = [
        launch(7),
        kernel(correlation=7),
        annotation("a", ts=1, dur=90),
        annotation("a", ts=2, dur=3, cat="gpu_user_annotation"),
    ]
    assert {one.status for one in of(tmp_path, events, INFO=[COUNTS.format(0)], baseTimeNanoseconds=5).values()} == {
        Held.PASS
    }


def test_losses_are_reported_none_or_unknown(tmp_path: Path) -> None:
    lost = of(tmp_path, [], INFO=[COUNTS.format(13)])["trace.no_loss"]
    assert (lost.status, lost.total, lost.facts[0]) == (Held.FAIL, 13, "Out-of-range = 13")
    assert of(tmp_path, [], INFO=[COUNTS.format(0)])["trace.no_loss"].status is Held.PASS
    assert of(tmp_path, [])["trace.no_loss"].status is Held.NOT_CHECKABLE


def test_device_work_without_a_launch_is_counted(tmp_path: Path) -> None:
    one = of(tmp_path, [launch(7), kernel("a", correlation=7), kernel("b", correlation=9, ts=120)])["device.has_launch"]
    assert (one.status, one.names, one.facts) == (Held.FAIL, ("b",), ("1 of 2 pieces of device work",))
    assert of(tmp_path, [kernel(correlation=9)])["device.has_launch"].status is Held.NOT_CHECKABLE
    assert of(tmp_path, [launch(7)])["device.has_launch"].status is Held.NOT_APPLICABLE


def test_launches_without_device_work_are_counted_and_other_calls_are_none(tmp_path: Path) -> None:
    other = {**launch(9), "name": "cudaEventQuery"}
    one = of(tmp_path, [launch(7), launch(8, ts=60), other, kernel(correlation=7)])["launch.has_work"]
    assert (one.status, one.names) == (Held.FAIL, ("cudaLaunchKernel",))
    assert one.facts == ("1 of 2 launches, copies and sets",)
    assert of(tmp_path, [other])["launch.has_work"].status is Held.NOT_APPLICABLE
    assert of(tmp_path, [other])["launch.has_work"].reason == "it holds no device work"
    assert of(tmp_path, [kernel()])["launch.has_work"].reason == "no call that launches was recorded"


def test_sentinels_are_no_ids(tmp_path: Path) -> None:
    checked = of(tmp_path, [launch(0), *(kernel(correlation=0, ts=100 + 20 * nth) for nth in range(5))])
    assert (checked["device.ids"].status, checked["device.ids"].total) == (Held.FAIL, 5)


def test_annotations_without_their_record_of_the_device(tmp_path: Path) -> None:
    here = [annotation("step", ts=10 + 10 * nth, dur=5) for nth in range(50)]
    there = [annotation("step", ts=10 + 10 * nth, dur=5, cat="gpu_user_annotation") for nth in range(37)]
    other = annotation("load", ts=1000, dur=1)
    one = of(tmp_path, [*here, *there, other])["annotations.on_device"]
    assert (one.status, one.names) == (Held.FAIL, ("step",))
    assert one.facts == ("13 of 50 annotations whose name has a record of the device elsewhere",)
    assert of(tmp_path, here)["annotations.on_device"].status is Held.NOT_CHECKABLE
    assert of(tmp_path, [])["annotations.on_device"].status is Held.NOT_APPLICABLE


def test_events_at_time_0_are_in_no_extent(tmp_path: Path) -> None:
    zero = [{**kernel(), "ts": 0, "dur": 0}] * 3
    one = of(tmp_path, [*zero, kernel(ts=1.6e15, dur=100), launch(1, ts=1.6e15 - 1.2e6)])["times.known"]
    assert (one.status, one.total) == (Held.FAIL, 3)
    assert one.facts == (
        "3 events at time 0, which are in no extent and in no device time",
        "the others lie within 1.200 s",
    )


def test_unfinished_events_have_no_end(tmp_path: Path) -> None:
    events = [kernel(ts=10, dur=-1), kernel(ts=1615207264504915, dur=-1615207264504915), kernel(ts=10, dur=-5)]
    one = of(tmp_path, events)["times.finished"]
    assert (one.status, one.facts) == (Held.FAIL, ("2 unfinished: their end is unknown", "1 end before they begin"))


def test_events_that_cross_are_told_by_thread_and_work_that_overlaps_by_stream(tmp_path: Path) -> None:
    events = [annotation("a", ts=10, dur=10), annotation("b", ts=15, dur=10), annotation("c", ts=12, dur=2, tid=2)]
    checked = of(tmp_path, [*events, kernel(ts=10, dur=10), kernel(ts=15, dur=2), kernel(ts=15, dur=2, stream=8)])
    assert (checked["times.nested"].status, checked["times.nested"].names) == (Held.FAIL, ("process 9 thread 1",))
    assert (checked["device.in_turn"].status, checked["device.in_turn"].names) == (Held.FAIL, ("device 0 stream 7",))


def test_accelerators_that_are_not_read_leave_what_speaks_of_work_open(tmp_path: Path) -> None:
    checked = of(tmp_path, [{**kernel(), "cat": "mtia_ccp_events"}])
    for identity in ("trace.devices_read", "device.has_launch", "launch.has_work"):
        assert checked[identity].status is Held.NOT_CHECKABLE
        assert "mtia_ccp_events" in checked[identity].reason


@pytest.mark.parametrize("text", ["", "{}", '{"traceEvents":[{}', '[{"ph":"X"},]', '[{"name":"\x01"}]'])
def test_what_is_not_read_to_its_end_fails(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    assert found(tmp_path / "t.json")["trace.whole"].status is Held.FAIL


def test_values_that_cannot_be_read_fail(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"ph":"C","args":{"v":nan}},7]')
    one = found(tmp_path / "t.json")["trace.values"]
    assert (one.status, one.total) == (Held.FAIL, 2)


def test_the_digest_is_that_of_the_file_wherever_reading_stopped(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"[{} {}" + b" " * (3 << 20))
    assert read_trace(path).sha256 == sha256_hex(path.read_bytes())


def test_a_real_trace_says_which_copies_left_no_work() -> None:
    checked = found(DATA / "hta_ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
    failed = {one.id: one.facts[0] for one in checked.values() if one.status is Held.FAIL}
    assert failed == {
        "trace.no_loss": "Out-of-range = 3,829",
        "launch.has_work": "235 of 6,330 launches, copies and sets",
    }
    assert json.dumps(checked["times.base"].reason)
