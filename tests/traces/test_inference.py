"""The trace of an inference run, read back by our reader and by a real trace processor (IN-19, SU-9)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from paritrace.cli.entry import paritrace, status_of
from paritrace.errors import ParitraceError
from paritrace.evidence.ids import Ref
from paritrace.files import LOCAL
from paritrace.inference.appending import append, init
from paritrace.inference.artifact import Events, head_of, place_of
from paritrace.inference.context import ClockKind
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.records import Activity, ClockAlignment, Loss, Membership, Observation
from paritrace.inference.vocabulary import Domain, LossReason
from paritrace.reports.formats import Cut
from paritrace.reports.inference.trace_file import TraceFile, in_words, write_trace_file
from paritrace.reports.traces.verifying import Whole, read_back
from tests.inference.evidence import (
    DEVICE,
    ENGINE,
    RUN,
    SESSION,
    Adapter,
    claim,
    context,
    iteration,
    kernel,
    member,
    request,
)
from tests.inference.importers.kineto_reading import DATA
from tests.traces.processor import assert_no_error, processor

OTHER = context(clock_domain="elsewhere", pid=7, rank=1, producer_id="cupti", device_uuid="GPU-2")
ALIGNED = ClockAlignment(
    context=ENGINE,
    event_id="aligned",
    from_clock_domain="device",
    to_clock_domain="host/boot/monotonic_ns",
    offset_ns=-1_000_000,
    uncertainty_ns=5,
)
LOST = Loss(
    context=DEVICE, event_id="lost", source="trace", what="activity records", reason=LossReason.OUT_OF_RANGE, count=3
)
BASE: tuple[Observation, ...] = (
    request("r1", start_ns=0, end_ns=3000, status="ok"),
    request("r2", start_ns=10, end_ns=4000),
    iteration("0", 100, 1000),
    iteration("1", 1000, 2000),
    member("0", "r1"),
    member("1", "r1"),
    member("1", "r2"),
    member("9", "r2"),
    member("0", "nobody"),
    claim("k1", "0", start_ns=1_000_150, end_ns=1_000_250, stream_id="7"),
    kernel("k2", 1_000_200, 1_000_300, stream_id="7"),
    kernel("k3", 1_000_250, 1_000_350, stream_id="7"),
    kernel("op", 200, 300, context=ENGINE, domain=Domain.CPU, kind="cpu_op", thread_id="3"),
    kernel("untimed", None, None, stream_id="7"),
    LOST,
)


def made(place: Path, events: Iterable[Observation]) -> Path:
    run = place / "run"
    init(run, run_id=RUN, session=SessionFacts(session_id=SESSION))
    append(run, run_id=RUN, session=SESSION, engine_adapter=Adapter(tuple(events)))
    return run


def drawn(run: Path, *, cut: Cut = Cut()) -> tuple[TraceFile, tuple[Whole, ...]]:  # noqa: B008  frozen
    path = run.parent / "one.pftrace"
    written = write_trace_file(run, path, cut=cut, files=LOCAL)
    return written, read_back(path, files=LOCAL)


def test_in19_only_recorded_memberships_are_arrows_and_the_others_are_counted(tmp_path: Path) -> None:
    written, parts = drawn(made(tmp_path, (*BASE, ALIGNED)))
    assert (written.arrows, sum(part.flow_ends for part in parts)) == (3, 6)
    assert written.unjoined == {"iteration not reported": 1, "request not reported": 1}
    assert len(written.time_lines) == 1
    assert written.left_out == {"no_duration_recorded": 1}
    assert "do not compare times" not in "\n".join(in_words(written))


def test_in19_an_attempt_is_joined_by_its_name_and_never_guessed(tmp_path: Path) -> None:
    attempts = [request("r", start_ns=0, end_ns=1, attempt_ref=Ref("client", name)) for name in ("a", "b")]
    two = (attempts[0], _other(attempts[1]))
    named = Membership(
        context=ENGINE,
        event_id="named",
        request_ref=Ref("client", "r"),
        attempt_ref=Ref("client", "b"),
        iteration_ref=Ref("engine", "0"),
        role="decode",
    )
    written, _ = drawn(made(tmp_path, (*two, iteration("0", 5, 9), named, member("0", "r"))))
    assert (written.arrows, written.unjoined) == (1, {"which attempt is not told": 1})


def _other(one: Any) -> Any:
    from msgspec.structs import replace

    return replace(one, event_id="r:other")


def test_in19_clocks_without_an_alignment_stand_apart_and_it_is_said(tmp_path: Path) -> None:
    written, parts = drawn(made(tmp_path, BASE))
    assert written.time_lines == (("host/boot/monotonic_ns",), ("device",))
    assert "2 time lines that no record aligns" in "\n".join(in_words(written))
    assert {part.facts["time_lines"] for part in parts} == {"2"}


def test_in19_what_is_cut_off_is_counted(tmp_path: Path) -> None:
    written, _ = drawn(made(tmp_path, (*BASE, ALIGNED)), cut=Cut(max_events=2))
    assert written.left_out["beyond_max_events"] > 0
    assert "left out (--max-events)" in "\n".join(in_words(written))


def test_in19_a_run_of_nothing_is_a_whole_trace(tmp_path: Path) -> None:
    written, parts = drawn(made(tmp_path, ()))
    assert (written.slices, len(parts)) == (0, 1)


def test_in19_another_suffix_and_times_beyond_the_format_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    run = made(tmp_path, (iteration("0", -(2**62), -(2**62) + 1), iteration("1", 2**62 - 2, 2**62 - 1)))
    with pytest.raises(ParitraceError) as refused:
        write_trace_file(run, tmp_path / "a.pftrace", cut=Cut(), files=LOCAL)
    assert refused.value.code == "times_too_far_apart"
    with pytest.raises(ParitraceError) as named:
        write_trace_file(run, tmp_path / "a.json", cut=Cut(), files=LOCAL)
    assert named.value.code == "no_such_format"
    assert not list(tmp_path.glob("a.*"))


@pytest.mark.slow
def test_in19_a_processor_finds_what_the_artifact_holds(tmp_path: Path) -> None:
    other = kernel("far", 5, 25, context=OTHER, stream_id="7")
    written, parts = drawn(made(tmp_path, (*BASE, ALIGNED, other)))
    with processor(Path(written.path)) as opened:
        assert_no_error(opened)
        kinds = {row["category"]: row["n"] for row in opened.rows(_BY_KIND)}
        assert kinds == {"request": 2, "iteration": 2, "activity": 6, "loss": 1, "clock": 3}
        assert opened.one("select sum(dur) from slice") == sum(part.summed_ns for part in parts)
        flows = opened.rows(
            "select a.category as first, b.category as second from flow f "
            "join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id"
        )
        assert [tuple(row.values()) for row in flows] == [("request", "iteration")] * 3
        spans = {row["name"]: (row["ts"], row["dur"], row["track"]) for row in opened.rows(_SPANS)}
        assert spans["iteration 0"][:2] == (100, 900)
        tracks = [row["track"] for row in opened.rows(_SPANS) if row["name"] == "kernel"]
        assert tracks == ["stream 7: linked", "stream 7: not linked", "stream 7: not linked", "stream 7: not linked"]
        starts = [(row["ts"], row["dur"]) for row in opened.rows(_SPANS) if row["name"] == "kernel"]
        assert starts[:3] == [(150, 100), (200, 100), (250, 100)]
        assert starts[3][0] > 4000  # of a clock that nothing aligns: behind all others
        assert starts[3][1] == 20
        reasons = opened.rows(
            "select extract_arg(arg_set_id, 'debug.reason') as reason, extract_arg(arg_set_id, 'debug.count') as count "
            "from slice where category = 'loss'"
        )
        assert [tuple(row.values()) for row in reasons] == [("out_of_range", 3)]
        pids = opened.rows("select pid, name from process where pid > 0 order by pid")
        assert len({row["pid"] for row in pids}) == len(pids) == 3
        assert all(f"{RUN} · host · " in row["name"] for row in pids)


_BY_KIND = "select category, count(*) as n from slice where category is not null group by 1"
_SPANS = (
    "select s.ts as ts, s.dur as dur, s.name as name, t.name as track from slice s join track t on s.track_id = t.id "
    "where s.dur > 0 order by s.ts"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hta_ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"])
def test_in19_a_real_trace_keeps_every_activity_and_every_nanosecond(name: str, tmp_path: Path) -> None:
    run, output = tmp_path / "run", tmp_path / "one.pftrace"
    for arguments in (
        ("init", str(run)),
        ("import", "trace", str(DATA / name), "--run", str(run)),
        ("link", str(run)),
        ("show", str(run), "-o", str(output)),
    ):
        assert status_of(["infer", *arguments]) == 0
    place = place_of(run)
    activities = [event for event in Events(place) if isinstance(event, Activity)]
    assert head_of(place).context.facts.clock_kind in ClockKind
    lasting = [one for one in activities if one.start_ns is not None and one.end_ns is not None]
    expected = sum((one.end_ns or 0) - (one.start_ns or 0) for one in lasting)
    with processor(output) as opened:
        assert_no_error(opened)
        assert opened.one("select count(*) from slice where category = 'activity'") == len(activities)
        assert opened.one("select sum(dur) from slice where category = 'activity'") == expected


def test_in19_show_writes_a_trace_and_says_so_in_json(tmp_path: Path) -> None:
    run, output = made(tmp_path, (*BASE, ALIGNED)), tmp_path / "one.pftrace"
    done = CliRunner().invoke(
        paritrace, ["infer", "show", str(run), "-o", str(output), "--json"], standalone_mode=False
    )
    assert '"arrows": 3' in done.output or '"arrows":3' in done.output
    assert output.stat().st_size > 0


def test_in19_export_draws_a_run_that_holds_no_calls_and_refuses_what_has_no_meaning(tmp_path: Path) -> None:
    run, folder = made(tmp_path, (*BASE, ALIGNED)), tmp_path / "exported"
    assert status_of(["export", str(run), "-o", str(folder)]) == 0
    assert status_of(["export", str(run / "inference.jsonl"), "-o", str(tmp_path / "b.pftrace")]) == 0
    assert sum(part.flow_ends for part in read_back(folder / "inference.pftrace", files=LOCAL)) == 6
    assert (folder / "inference.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()
    for option in (["--steps", "0:1"], ["--rank", "0"], ["--format", "chrome-json"]):
        assert status_of(["export", str(run), "-o", str(tmp_path / "c.pftrace"), *option]) != 0
    assert not (tmp_path / "c.pftrace").exists()


def test_in19_one_request_and_a_trace_of_all_are_not_asked_together(tmp_path: Path) -> None:
    output = tmp_path / "one.pftrace"
    assert status_of(["infer", "show", str(made(tmp_path, BASE)), "--request", "r1", "-o", str(output)]) != 0
    assert not output.exists()
