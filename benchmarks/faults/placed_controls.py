"""Generated controls: pairs that differ in something that is no bug, drawn with a recorded seed (CP-18)."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations

from benchmarks.faults.case import Control, Edit, Launch, Variant
from benchmarks.faults.checkouts import sources_of
from benchmarks.faults.faults import after, edit
from benchmarks.faults.generated import HARMLESS
from benchmarks.faults.masks import MASKS
from benchmarks.faults.mechanisms_training import FLAT
from benchmarks.faults.placing import ARGUMENTS, DTYPES, SEEDS, Passes

CONFIGURATIONS: tuple[tuple[str, ...], ...] = (
    *(
        ("--dtype", dtype, "--seed", str(seed), *ARGUMENTS[passes])
        for dtype in DTYPES
        for seed in SEEDS
        for passes in Passes
    ),
    *(
        ("--dtype", dtype, "--seed", str(SEEDS[0]), *ARGUMENTS[Passes.STEPS], *more)
        for dtype in DTYPES
        for more in (("--parts", "2"), ("--quantized",), ("--recompute", "--dropout", "0.1"), ("--dropout", "0.1"))
    ),
)
# A line that assigns a floating tensor, which the lines behind it read. Not `wide`: in float32 it is the block's input
# itself, and with an operator behind it gradients are summed in another order, so bits truly differ.
ASSIGNMENT = re.compile(r"^ +(?P<name>variance|normed|scaled|scores|weights|gate|up|active|made|mixed) = (?!\[)")
LOCAL_NAMES = {
    "model.py": (
        "variance",
        "normed",
        "scaled",
        "scores",
        "weights",
        "gate",
        "up",
        "active",
        "made",
        "mixed",
        "causal",
    ),
    "train.py": ("flat", "targets", "total", "predicted", "logits", "stream", "sequences", "optimizer"),
}
METRICS = ("norm", "amax", "amin", "mean", "std", "sum", "median")
CLASSES = ("RMSNorm", "Attention", "Quantizer", "MLP", "Block", "Decoder")
SCRATCH = after(
    "model.py",
    "        up = self.up(x_BTW)",
    "scratch = torch.empty(2, *up.shape, dtype=up.dtype); scratch[0].copy_(up); up = scratch[0]",
)
QUERY, KEY, VALUE = (
    f"        {part}_BTW = self.{name}(x_BTW)\n" for part, name in zip("qkv", ("query", "key", "value"), strict=True)
)
GATE, UP = "        gate = self.gate(x_BTW)\n", "        up = self.up(x_BTW)\n"
Sides = tuple[tuple[Edit, ...], tuple[Edit, ...]]  # edits of the baseline, of the candidate


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A generated control; `judged`: by the baseline's envelope, since bits of the forward pass truly differ."""

    kind: str
    control: Control
    judged: bool = False

    @property
    def id(self) -> str:
        return self.control.name


def text_of(file: str) -> str:
    (path,) = (path for path in sources_of(Launch.PLACED) if path.name == file)
    return path.read_text(encoding="utf-8")


def no_op(draw: random.Random) -> Sides:
    """An operator that changes no bit, everywhere or in one layer."""
    text = text_of("model.py")
    lines = [(line, found["name"]) for line in text.splitlines() if (found := ASSIGNMENT.match(line))]
    line, name = draw.choice([(line, name) for line, name in lines if text.count(line + "\n") == 1])
    return (), (after("model.py", line, draw.choice(HARMLESS).format(name=name)),)


def moved_lines(draw: random.Random) -> Sides:
    """Comment lines above a function."""
    found: list[Edit] = []
    for file in ("model.py", "train.py", "data.py"):
        text = text_of(file)
        heads = [
            line for line in text.splitlines() if re.match(r" *(def|class) ", line) and text.count(line + "\n") == 1
        ]
        head = draw.choice(heads)
        indent = head[: len(head) - len(head.lstrip())]
        note = "".join(f"{indent}# note {draw.randrange(1000)}\n" for _ in range(draw.randint(1, 6)))
        found.append(edit(file, f"{head}\n", f"{note}{head}\n"))
    return (), tuple(found)


