"""Texts of other tools, as those wrote them, on the page at death (RS-13)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.files import LOCAL
from paritrace.runs.death import Source, SourceState
from paritrace.runs.death_beside import MOST_LINES, Beside
from paritrace.runs.ras_text import RasReport, ras_report
from paritrace.runs.reading import open_run
from paritrace.runs.record_lines import DEATH_FOLDER
from paritrace.runs.recorded_session import RecordedSession
from paritrace.runs.stack_texts import StackText, stack_text
from tests.runs.recording import shell

DATA = Path(__file__).parents[1] / "data" / "death"
FRAMES = (
    "thread MainThread (idle)",
    "all_reduce (train.py:6)",
    "step (train.py:10)",
    "<module> (train.py:19)",
    "thread prefetch (idle)",
    "Condition.wait (threading.py:331)",
    "Event.wait (threading.py:629)",
    "prefetch (train.py:14)",
    "Thread.run (threading.py:982)",
    "Thread._bootstrap_inner (threading.py:1045)",
    "Thread._bootstrap (threading.py:1002)",
)


def lines(name: str) -> list[str]:
    return (DATA / name).read_text().splitlines()


def beside(folder: Path, **texts: str) -> Beside:
    """What is read beside a run that holds these files in its folder of the death."""
    session = RecordedSession(folder)
    session.add(shell(folder, "exit 1").record.path)
    session.close()
    (folder / DEATH_FOLDER).mkdir()
    for name, text in texts.items():
        (folder / DEATH_FOLDER / f"{name.replace('_', '-')}.txt").write_text(text)
    with open_run(folder) as run:
        return Beside(run, LOCAL)


def source(found: Beside, name: str) -> Source:
    (one,) = (one for one in found.sources if one.name == name)
    return one


def test_frames_of_py_spy_stand_under_their_threads_and_no_command_line_is_kept() -> None:
    assert stack_text(lines("py-spy-rank1.txt")) == StackText(29793, FRAMES)


def test_the_main_thread_comes_first_wherever_it_stands() -> None:
    found = stack_text(
        ['Thread 7 (active): "w"', "    f (a.py:1)", "Thread 0x7F (idle)", "    g (b.py:2)", 'Thread 9: "MainThread"']
    )
    assert found == StackText(
        None, ("thread MainThread", "thread w (active)", "f (a.py:1)", "thread 0x7F (idle)", "g (b.py:2)")
    )


@given(st.lists(st.text(max_size=40)))
def test_any_text_is_a_dump_or_none(text: list[str]) -> None:
    stack_text(text)
    ras_report(text)


@pytest.mark.skipif(shutil.which("py-spy") is None, reason="py-spy is not installed here")
def test_a_real_dump_of_a_real_process_is_read() -> None:
    code = "import sys, time\nprint('up', flush=True)\ndef waits(): time.sleep(60)\nwaits()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        dump = ["py-spy", "dump", "--pid", str(process.pid)]
        done = subprocess.run(dump, capture_output=True, text=True, timeout=60, check=False)
        process.kill()
    if done.returncode:
        pytest.skip(f"py-spy may not look at processes here: {done.stderr.strip()[:200]}")
    found = stack_text(done.stdout.splitlines())
    assert found is not None
    assert found.pid == process.pid
    assert any(frame.startswith("waits") for frame in found.frames)


def test_what_ranks_disagree_on_is_told_with_the_ranks() -> None:
    assert ras_report(lines("ras-mismatch.txt")) == RasReport(
        (
            "communicators of group 0: RUNNING, MISMATCH",
            "#0-0 (fa93daea854b060b) MISMATCH",
            "Communicator ranks have different AllGather operation counts",
            "30 ranks have launched up to operation 640",
            "2 ranks have launched up to operation 641",
            "Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124",
            "Rank 13 -- GPU 5 managed by process 323033 on node 10.137.190.124",
        ),
        num_groups=1,
        num_not_ok=1,
    )


def test_a_process_that_does_not_answer_is_told() -> None:
    found = ras_report(lines("ras-incomplete.txt"))
    assert found is not None
    assert (found.num_groups, found.num_not_ok) == (3, 3)
    assert found.findings[2:5] == (
        "communicators of group 2: NOCOMM, INCOMPLETE,MISMATCH",
        "INCOMPLETE",
        "Missing communicator data from 1 job process",
    )


def test_a_job_without_findings_has_none() -> None:
    assert ras_report(lines("ras-ok.txt")) == RasReport((), num_groups=1, num_not_ok=0)
    assert ras_report(["all is well"]) is None


def test_rs_13_texts_of_a_run_are_read_and_named(tmp_path: Path) -> None:
    found = beside(
        tmp_path / "run",
        ras=(DATA / "ras-mismatch.txt").read_text(),
        py_spy_rank1=(DATA / "py-spy-rank1.txt").read_text(),
    )
    assert found.stacks == {1: FRAMES}
    assert source(found, "NCCL RAS text").detail == "ras.txt: groups of communicators: 1, not OK: 1"
    assert "ras.txt: 2 ranks have launched up to operation 641" in found.in_flight
    assert source(found, "py-spy").detail == "py-spy-rank1.txt: of rank 1"


def test_rs_13_texts_in_no_form_we_know_are_said_to_be_so(tmp_path: Path) -> None:
    found = beside(tmp_path / "run", ras="hello\n  rank 3 is dead\n", py_spy="frames? none\n")
    assert found.in_flight == ["ras.txt: rank 3 is dead"]
    assert source(found, "py-spy").state is SourceState.UNREADABLE
    assert "not in the form" in source(found, "NCCL RAS text").detail


def test_rs_13_a_dump_of_nobody_is_given_to_no_rank_and_a_long_one_is_cut_and_counted(tmp_path: Path) -> None:
    long = 'Thread 1 (idle): "MainThread"\n' + "    f (a.py:1)\n" * 100
    found = beside(tmp_path / "run", py_spy_0=long, py_spy_rank0=long)
    assert len(found.stacks[0]) == MOST_LINES + 1
    assert found.stacks[0][-1] == "and 81 more lines"
    assert any("of which rank it is" in one.detail for one in found.sources)
