"""The planted faults: real bug mechanisms as changes of a few source lines, with the answer an expert would give."""

from benchmarks.faults.case import Edit, Expected, Fault, Variant, WeightChange

ORIGIN = ("originates",)
# An inserted operator stands on one side only: the region it makes originates, or the first call that reads it follows
# the unaligned stretch.
INSERTED = ("originates", "after_unaligned", "rewired")


def edit(file: str, old: str, new: str) -> Edit:
    return Edit(file=file, old=old, new=new)


def after(file: str, line: str, inserted: str) -> Edit:
    """Insert a line behind `line`, indented like it."""
    indent = line[: len(line) - len(line.lstrip())]
    return Edit(file=file, old=line + "\n", new=f"{line}\n{indent}{inserted}\n")


def in_model(*edits: Edit, arguments: tuple[str, ...] = ()) -> Variant:
    return Variant(edits=edits, arguments=arguments)


def origin(module: str, at: str, *, function: str = "", groups: tuple[str, ...] = ORIGIN, phase: str = "") -> Expected:
    return Expected(groups=groups, file="model.py", at=at, module=module, function=function, phase=phase)


def outside(*names: str, step: int = 0) -> Expected:
    return Expected(groups=("outside",), names=names, step=step)


WEIGHTS = (
    Fault(
        name="weight-element",
        mechanism="one element of one weight is 1e-3 larger in the checkpoint that is loaded",
        baseline=Variant(weights=(WeightChange(parameter="blocks.1.mlp.up.weight", amount=0.0, element=(3, 5)),)),
        candidate=Variant(weights=(WeightChange(parameter="blocks.1.mlp.up.weight", amount=1e-3, element=(3, 5)),)),
        expected=(outside("blocks.1.mlp.up.weight"),),
    ),
    Fault(
        name="weight-noise",
        mechanism="noise of 1e-3 on one weight of the checkpoint that is loaded",
        baseline=Variant(weights=(WeightChange(parameter="blocks.0.attention.key.weight", amount=0.0),)),
        candidate=Variant(weights=(WeightChange(parameter="blocks.0.attention.key.weight", amount=1e-3),)),
        expected=(outside("blocks.0.attention.key.weight"),),
    ),
    Fault(
        name="untied-head",
        mechanism="the head gets a copy of the embedding's weight instead of the weight itself",
        candidate=in_model(
            edit(
                "model.py",
                "        self.head.weight = self.embedding.weight\n",
                "        self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())  # PLANT\n",
            )
        ),
        expected=(
            outside("head.weight", "embedding.weight"),
            # The sum of the two gradients of the tied weight is what the candidate lacks.
            Expected(groups=(*INSERTED, "outside"), phase="backward", module="embedding"),
        ),
        source="tied parameters dropped on one side",
    ),
    Fault(
        name="stale-optimizer",
        mechanism="a parameter is replaced after the optimizer has taken the list",
        candidate=in_model(
            after(
                "train.py",
                "    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)",
                "model.blocks[0].mlp.up.weight = torch.nn.Parameter("
                "model.blocks[0].mlp.up.weight.detach().clone())  # PLANT",
            )
        ),
        expected=(outside("blocks.0.mlp.up.weight", step=1), outside("blocks.0.mlp.up.weight")),
        source="accelerate#2665, pytorch#107843",
    ),
)

