"""Whole trainings on real ranks: the parts of every layout unite to the model of one process (CA-3, CA-28, CA-29)."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks import warm
from paritrace.evidence.boxes import Box
from paritrace.evidence.calls import Call, Detail, Kind, Name, Scope, State, StateNames, StepMark
from paritrace.evidence.codec import Record
from paritrace.evidence.distributed import Group, Mesh, Placement
from paritrace.evidence.fingerprints import sample_indices
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.journal import Loss
from paritrace.evidence.placements import box_samples
from paritrace.runs.reading import open_run
from tests.capture import placed_training

SCRIPT = Path(placed_training.__file__)
DEADLINE_SECONDS = 240  # a launch takes ten seconds alone; the machine may be busy
GROUPS = ("parameter", "gradient", "optimizer_state")

pytestmark = pytest.mark.slow


@dataclass
class Part:
    """A recorded value of some tensor on one rank: where it lies in the whole, as a reader of the format sees it."""

    shape: tuple[int, ...]  # the whole's
    offset: tuple[int, ...]
    size: tuple[int, ...]
    value: str

    @property
    def box(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.offset, self.size


@dataclass
class Journal:
    """What one rank wrote, indexed."""

    records: list[Record]
    kinds: dict[int, Kind] = field(default_factory=dict[int, Kind])
    placements: dict[int, Placement] = field(default_factory=dict[int, Placement])

    def __post_init__(self) -> None:
        self.kinds = {record.id: record for record in self.records if isinstance(record, Kind)}
        self.placements = {record.kind: record for record in self.records if isinstance(record, Placement)}

    def of(self, cls: type[Any]) -> Iterator[Any]:
        return (record for record in self.records if isinstance(record, cls))

    def part(self, kind: int, value: str) -> Part:
        size = self.kinds[kind].shape
        placed = self.placements.get(kind)
        if placed is None:
            return Part(size, (0,) * len(size), size, value)
        assert len(placed.offset) == len(placed.shape), "in these layouts every part is one box"
        return Part(placed.shape, placed.offset, size, value)

    def states(self, step: int) -> dict[tuple[str, str], Part]:
        """(group, name) -> part, of the tensors a step begins with and of its gradients."""
        names = {record.id: record for record in self.of(StateNames)}
        found: dict[tuple[str, str], Part] = {}
        for state in self.of(State):
            known = names[state.names]
            if state.step == step and known.group in GROUPS:
                for name, kind, value in zip(known.names, known.kinds, state.values, strict=True):
                    assert isinstance(value, str)
                    found[known.group, name] = self.part(kind, value)
        return found

    def samples(self, step: int) -> dict[tuple[str, str], Part]:
        """(module, slot) -> samples of the parameters among the inputs of the first call of each module."""
        names = {record.id: record.text for record in self.of(Name)}
        scopes = {record.id: record.module for record in self.of(Scope)}
        details = {(detail.call, detail.side, detail.slot): detail for detail in self.of(Detail)}
        found: dict[tuple[str, str], Part] = {}
        for call in self.of(Call):
            for index, slot in enumerate(call.inputs):
                detail = details.get((call.id, "i", index))
                if detail is not None and names[slot.name] in ("weight", "bias"):
                    part = self.part(slot.kind, detail.samples)
                    found.setdefault((scopes[call.scope], names[slot.name]), part)
        return found


Ranks = list[Journal]


def journals(run: Path, ranks: int) -> Ranks:
    with open_run(run) as opened:
        found = [list(opened.records(f"rank-{rank}")) for rank in range(ranks)]
    return [Journal([record for record in records if not isinstance(record, Loss)]) for records in found]


def launch(folder: Path, ranks: int, *layouts: str) -> None:
    """Trains on so many gloo ranks; torchrun takes a free port."""
    subprocess.run(
        [
            *(warm.python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)),
            *(str(SCRIPT), str(folder), *layouts),
        ],
        env=warm.environment(),
        timeout=DEADLINE_SECONDS,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captured: `fsdp` and `tp` on two ranks, `fsdp_tp` and `hsdp` on four, and each one's model in one process."""
    folder = tmp_path_factory.mktemp("placed")
    launch(folder, 2, "fsdp", "tp")
    launch(folder, 4, "fsdp_tp", "hsdp")
    for layout in ("bare", "bare_tp"):
        placed_training.captured(folder, layout)
    return folder


LAYOUTS = [("fsdp", 2, "bare"), ("tp", 2, "bare_tp"), ("fsdp_tp", 4, "bare_tp"), ("hsdp", 4, "bare")]
ONLY_FSDP = ("fsdp", "hsdp")


def united(parts: list[Part]) -> int:
    """The digests of the distinct parts of one tensor, added up; that they partition it is checked."""
    distinct = {part.box: part for part in parts}
    assert len({part.shape for part in parts}) == 1
    num_elements = sum(product(size) for _, size in distinct)
    assert num_elements == product(parts[0].shape)
    for part in parts:
        assert part.value == distinct[part.box].value, "replicas agree"
    return sum(int(part.value, 16) for part in distinct.values()) % (1 << 64)


