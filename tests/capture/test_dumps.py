"""`--dump`: slots of selected calls on disk with the bits they had, within a budget, disturbing nothing (CA-9)."""

import hashlib
import subprocess
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import paritrace
from benchmarks import warm
from paritrace.capture.session import Workload, begin
from paritrace.capture.settings import CaptureSettings, Selection, parse_levels
from paritrace.errors import RequestError
from paritrace.evidence.distributed import Placement
from paritrace.evidence.dumps import Dumped
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.pack import pack
from paritrace.runs.reading import open_run
from paritrace.runs.removal import remove_run
from paritrace.runs.tensors import dumped_slots, open_tensor
from paritrace.runs.verify import Finding, verify
from tests.capture.kept import bytes_of, keep
from tests.cases.captures import DEADLINE_SECONDS, run_bare, write_script

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e8m0fnu,
]
SEEN = ("function:paritrace.observe(*)",)


def random_bits(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """A tensor of any bits, NaNs of all payloads among them."""
    count = int(np.prod(shape)) * dtype.itemsize
    data = np.random.default_rng(5).integers(0, 2 if dtype is torch.bool else 256, count, np.uint8)
    return torch.frombuffer(bytearray(data.tobytes()), dtype=torch.uint8).view(dtype).reshape(shape)


@pytest.mark.parametrize(("level", "dtypes"), [("module", DTYPES), ("op", DTYPES[::6])])
def test_bits_of_every_dtype_and_layout_survive(tmp_path: Path, level: str, dtypes: list[torch.dtype]) -> None:
    wanted: dict[str, torch.Tensor] = {}
    for dtype in dtypes:
        whole = random_bits(dtype, 4, 6, 2)
        name = str(dtype).partition(".")[2]
        wanted |= {
            f"{name} whole": whole,
            f"{name} transposed": whole.transpose(0, 2),
            f"{name} slice": whole[1:3, ::2, 1:],
            f"{name} scalar": whole[0, 0, 0],
            f"{name} empty": whole[:, 2:2],
            f"{name} expanded": whole[:1].expand(3, 6, 2),
        }

    def work() -> None:
        for name, tensor in wanted.items():
            paritrace.observe(name, tensor)

    kept = keep(tmp_path / "run", work, level=level, dump=SEEN)

    found = {(kept.function(line), line.side): line for line in kept.dumped}
    assert len(found) == 2 * len(wanted)
    whole_of = kept.tensors()
    for name, tensor in wanted.items():
        for side in "io":
            line = found[f"paritrace.observe({name})", side]
            stored = whole_of[line.tensor]
            assert (line.dtype, line.shape) == (str(tensor.dtype).partition(".")[2], tuple(tensor.shape)), name
            assert (stored.dtype, stored.shape) == (line.dtype, line.shape), name
            assert stored.data.tobytes() == bytes_of(tensor), name
            assert stored.array.shape[: tensor.dim()] == tuple(tensor.shape), name


def test_slots_of_a_module_its_weights_and_its_gradient_are_kept_and_nothing_of_others(tmp_path: Path) -> None:
    torch.manual_seed(1)
    last = torch.nn.Linear(4, 2)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), last)
    batch = torch.randn(5, 3)
    inner = model[1](model[0](batch)).detach()

    kept = keep(tmp_path / "run", lambda: model(batch).sum().backward(), dump=("2",))

    names = [(line.side, line.name, line.shape) for line in kept.dumped]
    assert names == [
        ("i", "args[0]", (5, 4)),
        ("i", "weight", (2, 4)),
        ("i", "bias", (2,)),
        ("o", "out", (5, 2)),
        ("o", "grad", (5, 2)),
    ]
    assert kept.tensor(kept.dumped[0].tensor).array.tobytes() == bytes_of(inner)
    assert kept.tensor(kept.dumped[1].tensor).array.tobytes() == bytes_of(last.weight)
    assert np.array_equal(kept.tensor(kept.dumped[4].tensor).array, np.ones((5, 2), np.float32))


def test_operators_in_place_and_their_uninitialised_arguments(tmp_path: Path) -> None:
    a, b = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    before = bytes_of(a)

    def work() -> None:
        a.add_(b)
        torch.empty(4).fill_(7.0)

    kept = keep(
        tmp_path / "run", work, level="op", dump=("function:aten.add_*", "function:aten.fill_*", "function:aten.empty*")
    )

    slots = {(kept.function(line), line.side, line.name): line.tensor for line in kept.dumped}
    assert kept.tensor(slots["aten.add_.Tensor", "i", "args[0]"]).data.tobytes() == before
    assert kept.tensor(slots["aten.add_.Tensor", "o", "out"]).data.tobytes() == bytes_of(a)
    assert kept.tensor(slots["aten.fill_.Scalar", "o", "out"]).array.tolist() == [7.0] * 4
    assert slots["aten.fill_.Scalar", "i", "args[0]"] == Gap(CaptureGap.UNINITIALISED)
    assert [gap for name, gap in slots.items() if "empty" in name[0]] == [Gap(CaptureGap.UNINITIALISED)]
    assert kept.gaps == [], "what has no bytes is no loss"


