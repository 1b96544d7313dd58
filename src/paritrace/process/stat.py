"""Parses /proc/PID/stat: what stands behind the name, whose closing parenthesis is the last one (RS-3)."""

from msgspec import Struct

_STATE, _PARENT, _GROUP, _SESSION = 0, 1, 2, 3
_CPU_OWN = slice(11, 13)  # user and system ticks
_CPU_WAITED = slice(13, 15)  # of children that were waited for
_NUM_THREADS, _START, _RESIDENT = 17, 19, 21
_ENDED = ("Z", "X", "x")


class Stat(Struct, frozen=True):
    """The fields of one line that are read here; ticks and pages as the kernel gives them."""

    state: str
    parent: int
    group: int
    session: int
    own_ticks: int
    waited_ticks: int
    num_threads: int
    start_ticks: int
    resident_pages: int

    @property
    def first_thread_ended(self) -> bool:
        """Whether the process, or the first of its threads, has ended."""
        return self.state in _ENDED

    @property
    def has_ended(self) -> bool:
        """Whether it has ended with all of its threads; nobody has taken its exit status yet."""
        return self.first_thread_ended and self.num_threads <= 1


def parse_stat(text: bytes) -> Stat:
    """Parse a whole line.

    Raises:
        ValueError: it is torn, or not such a line.
    """
    fields = text[text.rindex(b")") + 1 :].split()
    if len(fields) <= _RESIDENT:
        raise ValueError(f"only {len(fields)} fields")
    return Stat(
        state=fields[_STATE].decode("ascii"),
        parent=int(fields[_PARENT]),
        group=int(fields[_GROUP]),
        session=int(fields[_SESSION]),
        own_ticks=sum(map(int, fields[_CPU_OWN])),
        waited_ticks=sum(map(int, fields[_CPU_WAITED])),
        num_threads=int(fields[_NUM_THREADS]),
        start_ticks=int(fields[_START]),
        resident_pages=int(fields[_RESIDENT]),
    )


def name_in(text: bytes) -> str:
    """The name in a whole line: at most 15 bytes, which whoever has the process may set to anything."""
    return text[text.index(b"(") + 1 : text.rindex(b")")].decode("utf-8", "replace")
