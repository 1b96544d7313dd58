"""What one import has found so far, and the manifest that it becomes."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.manifest import FORMAT, VERSION, Attempt, Configuration, Manifest
from paritrace.attempts.origins import Origin
from paritrace.errors import EvidenceError
from paritrace.evidence.plain_json import Refusal

MOST_PLANNED = 10_000_000  # attempts of one list; a file that plans more is not believed
TOO_DEEP = "nested too deep to be read"
Record = TypeVar("Record", bound=Struct)


_ATTEMPT = msgspec.json.Decoder(Attempt)
_encode = msgspec.json.Encoder().encode


class Imported(Struct, frozen=True):
    """A manifest, and what was refused of the files on the way to it."""

    manifest: Manifest
    refusals: tuple[Refusal, ...]


class Named(Struct, frozen=True):
    """A path that the user gave, and the name of the configuration that it holds."""

    path: Path
    configuration: str


class Collecting:
    """Configurations and attempts of one import."""

    def __init__(self, evidence: Evidence, *, importer: str) -> None:
        self.evidence = evidence
        self.importer = importer
        self._configurations: list[Configuration] = []
        self._attempts: list[Attempt] = []

    def add(self, configuration: Configuration, attempts: Iterable[Attempt]) -> None:
        """Adds a configuration; an attempt that no manifest may hold (an endless name) is refused, and the list is then
        not complete."""
        before = len(self.evidence.refusals)
        self._attempts += [attempt for attempt in attempts if self._may_stand(attempt)]
        whole = len(self.evidence.refusals) == before
        self._configurations.append(configuration if whole else replace(configuration, attempts_complete=False))

    def _may_stand(self, attempt: Attempt) -> bool:
        try:
            _ATTEMPT.decode(_encode(attempt))
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            origin = attempt.origin
            place = Refusal(
                path=origin.source if origin is not None else "",
                line=(origin.line or 0) if origin is not None else 0,
                member=origin.member if origin is not None else "",
                detail=f"an attempt that no manifest can hold: {error}",
            )
            self.evidence.note(place, origin)
            return False
        return True

    def finished(self) -> Imported:
        """Returns what was collected.

        Raises:
            EvidenceError: Refused, `nothing_to_import`: no configuration was found.
        """
        evidence = self.evidence
        if not self._configurations:
            raise EvidenceError(
                f"nothing of {self.importer} was found there",
                code="nothing_to_import",
                fix="name the folder or the file that the tool wrote; `paritrace attempts import --help` lists them",
                details=tuple(str(refusal) for refusal in evidence.refusals),
            )
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            roots=evidence.roots,
            sources=tuple(evidence.sources[name] for name in sorted(evidence.sources)),
            configurations=tuple(self._configurations),
            attempts=tuple(self._attempts),
            importer=self.importer,
            gaps=tuple(evidence.gaps),
        )
        return Imported(manifest=manifest, refusals=tuple(evidence.refusals))


def typed(value: object, kind: type[Record], evidence: Evidence, origin: Origin) -> Record | None:
    """Returns a parsed value as a record of the other program's format, None after telling why it is none.

    Fields that we do not know are passed over: the format is not ours.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        detail = TOO_DEEP if isinstance(error, RecursionError) else f"not as its format says: {error}"
        evidence.note(Refusal(path=origin.source, line=origin.line or 0, detail=detail, member=origin.member), origin)
        return None


def unix_ns(text: str | None) -> int | None:
    """Returns an ISO 8601 time as nanoseconds since 1970, None where it is none; a time without a zone is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Returns the seconds from one time to another, None where one is not known or the clock went backwards."""
    begun, ended = unix_ns(start), unix_ns(end)
    if begun is None or ended is None or ended < begun:
        return None
    return (ended - begun) / 1e9


def recorded(value: Any) -> str | None:
    """Returns a recorded setting as text, None where it is null: not recorded (AT-10)."""
    if value is None:
        return None
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
