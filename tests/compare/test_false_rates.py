"""How often claims are made of runs that are nothing but one more draw: at most as often as is printed (CP-10, CP-10a).

Everything that an envelope says is simulated under a true null: exits by error, norm or bias, joint statements over
ranks, states, and gains. The places are those of a training: many or few, each with a size of its own, some at which
draws often agree with the baseline, correlated or not, with normal or heavy tails.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binomtest

from paritrace.compare.envelope import Envelope, calibrate
from paritrace.compare.judged_by import joined
from paritrace.compare.leaving_out import Table, left_out
from paritrace.compare.strengths import Strengths
from paritrace.compare.tabulated import Place, tabulated


@dataclass(frozen=True, kw_only=True)
class Null:
    """`tail`: degrees of freedom of the logarithm of sizes, 0 for normal; `common`: how far places move together."""

    places: int = 12
    draws: int = 8
    tail: float = 0.0
    common: float = 0.0
    agreeing: float = 0.0  # how often a draw agrees with the baseline at every third place
    ranks: int = 1
    spoiled: float = 0.0  # how often a run has a value that is not finite, at a place of its own


NULLS = {
    "few draws": Null(draws=4),
    "an odd number of draws": Null(draws=5, places=3, tail=2.0),
    "heavy tails, moving together": Null(tail=2.0, common=0.5),
    "places that often agree": Null(draws=8, agreeing=0.4, common=0.3),
    "one place": Null(draws=7, places=1),
    "four ranks": Null(draws=5, places=4, ranks=4, common=0.5),
    "one run in ten not finite somewhere": Null(draws=8, spoiled=0.1),
    "most runs not finite somewhere": Null(draws=4, spoiled=0.9, ranks=2),
}
LARGE = NULLS | {
    "many draws": Null(draws=16, tail=2.0),
    "many places": Null(places=200, tail=3.0, common=0.3),
    "many places, few draws": Null(places=200, draws=4, agreeing=0.4),
    "many ranks": Null(draws=8, places=6, ranks=16, tail=2.0, common=0.5),
}


def runs(random: np.random.Generator, null: Null) -> Table:
    """Exchangeable runs of one rank: places x (draws and one more) x figures."""
    shape = (null.places, null.draws + 1)

    def noise(*size: int) -> Table:
        return random.standard_t(null.tail, size) if null.tail else random.normal(size=size)

    scale = 10.0 ** (-8 + np.arange(null.places) % 5)
    error = scale[:, None] * np.exp(np.clip(null.common * noise(null.draws + 1) + 0.3 * noise(*shape), -30, 30))
    found = np.stack(
        [error, 0.1 * error * np.abs(random.normal(size=shape)), np.abs(random.normal(size=shape))], axis=2
    )
    agree = (random.random(shape) < null.agreeing) & (np.arange(null.places) % 3 == 0)[:, None]
    found[agree] = 0.0
    for run in np.flatnonzero(random.random(null.draws + 1) < null.spoiled):
        found[random.integers(null.places), run] = (np.inf, 0.0, 0.0)
    return found


def places_of(null: Null) -> tuple[Place, ...]:
    kinds = ("o", "o", "gradient:weight", "parameter:weight")
    return tuple((place, kinds[place % 4], 0) for place in range(null.places))


def envelopes(found: list[Table], null: Null) -> list[Envelope | None]:
    """Those of all ranks, with one rate for all together."""
    alone = [envelope(rank[:, : null.draws], null) for rank in found]
    limits = joined([None if one is None else one.limits for one in alone])
    return [None if one is None or limits is None else one.jointly(limits) for one in alone]


def envelope(draws: Table, null: Null) -> Envelope | None:
    """That of one rank: a place at which a draw is not finite measures nothing."""
    figures = [[Strengths(*run) if np.isfinite(run[0]) else None for run in place] for place in draws.tolist()]
    spoiled = frozenset(np.flatnonzero(np.isinf(draws[:, :, 0]).any(axis=0)).tolist())
    table = tabulated(dict(zip(places_of(null), figures, strict=True)), not_finite=spoiled)
    return None if table is None else calibrate(table)


def claims(random: np.random.Generator, null: Null) -> set[str]:
    """The figures by which one more draw is beyond, anywhere on any rank."""
    found = [runs(random, null) for _ in range(null.ranks)]
    shared = np.exp(null.common * random.normal(size=null.draws + 1))  # the ranks of one job move together
    for rank in found:
        rank[:, :, :2] *= shared[:, None]
    said: set[str] = set()
    for made, rank in zip(envelopes(found, null), found, strict=True):
        for place, figures in zip(places_of(null), rank[:, null.draws], strict=True):
            excess = None if made is None else made.excess(place, Strengths(*figures.tolist()))
            if excess is not None and excess.beyond:
                said.add(excess.figure)
    return said


def require_at_most(times: int, trials: int, rate: float) -> None:
    """Refuses a rule whose exact (Clopper-Pearson) lower bound is above the printed rate: one honest in a thousand."""
    found = binomtest(times, trials, rate, alternative="greater")
    assert found.pvalue > 0.001, f"{times} of {trials} claims of true nulls; printed is at most {rate:.3f}"


@pytest.mark.parametrize("name", list(NULLS))
def test_cp10_one_more_draw_is_beyond_at_most_as_often_as_printed(name: str) -> None:
    require_rate(NULLS[name], trials=120)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LARGE))
def test_cp10_one_more_draw_is_beyond_at_most_as_often_as_printed_in_many_trials(name: str) -> None:
    require_rate(LARGE[name], trials=400 if LARGE[name].places * LARGE[name].ranks < 90 else 150)


def require_rate(null: Null, *, trials: int) -> None:
    random = np.random.default_rng(null.draws)
    said = [claims(random, null) for _ in range(trials)]
    require_at_most(sum(bool(one) for one in said), trials, 1 / (null.draws + 1))
    for figure in ("error", "norm", "bias"):  # what is said of one figure is part of that rate
        require_at_most(sum(figure in one for one in said), trials, 1 / (null.draws + 1))


def test_cp10_the_rate_is_used_and_not_given_away() -> None:
    """A rule that never says anything keeps every rate: with four draws this one speaks of nearly every fifth."""
    random = np.random.default_rng(1)
    null = Null(draws=4, places=1)
    times = sum(bool(claims(random, null)) for _ in range(300))
    assert times > 300 / 5 * 0.4


@pytest.mark.parametrize("num_draws", [4, 5, 8])
def test_cp10_a_gain_beyond_all_draws_is_as_rare_as_printed(num_draws: int) -> None:
    """By medians of the draws without it, at one call: what `within` calls the largest gain of a left-out draw."""
    random = np.random.default_rng(num_draws)
    times = 0
    for _ in range(2_000):
        gains = np.exp(random.standard_t(3, size=num_draws + 1))
        draws = gains[None, :num_draws, None]
        largest = (draws[0, :, 0] / left_out(draws)[:, 0, 0]).max()
        times += bool(gains[num_draws] / np.median(draws) > max(largest, gains[:num_draws].max() / np.median(draws)))
    require_at_most(times, 2_000, 1 / (num_draws + 1))
