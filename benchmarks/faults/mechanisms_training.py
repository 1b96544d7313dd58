"""Mechanisms of weights, data, loss and optimizer in the placed workload (CP-18)."""

from dataclasses import replace

from benchmarks.faults.case import Edit
from benchmarks.faults.faults import INSERTED, after, edit
from benchmarks.faults.mechanisms_modules import BEHIND_BLOCK, JUDGED
from benchmarks.faults.placing import MATRICES, Answer, Mechanism, Passes

STEPS = (Passes.STEPS,)
NUMBER = "            Now.number = step * args.accumulate + number"
CLIPPING = "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
FLAT = "            flat, targets = logits.flatten(0, 1), part.targets.flatten()"
ROOT = "-"  # the root module itself
SQUARE = ("blocks.{layer}.attention.query.weight", "blocks.{layer}.attention.output.weight")


def written(name: str, mechanism: str, change: str, *, parameters: tuple[str, ...] = MATRICES) -> Mechanism:
    """A parameter that is changed before a pass, as a bad checkpoint or a stray write would."""
    both = 'model.get_parameter("{parameter}"), model.get_parameter("{other}")'
    line = f"torch.no_grad()(lambda own, other: {change})({both})"
    return Mechanism(
        name=name,
        mechanism=mechanism,
        edits=(after("train.py", NUMBER, f"{line} if Now.number == {{number}} else None  # PLANT"),),
        answers=(
            Answer(groups=("outside",), names=("{parameter}",)),
            Answer(groups=INSERTED, file="train.py", at="# PLANT"),
        ),
        beyond=(
            Answer(groups=("outside", *JUDGED), module="{owner}", phase="forward"),
            Answer(groups=JUDGED, module="{owner}", phase="optimizer", function="parameter", later=-1),
            Answer(groups=JUDGED, file="train.py", at="# PLANT"),
        ),
        masks=BEHIND_BLOCK,
        parameters=parameters,
        passes=STEPS,
    )


def optimizer(name: str, mechanism: str, setting: str, *, values: tuple[str, ...]) -> Mechanism:
    """A wrong setting of the optimizer from a step on."""
    change = f"optimizer.param_groups[0].update({setting}={{parameter}}) if step >= {{step}} else None  # PLANT"
    return Mechanism(
        name=name,
        mechanism=mechanism,
        edits=(after("train.py", CLIPPING, change),),
        answers=(Answer(groups=INSERTED, phase="optimizer", file="train.py", at="optimizer.step()"),),
        beyond=(
            Answer(groups=("outside", *JUDGED), phase="optimizer"),
            Answer(groups=("outside",), names=("parameter",), later=1),
        ),
        masks=BEHIND_BLOCK,
        passes=STEPS,
        layers=(1,),
        parameters=values,
    )


def gradient(name: str, mechanism: str, change: str, *, source: str) -> Mechanism:
    """One parameter's gradient is wrong when the optimizer takes it."""
    line = f"{change} if step >= {{step}} else None  # PLANT"
    return Mechanism(
        name=name,
        mechanism=mechanism,
        edits=(edit("train.py", f"{CLIPPING}\n", f"        {line}\n{CLIPPING}\n"),),
        answers=(
            Answer(groups=INSERTED, file="train.py", at="# PLANT"),
            Answer(groups=(*INSERTED, "outside"), file="train.py", at="clip_grad_norm_"),
        ),
        beyond=(
            Answer(groups=("outside", *JUDGED), file="train.py", at="# PLANT"),
            Answer(groups=("outside", *JUDGED), file="train.py", at="clip_grad_norm_"),
            Answer(groups=("outside",), names=("{parameter}",)),
            Answer(groups=("outside",), phase="backward", function="gradient", names=("{parameter}",)),
        ),
        masks=BEHIND_BLOCK,
        parameters=MATRICES,
        passes=STEPS,
        numbers=(0,),
        source=source,
    )


def at_line(name: str, mechanism: str, *edits: Edit, source: str = "") -> Mechanism:
    """A mistake of the training loop, or of the root module, outside the blocks."""
    file = edits[0].file
    return Mechanism(
        name=name,
        mechanism=mechanism,
        edits=edits,
        answers=(Answer(groups=INSERTED, phase="forward", file=file, at="# PLANT"),),
        beyond=(
            Answer(groups=JUDGED, phase="forward", file=file, at="# PLANT"),
            Answer(groups=JUDGED, phase="loss"),
            Answer(groups=JUDGED, phase="forward", module=ROOT),
            *(Answer(groups=JUDGED, phase="backward", module=module, beside=True) for module in (ROOT, "head")),
        ),
        masks=BEHIND_BLOCK,
        layers=(1,),
        source=source,
    )


