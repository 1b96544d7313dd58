"""Small built runs for the tests of comparing: a linear layer, a nonlinearity, a loss, backward and an optimizer."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from paritrace.compare.engine import compare
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Phase
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, Out, RunTable, Value, batch, parameter

SOURCE = "\n".join(f"line {number}" for number in range(1, 30))


def numbers(seed: int, *shape: int) -> Array:
    """Reproducible float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape or (96,)).astype(np.float32)


def compared(place: Path, *tables: RunTable, settings: Settings | None = None) -> Compared:
    """Both tables written and compared."""
    a, b = tables
    ours, theirs = a.write(place / "a"), b.write(place / "b")
    return compare(open_run(ours), open_run(theirs), settings or Settings())


Change = Callable[[RunTable, Out], Out]


def training(
    *, weight: Array | None = None, hidden: Change | None = None, scale: float = 2.0, steps: int = 2, late: int = 99
) -> RunTable:
    """A training of `steps` steps; `hidden` may insert calls between the layer and what follows it."""
    table = RunTable(source=SOURCE)
    weights = numbers(1) if weight is None else weight
    for step in range(steps):
        data = numbers(10 + step)
        table.state("parameter", {"fc.weight": weights})
        table.state("batch", {"args[0]": data}, moment="batch")
        model = table.enter("model", "Model")
        layer = table.enter("fc", "Linear")
        product = data * weights
        made = table.op("mul", batch(data), parameter("fc.weight", weights), out=product, line=3)
        made = layer.leave(batch(data), parameter("fc.weight", weights), out=made, line=3)
        made = Out(made.record + 1, 0, made.value)  # the operator made it; the module only passed it on
        if hidden is not None:
            made = hidden(table, made)
        assert isinstance(made.value, Value)
        factor = scale * (1.001 if step >= late else 1.0)
        active = np.tanh(made.value.array) * np.float32(factor)
        made = table.op("scaled_tanh", made, out=active, line=5)
        loss = np.float32(active.sum())
        made = table.op("sum", made, out=loss, line=6)
        model.leave(batch(data), out=made, line=7)
        table.loss(float(loss))
        table.phase = Phase.BACKWARD
        gradient = np.ones_like(active) * np.float32(factor)
        back = table.op("tanh_backward", made, out=gradient, link=made.record, node="TanhBackward0")
        grad = gradient * data
        table.op("mul_backward", back, batch(data), out=grad, link=made.record, node="MulBackward0")
        table.state("gradient", {"fc.weight": grad}, moment="grads")
        table.phase = Phase.OPTIMIZER
        weights = weights - np.float32(0.1) * grad
        table.op("sgd", parameter("fc.weight", weights), out=weights, line=9)
        table.end_step(grad_norm=float(np.linalg.norm(grad)))
    table.state("parameter", {"fc.weight": weights})
    return table
