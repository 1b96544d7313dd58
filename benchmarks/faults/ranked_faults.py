"""The planted faults of two ranks: mistakes of data and tensor parallel training, with the answers of an expert."""

from benchmarks.faults.case import Edit, Expected, ExpectedCheck, Fault, Launch, Variant
from benchmarks.faults.faults import INSERTED, after, edit

BOTH = (0, 1)
OTHER = (1,)
FIRST = (0,)

UP = "blocks.1.mlp.up.weight"
REDUCTION = "        dist.all_reduce(gradient, group=grid.data)"
BACKWARD = "(loss * scale).backward()"
NORMS = tuple(
    f"{module}.{part}"
    for module in (
        *(f"blocks.{block}.{norm}" for block in range(2) for norm in ("attention_norm", "mlp_norm")),
        "norm",
    )
    for part in ("weight", "bias")
)
SPLIT = tuple(
    f"blocks.{block}.{name}"
    for block in range(2)
    for name in ("attention.qkv.weight", "attention.output.weight", "mlp.up.weight", "mlp.up.bias", "mlp.down.weight")
)


def ranked(*edits: Edit, arguments: tuple[str, ...] = (), launch: Launch = Launch.TORCHRUN) -> Variant:
    """The two-rank workload, data parallel unless the arguments say otherwise."""
    return Variant(edits=edits, arguments=arguments, launch=launch)


TENSOR = ("--tensor", "2")
SEQUENCE = ("--tensor", "2", "--sequence")
DDP = ("--ddp",)
ACCUMULATED = ("--ddp", "--accumulate", "2")


def planted(
    name: str,
    mechanism: str,
    *edits: Edit,
    arguments: tuple[str, ...] = (),
    expected: tuple[Expected, ...],
    check: tuple[ExpectedCheck, ...] = (),
    source: str = "",
) -> Fault:
    """A fault whose two sides are started alike."""
    return Fault(
        name=name,
        mechanism=mechanism,
        baseline=ranked(arguments=arguments),
        candidate=ranked(*edits, arguments=arguments),
        expected=expected,
        check=check,
        source=source,
    )


def at(
    file: str,
    piece: str,
    *,
    ranks: tuple[int, ...] = BOTH,
    phase: str = "",
    module: str = "",
    names: tuple[str, ...] = (),
) -> Expected:
    """A call at this line, on these ranks: recorded on one side only, or the first that reads what it left behind."""
    return Expected(groups=INSERTED, file=file, at=piece, ranks=ranks, phase=phase, module=module, names=names)


def outside(*names: str, ranks: tuple[int, ...], step: int = 0) -> Expected:
    return Expected(groups=("outside",), names=names, ranks=ranks, step=step)


REDUCTIONS = (
    planted(
        "missing-reduction",
        "the gradient of one parameter is not reduced over the data-parallel ranks",
        after(
            "parallel.py", "        gradient = gradient_of(name, parameter)", f'if name == "{UP}": continue  # PLANT'
        ),
        expected=(at("parallel.py", REDUCTION.strip(), names=(UP,)),),
        check=(ExpectedCheck(invariant="replicas.gradients", names=(UP,)),),
        source="a parameter left out of the reduction, by hand",
    ),
    planted(
        "doubled-reduction",
        "the gradient of one parameter is reduced twice",
        after("parallel.py", REDUCTION, f'if name == "{UP}": dist.all_reduce(gradient, group=grid.data)  # PLANT'),
        expected=(at("parallel.py", "# PLANT"),),
    ),
    planted(
        "wrong-group",
        "gradients are reduced over the tensor-parallel group, which has one rank",
        edit("parallel.py", f"{REDUCTION}\n", "        dist.all_reduce(gradient, group=grid.tensor)  # PLANT\n"),
        expected=(at("parallel.py", "# PLANT"),),
        check=(ExpectedCheck(invariant="replicas.gradients"),),
    ),
    planted(
        "mean-for-sum",
        "gradients are averaged where the loss is divided by the tokens of all ranks already",
        after("parallel.py", REDUCTION, "gradient /= grid.data_size  # PLANT"),
        expected=(at("parallel.py", "# PLANT"),),
    ),
    planted(
        "left-out-of-ddp",
        "one parameter is on the list that DDP ignores",
        edit(
            "train.py",
            "        trained = DistributedDataParallel(",
            "        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model("
            f'model, ["{UP}"])  # PLANT\n        trained = DistributedDataParallel(',
        ),
        arguments=DDP,
        expected=(
            at("train.py", BACKWARD, phase="backward", names=(UP,)),
            at("train.py", "trained = DistributedDataParallel(", names=(UP,)),
        ),
        check=(ExpectedCheck(invariant="replicas.gradients", names=(UP,)),),
    ),
    planted(
        "no-sync-kept",
        "the last micro-batch runs under no_sync too: nothing is ever reduced",
        edit("train.py", "number < len(parts) else", "number <= len(parts) else"),
        arguments=ACCUMULATED,
        expected=(at("train.py", BACKWARD, phase="backward"),),
        check=(ExpectedCheck(invariant="replicas.gradients"),),
    ),
)

