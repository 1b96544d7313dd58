"""What is said of one call of a comparison, as arguments of its slice; texts that come again are put together once."""

from paritrace.compare.result import Agreement
from paritrace.compare.rows import CallRow, SlotRow
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.reports.traces.events import Arguments, Value

MOST_KEPT = 50_000  # of each kind of text: bounds the memory of a run with endless names

Words = tuple[tuple[str, str], ...]


class Said:
    """Makes the arguments of slices, row after row."""

    def __init__(self) -> None:
        self._words: dict[tuple[object, ...], Words] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._kinds: dict[tuple[str, tuple[int, ...]], str] = {}

    def words(self, row: CallRow, /) -> Words:
        """Returns what is said in words of closed lists and names of the program."""
        key = (
            row.phase,
            row.module,
            row.function,
            row.status,
            row.correspondence,
            row.basis if row.partner >= 0 else "",
            row.validation,
            row.reason,
            row.difference_class,
            row.group,
        )
        known = self._words.get(key)
        if known is None:
            known = _words(row)
            if len(self._words) < MOST_KEPT:
                self._words[key] = known
        return known

    def arguments(self, row: CallRow, /) -> Arguments:
        """Returns what is the call's own: its numbers, and each tensor with dtype, shape and bits."""
        said: list[tuple[str, Value]] = [
            ("record_id", row.record_id),
            ("step", row.step),
            ("microbatch", row.microbatch),
        ]
        if row.partner >= 0:
            said.append(("partner", row.partner))
        for slot in row.slots:
            name = self._names.get((slot.direction, slot.name)) or self._name(slot)
            said.append((name, self._tensor(slot)))
            if slot.figures is not None:
                said.append((f"{name} max_absolute", _or_nan(slot.figures.max_absolute)))
                said.append((f"{name} max_relative", _or_nan(slot.figures.max_relative)))
        return tuple(said)

    def _name(self, slot: SlotRow) -> str:
        name = f"{'in' if slot.direction == 'i' else 'out'} {slot.name}"
        if len(self._names) < MOST_KEPT:
            self._names[slot.direction, slot.name] = name
        return name

    def _tensor(self, slot: SlotRow) -> str:
        kind = self._kinds.get((slot.dtype, slot.shape)) or self._kind(slot)
        bits = slot.bits if isinstance(slot.bits, str) else _no_bits(slot.bits)
        agreement = slot.agreement
        return f"{kind} {bits}" if agreement is None or agreement is _EQUAL else f"{kind} {bits} {agreement}"

    def _kind(self, slot: SlotRow) -> str:
        kind = f"{slot.dtype}{list(slot.shape)}"
        if len(self._kinds) < MOST_KEPT:
            self._kinds[slot.dtype, slot.shape] = kind
        return kind


_EQUAL = Agreement.EQUAL


def _no_bits(bits: Gap[CaptureGap]) -> str:
    return f"no bits: {bits.gap}"


def _words(row: CallRow) -> Words:
    said = [
        ("phase", row.phase),
        ("module", row.module),
        ("called", row.function),
        ("status", row.status.value),
        ("correspondence", row.correspondence.value),
    ]
    if row.partner >= 0:
        said.append(("basis", "" if row.basis is None else row.basis.value))
        said.append(("validation", "" if row.validation is None else row.validation.value))
    others = (("reason", row.reason), ("difference_class", row.difference_class), ("group", row.group))
    return (*said, *((name, word.value) for name, word in others if word is not None))


def _or_nan(value: float | None) -> float | str:
    return "no finite pair" if value is None else value
