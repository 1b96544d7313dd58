"""Trees of arguments as text, and what a golden call lacks (CA-9)."""

import math

import pytest

from paritrace.evidence import codec
from paritrace.evidence.dumps import (
    Branch,
    Dumped,
    GeneratorState,
    Golden,
    KeptTensor,
    Member,
    Missing,
    Node,
    PlainLeaf,
    TensorLeaf,
    gaps_of,
    leaves,
    tree_of,
    tree_text,
)
from paritrace.evidence.gaps import CaptureGap, Gap

SHA = "0" * 64
GAP = Gap(CaptureGap.OVER_BUDGET, "1 GiB")


def tensor(kept: str | Gap[CaptureGap] = SHA, number: int = 0) -> KeptTensor:
    return KeptTensor(kept, "bfloat16", (2, 3), (3, 1), number, requires_grad=True)


TREE: Node = Branch(
    "tuple",
    (
        Branch("tuple", (TensorLeaf("args[0]", tensor()), PlainLeaf("none"), PlainLeaf("float", math.pi.hex()))),
        Branch(
            "dict",
            (TensorLeaf("kwargs.mask", tensor(GAP, 1)), Missing("kwargs.cache", Gap(CaptureGap.NOT_COLLECTED, "x:C"))),
            (PlainLeaf("str", "mask"), PlainLeaf("str", "cache")),
        ),
    ),
)


def golden(inputs: Node = TREE) -> Golden:
    return Golden(
        id=0,
        call=7,
        module="layers.0",
        cls="Block",
        number=1,
        step=2,
        microbatch=0,
        training=True,
        grad_enabled=True,
        inference=False,
        autocast=(),
        inputs=tree_text(inputs),
        outputs="",
        members=(Member(("w", "tied.w"), tensor(GAP, 2)), Member(("b",), tensor(number=3), buffer=True)),
        generators=(GeneratorState("python", GAP, {"version": "3"}), GeneratorState("torch_cpu", SHA)),
    )


def test_a_tree_survives_as_text() -> None:
    assert tree_of(tree_text(TREE)) == TREE
    assert len(list(leaves(TREE))) == 5


def test_what_a_golden_lacks_is_named() -> None:
    assert [name for name, _ in gaps_of(golden())] == ["kwargs.mask", "kwargs.cache", "w", "python"]


@pytest.mark.parametrize(
    "record",
    [golden(), Dumped(1, "i", 0, "args[0]", SHA, "float32", ()), Dumped(1, "o", 2, "out", GAP, "bool", (0, 3))],
)
def test_records_are_lines_of_the_journal(record: Golden | Dumped) -> None:
    line = codec.encode_mark(record)
    assert codec.decode_line(line.rstrip(b"\n")) == record
