"""What a collective gives back originates on a rank only if all members gave the same (CP-8, CP-9)."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from paritrace.compare.engine import compare
from paritrace.compare.result import CollectiveKind, Comparison, Group
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import OriginKind, Phase
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, Local, Named, Reduction, RunTable, Value, batch
from tests.compare.distributed_runs import NAMES, SIZE, WORLD
from tests.compare.runs import SOURCE, numbers

REDUCE = "c10d.allreduce_.default"


def member(
    rank: int,
    *,
    moved: float = 0.0,
    total: float = 0.0,
    how: Reduction | None = None,
    unseen: bool = False,
    other: bool = False,
) -> RunTable:
    """One rank: a local operator whose result `moved` changes, a collective whose result `total` changes.

    `other`: by a function of another line, so that nothing pairs; `unseen`: what enters was not captured.
    """
    table = RunTable(source=SOURCE)
    made = table.op("local", batch(numbers(rank)), out=numbers(10 + rank) + moved, line=2)
    given = replace(made, value=Gap(CaptureGap.NO_DATA)) if unseen else made
    reduced = table.collective(
        how or Reduction(), given, out=numbers(20) + total, line=7 if other else 4, function=REDUCE
    )
    table.op("after", reduced, out=numbers(30) + total, line=9)
    table.end_step()
    return table


Tables = Mapping[int, RunTable]


def runs(place: Path, a: Tables, b: Tables, *, settings: Settings | None = None) -> Compared:
    for name, tables in (("a", a), ("b", b)):
        for rank, table in tables.items():
            table.write(place / name, rank=rank, world_size=len(tables))
    return compare(open_run(place / "a"), open_run(place / "b"), settings or Settings())


def plain(ranks: Sequence[int] = (0, 1)) -> Tables:
    how = Reduction(ranks=tuple(ranks))
    return {rank: member(rank, how=how) for rank in ranks}


def groups_of(found: Compared, rank: int) -> list[Group | None]:
    return [row.group for row in found.rows if row.rank == rank and row.function == REDUCE and row.side == "baseline"]


@pytest.mark.parametrize("faulty", [0, 1])
def test_a_result_follows_from_the_member_whose_input_differs(tmp_path: Path, faulty: int) -> None:
    b = {rank: member(rank, moved=rank == faulty, total=1.0) for rank in range(WORLD)}
    found = runs(tmp_path, plain(), b)
    result = found.result
    (finding,) = result.findings
    assert (finding.place.function, finding.ranks) == ("local", (faulty,))
    assert [(place.rank, place.function) for place in result.origins] == [(faulty, "local")]
    assert result.first_difference is not None
    assert (result.first_difference.rank, result.first_difference.function) == (faulty, "local")
    assert finding.consequences == result.counts.different - 1
    assert groups_of(found, 1 - faulty) == [Group.PROPAGATES]
    first = {place.rank: place for place in result.first_by_rank}
    assert (first[1 - faulty].group, first[1 - faulty].function) == (Group.PROPAGATES, REDUCE)
    assert first[1 - faulty].cause == f"the input of rank {faulty} differs"
    assert "no difference found" not in first_screen(result)


def test_swapping_the_runs_names_the_same_rank_and_place(tmp_path: Path) -> None:
    b = {rank: member(rank, moved=rank == 1, total=1.0) for rank in range(WORLD)}
    forth = runs(tmp_path / "forth", plain(), b).result
    back = runs(tmp_path / "back", b, plain()).result
    for ours, theirs in zip(forth.origins, back.origins, strict=True):
        assert (ours.rank, ours.function, ours.group) == (theirs.rank, theirs.function, theirs.group)
    assert [f.consequences for f in forth.findings] == [f.consequences for f in back.findings]
    assert [(p.rank, p.group) for p in forth.first_by_rank] == [(p.rank, p.group) for p in back.first_by_rank]


def test_where_all_members_agree_the_result_originates(tmp_path: Path) -> None:
    found = runs(tmp_path, plain(), {rank: member(rank, total=1.0) for rank in range(WORLD)})
    (finding,) = found.result.findings
    assert (finding.place.function, finding.place.group, finding.ranks) == (REDUCE, Group.ORIGINATES, (0, 1))
    assert groups_of(found, 0) == groups_of(found, 1) == [Group.ORIGINATES]


def test_a_member_that_was_not_compared_leaves_it_undetermined(tmp_path: Path) -> None:
    b = {rank: member(rank, moved=rank == 1, total=1.0) for rank in range(WORLD)}
    found = runs(tmp_path, plain(), b, settings=Settings(ranks=(0,)))
    result = found.result
    assert result.origins == ()
    assert result.first_difference is not None
    assert (result.first_difference.group, result.first_difference.cause) == (
        Group.UNDETERMINED,
        "the input of rank 1 was not compared",
    )
    assert result.settled is not None
    assert groups_of(found, 0) == [Group.UNDETERMINED]
    assert "the input of rank 1 was not compared" in result.findings[0].sentence


def test_a_member_whose_input_was_not_captured_leaves_it_undetermined(tmp_path: Path) -> None:
    a, b = ({0: member(0, total=total), 1: member(1, total=total, unseen=True)} for total in (0.0, 1.0))
    result = runs(tmp_path, a, b).result
    assert [place for place in result.origins if place.rank == 0] == []
    assert result.first_by_rank[0].cause == "the input of rank 1 was not compared"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_the_sessions_does_not_matter(tmp_path: Path, order: Sequence[int]) -> None:
    """A chain: rank 2 changes what rank 1 gets, rank 1 what rank 0 gets; only rank 2 is named."""

    def chain(rank: int, *, moved: float) -> RunTable:
        table = RunTable(source=SOURCE)
        held = table.op("local", batch(numbers(rank)), out=numbers(10 + rank) + (moved if rank == 2 else 0.0), line=2)
        for group, ranks in (("late", (1, 2)), ("early", (0, 1))):
            if rank in ranks:
                how = Reduction(group=group, ranks=ranks)
                held = table.collective(how, held, out=numbers(len(group)) + moved, line=4)
        table.end_step()
        return table

    a, b = ({rank: chain(rank, moved=moved) for rank in order} for moved in (0.0, 1.0))
    result = runs(tmp_path, a, b).result
    assert [(place.rank, place.function) for place in result.origins] == [(2, "local")]
    (finding,) = result.findings
    assert finding.consequences == result.counts.different - 1


def test_statements_that_go_back_to_each_other_are_undetermined(tmp_path: Path) -> None:
    """No real job records this: two results that each follow from the other rank's. Nothing is lost for it."""

    def run(rank: int, *, moved: float) -> RunTable:
        table = RunTable(source=SOURCE)
        held = table.op("local", batch(numbers(rank)), out=numbers(10 + rank), line=2)
        for group in ("one", "two") if rank == 0 else ("two", "one"):
            held = table.collective(Reduction(group=group), held, out=numbers(len(group) + rank) + moved, line=4)
        table.end_step()
        return table

    a, b = ({rank: run(rank, moved=moved) for rank in range(WORLD)} for moved in (0.0, 1.0))
    result = runs(tmp_path, a, b).result
    assert result.origins == ()
    assert [place.group for place in result.first_by_rank] == [Group.UNDETERMINED] * WORLD
    assert {place.cause for place in result.first_by_rank} == {
        f"the input of rank {rank} differs, and nothing says where that comes from" for rank in range(WORLD)
    }


