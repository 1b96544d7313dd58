"""Records of reading a journal: each loss, and where every byte went (EV-8)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.calls import EndMark, JournalHeader


class LossReason(StrEnum):
    TORN = "torn"  # the line was cut off: it does not end, or something else was glued to its stump
    MALFORMED = "malformed"
    SEVERAL_VALUES = "several_values"
    INVALID = "invalid"
    FOREIGN = "foreign"  # NULs left by a copy-truncate rotation, or a header in the middle
    TOO_LONG = "too_long"
    MISSING = "missing"  # no journal, or one shorter than what was sealed: `length` is 0, nothing was read there


class Loss(Struct, frozen=True):
    """Bytes of a journal that hold no record: `offset` and `length` in bytes, `line` from 1."""

    offset: int
    length: int
    line: int
    reason: LossReason
    detail: str


class Account(Struct, frozen=True):
    """Where every byte of a journal went: `record_bytes + torn_bytes + foreign_bytes == size` (EV-8)."""

    size: int
    records: int
    record_bytes: int
    torn_bytes: int
    foreign_bytes: int
    losses: int
    calls: int
    details: int
    states: int
    unknown_fields: int  # of a higher minor version
    unknown_records: int
    had_bom: bool
    crlf_lines: int
    blank_lines: int
    header: JournalHeader | None
    end: EndMark | None
    records_after_end: int