def reworded(draw: random.Random) -> Sides:
    """A local variable has another name: lines change, operators do not."""
    file = draw.choice(tuple(LOCAL_NAMES))
    name = draw.choice(LOCAL_NAMES[file])
    text = text_of(file)
    return (), (edit(file, text, re.sub(rf"(?<![\w.]){name}\b(?!=\w)", f"{name}_{draw.choice('abcdef')}", text)),)


def renamed_class(draw: random.Random) -> Sides:
    name = draw.choice(CLASSES)
    new = f"{draw.choice(('Gated', 'Small', 'Our', 'Fast'))}{name}"
    found = [edit("model.py", text := text_of("model.py"), re.sub(rf"\b{name}\b", new, text))]
    if name == "Decoder":
        found.append(edit("train.py", train := text_of("train.py"), re.sub(r"\bDecoder\b", new, train)))
    return (), tuple(found)


def renamed_function(draw: random.Random) -> Sides:
    name = draw.choice(("attend", "rotate", "joined", "part", "call", "widened"))
    new = f"{name}_{draw.choice('abcdef')}"
    found = [edit("model.py", text := text_of("model.py"), re.sub(rf"\b{name}\(", f"{new}(", text))]
    if name == "widened":
        found.append(edit("train.py", train := text_of("train.py"), re.sub(r"\bwidened\b", new, train)))
    return (), tuple(found)


def extra_metric(draw: random.Random) -> Sides:
    """One side logs a figure without gradient."""
    what = draw.choice(("logits", "flat", "loss"))
    return (), (
        after("train.py", "            loss.backward()", f"print({what}.detach().{draw.choice(METRICS)}().item())"),
    )


def unrelated_order(draw: random.Random) -> Sides:
    """Two unrelated metrics change places."""
    first, second = draw.sample(METRICS, 2)
    lines = [f"{name}_logged = logits.detach().{name}()" for name in (first, second)]
    return tuple((after("train.py", FLAT, "; ".join(order)),) for order in (lines, lines[::-1]))  # type: ignore[return-value]


