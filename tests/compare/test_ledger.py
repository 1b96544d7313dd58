"""The error ledger, and the ladder by rank and step: bounded, no more than was measured (CP-16, CP-29)."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.compare.distributed import coordinate_of
from paritrace.compare.ledger import MOST, joined_ledger
from paritrace.compare.result import LADDER, Ledger, LedgerEntry, Mark
from paritrace.evidence.distributed import Mesh
from tests.compare.runs import compared, training


def entry(number: int, *, beyond: bool | None = None) -> LedgerEntry:
    return LedgerEntry(0, 0, "forward", "m", "f", number, number, 1e-3, beyond=beyond)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4_000), st.sets(st.integers(0, 3_999), max_size=40))
def test_of_many_entries_the_first_last_and_those_beyond_stay_in_order(number: int, beyond: set[int]) -> None:
    entries = tuple(entry(place, beyond=place in beyond) for place in range(number))
    found = joined_ledger([Ledger(entries, total=number + 7)])
    assert found is not None
    numbers = [one.baseline_record_id for one in found.entries]
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= MOST
    assert (numbers[0], numbers[-1]) == (0, number - 1)
    assert {place for place in beyond if place < number} <= set(numbers)
    assert found.total == number + 7


def test_cp29_the_ladder_of_each_rank_and_step_is_the_one_of_the_screen(tmp_path: Path) -> None:
    result = compared(tmp_path, training(steps=3), training(steps=3, late=1)).result
    rungs = "".join(result.ladder[rung].value for rung in LADDER)
    assert [(row.rank, row.step, row.marks) for row in result.ladder_by_rank] == [(0, result.ladder_step, rungs)]
    assert [row.step for row in result.ladder_by_step] == [0, 1, 2]
    marks = {row.step: dict(zip(LADDER, row.marks, strict=True)) for row in result.ladder_by_step}
    assert (marks[0]["forward"], marks[1]["forward"]) == (Mark.AGREES, Mark.BEYOND)
    assert marks[result.ladder_step] == result.ladder


def test_cp16_without_draws_the_ledger_has_what_differs_and_judges_nothing(tmp_path: Path) -> None:
    assert compared(tmp_path / "1", training(), training()).result.ledger is None
    ledger = compared(tmp_path / "2", training(), training(scale=2.002)).result.ledger
    assert ledger is not None
    assert ledger.total == len(ledger.entries)
    assert [(one.step, one.module) for one in ledger.entries][:1] == [(0, "model")]
    assert {(one.beyond, one.expected, one.inside_up_to) for one in ledger.entries} == {(None, None, None)}
    assert all(one.error is not None and one.error > 0.0 for one in ledger.entries)


def test_a_rank_is_told_by_its_place_in_the_widest_mesh() -> None:
    meshes = [Mesh(0, ("dp",), (4,), (3,), "device_mesh"), Mesh(1, ("dp", "tp"), (2, 2), (1, 1), "declared")]
    assert coordinate_of(meshes) == "dp 1, tp 1"
    assert coordinate_of([]) == ""
