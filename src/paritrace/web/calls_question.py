"""Questions to the table of calls: what a person may filter and sort by, as SQL with bound values (SU-10).

Of what a browser sends only values reach the database, as bound parameters; names of columns are of this file.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from paritrace.compare.result import DifferenceClass, Group, Status, Unpaired
from paritrace.compare.rows import Correspondence, Side
from paritrace.errors import RequestError
from paritrace.evidence.calls import Level, Phase

LONGEST = 200  # characters of a text that is looked for; names in runs are shorter where people type them
LARGEST = 2**62  # of a number that is looked for; record ids and steps are int64


class Column(StrEnum):
    """Columns that the table shows and sorts by, in their order."""

    STEP = "step"
    RANK = "rank"
    SIDE = "side"
    RECORD = "record_id"
    FUNCTION = "function"
    MODULE = "module"
    FILE = "file"
    PHASE = "phase"
    LEVEL = "level"
    STATUS = "status"
    REASON = "reason"
    DIFFERENCE = "difference_class"
    GROUP = "group"


CLOSED: dict[str, tuple[str, ...]] = {
    "side": tuple(Side),
    "status": tuple(Status),
    "correspondence": tuple(Correspondence),
    "group": tuple(Group),
    "reason": tuple(Unpaired),
    "difference_class": tuple(DifferenceClass),
    "phase": tuple(Phase),
    "level": tuple(Level),
}
"""Columns that hold a word of a closed list."""

TEXTS = ("function", "module", "file")
NUMBERS = ("rank", "step", "line", "record_id")
TRUE = frozenset({"1", "true", "True"})
WORDS = frozenset(Column) - {Column.STEP, Column.RANK, Column.RECORD}
NAMES = ("text", *TEXTS, *CLOSED, *NUMBERS, "reordered", "session_id", "sort", "descending")


class Question(Struct, frozen=True):
    """Which rows, in which order. `has`: texts that a column contains, whatever the case; `text`: any of TEXTS does."""

    text: str = ""
    has: tuple[tuple[str, str], ...] = ()
    equal: tuple[tuple[str, str | int], ...] = ()
    sort: Column | None = None  # None: as the file has them, in order of execution
    descending: bool = False

    @property
    def is_all(self) -> bool:
        """Whether every row is asked for, in the order of the file."""
        return self == Question()


def asked(values: Mapping[str, str], /) -> Question:
    """Returns the question that the parameters of an address ask; empty ones and foreign names are left out.

    Raises:
        RequestError: Refused, `bad_filter`: a value that no row can have.
    """
    given = {name: values[name].strip() for name in NAMES if values.get(name, "").strip()}
    for name, text in given.items():
        if len(text) > LONGEST:
            raise _bad(f"{name} is longer than {LONGEST} characters", "look for a shorter part of it")
    equal: list[tuple[str, str | int]] = [(name, _word(name, given[name])) for name in CLOSED if name in given]
    equal += [(name, _number(name, given[name])) for name in NUMBERS if name in given]
    equal += [("session_id", given["session_id"])] if "session_id" in given else []
    equal += [("reordered", given["reordered"] in TRUE)] if "reordered" in given else []
    return Question(
        text=given.get("text", ""),
        has=tuple((name, given[name]) for name in TEXTS if name in given),
        equal=tuple(equal),
        sort=_column(given["sort"]) if "sort" in given else None,
        descending=given.get("descending") in TRUE,
    )


def _word(name: str, text: str) -> str:
    if text not in CLOSED[name]:
        raise _bad(f"{text!r} is no {name}", f"one of {', '.join(CLOSED[name])}")
    return text


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > LARGEST:
        raise _bad(f"{text!r} is no {name}", f"give {name} as a whole number")
    return int(text)


def _column(text: str) -> Column:
    if text not in tuple(Column):
        raise _bad(f"the table is not sorted by {text!r}", f"one of {', '.join(Column)}")
    return Column(text)


def _bad(message: str, fix: str) -> RequestError:
    return RequestError(message, code="bad_filter", fix=fix)


class Condition(Struct, frozen=True):
    """An SQL condition over the columns of calls.parquet; the values stand for its question marks, in order."""

    sql: str
    values: tuple[str | int, ...]


def condition_of(question: Question, /) -> Condition:
    """Returns what a row must be to be part of the answer."""
    terms: list[str] = []
    values: list[str | int] = []
    if question.text:
        terms.append("(" + " OR ".join(_contains(name) for name in TEXTS) + ")")
        values += [question.text.lower()] * len(TEXTS)
    for name, text in question.has:
        terms.append(_contains(name))
        values.append(text.lower())
    for name, value in question.equal:
        terms.append(f'"{name}" = ?')
        values.append(value)
    return Condition(" AND ".join(terms) or "TRUE", tuple(values))


def order_of(question: Question, /) -> str:
    """Returns the SQL order of the answer; rows that a column does not tell apart stay in the order of the file.

    A column of words is sorted by `place`, the rank of each word among those there are: several times quicker.
    """
    way = "DESC" if question.descending else "ASC"
    if question.sort is None:
        return f"n {way}"
    return f"{'place' if question.sort in WORDS else question.sort.value} {way} NULLS LAST, n"


def _contains(name: str) -> str:
    return f'contains(lower("{name}"), ?)'
