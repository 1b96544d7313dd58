"""Collectives at level `op` in a world of one rank: records, flights, gaps, and that nothing is left behind (CA-31)."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.distributed_c10d import Work

import paritrace
from paritrace.capture.pytorch.internals import free_weak_storage, storage_behind, weak_storage
from paritrace.evidence.calls import Scalars, StepMark
from paritrace.evidence.gaps import CaptureGap, Gap
from tests.cases.ranked import Rank, recorded_ranks

in_memory = vars(dist)["HashStore"]  # a store of one process, which torch exports without saying so
IN_FLIGHT = Gap(CaptureGap.IN_FLIGHT)


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    """A world of one rank, in this process."""
    dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def captured(place: Path, job: Callable[[], object], **options: Any) -> Rank:
    """What one rank's journal holds of this job."""
    chosen: dict[str, Any] = {"level": ("op",), "steps": (0, 1000), "diff": False} | options
    with paritrace.trace(place, **chosen):
        job()
    return recorded_ranks(place)[0]


def reduced(value: torch.Tensor, how: str) -> torch.Tensor:
    """A functional reduction: it is waited for when somebody reads it."""
    assert dist.group.WORLD is not None
    found: torch.Tensor = functional.all_reduce(value, how, dist.group.WORLD)
    return found


def every_kind() -> None:
    value, pair = torch.arange(4.0), [torch.zeros(4)]
    dist.all_reduce(value)
    dist.all_reduce(value, op=dist.ReduceOp.PRODUCT, async_op=True).wait()
    dist.broadcast(value, src=0)
    dist.all_gather(pair, value)
    dist.all_gather_into_tensor(torch.empty(4), value)
    dist.reduce_scatter_tensor(torch.empty(4), value)
    dist.reduce(value, 0)
    dist.gather(value, pair, dst=0)
    dist.scatter(value, pair, src=0)
    dist.all_to_all_single(torch.empty(4), value)
    dist.barrier()
    dist.monitored_barrier()
    reduced(value, "max").neg()


def test_ca31_every_operation_is_named_counted_and_completed(tmp_path: Path) -> None:
    rank = captured(tmp_path / "run", every_kind)
    assert [(one.operation, one.reduce) for one in rank.collectives] == [
        ("all_reduce", "sum"),
        ("all_reduce", "product"),
        ("broadcast", ""),
        ("all_gather", ""),
        ("all_gather", ""),
        ("reduce_scatter", "sum"),
        ("reduce", "sum"),
        ("gather", ""),
        ("scatter", ""),
        ("all_to_all", ""),
        ("barrier", ""),
        ("barrier", ""),
        ("all_reduce", "max"),
    ]
    assert [one.ordinal for one in rank.collectives] == list(range(13))
    assert {rank.groups[one.group].key for one in rank.collectives} == {"world"}
    roots = {one.operation: one.root for one in rank.collectives}
    assert roots["broadcast"] == roots["gather"] == roots["scatter"] == roots["reduce"] == 0
    assert roots["all_reduce"] == -1
    assert [one.asynchronous for one in rank.collectives if one.operation == "all_reduce"] == [False, True, True]
    for one in rank.collectives:
        outputs = rank.calls[one.call].outputs
        assert [slot.bits for slot in outputs] == [IN_FLIGHT] * len(outputs)
        assert len(rank.bits(one)) == len(outputs)
        assert all(isinstance(bits, str) for bits in rank.bits(one))
    assert rank.completed_by(rank.collectives[-1]) == "wait_tensor"
    assert rank.gaps == {}


def test_ca31_a_collective_stands_before_its_call_and_its_completion_behind(tmp_path: Path) -> None:
    rank = captured(tmp_path / "run", every_kind)
    for one in rank.collectives:
        order = [rank.records.index(item) for item in (one, rank.calls[one.call], rank.completed[one.call])]
        assert order == sorted(order)
        assert order[1] == order[0] + 1


def test_ca31_two_identical_runs_have_the_same_scalars(tmp_path: Path) -> None:
    """Torch's names of groups are counters; objects have addresses: neither is an argument of the workload."""

    def scalars(place: Path) -> list[dict[str, str]]:
        rank = captured(place, every_kind)
        known = {item.id: item.values for item in rank.records if isinstance(item, Scalars)}
        return [known[call.scalars] for call in rank.calls.values()]

    first = scalars(tmp_path / "a")
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
    dist.new_group([0])
    assert scalars(tmp_path / "b") == first


