"""`paritrace run` on real processes: status, output and tracebacks are the workload's own (CA-18, SU-3)."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import pytest

from paritrace.evidence.calls import Context, EndMark, LossMark, Site, SourceKind, StepMark
from paritrace.evidence.codec import Record
from paritrace.evidence.gaps import Gap
from paritrace.evidence.journal import Loss
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run
from tests.cases.captures import DEADLINE_SECONDS, Ended, recorded, run_bare, run_python, write_script

TRAINING = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(steps=2):
    for _ in range(steps):
        loss = model(torch.randn(2, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(model.weight.sum().item().hex(), flush=True)


"""


def script_of(folder: Path, text: str, *, name: str = "train.py") -> Path:
    return write_script(folder / name, TRAINING + dedent(text))


def captured(
    script: Path, run: Path, *arguments: str, options: tuple[str, ...] = ("--no-diff",), cold: bool = False
) -> Ended:
    command = ("-m", "paritrace", "run", "-o", str(run), *options, str(script), *arguments)
    return run_python(*command, directory=script.parent, cold=cold)


def records(run: Path) -> list[Record]:
    """Every record of the only session, none lost."""
    with open_run(run) as opened:
        (session,) = opened.sessions
        found = list(opened.records(session.session_id))
    assert not [item for item in found if isinstance(item, Loss)]
    return [item for item in found if not isinstance(item, Loss)]


def status_of(run: Path) -> SessionStatus:
    with open_run(run) as opened:
        (session,) = opened.sessions
        return session.status


def steps_of(run: Path) -> list[int]:
    return [record.step for record in records(run) if isinstance(record, StepMark)]


def own_lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("paritrace: ")]


def assert_like_bare(captured_: Ended, bare: Ended) -> None:
    """The same status, the same output, the same words on stderr but for our one line."""
    assert captured_.status == bare.status, captured_.stderr
    assert captured_.stdout == bare.stdout
    theirs = [line for line in captured_.stderr.splitlines() if not line.startswith("paritrace: ")]
    assert theirs == bare.stderr.splitlines()
    assert len(own_lines(captured_.stderr)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("train(); print(sys.argv[1:], __name__, __file__)", 0, id="arguments"),
        pytest.param("train(); sys.exit(3)", 3, id="exit with a number"),
        pytest.param("train(); sys.exit('no more data')", 1, id="exit with a text"),
        pytest.param("train(); sys.exit(None)", 0, id="exit with nothing"),
        pytest.param("train(); raise SystemExit(300)", 300 & 0xFF, id="exit with a large number"),
        pytest.param("def f():\n    raise ValueError('bad batch')\ntrain()\nf()", 1, id="error"),
        pytest.param(
            "try:\n    train(); 1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('x') from error",
            1,
            id="chained error",
        ),
        pytest.param("train()\nraise ExceptionGroup('two', [ValueError(1), TypeError(2)])", 1, id="group of errors"),
        pytest.param("sys.excepthook = lambda *_: sys.exit(9)\ntrain(); 1 / 0", 9, id="hook that exits"),
        pytest.param("sys.excepthook = lambda *_: print(1 / 0)\ntrain(); int('x')", 1, id="hook that fails"),
        pytest.param("import atexit\natexit.register(print, 'at exit')\ntrain()", 0, id="exit callback"),
        pytest.param("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\ntrain()", 0, id="fork that goes on"),
    ],
)
def test_the_end_of_a_script_is_its_own(text: str, status: int, tmp_path: Path) -> None:
    script = script_of(tmp_path, text)
    bare = run_python(str(script), "a", "--b", "c", directory=tmp_path, cold=True)
    done = captured(script, tmp_path / "run", "a", "--b", "c")
    assert bare.status == status
    assert_like_bare(done, bare)
    assert status_of(tmp_path / "run") is SessionStatus.COMPLETED
    assert steps_of(tmp_path / "run") == [0, 1]
    with open_run(tmp_path / "run") as run:
        assert run.sessions[0].row.metadata["exit_status"] == str(status)


@pytest.mark.slow
def test_an_error_inside_of_an_operator_shows_no_frame_of_ours(tmp_path: Path) -> None:
    text = """
    try:
        model(torch.ones(3, 3))
    except RuntimeError as error:
        raise ValueError("wrapped") from error
    """
    done = captured(script_of(tmp_path, text), tmp_path / "run", options=("--level", "op", "--level", "module"))
    assert done.status == 1
    assert "The above exception was the direct cause" in done.stderr
    assert "/paritrace/" not in done.stderr.replace(str(tmp_path), "")


