"""Ranks of a small job as child processes: launcher variables, one killed, a deadline."""

import signal
import sys
from pathlib import Path

import pytest

from paritrace.errors import HostError, Outcome
from paritrace.process.ranks import Kill, run_ranks

SAYS_WHO = "import os; print(*(os.environ[n] for n in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR')))"
WAITS = "import sys; print('here', flush=True); sys.stdin.close(); import threading; threading.Event().wait(60)"
ENDS_OR_WAITS = f"import os\nif os.environ['RANK'] == '1': exec({WAITS!r})\nelse: print('done')"


def ranks(
    code: str, directory: Path, *, deadline_seconds: float = 60.0, kill: Kill | None = None
) -> list[tuple[int, str]]:
    done = run_ranks(
        (sys.executable, "-c", code),
        num_ranks=2,
        directory=directory,
        environment={},
        deadline_seconds=deadline_seconds,
        kill=kill,
    )
    return [(rank.status, rank.stdout) for rank in done]


def test_each_rank_has_the_variables_of_a_launcher(tmp_path: Path) -> None:
    assert ranks(SAYS_WHO, tmp_path) == [(0, "0 0 2 127.0.0.1\n"), (0, "1 1 2 127.0.0.1\n")]


def test_one_rank_is_killed_once_it_said_so(tmp_path: Path) -> None:
    assert ranks(ENDS_OR_WAITS, tmp_path, kill=Kill(rank=1, text="here")) == [
        (0, "done\n"),
        (-signal.SIGKILL, "here\n"),
    ]


def test_a_rank_that_does_not_end_is_a_named_failure(tmp_path: Path) -> None:
    with pytest.raises(HostError) as late:
        ranks(ENDS_OR_WAITS, tmp_path, deadline_seconds=0.5)
    assert (late.value.code, late.value.outcome) == ("child_too_slow", Outcome.FAILED)


def test_what_is_printed_while_the_parent_looks_is_whole(tmp_path: Path) -> None:
    code = "for i in range(20000): print(i, flush=i % 100 == 0)"
    expected = "".join(f"{i}\n" for i in range(20000))
    assert ranks(code, tmp_path, kill=Kill(rank=0, text="never")) == [(0, expected), (0, expected)]
