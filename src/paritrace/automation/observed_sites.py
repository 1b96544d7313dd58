"""Which call sites of a run carried tensors: a rule over the records of its journals (CA-11)."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct

from paritrace.evidence import calls
from paritrace.evidence.callsites import RewrittenFile

MAX_SHAPES = 16  # of one slot; the number of further ones is given
MAIN = "<main>"  # how evidence spells the main script


class ObservedSlot(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor argument or result of a call site. `more_shapes`: how many further shapes it had."""

    name: str
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    more_shapes: int = 0


class ObservedSite(Struct, frozen=True, forbid_unknown_fields=True):
    """Calls at one line and 0-based column that carried tensors, over all ranks."""

    line: int
    column: int
    functions: tuple[str, ...]
    calls: int
    slots: tuple[ObservedSlot, ...]


class ObservedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the checkout that was loaded. `reason`: why its calls were not observed, empty where they were.

    `sha256` is empty where no rank could read its text.
    """

    file: str
    sha256: str
    sites: tuple[ObservedSite, ...]
    reason: str = ""


class _Slot:
    def __init__(self) -> None:
        self.dtypes: set[str] = set()
        self.shapes: set[tuple[int, ...]] = set()


class _Site:
    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.calls = 0
        self.slots: defaultdict[str, _Slot] = defaultdict(_Slot)


class Observing:
    """Takes the records of each rank's journal in turn; `files` is what all of them showed.

    Args:
        main: the main script's path below the root of the checkout.
    """

    def __init__(self, main: str) -> None:
        self._main = main
        self._sites: defaultdict[tuple[str, int, int], _Site] = defaultdict(_Site)
        self._files: dict[str, RewrittenFile] = {}
        self.unlike: dict[str, set[str]] = defaultdict(set)  # files whose text was not the same on all ranks
        self.calls: Counter[int] = Counter()

    def take(self, rank: int, records: Iterable[object]) -> None:
        """Take one rank's records, in their order."""
        names: dict[int, str] = {}
        kinds: dict[int, calls.Kind] = {}
        functions: dict[int, str] = {}
        places: dict[int, tuple[str, int, int]] = {}
        for record in records:
            match record:
                case calls.Call():
                    site = self._sites[places[record.site]]
                    site.calls += 1
                    site.functions.add(functions[record.function])
                    self.calls[rank] += 1
                    for slot in (*record.inputs, *record.outputs):
                        seen = site.slots[names[slot.name]]
                        seen.dtypes.add(kinds[slot.kind].dtype)
                        seen.shapes.add(kinds[slot.kind].shape)
                case calls.Name():
                    names[record.id] = record.text
                case calls.Kind():
                    kinds[record.id] = record
                case calls.Function():
                    functions[record.id] = record.name
                case calls.Site():
                    places[record.id] = (self._spelled(record.file), record.line, record.column)
                case RewrittenFile():
                    self._file(record)
                case _:
                    pass

    @property
    def files(self) -> tuple[ObservedFile, ...]:
        """Every loaded file of the checkout, by name."""
        sites: defaultdict[str, list[ObservedSite]] = defaultdict(list)
        for (file, line, column), site in sorted(self._sites.items()):
            slots = tuple(_slot(name, slot) for name, slot in sorted(site.slots.items()))
            sites[file].append(ObservedSite(line, column, tuple(sorted(site.functions)), site.calls, slots))
        return tuple(
            ObservedFile(file, one.digest if isinstance(one.digest, str) else "", tuple(sites[file]), one.reason)
            for file, one in sorted(self._files.items())
        )

    def _file(self, record: RewrittenFile) -> None:
        file = self._spelled(record.file)
        known = self._files.setdefault(file, record)
        if known.digest != record.digest:
            self.unlike[file] |= {str(known.digest), str(record.digest)}
        if known.reason and not record.reason:
            self._files[file] = record

    def _spelled(self, file: str) -> str:
        return self._main if file == MAIN else file


def _slot(name: str, slot: _Slot) -> ObservedSlot:
    shapes = sorted(slot.shapes, key=lambda shape: (len(shape), shape))
    kept = tuple(shapes[:MAX_SHAPES])
    return ObservedSlot(name, tuple(sorted(slot.dtypes)), kept, max(len(shapes) - MAX_SHAPES, 0))
