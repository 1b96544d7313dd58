"""Traces of the torch profiler become events: exact, streamed, with what was lost (IN-10; B-09 to B-17)."""

import gzip
import json
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import EvidenceError, Outcome, RequestError
from paritrace.inference.appending import append_import, init
from paritrace.inference.clock_marks import Mark
from paritrace.inference.importers.kineto import KINETO
from paritrace.inference.importers.kineto_joins import num_innermost, partial_overlaps
from paritrace.inference.importing import Account, Asked, Imported, Scope
from paritrace.inference.records import Activity, ClockAlignment, Iteration, Loss, Observation
from paritrace.inference.vocabulary import ActivityKind, Domain, LossReason, LossStatus
from tests.inference.importers.kineto_reading import DATA, SCOPE, annotation, imported, kernel, launch, written

ORACLE: dict[str, dict[str, Any]] = json.loads((DATA / "oracle.json").read_text())


LARGE = 200_000  # bytes: imported by `make test-slow`


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if (DATA / name).stat().st_size > LARGE else [])
        for name in sorted(ORACLE)
    ],
)
def test_the_numbers_of_an_independent_parser_are_met(name: str) -> None:
    expected = ORACLE[name]
    events, account = imported(DATA / name)
    counts = account.counts
    work = [one for one in events if isinstance(one, Activity) and one.domain is Domain.GPU]
    assert counts["x_events"] == expected["x_events"]
    assert len(work) == counts["device"] == expected["gpu"]
    assert counts["launches_repeated"] == expected["launch_dup"]
    assert counts["profiler_step_threads"] == expected["profilerstep_threads"]
    link = {"linked": "linked", "outside": "outside_every_range"}
    for word in link:
        assert counts.get(f"in_trace:{link[word]}", 0) == expected["link"].get(word, 0)
    estimate = "estimate:steps_of_any_thread:"
    steps = {word.removeprefix(estimate): counts[word] for word in counts if word.startswith(estimate)}
    assert steps == expected["step_any_thread"]
    others = {word.removeprefix("not_imported:"): counts[word] for word in counts if word.startswith("not_imported:")}
    assert others == expected["other_device_cats"]
    told = {
        one.metadata["record_counts"] for one in events if isinstance(one, Loss) and "record_counts" in one.metadata
    }
    assert told == ({expected["record_counts"]} if expected["record_counts"] else set())
    for device, figures in expected["devices"].items():
        spans = [_span(one) for one in work if one.device_id == device]
        assert len(spans) == figures["n"]
        assert sum(end - start for start, end in spans) == figures["summed_ns"]
        assert _union(spans) == figures["busy_ns"]


def _span(one: Activity) -> tuple[int, int]:
    assert one.start_ns is not None
    assert one.end_ns is not None
    return one.start_ns, one.end_ns