@pytest.mark.slow
def test_os_exit_ends_at_once_and_the_run_says_interrupted(tmp_path: Path) -> None:
    done = captured(script_of(tmp_path, "train(); import os; os._exit(7)"), tmp_path / "run")
    assert done.status == 7
    assert status_of(tmp_path / "run") is SessionStatus.INTERRUPTED
    shown = run_python("-m", "paritrace", "runs", "show", str(tmp_path / "run"), directory=tmp_path)
    assert "interrupted; cause unknown" in shown.stdout


def hears_interrupts() -> None:
    """A shell starts what runs in its background deaf to Ctrl-C, and children inherit that; this one is not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "statuses"), [(signal.SIGINT, {130, -2}), (signal.SIGTERM, {-15})])
def test_a_signal(number: signal.Signals, statuses: set[int], tmp_path: Path) -> None:
    script = script_of(tmp_path, "train()\nimport time\nwhile True: time.sleep(0.01)")
    command = [sys.executable, "-m", "paritrace", "run", "-o", str(tmp_path / "run"), "--no-diff", str(script)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_interrupts,  # noqa: PLW1509  no thread of ours holds a lock here
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(("0x", "-0x"))
        child.send_signal(number)
        _, stderr = child.communicate(timeout=DEADLINE_SECONDS)
    assert child.returncode in statuses
    assert status_of(tmp_path / "run") is SessionStatus.INTERRUPTED
    if number is signal.SIGINT:
        assert stderr.count("KeyboardInterrupt") == 1
        assert "/paritrace/" not in stderr.replace(str(tmp_path), "")
        assert any(isinstance(record, EndMark) for record in records(tmp_path / "run")), "it had time to end"
    with open_run(tmp_path / "run") as run:
        seen = list(run.records("rank-0"))
    assert [item.step for item in seen if isinstance(item, StepMark)][:1] == [0]


@pytest.mark.slow
def test_a_package_runs_as_python_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "work" / "pkg"
    write_script(package / "__init__.py", "")
    write_script(package / "helper.py", "import torch\n\n\ndef act(x):\n    return torch.relu(x)\n")
    write_script(tmp_path / "work" / "beside.py", "def act(x):\n    return x.sin()\n")
    script_of(
        package,
        """
        import beside
        from . import helper

        train()
        beside.act(helper.act(torch.ones(2)))
        print(__name__, __package__, __spec__.name, sys.argv, sys.path[0], __file__)
        """,
        name="__main__.py",
    )
    bare = run_python("-m", "pkg", "a", directory=tmp_path / "work")
    command = ("-m", "paritrace", "run", "-o", str(tmp_path / "run"), "--level", "op", "-m", "pkg", "a")
    done = run_python(*command, directory=tmp_path / "work")
    assert bare.status == 0, bare.stderr
    assert_like_bare(done, bare)
    files = {(record.kind, record.file) for record in records(tmp_path / "run") if isinstance(record, Site)}
    assert {(SourceKind.MAIN, "<main>"), (SourceKind.WORKLOAD, "pkg/helper.py")} <= files
    assert (SourceKind.WORKLOAD, "beside.py") in files


@pytest.mark.slow
def test_a_second_capture_into_a_run_is_refused_before_the_workload_starts(tmp_path: Path) -> None:
    script = script_of(tmp_path, "print('started'); train()")
    assert captured(script, tmp_path / "run").status == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    done = captured(script, tmp_path / "run")
    assert (done.status, done.stdout) == (125, "")
    assert "refused" in done.stderr
    assert "[run_exists]" in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("gone.py",), "no_script"),
        (("bad.py",), "bad_script"),
        (("-m", "no.such.module"), "no_module"),
        (("--regions", "0", "good.py"), "bad_regions"),
        (("--regions", "many", "good.py"), "usage"),
        (("--steps", "3:1", "good.py"), "bad_steps"),
        (("--max-bytes", "much", "good.py"), "bad_size"),
        (("--ranks", "x", "good.py"), "bad_ranks"),
        (("--mesh", "2x2", "good.py"), "bad_mesh"),
        (("--mesh", "dp=2", "good.py"), "bad_mesh"),  # of two ranks, and this is one
        (("--level", "kernel", "good.py"), "usage"),
        (("--no-such-option", "good.py"), "usage"),
        ((), "usage"),
    ],
)
def test_what_is_refused_ends_with_125_and_leaves_nothing(options: tuple[str, ...], code: str, tmp_path: Path) -> None:
    write_script(tmp_path / "good.py", "print('started')")
    write_script(tmp_path / "bad.py", "def f(:\n")
    done = run_python("-m", "paritrace", "run", "-o", "run", *options, directory=tmp_path)
    assert (done.status, done.stdout) == (125, "")
    assert f"[{code}]" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_without_a_run_directory_it_is_refused_and_off_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(tmp_path / "good.py", "import sys\nprint('started', 'torch' in sys.modules)\nsys.exit(4)")
    done = run_python("-m", "paritrace", "run", "good.py", directory=tmp_path)
    assert (done.status, done.stdout) == (125, "")
    assert "[no_output]" in done.stderr
    monkeypatch.setenv("PARITRACE_MODE", "off")
    for options in ((), ("-o", "run")):
        done = run_python("-m", "paritrace", "run", *options, "good.py", directory=tmp_path, cold=True)
        assert (done.status, done.stdout, done.stderr) == (4, "started False\n", "")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["0", "65", "many"])
def test_a_bad_number_of_regions_in_the_environment_is_refused(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(tmp_path / "good.py", "print('started')")
    monkeypatch.setenv("PARITRACE_REGIONS", value)
    done = run_python("-m", "paritrace", "run", "-o", "run", "good.py", directory=tmp_path)
    assert (done.status, done.stdout) == (125, "")


def test_a_symbolic_link_a_folder_and_safe_path_import_as_python_does(tmp_path: Path) -> None:
    text = "import sys\nprint(sys.path[0], sys.argv, __file__, __name__)"
    write_script(tmp_path / "real" / "train.py", text)
    write_script(tmp_path / "folder" / "__main__.py", text)
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "train.py")
    for flags, script in (((), "link.py"), ((), "folder"), (("-P",), "real/train.py")):
        bare = run_python(*flags, script, directory=tmp_path)
        command = (*flags, "-m", "paritrace", "run", "-o", f"run-{len(script)}", script)
        done = run_python(*command, directory=tmp_path)
        expected = bare.stdout if script != "folder" else bare.stdout.replace("['folder", f"['{'folder'}")
        assert (done.status, done.stdout) == (bare.status, expected), done.stderr


@pytest.mark.slow
def test_classes_of_main_are_pickled_in_late_threads_exit_handlers_and_spawned_processes(tmp_path: Path) -> None:
    text = """
    import atexit, multiprocessing, pickle, threading, time


    class Of:
        pass


    def late():
        threading.main_thread().join()
        print("late", type(pickle.loads(pickle.dumps(Of()))).__name__, flush=True)


    def child(of):
        print("child", type(of).__module__, __name__, flush=True)


    if __name__ == "__main__":
        train()
        atexit.register(lambda: print("exit", type(pickle.loads(pickle.dumps(Of()))).__name__, flush=True))
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=child, args=(Of(),))
        process.start()
        process.join()
        print("status", process.exitcode, flush=True)
        threading.Thread(target=late).start()
    """
    script = script_of(tmp_path, text)
    bare = run_bare(script)
    assert "child __mp_main__ __mp_main__" in bare.stdout, bare.stderr
    assert_like_bare(captured(script, tmp_path / "run"), bare)
    assert status_of(tmp_path / "run") is SessionStatus.COMPLETED
    end = records(tmp_path / "run")[-1]
    assert isinstance(end, EndMark)
    assert end.gaps == {"spawned_child_not_covered": 1}, "what the child did is not in the run, and that is said"


@pytest.mark.slow
def test_warnings_as_errors_are_those_of_the_workload(tmp_path: Path) -> None:
    script = script_of(tmp_path, "train()")
    bare = run_python("-W", "error", str(script), directory=tmp_path)
    command = ("-W", "error", "-m", "paritrace", "run", "-o", str(tmp_path / "run"), "--level", "op", str(script))
    assert bare.status == 0, bare.stderr
    assert_like_bare(run_python(*command, directory=tmp_path), bare)


@pytest.mark.slow
def test_a_script_that_goes_elsewhere_and_removes_itself(tmp_path: Path) -> None:
    text = "import os\ntrain()\nos.remove(__file__); os.chdir('/'); train()"
    script = script_of(tmp_path, text)
    source = script.read_bytes()
    command = ("-m", "paritrace", "run", "-o", "run", "--level", "op", "train.py")  # both relative
    done = run_python(*command, directory=tmp_path)
    assert done.status == 0, done.stderr
    assert steps_of(tmp_path / "run") == [0, 1, 2, 3]
    with open_run(tmp_path / "run") as run:
        site = next(item for item in run.records("rank-0") if isinstance(item, Site) and item.file == "<main>")
        assert not isinstance(site.digest, Gap)
        kept = run.source(site.digest)
    assert kept == source.decode()


@pytest.mark.slow
def test_names_that_are_no_text_and_thousands_of_modules(tmp_path: Path) -> None:
    text = """
    import types
    for number in range(3000):
        made = types.ModuleType(f"m{number}")
        made.__file__ = f"{__file__}.{number}"
        sys.modules[made.__name__] = made
    class Slots: __slots__ = ()
    sys.modules["slots"] = Slots()
    sys.modules["null"] = types.ModuleType("null"); sys.modules["null"].__file__ = __file__ + "\\0"
    odd = type("we\\u2028ird \\n[name]", (torch.nn.Linear,), {})
    model = odd(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    exec(compile("def forward(x):\\n    return x * 2\\n", "no\\u2028\\udcffwhere.py", "exec"))
    forward(torch.ones(2))
    train()
    """
    folder = tmp_path / os.fsdecode(b"dir \xff\n\xc3\xa9")
    script = script_of(folder, text)
    done = captured(script, folder / "run", os.fsdecode(b"\xfe"), options=("--level", "op", "--level", "module"))
    assert done.status == 0, done.stderr
    assert status_of(folder / "run") is SessionStatus.COMPLETED
    assert steps_of(folder / "run") == [0, 1]
    assert not recorded(folder / "run").gaps
    checked = run_python("-m", "paritrace", "check", str(folder / "run"), "--json", directory=folder)
    assert checked.status == 0, checked.stderr


@pytest.mark.slow
def test_torch_that_is_imported_late_reads_the_environment_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
    import os, sys
    assert "torch" not in sys.modules
    os.environ["OMP_NUM_THREADS"] = "2"
    import torch
    print(torch.get_num_threads())
    torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
    """
    script = write_script(tmp_path / "train.py", text)
    done = captured(script, tmp_path / "run", cold=True)
    assert (done.status, done.stdout) == (0, "2\n"), done.stderr
    assert recorded(tmp_path / "run").calls
    with open_run(tmp_path / "run") as run:
        surroundings = run.sessions[0].row.surroundings
    assert surroundings is not None
    assert surroundings.num_threads == 2


@pytest.mark.slow
def test_a_run_directory_that_cannot_be_written(tmp_path: Path) -> None:
    script = script_of(tmp_path, "print('started'); train()")
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = captured(script, tmp_path / "file" / "run")
    assert (done.status, done.stdout) == (125, "")
    assert "fix:" in done.stderr
    assert "Traceback" not in done.stderr
    done = captured(script, Path("/proc/paritrace-run"))
    assert (done.status, done.stdout) == (125, "")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_not_a_number_everywhere(tmp_path: Path) -> None:
    text = """
    with torch.no_grad():
        model.weight.fill_(float("nan"))
    train(3)
    """
    script = script_of(tmp_path, text)
    done = captured(script, tmp_path / "run", options=("--level", "op", "--level", "module", "--statistics"))
    assert_like_bare(done, run_bare(script))
    found = records(tmp_path / "run")
    losses = [record.value for record in found if isinstance(record, LossMark)]
    assert losses == ["nan", "nan", "nan"]
    norms = [record.grad_norm for record in found if isinstance(record, StepMark)]
    assert norms == ["nan", "nan", "nan"]
    checked = run_python("-m", "paritrace", "check", str(tmp_path / "run"), "--json", directory=tmp_path)
    assert checked.status == 0, checked.stderr


@pytest.mark.slow
def test_steps_select_and_exclude(tmp_path: Path) -> None:
    text = """
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    """
    script = script_of(tmp_path, text)

    def functions(name: str, *options: str) -> tuple[set[str], set[int]]:
        done = captured(script, tmp_path / name, options=options)
        assert done.status == 0, done.stderr
        journal = recorded(tmp_path / name)
        steps = {journal.contexts[call.context].step for call in journal.calls}
        assert steps_of(tmp_path / name) == [0, 1, 2, 3, 4], "level digest goes on"
        return {journal.function(call) for call in journal.calls}, steps

    everything, steps = functions("all", "--level", "module", "--steps", "1:3")
    assert steps == {1, 2}
    assert any("ReLU" in function for function in everything)
    only, _ = functions("select", "--level", "module", "--select", "function:*.ReLU")
    assert only == {"torch.nn.modules.activation.ReLU"}
    without, _ = functions("exclude", "--level", "module", "--level", "op", "--exclude", "function:aten.*")
    assert without == everything


@pytest.mark.slow
def test_a_small_budget_leaves_a_gap_and_a_run_that_reads(tmp_path: Path) -> None:
    script = script_of(tmp_path, "train(4)")
    done = captured(script, tmp_path / "run", options=("--level", "op", "--max-bytes", "4kB"))
    assert_like_bare(done, run_bare(script))
    found = records(tmp_path / "run")
    end = found[-1]
    assert isinstance(end, EndMark)
    assert (end.calls, end.lines) == (0, len(found) - 1)
    assert end.gaps["over_budget"] > 10
    assert "gaps" in own_lines(done.stderr)[0]
    checked = run_python("-m", "paritrace", "check", str(tmp_path / "run"), "--json", directory=tmp_path)
    assert checked.status == 0, checked.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "said"), [(2, "no estimate"), (3, "estimate from one"), (6, "estimate from one")])