def test_equal_tensors_are_stored_once(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(3):
            paritrace.observe("x", torch.arange(100.0))
        paritrace.observe("y", torch.arange(100.0).reshape(10, 10))
        paritrace.observe("z", torch.arange(100.0).view(torch.int32))

    kept = keep(tmp_path / "run", work, dump=SEEN)

    assert len(kept.dumped) == 10
    assert kept.files == len({line.tensor for line in kept.dumped}) == 3, "another shape or dtype is another tensor"


def test_what_the_budget_leaves_out_is_a_gap_with_its_name(tmp_path: Path) -> None:
    def work() -> None:
        for number in range(4):
            paritrace.observe(f"x{number}", torch.full((1000,), float(number)))
        paritrace.observe("again", torch.zeros(1000))

    kept = keep(tmp_path / "run", work, dump=SEEN, dump_bytes=2 * 4200)

    left_out = [line for line in kept.dumped if isinstance(line.tensor, Gap)]
    assert [kept.function(line) for line in left_out] == ["paritrace.observe(x2)"] * 2 + ["paritrace.observe(x3)"] * 2
    assert all(isinstance(line.tensor, Gap) and line.tensor.gap is CaptureGap.OVER_BUDGET for line in left_out)
    assert kept.files == 2
    assert sum(path.stat().st_size for path in (kept.path / "tensors").iterdir()) <= 2 * 4200
    assert [mark.reason for mark in kept.gaps] == [CountedGap.OVER_BUDGET] * 4
    with open_run(kept.path) as run:
        (session,) = run.sessions
        assert session.receipt is not None
        assert session.receipt.counts.gaps == {"over_budget": 4}


def test_steps_outside_the_span_are_not_kept(tmp_path: Path) -> None:
    def work() -> None:
        for step in range(3):
            paritrace.step(step)
            paritrace.observe("x", torch.full((2,), float(step)))

    kept = keep(tmp_path / "run", work, dump=SEEN)

    assert [kept.tensor(line.tensor).array.tolist() for line in kept.dumped] == [[0.0, 0.0]] * 2


def test_a_tensor_without_bytes_keeps_its_own_gap(tmp_path: Path) -> None:
    def work() -> None:
        paritrace.observe("meta", torch.empty(3, device="meta"))
        paritrace.observe("sparse", torch.eye(2).to_sparse())

    kept = keep(tmp_path / "run", work, dump=SEEN)

    reasons = [line.tensor.gap for line in kept.dumped if isinstance(line.tensor, Gap)]
    assert reasons == [CaptureGap.NO_DATA] * 2 + [CaptureGap.UNSUPPORTED_LAYOUT] * 2


def test_nothing_of_the_workload_is_held_or_changed(tmp_path: Path) -> None:
    """CA-33, CA-34."""
    gone: list[weakref.ref[torch.Tensor]] = []
    storage = torch.arange(8.0)

    def work() -> None:
        for _ in range(2):
            tensor = storage * 2
            gone.append(weakref.ref(tensor))
            paritrace.observe("x", tensor)
            del tensor
            assert gone[-1]() is None
        paritrace.observe("storage", storage)

    keep(tmp_path / "run", work, dump=SEEN)

    assert storage.untyped_storage().resizable()


def test_a_run_with_tensors_verifies_packs_and_is_removed(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    kept = keep(run_dir, lambda: paritrace.observe("x", torch.arange(3.0)), dump=SEEN)
    (path,) = (run_dir / "tensors").iterdir()
    with open_run(run_dir) as run:
        assert verify(run).verdict is Finding.INTACT
        assert [row.sha256 for row in run.envelope.attachments if row.kind == "tensor"] == [kept.dumped[0].tensor]
    pack(run_dir, tmp_path / "run.tar.zst")
    with open_run(tmp_path / "run.tar.zst") as run:
        (session,) = run.sessions
        slot = dumped_slots(run, session)[kept.dumped[0].call, "i", "tensor"]
        assert isinstance(slot.tensor, str)
        assert open_tensor(run, slot.tensor).array.tolist() == [0.0, 1.0, 2.0]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with open_run(run_dir) as run:
        assert verify(run).verdict is Finding.CHANGED
        with pytest.raises(Exception, match="other bytes than its name says"):
            open_tensor(run, path.stem)
    path.unlink()
    with open_run(run_dir) as run:
        assert verify(run).verdict is Finding.MISSING
        with pytest.raises(Exception, match="keeps no tensor"):
            open_tensor(run, path.stem)
    remove_run(run_dir)
    assert not run_dir.exists()


def test_level_digest_records_no_call_to_keep() -> None:
    with pytest.raises(RequestError) as refused:
        CaptureSettings(levels=parse_levels(("digest",)), dump=Selection(select=("*",)))
    assert refused.value.code == "dump_without_calls"


def test_of_a_distributed_tensor_the_local_part_is_kept_and_placed(tmp_path: Path) -> None:
    """Torch's own back end for looking without communicating: of two ranks only rank 1 exists."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    try:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        part = torch.arange(12.0).reshape(3, 4).t()
        spread = DTensor.from_local(part, mesh, [Shard(1)], run_check=False)
        kept = keep(tmp_path / "run", lambda: paritrace.observe("x", spread), dump=SEEN)
    finally:
        dist.destroy_process_group()

    line = kept.dumped[0]
    assert (line.dtype, line.shape) == ("float32", (4, 3))
    assert kept.tensor(line.tensor).data.tobytes() == bytes_of(part)
    with open_run(kept.path) as run:
        placements = [record for record in run.records("rank-0") if isinstance(record, Placement)]
    assert [(placed.placements, placed.shape) for placed in placements] == [(("S(1)",), (4, 6))]


KILLED = """
import os, signal, sys, threading
import numpy as np
import torch
import paritrace

threading.Thread(target=lambda: (sys.stdin.readline(), os.kill(os.getpid(), signal.SIGKILL)), daemon=True).start()
with paritrace.trace(sys.argv[1], diff=False, dump=["function:paritrace.observe(*)"], steps=(0, 1)):
    for number in range(100_000):
        paritrace.observe("x", torch.full((100_000,), float(number)))
        print(number, flush=True)
"""


@pytest.mark.slow
def test_killed_while_it_keeps_no_name_lies(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    process = subprocess.Popen(
        [warm.python(), "-c", KILLED, str(run_dir)],
        env=warm.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        for _ in range(5):
            process.stdout.readline()
        process.stdin.write("now\n")
        process.stdin.flush()
        process.stdout.read()
        assert process.wait(DEADLINE_SECONDS) == -9
    stored = [path for path in (run_dir / "tensors").iterdir() if not path.name.startswith(".")]
    assert len(stored) >= 5
    for path in stored:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
    with open_run(run_dir) as run:
        assert verify(run).verdict is not Finding.CHANGED


@pytest.mark.slow
def test_a_limit_on_files_ends_the_keeping_and_not_the_training(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", TRAINING)
    bare = run_bare(script, "2")
    run_dir = tmp_path / "run"
    command = [
        "run",
        "-o",
        str(run_dir),
        "--golden",
        "*",
        "--dump",
        "*",
        "--no-diff",
        str(script),
        "2",
    ]
    done = subprocess.run(
        [warm.python(), "-c", LIMITED, *command],
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (bare.status, bare.stdout)
    assert "the run is incomplete" in done.stderr
    assert "Traceback" not in done.stderr
    with open_run(run_dir) as run:
        (session,) = run.sessions
        assert session.receipt is not None
        assert session.receipt.counts.gaps["disk_full"] > 0
        gaps = [
            line.tensor for line in run.records("rank-0") if isinstance(line, Dumped) and isinstance(line.tensor, Gap)
        ]
    assert {gap.gap for gap in gaps} == {CaptureGap.CAPTURE_ERROR}


LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
runpy.run_module("paritrace", run_name="__main__", alter_sys=True)
"""

TRAINING = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 20_000))
for step in range(int(sys.argv[1])):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    print(loss.item().hex(), flush=True)
"""


def test_what_a_collective_wrote_is_kept_when_it_has_completed(tmp_path: Path) -> None:
    """CA-31: at dispatch the output is in flight; the last line of a slot counts."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        tensor = torch.arange(5.0)

        def work() -> None:
            launched = dist.all_reduce(tensor, async_op=True)
            assert launched is not None
            launched.wait()

        kept = keep(tmp_path / "run", work, level="op", dump=("function:c10d.allreduce*",))
    finally:
        dist.destroy_process_group()

    first, last = (line.tensor for line in kept.dumped if line.side == "o")
    assert first == Gap(CaptureGap.IN_FLIGHT)
    assert kept.tensor(last).array.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_what_was_asked_for_and_never_came_is_said_at_the_end(tmp_path: Path) -> None:
    capture = begin(
        tmp_path / "run",
        CaptureSettings(dump=Selection(select=("nobody.*", "*")), golden=("", "nowhere"), diff=False),
        workload=Workload(root=tmp_path, main=None, argv=()),
    )
    torch.nn.Linear(2, 2)(torch.ones(1, 2))
    capture.end(SessionStatus.COMPLETED, metadata={})
    assert "--dump nobody.* named no call" in capture.summary
    assert "--golden nowhere named no call" in capture.summary
    assert capture.summary.count("named no call") == 2
