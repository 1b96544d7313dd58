"""Failed generations of real processes: killed, stuck, raising; the report and the bounds (SE-12, SE-22)."""

import os
import signal
import time
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from paritrace.files.local import Files
from paritrace.process.stop_facts import Signalled
from paritrace.session.engines.local import LocalEngine
from paritrace.session.failure import FailureReport, LastHeard, Role
from paritrace.session.states import RankState
from paritrace.session.stopping import Failing, Stopped, stop_failed
from tests.session.engines.conformance import Ranks, lives
from tests.session.engines.test_local import SERVE, spec_in

pytestmark = pytest.mark.slow
GRACE_SECONDS, REAP_SECONDS = 1.0, 2.0
GONE_SECONDS = 15.0  # the bound is some five seconds; this machine may be loaded


@pytest.fixture
def ranks(tmp_path: Path) -> Generator[Ranks]:
    engine = LocalEngine(serve=SERVE)
    try:
        started = Ranks(engine, spec_in(tmp_path, world_size=3))
        started.start()
        yield started
    finally:
        engine.close()


def stop(ranks: Ranks, folder: Path, *, code: str = "rank_gone", why: str = "a rank is gone") -> Stopped:
    seen: list[FailureReport] = []
    failing = Failing(
        session_id="s",
        generation=1,
        directory=str(folder),
        world_size=3,
        code=code,
        why=why,
        last={rank: LastHeard(RankState.RUNNING, epoch=2, step=7) for rank in range(3)},
        grace_seconds=GRACE_SECONDS,
        reap_seconds=REAP_SECONDS,
    )
    stopped = stop_failed(ranks.engine, failing, files=Files(), reported=seen.append)
    assert [one.root_cause for one in seen] == [stopped.report.root_cause]
    return stopped


def test_se12_survivors_stuck_in_native_code_are_reported_with_stacks_and_gone_in_time(
    ranks: Ranks, tmp_path: Path
) -> None:
    ranks.asked(0, "hold_gil")
    ranks.asked(2, "block")
    os.kill(ranks.pids[1], signal.SIGKILL)
    assert ranks.next(1) is None
    started = time.monotonic()
    stopped = stop(ranks, tmp_path)
    assert time.monotonic() - started < GONE_SECONDS
    assert not any(map(lives, ranks.pids.values()))
    report = stopped.report
    assert report.root_cause == "rank 1"
    assert [one.role for one in report.ranks] == [Role.COLLATERAL, Role.CAUSE, Role.COLLATERAL]
    assert "_held_with_the_gil" in (report.ranks[0].stacks or "")
    assert "_blocked_in_c" in (report.ranks[2].stacks or "")
    assert report.ranks[0].exit.signals_by_us == (signal.SIGTERM, signal.SIGKILL)
    assert report.ranks[0].exit.wait == Signalled(signal.SIGKILL)
    assert report.ranks[1].last.step == 7


def test_se22_the_report_is_its_owners_alone_and_reads_back(ranks: Ranks, tmp_path: Path) -> None:
    ranks.asked(1, "say something")
    ranks.tell(1, "raise no such row")
    assert ranks.next(1) is None
    stopped = stop(ranks, tmp_path)
    assert stopped.name == "failures/1.json"
    path = tmp_path / stopped.name
    assert path.stat().st_mode & 0o777 == 0o600
    assert msgspec.json.decode(path.read_bytes(), type=FailureReport) == stopped.report
    assert stopped.report.ranks[1].log_tail.endswith("ValueError: no such row\n")
    assert stopped.report.root_cause == "rank 1"


def test_se12_two_ranks_killed_at_once_are_undetermined(ranks: Ranks, tmp_path: Path) -> None:
    os.kill(ranks.pids[2], signal.SIGKILL)
    os.kill(ranks.pids[0], signal.SIGKILL)
    assert ranks.next(2) is None
    report = stop(ranks, tmp_path).report
    assert report.root_cause == "undetermined"
    assert [one.role for one in report.ranks] == [Role.FAILED, Role.COLLATERAL, Role.FAILED]


def test_se12_a_stopped_rank_is_ended_with_the_others(ranks: Ranks, tmp_path: Path) -> None:
    os.kill(ranks.pids[0], signal.SIGSTOP)
    started = time.monotonic()
    report = stop(ranks, tmp_path, code="unresponsive").report
    assert time.monotonic() - started < GONE_SECONDS
    assert not any(map(lives, ranks.pids.values()))
    assert report.ranks[0].stacks is None


def test_se12_a_report_that_cannot_be_written_does_not_keep_ranks_alive(ranks: Ranks, tmp_path: Path) -> None:
    (tmp_path / "failures").write_text("in the way")
    stopped = stop(ranks, tmp_path)
    assert stopped.name is None
    assert stopped.trouble
    assert not any(map(lives, ranks.pids.values()))
