"""PF-18: how soon a rank that was stopped (SIGSTOP) is flagged; beside torchrun and Ray, watched for 45 s."""

import signal

from benchmarks.measuring import Row, print_table
from benchmarks.sessions import ours, peers
from benchmarks.sessions.loads import COLLECTIVE

GOAL_SECONDS = 6.0
WATCHED_SECONDS = 45.0
RUNS = 3


def main() -> None:
    """Print the table of PF-18: the slowest of some runs, as a ratio to the goal; never counts as the whole watch."""
    stop = signal.SIGSTOP
    known = [ours.death(COLLECTIVE, stop, most=WATCHED_SECONDS).known for _ in range(RUNS)]
    rows = [Row("session: a stopped rank is flagged", slowest(known), f"{GOAL_SECONDS:g} s", ("<=", 1.0))]
    by_torchrun = peers.under_torchrun(COLLECTIVE, stop, most=WATCHED_SECONDS).known
    rows.append(Row(f"torchrun: {said(by_torchrun)}", slowest([by_torchrun]), f"{GOAL_SECONDS:g} s"))
    notes = [f"The slowest of {RUNS} for the session. What was never flagged counts as {WATCHED_SECONDS:g} s."]
    end = peers.ray_session()
    if end is None:
        notes.append("Ray is not installed, or did not start.")
    else:
        by_ray = peers.under_ray(COLLECTIVE, stop, most=WATCHED_SECONDS).known
        rows.append(Row(f"Ray: {said(by_ray)}", slowest([by_ray]), f"{GOAL_SECONDS:g} s"))
        end()
    print_table("PF-18", rows, tuple(notes))


def slowest(seconds: list[float | None]) -> float:
    """The slowest as a ratio to the goal."""
    return max(WATCHED_SECONDS if one is None else one for one in seconds) / GOAL_SECONDS


def said(seconds: float | None) -> str:
    """What was seen of a peer."""
    return f"never within {WATCHED_SECONDS:g} s" if seconds is None else "flagged"


if __name__ == "__main__":
    main()
