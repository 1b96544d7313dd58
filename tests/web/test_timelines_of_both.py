"""A run with calls and inference evidence is drawn whole: on one line where clocks are aligned, else behind (IN-19)."""

import json
import tempfile
from pathlib import Path

import pytest

from paritrace.cli import view_timeline
from paritrace.cli.entry import status_of
from paritrace.evidence.clocks import wall_domain
from paritrace.files import LOCAL
from paritrace.inference.appending import append, init
from paritrace.inference.records import ClockAlignment, Observation
from paritrace.reports.shelf import key_of
from paritrace.reports.traces.verifying import Whole, read_back
from paritrace.runs.reading import open_run
from tests.inference.evidence import Adapter, context
from tests.web.conftest import Served
from tests.web.shelves import write_run
from tests.web.test_inference_pages import request

MINUTE_NS = 60_000_000_000
BEFORE_NS = 5_000_000


def given(run: Path, *, aligned: bool) -> int:
    """Appends a request that began 5 ms before the first session; returns when that one began, in ns of Unix time."""
    with open_run(run) as opened:
        view = opened.sessions[0]
        run_id, begun, wall = opened.run_id, view.row.started_unix_ns, wall_domain(view.row.process).name
    init(run)
    own = context(run_id=run_id, clock_domain="proxy/monotonic_ns", session_id="inference")
    start = MINUTE_NS - BEFORE_NS
    events: list[Observation] = [request("first", context=own, start_ns=start, end_ns=start + 1_000_000)]
    if aligned:
        events.append(
            ClockAlignment(
                context=own,
                event_id="alignment",
                from_clock_domain="proxy/monotonic_ns",
                to_clock_domain=wall,
                offset_ns=begun - MINUTE_NS,
                uncertainty_ns=700,
            )
        )
    append(run, run_id=run_id, session="inference", engine_adapter=Adapter(events))
    return begun


def exported(run: Path, place: Path) -> tuple[Whole, ...]:
    assert status_of(["export", str(run), "-o", str(place)]) == 0
    return read_back(place, files=LOCAL)


@pytest.mark.parametrize("aligned", [True, False], ids=["aligned", "not aligned"])
def test_in19_calls_and_evidence_are_in_one_trace(aligned: bool, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    calls_alone = exported(run, tmp_path / "alone.pftrace")
    given(run, aligned=aligned)
    parts = exported(run, tmp_path / "both.pftrace")
    calls = [part for part in parts if part.facts["of"] == "run"]
    told = [part for part in parts if part.facts["of"] == "inference"]
    assert [part.slices for part in calls] == [part.slices for part in calls_alone]
    assert sum(part.slices for part in told) == 1
    (proxy,) = (part for part in told if part.facts["clock"] == "proxy/monotonic_ns")
    assert proxy.facts["time_lines"] == ("1" if aligned else "2")
    assert proxy.facts["uncertainty_ns"] == ("700" if aligned else "0")
    if aligned:  # the request came first, so that it stands at 0 and the calls 5 ms behind
        assert int(proxy.facts["zero_ns"]) == MINUTE_NS - BEFORE_NS
    else:
        assert int(proxy.facts["zero_ns"]) < MINUTE_NS - BEFORE_NS


def test_in19_the_view_draws_both_and_ranks_that_are_asked_for_alone(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "all" / "run")
    given(run, aligned=True)
    whole = exported(run, tmp_path / "both.pftrace")
    assert {part.facts["of"] for part in whole} == {"run", "inference"}
    (tmp_path / "got.pftrace").write_bytes(served(run.parent).get(f"/r/{key_of(run)}/trace.pftrace").content)
    assert [part.slices for part in read_back(tmp_path / "got.pftrace", files=LOCAL)] == [one.slices for one in whole]
    monkeypatch.setattr(view_timeline, "installed", lambda: None)

    def here(prefix: str) -> str:
        return str(tmp_path) if prefix else ""

    monkeypatch.setattr(tempfile, "mkdtemp", here)
    capsys.readouterr()
    assert status_of(["view", str(run), "--perfetto", "--no-open", "--json"]) == 0
    drawn = Path(json.loads(capsys.readouterr().out)["trace"])
    assert drawn.read_bytes() == (tmp_path / "both.pftrace").read_bytes()
    assert status_of(["export", str(run), "-o", str(tmp_path / "rank.pftrace"), "--rank", "0"]) == 0
    assert {part.facts["of"] for part in read_back(tmp_path / "rank.pftrace", files=LOCAL)} == {"run"}


@pytest.mark.slow
@pytest.mark.parametrize("aligned", [True, False], ids=["aligned", "not aligned"])
def test_in19_perfetto_reads_both_where_they_were(aligned: bool, tmp_path: Path) -> None:
    from tests.traces.processor import assert_no_error, processor

    run = write_run(tmp_path / "run")
    given(run, aligned=aligned)
    exported(run, tmp_path / "both.pftrace")
    with processor(tmp_path / "both.pftrace") as opened:
        assert_no_error(opened)
        pids = [row["pid"] for row in opened.rows("select pid from process where pid > 0 order by pid")]
        assert pids == sorted(set(pids))
        assert len(pids) >= 2
        asked = opened.one("select ts from slice where category = 'request'")
        first = opened.one("select min(ts) from slice where name = 'scale'")
        last = opened.one("select max(ts + dur) from slice where name = 'fold'")
    if aligned:
        assert asked == 0
        assert BEFORE_NS <= first < 2 * BEFORE_NS
    else:
        assert 0 <= first < BEFORE_NS
        assert asked > last
