"""Identity: ids of runs and sessions, references, and processes (EV-3)."""

import re
from typing import Annotated, NewType
from uuid import UUID

from msgspec import Meta, Struct

from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap, RunGap

RunId = NewType("RunId", str)

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_RANDOM_BYTES = 10  # 74 random bits of a time-ordered UUID, rounded up


class Ref(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """An id together with who gave it: equal ids of different producers never join. Neither is empty."""

    producer_id: Annotated[str, Meta(min_length=1)]
    id: Annotated[str, Meta(min_length=1)]


class ProcessIdentity(Struct, frozen=True, forbid_unknown_fields=True):
    """A process, never by its pid alone.

    `start_ticks`: clock ticks after boot, as /proc/PID/stat gives it. `pid_namespace` tells containers of one host
    apart, whose pids mean different processes.
    """

    host: str
    boot_id: str | Gap[RunGap]
    pid_namespace: str | Gap[RunGap]
    pid: int
    start_ticks: int | Gap[RunGap]


def checked_id(text: str, *, what: str) -> str:
    """Return `text` if it is 1 to 128 of `[A-Za-z0-9._-]` and not `.` or `..`.

    Raises:
        RequestError: Refused, code `bad_id`.
    """
    if _ID.match(text) is None or text in {".", ".."}:
        raise RequestError(
            f"{what} {text[:140]!r} is not a valid id",
            code="bad_id",
            fix="use 1 to 128 of the characters A-Z a-z 0-9 . _ - (and not . or .. alone)",
        )
    return text


def new_run_id(*, unix_ns: int, random: bytes) -> RunId:
    """Return a time-ordered unique id (the layout of UUID version 7) from a wall time and 10 random bytes."""
    if len(random) != _RANDOM_BYTES:
        raise ValueError(f"{_RANDOM_BYTES} random bytes are needed, not {len(random)}")
    milliseconds = (unix_ns // 1_000_000) & ((1 << 48) - 1)
    noise = int.from_bytes(random)
    bits = milliseconds << 80 | 0x7 << 76 | (noise & 0xFFF) << 64 | 0b10 << 62 | (noise >> 12) & ((1 << 62) - 1)
    return RunId(str(UUID(int=bits)))


def session_id_of(*, rank: int, incarnation: int) -> str:
    """Return the session id of a rank: `rank-0`, and `rank-0.restart-2` in the second restart of a launcher."""
    return f"rank-{rank}" if incarnation == 0 else f"rank-{rank}.restart-{incarnation}"