def test_only_the_root_gives_to_a_broadcast(tmp_path: Path) -> None:
    """What the others held before is overwritten: their difference explains nothing."""
    how = Reduction(operation="broadcast", reduce="", root=0)
    a = {rank: member(rank, how=how) for rank in range(WORLD)}
    b = {rank: member(rank, how=how, moved=rank == 1, total=1.0) for rank in range(WORLD)}
    result = runs(tmp_path, a, b).result
    assert (0, REDUCE) in {(place.rank, place.function) for place in result.origins}


@pytest.mark.parametrize("moved", [0.0, 1.0])
def test_messages_are_counted_by_their_direction(tmp_path: Path, moved: float) -> None:
    """Rank 0 sends twice, rank 1 sends once in between: the numbers in the group are not the same on both ends."""

    def ends(rank: int, *, moved: float) -> RunTable:
        table = RunTable(source=SOURCE)
        for sender, line in ((0, 4), (1, 5), (0, 6)) if rank == 0 else ((0, 4), (0, 6), (1, 5)):
            made = table.op("local", batch(numbers(line)), out=numbers(10 + line) + moved * (sender == 0), line=2)
            how = Reduction(operation="send" if sender == rank else "recv", reduce="", peer=1 - rank)
            given = made if sender == rank else batch(numbers(0), "buffer")
            table.collective(how, given, out=numbers(10 + line) + moved * (sender == 0), line=line)
        table.end_step()
        return table

    a, b = ({rank: ends(rank, moved=value) for rank in range(WORLD)} for value in (0.0, moved))
    result = runs(tmp_path, a, b).result
    assert {place.function for place in result.origins if place.rank == 1} <= {"local"}
    assert not any(place.function.startswith("c10d") for place in result.origins)


def test_a_stretch_with_a_collective_originates_only_where_all_members_agree(tmp_path: Path) -> None:
    """Both runs reduce by calls of their own: nothing pairs, and what flows in differs on rank 1 alone."""

    def run(rank: int, *, moved: float, total: float, by: str) -> RunTable:
        table = RunTable(source=SOURCE)
        made = table.op("local", batch(numbers(rank)), out=numbers(10 + rank) + moved, line=2)
        for place in range(2 if by == "gather" else 1):
            how = Reduction(operation=by, reduce="")
            made = table.collective(how, made, out=numbers(20 + place), line=4, function=f"c10d.{by}")
        made = table.op(f"{by}.joined", made, out=numbers(25) + total, line=5)
        table.op("after", made, out=numbers(30) + total, line=9)
        table.end_step()
        return table

    a = {rank: run(rank, moved=0.0, total=0.0, by="shift") for rank in range(WORLD)}
    b = {rank: run(rank, moved=float(rank == 1), total=1.0, by="turn") for rank in range(WORLD)}
    result = runs(tmp_path / "one", a, b).result
    assert not [place for place in result.origins if place.rank == 0 and place.region]
    c = {rank: run(rank, moved=0.0, total=1.0, by="turn") for rank in range(WORLD)}
    result = runs(tmp_path / "none", a, c).result
    assert result.first_difference is not None
    assert {place.rank for place in result.origins} == {0, 1}