def test_ca31_an_unread_output_and_a_list_of_tensors(tmp_path: Path) -> None:
    def job() -> None:
        dist.all_gather([torch.empty(4)], torch.ones(4))
        dist.all_reduce_coalesced([torch.ones(2), torch.ones(3)])

    rank = captured(tmp_path / "run", job)
    gather, both = (rank.calls[one.call] for one in rank.collectives)
    assert [(rank.names[slot.name], isinstance(slot.bits, str)) for slot in gather.inputs] == [
        ("args[0][0][0]", False),
        ("args[1][0]", True),
    ]
    assert [rank.names[slot.name] for slot in gather.outputs] == ["out[0][0][0]"]
    assert [rank.names[slot.name] for slot in both.outputs] == ["args[0][0]", "args[0][1]"]


def test_ca31_only_what_a_flight_covers_is_in_flight(tmp_path: Path) -> None:
    """Another part of the same storage can be read meanwhile."""

    def job() -> None:
        value = torch.arange(8.0)
        value.view(8)
        work = dist.all_reduce(value[:4], async_op=True)
        for part in (value[:4], value[4:], value):
            part.neg()
        work.wait()
        value.neg()

    rank = captured(tmp_path / "run", job)
    read = [call.inputs[0].bits for call in rank.calls.values() if rank.function(call) == "aten.neg.default"]
    assert [bits == IN_FLIGHT for bits in read] == [True, False, True, False]


def test_ca31_a_reader_names_the_collective_as_producer(tmp_path: Path) -> None:
    def job() -> None:
        value = torch.ones(4)
        dist.all_reduce(value)
        value.neg()

    rank = captured(tmp_path / "run", job)
    (one,) = rank.collectives
    (negated,) = [call for call in rank.calls.values() if rank.function(call) == "aten.neg.default"]
    assert negated.inputs[0].source == (one.call, 0)
    assert negated.inputs[0].bits == rank.bits(one)[0]


@pytest.mark.parametrize("how", ["freed", "resized"])
def test_ca34_a_result_that_is_gone_by_then_is_a_gap(tmp_path: Path, how: str) -> None:
    def job() -> None:
        value = torch.ones(1 << 16)
        if how == "freed":
            reduced(value, "sum")
            return
        asynchronous = dist.all_reduce(value, async_op=True)
        value.untyped_storage().resize_(0)
        asynchronous.wait()

    rank = captured(tmp_path / "run", job)
    (one,) = rank.collectives
    if how == "resized":
        assert rank.bits(one) == (Gap(CaptureGap.NO_DATA, "storage holds no bytes"),)
    else:
        assert rank.completed == {}
        assert rank.gaps == {"not_observable_in_flight": 1}


@pytest.mark.parametrize("waits", [True, False])
def test_ca34_neither_tensor_nor_work_is_kept_alive(tmp_path: Path, waits: bool) -> None:
    """Torch's work holds its tensors until it has run: ours holds neither."""
    gone: list[bool] = []

    def job() -> None:
        value = torch.ones(1 << 16)
        reference = weak_storage(value)
        work = dist.all_reduce(value, async_op=True)
        assert work is not None
        if waits:
            work.wait()
        del value, work
        deadline = time.monotonic() + 60
        while storage_behind(reference) is not None and time.monotonic() < deadline:
            gc.collect()
        gone.append(storage_behind(reference) is None)
        free_weak_storage(reference)

    rank = captured(tmp_path / "run", job)
    assert gone == [True]
    assert rank.gaps == ({} if waits else {"not_observable_in_flight": 1})


def test_ca31_fifty_that_nobody_waits_for(tmp_path: Path) -> None:
    """Addresses of works are handed out again: none speaks for another."""

    def job() -> None:
        value = torch.ones(16)
        for _ in range(50):
            dist.all_reduce(value, async_op=True)
        dist.barrier()

    rank = captured(tmp_path / "run", job)
    assert [rank.completed_by(one) for one in rank.collectives] == [""] * 50 + ["wait"]
    assert rank.gaps == {"not_observable_in_flight": 50}


def test_ca31_the_functions_of_torch_are_put_back(tmp_path: Path) -> None:
    names = ("wait", "get_future")
    before = [vars(Work)[name] for name in names]
    package = vars(dist)["_broadcast_coalesced"], vars(vars(dist)["Reducer"])["_rebuild_buckets"]
    seen: list[object] = []

    def job() -> None:
        seen.extend((Work.wait.__name__, Work.wait.__doc__))
        work = dist.all_reduce(torch.ones(1), async_op=True)
        assert work is not None
        seen.append(work.wait())

    captured(tmp_path / "run", job)
    assert [vars(Work)[name] for name in names] == before
    assert (vars(dist)["_broadcast_coalesced"], vars(vars(dist)["Reducer"])["_rebuild_buckets"]) == package
    assert seen == ["wait", Work.wait.__doc__, True]