FORWARD = (
    Fault(
        name="softmax-bfloat16",
        mechanism="softmax of the attention in bfloat16",
        candidate=in_model(
            edit(
                "model.py",
                "        weights = torch.softmax(scores, dim=-1)\n",
                "        weights = torch.softmax(scores.bfloat16(), dim=-1).float()  # PLANT\n",
            )
        ),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
        source="pytorch#123911",
    ),
    Fault(
        name="heads-flipped",
        mechanism="the heads are merged in reversed order",
        candidate=in_model(
            after("model.py", "        mixed_BHTD = weights @ v_BHTD", "mixed_BHTD = mixed_BHTD.flip(1)  # PLANT")
        ),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
    ),
    Fault(
        name="heads-permuted",
        mechanism="the heads are merged without the transpose back",
        candidate=in_model(
            edit(
                "model.py",
                "        return self.output(mixed_BHTD.transpose(1, 2).reshape(batch, length, WIDTH))\n",
                "        return self.output(mixed_BHTD.reshape(batch, length, WIDTH))  # PLANT\n",
            )
        ),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
    ),
    Fault(
        name="inserted-scale",
        mechanism="one operator inserted: the keys are scaled by 1.001",
        candidate=in_model(after("model.py", "        k_BTW = self.key(x_BTW)", "k_BTW = k_BTW * 1.001  # PLANT")),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
    ),
    Fault(
        name="rope-interleaved",
        mechanism="rotary positions pair neighbours instead of halves",
        candidate=in_model(
            edit(
                "model.py",
                "    first, second = x_BHTD.chunk(2, dim=-1)\n",
                "    first, second = x_BHTD[..., 0::2], x_BHTD[..., 1::2]  # PLANT\n",
            )
        ),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
        source="candle#3948, nanochat#264",
    ),
    Fault(
        name="repeat-groups",
        mechanism="repeat for repeat_interleave: the keys go to the wrong heads",
        candidate=in_model(
            edit(
                "model.py",
                "        k_BHTD = k_BGTD.repeat_interleave(HEADS // GROUPS, dim=1)\n",
                "        k_BHTD = k_BGTD.repeat(1, HEADS // GROUPS, 1, 1)  # PLANT\n",
            )
        ),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
        source="onnx#7274, prime-rl#2681",
    ),
    Fault(
        name="padding-mask",
        mechanism="the padding mask is left out",
        candidate=in_model(
            edit(
                "model.py",
                "        hidden = causal | ~mask_BT[:, None, None, :]\n",
                "        hidden = causal.expand(len(mask_BT), 1, length, length)  # PLANT\n",
            )
        ),
        expected=(
            origin("", "# PLANT", groups=INSERTED),
            origin("blocks.0.attention", "masked_fill(hidden", groups=INSERTED),
        ),
        source="transformers#46773",
    ),
    Fault(
        name="position-ids",
        mechanism="position ids count the left padding",
        candidate=in_model(
            edit(
                "model.py",
                "        positions_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)\n",
                "        positions_BT = torch.arange(length).expand(len(mask_BT), length)  # PLANT\n",
            )
        ),
        expected=(origin("", "# PLANT", groups=INSERTED), origin("", "positions_BT[:, :, None] *", groups=INSERTED)),
        source="TransformerLens#1609, mlx-lm#1906",
    ),
    Fault(
        name="norm-bfloat16",
        mechanism="variance of the norm in bfloat16",
        candidate=in_model(
            edit(
                "model.py",
                "        variance = x_BTW.pow(2).mean(-1, keepdim=True)\n",
                "        variance = x_BTW.bfloat16().pow(2).mean(-1, keepdim=True)  # PLANT\n",
            )
        ),
        expected=(origin("blocks.0.attention_norm", "# PLANT", groups=INSERTED),),
        source="sglang#27540",
    ),
    Fault(
        name="norm-epsilon",
        mechanism="epsilon of the norms 1e-5 for 1e-6",
        candidate=in_model(edit("model.py", "EPSILON = 1e-6\n", "EPSILON = 1e-5  # PLANT\n")),
        expected=(origin("blocks.0.attention_norm", "variance + self.epsilon", function="aten.add"),),
        source="lit-llama#339, tvm#15856",
    ),
    Fault(
        name="layer-norm",
        mechanism="the mean is taken off: a LayerNorm where an RMSNorm is meant",
        candidate=in_model(
            edit(
                "model.py",
                "        variance = x_BTW.pow(2).mean(-1, keepdim=True)\n",
                "        x_BTW = x_BTW - x_BTW.mean(-1, keepdim=True)  # PLANT\n"
                "        variance = x_BTW.pow(2).mean(-1, keepdim=True)\n",
            )
        ),
        expected=(origin("blocks.0.attention_norm", "# PLANT", groups=INSERTED),),
        source="llama.cpp#173",
    ),
    Fault(
        name="attention-scale",
        mechanism="the attention is scaled by the model's width",
        candidate=in_model(
            edit(
                "model.py",
                "k_BHTD.transpose(-2, -1) * HEAD_WIDTH**-0.5\n",
                "k_BHTD.transpose(-2, -1) * WIDTH**-0.5  # PLANT\n",
            )
        ),
        expected=(origin("blocks.0.attention", "# PLANT", groups=INSERTED),),
    ),
)

