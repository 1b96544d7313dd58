"""How far a store is, on the target and on the node; when syncs are due (ST-7, ST-10, ST-13, ST-18, ST-19)."""

import errno
from itertools import pairwise
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.gaps import Gap
from paritrace.store.periodic import sync_for_ever
from paritrace.store.schedule import first_delay_seconds
from paritrace.store.status import StoreStatus, status_of
from paritrace.store.syncing import SyncReport
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import ErrnoFiles
from tests.store.places import Place

INTERVAL = 60.0


def status(place: Place) -> StoreStatus:
    return status_of(place.target(), place.staged.staging, None, batch_bytes=1 << 20)


def test_what_waits_and_what_is_published(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n2\n")
    place.once()
    place.append("a.jsonl", b"3\nhalf")
    place.write("x.bin", b"12345")
    found = status(place)
    (published,), (staged,) = found.published, found.staged
    assert (published.node_id, published.rank, published.bundles, published.has_receipt) == ("n0", 0, 1, False)
    assert published.stored_bytes == sum((place.store / str(name)).stat().st_size for name in place.bundles())
    assert (staged.waiting_bytes, staged.payload_bytes, staged.trouble) == (11, 4, None)
    assert staged.last_success_unix_ns == place.clock.wall_ns()
    place.final()
    found = status(place)
    assert (found.published[0].has_receipt, found.staged[0].waiting_bytes) == (True, 4)


def test_bytes_that_wait_for_more_than_two_intervals_are_overdue(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"x" * 49 + b"\n")
    place.write("b.jsonl", (b"y" * 49 + b"\n") * 9)
    assert place.once(batch_bytes=60).overdue_bytes == 0
    place.clock.move(int(2.1 * INTERVAL * 1e9))
    report = place.once(batch_bytes=60)
    assert (report.overdue_bytes, report.waiting_bytes) == (400, 400)
    assert status(place).staged[0].overdue_bytes == 400


def test_a_failed_sync_is_kept_until_one_succeeds(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    place.append("a.jsonl", b"2\n")
    with pytest.raises(HostError):
        place.syncer(target=place.target(ErrnoFiles(operation="rename", number=errno.EACCES))).once()
    (found,) = status(place).staged
    assert found.trouble is not None
    assert (found.trouble.code, found.pending_bytes > 0, found.bundles) == ("not_permitted", True, 1)
    assert found.last_success_unix_ns == place.clock.wall_ns()
    place.once()
    (found,) = status(place).staged
    assert (found.trouble, found.pending_bytes, found.bundles) == (None, 0, 2)


def test_a_gap_and_a_damaged_checkpoint_show_without_reading_bundles(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(3):
        place.append("a.jsonl", b"%d\n" % number)
        place.once()
    (place.store / str(place.bundles()[1])).unlink()
    place.staged.checkpoint.write_bytes(b"{")
    found = status(place)
    assert [problem.kind.value for problem in found.problems] == ["missing_bundle"]
    assert (found.published[0].bundles, found.staged[0].checkpoint_readable) == (1, False)


def test_nothing_is_said_of_a_place_that_was_not_asked_about(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    alone = status_of(place.target(), None, None, batch_bytes=1)
    assert (alone.staged, isinstance(alone.free_bytes, Gap)) == ((), True)
    assert status_of(None, place.staged.staging, "r", batch_bytes=1).published == ()


def test_first_syncs_are_spread_over_nodes_and_ranks() -> None:
    delays = sorted(
        first_delay_seconds(f"node-{node}", local_rank=rank, interval_seconds=INTERVAL)
        for node in range(50)
        for rank in range(8)
    )
    assert 0 <= delays[0] < delays[-1] < INTERVAL
    tenths = [sum(6 * tenth <= delay < 6 * tenth + 6 for delay in delays) for tenth in range(10)]
    assert min(tenths) >= 25  # 40 each when they lie evenly
    ranks = sorted(first_delay_seconds("node", local_rank=rank, interval_seconds=INTERVAL) for rank in range(8))
    assert min(after - before for before, after in pairwise(ranks)) > INTERVAL / 8 / 4


class Ended(Exception):  # noqa: N818  # how a test ends what goes on for ever
    pass


class EndingClock(ManualClock):
    """Ends the loop at the nth sleep."""

    def __init__(self, sleeps: int) -> None:
        super().__init__()
        self._sleeps = sleeps

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if len(self.slept_seconds) > self._sleeps:
            raise Ended


def test_the_next_sync_is_due_at_once_while_bytes_wait_and_trouble_is_waited_out(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"0123456789\n" * 10)
    told: list[SyncReport | HostError] = []
    clock = EndingClock(6)

    def run(clock: EndingClock) -> None:
        syncer = place.syncer(batch_bytes=50)
        sync_for_ever(syncer, node_id="n", local_rank=1, interval_seconds=INTERVAL, tell=told.append, clock=clock)

    with pytest.raises(Ended):
        run(clock)
    assert [one.bundles for one in told if isinstance(one, SyncReport)] == [1, 2, 3, 3, 3, 3]
    assert clock.slept_seconds[1:] == [0.0, 0.0, INTERVAL, INTERVAL, INTERVAL, INTERVAL]
    place.originals.rename(tmp_path / "away")
    with pytest.raises(HostError) as caught:
        run(EndingClock(1))
    assert caught.value.code == "staging_gone"


def test_a_target_that_denies_is_told_and_tried_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    place.append("a.jsonl", b"2\n")
    told: list[SyncReport | HostError] = []
    denying = place.target(ErrnoFiles(operation="rename", number=errno.EACCES))
    with pytest.raises(Ended):
        sync_for_ever(
            place.syncer(target=denying),
            node_id="n",
            local_rank=0,
            interval_seconds=INTERVAL,
            tell=told.append,
            clock=EndingClock(3),
        )
    assert [one.code for one in told if isinstance(one, HostError)] == ["not_permitted"] * 3
    assert len(place.bundles()) == 1


def test_a_conflict_ends_the_loop(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    place.staged.checkpoint.unlink()
    with pytest.raises(EvidenceError):
        sync_for_ever(place.syncer(), node_id="n", local_rank=0, interval_seconds=1.0, tell=print, clock=EndingClock(3))
