"""A real trace processor loads every trace of ours: counts, times and arrows are those of the source (SU-9)."""

from collections import Counter
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from paritrace.compare.engine import compare
from paritrace.compare.rows import Compared, Correspondence
from paritrace.compare.settings import Settings
from paritrace.files import LOCAL
from paritrace.reports.traces.events import Event
from paritrace.reports.traces.verifying import read_back
from paritrace.runs.reading import open_run
from tests.compare.distributed_runs import Recipe, training
from tests.traces.making import call, write
from tests.traces.processor import Processor, assert_no_error, processor

pytestmark = pytest.mark.slow

HOSTILE = ["<b>&amp;", "a\nb\x00c\x1b[31m", "\u202eabc", "\ud800", "x" * 10_000, "'; drop table slice; --", "{}%s\\"]
OF_CALLS = "category in ('op', 'module', 'digest', 'step')"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A and B, two ranks each, and everything that is written of both and of their comparison."""
    place = tmp_path_factory.mktemp("traces")
    recipes = {"A": Recipe(), "B": Recipe(buckets=(("body.weight",), ("head.weight",)))}
    for name, recipe in recipes.items():
        for rank in (0, 1):
            training(recipe, rank=rank).write(place / name, rank=rank, world_size=2)
    assert status_of(["compare", str(place / "A"), str(place / "B"), "-o", str(place / "compared")]) == 0
    assert status_of(["check", str(place / "B"), "-o", str(place / "checked")]) == 0
    assert status_of(["export", str(place / "A"), "-o", str(place / "exported")]) == 0
    return place


def compared(place: Path) -> Compared:
    return compare(open_run(place / "A"), open_run(place / "B"), Settings())


def assert_as_stated(opened: Processor, *traces: Path) -> None:
    """What the last packets state is what a reader finds."""
    stated = [part for path in traces for part in read_back(path, files=LOCAL)]
    assert_no_error(opened)
    assert opened.one("select count(*) from slice where dur > 0") == sum(part.slices for part in stated)
    assert opened.one("select sum(dur) from slice") == sum(part.summed_ns for part in stated)
    instants = sum(part.instants + 1 for part in stated)  # the last packet itself is one
    assert opened.one("select count(*) from slice where dur = 0") == instants
    assert opened.one("select count(*) from slice where dur < 0") == 0
    assert opened.one("select count(*) from counter") == sum(part.counters for part in stated)


@pytest.mark.parametrize("name", ["compared/traces", "checked/traces", "exported"])
def test_su9_every_exported_trace_loads_and_is_what_it_states(recorded: Path, name: str) -> None:
    traces = sorted((recorded / name).glob("rank-*.pftrace"))
    assert len(traces) == 2
    with processor(*traces) as opened:
        assert_as_stated(opened, *traces)
        processes = opened.rows("select pid, name from process where pid > 0 order by pid")
        assert [(row["pid"], row["name"]) for row in processes] == [(1, "rank 0"), (2, "rank 1")]


def test_su8_arrows_join_pairs_and_nothing_else(recorded: Path) -> None:
    traces = sorted((recorded / "compared" / "traces").glob("*.pftrace"))
    rows = list(compared(recorded).rows)
    pairs = {(row.rank, row.record_id, row.partner) for row in rows if row.side == "baseline" and row.partner >= 0}
    argument = "extract_arg({0}.arg_set_id, 'debug.{1}')"
    ids = [argument.format(end, "record_id") for end in ("a", "b")]
    first = "s.name = 'baseline'"  # an arrow leads to the later call, whichever that is
    sql = (
        f"select p.pid - 1 as rank, iif({first}, {ids[0]}, {ids[1]}) as baseline, "
        f"iif({first}, {ids[1]}, {ids[0]}) as candidate, {argument.format('a', 'validation')} as validation "
        "from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id "
        "join process_track t on a.track_id = t.id join process p using (upid) join track s on t.parent_id = s.id"
    )
    with processor(*traces) as opened:
        found = opened.rows(sql)
        assert {tuple(row.values())[:3] for row in found} == pairs
        assert len(found) == len(pairs)
        assert {row["validation"] for row in found} == {"unreviewed"}
        undetermined = opened.rows(
            "select substr(name, 15) as reason, count(*) as n from slice where name like 'undetermined: %' group by 1"
        )
        expected = Counter(row.reason for row in rows if row.correspondence is Correspondence.UNDETERMINED)
        assert {row["reason"]: row["n"] for row in undetermined} == expected
        assert expected
        statuses = opened.rows(
            f"select {argument.format('s', 'status')} as status, count(*) as n from slice s "
            f"where {argument.format('s', 'status')} is not null group by 1"
        )
        assert {row["status"]: row["n"] for row in statuses} == Counter(row.status for row in rows)


def test_su8_two_ranks_put_together_are_one_trace_whose_arrows_cross(recorded: Path, tmp_path: Path) -> None:
    traces = sorted((recorded / "exported").glob("*.pftrace"))
    both = tmp_path / "both.pftrace"
    both.write_bytes(b"".join(path.read_bytes() for path in traces))
    buckets = 2 * 2  # two buckets, two steps
    with processor(both) as opened:
        assert_as_stated(opened, both)
        crossing = opened.one(
            "select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id "
            "join process_track s on a.track_id = s.id join process_track t on b.track_id = t.id where s.upid != t.upid"
        )
        assert crossing == opened.one("select count(*) from flow") == buckets
        zero = opened.one("select clock_value from clock_snapshot where clock_name = 'REALTIME' limit 1")
        assert zero == min(view.row.started_unix_ns for view in open_run(recorded / "A").sessions)


def test_su8_sources_and_counters_are_those_of_the_run(recorded: Path) -> None:
    with processor(recorded / "exported" / "rank-0.pftrace") as opened:
        lines = opened.rows(
            "select distinct extract_arg(arg_set_id, 'source.line_number') as line from slice "
            f"where {OF_CALLS} and dur >= 0 and category != 'step' order by 1"
        )
        assert {row["line"] for row in lines} >= {3, 4, 5, 6, 9}
        losses = opened.rows(
            "select value from counter c join counter_track t on c.track_id = t.id where t.name = 'loss'"
        )
        assert len(losses) == 2
        tracks = {row["name"] for row in opened.rows("select name from track")}
        assert {"calls", "loss", "gradient norm", "paritrace"} <= tracks


def test_su8_overlap_huge_numbers_nan_and_hostile_names(tmp_path: Path) -> None:
    odd = (
        ("record_id", 2**63 - 1),
        ("huge", -(2**64)),
        ("nan", float("nan")),
        ("infinity", float("-inf")),
        ("exact", 2**53 - 1),
        ("half", 0.5),
        ("flag", True),
    )
    calls = [
        (("calls", "main"), call(1, start=10, duration=10)),
        (("calls", "main"), call(2, start=15, duration=10)),
        (("calls", "main"), Event(1_700_000_000_000_000_137, 1, "late", "op", arguments=odd)),
        *((("calls", name), Event(40, 5, name, "op", name, name, 1, ((name, name),))) for name in HOSTILE),
        (("calls", "main"), Event(70, 0, "moment", "op")),
        (("calls", "main"), Event(-1, -1, "no time", "op")),
    ]
    tally = write(tmp_path / "odd.pftrace", 0, calls)
    assert tally.left_out == {"no_duration_recorded": 2}
    with processor(tmp_path / "odd.pftrace") as opened:
        assert_as_stated(opened, tmp_path / "odd.pftrace")
        spans = opened.rows("select ts, dur, track_id from slice where name in ('call 1', 'call 2') order by ts")
        assert [(row["ts"], row["dur"]) for row in spans] == [(10, 10), (15, 10)]
        assert spans[0]["track_id"] != spans[1]["track_id"]
        assert opened.one("select ts from slice where name = 'late'") == 1_700_000_000_000_000_137
        shown = {
            row["key"]: row["display_value"]
            for row in opened.rows(
                "select substr(a.flat_key, 7) as key, a.display_value from slice s join args a using (arg_set_id) "
                "where s.name = 'late' and a.flat_key like 'debug.%'"
            )
        }
        assert shown["record_id"] == hex(2**63 - 1)
        assert shown["huge"] == hex(-(2**64))
        assert (shown["nan"], shown["infinity"]) == ("NaN", "-Infinity")
        assert (shown["exact"], shown["half"], shown["flag"]) == (str(2**53 - 1), "0.5", "true")
        assert opened.one("select count(*) from slice where ts = 40 and dur = 5") == len(HOSTILE)


def test_su9_many_chunks_arrive(tmp_path: Path) -> None:
    number = 20_000  # of one rank: ten chunks
    for rank in (0, 1):
        calls = [
            ((side, "main"), call(n, start=1000 * n, duration=900, flow=(n + 1) * 2 + rank))
            for side in ("baseline", "candidate")
            for n in range(number // 2)
        ]
        write(tmp_path / f"rank-{rank}.pftrace", rank, calls)
    with processor(*sorted(tmp_path.glob("*.pftrace"))) as opened:
        assert_no_error(opened)
        assert opened.one("select count(*) from slice where dur = 900") == 2 * number
        assert opened.one("select sum(dur) from slice") == 2 * number * 900
        assert opened.one("select count(*) from flow") == number
