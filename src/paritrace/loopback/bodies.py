"""The size of a request's body, also of one that does not say its length (SE-17, SU-11)."""

from collections.abc import Callable, Mapping

from starlette.types import Message, Receive

from paritrace.errors import ParitraceError


class Limited:
    """A `receive` that raises once more bytes have come than are taken."""

    def __init__(self, receive: Receive, *, most_bytes: int, too_large: Callable[[], ParitraceError]) -> None:
        self._receive = receive
        self._most_bytes = most_bytes
        self._too_large = too_large
        self._num_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._num_bytes += len(message.get("body", b""))
        if self._num_bytes > self._most_bytes:
            raise self._too_large()
        return message


def stated_length(headers: Mapping[str, str], /) -> int:
    """Return the length that a request says its body has, 0 where it says none."""
    stated = headers.get("content-length", "0")
    return int(stated) if stated.isdecimal() and len(stated) < 19 else 0
