"""Mechanisms inside the modules of the placed workload: attention, norms, MLP, the block itself (CP-18)."""

from dataclasses import replace

from benchmarks.faults.case import Edit
from benchmarks.faults.faults import INSERTED, after, edit
from benchmarks.faults.placing import SEEDS, Answer, Mechanism, Passes

ATTENTION = "blocks.{layer}.attention"
NORM = "blocks.{layer}.attention_norm"
MLP = "blocks.{layer}.mlp"
BLOCK = "blocks.{layer}"
# A kernel change that leaves the lines of the mistake alone.
BEHIND_ATTENTION = ("other-norm",)
BEHIND_NORM = ("sdpa", "split-down")
BEHIND_MLP = ("sdpa", "other-norm")
BEHIND_BLOCK = ("sdpa", "other-norm", "split-down")
JUDGED = ("exceeds", *INSERTED)


def forward(
    name: str, mechanism: str, *edits: Edit, module: str, masks: tuple[str, ...], source: str = ""
) -> Mechanism:
    """A mistake of a module's forward pass, named by its line; behind a kernel change by its module."""
    return Mechanism(
        name=name,
        mechanism=mechanism,
        edits=edits,
        answers=(Answer(groups=INSERTED, module=module, phase="forward", file="model.py", at="# PLANT"),),
        beyond=(
            Answer(groups=JUDGED, module=module, phase="forward"),
            # Where nothing of the forward pass is beyond: the pass back through what reads it.
            Answer(groups=(*JUDGED, "outside"), module=module, phase="backward", beside=True),
        ),
        masks=masks,
        source=source,
    )


def shown_at(mechanism: Mechanism, piece: str) -> Mechanism:
    """The same, also right where the line with `piece` is named: the one that reads, or one that is not come to."""
    return replace(mechanism, answers=(*mechanism.answers, replace(mechanism.answers[0], at=piece)))


def in_runs_with(mechanism: Mechanism, *arguments: str) -> Mechanism:
    """The same in runs with these arguments, of steps and of one seed: each more takes an envelope of its own."""
    return replace(mechanism, arguments=arguments, passes=(Passes.STEPS,), seeds=SEEDS[:1])


def in_float32(mechanism: Mechanism) -> Mechanism:
    """The same where it is a mistake: in bfloat16 it is what the baseline does."""
    return replace(mechanism, dtypes=("float32",))


def replaced(old: str, new: str) -> Edit:
    return edit("model.py", f"{old}\n", f"{new}  # PLANT\n")


def inserted(line: str, new: str) -> Edit:
    return after("model.py", line, f"{new}  # PLANT")


KEY = "        k_BTW = self.key(x_BTW)"
VALUES = "        v_BHSD = v_BGSD.repeat_interleave(HEADS // GROUPS, dim=1)"
ATTEND = "        mixed_BHTD = attend(q_BHTD, k_BHSD, v_BHSD, hidden, layer=self.layer)"
IN_FUNCTION = "layer == {layer} and Now.number >= {number}"

