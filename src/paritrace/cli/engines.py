"""`--engine` and `--workers`: who compares the ranks of two runs (CP-17)."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

if TYPE_CHECKING:
    from paritrace.process.pool import Pool
    from paritrace.runs.reading import Run

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

ENGINES = ("local", "ray")
MANY_CALLS = 200_000  # of both runs together: below, workers take longer to start than they save


class Engine(Struct, frozen=True):
    """What the options say; `workers` None: as many as seem worth it."""

    name: str
    workers: int | None


def engine_options(decorated: Decorated) -> Decorated:
    """`--workers` and `--engine`."""
    for option in (
        click.option("--engine", type=click.Choice(ENGINES), default="local", help="Who compares ranks [local]."),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            metavar="N",
            help="Ranks compared at once [default: cores, when calls are many].",
        ),
    ):
        decorated = option(decorated)
    return decorated


def pool_of(runs: tuple["Run", "Run"], engine: Engine, *, ranks: tuple[int, ...] | None) -> "Pool | None":
    """The pool that the options ask for; None: this process compares by itself.

    Raises:
        RequestError: Refused, `missing_extra`: Ray is asked for and not installed.
    """
    number = _default(runs, ranks) if engine.workers is None else engine.workers
    if engine.name == "ray":
        from paritrace.process.ray_pool import RayPool, require_ray

        require_ray()  # before anything is read
        return RayPool(max(number, 1))
    if number <= 1:
        return None
    from paritrace.process.pool import LocalPool

    return LocalPool(number)


def _default(runs: tuple["Run", "Run"], ranks: tuple[int, ...] | None) -> int:
    """As many as there are cores and ranks, when both runs have many calls; what no receipt counted is not many."""
    chosen = [view for run in runs for view in run.sessions if ranks is None or view.rank in ranks]
    calls = sum(view.receipt.counts.calls for view in chosen if view.receipt is not None)
    return min(len(os.sched_getaffinity(0)), len({view.rank for view in chosen})) if calls >= MANY_CALLS else 1