SEQUENCE_PARALLEL = (
    planted(
        "norm-not-reduced",
        "gradients of the norms are not summed over the parts of the sequence",
        edit(
            "parallel.py",
            "        if split_dim(name) is not None:\n            continue\n",
            '        if split_dim(name) is not None or "norm" in name:  # PLANT\n            continue\n',
        ),
        arguments=SEQUENCE,
        expected=(at("parallel.py", "dist.all_reduce(out, group=grid.tensor)", phase="backward"),),
        check=(ExpectedCheck(invariant="replicas.gradients", names=NORMS),),
        source="Megatron-LM#1446",
    ),
    planted(
        "hooks-never-fire",
        "the hooks that sum gradients over the sequence hang on nodes that nobody keeps, so that they never run",
        edit(
            "parallel.py",
            "        parameter.register_hook(lambda gradient: summed(gradient, grid))\n",
            "        torch.autograd.graph.get_gradient_edge(parameter).node.register_prehook("
            "lambda gradients: (summed(gradients[0], grid),))  # PLANT\n",
        ),
        arguments=SEQUENCE,
        expected=(at("parallel.py", "dist.all_reduce(out, group=grid.tensor)", phase="backward"),),
        check=(ExpectedCheck(invariant="replicas.gradients"),),
        source="gpt-neox#1259",
    ),
    planted(
        "dropout-shared",
        "both parts of the sequence draw the same dropout masks",
        edit(
            "train.py",
            "    torch.manual_seed(args.seed + 100 * grid.data_rank + (grid.tensor_rank if args.sequence else 0))\n",
            "    torch.manual_seed(args.seed + 100 * grid.data_rank)  # PLANT\n",
        ),
        arguments=SEQUENCE,
        expected=(
            outside("rng", ranks=OTHER),
            Expected(groups=("outside",), phase="forward", module="blocks.0.dropout", names=("cpu",), ranks=OTHER),
        ),
        source="PaddleFleetX#1005",
    ),
)

TENSOR_PARALLEL = (
    planted(
        "rank-local-clip",
        "gradients are clipped by the norm of this rank's part of the model",
        edit(
            "parallel.py",
            "    dist.all_reduce(split, group=grid.tensor)\n",
            "    # dist.all_reduce(split, group=grid.tensor)  # PLANT\n",
        ),
        arguments=TENSOR,
        expected=(at("parallel.py", "dist.all_reduce(split, group=grid.tensor)"),),
        check=(
            ExpectedCheck(invariant="replicas.gradients"),
            ExpectedCheck(invariant="replicas.parameters"),
            ExpectedCheck(invariant="replicas.parameters", step=1),
        ),
        source="SpecForge#663",
    ),
    planted(
        "norm-counted-twice",
        "parameters that every rank holds whole are counted once per rank in the gradient norm",
        after(
            "parallel.py",
            "    dist.all_reduce(split, group=grid.tensor)",
            "dist.all_reduce(whole, group=grid.tensor)  # PLANT",
        ),
        arguments=TENSOR,
        expected=(at("parallel.py", "# PLANT"),),
        source="ROCm TransformerEngine#715",
    ),
    planted(
        "loader-rng",
        "the rank that loads the data draws from the random generator that all ranks must share",
        edit("data.py", "sampler=mine, generator=generator)\n", "sampler=mine)  # PLANT\n"),
        arguments=TENSOR,
        expected=(
            outside("rng", ranks=FIRST),
            Expected(groups=(*INSERTED, "outside"), file="data.py", at="for rows in loader:", ranks=FIRST),
        ),
        check=(ExpectedCheck(invariant="replicas.rng"),),
        source="Megatron-LM#206",
    ),
    planted(
        "stale-after-split",
        "the optimizer is made before tensor parallelism replaces the parameters",
        edit(
            "train.py",
            "    split_weights(model, grid)\n    optimizer = torch.optim.AdamW("
            "model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)\n",
            "    optimizer = torch.optim.AdamW("
            "model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)\n"
            "    split_weights(model, grid)  # PLANT\n",
        ),
        arguments=TENSOR,
        expected=(
            outside(*SPLIT, ranks=BOTH, step=1),
            at("train.py", "optimizer.step()", phase="optimizer"),
        ),
        check=(
            ExpectedCheck(invariant="parameters.in_optimizer", names=SPLIT, step=-1),
            ExpectedCheck(invariant="parameters.change", names=SPLIT, step=-1),
        ),
        source="accelerate#2665, accelerate#3256",
    ),
    planted(
        "shard-twice",
        "both ranks take the first part of one weight",
        edit(
            "parallel.py",
            "            part = parameter.detach().chunk(grid.tensor_size, dim)[grid.tensor_rank]\n",
            "            part = parameter.detach().chunk(grid.tensor_size, dim)"
            f'[0 if name == "{UP}" else grid.tensor_rank]  # PLANT\n',
        ),
        arguments=TENSOR,
        expected=(
            outside(UP, ranks=OTHER),
            at("parallel.py", "# PLANT", ranks=OTHER),
        ),
    ),
    planted(
        "shards-exchanged",
        "the two ranks take each other's part of one weight",
        edit(
            "parallel.py",
            "            part = parameter.detach().chunk(grid.tensor_size, dim)[grid.tensor_rank]\n",
            "            part = parameter.detach().chunk(grid.tensor_size, dim)"
            f'[1 - grid.tensor_rank if name == "{UP}" else grid.tensor_rank]  # PLANT\n',
        ),
        arguments=TENSOR,
        expected=(
            outside(UP, ranks=BOTH),
            at("parallel.py", "# PLANT"),
        ),
    ),
    planted(
        "output-not-summed",
        "the parts of the MLP's output are not added up",
        edit(
            "model.py",
            "        return leave(part_TBW, self.grid) + self.down.bias\n",
            "        return part_TBW + self.down.bias  # PLANT\n",
        ),
        arguments=TENSOR,
        expected=(
            at("model.py", "# PLANT", module="blocks.0.mlp"),
            at("parallel.py", "dist.all_reduce(x, group=group)", module="blocks.0.mlp"),
        ),
        check=(ExpectedCheck(invariant="replicas.gradients"),),
    ),
    planted(
        "input-gradient-not-summed",
        "the gradient of a split layer's input is not added up",
        edit(
            "parallel.py",
            "        dist.all_reduce(gradient, group=ctx.group)\n",
            "        # dist.all_reduce(gradient, group=ctx.group)  # PLANT\n",
        ),
        arguments=TENSOR,
        expected=(at("parallel.py", "dist.all_reduce(gradient, group=ctx.group)", phase="backward"),),
        check=(ExpectedCheck(invariant="replicas.gradients"),),
    ),
    planted(
        "bias-added-twice",
        "the bias of a layer that is split by rows is added on each rank before the sum",
        edit(
            "model.py",
            "        return leave(part_TBW, self.grid) + self.down.bias\n",
            "        return leave(part_TBW + self.down.bias, self.grid)  # PLANT\n",
        ),
        arguments=TENSOR,
        expected=(at("model.py", "# PLANT", module="blocks.0.mlp"),),
    ),
)

