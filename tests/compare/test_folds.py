"""Rules of comparing unlike layouts, on hand-made records of every rank (CA-8, CP-12, N-08)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paritrace.compare.engine import compare
from paritrace.compare.folds_dims import parse_dims
from paritrace.compare.folds_result import FoldedState, Folds, FoldStatus
from paritrace.compare.renamings import parse_map
from paritrace.compare.result import Comparison, Mark
from paritrace.compare.settings import Settings
from paritrace.errors import Outcome, RequestError
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, Local, RunTable

WEIGHT = np.random.default_rng(7).standard_normal((5, 8)).astype(np.float32)
RankStates = Mapping[str, Array | Local]


def written(
    place: Path, ranks: Sequence[RankStates], *, world: int = 0, mesh: Sequence[str] = ("tp",), **told: Any
) -> Path:
    """A run whose ranks hold these parameters at the begin of step 0; `told`: further groups, one list per rank."""
    size = world or len(ranks)
    for rank, states in enumerate(ranks):
        table = RunTable()
        table.mesh(mesh, (size,) * len(mesh), (rank,) * len(mesh))
        table.state("parameter", states)
        for group, of_ranks in told.items():
            moment = {"batch": "batch", "gradient": "grads"}.get(group, "begin")
            table.state(group, of_ranks[rank], moment=moment)
        table.end_step()
        table.write(place, rank=rank, world_size=size)
    return place


def compared(
    tmp_path: Path, ours: Sequence[RankStates], theirs: Sequence[RankStates], *options: str, **told: Any
) -> Comparison:
    a = written(tmp_path / "a", ours)
    b = written(tmp_path / "b", theirs, **told)
    return of_runs(a, b, *options)


def of_runs(a: Path, b: Path, *options: str) -> Comparison:
    dims = tuple(parse_dims(text) for text in options if not text.startswith("map "))
    maps = tuple(parse_map(text[4:]) for text in options if text.startswith("map "))
    return compare(open_run(a), open_run(b), Settings(dims=dims, renamings=maps)).result


def folds_of(comparison: Comparison) -> Folds:
    assert comparison.folds is not None
    return comparison.folds


def only(comparison: Comparison) -> FoldedState:
    """The one whole that does not agree."""
    (state,) = folds_of(comparison).states
    return state


def agrees(comparison: Comparison) -> bool:
    return [(one.agree, one.total) for one in folds_of(comparison).counts] == [(1, 1)]


def rows(*sizes: int, weight: Array = WEIGHT) -> list[RankStates]:
    """The weight cut by rows, as torch places it."""
    starts = np.cumsum([0, *sizes])
    return [
        {"w": Local(weight[low:high], ("S(0)",), weight.shape, (low, 0))} for low, high in pairwise(starts.tolist())
    ]


def whole(weight: Array = WEIGHT) -> list[RankStates]:
    return [{"w": Local(weight)}]


@pytest.mark.parametrize("sizes", [(3, 2), (5, 0), (2, 2, 1), (1, 1, 1, 1, 1, 0)])
def test_ca8_uneven_and_empty_shards_agree_with_the_whole(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    assert agrees(compared(tmp_path, whole(), rows(*sizes)))


def test_ca8_one_row_over_two_ranks(tmp_path: Path) -> None:
    assert agrees(compared(tmp_path, whole(WEIGHT[:1]), rows(1, 0, weight=WEIGHT[:1])))


def test_n08_bfloat16_by_columns_of_odd_width(tmp_path: Path) -> None:
    bits = np.random.default_rng(8).integers(0, 1 << 16, (3, 257), dtype=np.uint16)
    parts: list[RankStates] = [
        {"w": Local(np.ascontiguousarray(bits[:, low:high]), ("S(1)",), bits.shape, (0, low), "bfloat16")}
        for low, high in ((0, 129), (129, 257))
    ]
    ours: list[RankStates] = [{"w": Local(bits, dtype="bfloat16")}]
    assert agrees(compared(tmp_path / "healthy", ours, parts))
    even = bits[:, :256]
    twice: list[RankStates] = [
        {"w": Local(np.ascontiguousarray(even[:, :128]), ("S(1)",), even.shape, (0, low), "bfloat16")}
        for low in (0, 128)
    ]
    found = only(compared(tmp_path / "twice", [{"w": Local(even, dtype="bfloat16")}], twice))
    assert found.status is FoldStatus.DIFFERS
    assert found.facts[0] == "candidate: the shards on ranks 0 and 1 are equal (as when one is loaded twice)"


def test_cp12_a_wrong_shard_is_not_attributed_to_a_rank_by_sums_alone(tmp_path: Path) -> None:
    wrong = WEIGHT.copy()
    wrong[4, 0] += 1
    found = only(compared(tmp_path, whole(), rows(3, 2, weight=wrong)))
    assert found.status is FoldStatus.DIFFERS
    assert found.facts == ("the sum of all 2 shards is not the whole; sums do not show which shard differs",)


def test_cp12_finer_shards_of_the_other_run_show_which_part_differs(tmp_path: Path) -> None:
    wrong = WEIGHT[:4].copy()
    wrong[3, 0] += 1
    found = only(compared(tmp_path, rows(2, 2, weight=WEIGHT[:4]), rows(1, 1, 1, 1, weight=wrong)))
    assert found.facts == ("the candidate's part on ranks 2 and 3 differs from the baseline's on rank 1",)
    mirrored = only(compared(tmp_path / "mirrored", rows(1, 1, 1, 1, weight=wrong), rows(2, 2, weight=WEIGHT[:4])))
    assert mirrored.facts == ("the candidate's part on rank 1 differs from the baseline's on ranks 2 and 3",)


def test_cp12_a_missing_rank_is_said_and_nothing_is_folded(tmp_path: Path) -> None:
    a = written(tmp_path / "a", whole())
    b = written(tmp_path / "b", rows(3, 2)[:1], world=2)
    found = only(of_runs(a, b))
    assert (found.status, found.reason) == (FoldStatus.NOT_CHECKABLE, "candidate: rank_missing")
    assert of_runs(a, b).ladder["weights"] is Mark.UNDETERMINED


def test_cp12_a_missing_replica_leaves_the_whole(tmp_path: Path) -> None:
    """Where placements say that every element is there, a rank that is not costs nothing."""
    kept = [{"w": Local(WEIGHT[low:high], ("R", "S(0)"), WEIGHT.shape, (low, 0))} for low, high in ((0, 3), (3, 5))]
    for rank, states in enumerate(kept):
        table = RunTable()
        table.mesh(("dp", "tp"), (2, 2), (0, rank))
        table.state("parameter", states)
        table.end_step()
        table.write(tmp_path / "b", rank=rank, world_size=4)
    assert agrees(of_runs(written(tmp_path / "a", whole()), tmp_path / "b"))


def test_cp12_replicas_must_agree(tmp_path: Path) -> None:
    wrong = WEIGHT.copy()
    wrong[0, 0] += 1
    replicas: list[RankStates] = [{"w": Local(one, ("R",), WEIGHT.shape, (0, 0))} for one in (WEIGHT, wrong)]
    found = only(compared(tmp_path, whole(), replicas))
    assert (found.status, found.reason) == (FoldStatus.NOT_CHECKABLE, "candidate: unlike_replicas")
    assert found.facts == ("candidate: ranks 0 and 1 should hold the same part and do not",)


def test_cp12_pending_sums_are_no_partition(tmp_path: Path) -> None:
    terms: list[RankStates] = [{"w": Local(WEIGHT, ("P(sum)",), WEIGHT.shape, (0, 0))}] * 2
    found = only(compared(tmp_path, whole(), terms))
    assert (found.status, found.reason) == (FoldStatus.NOT_CHECKABLE, "candidate: pending_sum")


def test_cp12_a_placement_of_unknown_kind_is_not_taken_for_a_shard(tmp_path: Path) -> None:
    parts: list[RankStates] = [{"w": Local(WEIGHT, ("MaskPartial",), WEIGHT.shape, (0, 0))}] * 2
    assert only(compared(tmp_path, whole(), parts)).reason == "candidate: no_placement (MaskPartial)"


def test_cp12_strided_shards_add_up_without_being_boxes(tmp_path: Path) -> None:
    """Every second row on each rank: no box, and still a partition."""
    weight = WEIGHT[:4]
    parts: list[RankStates] = [{"w": Local(weight[at::2], ("_S(0,2)",), weight.shape, ())} for at in (0, 1)]
    assert agrees(compared(tmp_path, whole(weight), parts))
    lacking: list[RankStates] = [{"w": Local(weight[:1], ("_S(0,2)",), weight.shape, ())} for _ in (0, 1)]
    assert only(compared(tmp_path / "lacking", whole(weight), lacking)).reason == "candidate: not_one_box"


def test_cp12_plain_tensors_that_differ_need_a_declaration(tmp_path: Path) -> None:
    """Tensor parallelism by hand: the ranks hold plain halves, and only a person knows of what."""
    halves: list[RankStates] = [{"w": Local(WEIGHT[:, :4].copy())}, {"w": Local(WEIGHT[:, 4:].copy())}]
    undeclared = only(compared(tmp_path / "undeclared", whole(), halves))
    assert (undeclared.status, undeclared.reason) == (FoldStatus.NOT_CHECKABLE, "candidate: no_placement")
    assert agrees(compared(tmp_path / "mesh", whole(), halves, "w=tp:1"))
    assert agrees(compared(tmp_path / "ranks", whole(), halves, "candidate:*=ranks:-1"))
    wrong_dim = only(compared(tmp_path / "dim", whole(), halves, "w=tp:0"))
    assert wrong_dim.facts == ("the whole is [5, 8] against [10, 4]: nothing was joined, unpadded or transposed",)
    assert only(compared(tmp_path / "axis", whole(), halves, "w=ep:1")).reason == "candidate: no_such_axis (ep)"
    assert only(compared(tmp_path / "partial", whole(), halves, "w=P")).reason == "candidate: pending_sum"
    assert only(compared(tmp_path / "none", whole(), halves, "w=tp:2")).reason.startswith("candidate: outside")


def test_cp12_plain_tensors_alike_on_all_ranks_are_replicas(tmp_path: Path) -> None:
    assert agrees(compared(tmp_path, whole(), [*whole(), *whole()]))
    assert agrees(compared(tmp_path / "declared", whole(), [*whole(), *whole()], "w=R"))


def test_cp12_nothing_is_transposed_or_unpadded(tmp_path: Path) -> None:
    """The same elements in another shape, and the same with rows of zeros below: both differ."""
    turned = np.ascontiguousarray(WEIGHT.T)
    assert only(compared(tmp_path / "turned", whole(), rows(4, 4, weight=turned))).status is FoldStatus.DIFFERS
    padded = np.vstack((WEIGHT, np.zeros((1, 8), np.float32)))
    found = only(compared(tmp_path / "padded", whole(), rows(3, 3, weight=padded)))
    assert found.facts == ("the whole is [5, 8] against [6, 8]: nothing was joined, unpadded or transposed",)


def test_cp12_another_dtype_is_a_difference_of_its_own(tmp_path: Path) -> None:
    found = only(compared(tmp_path, whole(), rows(3, 2, weight=WEIGHT.astype(np.float64))))
    assert found.facts == ("dtype float32 against float64",)


def test_cp12_pipeline_stages_are_related_by_a_map_of_names(tmp_path: Path) -> None:
    """Each stage numbers its layers from 0; `layers.1` is no beginning of `layers.10`."""
    layers = {f"layers.{n}.w": Local(WEIGHT + n) for n in (0, 1, 10)}
    stages: list[RankStates] = [
        {"layers.0.w": Local(WEIGHT)},
        {"layers.0.w": Local(WEIGHT + 1), "layers.1.w": Local(WEIGHT + 10)},
    ]
    maps = ("map candidate@1:layers.0=layers.1", "map candidate@1:layers.1=layers.10")
    comparison = compared(tmp_path, [layers], stages, *maps)
    assert [(one.agree, one.total) for one in folds_of(comparison).counts] == [(3, 3)]
    assert comparison.settings["map"] == "candidate@1:layers.0=layers.1 candidate@1:layers.1=layers.10"
    unmapped = compared(tmp_path / "unmapped", [layers], stages)
    (count,) = folds_of(unmapped).counts
    assert (count.agree, count.differ, count.not_checkable) == (0, 1, 2)


def test_cp12_names_of_one_side_are_not_checkable(tmp_path: Path) -> None:
    found = folds_of(compared(tmp_path, [{"w": Local(WEIGHT), "v": Local(WEIGHT)}], rows(3, 2)))
    (state,) = found.states
    assert (state.name, state.reason) == ("v", "baseline: one_side_only")


def test_cp12_alike_layouts_are_not_folded(tmp_path: Path) -> None:
    assert compared(tmp_path, rows(3, 2), rows(3, 2)).folds is None


def cut_off(place: Path, *, steps_of: tuple[int, int], weights: Sequence[Array]) -> Path:
    """Two ranks that hold plain halves, of which each recorded so many steps."""
    for rank, (steps, weight) in enumerate(zip(steps_of, weights, strict=True)):
        table = RunTable()
        for _ in range(steps):
            table.state("parameter", {"w": Local(weight)})
            table.state("batch", {"args[0]": Local(weight)}, moment="batch")
            table.end_step()
        table.write(place, rank=rank, world_size=2)
    return place


def test_cp12_a_rank_that_was_cut_off_leaves_later_steps_open(tmp_path: Path) -> None:
    """Half of a tensor, left by the rank that lived on, is never taken for the whole."""
    a = cut_off(tmp_path / "a", steps_of=(2, 2), weights=(WEIGHT, WEIGHT))
    b = cut_off(tmp_path / "b", steps_of=(2, 1), weights=(WEIGHT[:3], WEIGHT[3:]))
    folds = folds_of(of_runs(a, b, "candidate:w=ranks:0"))
    assert [
        (one.step, one.group, one.agree, one.not_checkable) for one in folds.counts if one.group == "parameter"
    ] == [
        (0, "parameter", 1, 0),
        (1, "parameter", 0, 1),
    ]
    (lacking,) = [state for state in folds.states if (state.step, state.group) == (1, "parameter")]
    assert lacking.reason == "candidate: rank_missing"
    (batch,) = [state for state in folds.states if (state.step, state.group) == (1, "batch")]
    assert batch.reason == "candidate: rank_missing"


def test_cp12_a_run_that_was_cut_off_early_is_no_other_layout(tmp_path: Path) -> None:
    """Its differences stay differences of single ranks."""
    wrong = WEIGHT.copy()
    wrong[4, 0] += 1
    moments = [{"w:exp_avg": states["w"]} for states in rows(3, 2)]
    a = written(tmp_path / "a", rows(3, 2), optimizer_state=moments)
    b = written(tmp_path / "b", rows(3, 2, weight=wrong))
    comparison = of_runs(a, b)
    assert comparison.folds is None
    assert [(state.rank, state.name) for state in comparison.outside] == [(1, "w")]


def test_cp12_later_stages_of_a_pipeline_read_no_batch(tmp_path: Path) -> None:
    data, made = np.arange(12, dtype=np.int64), np.ones(12, np.float32)
    a = written(tmp_path / "a", whole(), batch=[{"args[0]": Local(data)}])
    stages: list[RankStates] = [{"w": Local(WEIGHT)}, {"v": Local(WEIGHT)}]
    read = [{"args[0]": Local(data)}, {"args[0]": Local(made)}]
    staged = folds_of(of_runs(a, written(tmp_path / "b", stages, mesh=("pp",), batch=read)))
    assert [(one.agree, one.total) for one in staged.counts if one.group == "batch"] == [(1, 1)]
    unknown = folds_of(of_runs(a, written(tmp_path / "c", stages, batch=read)))
    assert [state.reason for state in unknown.states if state.group == "batch"] == ["candidate: no_placement"]


class TestBatches:
    """Loads: what all ranks read in a step together."""

    DATA = np.arange(48, dtype=np.int64).reshape(8, 6)

    def of(self, tmp_path: Path, *parts: Array, whole_batch: Array | None = None) -> FoldedState | None:
        data = self.DATA if whole_batch is None else whole_batch
        a = written(tmp_path / "a", whole(), batch=[{"args[0]": Local(data)}])
        ranks: list[RankStates] = [{"w": Local(WEIGHT)} for _ in parts]
        b = written(tmp_path / "b", ranks, batch=[{"args[0]": Local(part)} for part in parts])
        states = [state for state in folds_of(of_runs(a, b)).states if state.group == "batch"]
        return states[0] if states else None

    def test_halves_add_up(self, tmp_path: Path) -> None:
        assert self.of(tmp_path, self.DATA[:4], self.DATA[4:]) is None

    def test_uneven_parts_add_up(self, tmp_path: Path) -> None:
        assert self.of(tmp_path, self.DATA[:3], self.DATA[3:]) is None

    def test_replicas_are_said(self, tmp_path: Path) -> None:
        """Tensor parallel ranks read the same; so do data-parallel ones whose sampler was forgotten."""
        found = self.of(tmp_path, self.DATA, self.DATA)
        assert found is not None
        assert found.status is FoldStatus.AGREES
        assert found.facts == ("candidate: every part is there 2 times, alike on its ranks",)

    def test_one_half_twice_differs(self, tmp_path: Path) -> None:
        found = self.of(tmp_path, self.DATA[:4], self.DATA[:4])
        assert found is not None
        assert found.status is FoldStatus.DIFFERS
        assert found.facts == ("candidate: ranks 0, 1 have the same batch (micro-batch 0)",)

    def test_as_many_elements_twice_that_are_not_alike_differ(self, tmp_path: Path) -> None:
        found = self.of(tmp_path, self.DATA, self.DATA + 1)
        assert found is not None
        assert found.facts == ("48 elements against 96, and the ranks do not hold equal parts",)

    def test_a_sample_that_was_dropped_differs(self, tmp_path: Path) -> None:
        found = self.of(tmp_path, self.DATA[:4], self.DATA[4:7])
        assert found is not None
        assert found.facts == ("48 elements against 42",)

    def test_micro_batches_add_up_to_the_batch(self, tmp_path: Path) -> None:
        a = written(tmp_path / "a", whole(), batch=[{"args[0]": Local(self.DATA)}])
        for rank in (0, 1):
            table = RunTable()
            table.state("parameter", {"w": Local(WEIGHT)})
            for microbatch in (0, 1):
                table.microbatch = microbatch
                low = 4 * rank + 2 * microbatch
                table.state("batch", {"args[0]": Local(self.DATA[low : low + 2])}, moment="batch")
            table.end_step()
            table.write(tmp_path / "b", rank=rank, world_size=2)
        assert not folds_of(of_runs(a, tmp_path / "b")).states

    def test_a_missing_rank_leaves_it_open(self, tmp_path: Path) -> None:
        a = written(tmp_path / "a", whole(), batch=[{"args[0]": Local(self.DATA)}])
        b = written(tmp_path / "b", whole(), world=2, batch=[{"args[0]": Local(self.DATA[:4])}])
        (found,) = [state for state in folds_of(of_runs(a, b)).states if state.group == "batch"]
        assert found.reason == "candidate: rank_missing"


@pytest.mark.parametrize("text", ["w", "w=", "=tp:0", "w=tp", "w=tp:0,tp:1", "w=tp:x", "baseline:=tp:0", "w=tp:0,,R"])
def test_dims_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_dims(text)
    assert (caught.value.code, caught.value.outcome) == ("bad_dims", Outcome.REFUSED)


@pytest.mark.parametrize("text", ["layers", "=", "a=b=c", "candidate@x:a=a"])
def test_maps_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_map(text)
    assert (caught.value.code, caught.value.outcome) == ("bad_map", Outcome.REFUSED)


@pytest.mark.parametrize("text", ["*.qkv.weight=tp:0", "candidate:blocks.*/out=dp:0,tp:R", "w=ranks:-1"])
def test_dims_are_recorded_as_they_were_understood(text: str) -> None:
    assert str(parse_dims(text)) == text


def test_a_pattern_speaks_of_states_or_of_tensors_at_modules_never_of_both() -> None:
    assert parse_dims("*=tp:0").covers("fc.weight", "baseline")
    assert not parse_dims("*=tp:0").covers("fc/out", "baseline")
    assert parse_dims("*/*=tp:0").covers("fc/out", "baseline")
    assert not parse_dims("candidate:*/*=tp:0").covers("fc/out", "baseline")
