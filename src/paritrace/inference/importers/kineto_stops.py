"""Why a trace was read no further, and where: a closed list (IN-10)."""

from enum import StrEnum

from msgspec import Struct


class StopReason(StrEnum):
    """Why reading ended before the end of a well-formed trace."""

    FILE_ENDS = "file_ends"  # in the middle of a value, or without the closers
    GZIP_ENDS = "gzip_ends"  # compressed data that lacks its end
    GZIP_DAMAGED = "gzip_damaged"
    CONTROL_CHARACTER = "control_character"  # raw, inside a string
    INVALID_JSON = "invalid_json"
    NOT_A_TRACE = "not_a_trace"  # JSON, but no object or array of events
    TOO_LARGE = "too_large"  # one value larger than is held in memory


class Stop(Struct, frozen=True):
    """`byte`: offset in the uncompressed text. `events`: how many were read before it."""

    reason: StopReason
    byte: int
    events: int
    detail: str = ""


class Stopped(Exception):  # noqa: N818  not an error: the reader keeps what it has and says so
    """Raised inside the reader where it can go no further."""

    def __init__(self, reason: StopReason, byte: int, detail: str = "") -> None:
        super().__init__(reason, byte, detail)
        self.reason = reason
        self.byte = byte
        self.detail = detail
