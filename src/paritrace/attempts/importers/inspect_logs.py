"""Inspect logs, `.eval` and `.json`: their header and their samples, one at a time (AT-16)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.importers.archives import Archive, ArchiveError, open_archive
from paritrace.attempts.importers.collecting import TOO_DEEP, typed
from paritrace.attempts.importers.inspect_format import Header, Sample
from paritrace.attempts.importers.inspect_samples import Placed, sample_sha256
from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import Parsed, Refusal, elements, members, parse

SUFFIXES = (".eval", ".json")
HEADER, STARTED = "header.json", "_journal/start.json"  # the second is all that a killed run leaves of the first
SAMPLES = "samples/"


class Log(Struct, frozen=True):
    """A log's header, where it stands and the digest of the whole file."""

    header: Header
    origin: Origin
    sha256: str


class OneSample(Struct, frozen=True):
    """A sample as it was parsed, typed and placed."""

    placed: Placed
    plain: dict[str, Any]


def is_inspect_log(value: object) -> bool:
    """Says whether a parsed document looks like an Inspect log."""
    return "task" in members(members(value).get("eval"))


def read_log(path: Path, evidence: Evidence) -> tuple[Log, Iterator[OneSample]] | None:
    """Returns a log's header and its samples, which are read as they are asked for; None after telling why not."""
    return _archived(path, evidence) if path.suffix == ".eval" else _document(path, evidence)


def _document(path: Path, evidence: Evidence) -> tuple[Log, Iterator[OneSample]] | None:
    document = evidence.json(path)
    if document is None or document.value is None:
        return None
    origin = Origin(source=document.source)
    if not is_inspect_log(document.value):
        evidence.refuse(path, "not an Inspect log: it has no `eval`")
        return None
    plain = dict(members(document.value))
    samples = plain.pop("samples", None)
    header = typed(plain, Header, evidence, origin)
    if header is None:
        return None
    log = Log(header=header, origin=origin, sha256=document.sha256)
    return log, _listed(elements(samples), log, evidence)


def _listed(samples: list[Any], log: Log, evidence: Evidence) -> Iterator[OneSample]:
    for index, plain in enumerate(samples):
        origin = Origin(source=log.origin.source, pointer=f"/samples/{index}")
        found = _sample(plain, origin, evidence)
        if found is not None:
            yield found


def _archived(path: Path, evidence: Evidence) -> tuple[Log, Iterator[OneSample]] | None:
    source = evidence.register(path)
    if source is None:
        return None
    try:
        with open_archive(path.resolve()) as archive:
            header = _header(archive, source, evidence)
    except ArchiveError as fault:
        evidence.refuse(path, str(fault))
        return None
    if header is None:
        evidence.refuse(path, f"has neither {HEADER} nor {STARTED} that can be read")
        return None
    sha256 = evidence.sources[source].sha256 or ""
    log = Log(header=header[0], origin=header[1], sha256=sha256)
    return log, _members(path, log, evidence)


def _header(archive: Archive, source: str, evidence: Evidence) -> tuple[Header, Origin] | None:
    places = {member.name: index for index, member in archive.members()}
    for name in (HEADER, STARTED):
        if name not in places:
            continue
        origin = Origin(source=source, member=name)
        parsed = _parsed(archive, places[name], origin, evidence)
        header = None if parsed.value is None else typed(parsed.value, Header, evidence, origin)
        if header is not None:
            return header, origin
    return None


def _members(path: Path, log: Log, evidence: Evidence) -> Iterator[OneSample]:
    with open_archive(path.resolve()) as archive:
        for index, member in archive.members():
            if not (member.name.startswith(SAMPLES) and member.name.endswith(".json")):
                continue
            origin = Origin(source=log.origin.source, member=member.name)
            parsed = _parsed(archive, index, origin, evidence)
            found = None if parsed.value is None else _sample(parsed.value, origin, evidence)
            if found is not None:
                yield found


def _parsed(archive: Archive, index: int, origin: Origin, evidence: Evidence) -> Parsed:
    try:
        data = archive.read(index)
    except ArchiveError as fault:
        refusal = Refusal(path=origin.source, member=origin.member, line=0, detail=str(fault))
        evidence.note(refusal, origin, gap=AttemptGap.RESULT_INVALID)
        return Parsed(None)
    return evidence.told(parse(data, path=origin.source, member=origin.member), origin.source, origin.member)


def _sample(plain: Any, origin: Origin, evidence: Evidence) -> OneSample | None:
    sample = typed(plain, Sample, evidence, origin)
    if sample is None:
        return None
    try:
        placed = Placed(sample=sample, origin=origin, sha256=sample_sha256(plain))
    except RecursionError:
        evidence.note(Refusal(path=origin.source, member=origin.member, line=0, detail=TOO_DEEP), origin)
        return None
    return OneSample(placed=placed, plain=plain)


def logs_of(path: Path, evidence: Evidence) -> Iterator[Path]:
    """Yields the files of a folder that may be logs, or the one file that was named."""
    if not path.is_dir():
        yield path
        return
    for entry in evidence.files(path):
        if entry.is_dir():
            yield from logs_of(entry, evidence)
        elif entry.suffix in SUFFIXES and entry.name not in ("logs.json", "listing.json", "eval-set.json"):
            yield entry
