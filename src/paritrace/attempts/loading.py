"""Reads a manifest of attempts and checks it as a whole; its attempts are decoded one at a time (AT-1)."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.look_ledger import read_looks
from paritrace.attempts.looks import RecordedLook
from paritrace.attempts.manifest import FORMAT, VERSION, Attempt, Manifest
from paritrace.attempts.manifest_rules import Rules, first_problems, problems_of_head
from paritrace.attempts.yaml_text import plain_of
from paritrace.errors import RequestError
from paritrace.evidence.problems import problems_of
from paritrace.evidence.versions import Reading, reading_of
from paritrace.files import LOCAL, Files

MAX_MANIFEST_BYTES = 4 << 30  # two million attempts of two kilobytes
MAX_YAML_BYTES = 16 << 20  # YAML is for people; an importer writes JSON
YAML_SUFFIXES = frozenset({".yaml", ".yml"})


class _Parts(Struct, frozen=True):
    """A manifest whose attempts are left as bytes."""

    attempts: list[msgspec.Raw]


class Loaded(Struct, frozen=True):
    """A manifest that holds together. `head` has everything but the attempts, which `attempts()` decodes one by one.

    `looks`: those at its results that were recorded beside it, and `num_unreadable_looks` lines that say nothing.
    """

    path: str
    sha256: str
    head: Manifest
    raw: tuple[msgspec.Raw, ...]
    looks: tuple[RecordedLook, ...] = ()
    num_unreadable_looks: int = 0

    def attempts(self) -> Iterator[Attempt]:
        """Yields every entry in the order of the file, as often as it is asked for."""
        for one in self.raw:
            yield _ATTEMPT.decode(one)


_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_ATTEMPT = msgspec.json.Decoder(Attempt)


def load(path: str | Path, *, files: Files = LOCAL) -> Loaded:
    """Returns the manifest in a file, JSON or (by its suffix) YAML.

    Raises:
        RequestError: Refused, `bad_attempts_manifest`: `details` has what is wrong, in the manifest's own names.
        HostError: Refused: it cannot be read, or `missing_extra` for YAML without PyYAML.
    """
    place = Path(path)
    yaml = place.suffix.lower() in YAML_SUFFIXES
    most = MAX_YAML_BYTES if yaml else MAX_MANIFEST_BYTES
    if files.size(place) > most:
        raise _refused(str(place), (f"it has more than {most:,} bytes",))
    data = files.read(place)
    digest = sha256(data).hexdigest()
    if yaml:
        data = _json_of(plain_of(data, name=str(place)), name=str(place))
    found = parse(data, name=str(place), digest=digest)
    if found.head.primary is None:
        return found
    looks, unreadable = read_looks(place, files=files)
    return replace(found, looks=looks, num_unreadable_looks=unreadable)


def parse(data: bytes, *, name: str, digest: str) -> Loaded:
    """Returns the manifest that JSON bytes hold; raises as `load`."""
    try:
        head = _head(data, name=name)
        raw = tuple(msgspec.json.decode(data, type=_Parts).attempts)
        problems = first_problems(_problems(head, raw))
    except _UNREADABLE as error:  # deeper in it: a text that is not UTF-8, a number beyond all bounds
        raise _refused(name, (f"not readable as JSON: {error}",)) from error
    if problems:
        raise _refused(name, problems)
    return Loaded(name, digest, head, raw)


def _head(data: bytes, *, name: str) -> Manifest:
    """Everything but the attempts, strictly."""
    try:
        plain = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except _UNREADABLE as error:
        raise _refused(name, (f"no JSON object: {error}",)) from error
    whole = "attempts" in plain
    plain["attempts"] = msgspec.Raw(b"[]")
    content = {key: msgspec.json.decode(value) for key, value in plain.items()}
    if content.get("format") != FORMAT or reading_of(str(content.get("version")), ours=VERSION) is not Reading.SAME:
        raise _refused(name, (f'it has to say "format": "{FORMAT}", "version": "{VERSION}"',))
    found = first_problems(problems_of(content, Manifest))
    if found or not whole:
        raise _refused(name, (*found, *(() if whole else ("attempts: is missing",))))
    return msgspec.convert(content, Manifest)


def _problems(head: Manifest, raw: tuple[msgspec.Raw, ...]) -> Iterator[str]:
    yield from problems_of_head(head)
    rules = Rules(head)
    for number, one in enumerate(raw):
        try:
            attempt = _ATTEMPT.decode(one)
        except msgspec.MsgspecError as error:
            place = f"attempts[{number}]"
            try:
                found = tuple(problems_of(msgspec.json.decode(one), Attempt, place=place))
            except _UNREADABLE:
                found = ()
            yield from found or (f"{place}: {error}",)
            continue
        yield from rules.of_attempt(attempt, number=number)
    yield from rules.at_end()


def _json_of(plain: object, *, name: str) -> bytes:
    try:
        return msgspec.json.encode(plain)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise _refused(name, (f"holds a value that JSON has not: {error}",)) from error


def _refused(name: str, problems: tuple[str, ...]) -> RequestError:
    count = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}"
    return RequestError(
        f"{name} is no attempts manifest: {count}",
        code="bad_attempts_manifest",
        fix="mend them all; `paritrace schema attempts-manifest` prints the format",
        details=problems,
    )