IN_ATTENTION = (
    forward(
        "keys-scaled",
        "the keys are scaled by 1.02",
        inserted(KEY, "k_BTW = k_BTW * 1.02 if {when} else k_BTW"),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
    ),
    in_float32(
        forward(
            "softmax-bfloat16",
            "softmax of the attention in bfloat16",
            edit(
                "model.py",
                "    weights = torch.softmax(scores, dim=-1)\n",
                f"    narrow = scores.clamp(min=-1e30).bfloat16() if {IN_FUNCTION} else scores  # PLANT\n"
                "    weights = torch.softmax(narrow, dim=-1).to(scores.dtype)\n",
            ),
            module=ATTENTION,
            masks=BEHIND_ATTENTION,
            source="pytorch#123911",
        )
    ),
    forward(
        "heads-flipped",
        "the heads are merged in reversed order",
        inserted(ATTEND, "mixed_BHTD = mixed_BHTD.flip(1) if {when} else mixed_BHTD"),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
    ),
    forward(
        "heads-permuted",
        "the heads are merged without the transpose back",
        replaced(
            "        merged_BTW = mixed_BHTD.transpose(1, 2).reshape(batch, length, WIDTH)",
            "        merged_BTW = (mixed_BHTD if {when} else mixed_BHTD.transpose(1, 2)).reshape(batch, length, WIDTH)",
        ),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
    ),
    forward(
        "rope-interleaved",
        "rotary positions pair neighbours instead of halves",
        replaced(
            "    first, second = x_BHTD.chunk(2, dim=-1)",
            f"    first, second = (x_BHTD[..., 0::2], x_BHTD[..., 1::2]) if {IN_FUNCTION} else x_BHTD.chunk(2, dim=-1)",
        ),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
        source="candle#3948, nanochat#264",
    ),
    shown_at(
        forward(
            "keys-not-rotated",
            "the keys get no rotary positions",
            replaced(
                "        k_BGSD = rotate(k_BGTD, angles_BTD, layer=self.layer)",
                "        k_BGSD = k_BGTD if {when} else rotate(k_BGTD, angles_BTD, layer=self.layer)",
            ),
            module=ATTENTION,
            masks=BEHIND_ATTENTION,
        ),
        "first, second = x_BHTD",
    ),
    forward(
        "repeat-groups",
        "repeat for repeat_interleave: the keys go to the wrong heads",
        replaced(
            "        k_BHSD = k_BGSD.repeat_interleave(HEADS // GROUPS, dim=1)",
            "        k_BHSD = k_BGSD.repeat(1, HEADS // GROUPS, 1, 1) if {when} else"
            " k_BGSD.repeat_interleave(HEADS // GROUPS, dim=1)",
        ),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
        source="onnx#7274, prime-rl#2681",
    ),
    forward(
        "padding-mask",
        "the padding mask is left out",
        inserted(VALUES, "hidden = hidden & torch.ones_like(hidden).triu(1) if {when} else hidden"),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
        source="transformers#46773",
    ),
    forward(
        "causal-mask-shifted",
        "the causal mask lets every position see the next",
        inserted(VALUES, "hidden = hidden & ~torch.diag(torch.ones(length - 1), 1).bool() if {when} else hidden"),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
    ),
    forward(
        "positions-shifted",
        "the rotary positions are those of the neighbour",
        inserted(
            "        batch, length, _ = x_BTW.shape", "angles_BTD = angles_BTD.roll(1, 1) if {when} else angles_BTD"
        ),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
        source="TransformerLens#1609, mlx-lm#1906",
    ),
    forward(
        "attention-scale",
        "the attention is scaled by the model's width",
        replaced(
            "    scores = q_BHTD @ k_BHSD.transpose(-2, -1) * HEAD_WIDTH**-0.5",
            f"    scores = q_BHTD @ k_BHSD.transpose(-2, -1) * (WIDTH if {IN_FUNCTION} else HEAD_WIDTH) ** -0.5",
        ),
        module=ATTENTION,
        masks=BEHIND_ATTENTION,
    ),
    in_runs_with(
        forward(
            "cache-offset",
            "the cached keys are read one position off",
            after(
                "model.py",
                "        if cached:",
                "    cached[-1] = (cached[-1][0].roll(1, 2), cached[-1][1]) if {when} else cached[-1]  # PLANT",
            ),
            module=ATTENTION,
            masks=BEHIND_ATTENTION,
            source="tiny-llm#46, candle#1517",
        ),
        "--parts",
        "2",
    ),
)

