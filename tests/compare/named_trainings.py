"""The same small training under names of one's own: what maps are for (CP-5)."""

from dataclasses import dataclass

import numpy as np

from paritrace.compare.renamings import Renaming, parse_map
from paritrace.evidence.calls import Phase
from paritrace.testing.tables import Out, RunTable, batch, parameter
from tests.compare.runs import SOURCE, numbers

OTHER_SIDE = {"baseline": "candidate", "candidate": "baseline"}


@dataclass(frozen=True)
class Names:
    """What two implementations of one model may call differently."""

    model: str = "model"
    first: str = "model.first"
    second: str = "model.second"
    weight: str = "weight"
    cls: str = "Linear"
    function: str = "aten.mul.Tensor"
    file: str = "a/model.py"


PORTED = Names("net", "net.in", "net.out", "kernel", "Dense", "jit.mul", "b/net.py")
MAPS = (
    "model=net",
    "model.first=net.in",
    "model.second=net.out",
    "model.first.weight=net.in.kernel",
    "model.second.weight=net.out.kernel",
    "file:a/model.py=b/net.py",
    "function:aten.mul.Tensor=jit.mul",
)


def named(names: Names, *, extra: int = -1, scale: float = 1.0) -> RunTable:
    """Two layers, each a product in its module, then backward; `extra`: a further call at this place of the forward."""
    table = RunTable(source=SOURCE, file=names.file)
    weights = {f"{module}.{names.weight}": numbers(place) for place, module in enumerate((names.first, names.second))}
    data = numbers(10)
    table.state("parameter", dict(weights))
    table.state("batch", {"args[0]": data}, moment="batch")
    model = table.enter(names.model, "Model")
    made = _layers(table, names, weights, extra=extra, scale=scale)
    model.leave(batch(data), out=made, line=7)
    table.loss(float(made.value.array.sum()))  # type: ignore[union-attr]  # built here: never a gap
    table.phase = Phase.BACKWARD
    for name, weight in weights.items():
        table.op("accumulate", parameter(name, weight), out=weight, node=f"AccumulateGrad:{name}")
    table.end_step()
    return table


def _layers(table: RunTable, names: Names, weights: dict[str, np.ndarray], *, extra: int, scale: float) -> Out:
    value = numbers(10)
    made = table.op(names.function, batch(value), out=value, line=2)
    for place, (name, weight) in enumerate(weights.items()):
        layer = table.enter(name.rpartition(".")[0], names.cls)
        if extra == place:
            table.op("extra", made, out=np.zeros(3, np.float32), line=4)
        value = value * weight * np.float32(scale if place else 1.0)
        table.op(names.function, made, parameter(name, weight), out=value, line=3)
        made = layer.leave(made, parameter(name, weight), out=value, line=5)
    return made


def maps(*texts: str) -> tuple[Renaming, ...]:
    return tuple(parse_map(text) for text in texts)


def mirrored(rules: tuple[Renaming, ...]) -> tuple[Renaming, ...]:
    """The same maps when the sides are exchanged."""
    return tuple(
        Renaming(old=rule.old, new=rule.new, side=OTHER_SIDE[rule.side], rank=rule.rank, of=rule.of) for rule in rules
    )