def _union(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, -(1 << 63)
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def test_losses_are_told_as_the_profiler_tells_them() -> None:
    losses = [
        one
        for one in imported(DATA / "hta_ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")[0]
        if isinstance(one, Loss)
    ]
    assert [(one.what, one.count, one.reason, one.status) for one in losses[:3]] == [
        ("Out-of-range", 3829, LossReason.OUT_OF_RANGE, LossStatus.REPORTED),
        ("Blocklisted runtime", 56517, LossReason.BLOCKLISTED, LossStatus.REPORTED),
        ("Invalid ext correlations", 0, LossReason.DROPPED, LossStatus.ZERO_REPORTED),
    ]


def test_a_trace_that_tells_no_loss_says_so(tmp_path: Path) -> None:
    (loss,) = (one for one in imported(written(tmp_path, [kernel()]))[0] if isinstance(one, Loss))
    assert (loss.status, loss.count) == (LossStatus.NOT_REPORTED, None)


def test_the_same_trace_gives_the_same_events(tmp_path: Path) -> None:
    path = written(tmp_path, [kernel(correlation=3), launch(3), annotation("ProfilerStep#1", ts=1, dur=500)])
    assert imported(path)[0] == imported(path)[0]


def test_one_launch_of_a_graph_has_many_kernels(tmp_path: Path) -> None:
    kernels = [{**kernel(name, correlation=7), "args": {"correlation": 7, "graph id": 3}} for name in "abc"]
    events, account = imported(written(tmp_path, [launch(7), *kernels, kernel("d", correlation=9)]))
    work = [one for one in events if isinstance(one, Activity) and one.domain is Domain.GPU]
    assert [one.graph_id for one in work] == ["3", "3", "3", None]
    assert [one.metadata.get("no_op_attribution") for one in work] == ["graph"] * 3 + [None]
    assert account.counts["in_trace:outside_every_range"] == 3
    assert account.counts["in_trace:no_launch_record"] == 1
    assert sum(isinstance(one, Activity) and one.domain is Domain.RUNTIME for one in events) == 1


def test_graph_level_work_is_of_its_own_kind(tmp_path: Path) -> None:
    events, _ = imported(written(tmp_path, [{**kernel(), "cat": "GRAPH_TRACE"}]))
    (work,) = (one for one in events if isinstance(one, Activity))
    assert (work.kind, work.domain) == (ActivityKind.GRAPH_LEVEL, Domain.GPU)


@pytest.mark.parametrize("sentinel", [0, -1, 4294967295, "", None])
def test_a_sentinel_joins_nothing(tmp_path: Path, sentinel: object) -> None:
    _, account = imported(written(tmp_path, [launch(sentinel), *[kernel(correlation=sentinel)] * 5]))
    assert account.counts["in_trace:sentinel"] == 5
    assert account.counts["launches"] == 0
    assert account.counts["correlation_sentinels"] == 5


def test_ids_beyond_64_bits_do_not_merge(tmp_path: Path) -> None:
    events, account = imported(
        written(tmp_path, [launch(2**64 + 1), kernel(correlation=2**64), kernel(correlation=2**64 + 1)])
    )
    assert account.counts["in_trace:no_launch_record"] == 1
    ids = [one.cuda_correlation_id for one in events if isinstance(one, Activity)]
    assert ids == ["18446744073709551616", "18446744073709551617", "18446744073709551617"]


def test_two_launches_of_one_id_are_ambiguous(tmp_path: Path) -> None:
    _, account = imported(written(tmp_path, [launch(7), launch(7, pid=10), kernel(correlation=7)]))
    assert account.counts["in_trace:ambiguous_launch"] == 1
    assert account.counts["launches_repeated"] == 1


def test_times_are_exact_and_the_base_time_is_an_alignment(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1672924880617000.123,"dur":0.001,"args":{"device":0}}],'
        '"baseTimeNanoseconds":1712000000000000001}'
    )
    events, account = imported(path)
    (work,) = (one for one in events if isinstance(one, Activity))
    assert _span(work) == (1672924880617000123, 1672924880617000124)
    (alignment,) = (one for one in events if isinstance(one, ClockAlignment))
    assert alignment.from_clock_domain == work.context.facts.clock_domain
    assert (alignment.offset_ns, alignment.uncertainty_ns) == (1712000000000000001, 0)
    assert account.counts["base_time_ns"] == 1712000000000000001


def test_in16_readings_of_a_clock_in_a_trace_are_an_alignment_between_the_first_and_the_last(tmp_path: Path) -> None:
    marks = [(Mark(1, 0, 7_000, "host/boot/monotonic_ns"), 100), (Mark(1, 1, 8_002, "host/boot/monotonic_ns"), 100.004)]
    ranges = [annotation(mark.name, ts=ts, dur=0.001) for mark, ts in marks]
    events, account = imported(written(tmp_path, [*reversed(ranges), kernel()]))
    (alignment,) = (one for one in events if isinstance(one, ClockAlignment))
    assert alignment.to_clock_domain == "host/boot/monotonic_ns"
    assert (alignment.valid_from_ns, alignment.valid_to_ns) == (100_000, 100_004)
    assert alignment.offset_ns == 8_002 - 100_002
    assert alignment.uncertainty_ns == 3
    assert not any(isinstance(one, Iteration) for one in events)
    assert account.counts["ranges"] == 0  # marks are no iterations