def test_an_estimate_takes_three_steps(steps: int, said: str, tmp_path: Path) -> None:
    script = script_of(tmp_path, f"train({steps})")
    done = captured(script, tmp_path / "run", options=("--estimate", "--level", "op"))
    assert done.status == 0, done.stderr
    assert said in done.stderr
    assert bool(done.stdout) is (steps <= 3), "a longer workload is ended after the third step"
    assert steps_of(tmp_path / "run") == list(range(min(steps, 3)))
    assert status_of(tmp_path / "run") is SessionStatus.COMPLETED


@pytest.mark.slow
def test_the_deterministic_policy_is_set_and_recorded_with_what_was_before(tmp_path: Path) -> None:
    text = "print(torch.are_deterministic_algorithms_enabled(), torch.initial_seed()); train()"
    script = script_of(tmp_path, text)
    done = captured(script, tmp_path / "run", options=("--deterministic",))
    assert done.stdout.startswith("True 0\n"), "it never seeds: this is the script's own seed"
    with open_run(tmp_path / "run") as run:
        surroundings = run.sessions[0].row.surroundings
    assert surroundings is not None
    assert surroundings.policy["deterministic_algorithms"] == ("False", "True")
    assert captured(script, tmp_path / "plain").stdout.startswith("False 0\n")


