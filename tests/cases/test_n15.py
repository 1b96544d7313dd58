"""N-15: the parent-death signal follows a thread, so ranks are started from the main thread alone (SE-16)."""

import os
import signal
import threading
from pathlib import Path

import pytest

from paritrace.errors import InternalError
from paritrace.session.commands import Kind
from paritrace.session.engines.local import LocalEngine
from paritrace.session.engines.seam import RankSpec
from tests.cases.live_sessions import WORKLOAD, in_error, layers, lives, pids_of, until


def test_n15_a_thread_that_may_end_cannot_start_ranks(tmp_path: Path) -> None:
    spec = RankSpec(
        directory=str(tmp_path),
        session_id="s",
        workload=WORKLOAD,
        arguments={},
        world_size=1,
        generation=1,
        job_id="j",
        token="t",
    )
    engine = LocalEngine()
    refused: list[str] = []

    def started() -> None:
        try:
            engine.start(spec)
        except InternalError as error:
            refused.append(error.code)

    thread = threading.Thread(target=started)
    thread.start()
    thread.join()
    engine.close()
    assert refused == ["off_main_thread"]


@pytest.mark.slow
def test_n15_ranks_that_a_command_over_http_started_live_on_when_its_thread_is_done(tmp_path: Path) -> None:
    with layers(tmp_path / "S") as session:
        os.kill(pids_of(session)[1], signal.SIGKILL)
        until(in_error(session))
        session.command(Kind.REBUILD, {})
        pids = pids_of(session)
        session.disconnect()
        for _ in range(3):
            session.run(2, autosave=False, wait=True)
            session.disconnect()
        assert pids_of(session) == pids
        assert all(lives(pid) for pid in pids)
        assert session.status().step == 6
        assert session.status().generation == 2