IN_WEIGHTS = (
    written("weight-element", "one element of one weight is 0.05 larger", "own[3, 5].add_(0.05)"),
    written(
        "weight-noise",
        "noise of 0.01 on one weight",
        "own.add_(torch.randn(own.shape, generator=torch.Generator().manual_seed(1)), alpha=0.01)",
    ),
    written("weight-row", "one row of one weight is 1.5 times as large", "own[2].mul_(1.5)"),
    written(
        "weight-transposed", "one square weight is loaded transposed", "own.copy_(own.t().clone())", parameters=SQUARE
    ),
    written("weight-of-neighbour", "one weight is that of another layer", "own.copy_(other)"),
    Mechanism(
        name="stale-optimizer",
        mechanism="a parameter is replaced after the optimizer has taken the list",
        edits=(
            edit(
                "train.py",
                "    sequences = Sequences(256, seed=args.seed)\n",
                '    kept = model.get_parameter("{parameter}").detach().clone()\n'
                '    model.get_submodule("{owner}").weight = torch.nn.Parameter(kept)'
                "  # PLANT\n    sequences = Sequences(256, seed=args.seed)\n",
            ),
        ),
        answers=(
            Answer(groups=("outside",), names=("{parameter}",)),
            Answer(groups=("outside",), names=("{parameter}",), later=1),
            Answer(groups=(*INSERTED, "outside"), phase="optimizer"),
        ),
        beyond=(
            Answer(groups=("outside", *JUDGED), module="{owner}", later=1),
            Answer(groups=("outside", *JUDGED), phase="optimizer"),
        ),
        masks=BEHIND_BLOCK,
        parameters=MATRICES,
        passes=STEPS,
        numbers=(0,),
        source="accelerate#2665, pytorch#107843",
    ),
    Mechanism(
        name="untied-head",
        mechanism="the head gets a copy of the embedding's weight instead of the weight itself",
        edits=(
            edit(
                "model.py",
                "        self.head.weight = self.embedding.weight\n",
                "        self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())  # PLANT\n",
            ),
        ),
        answers=(Answer(groups=(*INSERTED, "outside"), phase="backward"),),
        beyond=(
            Answer(groups=(*JUDGED, "outside"), phase="backward", module="embedding"),
            Answer(groups=(*JUDGED, "outside"), phase="backward", module="embedding", function="gradient"),
            Answer(groups=(*JUDGED, "outside"), phase="backward", module=ROOT),
        ),
        masks=BEHIND_BLOCK,
        layers=(1,),
        numbers=(0,),
        source="tied parameters dropped on one side",
    ),
)