def product(sizes: tuple[int, ...]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


@pytest.mark.parametrize(("layout", "ranks", "whole"), LAYOUTS)
def test_digests_of_the_shards_add_up_to_the_whole_models(runs: Path, layout: str, ranks: int, whole: str) -> None:
    """CA-29: parameters before the first step; with FSDP alone the arithmetic is the same, so all there is, always."""
    (bare,), parts = journals(runs / whole, 1), journals(runs / layout, ranks)
    for step, groups in ((0, ("parameter",)), (1, GROUPS)) if layout in ONLY_FSDP else ((0, ("parameter",)),):
        expected = {key: part for key, part in bare.states(step).items() if key[0] in groups}
        found = [{key: part for key, part in journal.states(step).items() if key[0] in groups} for journal in parts]
        assert len(expected) == (10 if groups == ("parameter",) else 10 + 10 + 30)
        assert all(list(states) == list(expected) for states in found)
        for key, part in expected.items():
            assert united([states[key] for states in found]) == int(part.value, 16), key
    assert any(part.size != part.shape for part in parts[-1].states(0).values()), "something is in parts"


@pytest.mark.parametrize(("layout", "ranks", "whole"), LAYOUTS)
def test_samples_of_the_shards_unite_to_the_whole_tensors(runs: Path, layout: str, ranks: int, whole: str) -> None:
    """CA-28: which of the whole's samples a rank wrote follows from its placement alone."""
    (bare,), parts = journals(runs / whole, 1), journals(runs / layout, ranks)
    found = [journal.samples(0) for journal in parts]
    for key, expected in bare.samples(0).items():
        indices = sample_indices(product(expected.shape))
        values = dict(zip(indices, elements(expected.value), strict=True))
        united_values: dict[int, str] = {}
        for samples in found:
            part = samples[key]
            owned, _ = box_samples(Box(part.offset, part.size), part.shape)
            united_values |= dict(zip(owned, elements(part.value), strict=True))
        assert united_values == values, key
    sharded = [part for part in found[0].values() if part.size != part.shape]
    assert bool(sharded) is (layout not in ONLY_FSDP), "FSDP2 has its parameters whole inside of forward"


def elements(samples: str) -> list[str]:
    """Each sampled float32 as eight hex digits."""
    return [samples[at : at + 8] for at in range(0, len(samples), 8)]


def test_meshes_say_where_each_rank_is(runs: Path) -> None:
    """CA-3: coordinates are row-major, and each dimension names its group."""
    for rank, journal in enumerate(journals(runs / "fsdp_tp", 4)):
        groups = {record.id: record for record in journal.of(Group)}
        (mesh,) = [record for record in journal.of(Mesh) if record.dims == ("dp", "tp")]
        assert (mesh.shape, mesh.coordinate, mesh.basis) == ((2, 2), divmod(rank, 2), "device_mesh")
        assert [groups[group].key for group in mesh.groups] == ["dp", "tp"]
        row, column = divmod(rank, 2)
        assert [groups[group].ranks for group in mesh.groups] == [(column, column + 2), (2 * row, 2 * row + 1)]
        meshes = {record.id: record for record in journal.of(Mesh)}
        placed = {(meshes[record.mesh].dims, record.placements) for record in journal.of(Placement)}
        assert {
            (("dp", "tp"), ("_S(0,2)", "S(0)")),
            (("dp", "tp"), ("S(0)", "S(1)")),
            (("dp", "tp"), ("S(0)", "R")),
        } <= placed


@pytest.mark.parametrize(("layout", "ranks", "whole"), LAYOUTS)
def test_a_norm_of_shards_does_not_pass_for_the_whole_models(runs: Path, layout: str, ranks: int, whole: str) -> None:
    (bare,) = journals(runs / whole, 1)
    assert all(isinstance(mark.grad_norm, str) for mark in bare.of(StepMark))
    for journal in journals(runs / layout, ranks):
        marks = list(journal.of(StepMark))
        assert marks
        for mark in marks:
            assert isinstance(mark.grad_norm, Gap)
            assert mark.grad_norm.gap is CaptureGap.NOT_OBSERVED
            assert mark.grad_norm.detail is not None
            assert mark.grad_norm.detail.startswith("0x1.")
            assert mark.grad_norm.detail.endswith(", without parts on other ranks")


@pytest.mark.parametrize(("layout", "ranks", "whole"), LAYOUTS)
def test_reading_parts_leaves_the_workloads_tensors_alone(runs: Path, layout: str, ranks: int, whole: str) -> None:
    """CA-33, CA-34: storages stay resizable, and no gradient outlives the workload's own use of it."""
    expected = json.loads((runs / f"{whole}.0.json").read_text())
    for rank in range(ranks):
        noticed = json.loads((runs / f"{layout}.{rank}.json").read_text())
        assert (noticed["resizable"], noticed["alive"]) == ([True], 0)
        assert noticed["gradients"] == expected["gradients"] == 20
        if layout in ONLY_FSDP:
            assert noticed["losses"] == expected["losses"]