def test_ca31_a_wait_in_another_thread_is_not_ours_to_record(tmp_path: Path) -> None:
    """Its completion is not seen: the gap is counted, nothing is claimed and the workload's wait works."""
    waited: list[object] = []

    def job() -> None:
        work = dist.all_reduce(torch.ones(4), async_op=True)
        assert work is not None
        thread = threading.Thread(target=lambda: waited.append(work.wait()))
        thread.start()
        thread.join(timeout=60)

    rank = captured(tmp_path / "run", job)
    assert waited == [True]
    assert rank.completed == {}
    assert rank.gaps == {"not_observable_in_flight": 1}


def test_ca31_a_call_that_is_left_out_is_in_flight_all_the_same(tmp_path: Path) -> None:
    def job() -> None:
        value = torch.arange(4.0)
        value.neg()
        work = dist.all_reduce(value, async_op=True)
        value.neg()
        value.add_(1)
        assert work is not None
        work.wait()
        value.neg()

    rank = captured(tmp_path / "run", job, select=("function:aten.neg*",))
    assert rank.collectives == []
    first, second, third = (call.inputs[0] for call in rank.calls.values())
    assert isinstance(first.bits, str)
    assert second.bits == IN_FLIGHT
    assert isinstance(third.bits, str)
    assert third.bits != first.bits, "an unrecorded write voids what was known"


def test_ca3_a_collective_ends_no_step(tmp_path: Path) -> None:
    """A metric reduced between two steps belongs to the first of them."""
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    metric = torch.ones(1)

    def job() -> None:
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            dist.all_reduce(metric)
            dist.barrier()

    rank = captured(tmp_path / "run", job)
    marks = [index for index, item in enumerate(rank.records) if isinstance(item, StepMark)]
    assert len(marks) == 3
    reductions = [rank.records.index(one) for one in rank.of("all_reduce")]
    assert all(reduction < mark for reduction, mark in zip(reductions, marks, strict=True))


@pytest.mark.parametrize("level", ["digest", "module", "op"])
def test_ca2_every_step_counts_the_collectives_of_each_group(tmp_path: Path, level: str) -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dist.all_reduce(torch.ones(1))  # before the capture: of no step

    def job() -> None:
        group = dist.new_group([0])
        for step in range(3):
            model(torch.ones(2, 4)).sum().backward()
            for _ in range(step):
                dist.all_reduce(torch.ones(1), group=group)
            optimizer.step()

    rank = captured(tmp_path / "run", job, level=(level,))
    assert [counts.step for counts in rank.counts] == [0, 1, 2]
    assert [counts.counts["ranks 0"] for counts in rank.counts] == [0, 1, 2]
    assert {group.key for group in rank.groups.values()} == {"world", "ranks 0"}


def test_ca2_where_nothing_is_distributed_nothing_is_counted(tmp_path: Path) -> None:
    dist.destroy_process_group()
    model = nn.Linear(4, 4)
    rank = captured(tmp_path / "run", lambda: model(torch.ones(2, 4)).sum().backward())
    assert rank.counts == []


def test_ca31_a_future_of_a_work_stops_reuse_until_the_step_ends(tmp_path: Path) -> None:
    """What is chained to it runs in a thread that nobody observes."""

    def job() -> None:
        value, other = torch.ones(4), torch.ones(4)
        other.neg()
        work = dist.all_reduce(value, async_op=True)
        assert work is not None
        work.get_future().then(lambda _: other.fill_(7)).wait()
        other.neg()
        work.wait()

    rank = captured(tmp_path / "run", job)
    before, after = (call for call in rank.calls.values() if rank.function(call) == "aten.neg.default")
    assert before.inputs[0].bits != after.inputs[0].bits


def test_a_gradient_that_is_gone_by_the_time_its_copy_is_reduced_is_no_fault(tmp_path: Path) -> None:
    """Sequence parallelism reduces gradients in hooks: what they were copied from may be freed before the launch."""
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))

    def reduced_copy(gradient: torch.Tensor) -> torch.Tensor:
        first = gradient.clone()  # of a storage that this hook alone keeps alive
        second = first.clone()
        del first
        dist.all_reduce(second)
        return second

    parameters: list[Any] = list(model.parameters())
    for parameter in parameters:
        parameter.register_hook(reduced_copy)

    def training() -> None:
        for _ in range(3):
            torch.autograd.backward(model(torch.randn(4, 8)).square().mean())
            model.zero_grad()

    rank = captured(tmp_path / "run", training)
    assert len(rank.collectives) == 12
    assert rank.gaps == {}
    assert len(rank.completed) == 12
