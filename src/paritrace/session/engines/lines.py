"""A line between coordinator and rank: frames over a stream socket, with deadlines, and a way to end a wait (SE-16)."""

import os
import select
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress

from paritrace.session.engines.seam import RankLine

SEND_SECONDS = 1.0  # control threads read at once: a buffer that stays full belongs to a stopped process
MESSAGE_BYTES = 64 * 2**20  # a configuration of ten million numbers fits; more is no message of ours
GONE_AFTER_SECONDS = 30  # a machine that acknowledges nothing for so long is gone, or its link: TCP itself waits hours
_PROBE_SECONDS = 5
_READ_BYTES = 1 << 16
_LENGTH = struct.Struct(">I")


class Frames:
    """Cuts a stream into messages: four bytes of length, then as many bytes."""

    def __init__(self, message_bytes: int) -> None:
        self.message_bytes = message_bytes  # the longest that is taken
        self._left = bytearray()

    def fed(self, data: bytes) -> list[bytes]:
        """Return the messages that are whole now. Raises ValueError for a length that no message of ours has."""
        self._left += data
        found: list[bytes] = []
        while len(self._left) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._left)
            if length > self.message_bytes:
                raise ValueError(f"a message of {length} bytes")
            if len(self._left) < _LENGTH.size + length:
                break
            found.append(bytes(self._left[_LENGTH.size : _LENGTH.size + length]))
            del self._left[: _LENGTH.size + length]
        return found


class Waker:
    """Ends a wait from any thread: `fileno` is readable once `wake` was called, until `rest`."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._read

    def wake(self) -> None:
        """From any thread, also after `close`."""
        with suppress(OSError):  # full: somebody has called already; closed: nobody waits
            os.write(self._write, b"w")

    def rest(self) -> None:
        """Forget the calls so far."""
        with suppress(BlockingIOError):
            while os.read(self._read, _READ_BYTES):
                pass

    def close(self) -> None:
        """Let go of both ends."""
        read, self._read = self._read, -1
        write, self._write = self._write, -1
        for descriptor in (read, write):
            if descriptor >= 0:
                os.close(descriptor)


class Line:
    """One end of a line. It owns its socket; of one thread."""

    def __init__(self, end: socket.socket, *, message_bytes: int = MESSAGE_BYTES) -> None:
        self._end = end
        self._frames = Frames(message_bytes)
        self._open = True
        end.setblocking(False)

    def is_open(self) -> bool:
        """Whether anything can be sent, as far as we know."""
        return self._open

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._end.fileno()

    def trust(self) -> None:
        """Take messages of any length of ours from now on."""
        self._frames.message_bytes = MESSAGE_BYTES

    def send(self, data: bytes, *, seconds: float = SEND_SECONDS) -> None:
        """Write a message. Raises OSError where the line is closed, or stuck for so long: it is closed then."""
        if not self._open:
            raise BrokenPipeError("the line is closed")
        try:
            self._end.settimeout(seconds)
            self._end.sendall(_LENGTH.pack(len(data)) + data)
            self._end.setblocking(False)
        except OSError:  # half a message may have gone: nothing can follow it
            self.close()
            raise

    def arrived(self) -> list[bytes]:
        """Return the messages that are here, without waiting; the line is closed once its other end is."""
        found: list[bytes] = []
        while self._open:
            try:
                data = self._end.recv(_READ_BYTES)
                found += self._frames.fed(data)
            except BlockingIOError:
                break
            except (OSError, ValueError):
                self.close()
            else:
                if not data:
                    self.close()
        return found

    def finish(self) -> None:
        """Send no more: the other end reads what was sent, and then the end. Closing with words of theirs unread would
        take from them what was sent last."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of the socket: the other end sees it."""
        self._open = False
        self._end.close()


class SocketLine(RankLine):
    """The rank's end, as the seam wants it: `receive` waits, `wake` ends that from another thread."""

    def __init__(self, end: socket.socket) -> None:
        self._line = Line(end)
        self._waker = Waker()

    def send(self, data: bytes) -> None:
        """Write. Raises OSError where the line is closed."""
        self._line.send(data)

    def receive(self, timeout_seconds: float) -> list[bytes] | None:
        """Return what has come, waiting at most so long for the first; None where the line is closed."""
        if not self._line.is_open():
            return None
        readable_within((self._line.fileno(), self._waker.fileno()), timeout_seconds)
        self._waker.rest()
        found = self._line.arrived()
        return found if found or self._line.is_open() else None

    def wake(self) -> None:
        """From any thread: end a `receive` that waits."""
        self._waker.wake()

    def close(self) -> None:
        """Close the line."""
        self._line.close()
        self._waker.close()


def ends_with_its_machine(end: socket.socket, /) -> None:
    """Have a line end where the machine of its other end is gone; a process that is stopped does not end it.

    What was sent is acknowledged by the other kernel, and so are probes where nothing is sent; after GONE_AFTER_SECONDS
    without either the line is closed.
    """
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    tuned = {
        "TCP_KEEPIDLE": _PROBE_SECONDS,
        "TCP_KEEPINTVL": _PROBE_SECONDS,
        "TCP_KEEPCNT": GONE_AFTER_SECONDS // _PROBE_SECONDS - 1,
        "TCP_USER_TIMEOUT": GONE_AFTER_SECONDS * 1000,
    }
    for name, value in tuned.items():
        option = getattr(socket, name, None)  # where a system has no such option, TCP's own patience holds
        if option is not None:
            end.setsockopt(socket.IPPROTO_TCP, option, value)


def readable_within(descriptors: Iterable[int], seconds: float) -> set[int]:
    """Return which of them are readable, or at their end, waiting at most so long for the first."""
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in waiting.poll(max(0.0, seconds) * 1000)}
