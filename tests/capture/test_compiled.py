"""Compiled code stays compiled under capture, and its regions are calls with a border (CA-15)."""

from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

import paritrace
from benchmarks.same_bits.workloads import STEPS, WORKLOADS
from paritrace.evidence.calls import Call, EndMark, Flag, Function
from paritrace.evidence.gaps import CountedGap
from paritrace.runs.reading import open_run

TRAININGS = ("compiled model", "compiled function")


def compiled_graphs(name: str) -> int:
    """How many graphs the compiler made for a training, run as it is here."""
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    for _ in WORKLOADS[name]():
        pass
    return int(counters["stats"]["unique_graphs"])


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("module",), ("op",), ("module", "op")], ids="-".join)
@pytest.mark.parametrize("name", TRAININGS)
def test_a_compiled_training_has_the_same_graphs_and_its_regions_are_recorded(
    name: str, levels: tuple[str, ...], tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    bare = compiled_graphs(name)
    assert bare > 0
    with paritrace.trace(tmp_path / "run", level=levels, steps=(0, 1000), diff=False):
        assert compiled_graphs(name) == bare
    with open_run(tmp_path / "run") as run:
        found = list(run.records("rank-0"))
    functions = {record.id: record.name for record in found if isinstance(record, Function)}
    calls = [record for record in found if isinstance(record, Call)]
    regions = [call for call in calls if call.flags & Flag.COMPILED]
    if "op" in levels:
        at_op = [call for call in regions if functions[call.function] == "inductor.compiled_region"]
        assert len(at_op) >= 2 * STEPS, "a forward and a backward in each step"
        assert all(call.inputs and call.outputs for call in at_op)
    if "module" in levels and name == "compiled model":
        assert len([call for call in regions if "OptimizedModule" in functions[call.function]]) == STEPS
    fused = {"aten.gelu.default", "aten._softmax.default", "aten.sin.default", "aten.native_layer_norm.default"}
    assert not fused & {functions[call.function] for call in calls}, "an operator of a compiled region ran eagerly"
    (end,) = [record for record in found if isinstance(record, EndMark)]
    assert CountedGap.CAPTURE_ERROR not in end.gaps
    if levels == ("module",) and name == "compiled model":
        assert end.gaps[CountedGap.NOT_OBSERVABLE_COMPILED] == STEPS


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("module",), ("module", "op")], ids="-".join)
def test_p6_a_strict_export_is_as_without_a_capture_and_what_follows_is_observed(
    levels: tuple[str, ...], tmp_path: Path
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    example = (torch.ones(2, 4),)
    bare = torch.export.export(model, example, strict=True).graph_module.code
    with paritrace.trace(tmp_path / "run", level=levels, diff=False):
        model(*example)
        seen = torch.export.export(model, example, strict=True).graph_module.code
        model(*example)
    assert seen == bare
    with open_run(tmp_path / "run") as run:
        found = list(run.records("rank-0"))
    (end,) = [record for record in found if isinstance(record, EndMark)]
    assert end.gaps[CountedGap.NOT_OBSERVABLE_COMPILED] == 1
    functions = {record.id: record.name for record in found if isinstance(record, Function)}
    names = [functions[record.function] for record in found if isinstance(record, Call)]
    assert names.count("torch.nn.modules.container.Sequential") == 2
    assert names.count("aten.relu.default") == 2 * ("op" in levels)
