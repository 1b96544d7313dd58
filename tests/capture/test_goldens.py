"""`--golden`: a module call on disk with all that a replay needs, and nothing disturbed (CA-9)."""

import random
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from paritrace.evidence.dumps import Branch, Golden, Missing, Node, PlainLeaf, TensorLeaf, gaps_of, leaves, tree_of
from paritrace.evidence.gaps import CaptureGap, Gap
from tests.capture.kept import Kept, bytes_of, keep


class Pair(NamedTuple):
    first: torch.Tensor
    second: float


@dataclass
class Box:
    held: torch.Tensor
    note: str


class Opaque:
    """An object that cannot be kept."""


class Inner(torch.nn.Module):
    """Draws from every generator, and has a tied weight, a buffer and an unlike stride."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(4, 4, bias=False)
        self.tied = torch.nn.Linear(4, 4, bias=False)
        self.tied.weight = self.proj.weight
        self.register_buffer("scale", torch.full((4,), 0.5, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor, *others: Any, noise: bool = True, **more: Any) -> dict[str, Any]:
        drawn = torch.rand(x.shape) + random.random() + np.random.random() if noise else torch.zeros(x.shape)
        out = self.tied(self.proj(torch.nn.functional.dropout(x, training=self.training))) * self.scale.float() + drawn
        return {"out": out, "count": len(others) + len(more)}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.inner(x.t(), x, [1, None, (True, 2.5)], pair=Pair(x, float("inf")), box=Box(x[0], "n"))
        other: OrderedDict[str, object] = OrderedDict(a=torch.float16, b=slice(1, None))
        second = self.inner(x.t(), noise=False, opaque=Opaque(), named=other, size=x.shape, long="t" * 2000)
        total: torch.Tensor = first["out"].sum() + second["out"].sum()
        return total


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Kept, Model, torch.Tensor]:
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    np.random.standard_normal()  # leaves a cached one
    model, x = Model(), torch.randn(4, 4)
    return keep(tmp_path / "run", lambda: model(x).backward(), golden=("inner",)), model, x


def test_calls_are_told_apart_and_their_modes_stand_there(kept: tuple[Kept, Model, torch.Tensor]) -> None:
    found, _, _ = kept
    records = [call.golden for call in found.goldens]
    assert [(g.module, g.number, g.step, g.microbatch, g.raised) for g in records] == [
        ("inner", 0, 0, 0, False),
        ("inner", 1, 0, 0, False),
    ]
    assert all(g.training and g.grad_enabled and not g.inference for g in records)
    assert [(a.device, a.enabled) for a in records[0].autocast] == [("cpu", False), ("cuda", False)]
    assert all(found.functions[found.calls[g.call].function].endswith("Inner") for g in records)


def test_arguments_keep_their_shape_and_say_what_they_lack(kept: tuple[Kept, Model, torch.Tensor]) -> None:
    found, _, x = kept
    first, second = (tree_of(call.golden.inputs) for call in found.goldens)
    args, kwargs = branches(first)
    a0, a1, nested = args.items
    assert isinstance(a0, TensorLeaf)
    assert isinstance(a1, TensorLeaf)
    assert (a0.tensor.strides, a1.tensor.strides) == ((1, 4), (4, 1))
    assert found.tensor(a1.tensor.kept).array.tobytes() == bytes_of(x)
    assert found.tensor(a0.tensor.kept).array.tobytes() == bytes_of(x.t())
    assert nested == Branch(
        "list",
        (
            PlainLeaf("int", "1"),
            PlainLeaf("none"),
            Branch("tuple", (PlainLeaf("bool", "True"), PlainLeaf("float", (2.5).hex()))),
        ),
    )
    pair, box = kwargs.items
    assert isinstance(pair, Branch)
    assert (pair.kind, pair.cls, pair.items[1]) == ("named_tuple", f"{__name__}:Pair", PlainLeaf("float", "inf"))
    assert isinstance(pair.items[0], TensorLeaf)
    assert pair.items[0].tensor.number == a1.tensor.number, "the same tensor twice"
    assert isinstance(box, Branch)
    assert (box.kind, [key.text for key in box.keys]) == ("dataclass", ["held", "note"])
    lacks = dict(gaps_of(found.goldens[1].golden))
    assert lacks == {
        "kwargs.opaque": Gap(CaptureGap.NOT_COLLECTED, f"{__name__}:Opaque"),
        "kwargs.long": Gap(CaptureGap.NOT_COLLECTED, "a text of 2000 characters"),
    }
    named = branches(second)[1].items[2]
    assert isinstance(named, Branch)
    assert (named.kind, named.cls, named.items[0]) == ("dict", "collections:OrderedDict", PlainLeaf("dtype", "float16"))
    assert [leaf.path for leaf in leaves(second) if isinstance(leaf, Missing)] == ["kwargs.opaque", "kwargs.long"]


def test_members_stand_once_with_all_their_names(kept: tuple[Kept, Model, torch.Tensor]) -> None:
    found, model, _ = kept
    members = found.goldens[0].golden.members
    assert [(m.names, m.buffer, m.tensor.dtype) for m in members] == [
        (("proj.weight", "tied.weight"), False, "float32"),
        (("scale",), True, "bfloat16"),
    ]
    assert members[0].tensor.requires_grad
    assert found.tensor(members[0].tensor.kept).data.tobytes() == bytes_of(model.inner.proj.weight)


def test_a_call_made_again_from_what_was_kept_has_the_same_bits(kept: tuple[Kept, Model, torch.Tensor]) -> None:
    found, _, _ = kept
    golden = found.goldens[0].golden
    module = Inner()
    for member in golden.members:
        if member.buffer:
            module.register_buffer(member.names[0], rebuilt(found, member.tensor))
        else:
            module.get_parameter(member.names[0]).data = rebuilt(found, member.tensor)
    restore_generators(found, golden)
    args, kwargs = branches(tree_of(golden.inputs))
    positional = [value_of(found, item) for item in args.items]
    named = {key.text: value_of(found, item) for key, item in zip(kwargs.keys, kwargs.items, strict=True)}

    result = module(*positional, **named)

    outputs = tree_of(golden.outputs)
    assert isinstance(outputs, Branch)
    out, count = outputs.items
    assert isinstance(out, TensorLeaf)
    assert count == PlainLeaf("int", "4")
    assert bytes_of(result["out"]) == found.tensor(out.tensor.kept).data.tobytes()


def test_gradients_of_outputs_follow(kept: tuple[Kept, Model, torch.Tensor]) -> None:
    found, _, _ = kept
    for call in found.goldens:
        assert list(call.gradients) == ["out.out"]
        assert found.tensor(call.gradients["out.out"].kept).array.tolist() == np.ones((4, 4)).tolist()


def test_slots_of_a_golden_call_are_kept_like_dumps(kept: tuple[Kept, Model, torch.Tensor]) -> None:
    found, _, _ = kept
    lines = [line for line in found.dumped if line.call == found.goldens[0].golden.call]
    leaf = next(leaf for leaf in leaves(tree_of(found.goldens[0].golden.outputs)) if isinstance(leaf, TensorLeaf))
    assert {(line.side, line.name): line.tensor for line in lines}["o", "out.out"] == leaf.tensor.kept
    assert {line.name for line in lines if line.side == "i"} >= {
        "args[0]",
        "kwargs.pair.first",
        "kwargs.box.held",
        "scale",
    }


def test_a_call_that_raises_and_one_inside_autocast(tmp_path: Path) -> None:
    class Fails(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError(x)

    model, fails = torch.nn.Linear(2, 2), Fails()

    def work() -> None:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            model.eval()(torch.ones(1, 2))
        with pytest.raises(ValueError, match="tensor"):
            fails(torch.ones(1))

    found = keep(tmp_path / "run", work, golden=("", "Fails*"), level="op")

    inside, raised = (call.golden for call in found.goldens)
    assert (inside.call, inside.training, inside.grad_enabled) == (-1, False, False), "level module is off"
    assert (inside.autocast[0].enabled, inside.autocast[0].dtype) == (True, "bfloat16")
    out = tree_of(inside.outputs)
    assert isinstance(out, TensorLeaf)
    assert out.tensor.dtype == "bfloat16"
    assert (raised.raised, raised.outputs) == (True, "")


def test_a_budget_that_is_too_small_leaves_gaps_with_their_names(tmp_path: Path) -> None:
    model = torch.nn.Linear(64, 64)
    found = keep(tmp_path / "run", lambda: model(torch.ones(1, 64)), golden=("",), dump_bytes=6000)
    lacks = dict(gaps_of(found.goldens[0].golden))
    assert lacks["weight"].gap is CaptureGap.OVER_BUDGET
    assert "args[0]" not in lacks
    assert any("tensor of  weight" in mark.detail for mark in found.gaps)


def branches(tree: Node) -> tuple[Branch, Branch]:
    assert isinstance(tree, Branch)
    args, kwargs = tree.items
    assert isinstance(args, Branch)
    assert isinstance(kwargs, Branch)
    return args, kwargs


def rebuilt(found: Kept, kept: Any) -> torch.Tensor:
    whole = found.tensor(kept.kept)
    flat = torch.frombuffer(bytearray(whole.data), dtype=getattr(torch, kept.dtype)).reshape(kept.shape)
    return torch.empty_strided(kept.shape, kept.strides, dtype=flat.dtype).copy_(flat)


def value_of(found: Kept, node: Node) -> Any:
    """As much of a replay as these arguments need."""
    match node:
        case TensorLeaf():
            return rebuilt(found, node.tensor)
        case PlainLeaf():
            return _plain(node)
        case Branch():
            items = [value_of(found, item) for item in node.items]
            if node.cls:
                return {"Pair": Pair, "Box": Box}[node.cls.rpartition(":")[2]](*items)
            return tuple(items) if node.kind == "tuple" else items
        case Missing():
            raise AssertionError(node)


def _plain(node: PlainLeaf) -> object:
    match node.kind:
        case "none":
            return None
        case "bool":
            return node.text == "True"
        case "int":
            return int(node.text)
        case "str":
            return node.text
        case _:
            return float.fromhex(node.text)


def restore_generators(found: Kept, golden: Golden) -> None:
    states = {state.name: (found.tensor(state.words), state.rest) for state in golden.generators}
    words, rest = states["python"]
    gauss = float.fromhex(rest["gauss"]) if rest["gauss"] else None
    random.setstate((int(rest["version"]), tuple(int(word) for word in words.array), gauss))
    words, rest = states["numpy"]
    np.random.set_state(
        (
            "MT19937",
            words.array.copy(),
            int(rest["pos"]),
            int(rest["has_gauss"]),
            float.fromhex(rest["cached_gaussian"]),
        )
    )
    words, _ = states["torch_cpu"]
    torch.set_rng_state(torch.frombuffer(bytearray(words.data), dtype=torch.uint8))


def test_backward_after_the_capture_keeps_nothing(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    losses: list[torch.Tensor] = []
    found = keep(tmp_path / "run", lambda: losses.append(model(torch.ones(1, 2)).sum()), golden=("",))
    torch.autograd.backward(losses[0])
    assert [call.gradients for call in found.goldens] == [{}]
    assert len(list((tmp_path / "run" / "tensors").iterdir())) == found.files
