"""The controls of two ranks: what differs is no bug, so neither `compare` nor `check` may claim anything."""

from benchmarks.faults.case import Control, Edit, Launch, Variant
from benchmarks.faults.faults import after, edit
from benchmarks.faults.ranked_faults import ACCUMULATED, DDP, REDUCTION, SEQUENCE, TENSOR, ranked

NAMED = "    for name, parameter in model.named_parameters():\n        gradient = gradient_of(name, parameter)\n"
CLIPPING = "        norm = clip(model, grid, largest=1.0)"
LARGEST = "largest = total.clone(); dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=grid.data)"
SMALLEST = "smallest = total.clone(); dist.all_reduce(smallest, op=dist.ReduceOp.MIN, group=grid.data)"


def same(name: str, mechanism: str, *arguments: str) -> Control:
    """The same two ranks twice."""
    side = ranked(arguments=arguments)
    return Control(name=name, mechanism=mechanism, baseline=side, candidate=side)


def changed(
    name: str, mechanism: str, *edits: Edit, arguments: tuple[str, ...] = (), more: tuple[str, ...] = ()
) -> Control:
    """Two ranks against two ranks with these edits, and `more` arguments."""
    return Control(
        name=name,
        mechanism=mechanism,
        baseline=ranked(arguments=arguments),
        candidate=ranked(*edits, arguments=(*arguments, *more)),
    )


def launched(name: str, mechanism: str, launch: Launch) -> Control:
    return Control(name=name, mechanism=mechanism, baseline=ranked(), candidate=ranked(launch=launch))


def metrics(first: str, second: str) -> Variant:
    return ranked(after("train.py", CLIPPING, f"{first}\n        {second}"))


RANKED_CONTROLS: tuple[Control, ...] = (
    same("identical-data", "the same data-parallel training twice"),
    same("identical-ddp", "the same training under DDP twice, two micro-batches a step", *ACCUMULATED),
    same("identical-tensor", "the same tensor-parallel training twice", *TENSOR),
    same("identical-sequence", "the same sequence-parallel training twice", *SEQUENCE),
    Control(
        name="bucket-size",
        mechanism="DDP with small buckets against one bucket",
        baseline=ranked(arguments=DDP),
        candidate=ranked(arguments=(*DDP, "--bucket-mb", "0.01")),
        bits_differ=True,
    ),
    changed("bucket-view", "DDP with gradients as views of its buckets", arguments=DDP, more=("--bucket-view",)),
    Control(
        name="swapped-collectives",
        mechanism="two independent reductions of metrics change places",
        baseline=metrics(LARGEST, SMALLEST),
        candidate=metrics(SMALLEST, LARGEST),
    ),
    changed(
        "reversed-reductions",
        "gradients are reduced in reversed order of the parameters",
        edit(
            "parallel.py",
            NAMED,
            NAMED.replace("model.named_parameters()", "reversed(list(model.named_parameters()))"),
        ),
    ),
    changed(
        "no-op-rank-1",
        "rank 1 alone has an operator that changes no bit",
        after(
            "model.py",
            "        x_TBW = x_TBW + self.dropout(mixed_TBW)",
            "x_TBW = x_TBW * 1.0 if torch.distributed.get_rank() == 1 else x_TBW",
        ),
    ),
    changed("barrier", "one run also waits at a barrier in each step", after("train.py", CLIPPING, "dist.barrier()")),
    changed(
        "asynchronous",
        "gradients are reduced asynchronously and waited for",
        edit("parallel.py", f"{REDUCTION}\n", f"{REDUCTION[:-1]}, async_op=True).wait()\n"),
    ),
    changed(
        "asynchronous-all",
        "all reductions are started before the first is waited for",
        edit("parallel.py", NAMED, f"    works = []\n{NAMED}"),
        edit(
            "parallel.py",
            f"{REDUCTION}\n",
            f"        works.append({REDUCTION.strip()[:-1]}, async_op=True))\n"
            "    for work in works:\n        work.wait()\n",
        ),
    ),
    launched("other-port", "the ranks meet at another port", Launch.TORCHRUN_PORT),
    launched("other-order", "started by hand, rank 1 before rank 0", Launch.BY_HAND),
    Control(
        name="ddp-by-hand",
        mechanism="DDP against the same mean written by hand",
        baseline=ranked(
            edit("train.py", "scale = grid.data_size if args.ddp else 1\n", "scale = grid.data_size\n"),
            after("parallel.py", "        gradient = gradient_of(name, parameter)", "gradient /= grid.data_size"),
        ),
        candidate=ranked(arguments=DDP),
        options=("--strip-prefix", "module."),
    ),
)
