"""PF-4: what observing one operator costs its caller when there is next to nothing to read (one-element tensors)."""

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import paritrace
from benchmarks.journals import captured_calls
from benchmarks.measuring import RUNS, Row, in_turn, print_table
from paritrace.capture.settings import QueueFull
from paritrace.capture.writer import JournalWriter
from paritrace.evidence.calls import Call

CALLS = 2000


class EmptyMode(TorchDispatchMode):
    """What any observer of operators pays to torch: a Python call per operator."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def call_cost(context: Callable[[], AbstractContextManager[object]]) -> float:
    """Seconds of the calling thread, not of the writer's, for one `torch.add` of two one-element tensors."""
    one, other = torch.ones(1), torch.ones(1)
    with context(), torch.no_grad():
        for _ in range(CALLS // 10):
            torch.add(one, other)
        started = time.thread_time()
        for _ in range(CALLS):
            torch.add(one, other)
        return (time.thread_time() - started) / CALLS


class Discard:
    """A file that takes no time."""

    def write(self, data: bytes) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


def hand_over_cost(records: list[Call]) -> float:
    """Seconds of the calling thread for making one record and putting it in the writer's queue."""
    fields = [msgspec.structs.astuple(record) for record in records]
    journal = JournalWriter(Discard(), max_bytes=1 << 40, queue_full=QueueFull.BLOCK)
    journal.start()

    def put_all() -> None:
        for values in fields:
            journal.put(Call(*values))

    cost = in_turn({"put": put_all})["put"].cpu / len(records)
    journal.close(end=lambda: [records[0]])
    return cost


def main() -> None:
    """Print the table of PF-4."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), iter(range(1 << 30))
        records = captured_calls(folder)
        contexts: dict[str, Callable[[], AbstractContextManager[object]]] = {
            "bare": nullcontext,
            "empty": EmptyMode,
            "op": lambda: paritrace.trace(folder / str(next(count)), level="op"),
        }
        costs: dict[str, list[float]] = {key: [] for key in contexts}
        for _ in range(RUNS):
            for key, context in contexts.items():
                costs[key].append(call_cost(context))
    cost = {key: median(values) for key, values in costs.items()}
    encoder = msgspec.json.Encoder()
    encode = in_turn({"encode": lambda: [encoder.encode(record) for record in records]})["encode"].cpu / len(records)
    own = cost["op"] - cost["empty"]
    rows = [
        Row("one observation: slots, sites, scope, link, hand-over", own / encode, "one encode", ("<=", 2.0)),
        Row("of it: making the record and handing it over", hand_over_cost(records) / encode, "one encode"),
        Row("an empty dispatch mode", (cost["empty"] - cost["bare"]) / encode, "one encode"),
    ]
    note = (
        f"An observation takes {own * 1e6:.1f} us, an empty dispatch mode "
        f"{(cost['empty'] - cost['bare']) * 1e6:.1f} us, encoding a record {encode * 1e6:.2f} us."
    )
    print_table("PF-4", rows, (note,))


if __name__ == "__main__":
    main()