TRAINING = (
    Fault(
        name="late-scale",
        mechanism="from step 6 on the logits are scaled by 1.001",
        candidate=in_model(
            after(
                "train.py",
                "            flat, targets = logits.flatten(0, 1), part.targets.flatten()",
                "flat = flat * 1.001 if step >= 6 else flat  # PLANT",
            ),
            arguments=("--steps", "8"),
        ),
        baseline=Variant(arguments=("--steps", "8")),
        steps="0:8",
        expected=(Expected(groups=INSERTED, step=6, file="train.py", at="# PLANT"),),
    ),
    Fault(
        name="late-scale-digests",
        mechanism="the same, captured call by call in steps 0 and 1 only: the digests of every step name the step",
        candidate=in_model(
            after(
                "train.py",
                "            flat, targets = logits.flatten(0, 1), part.targets.flatten()",
                "flat = flat * 1.001 if step >= 6 else flat  # PLANT",
            ),
            arguments=("--steps", "8"),
        ),
        baseline=Variant(arguments=("--steps", "8")),
        expected=(Expected(groups=("step",), step=6),),
    ),
    Fault(
        name="micro-batch-mean",
        mechanism="accumulation takes the mean per micro-batch instead of the mean over all predicted tokens",
        candidate=in_model(
            edit(
                "train.py",
                'ignore_index=PADDING, reduction="sum") / predicted\n',
                'ignore_index=PADDING, reduction="mean") / len(parts)  # PLANT\n',
            ),
            arguments=("--accumulate", "2"),
        ),
        baseline=Variant(arguments=("--accumulate", "2")),
        expected=(Expected(groups=INSERTED, file="train.py", at="# PLANT"),),
        source="transformers#34191",
    ),
    Fault(
        name="dropout-redrawn",
        mechanism="recomputation draws its dropout masks anew",
        candidate=in_model(
            edit(
                "model.py",
                "use_reentrant=False, preserve_rng_state=True)\n",
                "use_reentrant=False, preserve_rng_state=False)  # PLANT\n",
            ),
            arguments=("--recompute",),
        ),
        baseline=Variant(arguments=("--recompute",)),
        expected=(
            Expected(groups=("outside",), phase="backward", names=("cpu",)),
            Expected(groups=("outside", *INSERTED), phase="backward", module="blocks.1.dropout"),
        ),
        source="OLMo-core#828, guided-diffusion#167",
    ),
    Fault(
        name="data-order",
        mechanism="the order of the data is drawn from another seed",
        candidate=in_model(
            edit(
                "train.py",
                "count=args.steps * args.accumulate, seed=args.seed)\n",
                "count=args.steps * args.accumulate, seed=args.seed + 1)  # PLANT\n",
            )
        ),
        expected=(
            outside("batch"),
            Expected(groups=("outside",), file="data.py", at="torch.randperm", names=("rng", "generator")),
        ),
    ),
    Fault(
        name="saved-overwritten",
        mechanism="a buffer that the backward pass still needs is overwritten behind autograd's back",
        candidate=in_model(after("model.py", "        active = F.silu(gate)", "gate.data.zero_()  # PLANT")),
        expected=(
            origin("blocks.0.mlp", "# PLANT", groups=INSERTED),
            origin("blocks.1.mlp", "active = F.silu(gate)", groups=(*INSERTED, "outside"), phase="backward"),
        ),
        source="pytorch#183575",
    ),
    Fault(
        name="gradients-kept",
        mechanism="the gradients are not cleared between steps",
        candidate=in_model(
            edit("train.py", "        optimizer.zero_grad()\n", "        # optimizer.zero_grad()  # PLANT\n")
        ),
        expected=(
            outside("gradient", step=1),
            Expected(groups=(*INSERTED, "outside"), step=1, phase="backward"),
        ),
    ),
    Fault(
        name="clip-norm",
        mechanism="gradients are clipped to another norm",
        candidate=in_model(edit("train.py", "(model.parameters(), 1.0)\n", "(model.parameters(), 0.5)  # PLANT\n")),
        expected=(Expected(groups=INSERTED, phase="", file="train.py", at="# PLANT"),),
        source="SpecForge#663",
    ),
    Fault(
        name="weight-decay",
        mechanism="another weight decay: the first update already differs",
        candidate=in_model(
            edit("train.py", "weight_decay=0.1)\n", "weight_decay=0.01)  # PLANT\n"),
        ),
        expected=(Expected(groups=INSERTED, phase="optimizer", file="train.py", at="optimizer.step()"),),
    ),
    Fault(
        name="label-shift",
        mechanism="targets are not shifted: the model is asked for the token it sees",
        candidate=in_model(
            edit(
                "data.py",
                "        targets = self.tokens[rows, 1:].masked_fill(~mask, PADDING)\n",
                "        targets = self.tokens[rows, :-1].masked_fill(~mask, PADDING)  # PLANT\n",
            )
        ),
        expected=(
            Expected(groups=INSERTED, file="data.py", at="# PLANT"),
            Expected(groups=("outside", *INSERTED), file="train.py", at="F.cross_entropy"),
        ),
    ),
)

FAULTS: tuple[Fault, ...] = (*WEIGHTS, *FORWARD, *TRAINING)
