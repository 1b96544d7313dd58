"""The two-rank mechanisms at generated places: another seed, batch size and, where one is meant, parameter (CP-18)."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.faults.case import Edit, Expected, ExpectedCheck, Fault, Launch, Variant
from benchmarks.faults.ranked_faults import RANKED_FAULTS, UP

SEEDS = tuple(range(7, 12))
BATCHES = (3, 4, 5)
PARAMETERS = tuple(
    f"blocks.{layer}.{name}.weight"
    for layer in range(2)
    for name in ("attention.qkv", "attention.output", "mlp.up", "mlp.down")
)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A pair of two-rank runs at a place; `parameter` is empty where the mechanism has none."""

    id: str
    name: str
    fault: Fault
    seed: int
    batch: int
    parameter: str


def ranked_pairs(count: int, *, seed: int) -> Iterator[Ranked]:
    """Every two-rank mechanism at `count` places, the first of all before the second of any."""
    for number in range(count):
        for fault in RANKED_FAULTS:
            draw = random.Random(f"{seed}/{fault.name}/{number}")
            parameter = draw.choice(PARAMETERS) if names_parameter(fault) else ""
            found = Ranked(
                id=f"{fault.name}/{number:02}/ranked",
                name=fault.name,
                fault=fault,
                seed=SEEDS[number % len(SEEDS)],
                batch=draw.choice(BATCHES),
                parameter=parameter,
            )
            yield replace(found, fault=placed(found))


def names_parameter(fault: Fault) -> bool:
    return any(UP in edit.new for edit in fault.candidate.edits)


def placed(pair: Ranked) -> Fault:
    """The fault with its parameter, seed and batch size; what is expected follows."""
    fault, new = pair.fault, pair.parameter or UP
    more = ("--seed", str(pair.seed), "--batch", str(pair.batch))
    return replace(
        fault,
        baseline=started(fault.baseline, more),
        candidate=replace(
            started(fault.candidate, more),
            edits=tuple(
                Edit(file=one.file, old=one.old, new=one.new.replace(UP, new)) for one in fault.candidate.edits
            ),
        ),
        expected=tuple(moved(expected, new) for expected in fault.expected),
        check=tuple(moved_check(expected, new) for expected in fault.check),
    )


def started(variant: Variant, more: tuple[str, ...]) -> Variant:
    """By hand instead of through torchrun: the ranks are forked from a process that has imported torch."""
    return replace(variant, launch=Launch.BY_HAND, arguments=(*variant.arguments, *more))


def moved(expected: Expected, parameter: str) -> Expected:
    return replace(expected, names=tuple(parameter if name == UP else name for name in expected.names))


def moved_check(expected: ExpectedCheck, parameter: str) -> ExpectedCheck:
    return replace(expected, names=tuple(parameter if name == UP else name for name in expected.names))
