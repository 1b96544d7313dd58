"""What runs in a forked child is what an interpreter of its own would run: captures, exit statuses, signals (CP-18)."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import warm
from benchmarks.faults.capturing import CaptureFailedError, capture
from benchmarks.faults.case import Launch, Variant
from benchmarks.faults.checkouts import write_checkout
from paritrace.compare.checks import check
from paritrace.compare.engine import compare
from paritrace.runs.reading import Run, open_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OPTIONS = ("--level", "module", "--level", "op", "--steps", "0:2")
DEADLINE_SECONDS = 600


def ran(*command: str, directory: Path = ROOT, text: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        input=text,
        cwd=directory,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def equal(ordinary: Run, other: Run) -> None:
    result = compare(ordinary, other).result
    assert result.counts.calls_baseline == result.counts.calls_candidate == result.counts.ok > 2000
    assert result.findings == ()
    assert result.outside == ()
    assert [change for change in result.changed if change.kind not in ("environment", "argv")] == [], result.changed
    assert [view.receipt is not None for view in other.sessions] == [True]
    outcomes = [[(found.id, found.status) for found in check(run).invariants] for run in (ordinary, other)]
    assert outcomes[0] == outcomes[1]


def test_a_forked_capture_is_an_ordinary_one(tmp_path: Path) -> None:
    script = write_checkout(Variant(launch=Launch.PLACED), directory=tmp_path)
    made = ran(
        *(sys.executable, "-m", "paritrace", "run", "-o", str(tmp_path / "ordinary"), *OPTIONS, str(script)),
        directory=script.parent,
    )
    assert made.returncode == 0, made.stderr
    served = ("run", "-o", str(tmp_path / "served"), *OPTIONS, str(script))
    assert capture(served, directory=script.parent, errors=tmp_path / "errors") > 0.0
    with pytest.raises(CaptureFailedError, match=r"ended with \[125\]"):  # the run directory is taken
        capture(served, directory=script.parent, errors=tmp_path / "errors")
    with open_run(tmp_path / "ordinary") as ordinary, open_run(tmp_path / "served") as other:
        equal(ordinary, other)


TELLS = """
import atexit, os, sys
print(__name__, __file__, sys.argv, sys.path[0], os.getcwd(), __spec__ is None, sys.stdin.read())
atexit.register(print, "at exit")
exec(sys.argv[1])
"""


@pytest.mark.parametrize(
    "act",
    [
        "pass",
        "sys.exit(3)",
        "sys.exit('a text')",
        "os._exit(7)",
        "os.kill(os.getpid(), 15)",
        "os.kill(os.getpid(), 9)",
        "{}[1]",
        "raise KeyboardInterrupt",
        "import threading; threading.Thread(target=lambda: print('late')).start()",
    ],
)
def test_a_served_program_ends_as_an_ordinary_one(tmp_path: Path, act: str) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    ordinary, served = (
        ran(interpreter, "tells.py", act, "b c", directory=tmp_path, text="words")
        for interpreter in (sys.executable, warm.python())
    )
    assert served.returncode == ordinary.returncode
    assert served.stdout == ordinary.stdout
    assert served.stderr == ordinary.stderr


@pytest.mark.parametrize("act", ["pass", "{}[1]", "sys.exit(3)"])
def test_served_code_ends_as_that_of_an_ordinary_interpreter(tmp_path: Path, act: str) -> None:
    code = TELLS.replace("__file__", "__builtins__ is not None")
    ordinary, served = (
        ran(interpreter, "-c", code, act, "b c", directory=tmp_path, text="words")
        for interpreter in (sys.executable, warm.python())
    )
    assert (served.returncode, served.stdout, served.stderr) == (ordinary.returncode, ordinary.stdout, ordinary.stderr)


WAITS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print(os.getpid(), "torch" in sys.modules, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 9), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_signal_to_the_interpreter_reaches_the_program(tmp_path: Path, number: int, status: int) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    command = [warm.python(), "waits.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=warm.environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, torch = process.stdout.readline().split()
        assert torch == "True", "it was forked"
        process.send_signal(number)
        assert process.wait(timeout=60) == status
        assert process.stdout.read() == "", "the program has ended: nobody holds the other end"
    assert not Path(f"/proc/{pid}").exists() or number == signal.SIGKILL


@pytest.mark.parametrize("text", ["1", ""])
def test_whether_bytecode_is_written_is_followed(tmp_path: Path, text: str) -> None:
    code = "import sys; print('torch' in sys.modules, sys.dont_write_bytecode)"
    environment = warm.environment(PYTHONDONTWRITEBYTECODE=text)
    said = subprocess.run([warm.python(), "-c", code], env=environment, capture_output=True, check=True).stdout
    assert said == f"True {bool(text)}\n".encode()


def test_what_is_read_at_the_start_is_read_by_an_interpreter_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text("import sys; print('torch' in sys.modules)")
    found = []
    for more in ({}, {"OMP_NUM_THREADS": "2"}, {"PYTHONHASHSEED": "1"}, {"TORCH_LOGS": "dynamo"}):
        environment = warm.environment(**more)
        command = [warm.python(), "tells.py"]
        found.append(subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout)
    assert found == [b"True\n", b"False\n", b"False\n", b"False\n"]
