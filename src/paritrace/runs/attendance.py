"""Which ranks of a run left evidence and which did not, by number, restart by restart (CA-16)."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from paritrace.evidence.spans import ranges
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.views import SessionView

CAPTURED_RANKS = "captured_ranks"  # of the envelope's metadata: `0,1`, written only when `--ranks` was given
MAX_RANKS_LISTED = 1000  # a world size is what somebody's environment said; the counts are always given


class Attendance(Struct, frozen=True):
    """One incarnation: the ranks that were to be captured against those that wrote a session and a receipt.

    `world_sizes` is what its sessions say: more than one number when they disagree, and then the largest counts.
    `absent` wrote no session; `without_receipt` wrote one that has ended, or whose process is gone, without a receipt;
    `running` may still write one. The lists hold the first thousand, the counts all.
    """

    incarnation: int
    world_sizes: tuple[int, ...]
    num_expected: int
    num_absent: int
    absent: tuple[int, ...]
    without_receipt: tuple[int, ...]
    running: tuple[int, ...]
    last: bool  # no later restart is in the run

    @property
    def complete(self) -> bool:
        """Whether exactly the expected ranks wrote sessions and receipts."""
        return not self.num_absent and not self.without_receipt and not self.running and len(self.world_sizes) == 1


def attendance(sessions: Sequence[SessionView], *, captured: str = "") -> tuple[Attendance, ...]:
    """Return one entry for each incarnation of a run, in order.

    Args:
        captured: the ranks that were to be captured, as `CAPTURED_RANKS` has them; empty means all.
    """
    last = max((view.incarnation for view in sessions), default=0)
    incarnations = sorted({view.incarnation for view in sessions})
    return tuple(
        _of([view for view in sessions if view.incarnation == incarnation], captured, last=incarnation == last)
        for incarnation in incarnations
    )


def _of(sessions: Sequence[SessionView], captured: str, *, last: bool) -> Attendance:
    world = max(view.row.world_size for view in sessions)
    present = {view.rank for view in sessions}
    wanted = _wanted(captured, world)
    silent = [view for view in sessions if view.receipt is None]
    absent = _first(rank for rank in wanted if rank not in present)
    return Attendance(
        incarnation=sessions[0].incarnation,
        world_sizes=tuple(sorted({view.row.world_size for view in sessions})),
        num_expected=len(wanted),
        num_absent=len(wanted) - sum(rank in wanted for rank in present),
        absent=absent,
        without_receipt=_first(view.rank for view in silent if view.status is not SessionStatus.RUNNING),
        running=_first(view.rank for view in silent if view.status is SessionStatus.RUNNING),
        last=last,
    )


def _wanted(captured: str, world: int) -> Sequence[int]:
    if not captured:
        return range(world)
    # a file says so: it may say anything
    parts = [part for part in captured.split(",") if part.isdecimal() and len(part) < 10]
    return sorted({int(part) for part in parts if int(part) < world})


def _first(ranks: Iterable[int]) -> tuple[int, ...]:
    found: list[int] = []
    for rank in ranks:
        if len(found) == MAX_RANKS_LISTED:
            break
        found.append(rank)
    return tuple(found)


def in_words(of: Attendance) -> Iterator[str]:
    """Yield what is missing, by number; nothing where every expected rank wrote a session and a receipt."""
    when = f" in restart {of.incarnation}" if of.incarnation else ""
    if of.num_absent:
        more = f" and {of.num_absent - len(of.absent):,} more" if of.num_absent > len(of.absent) else ""
        wrote = "has written no session yet" if of.running else "wrote no session"
        yield f"rank {ranges(of.absent)}{more} of {of.num_expected:,} {wrote}{when}"
    if of.without_receipt:
        yield f"rank {ranges(of.without_receipt)} left no receipt{when}"
    if of.running:
        yield f"rank {ranges(of.running)} has no receipt yet{when}: running when last written"
    if len(of.world_sizes) > 1:
        yield f"the ranks do not agree on the world size{when}: {', '.join(map(str, of.world_sizes))}"