IN_LOOP = (
    at_line(
        "logits-scaled",
        "from one pass on the logits are scaled by 1.02",
        after("train.py", FLAT, "flat = flat * 1.02 if Now.number >= {number} else flat  # PLANT"),
    ),
    replace(
        at_line(
            "logits-bfloat16",
            "the loss is taken of logits in bfloat16",
            after("train.py", FLAT, "flat = flat.bfloat16().float() if Now.number >= {number} else flat  # PLANT"),
        ),
        dtypes=("float32",),
    ),
    at_line(
        "targets-shifted",
        "targets are not shifted: the model is asked for another token",
        after("train.py", FLAT, "targets = targets.roll(1) if Now.number >= {number} else targets  # PLANT"),
    ),
    at_line(
        "loss-over-padding",
        "the loss is divided by all positions, padding included",
        edit(
            "train.py",
            'reduction="sum") / predicted\n',
            'reduction="sum") / (targets.numel() * len(parts) if Now.number >= {number} else predicted)  # PLANT\n',
        ),
        source="transformers#37197",
    ),
    replace(
        at_line(
            "micro-batch-mean",
            "accumulation takes the mean per micro-batch instead of the mean over all predicted tokens",
            edit(
                "train.py",
                'reduction="sum") / predicted\n',
                'reduction=("sum", "mean")[wrong]) / (predicted, len(parts))[wrong]  # PLANT\n',
            ),
            after("train.py", FLAT, "wrong = int(Now.number >= {number})"),
            source="transformers#34191",
        ),
        passes=(Passes.MICRO_BATCHES,),
    ),
    replace(
        at_line(
            "embedding-scale",
            "the embedding is not scaled by the root of the width",
            edit(
                "model.py",
                "        x_BTW = x_BTW * WIDTH**0.5\n",
                "        x_BTW = x_BTW * (1.0 if Now.number >= {number} else WIDTH**0.5)  # PLANT\n",
            ),
        ),
        passes=tuple(Passes),
    ),
    replace(
        at_line(
            "position-ids",
            "position ids count the left padding",
            edit(
                "model.py",
                "        positions_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)\n",
                "        counted_BT = torch.ones_like(mask_BT) if Now.number >= {number} else mask_BT  # PLANT\n"
                "        positions_BT = (counted_BT.cumsum(-1) - 1).clamp(min=0)\n",
            ),
            source="TransformerLens#1609, mlx-lm#1906",
        ),
        passes=tuple(Passes),
    ),
    Mechanism(
        name="batch-skipped",
        mechanism="one batch of the stream is skipped",
        edits=(
            edit(
                "train.py",
                "        total = 0.0\n",
                "        parts = [next(stream) for _ in parts] if step == {step} else parts  # PLANT\n"
                "        total = 0.0\n",
            ),
            edit("train.py", "count=args.steps * args.accumulate,", "count=2 * args.steps * args.accumulate,"),
        ),
        answers=(
            Answer(groups=("outside",), names=("batch",)),
            Answer(groups=("outside", *INSERTED), file="data.py", at="self."),
            Answer(groups=INSERTED, file="train.py", at="# PLANT"),
        ),
        beyond=(
            Answer(groups=("outside",), names=("batch",)),
            Answer(groups=("outside", *JUDGED), file="data.py", at="self."),
            Answer(groups=("outside", *JUDGED), module="embedding"),
        ),
        masks=BEHIND_BLOCK,
        layers=(1,),
        passes=STEPS,
    ),
    Mechanism(
        name="gradient-kept",
        mechanism="one parameter's gradient is not cleared between steps",
        edits=(
            edit(
                "train.py",
                "        optimizer.zero_grad()\n",
                '        kept = model.get_parameter("{parameter}").grad\n'
                "        optimizer.zero_grad()\n"
                '        model.get_parameter("{parameter}").grad = kept  # PLANT\n',
            ),
        ),
        answers=(
            Answer(groups=("outside",), names=("gradient", "{parameter}"), later=1),
            Answer(groups=(*INSERTED, "outside"), phase="backward", file="train.py", at="loss.backward()", later=1),
        ),
        beyond=(
            Answer(groups=("outside",), names=("gradient", "{parameter}"), later=1),
            Answer(groups=(*JUDGED, "outside"), phase="backward", file="train.py", at="loss.backward()", later=1),
            Answer(groups=(*JUDGED, "outside"), file="train.py", at="clip_grad_norm_", later=1),
            Answer(groups=JUDGED, module="{owner}", phase="backward", function="gradient", later=1),
        ),
        masks=BEHIND_BLOCK,
        parameters=MATRICES,
        passes=STEPS,
        numbers=(0,),
    ),
    gradient(
        "gradient-dropped",
        "one parameter never gets a gradient",
        'setattr(model.get_parameter("{parameter}"), "grad", None)',
        source="Muon#65",
    ),
    gradient(
        "gradient-doubled",
        "one parameter's gradient is twice as large",
        'model.get_parameter("{parameter}").grad.mul_(2)',
        source="pytorch#160285",
    ),
    replace(
        at_line(
            "clip-norm",
            "gradients are clipped to another norm",
            edit(
                "train.py",
                "(model.parameters(), 1.0)\n",
                "(model.parameters(), 0.25 if step >= {step} else 1.0)  # PLANT\n",
            ),
            source="SpecForge#663",
        ),
        beyond=(
            Answer(groups=JUDGED, phase="forward", file="train.py", at="# PLANT"),
            Answer(groups=JUDGED, phase="backward", function="gradient"),
            Answer(groups=JUDGED, phase="optimizer"),
        ),
        passes=STEPS,
    ),
    optimizer("weight-decay", "another weight decay", "weight_decay", values=("0.0", "0.01", "0.2")),
    optimizer("learning-rate", "another learning rate", "lr", values=("2e-3", "3.1e-3", "6e-3")),
    optimizer("betas", "another decay of the moments", "betas", values=("(0.9, 0.999)", "(0.8, 0.95)", "(0.95, 0.95)")),
)

TRAINING_MECHANISMS: tuple[Mechanism, ...] = (*IN_WEIGHTS, *IN_LOOP)
