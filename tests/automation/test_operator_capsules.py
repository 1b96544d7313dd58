"""`capsule --call`: one operator call out of what both runs dumped, as a program that gives its bits (CP-26)."""

import sys
from pathlib import Path

import pytest
import torch

import paritrace
from paritrace.automation.operator_capsules import operator_capsule
from paritrace.compare.engine import compare
from paritrace.compare.operator_source import source_of
from paritrace.compare.result import Comparison
from paritrace.errors import EvidenceError, RequestError
from paritrace.process.children import run_child
from paritrace.runs.kept_calls import KeptCall, KeptSlot
from paritrace.runs.reading import open_run


def slot(name: str) -> KeptSlot:
    return KeptSlot(name, "float32", (2,), (1,), "a" * 64)


def call(function: str, names: list[str], scalars: dict[str, str], *outputs: str) -> KeptCall:
    return KeptCall(function, scalars, tuple(map(slot, names)), tuple(map(slot, outputs or ("out",))))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (call("aten.add.Tensor", ["args[0]"], {"1": "1e-05"}), "aten.add.Tensor(a0, 1e-05)"),
        (call("aten.add.Tensor", ["args[0]", "args[1]"], {"alpha": "2"}), "aten.add.Tensor(a0, a1, alpha=2)"),
        (call("aten.clamp.default", ["args[0]"], {"2": "inf"}), "aten.clamp.default(a0, None, inf)"),
        (call("aten.stack.default", ["args[0][0]", "args[0][1]"], {"1": "-1"}), "aten.stack.default([a0, a1], -1)"),
        (
            call("aten.index.Tensor", ["args[0]", "args[1][1]"], {"1": "(None,)"}),
            "aten.index.Tensor(a0, [None, a1])",
        ),
        (call("aten.view.default", ["args[0]"], {"1": "(4, 2)"}), "aten.view.default(a0, [4, 2])"),
        (call("aten.gelu.default", ["args[0]"], {"approximate": "tanh"}), "aten.gelu.default(a0, approximate='tanh')"),
        (
            call("aten._to_copy.default", ["args[0]"], {"dtype": "torch.bfloat16", "device": "cpu"}),
            "aten._to_copy.default(a0, dtype=torch.bfloat16, device=torch.device('cpu'))",
        ),
    ],
)
def test_a_call_is_written_as_it_was_made(given: KeptCall, line: str) -> None:
    assert f"    found = torch.ops.{line}\n" in source_of(given)


def test_only_the_results_that_are_tensors_are_given_back() -> None:
    text = source_of(call("aten.native_layer_norm_backward.default", ["args[0]"], {}, "out[0]", "out[2]"))
    assert text.endswith("return [found[0], found[2]]")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (call("mylib.fused.default", ["args[0]"], {}), "does not come with torch"),
        (call("c10d.allreduce_.default", ["args[0][0]"], {}), "meets other ranks"),
        (call("aten.add.Tensor", ["args[0].x"], {}), r"args\[0\]\.x is no list"),
        (call("aten.view.default", ["args[0]"], {"1": "x" * 120}), "cut"),
        (call("aten.stack.default", ["args[0][0]"], {"0": "object"}), "not recorded whole"),
        (call("aten.add.Tensor", ["args[0]"], {}, "out.first"), "is no tensor of a list"),
    ],
)
def test_what_the_record_does_not_hold_is_said(given: KeptCall, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        source_of(given)


def capture(run: Path, epsilon: float, *, dump: str = "norm", drop: float = 0.0) -> Path:
    torch.manual_seed(0)
    model = torch.nn.Sequential()
    model.add_module("up", torch.nn.Linear(8, 16))
    model.add_module("norm", torch.nn.LayerNorm(16, eps=epsilon))
    model.add_module("drop", torch.nn.Dropout(drop))
    with paritrace.trace(run, level=("op",), steps=(0, 1), dump=(dump,), diff=False):
        torch.autograd.backward(model(torch.randn(4, 8)).square().mean())
    return run


def compared(a: Path, b: Path) -> Comparison:
    with open_run(a) as ours, open_run(b) as theirs:
        return compare(ours, theirs).result


@pytest.mark.slow
def test_both_calls_come_out_bit_for_bit_by_themselves(tmp_path: Path) -> None:
    found = compared(capture(tmp_path / "a", 1e-5), capture(tmp_path / "b", 1e-4))
    folder = tmp_path / "capsule"
    folder.mkdir()
    made = operator_capsule(found, found.findings[0], folder)
    assert made.facts.title == "F1: the call of aten.native_layer_norm.default in norm, step 0"
    assert made.checked.count("the recorded bits") == 6
    assert "apart      out[0]" in made.checked
    tensors = folder / "baseline-rank0.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"\x7f")
    command = (sys.executable, "-I", str(folder / "run.py"))
    done = run_child(command, directory=tmp_path, environment={}, deadline_seconds=300.0)
    assert done.status == 1
    assert "is not the file that this capsule was made with" in done.stderr


def test_an_operator_that_draws_is_refused(tmp_path: Path) -> None:
    a = capture(tmp_path / "a", 1e-5, dump="drop", drop=0.5)
    found = compared(a, capture(tmp_path / "b", 1e-5, dump="drop", drop=0.25))
    (tmp_path / "capsule").mkdir()
    finding = next(one for one in found.findings if one.place.module == "drop")
    with pytest.raises(EvidenceError, match="draws random numbers") as refused:
        operator_capsule(found, finding, tmp_path / "capsule")
    assert refused.value.code == "not_traced"


def test_a_run_that_did_not_keep_it_is_refused_with_the_way_to_it(tmp_path: Path) -> None:
    found = compared(capture(tmp_path / "a", 1e-5), capture(tmp_path / "b", 1e-4, dump="up"))
    with pytest.raises(EvidenceError, match=r"is not kept whole \(.*b: args\[0\]") as refused:
        operator_capsule(found, found.findings[0], tmp_path)
    assert refused.value.code == "not_dumped"
    assert "--level op --steps 0:1 --dump norm" in refused.value.fix
    assert not (tmp_path / "run.py").exists()


def test_a_finding_that_is_no_operator_call_is_refused(tmp_path: Path) -> None:
    sides = []
    for name, epsilon in (("a", 1e-5), ("b", 1e-4)):
        torch.manual_seed(0)
        norm = torch.nn.LayerNorm(16, eps=epsilon)
        with paritrace.trace(tmp_path / name, level="module", steps=(0, 1), diff=False):
            torch.autograd.backward(norm(torch.randn(4, 16)).square().mean())
        sides.append(tmp_path / name)
    found = compared(sides[0], sides[1])
    with pytest.raises(RequestError) as refused:
        operator_capsule(found, found.findings[0], tmp_path)
    assert refused.value.code == "no_operator_call"
