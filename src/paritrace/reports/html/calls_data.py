"""The calls of a report as data for its table: words once, rows of numbers, details while there is room (SU-7)."""

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

import msgspec

from paritrace.compare.rows import CallRow, SlotRow
from paritrace.evidence.gaps import Gap
from paritrace.reports.harmless import harmless, shorten_text
from paritrace.reports.html.worst_calls import Chosen
from paritrace.reports.wording import CLASSES, GROUPS, REASONS, short_function

LONGEST_WORD = 240
MOST_DETAIL_BYTES = 2_200_000
MOST_SLOTS = 24
MOST_REGIONS = 96  # marks of one slot
MOST_FINGERPRINTS = 3  # pairs of regions that differ, spelled out
SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
COLUMNS = ("id", "rank", "step", "phase", "level", "call", "module", "site", "status", "how", "group")
"""Of a row: the first three as they are, the others as places in `words`; after them the partner's record id or -1."""


class Words:
    """Each text once, harmless and bounded."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._known: dict[str, int] = {}  # by the text as it was recorded, where that is short

    def place(self, text: str, /) -> int:
        if text not in self._known:
            found = self._place(text)
            if len(text) > LONGEST_WORD:
                return found
            self._known[text] = found
        return self._known[text]

    def _place(self, text: str) -> int:
        shown = shorten_text(harmless(shorten_text(text, most=LONGEST_WORD)), most=LONGEST_WORD)
        return self._places.setdefault(shown, len(self._places))

    @property
    def all(self) -> list[str]:
        return list(self._places)


def calls_data(entries: Sequence[Chosen], /, *, total: int) -> dict[str, Any]:
    """Returns the data; `detailed` says of how many entries the details are there."""
    words = Words()
    rows = [_row(one.row, words) for one in entries]
    details: list[Any] = []
    room = MOST_DETAIL_BYTES
    for one in entries:
        made = _details(one, words)
        room -= len(msgspec.json.encode(made))
        if room < 0:
            break
        details.append(made)
    return {
        "columns": COLUMNS,
        "total": total,
        "rows": rows,
        "details": details,
        "detailed": len(details),
        "words": words.all,
    }


def as_script(data: dict[str, Any], /) -> str:
    """Returns data as JSON that is text in a script element whatever it holds."""
    return msgspec.json.encode(data).decode().translate(SAFE)


def site_of(row: CallRow, /) -> str:
    """Returns FILE:LINE of a call."""
    return f"{row.file}:{row.line}" if row.line > 0 else row.file or "no source line recorded"


def _row(row: CallRow, words: Words) -> list[Any]:
    how = CLASSES[row.difference_class] if row.difference_class is not None else _why(row)
    return [
        f"{row.side.value}:{row.record_id}",
        row.rank,
        row.step,
        *map(
            words.place,
            (
                row.phase,
                row.level,
                short_function(row.function),
                row.module,
                site_of(row),
                row.status.value,
                how,
                "" if row.group is None else row.group.value,
            ),
        ),
        row.partner,
    ]


def _why(row: CallRow) -> str:
    return REASONS[row.reason] if row.reason is not None else ""


def _details(one: Chosen, words: Words) -> dict[str, Any]:
    row = one.row
    facts = [
        ("call", row.function),
        ("stream", row.stream),
        ("group", "" if row.group is None else f"{row.group.value}: {GROUPS[row.group]}"),
        ("paired with", "" if one.partner is None else f"candidate:{one.partner.record_id} at {site_of(one.partner)}"),
        ("basis", "" if row.basis is None else row.basis.value),
        ("reason", "" if row.reason is None else f"{row.reason.value}: {REASONS[row.reason]}"),
        ("order", "in another order than its neighbours" if row.reordered else ""),
        ("arguments", row.scalars),
        ("arguments of the candidate", _other_scalars(one)),
        ("before it", _neighbour(one.before)),
        ("after it", _neighbour(one.after)),
    ]
    return {
        "facts": [[words.place(name), words.place(text)] for name, text in facts if text],
        "slots": _slots(one, words),
        "more": max(0, len(row.slots) - MOST_SLOTS),
    }


def _other_scalars(one: Chosen) -> str:
    return one.partner.scalars if one.partner is not None and one.partner.scalars != one.row.scalars else ""


def _neighbour(row: CallRow | None) -> str:
    if row is None:
        return "none in this session"
    return f"{row.side.value}:{row.record_id} {short_function(row.function)} at {site_of(row)}, {row.status.value}"


def _slots(one: Chosen, words: Words) -> list[Any]:
    others = {} if one.partner is None else {(slot.direction, slot.name): slot for slot in one.partner.slots}
    return [_slot(slot, others.get((slot.direction, slot.name)), words) for slot in one.row.slots[:MOST_SLOTS]]


def _slot(slot: SlotRow, other: SlotRow | None, words: Words) -> list[Any]:
    direction = {"i": "in", "o": "out"}.get(slot.direction, slot.direction)
    return [
        words.place(f"{direction} {slot.name}"),
        words.place(_kind(slot) if other is None or _kind(other) == _kind(slot) else f"{_kind(slot)} → {_kind(other)}"),
        words.place("" if slot.agreement is None else slot.agreement.value.replace("_", " ")),
        words.place(_bits(slot)),
        "" if other is None else words.place(_bits(other)),
        _regions(slot, other),
    ]


def _kind(slot: SlotRow) -> str:
    return f"{slot.dtype}[{', '.join(map(str, slot.shape))}]"


def _bits(slot: SlotRow) -> str:
    return f"({slot.bits.gap.value})" if isinstance(slot.bits, Gap) else slot.bits


def _regions(slot: SlotRow, other: SlotRow | None) -> list[Any]:
    """Marks of the regions ("=", "X"; "?" where a side has none), and the first fingerprints that differ."""
    ours, theirs = _split(slot), [] if other is None else _split(other)
    if not ours or not theirs:
        return []
    both = list(zip_longest(ours, theirs, fillvalue=""))
    marks = "".join("?" if not (a and b) else "=" if a == b else "X" for a, b in both)
    differing = [(number, a, b) for number, (a, b) in enumerate(both) if a and b and a != b]
    return [marks[:MOST_REGIONS], len(marks), list(chain(*differing[:MOST_FINGERPRINTS]))]


def _split(slot: SlotRow) -> list[str]:
    text, digits = (slot.regions, 16) if slot.regions else (slot.xor, 8)
    return [text[start : start + digits] for start in range(0, len(text), digits)]
