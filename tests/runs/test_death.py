"""The page at death: an order only where times allow one, dumps read and not run, what is absent named (RS-13)."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.errors import EvidenceError
from paritrace.evidence.gaps import Gap
from paritrace.process.exit_watch import ExitWatch, Watched
from paritrace.process.kernel_log import oom_kills, xids
from paritrace.process.left_behind import start_ticks
from paritrace.process.stop_facts import Exited, Signalled
from paritrace.runs.death import DeathGap, RankEnd, SourceState, first_stop, page_of
from paritrace.runs.death_reading import death_page
from paritrace.runs.flight_dumps import open_operations
from paritrace.runs.reading import open_run
from paritrace.runs.record_reading import read_records
from paritrace.runs.record_words import death_words

DEADLINE_SECONDS = 300
KILLED = RankEnd(
    session_id="rank-1",
    rank=1,
    boot="h/b",
    seen_ns=1_000_000_000,
    wait=Signalled(9),
    own_word="it wrote no end of its own",
    last_step=2,
    last_call="f at train.py:8 in main",
    stack=Gap(DeathGap.NO_STACK),
    groups={"world": 6},
)
WAITED = replace(
    KILLED, session_id="rank-0", rank=0, seen_ns=1_086_000_000, wait=Signalled(15), last_step=3, groups={"world": 7}
)


def test_the_first_of_ends_that_were_seen_on_one_clock_is_named_and_not_blamed() -> None:
    page = page_of([WAITED, KILLED], in_flight=(), sources=())
    assert page.first_rank == 1
    assert "rank 1 stopped first, signal 9 (SIGKILL), 86.0 ms before the next one" in page.first
    assert "not known" in page.first
    assert page.in_flight == ("group world: rank 0 had begun 7 operations, rank 1 6 as recorded",)


@pytest.mark.parametrize(
    "other",
    [
        replace(WAITED, seen_ns=Gap(DeathGap.NOT_SEEN), wait=None),
        replace(WAITED, boot="h/c"),
        replace(WAITED, seen_ns=1_000_900_000),
    ],
    ids=["not seen", "another clock", "too near"],
)
def test_no_order_is_stated_that_the_evidence_does_not_have(other: RankEnd) -> None:
    first, words, _ = first_stop([other, KILLED])
    assert first is None
    assert "not known" in words


def test_a_rank_that_ended_well_before_is_not_the_first_failure() -> None:
    done = replace(WAITED, seen_ns=1, wait=Exited(0))
    assert first_stop([done, KILLED])[0] == 1
    assert first_stop([done])[0] is None


FLIGHT = {
    "version": "2.4",
    "entries": [
        {
            "state": "completed",
            "profiling_name": "nccl:all_reduce",
            "collective_seq_id": 1,
            "process_group": ["0", "world"],
        },
        {
            "state": "started",
            "profiling_name": "nccl:all_gather",
            "collective_seq_id": 2,
            "process_group": ["0", "world"],
            "frames": [{"filename": "train.py", "line": 9, "name": "main"}],
        },
    ],
}


@pytest.mark.parametrize("data", [pickle.dumps(FLIGHT), json.dumps(FLIGHT).encode()], ids=["pickle", "json"])
def test_operations_that_had_not_completed_are_read_from_flight_recorder_dumps(data: bytes) -> None:
    left, stack = open_operations(data, name="trace_rank_0")
    assert left == ("nccl:all_gather number 2 of group world: started",)
    assert stack == ("train.py:9 main",)


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, ("touch /tmp/paritrace-evil",))


@pytest.mark.parametrize("data", [pickle.dumps({"entries": [Evil()]}), b"", b"{", b"\x80\x04garbage", b"[1, 2"])
def test_a_pickle_that_names_something_is_refused_and_not_run(data: bytes) -> None:
    with pytest.raises(EvidenceError) as refused:
        open_operations(data, name="trace_rank_0")
    assert refused.value.code == "bad_flight_dump"
    assert not Path("/tmp/paritrace-evil").exists()


def test_kernel_lines_name_victims_and_devices() -> None:
    log = [
        "4,1,99,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=py thon,x,pid=41,uid=0",
        "4,2,1234567,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "6,3,5,-;eth0: link up",
    ]
    assert [(one.pid, one.name, one.cgroup) for one in oom_kills(log)] == [(41, "py thon,x", "/a/b")]
    assert [(one.device, one.number, one.after_boot_us) for one in xids(log)] == [("PCI:0000:3b:00", 79, 1234567)]


def test_ends_of_processes_that_are_not_our_children_are_seen_in_order() -> None:
    script = "sh -c 'read x; kill -9 $$' <&3 & echo $!; sh -c 'read x; read x; exit 3' <&3 & echo $!; wait; echo over"
    outer = subprocess.Popen(
        ["sh", "-c", f"exec 3<&0; {script}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert outer.stdout is not None
    pids = [int(outer.stdout.readline()) for _ in range(2)]
    watched = [Watched(str(pid), pid, start_ticks(pid) or 0) for pid in pids]
    watch = ExitWatch(lambda: watched)
    watch.start()
    outer.communicate("\n" * 8, timeout=60)
    seen = watch.stop()
    assert {int(one.name) for one in seen} <= set(pids), "one that ended before it was watched is not guessed"
    for one in seen:
        assert one.wait in (None, Signalled(9), Exited(3))


@pytest.mark.slow
@pytest.mark.parametrize("staged", [False, True], ids=["into the run", "staged, with a store"])
def test_the_page_of_two_ranks_of_which_one_was_killed_and_the_other_waited(tmp_path: Path, staged: bool) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, time, torch, torch.distributed as dist
            from pathlib import Path
            dist.init_process_group("gloo")

            def journal():
                return next(one for one in map(os.path.realpath, Path("/proc/self/fd").iterdir())
                            if one.endswith("calls.jsonl"))

            def written(start):  # the writer is a thread of its own: what it still holds is lost with a kill
                until = time.monotonic() + 60
                while start not in Path(journal()).read_bytes() and time.monotonic() < until:
                    time.sleep(0.01)

            model = torch.nn.Linear(4, 4)
            for step in range(6):
                model(torch.ones(2, 4)).sum().backward()
                if dist.get_rank() == 1 and step == 3:
                    written(b'["s",2,0,"grads"')
                    os.kill(os.getpid(), signal.SIGKILL)
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                torch.optim.SGD(model.parameters(), lr=0.1).step()
                model.zero_grad()
            """
        )
    )
    launcher = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2"
    command = [
        sys.executable,
        "-m",
        "paritrace",
        "run",
        "-o",
        str(tmp_path / "run"),
        "--launcher",
        launcher,
        *(["--store", str(tmp_path / "store"), "--staging", str(tmp_path / "staging")] if staged else []),
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert done.returncode == 1, done.stderr
    (tmp_path / "run" / "death").mkdir()
    (tmp_path / "run" / "death" / "nccl_trace_rank_0").write_bytes(pickle.dumps(FLIGHT))
    with open_run(tmp_path / "run") as run:
        page = death_page(run, read_records(run.folder))
        records = [one for one in read_records(run.folder) if one.start is not None]
    kinds = sorted(one.start.names.adapter_kind.value for one in records if one.start is not None)
    assert kinds == ["launcher", "own_process", "own_process"]
    assert page is not None
    by_rank = {one.rank: one for one in page.ranks}
    assert by_rank[1].wait in (None, Signalled(9))
    assert by_rank[1].own_word == "it wrote no end of its own"
    assert by_rank[1].last_step == 2
    assert "train.py" in str(by_rank[1].last_call) or "<main>" in str(by_rank[1].last_call)
    assert page.first_rank in (1, None), "rank 0 waited: it is never named"
    assert any("nccl:all_gather number 2" in line for line in page.in_flight)
    states = {source.name: source.state for source in page.sources}
    assert states["NCCL RAS text"] is SourceState.ABSENT
    assert states["PyTorch flight recorder"] is SourceState.READ
    assert states["launcher's watch"] is SourceState.READ
    told = "\n".join(death_words(page))
    assert "memory" not in told
    command = [sys.executable, "-m", "paritrace", "check", str(tmp_path / "run")]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert f"[ended]     at its end: {page.first}" in checked.stdout
    printed = subprocess.run([*command, "--json"], capture_output=True, timeout=DEADLINE_SECONDS, check=False)
    ends = json.loads(printed.stdout)["ends"]
    assert ends["death"]["first"] == page.first
    assert {one["session_id"] for one in ends["records"] if one["session_id"]} <= {one.session_id for one in page.ranks}
