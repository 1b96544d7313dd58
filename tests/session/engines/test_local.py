import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from paritrace.errors import HostError, InternalError
from paritrace.process.ending import children_of
from paritrace.process.stop_facts import Exited
from paritrace.session.engines.layout import log_path
from paritrace.session.engines.local import LocalEngine
from paritrace.session.engines.seam import RankSpec
from tests.session.engines.conformance import SOON_SECONDS, Conformance, EndsRanks, Ranks, lives, within

SERVE = "tests.session.engines.serves:serve"


def spec_in(folder: Path, *, world_size: int = 2, generation: int = 1) -> RankSpec:
    return RankSpec(
        directory=str(folder),
        workload="none:None",
        arguments={},
        world_size=world_size,
        generation=generation,
        job_id="job-1",
        session_id="session-1",
        token="secret",
    )


@pytest.fixture
def ranks(tmp_path: Path) -> Generator[Ranks]:
    engine = LocalEngine(serve=SERVE)
    try:
        started = Ranks(engine, spec_in(tmp_path))
        started.start()
        yield started
    finally:
        engine.close()


class TestLocal(Conformance, EndsRanks):
    """The engine `local` under the suite of all engines."""

    def test_se16_output_stands_in_a_log_per_rank_that_only_its_owner_reads(self, ranks: Ranks, tmp_path: Path) -> None:
        assert ranks.asked(1, "say hello") == "said"
        log = log_path(str(tmp_path), 1, 1)
        assert log.read_text().splitlines() == ["out hello", "err hello"]
        assert log.stat().st_mode & 0o777 == 0o600
        assert ranks.engine.exit_evidence(1).log == log.relative_to(tmp_path).as_posix()

    @pytest.mark.slow
    def test_se12_the_end_of_the_log_of_a_rank_that_raised_is_its_traceback(self, ranks: Ranks, tmp_path: Path) -> None:
        ranks.tell(0, "raise what went wrong")
        assert ranks.next(0) is None
        assert ranks.engine.exit_evidence(0).wait == Exited(1)
        assert log_path(str(tmp_path), 1, 0).read_text().splitlines()[-1] == "ValueError: what went wrong"

    @pytest.mark.slow
    def test_se16_a_rank_that_does_not_read_is_given_up_within_the_bound(self, ranks: Ranks) -> None:
        os.kill(ranks.pids[0], signal.SIGSTOP)
        assert not ranks.engine.send(0, b"x" * 20_000_000)
        assert ranks.next(0, seconds=SOON_SECONDS) is None
        assert ranks.engine.exit_evidence(0).wait is None

    @pytest.mark.slow
    @pytest.mark.parametrize("by", ["us", "others"])
    def test_se16_a_rank_that_ends_takes_its_data_loaders_along(self, ranks: Ranks, by: str) -> None:
        assert ranks.asked(0, "fork") == "forked"
        (loader,) = children_of(ranks.pids[0])
        if by == "us":
            ranks.engine.kill(0)
        else:
            os.kill(ranks.pids[0], signal.SIGKILL)
        assert ranks.next(0) is None
        within(lambda: not lives(loader))


def test_se16_ranks_are_refused_off_the_main_thread(tmp_path: Path) -> None:
    caught: list[InternalError] = []

    def start() -> None:
        try:
            LocalEngine(serve=SERVE).start(spec_in(tmp_path))
        except InternalError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert [one.code for one in caught] == ["off_main_thread"]


def test_se16_a_directory_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    engine = LocalEngine(serve=SERVE)
    with pytest.raises(HostError) as caught:
        engine.start(spec_in(tmp_path))
    assert caught.value.code == "child_not_started"


COORDINATOR = """
import sys
from pathlib import Path
from tests.session.engines.conformance import Ranks
from tests.session.engines.test_local import SERVE, spec_in
from paritrace.session.engines.local import LocalEngine
ranks = Ranks(LocalEngine(serve=SERVE), spec_in(Path(sys.argv[1])))
ranks.start()
ranks.asked(0, "hold_gil")
ranks.asked(1, "block")
print(*ranks.pids.values(), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_se18_ranks_in_native_code_are_gone_once_the_coordinator_is_killed(tmp_path: Path) -> None:
    coordinator = subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        text=True,
    )
    with coordinator:
        assert coordinator.stdout is not None
        pids = [int(word) for word in coordinator.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(lives, pids))
        coordinator.kill()
        coordinator.wait()
        within(lambda: not any(map(lives, pids)), seconds=SOON_SECONDS)
