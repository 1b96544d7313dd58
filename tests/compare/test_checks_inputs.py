"""Batches and random generators between ranks (CP-25, A-17)."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from paritrace.compare.checks_result import Invariant, Outcome
from paritrace.evidence.calls import Call, State, StateNames
from tests.compare import rank_records as ranks
from tests.compare.rank_records import Records, across_of, invariants_of, training, value


def of(*sessions: Records) -> dict[str, Invariant]:
    return invariants_of(across_of(dict(enumerate(sessions))))


def with_rng(rank: int, streams: Sequence[object], *, drawn: bool = True, name: str = "torch_cpu") -> Records:
    """Returns a rank whose generator's states are those of a stream, drawn from in every step."""
    made: Records = []
    for record in training(rank, world=range(len(streams)), declared=False):
        if isinstance(record, StateNames) and record.id == ranks.RNG:
            made.append(StateNames(ranks.RNG, "rng", (name,), (-1,)))
        elif isinstance(record, State) and record.names == ranks.RNG:
            made.append(replace(record, values=(value("rng", streams[rank], record.step if drawn else 0),)))
            if drawn:
                made.append(ranks.draw(record.step * 10, step=record.step))
        else:
            made.append(record)
    return made


def meshed(streams: Sequence[object], *dims: str, basis: str = "declared", name: str = "torch_cpu") -> list[Records]:
    shape = (len(streams),) if len(dims) == 1 else (len(streams) // 2, 2)
    found: list[Records] = []
    for rank in range(len(streams)):
        made = with_rng(rank, streams, name=name)
        found.append([made[0], ranks.mesh(rank, dims, shape, basis=basis), *made[1:]])
    return found


def test_cp25_a_batch_on_two_data_parallel_ranks_is_named() -> None:
    def session(rank: int) -> Records:
        return [
            replace(record, values=(value("batch", 0, record.step),))
            if isinstance(record, State) and record.names == ranks.BATCH and record.step == 1
            else record
            for record in training(rank)
        ]

    found = of(session(0), session(1))["batches.across_ranks"]
    assert (found.status, found.step, found.evidence.total) == (Outcome.FAIL, 1, 1)
    assert found.evidence.facts[0] == "step 1 micro-batch 0: ranks 0,1 have the same batch"


def test_cp25_batches_that_differ_pass_with_the_ranks_compared() -> None:
    found = of(training(0), training(1))["batches.across_ranks"]
    assert (found.status, found.evidence.ranks) == (Outcome.PASS, (0, 1))


def test_cp25_tensor_parallel_ranks_share_their_batch() -> None:
    """Four ranks, dp 2 by tp 2: the batch differs along dp only."""
    sessions = [
        [
            replace(record, values=(value("batch", rank // 2, record.step),))
            if isinstance(record, State) and record.names == ranks.BATCH
            else record
            for record in made
        ]
        for rank, made in enumerate(meshed([0, 0, 1, 1], "dp", "tp"))
    ]
    found = of(*sessions)["batches.across_ranks"]
    assert found.status is Outcome.PASS
    assert sum("mesh dimension dp" in fact for fact in found.evidence.facts) == 2


@pytest.mark.parametrize(
    ("streams", "dims", "basis", "status"),
    [
        ((0, 1), ("dp",), "declared", Outcome.PASS),
        ((0, 0), ("dp",), "declared", Outcome.FAIL),
        ((0, 0), ("dp",), "megatron", Outcome.NOT_CHECKABLE),
        ((0, 0), ("tp",), "declared", Outcome.PASS),
        ((0, 1), ("tp",), "declared", Outcome.FAIL),
        ((0, 0), ("dim0",), "device_mesh", Outcome.NOT_CHECKABLE),
        ((0, 0, 1, 1), ("dp", "tp"), "declared", Outcome.PASS),
        ((0, 1, 0, 1), ("dp", "tp"), "declared", Outcome.FAIL),
        ((0, 0, 0, 0), ("dp", "tp"), "declared", Outcome.FAIL),
    ],
)
def test_cp25_generators_are_judged_by_the_mesh(
    streams: tuple[int, ...], dims: tuple[str, ...], basis: str, status: Outcome
) -> None:
    assert of(*meshed(streams, *dims, basis=basis))["replicas.rng"].status is status


def test_cp25_ranks_that_draw_for_parts_of_a_tensor_need_not_share_a_stream() -> None:
    """Sequence parallelism: the stream of each rank is its own, and so are the positions it drops out."""
    sessions = [
        [
            replace(record, inputs=(replace(record.inputs[0], bits=value("part", rank)), record.inputs[1]))
            if isinstance(record, Call)
            else record
            for record in made
        ]
        for rank, made in enumerate(meshed((0, 1), "tp"))
    ]
    assert of(*sessions)["replicas.rng"].status is Outcome.NOT_CHECKABLE


@pytest.mark.parametrize(("streams", "status"), [((0, 0), Outcome.FAIL), ((0, 1), Outcome.PASS)])
def test_cp25_megatrons_model_parallel_stream_differs_along_tensor_parallel(
    streams: tuple[int, int], status: Outcome
) -> None:
    found = of(*meshed(streams, "tp", basis="megatron", name="megatron:model-parallel-rng"))
    assert found["replicas.rng"].status is status


def test_a17_without_a_mesh_streams_are_told_per_rank_and_not_judged() -> None:
    """The checkpoint gave every rank but one the stream of rank 0: which is wrong, nobody recorded."""
    streams = (0, 0, 0, 3)
    found = of(*(with_rng(rank, streams) for rank in range(4)))["replicas.rng"]
    assert found.status is Outcome.NOT_CHECKABLE
    assert "torch_cpu at step 0: ranks 0-2 agree; rank 3 differs" in found.evidence.facts


def test_a17_a_stream_that_is_not_a_ranks_own_is_named_with_the_ranks() -> None:
    found = of(*meshed((0, 0, 0, 3), "dp"))["replicas.rng"]
    assert (found.status, found.step) == (Outcome.FAIL, 0)
    assert found.evidence.facts[0].startswith("torch_cpu at step 0: ranks 0-2 agree; rank 3 differs, where each must")
    assert found.evidence.ranks == (0, 1, 2, 3)


def test_cp25_generators_that_nobody_draws_from_are_not_judged() -> None:
    found = of(*(with_rng(rank, (0, 0), drawn=False) for rank in (0, 1)))["replicas.rng"]
    assert found.status is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(("scope", "status"), [(0, Outcome.NOT_CHECKABLE), (1, Outcome.FAIL)])
def test_cp25_weights_drawn_alike_on_all_ranks_before_the_first_module_call_are_no_fault(
    scope: int, status: Outcome
) -> None:
    """Every rank seeds alike and makes the same model: only a draw inside a module, or later, is the training's own."""
    made = [
        [
            replace(record, scope=scope) if isinstance(record, Call) else record
            for record in one
            if not later_draw(record)
        ]
        for one in meshed((0, 0), "dp")
    ]
    assert of(*made)["replicas.rng"].status is status


def later_draw(record: object) -> bool:
    return isinstance(record, Call) and record.context > 1