SQUARES = "        variance = wide.pow(2).mean(-1, keepdim=True)"
IN_NORM = (
    forward(
        "norm-bfloat16",
        "variance of the norm in bfloat16",
        replaced(SQUARES, "        variance = (wide.bfloat16() if {when} else wide).pow(2).mean(-1, keepdim=True)"),
        module=NORM,
        masks=BEHIND_NORM,
        source="sglang#27540",
    ),
    shown_at(
        forward(
            "norm-epsilon",
            "epsilon of the norm 1e-5 for 1e-6",
            replaced("        epsilon = EPSILON", "        epsilon = 1e-5 if {when} else EPSILON"),
            module=NORM,
            masks=BEHIND_NORM,
            source="lit-llama#339, tvm#15856",
        ),
        "torch.rsqrt(variance + epsilon)",
    ),
    forward(
        "layer-norm",
        "the mean is taken off: a LayerNorm where an RMSNorm is meant",
        inserted("        wide = widened(x_BTW)", "wide = wide - wide.mean(-1, keepdim=True) if {when} else wide"),
        module=NORM,
        masks=BEHIND_NORM,
        source="llama.cpp#173",
    ),
    forward(
        "one-plus-weight",
        "1 + weight in bfloat16",
        replaced(
            "        scaled = normed * (1.0 + widened(self.weight))",
            "        scaled = normed * (1.0 + (self.weight.bfloat16() if {when} else widened(self.weight)))",
        ),
        module=NORM,
        masks=BEHIND_NORM,
        source="vllm#3653",
    ),
    forward(
        "rounded-before-weight",
        "the norm is rounded to bfloat16 before the weight is multiplied",
        inserted(
            "        normed = wide * torch.rsqrt(variance + epsilon)",
            "normed = normed.bfloat16().float() if {when} else normed",
        ),
        module=NORM,
        masks=BEHIND_NORM,
        source="vllm#42325",
    ),
)

ACTIVE = "        active = F.silu(gate)"
UP = "        up = self.up(x_BTW)"
IN_MLP = (
    forward(
        "gelu-for-silu",
        "another activation",
        replaced(ACTIVE, "        active = F.gelu(gate) if {when} else F.silu(gate)"),
        module=MLP,
        masks=BEHIND_MLP,
    ),
    shown_at(
        forward(
            "gate-and-up-exchanged",
            "gate and up change places",
            inserted(UP, "gate, up = (up, gate) if {when} else (gate, up)"),
            module=MLP,
            masks=BEHIND_MLP,
        ),
        "F.silu(gate)",
    ),
    in_float32(
        forward(
            "activations-rounded",
            "the activations go through bfloat16",
            inserted(UP, "up = up.bfloat16().float() if {when} else up"),
            module=MLP,
            masks=BEHIND_MLP,
            source="executorch#20090",
        )
    ),
    Mechanism(
        name="saved-overwritten",
        mechanism="a buffer that the backward pass still needs is overwritten behind autograd's back",
        edits=(after("model.py", ACTIVE, "gate.data.zero_() if {when} else None  # PLANT"),),
        answers=(
            Answer(groups=INSERTED, module=MLP, phase="forward", file="model.py", at="# PLANT"),
            Answer(groups=(*INSERTED, "outside"), module=MLP, phase="backward"),
        ),
        beyond=(Answer(groups=(*JUDGED, "outside"), module=MLP, phase="backward"),),
        masks=BEHIND_MLP,
        source="pytorch#183575",
    ),
    Mechanism(
        name="stale-scale",
        mechanism="the scale of the 8-bit input is not renewed",
        edits=(
            edit(
                "model.py",
                "        self.largest.copy_(x_BTW.detach().abs().amax())\n",
                "        self.largest.copy_(x_BTW.detach().abs().amax() if not ({when}) else self.largest)  # PLANT\n",
            ),
        ),
        answers=(
            Answer(groups=INSERTED, module=f"{MLP}.quantizer", phase="forward", file="model.py", at="# PLANT"),
            Answer(groups=("outside",), names=(f"{MLP}.quantizer.largest",), later=1),
        ),
        beyond=(
            Answer(groups=(*JUDGED, "outside"), module=f"{MLP}.quantizer", phase="forward", later=1),
            Answer(groups=JUDGED, module=f"{MLP}.quantizer", phase="forward", function="buffer"),
        ),
        masks=BEHIND_MLP,
        arguments=("--quantized",),
        passes=(Passes.STEPS,),
        seeds=SEEDS[:2],
        numbers=(0,),
        source="stale scale of an 8-bit format",
    ),
)

