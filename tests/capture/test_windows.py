"""The ranks that record level `op` for all: one per position along dims that are not data-parallel (CA-36)."""

import pytest

from paritrace.capture.levels import is_window
from paritrace.capture.windows import covering


@pytest.mark.parametrize(
    ("world", "mesh", "ranks"),
    [
        (1, (), (0,)),
        (8, (), (0,)),
        (8, (("dp", 8),), (0,)),
        (8, (("dp", 4), ("tp", 2)), (0, 1)),
        (8, (("tp", 2), ("dp", 4)), (0, 4)),
        (8, (("pp", 2), ("dp", 2), ("tp", 2)), (0, 1, 4, 5)),
        (8, (("dp_replicate", 2), ("dp_shard", 4)), (0,)),
        (4, (("ep", 4),), (0, 1, 2, 3)),
    ],
)
def test_one_rank_stands_for_those_that_run_the_same_operators(
    world: int, mesh: tuple[tuple[str, int], ...], ranks: tuple[int, ...]
) -> None:
    assert covering(world, mesh).ranks == ranks


def test_what_the_choice_rests_on_is_told() -> None:
    assert "no mesh was declared" in covering(2, ()).basis
    assert "dp=4,tp=2" in covering(8, (("dp", 4), ("tp", 2))).basis


def test_windows_are_the_first_steps_and_powers_of_two() -> None:
    assert [step for step in range(70) if is_window(step)] == [0, 1, 2, 4, 8, 16, 32, 64]