DATA_PARALLEL = (
    planted(
        "rank-and-micro-batch-mean",
        "the loss is the mean of each micro-batch of each rank instead of the mean over all tokens",
        edit(
            "train.py",
            'ignore_index=PADDING, reduction="sum") / predicted\n',
            'ignore_index=PADDING, reduction="mean") / len(parts)  # PLANT\n',
        ),
        arguments=ACCUMULATED,
        expected=(at("train.py", "# PLANT"),),
        source="transformers#34191",
    ),
    planted(
        "local-token-count",
        "the loss is divided by the tokens of this rank, and gradients are added up all the same",
        edit(
            "train.py",
            "        dist.all_reduce(predicted, group=grid.data)\n",
            "        # dist.all_reduce(predicted, group=grid.data)  # PLANT\n",
        ),
        expected=(at("train.py", "dist.all_reduce(predicted, group=grid.data)"),),
    ),
    planted(
        "same-batch",
        "both data-parallel ranks read the same share of the data",
        edit("data.py", "    mine = order[part::parts]\n", "    mine = order[0::parts]  # PLANT\n"),
        expected=(
            outside("batch", ranks=OTHER),
            Expected(groups=(*INSERTED, "outside"), file="data.py", at="return self.tokens[index]", ranks=OTHER),
        ),
        check=(ExpectedCheck(invariant="batches.across_ranks"),),
    ),
    planted(
        "no-broadcast",
        "the ranks start from weights of their own: the broadcast is forgotten",
        edit("train.py", "    broadcast_weights(model)\n", "    # broadcast_weights(model)  # PLANT\n"),
        expected=(
            at("parallel.py", "dist.broadcast(parameter.data, src=0)", ranks=OTHER),
            at("parallel.py", "dist.broadcast(parameter.data, src=0)"),
            outside("parameter", ranks=OTHER),
        ),
        check=(ExpectedCheck(invariant="replicas.parameters"),),
    ),
    planted(
        "one-rank-scale",
        "rank 1 alone scales its activations by 1.001",
        after(
            "model.py",
            "        x_TBW = x_TBW + self.dropout(mixed_TBW)",
            "x_TBW = x_TBW * 1.001 if torch.distributed.get_rank() == 1 else x_TBW  # PLANT",
        ),
        expected=(at("model.py", "# PLANT", ranks=OTHER, module="blocks.0"),),
    ),
)

RANKED_FAULTS: tuple[Fault, ...] = (*REDUCTIONS, *SEQUENCE_PARALLEL, *TENSOR_PARALLEL, *DATA_PARALLEL)
