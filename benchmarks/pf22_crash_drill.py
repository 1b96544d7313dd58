"""PF-22: one injected run of the crash drill: syncs killed at an operation, checked, and brought to their end."""

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.measuring import Row, print_table
from paritrace.testing.faults import Fault, FaultyFiles
from tests.store.drilling import check_after, check_checkpoint, check_visible, survived
from tests.store.places import Place

GOAL_SECONDS = 0.3
STEP = 12


def injected(folder: Path, at: int, fault: Fault) -> tuple[bool, float, float]:
    """Whether the fault was met, and the seconds of CPU and wall that the run took."""
    wall, cpu = time.monotonic(), time.process_time()
    place = Place(folder)
    files = FaultyFiles(at=at, fault=fault)
    survived(place, files)
    files.faulty.release()
    check_visible(place)
    check_checkpoint(place)
    check_after(place)
    return files.faulty.happened, time.process_time() - cpu, time.monotonic() - wall


def main() -> None:
    """Print the table of PF-22."""
    cpu: list[float] = []
    wall: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        for fault in (Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP):
            at, met = 1, True
            while met:
                met, used, took = injected(Path(name) / f"{fault}-{at}", at, fault)
                cpu.append(used)
                wall.append(took)
                at += STEP
    rows = [
        Row("CPU of one injected run", median(cpu) / GOAL_SECONDS, "300 ms", ("<=", 1.0)),
        Row("wall time of one injected run", median(wall) / GOAL_SECONDS, "300 ms"),
    ]
    print_table("PF-22", rows, (f"{len(cpu)} runs; the longest took {max(cpu) * 1000:.0f} ms of CPU.",))


if __name__ == "__main__":
    main()
