"""The file beside a manifest in which looks at its results are recorded, one line each (AT-14, ADR 0051)."""

from pathlib import Path

import msgspec

from paritrace.attempts.looks import FORMAT, VERSION, RecordedLook
from paritrace.errors import HostError, RequestError
from paritrace.evidence.versions import Reading, reading_of
from paritrace.files import LOCAL, Files

SUFFIX = ".looks.jsonl"
MOST_BYTES = 16 << 20  # forty thousand looks

_DECODER = msgspec.json.Decoder(RecordedLook)


def ledger_of(manifest: str | Path) -> Path:
    """Return where the looks at a manifest are recorded: beside it, under its name."""
    path = Path(manifest)
    return path.with_name(path.name + SUFFIX)


def read_looks(manifest: str | Path, *, files: Files = LOCAL) -> tuple[tuple[RecordedLook, ...], int]:
    """Return the looks at a manifest that were recorded, and how many lines of them cannot be read.

    Raises:
        HostError: Refused: the file is there and cannot be read.
        RequestError: Refused, `bad_attempts_manifest`: it is larger than any number of looks.
    """
    path = ledger_of(manifest)
    data = files.read_if_present(path) if _fits(path, files) else b""
    found: list[RecordedLook] = []
    unreadable = 0
    for line in (data or b"").splitlines():
        look = _look(line)
        if look is not None:
            found.append(look)
        elif line.strip():
            unreadable += 1
    return tuple(found), unreadable


def record_look(manifest: str | Path, look: RecordedLook, *, files: Files = LOCAL) -> None:
    """Record a look, unless the same attempts under the same analysis were looked at before.

    Raises:
        HostError: Refused where nothing was written, Failed where a line was cut off.
    """
    earlier, _ = read_looks(manifest, files=files)
    if any(_same(one, look) for one in earlier):
        return
    path = ledger_of(manifest)
    try:
        appender = files.append_new(path)
    except HostError as error:
        if error.code != "already_there":
            raise
        appender = files.append_existing(path)
    with appender:
        appender.write(msgspec.json.encode(look) + b"\n")
        appender.sync()


def _same(one: RecordedLook, other: RecordedLook) -> bool:
    return (one.attempts_sha256, one.primary_sha256) == (other.attempts_sha256, other.primary_sha256)


def _fits(path: Path, files: Files) -> bool:
    if not files.exists(path):
        return False
    if files.size(path) > MOST_BYTES:
        raise RequestError(
            f"{path} is larger than {MOST_BYTES >> 20} MiB, which no number of looks is",
            code="bad_attempts_manifest",
            fix="it holds the looks at the results of the manifest beside it; move away what is not ours",
        )
    return True


def _look(line: bytes) -> RecordedLook | None:
    try:
        look = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return look if look.format == FORMAT and reading_of(look.version, ours=VERSION) is Reading.SAME else None