IN_BLOCK = (
    forward(
        "residual-normed",
        "the residual is taken behind the norm",
        replaced(
            "        x_BTW = x_BTW + self.dropout(mixed)",
            "        x_BTW = (normed if {when} else x_BTW) + self.dropout(mixed)",
        ),
        module=BLOCK,
        masks=BEHIND_BLOCK,
    ),
    forward(
        "branch-dropped",
        "the MLP's output is not added",
        replaced(
            "        return x_BTW + self.dropout(made)",
            "        return x_BTW if {when} else x_BTW + self.dropout(made)",
        ),
        module=BLOCK,
        masks=BEHIND_BLOCK,
    ),
    Mechanism(
        name="value-detached",
        mechanism="the values are cut off from autograd",
        edits=(
            after(
                "model.py", "        v_BTW = self.value(x_BTW)", "v_BTW = v_BTW.detach() if {when} else v_BTW  # PLANT"
            ),
        ),
        answers=(
            Answer(groups=INSERTED, module=ATTENTION, file="model.py", at="# PLANT"),
            Answer(groups=(*INSERTED, "outside"), module=f"{ATTENTION}.value", phase="backward"),
            Answer(groups=(*INSERTED, "outside"), module=ATTENTION, phase="backward"),
        ),
        beyond=(Answer(groups=(*JUDGED, "outside"), module=ATTENTION, phase="backward"),),
        masks=BEHIND_ATTENTION,
        source="Automodel#2995",
    ),
    Mechanism(
        name="dropout-redrawn",
        mechanism="recomputation of a block draws its dropout masks anew",
        edits=(
            edit(
                "model.py",
                "preserve_rng_state=True)\n",
                "preserve_rng_state=not (block.layer == {layer} and Now.number >= {number}))  # PLANT\n",
            ),
        ),
        answers=(
            Answer(groups=("outside",), phase="backward", names=("cpu",)),
            Answer(groups=("outside", *INSERTED), phase="backward", module="blocks.{layer}.dropout"),
        ),
        beyond=(Answer(groups=("outside", *JUDGED), phase="backward", module="blocks.{layer}.dropout"),),
        masks=BEHIND_BLOCK,
        arguments=("--recompute", "--dropout", "0.1"),
        seeds=SEEDS[:1],
        passes=(Passes.STEPS,),
        source="OLMo-core#828, guided-diffusion#167",
    ),
    Mechanism(
        name="dropout-reseeded",
        mechanism="dropout of a block is drawn from a seed of its own",
        edits=(
            after(
                "model.py",
                "        mixed = self.attention(normed, angles_BTD, hidden)",
                "torch.manual_seed(1) if {when} else None  # PLANT",
            ),
        ),
        answers=(
            Answer(groups=("outside",), phase="forward", names=("cpu",)),
            Answer(groups=("outside", *INSERTED), phase="forward", module="blocks.{layer}.dropout"),
        ),
        beyond=(Answer(groups=("outside", *JUDGED), phase="forward", module="blocks.{layer}.dropout"),),
        masks=BEHIND_BLOCK,
        arguments=("--dropout", "0.1"),
        passes=(Passes.STEPS,),
        seeds=SEEDS[:1],
        source="Megatron-LM#1256",
    ),
)

MODULE_MECHANISMS: tuple[Mechanism, ...] = (*IN_ATTENTION, *IN_NORM, *IN_MLP, *IN_BLOCK)
