"""Traces for tests: written, imported, and what came of it."""

import json
from pathlib import Path

from paritrace.inference.importers.kineto import KINETO
from paritrace.inference.importing import Account, Asked, Scope
from paritrace.inference.records import Observation

DATA = Path(__file__).parents[2] / "data" / "inference" / "kineto"
SCOPE = Scope("run", "session")


def imported(path: Path, **options: str) -> tuple[list[Observation], Account]:
    """Returns all events of a trace, and its account."""
    reading = KINETO.open(
        Asked(path=path, scope=SCOPE, options={name.replace("_", "-"): options[name] for name in options})
    )
    events: list[Observation] = []
    while True:
        try:
            events.append(next(reading.events))
        except StopIteration as end:
            account: Account = end.value
            return events, account


def written(folder: Path, events: list[dict[str, object]], **members: object) -> Path:
    """Returns a trace of these events."""
    path = folder / "trace.json"
    path.write_text(json.dumps({**members, "traceEvents": events}))
    return path


def kernel(name: str = "k", *, ts: float = 100, dur: float = 10, **args: object) -> dict[str, object]:
    """Returns device work on device 0, stream 7."""
    args = {"device": 0, "stream": 7, **args}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


def launch(correlation: object, *, ts: float = 50, dur: float = 5, tid: int = 1, pid: int = 9) -> dict[str, object]:
    """Returns a call that launches."""
    args = {"correlation": correlation}
    name, cat = "cudaLaunchKernel", "cuda_runtime"
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def annotation(name: str, *, ts: float, dur: float, tid: int = 1, cat: str = "user_annotation") -> dict[str, object]:
    """Returns a range of process 9."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, "ts": ts, "dur": dur, "args": {}}
