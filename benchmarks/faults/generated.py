"""Generated pairs: an operator inserted behind a line drawn at random, harmless in a control, a mistake in a fault.

The share of false claims needs many controls: with none in n, the 95 % bound (Clopper-Pearson) is about 3/n.
"""

import random
import re
from collections.abc import Iterator

from benchmarks.faults.case import Control, Expected, Fault, Variant
from benchmarks.faults.checkouts import WORKLOAD
from benchmarks.faults.faults import INSERTED, after

# The result has the same bits, and so have all gradients.
HARMLESS = (
    "{name} = {name} * 1.0",
    "{name} = {name}.clone()",
    "{name} = {name}.reshape({name}.shape)",
    "{name} = {name}.to({name}.dtype, copy=True)",
    "{name}_seen = {name}.detach().abs().amax()",
    "{name}_twice = torch.stack([{name}, {name}]).detach()",
    "# {name} is left alone",
)
MISTAKES = ("{name} = {name} * 0.999", "{name} = {name} + 1e-3", "{name} = {name}.bfloat16().float()")
ASSIGNMENT = re.compile(r"^ +(?P<name>variance|scale|scores|weights|gate|up|active|\w+_B[HG]?TW?D?) = ")


def places() -> list[tuple[str, str]]:
    """Lines of the model's forward passes that assign a floating tensor, each with the tensor's name."""
    text = (WORKLOAD / "model.py").read_text(encoding="utf-8")
    found = [(line, match["name"]) for line in text.splitlines() if (match := ASSIGNMENT.match(line))]
    return [(line, name) for line, name in found if text.count(line + "\n") == 1 and "positions" not in name]


def generated_controls(count: int, *, seed: int) -> Iterator[Control]:
    """`count` controls; the same seed gives the same ones."""
    draw = random.Random(seed)
    for number in range(count):
        line, name = draw.choice(places())
        inserted = draw.choice(HARMLESS).format(name=name)
        yield Control(
            name=f"control-{seed}-{number}",
            mechanism=f"`{inserted}` behind `{line.strip()}`",
            candidate=Variant(edits=(after("model.py", line, inserted),)),
        )


def generated_faults(count: int, *, seed: int) -> Iterator[Fault]:
    """`count` faults; the same seed gives the same ones."""
    draw = random.Random(seed)
    for number in range(count):
        line, name = draw.choice(places())
        inserted = draw.choice(MISTAKES).format(name=name)
        yield Fault(
            name=f"fault-{seed}-{number}",
            mechanism=f"`{inserted}` behind `{line.strip()}`",
            candidate=Variant(edits=(after("model.py", line, f"{inserted}  # PLANT"),)),
            expected=(Expected(groups=INSERTED, phase="forward", file="model.py", at="# PLANT"),),
        )
