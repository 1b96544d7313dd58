"""What each of the two ranks runs: every named training bare and captured, its figures as JSON lines (CA-14, CA-34).

`python -m torch.distributed.run --nproc-per-node 2 -m benchmarks.same_bits.ranked_job PLACE NAME…` writes
`PLACE/rank-R.jsonl`. Many trainings share one life of the process group: to start one takes longer than to train.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import paritrace
from benchmarks.same_bits import ranked_workloads, workloads
from benchmarks.same_bits.counting import counted
from benchmarks.same_bits.ranked_workloads import ON_ANY_THREAD, RANKED
from benchmarks.same_bits.table import LEVELS, REWRITTEN, bits_of, rewritten_bits
from benchmarks.same_bits.workloads import Workload
from paritrace.capture.session import Workload as Place
from paritrace.capture.session import begin
from paritrace.capture.settings import CaptureSettings, parse_levels
from paritrace.runs.envelope import SessionStatus

# A training takes a tenth of a second; a rank that waits a minute for the other waits for nothing.
DEADLINE = timedelta(seconds=60)
REUSING = ("op", "module + op")


def figures(name: str, place: Path) -> Iterator[dict[str, Any]]:
    """One row for each run of the training, in the same order on both ranks."""
    training = RANKED[name]
    apart = ON_ANY_THREAD.get(name, frozenset())
    for column in ("bare", "bare again"):
        yield {"asked": "bits", "column": column, "bits": bits_of(training)}
    for level, levels in LEVELS.items():
        with paritrace.trace(place / f"bits {level}", level=levels, steps=(0, 1000), diff=False):
            bits = bits_of(training)
        yield {"asked": "bits", "column": level, "bits": bits}
    bits = rewritten_bits("RANKED", name, place / REWRITTEN, ranked_workloads, workloads)
    yield {"asked": "bits", "column": REWRITTEN, "bits": bits}
    yield calls_row("bare", training, apart)
    for level, levels in LEVELS.items():
        with paritrace.trace(place / f"calls {level}", level=levels, steps=(0, 1000), diff=False):
            row = calls_row(level, training, apart)
        yield row
    for level in REUSING:
        yield reuse_row(level, training, place / f"reuse {level}")


def calls_row(column: str, training: Workload, apart: frozenset[str]) -> dict[str, Any]:
    counting = counted(training())
    counting.without(apart)
    return {
        "asked": "calls",
        "column": column,
        "calls": len(counting.names),
        "order": counting.digest(),
        "resizable": counting.resizable[True],
        "not_resizable": counting.resizable[False],
    }


def reuse_row(column: str, training: Workload, run: Path) -> dict[str, Any]:
    """Under a capture that recomputes whatever it takes over (CA-32)."""
    settings = CaptureSettings(levels=parse_levels(LEVELS[column]), steps=(0, 1000), check_reuse=True, diff=False)
    capture = begin(run, settings, workload=Place(root=run.parent, main=None, argv=()))
    try:
        bits_of(training)
    finally:
        capture.end(SessionStatus.COMPLETED, metadata={})
    reused, stale = capture.observer.reuse if capture.observer is not None else (0, 0)
    gaps = {str(gap): number for gap, number in capture.gaps.items()}
    failure = capture.failure.message if capture.failure is not None else ""
    return {
        "asked": "reuse",
        "column": column,
        "reused": reused,
        "stale": stale,
        "gaps": gaps,
        "failure": failure,
    }


def run(place: Path, names: list[str]) -> None:
    rank = dist.get_rank()
    with (place / f"rank-{rank}.jsonl").open("a", encoding="utf-8") as out:

        def tell(**row: Any) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        for name in names:
            tell(training=name, begun=True)
            try:
                for row in figures(name, place / name.replace(" ", "-")):
                    tell(training=name, **row)
            except BaseException as error:
                tell(training=name, error=f"{type(error).__name__}: {error}"[:2000])
                raise


def main() -> None:
    place, *names = sys.argv[1:]
    torch.set_num_threads(1)
    gc.freeze()  # a capture looks through what was made since: not, ten times a training, through all that torch is
    dist.init_process_group("gloo", timeout=DEADLINE)
    try:
        run(Path(place), names)
    except BaseException:  # noqa: BLE001  it is printed, and the process ends
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # the other rank waits inside a collective: nothing of the group can be ended in order
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
