"""Collectives of built runs on two ranks: pairs, fields, what is missing, what follows from it (CP-1, CP-2a, CP-9)."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from paritrace.compare.engine import compare
from paritrace.compare.load import Recorded
from paritrace.compare.ranks import RankComparison, compare_rank
from paritrace.compare.result import CollectiveKind, Comparison, DifferenceClass, Group, Status
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines
from paritrace.evidence.calls import GapMark, OriginKind, Phase
from paritrace.evidence.distributed import Replicated
from paritrace.evidence.gaps import CountedGap
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, Named, Reduction, RunTable, Value, batch
from tests.compare.distributed_runs import SIZE, WORLD, Recipe, both, training
from tests.compare.runs import SOURCE, compared, numbers

GOOD = Recipe()
BUCKETS = (("head.weight", "head.bias"), ("body.weight",))
WITHOUT = (("head.bias",), ("body.weight",))


def nothing_claimed(result: Comparison) -> bool:
    return not (result.findings or result.origins or result.outside) and result.first_difference is None


def kinds(result: Comparison) -> list[CollectiveKind]:
    return [told.kind for told in result.collectives]


def test_identical_ranks_claim_nothing(tmp_path: Path) -> None:
    result = both(tmp_path, GOOD, GOOD).result
    assert nothing_claimed(result)
    assert result.collectives == ()
    assert result.counts.ok == result.counts.calls_baseline == result.counts.calls_candidate
    assert result.ranks_compared == (0, 1)
    assert result.first_by_rank == ()


# --- completion (CA-31, N-01) -----------------------------------------------------------------------------------


def test_a_completed_collective_is_compared_by_what_it_held_when_done(tmp_path: Path) -> None:
    found = both(tmp_path, GOOD, GOOD)
    reductions = [row for row in found.rows if row.function == "c10d.allreduce_.default"]
    assert len(reductions) == 2 * WORLD * 4
    assert all(isinstance(slot.bits, str) for row in reductions for slot in row.slots)
    assert {slot.agreement for row in reductions for slot in row.slots} == {"equal"}


def test_a_collective_never_seen_to_complete_is_counted_and_not_compared(tmp_path: Path) -> None:
    unseen = Recipe(how=Reduction(by=""))
    found = both(tmp_path, GOOD, unseen)
    result = found.result
    assert result.coverage["candidate"].gaps == {"not_observable_in_flight": 8}
    assert result.coverage["baseline"].gaps == {}
    reductions = [row for row in found.rows if row.function == "c10d.allreduce_.default"]
    assert {slot.agreement for row in reductions for slot in row.slots if slot.direction == "o"} == {"not_comparable"}
    assert nothing_claimed(result)


# --- streams and labels (CP-1, CP-2a) ---------------------------------------------------------------------------


def test_buckets_pair_by_the_parameters_inside_whatever_their_order(tmp_path: Path) -> None:
    rebuilt = Recipe(later=tuple(reversed(BUCKETS)))
    result = both(tmp_path, GOOD, rebuilt).result
    assert nothing_claimed(result)
    assert result.counts.paired == result.counts.calls_baseline == result.counts.ok
    assert [(told.kind, told.ranks, told.steps) for told in result.collectives] == [
        (CollectiveKind.ORDER, (0, 1), (1,))
    ]


def test_another_order_inside_a_bucket_is_not_comparable(tmp_path: Path) -> None:
    turned = Recipe(buckets=(("head.bias", "head.weight"), ("body.weight",)))
    found = both(tmp_path, GOOD, turned)
    assert nothing_claimed(found.result)
    statuses = [row.status for row in found.rows if row.function == "c10d.allreduce_.default"]
    assert statuses.count(Status.INCOMPARABLE) == 8  # two sides, two ranks, two steps


def test_gradients_in_other_buckets_claim_nothing(tmp_path: Path) -> None:
    otherwise = Recipe(buckets=(("head.weight",), ("head.bias", "body.weight")))
    result = both(tmp_path, GOOD, otherwise).result
    assert nothing_claimed(result)
    assert result.counts.different == 0
    assert result.counts.undetermined_baseline == result.counts.undetermined_candidate == 8


def explicit(table: RunTable, gradients: dict[str, Array], *, skip: str = "", extra: int = 0) -> None:
    """What a training loop of its own does: one all_reduce for each gradient, all from one line."""
    for name, value in gradients.items():
        if name != skip:
            source = Named(OriginKind.GRADIENT, name, Value(value))
            table.collective(Reduction(), source, out=value * 2, line=8)
    for _ in range(extra):
        table.collective(Reduction(), batch(numbers(99)), out=numbers(98), line=9)


def loop(*, seed: int = 0, skip: str = "", extra: int = 0, steps: int = 2, after: int = 0) -> RunTable:
    table = RunTable(source=SOURCE)
    for step in range(steps):
        table.phase = Phase.BACKWARD
        table.op("before", batch(numbers(1)), out=numbers(2), line=2)
        values = {f"p{place}": numbers(seed + 10 * step + place, SIZE) for place in range(4)}
        explicit(table, values, skip=skip, extra=extra)
        table.op("after", batch(numbers(3)), out=numbers(4 + 100 * after), line=12)
        table.end_step()
    return table


@pytest.mark.parametrize("skip", ["p0", "p1", "p3"])
@pytest.mark.parametrize("seed", [0, 500])
def test_a_missing_collective_does_not_shift_the_others(tmp_path: Path, skip: str, seed: int) -> None:
    """Also where every value differs, so that only recorded flow tells them apart."""
    found = compared(tmp_path, loop(), loop(seed=seed, skip=skip))
    rows = [row for row in found.rows if row.function.startswith("c10d")]
    alone = [row for row in rows if row.correspondence == "undetermined"]
    assert [(row.side, row.step) for row in alone] == [("baseline", 0), ("baseline", 1)]
    (told,) = [told for told in found.result.collectives if told.kind is CollectiveKind.ONE_SIDED]
    assert f"gradient of {skip}" in told.sentence
    assert told.steps == (0, 1)


def test_an_extra_collective_is_a_finding_with_its_place(tmp_path: Path) -> None:
    """Where anything differs behind it; otherwise it is a fact of the group and no difference."""
    result = compared(tmp_path / "later", loop(), loop(extra=1, after=1)).result
    first = result.findings[0]
    start = "Only the candidate runs all_reduce of group world at <main>:9 (batch args[0]) at step 0, backward"
    assert first.sentence.startswith(start)
    assert "#4 of its group, between #3 and #5" in first.place.cause
    assert (first.place.line, first.place.step, first.place.baseline_record_id) == (9, 0, -1)
    assert first.place.candidate_record_id >= 0
    result = compared(tmp_path / "nothing", loop(), loop(extra=1)).result
    assert nothing_claimed(result)
    assert result.counts.different == 0
    assert [told.sentence for told in result.collectives] == [first.place.collective]


def test_a_collective_of_another_group_is_another_stream(tmp_path: Path) -> None:
    """A group that one side alone uses never takes part in the pairing of the others."""

    def run(*, beside: bool) -> RunTable:
        table = loop(steps=1)
        table.step = 0
        if beside:
            table.collective(Reduction(group="ranks 0", ranks=(0,)), batch(numbers(50)), out=numbers(50), line=8)
        return table

    found = compared(tmp_path, run(beside=False), run(beside=True))
    assert found.result.counts.undetermined_baseline == 0
    assert [told.group for told in found.result.collectives] == ["ranks 0"]


def test_neighbours_are_channels_of_their_own(tmp_path: Path) -> None:
    def run(*, swapped: bool) -> RunTable:
        table = RunTable(source=SOURCE)
        peers = (3, 1) if swapped else (1, 3)
        for peer in peers:
            how = Reduction(operation="send", reduce="", ranks=(0, 1, 2, 3), peer=peer)
            table.collective(how, batch(numbers(peer)), out=numbers(peer), line=4)
        table.end_step()
        return table

    found = compared(tmp_path, run(swapped=False), run(swapped=True))
    assert nothing_claimed(found.result)
    assert found.result.counts.paired == found.result.counts.ok == 2


# --- fields (CP-7) ----------------------------------------------------------------------------------------------


def test_another_reduction_is_named_in_words_on_all_ranks(tmp_path: Path) -> None:
    mean = Recipe(how=Reduction(reduce="avg", by="backward"))
    result = both(tmp_path, GOOD, mean).result
    (finding,) = result.findings
    assert "reduce: avg instead of sum" in finding.sentence
    assert finding.ranks == (0, 1)
    assert finding.sentence.endswith("at step 0, backward, ranks 0, 1 (reduce: avg instead of sum).")
    assert finding.place.group is Group.ORIGINATES
    assert DifferenceClass.SCALARS in {slot.difference_class for slot in finding.place.slots}
    assert finding.consequences == result.counts.different - WORLD
    assert [first.rank for first in result.first_by_rank] == [0, 1]


def test_another_group_pairs_by_what_it_reduces(tmp_path: Path) -> None:
    alone = Recipe(how=Reduction(group="ranks 0", ranks=(0,), by="backward"))
    result = both(tmp_path, GOOD, alone).result
    assert result.counts.paired == result.counts.calls_baseline
    (finding,) = result.findings
    assert "over ranks 0 instead of 0,1" in finding.sentence


@pytest.mark.parametrize(
    ("change", "words"),
    [({"root": 1}, "root: 1 instead of 0"), ({"operation": "broadcast", "root": 0}, "")],
)
def test_another_root_is_a_field_of_the_pair(tmp_path: Path, change: dict[str, object], words: str) -> None:
    def run(how: Reduction) -> RunTable:
        table = RunTable(source=SOURCE)
        table.collective(how, batch(numbers(1)), out=numbers(2), line=4)
        table.end_step()
        return table

    given = Reduction(operation="broadcast", reduce="", root=0)
    result = compared(tmp_path, run(given), run(replace(given, **change))).result  # type: ignore[arg-type]  # parametrized
    assert [words in finding.sentence for finding in result.findings] == ([True] if words else [])


def test_who_waits_changes_no_value(tmp_path: Path) -> None:
    waiting = Recipe(how=Reduction(asynchronous=True, by="backward"))
    found = both(tmp_path, GOOD, waiting)
    assert nothing_claimed(found.result)
    assert {row.status for row in found.rows if row.function == "c10d.allreduce_.default"} == {Status.DIFFERENT}


# --- gradients reduced on one side only ------------------------------------------------------------------------


def test_a_parameter_left_out_of_its_bucket_is_named_once_for_all_ranks(tmp_path: Path) -> None:
    result = both(tmp_path, GOOD, Recipe(buckets=WITHOUT)).result
    (finding,) = result.findings
    assert finding.sentence == (
        "In the candidate no all_reduce of group world contains the gradient of head.weight at step 0, ranks 0, 1"
        " (in the baseline: all_reduce #0 of head.weight, head.bias)."
    )
    assert finding.ranks == (0, 1)
    assert (finding.place.step, finding.place.phase, finding.place.group) == (0, "backward", Group.ORIGINATES)
    (told,) = result.collectives
    assert (told.kind, told.parameters, told.steps) == (CollectiveKind.REDUCED, ("head.weight",), (0, 1))
    assert [record[0] for record in told.records] == [0, 1]
    assert finding.consequences > 0


def test_one_rank_alone_is_named(tmp_path: Path) -> None:
    for name, recipes in (("a", (GOOD, GOOD)), ("b", (GOOD, Recipe(buckets=WITHOUT)))):
        for rank, recipe in enumerate(recipes):
            training(recipe, rank=rank).write(tmp_path / name, rank=rank, world_size=WORLD)
    result = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result
    assert result.findings[0].ranks == (1,)
    assert [first.rank for first in result.first_by_rank] == [1]
    assert "on rank 0: no difference found" in first_screen(result)


def test_an_incomplete_recording_claims_nothing_missing(tmp_path: Path) -> None:
    def incomplete(recipe: Recipe, *, rank: int) -> RunTable:
        table = training(recipe, rank=rank)
        table.mark(GapMark(CountedGap.THREAD_NOT_COVERED, 3, "", 0))
        return table

    for rank in range(WORLD):
        training(GOOD, rank=rank).write(tmp_path / "a", rank=rank, world_size=WORLD)
        incomplete(Recipe(buckets=WITHOUT), rank=rank).write(tmp_path / "b", rank=rank, world_size=WORLD)
    result = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result
    (told,) = result.collectives
    assert not told.complete
    assert told.sentence.startswith("Recorded on the baseline only: all_reduce of group world with the gradient of")
    assert not any("no all_reduce" in finding.sentence for finding in result.findings)
    shown = next(line for line in first_screen(result).splitlines() if line.startswith("[groups]"))
    assert shown.endswith("rank 0-1; a recording is incomplete: none is called missing")


def test_what_a_wrapper_was_told_to_leave_out_is_the_cause(tmp_path: Path) -> None:
    def left_out(*, rank: int) -> RunTable:
        table = training(Recipe(buckets=WITHOUT), rank=rank)
        table.mark(Replicated(0, ("head.bias", "body.weight"), "ddp", ("head.weight",)))
        return table

    for rank in range(WORLD):
        training(GOOD, rank=rank).write(tmp_path / "a", rank=rank, world_size=WORLD)
        left_out(rank=rank).write(tmp_path / "b", rank=rank, world_size=WORLD)
    result = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result
    assert result.findings[0].place.cause.startswith("ddp was told to leave it out in the candidate; in the baseline:")


def test_a_gradient_reduced_twice_is_named_with_how_often(tmp_path: Path) -> None:
    result = both(tmp_path, GOOD, Recipe(buckets=(*BUCKETS, ("body.weight",)))).result
    (finding,) = result.findings
    assert "The candidate reduces the gradient of body.weight twice, the baseline once" in finding.sentence


# --- order, counts ----------------------------------------------------------------------------------------------


def two(*, turned: bool, values: int = 0) -> RunTable:
    table = RunTable(source=SOURCE)
    lines = (5, 4) if turned else (4, 5)
    for line in lines:
        table.collective(Reduction(), batch(numbers(line + values)), out=numbers(line), line=line)
    table.end_step()
    return table


def test_another_order_of_explicit_collectives_is_a_finding_and_no_difference(tmp_path: Path) -> None:
    result = compared(tmp_path, two(turned=False), two(turned=True)).result
    (finding,) = result.findings
    assert "run in another order at step 0" in finding.sentence
    assert result.first_difference is None
    assert result.counts.different == 0


def test_another_number_of_collectives_in_a_step_is_told_from_counts_alone(tmp_path: Path) -> None:
    def run(number: int) -> RunTable:
        table = RunTable(source=SOURCE)
        for step in range(5):
            table.counted({"world": 4 if step < 3 else number, "dp": 2})
            table.end_step()
        return table

    result = compared(tmp_path, run(4), run(3)).result
    (finding,) = result.findings
    assert finding.sentence == (
        "At step 3 group world made 4 collectives in the baseline and 3 in the candidate, rank 0"
        " (no recorded call shows which)."
    )
    assert kinds(result) == [CollectiveKind.COUNT]


def test_groups_of_their_own_on_each_rank_are_one_statement(tmp_path: Path) -> None:
    for rank in range(WORLD):
        training(GOOD, rank=rank).write(tmp_path / "a", rank=rank, world_size=WORLD)
        alone = Recipe(how=Reduction(group=f"ranks {rank}", ranks=(rank,), by="backward"))
        training(alone, rank=rank).write(tmp_path / "b", rank=rank, world_size=WORLD)
    (finding,) = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result.findings
    assert finding.ranks == (0, 1)
    assert "rank 0: over ranks 0 instead of 0,1; rank 1: over ranks 1 instead of 0,1" in finding.sentence


def test_counts_say_nothing_that_a_named_collective_says(tmp_path: Path) -> None:
    def run(extra: int) -> RunTable:
        table = loop(extra=extra, steps=1)
        table.step = 0
        table.counted({"world": 4 + extra})
        return table

    assert kinds(compared(tmp_path, run(0), run(1)).result) == [CollectiveKind.ONE_SIDED]


# --- both ways ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        Recipe(buckets=WITHOUT),
        Recipe(how=Reduction(reduce="avg", by="backward")),
        Recipe(how=Reduction(group="ranks 0", ranks=(0,), by="backward")),
        Recipe(later=tuple(reversed(BUCKETS))),
        Recipe(buckets=(("head.weight",), ("head.bias", "body.weight"))),
    ],
)
def test_swapping_the_runs_mirrors_pairs_and_statements(tmp_path: Path, other: Recipe) -> None:
    forth, back = both(tmp_path / "forth", GOOD, other), both(tmp_path / "back", other, GOOD)
    assert pairs(forth) == {(b, a) for a, b in pairs(back)}
    ours, theirs = forth.result, back.result
    assert kinds(ours) == kinds(theirs)
    assert [t.parameters for t in ours.collectives] == [t.parameters for t in theirs.collectives]
    assert ours.counts.different == theirs.counts.different
    assert [f.ranks for f in ours.findings] == [f.ranks for f in theirs.findings]


def pairs(found: Compared) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    rows = [row for row in found.rows if row.side == "baseline" and row.partner >= 0]
    return {((row.rank, row.record_id), (row.rank, row.partner)) for row in rows}


def test_rows_are_the_same_when_ranks_are_compared_again_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Recipe(buckets=WITHOUT)
    kept = both(tmp_path / "kept", GOOD, other)
    monkeypatch.setattr("paritrace.compare.engine.CALLS_KEPT", 0)
    again = compare(open_run(tmp_path / "kept" / "a"), open_run(tmp_path / "kept" / "b"))
    assert list(again.rows) == list(kept.rows)
    assert again.result == kept.result


def test_memory_holds_one_rank_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-17: before the next rank is compared nothing refers to the one before."""
    seen: list[weakref.ref[object]] = []

    def watched(baseline: Recorded, candidate: Recorded, *, settings: Settings, lines: Lines) -> RankComparison:
        assert not [rank for rank in seen if rank() is not None]
        of = compare_rank(baseline, candidate, settings=settings, lines=lines)
        seen.append(weakref.ref(of.regions))
        return of

    monkeypatch.setattr("paritrace.compare.engine.CALLS_KEPT", 0)
    monkeypatch.setattr("paritrace.compare.rank_jobs.compare_rank", watched)
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a rank refers back to itself"))
    both(tmp_path, GOOD, Recipe(buckets=WITHOUT))
    assert len(seen) == WORLD


def test_outputs_have_no_say_in_pairing(tmp_path: Path) -> None:
    """CP-4: other results of the same collectives change no pair."""
    mean = Recipe(how=Reduction(reduce="avg", by="backward"), steps=1)
    plain = both(tmp_path / "plain", replace(GOOD, steps=1), replace(GOOD, steps=1))
    assert pairs(plain) == pairs(both(tmp_path / "mean", replace(GOOD, steps=1), mean))
