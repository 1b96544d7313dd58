"""What every engine must do: one suite, the engine as a fixture (SE-16). Real processes, real signals."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from paritrace.process.stat import parse_stat
from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.engines.seam import Engine, FromEngine, RankSpec
from paritrace.session.messages import Joined, from_rank

Found = TypeVar("Found")

DEADLINE_SECONDS = 60.0  # a loaded machine with two cores; all of it takes well under a second otherwise
SOON_SECONDS = 5.0  # what has to be quick, on a loaded machine


class Ranks:
    """An engine under test with its ranks started; keeps what came that a test did not ask for yet."""

    def __init__(self, engine: Engine, spec: RankSpec) -> None:
        self.engine = engine
        self.spec = spec
        self.pids: dict[int, int] = {}
        self._kept: list[FromEngine] = []

    def start(self) -> None:
        self.engine.start(self.spec)
        self.joined()

    def joined(self) -> None:
        """Take the first word of every rank."""
        for rank in range(self.spec.world_size):
            data = self.next(rank)
            assert data is not None
            word = from_rank(data)
            assert isinstance(word, Joined)
            assert (word.rank, word.generation, word.job_id) == (rank, self.spec.generation, self.spec.job_id)
            self.pids[rank] = word.pid

    def next(self, rank: int, *, seconds: float = DEADLINE_SECONDS) -> bytes | None:
        """The next that a rank brings; fails where nothing comes."""
        until = time.monotonic() + seconds
        while True:
            for one in self._kept:
                if one.rank == rank:
                    self._kept.remove(one)
                    return one.data
            assert time.monotonic() < until, f"nothing came from rank {rank}"
            self._kept += self.engine.receive(until - time.monotonic())

    def keep(self) -> None:
        """Take what is here, for whoever asks for it later."""
        self._kept += self.engine.receive(0.0)

    def words_of(self, rank: int) -> str:
        """What the engine itself says of an end, once it does."""

        def said() -> str:
            self.keep()
            return self.engine.exit_evidence(rank).words

        return within(said)

    def wait_of(self, rank: int) -> Exited | Signalled:
        """How the process of a rank ended, once that is known."""
        within(lambda: self.engine.exit_evidence(rank).wait)
        found = self.engine.exit_evidence(rank).wait
        assert found is not None
        return found

    def tell(self, rank: int, order: str) -> None:
        assert self.engine.send(rank, order.encode())

    def asked(self, rank: int, order: str) -> str:
        self.tell(rank, order)
        data = self.next(rank)
        assert data is not None
        return data.decode()


class Conformance:
    """Inherited by one test class per engine, which has the fixture `ranks`."""

    def test_se16_bytes_go_both_ways_whole_and_in_order(self, ranks: Ranks) -> None:
        assert ranks.asked(1, "echo one") == "one"
        for number in range(50):
            ranks.tell(0, f"echo {number}")
        assert [ranks.next(0) for _ in range(50)] == [str(number).encode() for number in range(50)]

    @pytest.mark.slow
    def test_se16_a_message_larger_than_any_buffer_arrives(self, ranks: Ranks) -> None:
        size = 5_000_000
        assert ranks.asked(0, "count " + "y" * size) == str(size)
        ranks.tell(1, f"big {size}")
        assert ranks.next(1) == b"x" * size

    def test_se16_a_killed_rank_is_told_once_at_once_and_with_its_signal(self, ranks: Ranks) -> None:
        os.kill(ranks.pids[1], signal.SIGKILL)
        started = time.monotonic()
        assert ranks.next(1) is None
        assert time.monotonic() - started < SOON_SECONDS
        evidence = ranks.engine.exit_evidence(1)
        assert (evidence.pid, evidence.signals_by_us) == (ranks.pids[1], ())
        assert ranks.wait_of(1) == Signalled(signal.SIGKILL)
        assert ranks.asked(0, "echo still") == "still"
        assert ranks.engine.receive(0.0) == []
        assert not ranks.engine.send(1, b"echo nobody")

    @pytest.mark.slow
    def test_se16_an_exit_status_of_the_ranks_own_choice_is_told_from_a_signal(self, ranks: Ranks) -> None:
        ranks.tell(0, "exit 137")
        assert ranks.next(0) is None
        assert ranks.wait_of(0) == Exited(137)
        assert ranks.engine.exit_evidence(1).wait is None

    def test_se16_the_last_words_before_an_end_come_before_it(self, ranks: Ranks) -> None:
        ranks.tell(0, "echo last")
        ranks.tell(0, "exit 3")
        assert [ranks.next(0), ranks.next(0)] == [b"last", None]

    @pytest.mark.slow
    def test_se12_an_end_is_seen_though_a_data_loader_holds_the_line(self, ranks: Ranks) -> None:
        assert ranks.asked(0, "fork") == "forked"
        os.kill(ranks.pids[0], signal.SIGKILL)
        assert ranks.next(0, seconds=SOON_SECONDS) is None

    @pytest.mark.slow
    def test_se12_stacks_come_with_the_gil_held_and_from_a_c_call(self, ranks: Ranks) -> None:
        assert ranks.asked(0, "hold_gil") == "holding"
        assert ranks.asked(1, "block") == "blocking"
        texts = within(lambda: _both(ranks))
        assert "_held_with_the_gil" in texts[0]
        assert "_blocked_in_c" in texts[1]

    @pytest.mark.slow
    def test_se13_a_stopped_rank_gives_no_stacks_within_the_bound_and_lives_on(self, ranks: Ranks) -> None:
        with stopped(ranks.pids[1]):
            started = time.monotonic()
            assert set(ranks.engine.dump_stacks((0, 1))) == {0}
            assert time.monotonic() - started < SOON_SECONDS
            assert ranks.engine.exit_evidence(1).wait is None
        assert ranks.asked(1, "echo again") == "again"

    @pytest.mark.slow
    def test_se16_a_wait_is_ended_from_another_thread(self, ranks: Ranks) -> None:
        ranks.engine.wake()
        started = time.monotonic()
        assert ranks.engine.receive(DEADLINE_SECONDS) == []
        assert time.monotonic() - started < SOON_SECONDS


class EndsRanks:
    """What engines that own their ranks must do beyond: end them, whatever they are in."""

    @pytest.mark.slow
    @pytest.mark.parametrize("order", ["hold_gil", "block"])
    def test_se16_a_rank_in_native_code_is_killed(self, ranks: Ranks, order: str) -> None:
        ranks.asked(1, order)
        ranks.engine.terminate(1)  # it has a handler, which never runs
        assert ranks.engine.exit_evidence(1).wait is None
        ranks.engine.kill(1)
        assert ranks.next(1, seconds=SOON_SECONDS) is None
        assert signal.SIGKILL in ranks.engine.exit_evidence(1).signals_by_us

    @pytest.mark.slow
    def test_se16_a_stopped_rank_is_killed(self, ranks: Ranks) -> None:
        os.kill(ranks.pids[1], signal.SIGSTOP)
        ranks.engine.kill(1)
        assert ranks.next(1, seconds=SOON_SECONDS) is None

    def test_se16_close_ends_every_rank(self, ranks: Ranks) -> None:
        ranks.asked(0, "block")
        ranks.engine.close()
        within(lambda: not any(map(lives, ranks.pids.values())))


def _both(ranks: Ranks) -> dict[int, str] | None:
    """The stacks of both ranks once these are where they were sent."""
    found = ranks.engine.dump_stacks((0, 1))
    return found if "_held" in found.get(0, "") and "_blocked" in found.get(1, "") else None


class stopped:  # noqa: N801  reads as a word at its use
    """A process that is stopped for a while."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __enter__(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        within(lambda: state_of(self._pid) == "T")

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGCONT)


def within(found: Callable[[], Found | None], *, seconds: float = DEADLINE_SECONDS) -> Found:
    """Ask again and again until it is true; fails past the deadline."""
    until = time.monotonic() + seconds
    while not (one := found()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)
    return one


def state_of(pid: int) -> str:
    """The state letter of a process; empty where it is gone."""
    try:
        return parse_stat(Path("/proc", str(pid), "stat").read_bytes()).state
    except OSError:
        return ""


def lives(pid: int) -> bool:
    """Whether a process runs: one that nobody has waited for yet does not."""
    return state_of(pid) not in ("", "Z", "X")
