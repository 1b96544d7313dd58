"""`python -m benchmarks.tiers`: what each tier of a long capture costs a step, in CPU time and bytes (CA-2, CA-36)."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import paritrace
from benchmarks.encoder import Training
from paritrace.capture.api import current

ROUNDS = 5  # every tier once per round; the ratio of a round is to the bare steps of that round
FIRST = 65  # no power of two follows for long: the black box has no window of level `op` in what is measured
WARM_STEPS, STEPS = 2, 3  # definitions come with the first two steps
ALWAYS = (0, 1 << 30)
BARE = "bare"


def tiers(folder: Path) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """A context for some steps, by the name of its tier."""
    count = iter(range(1 << 30))

    def trace(*levels: str, black_box: bool = False) -> AbstractContextManager[object]:
        return paritrace.trace(folder / str(next(count)), level=levels, steps=ALWAYS, diff=False, black_box=black_box)

    return {
        BARE: nullcontext,
        "digest": partial(trace, "digest"),
        "digest + black box": partial(trace, "digest", black_box=True),
        "module": partial(trace, "module"),
        "module + op (a window)": partial(trace, "module", "op"),
    }


def round_of(training: Training, tier: Callable[[], AbstractContextManager[object]]) -> tuple[float, float]:
    """CPU seconds of a step, and the bytes it adds to the journal."""
    costs: list[float] = []
    before = 0
    with tier():
        for number in range(WARM_STEPS + STEPS):
            paritrace.step(FIRST + number)
            if number == WARM_STEPS:
                before = written()
            started = time.process_time()
            training.step()
            if number >= WARM_STEPS:
                costs.append(time.process_time() - started)
        paritrace.step(FIRST + WARM_STEPS + STEPS)
        return statistics.median(costs), (written() - before) / STEPS


def written() -> int:
    """Bytes in the journal of the capture that is running, if any."""
    capture = current()
    if capture is None:
        return 0
    capture.recorder.writer.drain()
    return capture.recorder.writer.bytes_written


def main() -> None:
    """Print the table."""
    training = Training()
    with tempfile.TemporaryDirectory() as name:
        found: dict[str, list[tuple[float, float]]] = {}
        for number in range(ROUNDS):
            for tier, context in tiers(Path(name) / str(number)).items():
                found.setdefault(tier, []).append(round_of(training, context))
    parameters = sum(1 for _ in training.model.parameters())
    modules = sum(1 for _ in training.model.modules())
    print(f"{modules} modules, {parameters} parameters, AdamW; the bare step takes {_cpu(found[BARE]):.3f} s of CPU.")
    print("\n| tier | CPU of a step | bytes of the journal per step |\n|---|---|---|")
    for tier, rounds in found.items():
        ratio = statistics.median(one[0] / bare[0] for one, bare in zip(rounds, found[BARE], strict=True))
        num_bytes = statistics.median(one[1] for one in rounds)
        print(f"| {tier} | {ratio:.3f} x | {num_bytes:,.0f} |")


def _cpu(rounds: list[tuple[float, float]]) -> float:
    return statistics.median(cost for cost, _ in rounds)


if __name__ == "__main__":
    main()