def test_without_a_base_time_there_is_none(tmp_path: Path) -> None:
    events, account = imported(written(tmp_path, [kernel()]))
    assert not any(isinstance(one, ClockAlignment) for one in events)
    assert any("no common time base" in one for one in account.limits)


@pytest.mark.parametrize("base", [2**62, 10**30, -5, 1.5, "x", True])
def test_a_base_time_that_no_clock_tells_is_none_and_the_trace_is_read(tmp_path: Path, base: object) -> None:
    events, account = imported(written(tmp_path, [kernel()], baseTimeNanoseconds=base))
    assert not any(isinstance(one, ClockAlignment) for one in events)
    assert "base_time_ns" not in account.counts
    assert "its base time is none that a clock tells: no common time base with other traces" in account.limits


@pytest.mark.parametrize(
    ("ts", "dur", "word"),
    [
        (0, 0, "at_zero"),
        (10, -1, "unfinished"),
        (1615207264504915, -1615207264504915, "unfinished"),
        (10, -5, "negative"),
        (4611686018427387, 4611686018427387, "unfinished"),
        ("x", 1, "no_start"),
    ],
)
def test_odd_times_are_told_and_not_mended(tmp_path: Path, ts: object, dur: object, word: str) -> None:
    odd = {**kernel(correlation=3), "ts": ts, "dur": dur}
    events, account = imported(written(tmp_path, [odd, kernel()]))
    work = [one for one in events if isinstance(one, Activity)]
    assert work[0].metadata["time"] == word
    assert work[0].end_ns is None
    assert account.counts[f"time:{word}"] == 1
    assert any(one.startswith("1 events") for one in account.limits)


def test_parts_of_a_nanosecond_are_counted(tmp_path: Path) -> None:
    events, account = imported(written(tmp_path, [kernel(ts=1.0005, dur=2)]))
    (work,) = (one for one in events if isinstance(one, Activity))
    assert _span(work) == (1000, 3000)
    assert account.counts["times_below_ns"] == 1


def test_named_ranges_become_iterations_and_others_where_asked(tmp_path: Path) -> None:
    names = ["ProfilerStep#3", "execute_context_1(20)_generation_2(2)", "forward", "ProfilerStep#3"]
    path = written(tmp_path, [annotation(name, ts=10 * place + 1, dur=5) for place, name in enumerate(names)])
    found = [one for one in imported(path)[0] if isinstance(one, Iteration)]
    assert [one.iteration_ref.id for one in found] == [names[0], names[1], "ProfilerStep#3 (2)"]
    assert [one.anchor for one in found] == [names[0], names[1], names[0]]
    assert (found[0].thread_id, found[0].context.facts.pid) == ("1", 9)
    asked = [one for one in imported(path, range="for*")[0] if isinstance(one, Iteration)]
    assert len(asked) == 4


def test_accelerators_that_are_not_read_are_counted_and_lost(tmp_path: Path) -> None:
    other = [{**kernel(), "cat": category} for category in ("xpu_runtime", "hpu_op", "mtia_ccp_events", "sundry")]
    events, account = imported(written(tmp_path, other))
    assert account.counts["not_imported:xpu_runtime"] == account.counts["not_imported:sundry"] == 1
    lost = {one.what for one in events if isinstance(one, Loss) and one.reason is LossReason.UNSUPPORTED}
    assert lost == {f"device work of category {one}" for one in ("xpu_runtime", "hpu_op", "mtia_ccp_events")}


