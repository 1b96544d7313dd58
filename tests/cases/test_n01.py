"""N-01: a collective's outputs are what a clone taken after `wait` holds, on all ranks; till then in flight (CA-31)."""

from pathlib import Path

import numpy as np
import pytest
import xxhash

from paritrace.evidence.calls import Call, Completed, Slot
from paritrace.evidence.distributed import Collective
from paritrace.evidence.gaps import CaptureGap, Gap
from tests.cases.captures import write_script
from tests.cases.ranked import Rank, recorded_ranks, run_ranks, said

pytestmark = pytest.mark.slow

RANKS = (0, 1)
BUCKETS = 22
JOB = '''
    """Collectives of every kind; each result is hashed from a clone once it may be read."""
    import json, sys
    import torch
    import torch.distributed as dist
    import xxhash
    from torch import nn
    from torch.distributed import _functional_collectives as functional
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    told = {}

    def bits(tensor):
        clone = tensor.detach().clone().flatten()
        return xxhash.xxh3_64_hexdigest(clone.view(torch.uint8).numpy().tobytes())

    def tell(name, tensor):
        told.setdefault(name, []).append(bits(tensor))

    def drawn(*shape):
        return torch.randn(*shape) + rank

    # 20 synchronous and 20 asynchronous reductions.
    for number in range(20):
        value = drawn(64, 64)
        dist.all_reduce(value, op=dist.ReduceOp.MAX if number == 3 else dist.ReduceOp.SUM)
        tell("sync", value)
    for _ in range(20):
        value = drawn(64, 64)
        work = dist.all_reduce(value, async_op=True)
        value.view(-1)  # a call between dispatch and completion
        work.wait()
        tell("async", value)
        value.view(-1)

    # Two on one group at once, waited for in the other order.
    first, second = drawn(32), drawn(32)
    works = [dist.all_reduce(first, async_op=True), dist.all_reduce(second, async_op=True)]
    works[1].wait()
    works[0].wait()
    tell("crossed", first)
    tell("crossed", second)

    # The other operations.
    alone, pair = dist.new_group([1]), dist.new_group([0, 1], group_desc="another")
    value = drawn(16)
    dist.broadcast(value, src=1, group=pair)
    tell("broadcast", value)
    parts = [torch.empty(16) for _ in range(2)]
    dist.all_gather(parts, drawn(16))
    tell("all_gather", torch.stack(parts))
    whole = torch.empty(32)
    dist.all_gather_into_tensor(whole, drawn(16))
    tell("all_gather_into_tensor", whole)
    part = torch.empty(16)
    dist.reduce_scatter_tensor(part, drawn(32))
    tell("reduce_scatter", part)
    swapped = torch.empty(16)
    dist.all_to_all_single(swapped, drawn(16))
    tell("all_to_all", swapped)
    received = torch.empty(16)
    if rank == 0:
        dist.send(drawn(16), 1)
    else:
        dist.recv(received, 0)
        tell("recv", received)
    batch = [dist.P2POp(dist.isend, drawn(8), 1 - rank), dist.P2POp(dist.irecv, received[:8], 1 - rank)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    tell("irecv", received[:8])
    dist.barrier()
    if rank == 1:
        value = drawn(4)
        dist.all_reduce(value, group=alone)
        tell("alone", value)
    value = functional.all_reduce(drawn(16), "sum", dist.group.WORLD)
    tell("functional", value + 0)
    lost = drawn(4)
    dist.all_reduce(lost, async_op=True)  # nobody ever waits
    dist.barrier()

    def gradients(name, model):
        told[name] = {key: [float.hex(x) for x in p.grad.flatten().tolist()] for key, p in model.named_parameters()}

    # DDP: as many buckets as layers.
    torch.manual_seed(0)
    for view in (False, True):
        layers = [nn.Linear(40, 40) for _ in range(22)]
        model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.006, gradient_as_bucket_view=view)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            model(drawn(4, 40)).square().mean().backward()
            gradients(f"ddp {view} {step}", model)
            optimizer.step()
            optimizer.zero_grad()

    # FSDP2: what it gathers and scatters, hashed as soon as its own call has returned.
    gather, scatter = dist.all_gather_single, dist.reduce_scatter_single
    def after(function, name):
        def call(*args, **kwargs):
            work = function(*args, **kwargs)
            output = args[0] if args else kwargs.get("output_tensor", kwargs.get("output"))
            if work is None:
                tell(name, output)
            return work
        return call
    dist.all_gather_single = after(gather, "fsdp gather")
    dist.reduce_scatter_single = after(scatter, "fsdp scatter")
    sharded = nn.Sequential(*[nn.Linear(8, 8) for _ in range(3)])
    for layer in sharded:
        fully_shard(layer)
    fully_shard(sharded)
    optimizer = torch.optim.SGD(sharded.parameters(), lr=0.1)
    for step in range(2):
        sharded(drawn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    with open(f"{sys.argv[1]}/rank-{rank}.json", "w") as out:
        json.dump(told, out)
    dist.destroy_process_group()
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("n01")
    script = write_script(folder / "job" / "job.py", JOB)
    done = run_ranks(script, folder / "run", str(folder))
    assert done.status == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def ranks(place: Path) -> dict[int, Rank]:
    return recorded_ranks(place / "run")


def single(rank: Rank, found: list[Collective]) -> list[object]:
    """The only output of each."""
    return [bits for collective in found for (bits,) in (rank.bits(collective),)]


@pytest.mark.parametrize("number", RANKS)
def test_n01_twenty_synchronous_and_twenty_asynchronous_reductions(
    place: Path, ranks: dict[int, Rank], number: int
) -> None:
    rank, told = ranks[number], said(place, number)
    found = rank.of("all_reduce", group="world")[:42]
    assert single(rank, found) == [*told["sync"], *told["async"], *told["crossed"]]
    assert [one.asynchronous for one in found] == [False] * 20 + [True] * 22
    assert [one.reduce for one in found[:20]] == ["max" if index == 3 else "sum" for index in range(20)]
    assert {rank.completed[one.call].by for one in found} == {"wait"}
    for one in found:
        (output,) = rank.calls[one.call].outputs
        (given,) = rank.calls[one.call].inputs
        assert output.bits == Gap(CaptureGap.IN_FLIGHT)
        assert isinstance(given.bits, str)
        assert given.bits != rank.bits(one)[0], "the input is not passed off as the output"


@pytest.mark.parametrize("number", RANKS)
def test_n01_until_it_completes_what_it_writes_is_in_flight(ranks: dict[int, Rank], number: int) -> None:
    """The view between dispatch and `wait` reads nothing; the one after it inherits what the collective left."""
    rank = ranks[number]
    for one in rank.of("all_reduce", group="world")[20:40]:
        position = next(index for index, item in enumerate(rank.records) if item is rank.calls[one.call])
        end = next(index for index, item in enumerate(rank.records) if item is rank.completed[one.call])
        between = [item for item in rank.records[position + 1 : end] if isinstance(item, Call)]
        assert [rank.function(call) for call in between] == ["aten.view.default"]
        assert slots(between) == [Gap(CaptureGap.IN_FLIGHT)] * 2
        after = next(
            item
            for item in rank.records[end:]
            if isinstance(item, Call) and any(slot.source == (one.call, 0) for slot in item.inputs)
        )
        assert after.inputs[0].bits == rank.bits(one)[0]


def slots(found: list[Call]) -> list[object]:
    every: list[Slot] = [slot for call in found for slot in (*call.inputs, *call.outputs)]
    return [slot.bits for slot in every]


@pytest.mark.parametrize("number", RANKS)
def test_n01_the_other_operations(place: Path, ranks: dict[int, Rank], number: int) -> None:
    rank, told = ranks[number], said(place, number)
    (broadcast,) = rank.of("broadcast", group="ranks 0,1")
    assert (single(rank, [broadcast]), broadcast.root) == (told["broadcast"], 1)
    exchanged = rank.of("all_to_all")
    assert single(rank, exchanged) == told["all_to_all"]
    gathered = [one for one in rank.of("all_gather") if rank.calls[one.call].node < 0]
    assert len(rank.bits(gathered[0])) == 2, "a list of tensors has a slot for each"
    assert rank.bits(gathered[1])[0] == told["all_gather_into_tensor"][0]
    assert rank.bits(rank.of("reduce_scatter")[0])[0] == told["reduce_scatter"][0]
    received = rank.of("recv")
    assert single(rank, received) == [*told.get("recv", []), *told["irecv"]]
    assert {one.peer for one in (*received, *rank.of("send"))} == {1 - number}
    assert all(rank.completed[one.call].bits == () for one in (*rank.of("send"), *rank.of("barrier")))
    functional = [one for one in rank.of("all_reduce") if rank.completed_by(one) == "wait_tensor"]
    assert single(rank, functional) == told["functional"]


@pytest.mark.parametrize("number", RANKS)
def test_n01_groups_are_named_and_counted_alike(ranks: dict[int, Rank], number: int) -> None:
    rank = ranks[number]
    keys = {group.key: group.ranks for group in rank.groups.values()}
    wanted = {"world": (0, 1), "ranks 0,1": (0, 1)}
    assert keys == (wanted | {"ranks 1": (1,)} if number == 1 else wanted)
    for group in rank.groups:
        of_group = [one.ordinal for one in rank.collectives if one.group == group]
        assert of_group == list(range(len(of_group)))


@pytest.mark.parametrize("number", RANKS)
@pytest.mark.parametrize("view", [False, True], ids=["copied", "as bucket views"])
@pytest.mark.parametrize("step", [0, 1])
def test_n01_every_bucket_holds_the_gradients_of_its_parameters(
    place: Path, ranks: dict[int, Rank], number: int, view: bool, step: int
) -> None:
    """By name and in order: the bits of a bucket are those of its parameters' gradients, one behind the other.

    The first step has one bucket; then the reducer has seen the gradients' order and makes those it was asked for.
    """
    rank, told = ranks[number], said(place, number)
    prefix = "Sequential." if view else ""  # the second root module of this job
    buckets = [one for one in rank.of("all_reduce") if one.parameters and one.parameters[0].startswith("Seq") == view]
    assert len(buckets) == 1 + BUCKETS
    gradients = {name.removeprefix("module."): values for name, values in told[f"ddp {view} {step}"].items()}
    seen: list[str] = []
    for one in buckets[:1] if step == 0 else buckets[1:]:
        names = [name.removeprefix(prefix) for name in one.parameters]
        values = [float.fromhex(text) for name in names for text in gradients[name]]
        assert rank.completed_by(one) == "backward"
        assert rank.bits(one) == (xxhash.xxh3_64_hexdigest(np.asarray(values, np.float32).tobytes()),), names
        seen += names
    assert sorted(seen) == sorted(gradients)


@pytest.mark.parametrize("number", RANKS)
def test_n01_what_fsdp_gathers_and_scatters(place: Path, ranks: dict[int, Rank], number: int) -> None:
    rank, told = ranks[number], said(place, number)
    gathered, scattered = told["fsdp gather"], told["fsdp scatter"]
    assert [rank.bits(one)[0] for one in rank.of("all_gather")[-len(gathered) :]] == gathered
    assert [rank.bits(one)[0] for one in rank.of("reduce_scatter")[-len(scattered) :]] == scattered


@pytest.mark.parametrize("number", RANKS)
def test_n01_what_nobody_waits_for_is_a_counted_gap(ranks: dict[int, Rank], number: int) -> None:
    rank = ranks[number]
    open_ones = [one for one in rank.collectives if one.call not in rank.completed]
    assert [one.operation for one in open_ones] == ["all_reduce"]
    assert rank.gaps == {"not_observable_in_flight": 1}
    assert all(isinstance(item.at_ns, int) for item in rank.records if isinstance(item, Completed))


@pytest.mark.parametrize("number", RANKS)
def test_n01_what_torch_waits_for_in_c_has_bits_too(ranks: dict[int, Rank], number: int) -> None:
    """DDP's own checks and broadcasts: their tensors are gone when its functions return."""
    rank = ranks[number]
    found = [bits for one in rank.collectives if one.call in rank.completed for bits in rank.bits(one)]
    assert found
    assert all(isinstance(bits, str) for bits in found)
