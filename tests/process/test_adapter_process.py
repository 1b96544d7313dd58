"""An adapter that ends is known to have ended, whoever holds its pipes (RS-6, E-11)."""

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from paritrace.process.adapter_process import AdapterProcess, HostEnded, start
from paritrace.process.adapter_protocol import Farewell, Ready
from paritrace.process.pidfds import end_of
from paritrace.process.stop_facts import Exited, Signalled, Wait

WAIT_SECONDS = 60.0
HOLDER = "sleep 3600 2>/dev/null & "  # a descendant that holds the output open
READY = """echo '{"type": "ready", "adapter": "mine"}'; """


@contextmanager
def adapter(script: str) -> Generator[AdapterProcess]:
    process = start(["sh", "-c", script], environment=dict(os.environ))
    try:
        yield process
    finally:
        process.end(sent=print)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def until() -> float:
    return time.monotonic() + WAIT_SECONDS


@pytest.mark.parametrize(
    ("ending", "status"), [("kill -9 $$", Signalled(signal.SIGKILL)), ("exit 3", Exited(3))], ids=["killed", "exited"]
)
def test_e11_a_descendant_that_holds_the_output_does_not_turn_an_end_into_a_timeout(ending: str, status: Wait) -> None:
    with adapter(f"{HOLDER} read line; {ending}") as process:
        with pytest.raises(HostEnded):
            process.exchange(Farewell(), until=until())
        assert process.wait_status() == status


def test_rs6_an_answer_that_was_given_before_the_end_is_the_answer() -> None:
    with adapter(f"{HOLDER} read line; {READY} exit 0") as process:
        assert process.exchange(Farewell(), until=until()) == Ready(adapter="mine")


def test_rs6_part_of_an_answer_is_none() -> None:
    with adapter(f"{HOLDER} read line; printf '{{'; exit 0") as process, pytest.raises(HostEnded):
        process.exchange(Farewell(), until=until())


def test_rs6_what_was_waited_for_has_no_descriptor() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    with end_of(pid) as descriptor:
        assert descriptor is not None
    os.waitpid(pid, 0)
    with end_of(pid) as descriptor:
        assert descriptor is None
