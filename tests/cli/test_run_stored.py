"""`paritrace run --store`: refused before the workload starts, published meanwhile, killed and continued (ST-17)."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pytest

from benchmarks import warm
from paritrace.cli.entry import status_of
from paritrace.runs.reading import open_run
from paritrace.runs.staged import TROUBLE
from paritrace.store.restoring import restore
from paritrace.store.targets import open_target
from paritrace.store.verifying import StoreVerdict, verify_store

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 240.0
STEPS_SEEN = 12


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workload that leaves a sign when it is started."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("PARITRACE_") or name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            monkeypatch.delenv(name)
    path = tmp_path / "train.py"
    path.write_text("open('started', 'w').close()\n")
    return path


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--store", "store"], "no_staging"),
        (["--store", "store", "--staging", "store/staging"], "staging_in_store"),
        (["--store", "ftp://x", "--staging", "staging"], "bad_target"),
        (["--store", "store", "--staging", "staging", "--node-id", "a/b"], "bad_id"),
        (["--store", "store", "--staging", "staging", "--run-id", ".."], "bad_id"),
        (["--store", "store", "--staging", "staging", "--perturb", "8"], "store_with_draws"),
        (["--store", "store", "--staging", "staging", "--sync-interval", "0"], "usage"),
    ],
)
def test_what_can_be_refused_is_refused_before_the_workload_starts(
    script: Path, capfd: pytest.CaptureFixture[str], options: list[str], code: str
) -> None:
    assert status_of(["run", "-o", "RUN", *options, str(script)]) == 125
    assert f"[{code}]" in capfd.readouterr().err
    assert not Path("started").exists()
    assert not Path("RUN").exists()


RANK = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("variables", "options", "code"),
    [
        (RANK, (), "no_run_id"),
        (RANK, ("--launcher", "torchrun"), "store_inside_launcher"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, ("--run-id", "r"), "no_local_rank"),
        ({"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}, (), "bad_launch_environment"),
        (RANK | {"PARITRACE_STAGING_DIR": ""}, ("--run-id", "r"), "no_staging"),
        (RANK | {"PARITRACE_STAGING_DIR": "store/x"}, ("--run-id", "r"), "staging_in_store"),
    ],
)
def test_st17_what_a_rank_of_a_launcher_lacks_is_refused_by_name(
    script: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: tuple[str, ...],
    code: str,
) -> None:
    for name, text in {"PARITRACE_STORE": "store", "PARITRACE_STAGING_DIR": "staging", **variables}.items():
        monkeypatch.setenv(name, text)
    assert status_of(["run", "-o", "RUN", *options, str(script)]) == 125
    assert f"[{code}]" in capfd.readouterr().err
    assert not Path("started").exists()


def test_st1_staging_on_shared_storage_is_refused(
    script: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = script.parent / "mountinfo"
    mounts.write_text(
        f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {script.parent}/staging rw - nfs4 server:/export rw\n"
    )
    monkeypatch.setattr("paritrace.process.mounts.MOUNTS", mounts)
    assert status_of(["run", "-o", "RUN", "--store", "store", "--staging", "staging/here", str(script)]) == 125
    assert "[staging_is_shared]" in capfd.readouterr().err
    assert not Path("started").exists()


def test_a_target_of_another_run_is_refused(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mark = Path("store/.paritrace-bundles/run.json")
    mark.parent.mkdir(parents=True)
    mark.write_text('{"format":"paritrace-store-run","run_id":"other","type":"store_run","version":"1.0"}\n')
    assert status_of(["run", "-o", "RUN", "--store", "store", "--staging", "staging", str(script)]) == 125
    assert "refused:" in capfd.readouterr().err
    assert not Path("started").exists()


def environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PARITRACE_")}
    return kept | warm.SERVED


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def on_node(number: int, port: int, *, python: str, num_steps: int) -> list[str]:
    """The command of one of two nodes, with one rank each."""
    launcher = (
        f"{python} -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --node-rank {number}"
        f" --master-addr 127.0.0.1 --master-port {port}"
    )
    return [
        *(python, "-m", "paritrace", "run", "-o", f"RUN-{number}", "--level", "op", "--steps", "0:1000000"),
        *("--store", "store", "--staging", f"staging-{number}", "--node-id", f"node-{number}"),
        *("--run-id", "run-of-two", "--sync-interval", "0.3", "--sync-batch-mib", "0.05"),
        *("--launcher", launcher, str(ROOT / "tests" / "cli" / "staged_training.py"), str(num_steps)),
    ]


class Nodes:
    """Two nodes on one machine; what their ranks say comes in `lines`."""

    def __init__(self, folder: Path, *, python: str = sys.executable, num_steps: int) -> None:
        port = free_port()
        self.folder = folder
        self.lines: Queue[str] = Queue()
        self.pids: set[int] = set()
        self.children = [
            subprocess.Popen(
                on_node(number, port, python=python, num_steps=num_steps),
                cwd=folder,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in (0, 1)
        ]
        self.errors: dict[int, str] = defaultdict(str)
        self._threads = [threading.Thread(target=self._read, args=(one,), daemon=True) for one in self.children]
        self._threads += [threading.Thread(target=self._read_errors, args=(number,), daemon=True) for number in (0, 1)]
        for thread in self._threads:
            thread.start()

    def _read(self, child: "subprocess.Popen[str]") -> None:
        assert child.stdout is not None
        for line in child.stdout:
            self.lines.put(line)

    def _read_errors(self, number: int) -> None:
        stream = self.children[number].stderr
        assert stream is not None
        for line in stream:
            self.errors[number] += line

    def wait_for_steps(self, number: int) -> None:
        """Until the ranks have told of so many steps in all."""
        for _ in range(number):
            line = self.lines.get(timeout=WAIT_SECONDS)
            self.pids |= {int(word) for word in line.split()[2:]}

    def kill(self) -> None:
        """Kill -9 of everything: ranks, launchers and the publishing commands."""
        for child in self.children:
            child.kill()
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self) -> list[int]:
        statuses = [child.wait(timeout=WAIT_SECONDS) for child in self.children]
        for thread in self._threads:
            thread.join(timeout=WAIT_SECONDS)
        return statuses


def final_sync(folder: Path, number: int) -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-m", "paritrace", "store", "sync", "--final", "--store", "store"),
        *("--staging", f"staging-{number}", "--run-id", "run-of-two"),
        *("--node-id", f"node-{number}", "--rank", str(number), "--sync-batch-mib", "0.02"),
    ]
    return subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def journal_of(folder: Path, rank: int) -> bytes:
    (path,) = folder.glob(f"**/rank-{rank}/sessions/rank-{rank}/calls.jsonl")
    return path.read_bytes()


def complete(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def rank_command(folder: Path, rank: int, script: Path) -> "subprocess.Popen[str]":
    """One of two ranks, as a launcher of somebody else starts it."""
    given = {
        "PARITRACE_STORE": "store",
        "PARITRACE_STAGING_DIR": "staging",
        "PARITRACE_RUN_ID": "launched",
        "PARITRACE_NODE_ID": "n",
        "PARITRACE_SYNC_INTERVAL_SECONDS": "0.3",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "x",
        "MASTER_PORT": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "paritrace", "run", "-o", "RUN", str(script)],
        cwd=folder,
        env=environment() | given,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_st18_ranks_of_a_launcher_publish_themselves_each_its_own(tmp_path: Path) -> None:
    """No outer command: each rank stages and publishes itself, local rank 0 the node, rank 0 makes RUN."""
    script = tmp_path / "train.py"
    script.write_text("import os, sys\nsys.exit(5 * int(os.environ['RANK']))\n")
    ranks = [rank_command(tmp_path, rank, script) for rank in (0, 1)]
    errors = [one.communicate(timeout=WAIT_SECONDS)[1] for one in ranks]
    assert [one.returncode for one in ranks] == [0, 5], errors
    assert ["node n: 1 rank, " in text for text in errors] == [True, True], errors
    found = verify_store(open_target(str(tmp_path / "store")))
    assert found.verdict is StoreVerdict.INTACT
    assert [(rank.rank, rank.is_complete) for rank in found.ranks] == [(0, True), (1, True)]
    for path in ("store", "RUN"):
        with open_run(tmp_path / path) as run:
            assert (run.run_id, [view.rank for view in run.sessions]) == ("launched", [0, 1])
    assert len(list((tmp_path / "store" / ".paritrace-bundles" / "n").glob("node-*.json"))) == 1


@pytest.mark.slow
def test_st17_a_trace_in_code_is_staged_exactly_when_a_store_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        "import paritrace, torch\n"
        "with paritrace.trace('RUN'):\n"
        "    paritrace.step(0)\n"
        "    torch.nn.Linear(2, 2)(torch.ones(1, 2))\n"
    )
    for given, error in (
        ({"PARITRACE_STORE": "store"}, "a store without a staging directory"),
        ({"PARITRACE_STORE": "store", "PARITRACE_STAGING_DIR": "staging"}, ""),
    ):
        done = subprocess.run(
            [warm.python(), str(script)],
            cwd=tmp_path,
            env=environment() | given,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert (done.returncode, error in done.stderr) == (int(bool(error)), True), done.stderr
    assert verify_store(open_target(str(tmp_path / "store"))).verdict is StoreVerdict.INTACT
    assert sorted(path.name for path in (tmp_path / "RUN").iterdir()) == [".lock", "run.json"]
    with open_run(tmp_path / "RUN") as run, open_run(tmp_path / "store") as same:
        assert run.run_id == same.run_id
        assert list(run.records("rank-0")) == list(same.records("rank-0")) != []


@pytest.mark.slow
def test_two_nodes_publish_while_they_train(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    nodes = Nodes(tmp_path, python=warm.python(), num_steps=STEPS_SEEN)
    try:
        assert nodes.end() == [0, 0], nodes.errors
    finally:
        nodes.kill()
    found = verify_store(open_target(str(tmp_path / "store")))
    assert found.verdict is StoreVerdict.INTACT
    with open_run(tmp_path / "store") as run, open_run(tmp_path / "RUN-0") as same:
        assert [view.rank for view in run.sessions] == [view.rank for view in same.sessions] == [0, 1]
        assert [view.row.node_id for view in run.sessions] == ["node-0", "node-1"]
        assert [one.complete for one in run.attendance] == [True]
        assert TROUBLE not in run.envelope.metadata


@pytest.mark.slow
def test_killed_again_and_again_and_continued_by_the_final_sync(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    chance = random.Random(5)
    nodes = Nodes(tmp_path, num_steps=1_000_000)
    try:
        nodes.wait_for_steps(2 * STEPS_SEEN)
    finally:
        nodes.kill()
        nodes.end()
    for number in (0, 1):
        for _ in range(4):
            sync = final_sync(tmp_path, number)
            with suppress(subprocess.TimeoutExpired):
                sync.wait(timeout=chance.uniform(0.2, 1.5))
            sync.kill()
            sync.wait(timeout=WAIT_SECONDS)
        assert final_sync(tmp_path, number).wait(timeout=WAIT_SECONDS) in (0, 1, 3)
    target = open_target(str(tmp_path / "store"))
    assert verify_store(target).verdict is StoreVerdict.INTACT
    restore(target, tmp_path / "restored")
    for rank in (0, 1):
        staged = complete(journal_of(tmp_path / f"staging-{rank}", rank))
        assert staged
        assert journal_of(tmp_path / "restored", rank) == staged
    with open_run(tmp_path / "store") as run:
        assert [view.status.value for view in run.sessions] == ["interrupted", "interrupted"]
