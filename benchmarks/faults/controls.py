"""The controls: pairs of runs that differ in something that is no bug. Nothing may be claimed of them."""

from benchmarks.faults.case import Control, Edit, Variant
from benchmarks.faults.faults import after, edit

SCRATCH = after(
    "model.py",
    "        up = self.up(x_BTW)",
    "scratch = torch.empty(2, *up.shape); scratch[0].copy_(up); up = scratch[0]",
)


def inserted(line: str, new: str, *, file: str = "model.py") -> Variant:
    return Variant(edits=(after(file, line, new),))


def swapped(file: str, first: str, second: str) -> Edit:
    """Two neighbouring lines change places."""
    return Edit(file=file, old=f"{first}\n{second}\n", new=f"{second}\n{first}\n")


CONTROLS: tuple[Control, ...] = (
    Control(name="identical", mechanism="the same run twice"),
    Control(
        name="identical-accumulation",
        mechanism="the same run twice, two micro-batches a step",
        baseline=Variant(arguments=("--accumulate", "2")),
        candidate=Variant(arguments=("--accumulate", "2")),
    ),
    Control(
        name="no-op",
        mechanism="an operator inserted that changes no bit",
        candidate=inserted("        k_BTW = self.key(x_BTW)", "k_BTW = k_BTW * 1.0"),
    ),
    Control(
        name="swapped-projections",
        mechanism="query and key projection change places; gradients are summed in another order",
        candidate=Variant(
            edits=(swapped("model.py", "        q_BTW = self.query(x_BTW)", "        k_BTW = self.key(x_BTW)"),)
        ),
        strict=False,
    ),
    Control(
        name="re-association",
        mechanism="gate and up change places in the MLP: only the gradient's sum is associated anew",
        candidate=Variant(
            edits=(swapped("model.py", "        gate = self.gate(x_BTW)", "        up = self.up(x_BTW)"),)
        ),
        strict=False,
    ),
    Control(
        name="moved-lines",
        mechanism="comment lines inserted above",
        candidate=Variant(
            edits=(
                edit(
                    "model.py",
                    "class RMSNorm(nn.Module):\n",
                    "# A note.\n# Another one.\n\n\nclass RMSNorm(nn.Module):\n",
                ),
                edit("train.py", "def main() -> None:\n", "# A note.\ndef main() -> None:\n"),
            )
        ),
    ),
    Control(
        name="renamed-class",
        mechanism="a module class has another name",
        candidate=Variant(
            edits=(
                edit("model.py", "class MLP(nn.Module):\n", "class GatedMLP(nn.Module):\n"),
                edit("model.py", "        self.mlp = MLP()\n", "        self.mlp = GatedMLP()\n"),
            )
        ),
    ),
    Control(
        name="reworded-line",
        mechanism="a local variable is renamed: the line changes, the operators do not",
        candidate=Variant(
            edits=(
                edit(
                    "model.py",
                    "        variance = x_BTW.pow(2).mean(-1, keepdim=True)\n"
                    "        scale = torch.rsqrt(variance + self.epsilon)\n",
                    "        squares = x_BTW.pow(2).mean(-1, keepdim=True)\n"
                    "        scale = torch.rsqrt(squares + self.epsilon)\n",
                ),
            )
        ),
    ),
    Control(
        name="other-checkout", mechanism="another checkout directory", candidate=Variant(directory="elsewhere/tree")
    ),
    Control(
        name="renamed-script",
        mechanism="the main script has another name",
        candidate=Variant(renamed=(("train.py", "pretrain.py"),)),
    ),
    Control(
        name="renamed-module",
        mechanism="a source file has another name",
        candidate=Variant(
            renamed=(("model.py", "decoder.py"),),
            edits=(edit("train.py", "from model import Decoder\n", "from decoder import Decoder\n"),),
        ),
    ),
    Control(
        name="recompute",
        mechanism="both runs recompute their blocks in the backward pass",
        baseline=Variant(arguments=("--recompute",)),
        candidate=Variant(arguments=("--recompute",)),
    ),
    Control(
        name="uninitialised",
        mechanism="both runs allocate without filling and write one half",
        baseline=Variant(edits=(SCRATCH,)),
        candidate=Variant(edits=(SCRATCH,)),
    ),
    Control(
        name="extra-metric",
        mechanism="one run also logs a norm without gradient",
        candidate=inserted(
            "            loss.backward()",
            "print(f'norm {logits.detach().norm().item():.3f}')",
            file="train.py",
        ),
    ),
    Control(
        name="unrelated-order",
        mechanism="two unrelated metrics are taken in another order",
        baseline=inserted(
            "            loss.backward()",
            "largest = logits.detach().amax(); smallest = logits.detach().amin()",
            file="train.py",
        ),
        candidate=inserted(
            "            loss.backward()",
            "smallest = logits.detach().amin(); largest = logits.detach().amax()",
            file="train.py",
        ),
    ),
    Control(
        name="split-line",
        mechanism="one expression is written over two statements",
        candidate=Variant(
            edits=(
                edit(
                    "model.py",
                    "        return self.down(active * up)\n",
                    "        product = active * up\n        return self.down(product)\n",
                ),
            )
        ),
    ),
)
