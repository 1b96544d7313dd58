"""A child in our place: streams untouched, signals passed to its group, its status ours (CA-1, SU-3)."""

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.errors import RequestError
from paritrace.process.foreground import run_in_our_place

DEADLINE_SECONDS = 60
OUTER = """
import os, sys
from paritrace.process.foreground import run_in_our_place
sys.exit(run_in_our_place(sys.argv[1:], environment=os.environ))
"""
# A child with a child of its own; each tells when it is ready and by what it was ended.
FAMILY = """
import os, signal, sys
def told(name):
    def hear(number, frame):
        os.write(1, f"{name} heard {number}\\n".encode())
        os._exit(5)
    signal.signal(signal.SIGTERM, hear)
    signal.signal(signal.SIGINT, hear)
read, write = os.pipe()
if os.fork() == 0:
    told("grandchild")
    os.write(write, b".")
    signal.pause()
told("child")
os.read(read, 1)
os.write(1, b"ready\\n")
signal.pause()
"""


def outer(*command: str) -> list[str]:
    return [sys.executable, "-c", OUTER, *command]


def hears_interrupts() -> None:
    """In a child, before it becomes another program: a shell's background job, as a CI may be, ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_output_input_and_status_are_the_childs(tmp_path: Path) -> None:
    program = (
        "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data); sys.stderr.write('e'); sys.exit(7)"
    )
    data = bytes(range(256))
    done = subprocess.run(
        outer(sys.executable, "-c", program), input=data, capture_output=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, data, b"e")


def test_a_signal_that_ended_the_child_is_told_as_a_shell_does() -> None:
    done = subprocess.run(
        outer(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), timeout=DEADLINE_SECONDS, check=False
    )
    assert done.returncode == 128 + 9


def test_a_kill_of_ours_ends_all_that_the_child_started() -> None:
    """kill -9 cannot be handed on: a guard sees the end, and asks both to end in time (ST-17)."""
    with subprocess.Popen(
        outer(sys.executable, "-c", FAMILY), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"ready\n"
        ours.kill()
        output, _ = ours.communicate(timeout=DEADLINE_SECONDS)  # until both have ended
    assert sorted(output.splitlines()) == [b"child heard 15", b"grandchild heard 15"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_all_that_the_child_started(number: signal.Signals) -> None:
    with subprocess.Popen(
        outer(sys.executable, "-c", FAMILY),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=hears_interrupts,  # noqa: PLW1509  no thread of the test holds a lock that this needs
    ) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"ready\n"
        ours.send_signal(number)
        output, _ = ours.communicate(timeout=DEADLINE_SECONDS)
        assert ours.returncode == 5
    told = set(output.splitlines())
    assert told == {f"{name} heard {int(number)}".encode() for name in ("child", "grandchild")}


def test_a_terminal_belongs_to_the_child_while_it_runs() -> None:
    """It reads from it, and an interrupt typed there reaches it."""
    program = (
        "import select, sys\n"
        "try:\n"
        "    print('said', sys.stdin.readline().strip(), flush=True)\n"
        "    while True: select.select([], [], [], 0.05)\n"  # not once and for long: it may come before the call
        "except KeyboardInterrupt:\n    print('interrupted', flush=True); sys.exit(3)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        hears_interrupts()
        os.execv(sys.executable, outer(sys.executable, "-c", program))
    os.write(terminal, b"hello\n")
    _until(terminal, b"said hello")
    os.write(terminal, b"\x03")
    _until(terminal, b"interrupted")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 3


def _until(terminal: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], DEADLINE_SECONDS)
        assert ready, seen
        seen += os.read(terminal, 1024)


def test_what_was_not_there_to_start_is_refused() -> None:
    for command in (["no-such-launcher-anywhere"], ["bad\0name"]):
        with pytest.raises(RequestError) as refused:
            run_in_our_place(command, environment=os.environ)
        assert refused.value.code == "no_launcher"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "as it was before"
