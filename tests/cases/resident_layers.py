"""A resident workload of two numbers per rank that are called layers; without torch, so that sessions start at once."""

import hashlib
import json
from pathlib import Path
from typing import Any

from paritrace.session.workload import Context, Inspected, Metrics, Refusal

LAYERS = ("layer1", "layer2")


class Layers:
    """Every rank adds its number plus one to each layer at each step. `leave_out_on`: that rank saves no layer2;
    `breaks_at`: a step that raises after the first layer."""

    def __init__(self, leave_out_on: int | None = None, breaks_at: int | None = None, partial: str = "") -> None:
        self._leave_out_on, self._breaks_at, self._partial = leave_out_on, breaks_at, Path(partial or ".")
        self._layers: dict[str, float] = {}
        self._next = 0

    def load(self, ctx: Context) -> None:
        """Nothing to read."""

    def build(self, ctx: Context) -> None:
        self._layers, self._next = dict.fromkeys(LAYERS, 0.0), 0

    def step(self, ctx: Context, n: int) -> Metrics:
        for name in LAYERS:
            if n == self._breaks_at and name == "layer2" and not (self._partial / "mended").exists():
                raise RuntimeError("interrupted in the middle of a step")
            self._layers[name] += ctx.rank + 1
        self._next = n + 1
        return {"layer1": self._layers["layer1"], "layer2": self._layers["layer2"]}

    def close(self, ctx: Context) -> None:
        """Nothing to let go of."""

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]:
        own = f"rank-{ctx.rank}.json"
        layers = {k: v for k, v in self._layers.items() if k != "layer2" or ctx.rank != self._leave_out_on}
        (folder / own).write_text(json.dumps({"step": self._next, "layers": layers}))
        return (own,)

    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal:
        state: dict[str, Any] = json.loads((folder / f"rank-{ctx.rank}.json").read_text())
        missing = [name for name in LAYERS if name not in state["layers"]]
        if missing:
            return Refusal(tuple(f"{name}: missing" for name in missing))
        return Inspected(state["step"], digest=str(state["step"]), retained_bytes=100, payload=state["layers"])

    def apply(self, ctx: Context, inspected: Inspected) -> int:
        assert isinstance(inspected.payload, dict)
        self._layers, self._next = dict(inspected.payload), inspected.step
        return inspected.step

    def state_digest(self, ctx: Context) -> str:
        shared = {name: value / (ctx.rank + 1) for name, value in self._layers.items()}
        return hashlib.sha256(json.dumps(shared).encode()).hexdigest()
