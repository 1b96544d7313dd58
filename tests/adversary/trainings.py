"""A built training whose optimizer, set-up and clipping are calls of their own, to be changed one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paritrace.evidence.calls import Flag, OriginKind, Phase
from paritrace.testing.tables import Array, Named, Out, RunTable, Value, batch, parameter
from tests.compare.runs import SOURCE, numbers

NAME = "fc.weight"
INPLACE = Flag.INPLACE.value


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What one training does besides its forward pass."""

    steps: int = 2
    optimizer: Sequence[tuple[str, float]] = (("mul_", 0.99), ("add_", 0.9))  # function and factor, in place
    clipped: float | None = None  # by a call that nobody else makes, after backward
    warmed: float | None = None  # the weight changed in place before the first step
    draws: int = 0  # of the generator before the first step
    drawn_again: bool = False  # a call draws behind them, before the first step
    prepared: float | None = None  # the batch scaled by a call of its own
    decay: float = 1.0  # of the weight by code that is not recorded
    counts_its_backwards: bool = False  # the optimizer's calls bear another micro-batch


def training(recipe: Recipe) -> RunTable:
    """Steps of forward, backward and optimizer over one weight, with the inventory of each step."""
    table = RunTable(source=SOURCE)
    weights, generator = _set_up(table, recipe)
    for step in range(recipe.steps):
        data = numbers(10 + step)
        table.state("parameter", {NAME: weights})
        table.state("rng", {"torch_cpu": generator})
        given: Out | Named = batch(data)
        if recipe.prepared is not None:
            data = data * np.float32(recipe.prepared)
            given = table.op("scale", given, out=data, line=7)
        table.state("batch", {"args[0]": data}, moment="batch")
        mask, generator = _draw(table, generator, line=9)
        assert isinstance(mask.value, Value)
        product = data * weights * mask.value.array
        made = table.op("mul", given, parameter(NAME, weights), mask, out=product, line=3)
        table.loss(float(product.sum()))
        table.phase = Phase.BACKWARD
        grads = data * mask.value.array
        gradient = table.op("mul", made, given, out=grads, line=4)
        if recipe.clipped is not None:
            table.phase, table.microbatch = Phase.FORWARD, 1  # where a capture counts what follows a backward
            grads = grads * np.float32(recipe.clipped)
            gradient = table.op("clip_", gradient, out=grads, line=5, flags=INPLACE)
            table.microbatch = 0
        table.state("gradient", {NAME: grads}, moment="grads")
        weights = _optimized(table, recipe, gradient, weights)
        table.end_step()
    table.state("parameter", {NAME: weights})
    table.state("rng", {"torch_cpu": generator})
    return table


def _set_up(table: RunTable, recipe: Recipe) -> tuple[Array, Array]:
    weights, generator = numbers(1), np.arange(8, dtype=np.uint8)
    made = table.op("empty", out=weights, line=1)
    if recipe.warmed is not None:
        weights = weights * np.float32(recipe.warmed)
        table.op("mul_", made, out=weights, line=2, flags=INPLACE)
    for _ in range(recipe.draws):
        _, generator = _draw(table, generator, line=8)
    if recipe.drawn_again:
        _, generator = _draw(table, generator, line=10)
    return weights, generator


def _draw(table: RunTable, generator: Array, *, line: int) -> tuple[Out, Array]:
    state = Named(OriginKind.RNG, "torch_cpu", Value(generator, "rng"))
    mask = (numbers(int(generator[0])) > 0).astype(np.float32)
    return table.op("bernoulli", state, out=mask, line=line), generator + np.uint8(1)


def _optimized(table: RunTable, recipe: Recipe, gradient: Out, weights: Array) -> Array:
    table.phase, table.microbatch = Phase.OPTIMIZER, int(recipe.counts_its_backwards)
    for function, factor in recipe.optimizer:
        before, weights = weights, weights * np.float32(factor)
        table.op(function, parameter(NAME, before), gradient, out=weights, line=6, flags=INPLACE)
    table.microbatch = 0
    return weights * np.float32(recipe.decay)