@pytest.mark.slow
def test_data_loader_workers_live_and_are_counted(tmp_path: Path) -> None:
    text = """
    from torch.utils.data import DataLoader, TensorDataset


    def collate(rows):
        import paritrace
        paritrace.step(7)  # heard by nobody in a worker
        with paritrace.context(worker="yes"):
            paritrace.observe("in worker", rows[0][0])
        return torch.stack([row for (row,) in rows])


    for batch in DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=2, num_workers=2, collate_fn=collate):
        model(batch).sum().backward(); optimizer.step(); optimizer.zero_grad()
    train(1)
    """
    script = script_of(tmp_path, text)
    done = captured(script, tmp_path / "run", options=("--level", "op", "--level", "module", "--steps", "0:9"))
    assert_like_bare(done, run_bare(script))
    found = records(tmp_path / "run")
    assert steps_of(tmp_path / "run") == [0, 1, 2, 3, 4]
    assert not [record for record in found if isinstance(record, Context) and record.labels]
    end = found[-1]
    assert isinstance(end, EndMark)
    assert end.gaps == {"forked_child_not_covered": 2}


@pytest.mark.slow
def test_an_optimizer_step_that_raises_does_not_hold_the_steps_up(tmp_path: Path) -> None:
    text = """
    def bad():
        raise ValueError


    for number in range(5):
        model(torch.ones(1, 4)).sum().backward()
        try:
            optimizer.step(bad) if number == 1 else optimizer.step()
        except ValueError:
            pass
    """
    done = captured(script_of(tmp_path, text), tmp_path / "run")
    assert done.status == 0, done.stderr
    marks = [record for record in records(tmp_path / "run") if isinstance(record, StepMark)]
    assert [(mark.step, mark.backwards, mark.optimizer_steps) for mark in marks] == [
        (0, 1, 1),
        (1, 2, 1),  # the step that failed and the next are one: nothing was updated in between
        (2, 1, 1),
        (3, 1, 1),
    ]


def test_no_thread_of_this_module_is_left() -> None:
    assert not [thread for thread in threading.enumerate() if thread.name == "paritrace-writer"]
