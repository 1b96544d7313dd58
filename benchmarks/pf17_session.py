"""PF-17: a session's cost per step, its commands and status, a rank's death and stops; beside torchrun and Ray."""

import signal
from statistics import median, quantiles

from benchmarks.measuring import Row, print_table
from benchmarks.sessions import ours, peers
from benchmarks.sessions.loads import COLLECTIVE, NATIVE
from benchmarks.sessions.watching import Death

DEATHS, NATIVE_DEATHS, STOPS, ASKED, STEPS = 5, 2, 1000, 400, 100_000
MOST_SECONDS = 60.0
MET = ("<=", 1.0)


def main() -> None:
    """Print the table of PF-17: every row a ratio to the goal that its row names, peers in the same minutes."""
    session, bare = ours.step_seconds(STEPS)
    asked = ours.asked(ASKED)
    rows = [
        Row("a step that does nothing, beyond a bare loop", (session - bare) / 5e-6, "5 us", MET),
        Row("status over HTTP, p50", median(asked.status) / 0.002, "2 ms", MET),
        Row("status over HTTP, p99", p99(asked.status) / 0.020, "20 ms", MET),
        Row("a command is taken up, p50", median(asked.taken_up) / 0.010, "10 ms", MET),
        Row("a command is taken up, p99", p99(asked.taken_up) / 0.100, "100 ms", MET),
        Row("a configure is done on all ranks at one step, p50", median(asked.done) / 0.100, "100 ms"),
    ]
    notes: list[str] = []
    kill = signal.SIGKILL
    found = [ours.death(COLLECTIVE, kill, most=MOST_SECONDS) for _ in range(DEATHS)]
    stuck = [ours.death(NATIVE, kill, most=MOST_SECONDS) for _ in range(NATIVE_DEATHS)]
    rows += death_rows("session", found, stuck, MET)
    found = [peers.under_torchrun(COLLECTIVE, kill, most=MOST_SECONDS) for _ in range(DEATHS)]
    stuck = [peers.under_torchrun(NATIVE, kill, most=MOST_SECONDS) for _ in range(NATIVE_DEATHS)]
    rows += death_rows("torchrun", found, stuck, None)
    end = peers.ray_session()
    if end is None:
        notes.append("Ray is not installed, or did not start.")
    else:
        found = [peers.under_ray(COLLECTIVE, kill, most=MOST_SECONDS) for _ in range(DEATHS)]
        stuck = [peers.under_ray(NATIVE, kill, most=MOST_SECONDS) for _ in range(NATIVE_DEATHS)]
        rows += death_rows("Ray", found, stuck, None)
        end()
    stops = ours.stops(STOPS)
    goal_seconds = 2 * ours.STEP_SECONDS + 0.050
    rows += [
        Row(
            "stop to all ranks parked at one step, p95",
            quantiles(stops.seconds, n=20)[-1] / goal_seconds,
            "2 steps + 50 ms",
            MET,
        ),
        Row(f"stops of {STOPS} that hung or parted", float(stops.apart), "one", ("<=", 0.0)),
    ]
    notes.append(
        f"Two ranks. Medians of {DEATHS} deaths between all-reduces and of {NATIVE_DEATHS} beside a rank in native "
        f"code; what was not over after {MOST_SECONDS:g} s counts as so long. "
        f"The slowest stop took {max(stops.seconds) * 1000:.0f} ms."
    )
    print_table("PF-17", rows, tuple(notes))


def death_rows(who: str, found: list[Death], stuck: list[Death], goal: tuple[str, float] | None) -> list[Row]:
    """How soon a killed rank is known, and all are gone, by one way to run ranks."""
    return [
        Row(f"{who}: a killed rank is known", middle([one.known for one in found]) / 0.1, "100 ms", goal),
        Row(f"{who}: all ranks are gone", middle([one.gone for one in found]), "1 s", goal),
        Row(f"{who}: all are gone, one in native code", middle([one.gone for one in stuck]) / 5.0, "5 s", goal),
    ]


def middle(seconds: list[float | None]) -> float:
    """The median; what was not seen counts as the whole watch."""
    return median(MOST_SECONDS if one is None else one for one in seconds)


def p99(seconds: list[float]) -> float:
    """The 99th percentile."""
    return quantiles(seconds, n=100)[-1]


if __name__ == "__main__":
    main()
