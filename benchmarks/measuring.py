"""How every figure here is taken: things in turn, the time of this thread or process, medians, ratios."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

RUNS = 7  # interleaved; performance.md asks for at least 5


class Cost(NamedTuple):
    """Seconds for one call: medians over the runs. `cpu` is what the calling thread used, or the whole process where
    the work has threads of its own; machines are shared."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """One line of a table: `value` is a ratio to `against`; `goal` as (`<=` or `>=`, number), None without one."""

    what: str
    value: float
    against: str
    goal: tuple[str, float] | None = None

    def text(self) -> str:
        """The line in Markdown; the last cell says whether the goal was met."""
        if self.goal is None:
            return f"| {self.what} | {self.value:.3f} | {self.against} | | |"
        sign, number = self.goal
        met = self.value <= number if sign == "<=" else self.value >= number
        outcome = "met" if met else "**missed**"
        return f"| {self.what} | {self.value:.3f} | {self.against} | {sign} {number:g} | {outcome} |"


HEAD = "| {} | ratio | against | goal | |\n|---|---|---|---|---|"


def in_turn(
    things: Mapping[str, Callable[[], object]],
    *,
    calls: int = 1,
    runs: int = RUNS,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, Cost]:
    """The cost of one call of each thing; every run takes each once, `calls` times over, after one run to warm up.

    `clock`: of CPU seconds: of this thread, or `time.process_time`.
    """
    samples: dict[str, list[Cost]] = {name: [] for name in things}
    for run in range(runs + 1):
        for name, thing in things.items():
            cost = _cost(thing, calls, clock)
            if run:
                samples[name].append(cost)
    return {
        name: Cost(statistics.median(cost.cpu for cost in costs), statistics.median(cost.wall for cost in costs))
        for name, costs in samples.items()
    }


def _cost(thing: Callable[[], object], calls: int, clock: Callable[[], float]) -> Cost:
    wall, cpu = time.perf_counter(), clock()
    for _ in range(calls):
        thing()
    return Cost((clock() - cpu) / calls, (time.perf_counter() - wall) / calls)


def print_table(title: str, rows: list[Row], notes: tuple[str, ...] = ()) -> None:
    """A heading cell, the rows, and notes below."""
    print("\n".join([HEAD.format(title), *(row.text() for row in rows)]))
    for note in notes:
        print(f"\n{note}")
