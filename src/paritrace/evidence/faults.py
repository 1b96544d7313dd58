"""What is wrong with bytes that are no record: strictness first, then syntax, then the types (EV-2)."""

import re
from enum import StrEnum

import msgspec
from msgspec import Struct

from paritrace.evidence.strictness import Breach, Violation, walk

_plain = msgspec.json.Decoder()
_BYTE = re.compile(r" \(byte (\d+)\)\Z")
# Every byte as what it may mean to a number: a digit, a minus, what stands before a number, anything else. Digits in
# strings follow a quote or a letter, so they are not taken for numbers.
_ROLES = bytes.maketrans(
    bytes(range(256)),
    bytes(
        0x30 if char in b"0123456789" else 0x2D if char == 0x2D else 0x2C if char in b"[,: \t\r\n" else 0x78
        for char in range(256)
    ),
)
_LONG_POSITIVE, _LONG_NEGATIVE = b"," + b"0" * 20, b"-" + b"0" * 19  # 2**64 has 20 digits, -2**63 has 19


class FaultKind(StrEnum):
    """Why bytes are not a record."""

    MALFORMED = "malformed"  # not JSON, or not the JSON that EV-2 allows
    SEVERAL_VALUES = "several_values"  # more than one JSON value on one line
    INVALID = "invalid"  # JSON, but not a record of this format


class Fault(Struct, frozen=True):
    """`offset` is counted from the start of the bytes looked at."""

    kind: FaultKind
    offset: int
    detail: str


def may_hold_long_integer(data: bytes) -> bool:
    """Say whether an integer beyond 64 bits may stand in `data`; the decoders would take it."""
    roles = data.translate(_ROLES)
    return _LONG_POSITIVE in roles or _LONG_NEGATIVE in roles


def breach_of(data: bytes) -> Fault | None:
    """Return the first thing in `data` that strict JSON forbids, or None; other syntax errors are the decoder's."""
    found = walk(data)
    violation = found.violation
    if violation is None:
        return None
    if violation.breach is Breach.SEVERAL_VALUES and _all_parse(data, found.values):
        detail = f"line holds {len(found.values)} JSON values ({violation.detail})"
        return Fault(FaultKind.SEVERAL_VALUES, violation.offset, detail)
    if violation.breach is Breach.SEVERAL_VALUES:
        return None
    return _fault(violation)


def _all_parse(data: bytes, starts: tuple[int, ...]) -> bool:
    try:
        for begin, end in zip(starts, (*starts[1:], len(data)), strict=True):
            _plain.decode(data[begin:end])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _fault(violation: Violation) -> Fault:
    return Fault(FaultKind.MALFORMED, violation.offset, f"{violation.breach.value}: {violation.detail}")


def invalid(data: bytes, said: str) -> Fault:
    """Tell a document that is no record from one whose syntax breaks only after its first wrong value."""
    try:
        _plain.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        return bad_syntax(data, str(error))
    return Fault(FaultKind.INVALID, 0, said)


def bad_syntax(data: bytes, said: str) -> Fault:
    """Return the fault for what the decoder `said`, at the byte it names."""
    found = _BYTE.search(said)
    offset = int(found.group(1)) if found is not None else len(data)
    return Fault(FaultKind.MALFORMED, offset, f"invalid JSON: {said}")
