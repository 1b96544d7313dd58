"""The folder of a narrowing: what it is about, its rounds, each whole once its record is there (CP-15, P4)."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from paritrace.automation.narrow_records import Asked, Narrowed, Round, Seen
from paritrace.automation.narrow_rules import by_size
from paritrace.compare.result import Comparison
from paritrace.errors import HostError, RequestError
from paritrace.files import LOCAL, Files
from paritrace.reports.documents import decoded, encoded
from paritrace.reports.keeping import NAMES

ASKED = "asked.json"
RESULT = "narrowed.json"
ROUND = "round.json"
LOCK = ".lock"
COMPARISON = "comparison"
MOST_ATTEMPTS = 1000  # of one round, each cut off: nobody starts it as often


class Folder:
    """A narrowing's folder. Rounds that were cut off stay beside the one that ended, under names of their own: what a
    killed narrowing had started may still be writing there."""

    def __init__(self, path: Path, *, upcast: str = "", files: Files = LOCAL) -> None:
        self.path = path
        self._upcast = upcast
        self._files = files

    @contextmanager
    def open_for(self, asked: Asked) -> Generator[None]:
        """Hold the folder for one narrowing.

        Raises:
            RequestError: Refused: `another_narrowing`, the folder is about something else or holds other files.
            HostError: Refused: `narrowing_runs`, another process holds it.
        """
        self._require_room()
        self._files.mkdir(self.path)
        try:
            with self._files.locked(self.path / LOCK, wait_seconds=0.0):
                self._claim(asked)
                yield
        except HostError as error:
            if error.code != "lock_timeout":
                raise
            raise HostError(
                f"another paritrace narrow works in {self.path}",
                code="narrowing_runs",
                fix="wait for it, or name another folder with -o",
            ) from None

    def rounds(self) -> list[Seen]:
        """The rounds that ended, in order, with what they compared."""
        found: list[Seen] = []
        while (ended := self._ended(len(found) + 1)) is not None:
            found.append(self.seen(ended))
        return found

    def seen(self, ended: Round) -> Seen:
        path = self.path / ended.comparison / NAMES["json"]
        return Seen(ended, by_size(decoded(self._files.read(path), Comparison, name=str(path)), self._upcast))

    def new_round(self, number: int) -> Path:
        """Make the folder in which a round works.

        Raises:
            HostError: Refused, code `already_there`: too many that were cut off.
        """
        for path in self._places(number):
            if self._files.claim(path):
                return path
        raise HostError(
            f"{self.path} holds {MOST_ATTEMPTS} attempts at round {number}",
            code="already_there",
            fix="remove those that you do not need, or name another folder with -o",
        )

    def cut_off(self) -> tuple[str, ...]:
        """The names of rounds that did not end."""
        folders = (path for path in self._files.list(self.path) if path.name.startswith("round-"))
        return tuple(sorted(path.name for path in folders if not self._files.exists(path / ROUND)))

    def keep_round(self, folder: Path, ended: Round) -> None:
        self._files.replace(folder / ROUND, encoded(ended))

    def keep_result(self, result: Narrowed) -> None:
        self._files.replace(self.path / RESULT, encoded(result))

    def _claim(self, asked: Asked) -> None:
        data = self._files.read_if_present(self.path / ASKED)
        if data is None:
            self._files.replace(self.path / ASKED, encoded(asked))
        elif decoded(data, Asked, name=str(self.path / ASKED)) != asked:
            raise RequestError(
                f"{self.path} is about other runs, or about the same with other options",
                code="another_narrowing",
                fix="name another folder with -o, or remove that one",
            )

    def _require_room(self) -> None:
        if not self._files.exists(self.path) or self._files.exists(self.path / ASKED):
            return
        if not self.path.is_dir() or any(path.name != LOCK for path in self._files.list_all(self.path)):
            raise RequestError(
                f"{self.path} holds something else already",
                code="another_narrowing",
                fix="name a new folder with -o",
            )

    def _ended(self, number: int) -> Round | None:
        for path in self._places(number):
            if not self._files.exists(path):
                return None
            data = self._files.read_if_present(path / ROUND)
            if data is not None:
                return decoded(data, Round, name=str(path / ROUND))
        return None

    def _places(self, number: int) -> list[Path]:
        names = [f"round-{number}", *(f"round-{number}.{attempt}" for attempt in range(2, MOST_ATTEMPTS + 1))]
        return [self.path / name for name in names]


def size_of(folder: Path, *, files: Files = LOCAL) -> int:
    """The bytes of all plain files below a folder."""
    total = 0
    for path in files.list_all(folder):
        if path.is_symlink():
            continue
        total += size_of(path, files=files) if path.is_dir() else files.size(path)
    return total
