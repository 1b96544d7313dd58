"""Small built trainings on two ranks for tests: a linear model, gradients reduced by buckets, an optimizer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from paritrace.compare.engine import compare
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Flag, OriginKind, Phase
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, Named, Out, Reduction, RunTable, Value, batch, parameter
from tests.compare.runs import SOURCE, numbers

NAMES = ("body.weight", "head.weight", "head.bias")
SIZE = 8
WORLD = 2


@dataclass(frozen=True)
class Recipe:
    """How the gradients of each step are reduced: in which buckets, over which group, by which operation."""

    buckets: Sequence[Sequence[str]] = (("head.weight", "head.bias"), ("body.weight",))
    how: Reduction = field(default_factory=lambda: Reduction(by="backward"))
    later: Sequence[Sequence[str]] = ()  # buckets of steps after the first, where they are rebuilt
    steps: int = 2
    extra: Callable[[RunTable, Array], None] | None = None  # what else a rank runs after its gradients


def gradient_of(name: str, *, step: int, rank: int) -> Array:
    """A gradient of one rank before reduction."""
    return numbers(100 * step + 10 * rank + NAMES.index(name), SIZE)


def training(recipe: Recipe, *, rank: int) -> RunTable:
    """One rank's training. Parameters outside of all buckets keep their own gradient."""
    table = RunTable(source=SOURCE)
    weights = {name: numbers(NAMES.index(name), SIZE) for name in NAMES}
    for step in range(recipe.steps):
        table.state("parameter", weights)
        data = numbers(7 + step + 50 * rank, SIZE)
        table.state("batch", {"args[0]": data}, moment="batch")
        loss = table.op("loss", batch(data), *(parameter(n, w) for n, w in weights.items()), out=data.sum(), line=3)
        table.loss(float(data.sum()))
        table.phase = Phase.BACKWARD
        gradients = {name: gradient_of(name, step=step, rank=rank) for name in NAMES}
        made = {
            name: table.op("accumulate", loss, out=value, node=f"AccumulateGrad:{name}")
            for name, value in gradients.items()
        }
        buckets = recipe.later if step and recipe.later else recipe.buckets
        for names in buckets:
            reduced = reduce_bucket(table, recipe.how, names, made, step=step)
            gradients |= reduced
        if recipe.extra is not None:
            recipe.extra(table, gradients["head.weight"])
        table.state("gradient", gradients, moment="grads")
        table.phase = Phase.OPTIMIZER
        for name, value in gradients.items():
            weights[name] = weights[name] - np.float32(0.1) * value
            source = Named(OriginKind.GRADIENT, name, Value(value))
            table.op("sgd", parameter(name, weights[name]), source, out=weights[name], line=9)
        table.end_step(grad_norm=float(sum(np.linalg.norm(value) for value in gradients.values())))
    table.state("parameter", weights)
    return table


def reduce_bucket(
    table: RunTable, how: Reduction, names: Sequence[str], made: Mapping[str, Out], *, step: int
) -> dict[str, Array]:
    """Put each gradient into its part of the bucket as DDP does, reduce the bucket, copy each part back."""
    parts = {name: made[name].value for name in names}
    filled = [
        table.op("mul.out", made[name], out=part, node=f"AccumulateGrad:{name}", line=4) for name, part in parts.items()
    ]
    flat = np.concatenate([part.array for part in parts.values() if isinstance(part, Value)])
    whole = np.concatenate([mean_of(name, how, step=step) for name in names])
    bucket = table.collective(
        replace(how, parameters=tuple(names)),
        replace(filled[-1], value=Value(flat)),  # the last to write into it made what it holds
        out=whole,
        node=f"AccumulateGrad:{names[-1]}",
        line=5,
    )
    reduced: dict[str, Array] = {}
    for place, name in enumerate(names):
        reduced[name] = whole[place * SIZE : (place + 1) * SIZE]
        given = replace(bucket, value=Value(reduced[name]))
        table.op("copy_", made[name], given, out=reduced[name], flags=int(Flag.INPLACE), line=6)
    return reduced


def mean_of(name: str, how: Reduction, *, step: int) -> Array:
    """What the group makes of every member's gradient."""
    total = sum((gradient_of(name, step=step, rank=rank) for rank in how.ranks), np.zeros(SIZE, np.float32))
    return total if how.reduce == "sum" else total / np.float32(len(how.ranks))


def both(place: Path, a: Recipe, b: Recipe, *, settings: Settings | None = None) -> Compared:
    """Two ranks of each recipe, written and compared."""
    for name, recipe in (("a", a), ("b", b)):
        for rank in range(WORLD):
            training(recipe, rank=rank).write(place / name, rank=rank, world_size=WORLD)
    return compare(open_run(place / "a"), open_run(place / "b"), settings or Settings())