def swapped(draw: random.Random) -> Sides:
    """Independent projections change places: gradients are summed in another order."""
    three = [QUERY, KEY, VALUE]
    order = draw.choice([(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
    attention = edit("model.py", "".join(three), "".join(three[place] for place in order))
    mlp = edit("model.py", GATE + UP, UP + GATE)
    return (), draw.choice([(attention,), (mlp,), (attention, mlp)])


def split_line(draw: random.Random) -> Sides:
    """One expression is written over two statements."""
    pairs = (
        ("        return self.down(made)\n", "        output = self.down(made)\n        return output\n"),
        (
            "        made = self.quantizer(active * up)\n",
            "        product = active * up\n        made = self.quantizer(product)\n",
        ),
        (
            "        return self.output(merged_BTW)\n",
            "        output_BTW = self.output(merged_BTW)\n        return output_BTW\n",
        ),
        ("    return weights @ v_BHSD\n", "    mixed = weights @ v_BHSD\n    return mixed\n"),
        (
            "        return self.head(self.norm(x_BTW))\n",
            "        x_BTW = self.norm(x_BTW)\n        return self.head(x_BTW)\n",
        ),
        (
            "        scaled = normed * (1.0 + widened(self.weight))\n",
            "        gain = 1.0 + widened(self.weight)\n        scaled = normed * gain\n",
        ),
    )
    return (), tuple(edit("model.py", *pair) for pair in draw.sample(pairs, draw.randint(1, 3)))


def uninitialised(draw: random.Random) -> Sides:
    """Both sides allocate without filling and write one half; lines above are moved, too."""
    _, moved = moved_lines(draw)
    return (SCRATCH,), (SCRATCH, *(one for one in moved if one.file != "model.py"))


def unrelated_batch(draw: random.Random) -> Sides:
    """Unrelated work beside the training has another batch size; it is made of what training never reads."""
    width = draw.randint(2, 9)
    sides = []
    for rows in draw.sample(range(1, 12), 2):
        line = f"side = F.linear(torch.ones({rows}, {width}), torch.ones(3, {width})).shape"
        sides.append((after("train.py", FLAT, line),))
    return sides[0], sides[1]


def own_generator(draw: random.Random) -> Sides:
    """One side draws numbers for its log from a generator of its own."""
    size = draw.randint(1, 9)
    line = f"print(torch.rand({size}, generator=torch.Generator().manual_seed({draw.randrange(99)})).sum().item())"
    return (), (after("train.py", "            loss.backward()", line),)


def identical(draw: random.Random) -> Sides:
    del draw
    return (), ()


def combined(draw: random.Random) -> Sides:
    """Lines moved in one file, a metric more, and an operator more."""
    _, moved = moved_lines(draw)
    _, metric = extra_metric(draw)
    _, operator = no_op(draw)
    return (), (*operator, *metric, *(one for one in moved if one.file == "data.py"))


KINDS: dict[str, Callable[[random.Random], Sides]] = {
    "identical": identical,
    "no-op": no_op,
    "moved-lines": moved_lines,
    "reworded": reworded,
    "renamed-class": renamed_class,
    "renamed-function": renamed_function,
    "renamed-file": identical,
    "other-checkout": identical,
    "extra-metric": extra_metric,
    "unrelated-order": unrelated_order,
    "swapped": swapped,
    "split-line": split_line,
    "uninitialised": uninitialised,
    "unrelated-batch": unrelated_batch,
    "own-generator": own_generator,
    "combined": combined,
}
SUMMED_ANEW = frozenset({"swapped"})


def kernel_controls() -> Iterator[Drawn]:
    """Every set of benign kernel changes in every configuration; all that differs has to be inside the envelope."""
    names = [name for name in MASKS if name]
    for arguments in CONFIGURATIONS:
        for chosen in chain.from_iterable(combinations(names, size) for size in (1, 2, 3)):
            edits = tuple(one for name in chosen for one in MASKS[name])
            yield Drawn(
                kind="kernels",
                judged=True,
                control=control(f"kernels/{'+'.join(chosen)}/{'-'.join(arguments)}", ((), edits), arguments),
            )


def control(name: str, sides: Sides, arguments: tuple[str, ...], *, kind: str = "", number: int = 0) -> Control:
    """`number` sets an equal variant apart, so that it is a run of its own."""
    renamed: tuple[tuple[str, str], ...] = ()
    edits = sides[1]
    if kind == "renamed-file":
        new = ("decoder", "network", "transformer")[number % 3]
        renamed = (("model.py", f"{new}.py"), ("train.py", ("train.py", "pretrain.py")[number % 2]))
        edits = (*edits, edit("train.py", "from model import", f"from {new} import"))
    return Control(
        name=name,
        mechanism=kind or "other kernels",
        baseline=Variant(launch=Launch.PLACED, arguments=arguments, edits=sides[0]),
        candidate=Variant(
            launch=Launch.PLACED,
            arguments=arguments,
            edits=edits,
            renamed=renamed,
            directory=f"{'elsewhere/' if kind == 'other-checkout' else ''}tree{number}",
        ),
        strict=kind not in SUMMED_ANEW and bool(kind),
        bits_differ=kind == "unrelated-batch",
    )


def drawn_controls(count: int, *, seed: int) -> Iterator[Drawn]:
    """`count` controls: all sets of kernels, then the kinds in turn, each in a configuration drawn at random."""
    kernels = list(kernel_controls())
    random.Random(seed).shuffle(kernels)
    kinds = list(KINDS)
    for number in range(count):
        if number % 6 == 5 and kernels:
            yield kernels.pop()
            continue
        kind = kinds[number % len(kinds)]
        draw = random.Random(f"{seed}/{number}")
        arguments = draw.choice(CONFIGURATIONS)
        sides = KINDS[kind](draw)
        yield Drawn(
            kind=kind,
            judged=kind in SUMMED_ANEW,
            control=control(f"{kind}/{number:04}", sides, arguments, kind=kind, number=number),
        )
