"""Source files of other programs, read bounded and within their root; each keeps its digest (AT-16)."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.origins import Origin, Source
from paritrace.errors import HostError, RequestError
from paritrace.evidence.digests import sha256_hex, sha256_of
from paritrace.evidence.plain_json import Parsed, Refusal, parse, parse_lines
from paritrace.files import LOCAL

MOST_FILE_BYTES = 256 << 20  # a document is parsed in memory, at about four times its size
MOST_FOLDER_ENTRIES = 1_000_000
OUTSIDE = "a symbolic link that leads outside the folder"


class Document(Struct, frozen=True):
    """One parsed file and where it came from; `value` is None where it was refused."""

    source: str
    value: object
    sha256: str


class Evidence:
    """The files that one import reads: their digests, and what of them was refused.

    `base` is the folder that the manifest's paths are relative to.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.sources: dict[str, Source] = {}
        self.refusals: list[Refusal] = []
        self.gaps: list[Noted] = []
        self._roots: dict[Path, Path] = {}

    def root(self, path: Path) -> Path:
        """Takes `path`, a folder or a file that the user named, as a root: nothing outside is read for it.

        Raises:
            RequestError: Refused, `not_found`.
        """
        if not LOCAL.exists(path):
            raise RequestError(f"{path} is not there", code="not_found", fix="give a file or a folder of the tool")
        folder = path if path.is_dir() else path.parent
        self._roots[path] = folder.resolve()
        return path

    @property
    def roots(self) -> tuple[str, ...]:
        """The roots that lie outside the base, as the manifest names them."""
        base = self.base.resolve()
        outside = (folder for folder in self._roots.values() if not folder.is_relative_to(base))
        return tuple(sorted({os.path.relpath(folder, base) for folder in outside}))

    def files(self, folder: Path) -> Iterator[Path]:
        """Yields the entries of a folder by name; links to folders, and what leads outside the roots, are refused."""
        for entry in LOCAL.list(folder)[:MOST_FOLDER_ENTRIES]:
            if not self._inside(entry):
                self.refuse(entry, OUTSIDE)
            elif entry.is_symlink() and entry.is_dir():
                self.refuse(entry, "a symbolic link to a folder: what is there is read once, where it lies")
            else:
                yield entry

    def json(self, path: Path) -> Document | None:
        """Returns a file's one JSON document, None where there is no such file; what was refused of it is kept."""
        taken = self._take(path)
        if taken is None:
            return None
        source, data = taken
        parsed = self.told(parse(data, path=source), source)
        return Document(source=source, value=parsed.value, sha256=sha256_hex(data))

    def lines(self, path: Path) -> tuple[str, list[tuple[int, object]]] | None:
        """Returns the values of a JSON Lines file with their lines; None where there is no such file."""
        taken = self._take(path)
        if taken is None:
            return None
        source, data = taken
        values, refusals = parse_lines(data, path=source)
        self.told(Parsed(None, refusals), source)
        return source, values

    def text_lines(self, path: Path) -> tuple[str, list[str]] | None:
        """Returns the lines of a text file; None where there is no such file."""
        taken = self._take(path)
        return None if taken is None else (taken[0], taken[1].decode("utf-8", "replace").split("\n"))

    def register(self, path: Path) -> str | None:
        """Takes a file's digest without its content, and returns the source's id; None after telling why not."""
        name = self.name(path)
        if name not in self.sources:
            try:
                digest = sha256_of(LOCAL.iter_chunks(path))
            except HostError as error:
                self.refuse(path, error.message)
                return None
            self.sources[name] = Source(id=name, path=name, sha256=digest.sha256, num_bytes=digest.num_bytes)
        return name

    def name(self, path: Path) -> str:
        """The source id of a file: its path from the base."""
        return os.path.relpath(path, self.base)

    def told(self, parsed: Parsed, source: str, member: str = "") -> Parsed:
        """Keeps what was refused of a document."""
        for refusal in parsed.refusals:
            self.note(refusal, Origin(source=source, line=refusal.line or None, member=member))
        return parsed

    def refuse(self, path: Path, detail: str, *, gap: AttemptGap = AttemptGap.RESULT_INVALID) -> None:
        """Keeps that a whole file was not read."""
        name = self.name(path)
        origin = Origin(source=name) if name in self.sources else None
        self.note(Refusal(path=name, line=0, detail=detail), origin, gap=gap)

    def note(self, refusal: Refusal, origin: Origin | None, *, gap: AttemptGap = AttemptGap.RESULT_INVALID) -> None:
        """Keeps one refusal, as a line for the reader and as a gap of the manifest."""
        self.refusals.append(refusal)
        self.gaps.append(Noted(reason=gap, detail=str(refusal), origin=origin))

    def _inside(self, path: Path) -> bool:
        resolved = Path(os.path.realpath(path))  # a loop of links resolves to itself, and is refused when it is read
        return any(resolved.is_relative_to(folder) for folder in self._roots.values())

    def _take(self, path: Path) -> tuple[str, bytes] | None:
        name = self.name(path)
        if not LOCAL.exists(path):
            return None
        if not self._inside(path):
            self.refuse(path, OUTSIDE)
            return None
        try:
            data = b"".join(LOCAL.iter_chunks(path, length=MOST_FILE_BYTES + 1))
        except HostError as error:
            self.refuse(path, error.message)
            return None
        if len(data) > MOST_FILE_BYTES:
            self.refuse(path, f"larger than {MOST_FILE_BYTES >> 20} MiB, the most that is read of one document")
            return None
        self.sources[name] = Source(id=name, path=name, sha256=sha256_hex(data), num_bytes=len(data))
        return name, data
