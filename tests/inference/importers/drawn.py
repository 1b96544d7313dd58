"""Drawing the events of a source, and the files that tests read."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from paritrace.inference.importing import Account, Asked, Imported, Scope
from paritrace.inference.records import Capabilities, Iteration, Loss, Observation, Request, Stage

DATA = Path(__file__).parents[2] / "data" / "inference"


class Drawn(Struct, frozen=True):
    """All events of a source, and the account of them."""

    events: list[Observation]
    account: Account
    imported: Imported

    @property
    def iterations(self) -> list[Iteration]:
        return [one for one in self.events if isinstance(one, Iteration)]

    @property
    def requests(self) -> list[Request]:
        return [one for one in self.events if isinstance(one, Request)]

    @property
    def stages(self) -> list[Stage]:
        return [one for one in self.events if isinstance(one, Stage)]

    @property
    def losses(self) -> list[Loss]:
        return [one for one in self.events if isinstance(one, Loss)]

    @property
    def capabilities(self) -> list[Capabilities]:
        return [one for one in self.events if isinstance(one, Capabilities)]


def drawn(opened: Callable[[Asked], Imported], path: Path, **options: str) -> Drawn:
    """Opens a file and draws all of its events."""
    imported = opened(Asked(path, Scope("run", "rank-0"), options))
    events: list[Observation] = []
    while True:
        try:
            events.append(next(imported.events))
        except StopIteration as ended:
            return Drawn(events, ended.value, imported)


def written(folder: Path, text: str, *, name: str = "file") -> Path:
    """A file of a text."""
    path = folder / name
    path.write_bytes(text.encode())
    return path
