"""JSON that other programs wrote: what strict JSON forbids is refused with its line, and the rest is read."""

import json
import re
from collections import Counter
from math import isfinite
from typing import Any, TypeGuard

from msgspec import Struct

from paritrace.evidence.strictness import Breach, Violation, fits, violations

BOM = b"\xef\xbb\xbf"
MOST_REFUSALS = 1000  # a file that breaks the rules more often than this is told of with so many
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # an escape that may be half of a surrogate pair
_TOLD = frozenset({Breach.DUPLICATE_KEY, Breach.NOT_FINITE, Breach.NUMBER_OVERFLOW})
_FEW_CHARACTERS = 18  # of an integer that is within 64 bits whatever they are: looked at no further


class Refusal(Struct, frozen=True):
    """What was not read of a file, and where it stands; `line` counts from 1, 0 where the file has no lines."""

    path: str
    line: int
    detail: str
    member: str = ""

    def __str__(self) -> str:
        inside = f" ({self.member})" if self.member else ""
        place = f", line {self.line}" if self.line else ""
        return f"{self.path}{inside}{place}: {self.detail}"


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Says whether a parsed value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Says whether a parsed value is an array."""
    return isinstance(value, list)


def members(value: object) -> dict[str, Any]:
    """Returns the members of a parsed object, none where the value is no object."""
    return value if is_object(value) else {}


def elements(value: object) -> list[Any]:
    """Returns the elements of a parsed array, none where the value is no array."""
    return value if is_array(value) else []


class Parsed(Struct, frozen=True):
    """`value` is None where the whole document was refused.

    In it a number that is not finite is null, and a key that occurs twice is left out.
    """

    value: Any
    refusals: tuple[Refusal, ...] = ()


class _Reader:
    """One document: notices what has to be looked up in the bytes afterwards."""

    def __init__(self, *, within_64_bits: bool) -> None:
        self.noticed = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._not_finite,
            parse_float=self._float,
            parse_int=self._integer if within_64_bits else None,
        )

    def read(self, text: str) -> Any:
        return self._decoder.decode(text)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.noticed = True
            counts = Counter(key for key, _ in pairs)
            return {key: value for key, value in pairs if counts[key] == 1}
        return found

    def _not_finite(self, _token: str) -> None:
        self.noticed = True

    def _integer(self, token: str) -> int | None:
        if len(token) <= _FEW_CHARACTERS or fits(token):
            return int(token)
        self.noticed = True
        return None

    def _float(self, token: str) -> float | None:
        value = float(token)
        if isfinite(value):
            return value
        self.noticed = True
        return None


def parse(data: bytes, *, path: str, member: str = "", first_line: int = 1, within_64_bits: bool = False) -> Parsed:
    """Return one document as plain values.

    A number that is not finite is null, a key that occurs twice in one object is left out; both are told with lines.
    Bytes that are no JSON are refused as a whole.

    Args:
        within_64_bits: an integer beyond them is null and told too; else it is that integer.
    """
    data = data.removeprefix(BOM)

    def refusal(offset: int, detail: str) -> Refusal:
        return Refusal(path=path, member=member, line=first_line + data.count(b"\n", 0, offset), detail=detail)

    reader = _Reader(within_64_bits=within_64_bits)
    try:
        text = data.decode("utf-8")
        value = reader.read(text)
    except UnicodeDecodeError as error:
        return Parsed(None, (refusal(error.start, f"byte {error.start} is not UTF-8"),))
    except json.JSONDecodeError as error:
        offset = len(error.doc[: error.pos].encode())
        torn = offset >= len(data.rstrip()) or error.msg.startswith("Unterminated string")
        said = "the file ends in the middle of a value (torn)" if torn else f"not JSON: {error.msg}"
        return Parsed(None, (refusal(offset, said),))
    except (RecursionError, ValueError) as error:
        return Parsed(None, (refusal(0, f"not readable as JSON: {type(error).__name__}"),))
    if _HALF.search(data) is not None:
        broken = next((v for v in violations(data, most=MOST_REFUSALS) if v.breach is Breach.LONE_SURROGATE), None)
        if broken is not None:
            return Parsed(None, (refusal(broken.offset, broken.detail),))
    if not reader.noticed:
        return Parsed(value)
    wanted = _TOLD | {Breach.INTEGER_TOO_LARGE} if within_64_bits else _TOLD
    found = [v for v in violations(data, most=MOST_REFUSALS) if v.breach in wanted]
    return Parsed(value, tuple(refusal(v.offset, _words(v)) for v in found))


def _words(violation: Violation) -> str:
    match violation.breach:
        case Breach.DUPLICATE_KEY:
            return f"{violation.detail} in one object: neither value is read"
        case _:
            return f"{violation.detail}: the value is not read"


def parse_lines(data: bytes, *, path: str, member: str = "") -> tuple[list[tuple[int, Any]], tuple[Refusal, ...]]:
    """Return the values of a JSON Lines file with their lines, from 1, and what was refused of it.

    A line that is no JSON is refused by itself; so is a last line without its newline that does not parse (torn).
    """
    values: list[tuple[int, Any]] = []
    refused: list[Refusal] = []
    for number, line in enumerate(data.removeprefix(BOM).split(b"\n"), 1):
        if not line.strip():
            continue
        parsed = parse(line, path=path, member=member, first_line=number)
        refused += parsed.refusals
        if parsed.value is not None:
            values.append((number, parsed.value))
    return values, tuple(refused)