def test_a_damaged_trace_keeps_its_file_and_is_never_complete(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    whole = (DATA / "hta_critical_path_cuda_event_sync_event_sync_trace.json.gz").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    reading = KINETO.open(Asked(path=path, scope=SCOPE))
    assert [one.path for one in reading.attachments] == [str(path)]
    events, account = imported(path)
    assert not account.complete
    assert account.stopped_at_byte is not None
    assert account.limits[0].startswith(f"read up to byte {account.stopped_at_byte:,}")
    assert any(isinstance(one, Loss) and one.reason is LossReason.TRUNCATED for one in events)


def test_only_a_whole_trace_without_a_loss_is_complete(tmp_path: Path) -> None:
    counts = "INFO: x] Record counts: Out-of-range = {}, CUPTI stopped early? = 0"
    assert imported(written(tmp_path, [kernel()], INFO=[counts.format(0)]))[1].complete
    assert not imported(written(tmp_path, [kernel()], INFO=[counts.format(1)]))[1].complete
    (tmp_path / "trace.json").write_text('[{"ph":"X"},]')
    assert not imported(tmp_path / "trace.json")[1].complete
    (tmp_path / "trace.json").write_text("{}")
    assert not imported(tmp_path / "trace.json")[1].complete


def test_devices_are_named_where_the_user_names_them(tmp_path: Path) -> None:
    (work,) = (
        one
        for one in imported(written(tmp_path, [kernel()]), device_uuid="1=GPU-b, 0=GPU-a")[0]
        if isinstance(one, Activity)
    )
    assert work.context.facts.device_uuid == "GPU-a"
    with pytest.raises(RequestError, match="names no device"):
        KINETO.open(Asked(path=tmp_path / "trace.json", scope=SCOPE, options={"device-uuid": "GPU-a"}))


def test_what_is_a_trace_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    for name, data, expected in (
        ("a.json", b"", True),
        ("a.txt", b" [", True),
        ("a.json.gz", gzip.compress(b"{}"), True),
        ("a.tar.gz", gzip.compress(b"x"), False),
        ("a.sqlite", b"SQLite format 3\0", False),
        ("a.txt", b"Iteration(1)", False),
    ):
        (tmp_path / name).write_bytes(data)
        assert KINETO.recognises(tmp_path / name) is expected, name


_SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda one: (one[0], one[0] + one[1])), max_size=12
)


@given(_SPANS)
def test_spans_that_nest_do_not_overlap(spans: list[tuple[int, int]]) -> None:
    crossing = any(a[0] < b[0] < a[1] < b[1] for a in spans for b in spans)
    assert (partial_overlaps(sorted(spans, key=lambda one: (one[0], -one[1]))) > 0) == crossing


@given(_SPANS, st.integers(0, 30))
def test_innermost_spans_hold_no_other(spans: list[tuple[int, int]], moment: int) -> None:
    holding = [one for one in spans if one[0] <= moment <= one[1]]
    repeated = Counter(holding)
    inner = {one for one in repeated if not any(o != one and one[0] <= o[0] and o[1] <= one[1] for o in repeated)}
    assert num_innermost(holding) == sum(repeated[one] for one in inner)


@pytest.mark.parametrize("change", ["grows", "is replaced"])
def test_in10_a_trace_that_is_written_while_it_is_read_is_refused_and_nothing_changes(
    change: str, tmp_path: Path
) -> None:
    """The digest that is registered would be of other bytes than those that the events were read from."""
    trace, run = tmp_path / "trace.json", tmp_path / "run"
    trace.write_text('{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1}]}')
    init(run, run_id="run")
    reading = KINETO.open(Asked(path=trace, scope=Scope("run", "inference")))

    def written_meanwhile() -> Generator[Observation, None, Account]:
        account = yield from reading.events
        if change == "grows":
            trace.write_text(trace.read_text() + " ")
        else:
            trace.unlink()
        return account

    kept = [run / name for name in ("run.json", "inference.jsonl", ".inference.jsonl.identities")]
    before = [path.read_bytes() for path in kept]
    with pytest.raises(EvidenceError) as refused:
        append_import(
            run, Imported(reading.attachments, written_meanwhile()), component="x", run_id="run", session="inference"
        )
    assert (refused.value.code, refused.value.outcome) == ("changed_while_read", Outcome.REFUSED)
    assert [path.read_bytes() for path in kept] == before
