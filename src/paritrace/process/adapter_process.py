"""One adapter process and the two pipes to it; every wait on it has a deadline (RR-6, P5)."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.process.adapter_protocol import Answer, ToAdapter
from paritrace.process.commands import FORCE_GRACE_SECONDS
from paritrace.process.ending import Sent, end_tree
from paritrace.process.pidfds import end_of
from paritrace.process.stop_facts import Exited, Signalled, Wait

MAX_ANSWER_BYTES = 64 << 20  # an answer is held in memory whole; an adapter that prints more is not speaking to us
READ_BYTES = 1 << 16
LONGEST_SELECT_SECONDS = 3600.0  # the system call takes no more than some weeks; a longer wait is several of these
EXIT_SECONDS = 2.0  # from the end of its output to its wait status; a process that closes its output is at its end

_encoder = msgspec.json.Encoder()
_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


class TimeIsUp(Exception):  # noqa: N818  no error: our own timer
    """The deadline passed before the answer was there."""


class HostEnded(Exception):  # noqa: N818  no error: a fact of the other side
    """The other side closed its end: it has exited, or is about to."""


class AdapterProcess:
    """Started by the constructor's caller through `start`; used by one thread at a time, but for `pid`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._rest = bytearray()  # what was read and is no whole line yet
        self._searched = 0  # of it, without a line end: a long answer is searched once
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exchange(self, message: ToAdapter, *, until: float) -> Answer:
        """Send one message and return the answer; `until` is of `time.monotonic`.

        Raises:
            TimeIsUp, HostEnded: see there.
            EvidenceError: Failed, code `protocol_error`: what came is no answer.
        """
        with selectors.DefaultSelector() as waiting, end_of(self.pid) as ended:
            left = memoryview(_encoder.encode(message) + b"\n")
            waiting.register(self._from, selectors.EVENT_READ)
            waiting.register(self._to, selectors.EVENT_WRITE)
            if ended is not None:
                waiting.register(ended, selectors.EVENT_READ)
            while True:
                if not left and (line := self._line()) is not None:
                    return _answer(line)
                left_seconds = until - time.monotonic()
                ready = waiting.select(min(max(0.0, left_seconds), LONGEST_SELECT_SECONDS))
                if not ready and left_seconds <= 0:
                    raise TimeIsUp
                for descriptor in sorted((key.fd for key, _ in ready), key=lambda fd: fd == ended):  # its end last
                    if descriptor == self._from:
                        self._read()
                    elif descriptor == ended:
                        return self._last_answer()
                    else:
                        left = self._write(left)
                        if not left:
                            waiting.unregister(self._to)

    def _last_answer(self) -> Answer:
        """What the process left in the pipe before it ended; a descendant may hold the pipe open for ever."""
        while (line := self._line()) is None:
            before = len(self._rest)
            self._read()
            if len(self._rest) == before:
                raise HostEnded
        return _answer(line)

    def wait_status(self, *, within_seconds: float = EXIT_SECONDS) -> Wait | None:
        """The wait status, None where it has not ended in time."""
        try:
            code = self._process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return None
        return Exited(code) if code >= 0 else Signalled(-code)

    def end(self, *, sent: Sent, farewell: ToAdapter | None = None) -> Wait | None:
        """End it with all that it started: a word first where one is given, then signals, after the grace SIGKILL."""
        if farewell is not None:
            with suppress(OSError, HostEnded):
                self._write(memoryview(_encoder.encode(farewell) + b"\n"))
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        status = self.wait_status(within_seconds=0 if farewell is None else FORCE_GRACE_SECONDS)
        if status is None:
            end_tree(self.pid, grace_seconds=FORCE_GRACE_SECONDS, sent=sent)
            status = self.wait_status()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def _write(self, data: memoryview) -> memoryview:
        try:
            return data[os.write(self._to, data) :]
        except BlockingIOError:
            return data
        except OSError as error:
            raise HostEnded from error

    def _read(self) -> None:
        try:
            data = os.read(self._from, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise HostEnded
        self._rest += data
        if len(self._rest) > MAX_ANSWER_BYTES:
            raise _no_answer(f"an answer of more than {MAX_ANSWER_BYTES} bytes")

    def _line(self) -> bytes | None:
        end = self._rest.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._rest)
            return None
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._searched = 0
        return line


def start(
    command: Sequence[str], *, environment: Mapping[str, str], join: Callable[[], None] | None = None
) -> AdapterProcess:
    """Start an adapter; it leads a process group, and its standard error is ours.

    Raises:
        HostError: Refused, code `host_unavailable`.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  the command is the caller's adapter, without a shell
            list(command),
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
            bufsize=0,
            preexec_fn=join,  # noqa: PLW1509  one write to an open descriptor
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise HostError(
            f"the adapter {command[0]} cannot be started: {error}",
            code="host_unavailable",
            fix="check that it is installed, executable and on PATH; a host that has ended is not used again",
        ) from None
    return AdapterProcess(process)


def _answer(line: bytes) -> Answer:
    try:
        return _answers.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_answer(str(error)) from None


def _no_answer(why: str) -> EvidenceError:
    return EvidenceError(
        f"the adapter did not answer in the protocol: {why}",
        code="protocol_error",
        fix="an adapter answers each line with one JSON line on standard output, and prints to standard error alone",
        outcome=Outcome.FAILED,
    )