# --- collectives of one side alone (CP-21) ---------------------------------------------------------------------


def with_more(rank: int, *, operation: str, late: float = 0.0) -> RunTable:
    table = RunTable(source=SOURCE)
    made = table.op("local", batch(numbers(rank)), out=numbers(10 + rank), line=2)
    for place in range(3):
        if place != 1:
            table.collective(Reduction(), batch(numbers(place)), out=numbers(place), line=3)
        elif operation:
            table.collective(Reduction(operation=operation), batch(numbers(5)), out=numbers(6), line=4)
    table.op("after", made, out=numbers(30) + late, line=9)
    table.end_step()
    return table


def one_sided_kinds(result: Comparison) -> set[CollectiveKind]:
    return {told.kind for told in result.collectives}


@pytest.mark.parametrize("operation", ["barrier", "all_reduce"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_collective_behind_which_nothing_differs_is_a_fact_and_no_origin(
    tmp_path: Path, operation: str, swapped: bool
) -> None:
    a = {rank: with_more(rank, operation="") for rank in range(WORLD)}
    b = {rank: with_more(rank, operation=operation) for rank in range(WORLD)}
    result = runs(tmp_path, *((b, a) if swapped else (a, b))).result
    assert (result.findings, result.origins, result.first_difference, result.first_by_rank) == ((), (), None, ())
    assert one_sided_kinds(result) == {CollectiveKind.ONE_SIDED}
    assert {found.rank for found in result.recorded_on_one_side} == {0, 1}


@pytest.mark.parametrize("late", [0, 1])
def test_it_stays_what_it_is_where_something_differs_behind_it_on_any_rank(tmp_path: Path, late: int) -> None:
    a = {rank: with_more(rank, operation="") for rank in range(WORLD)}
    b = {rank: with_more(rank, operation="all_reduce", late=float(rank == late)) for rank in range(WORLD)}
    result = runs(tmp_path, a, b).result
    assert result.findings[0].sentence.startswith("Only the candidate runs all_reduce")
    assert result.findings[0].ranks == (0, 1)


def test_a_barrier_is_no_origin_of_what_differs_behind_it(tmp_path: Path) -> None:
    a = {rank: with_more(rank, operation="") for rank in range(WORLD)}
    b = {rank: with_more(rank, operation="barrier", late=1.0) for rank in range(WORLD)}
    result = runs(tmp_path, a, b).result
    assert {place.function for place in result.origins} == {"after"}
    assert one_sided_kinds(result) == {CollectiveKind.ONE_SIDED}


# --- reductions that do not say what they hold (CP-2a) -----------------------------------------------------------


def by_hand(rank: int, *, said: bool, skip: str = "", line: int = 8, small: bool = False) -> RunTable:
    """A loop over the gradients; `said`: the records name the parameters. `small`: also reduces a single number."""
    table = RunTable(source=SOURCE)
    values: dict[str, Array] = {name: numbers(10 * rank + place, SIZE) for place, name in enumerate(NAMES)}
    table.state("parameter", {name: Local(value) for name, value in values.items()})
    table.phase = Phase.BACKWARD
    for name, value in values.items():
        if name != skip:
            source = Named(OriginKind.GRADIENT, name, Value(value))
            how = Reduction(parameters=(name,) if said else ())
            table.collective(how, source, out=value * 2, line=line)
    if small:
        table.collective(Reduction(), batch(numbers(7, 1)), out=numbers(8, 1), line=11)
    table.end_step()
    return table


@pytest.mark.parametrize("line", [8, 12])
@pytest.mark.parametrize("swapped", [False, True])
def test_what_a_reduction_does_not_say_is_not_missing(tmp_path: Path, line: int, swapped: bool) -> None:
    a = {rank: by_hand(rank, said=True) for rank in range(WORLD)}
    b = {rank: by_hand(rank, said=False, line=line) for rank in range(WORLD)}
    result = runs(tmp_path, *((b, a) if swapped else (a, b))).result
    assert (result.collectives, result.findings, result.origins) == ((), (), ())


def test_a_reduction_too_small_to_hold_a_gradient_leaves_the_statement(tmp_path: Path) -> None:
    a = {rank: by_hand(rank, said=True) for rank in range(WORLD)}
    b = {rank: by_hand(rank, said=True, skip=NAMES[0], small=True) for rank in range(WORLD)}
    result = runs(tmp_path, a, b).result
    assert [(told.kind, told.parameters) for told in result.collectives if told.parameters] == [
        (CollectiveKind.REDUCED, (NAMES[0],))
    ]
