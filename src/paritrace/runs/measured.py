"""What was measured of a run's draws, kept below the run so that they are not read again: `RUN/measured/KEY` (CP-10).

A file is its SHA-256 in hex, a newline, and the content. One that cannot be read or has another digest is no file.
"""

from contextlib import suppress
from pathlib import Path

from paritrace.errors import HostError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files

FOLDER = "measured"
MAX_KEPT = 64  # files of one run: a job of more ranks is measured again


def read_measured(run_dir: Path, key: str, *, files: Files = LOCAL) -> bytes | None:
    """The content kept under a key; None where there is none that is whole."""
    try:
        data = files.read_if_present(run_dir / FOLDER / key)
    except HostError:
        return None
    digest, newline, content = (data or b"").partition(b"\n")
    return content if newline and digest == sha256_hex(content).encode() else None


def keep_measured(run_dir: Path, key: str, content: bytes, *, files: Files = LOCAL) -> bool:
    """Keep a content; False where that is not possible, which costs time and nothing else."""
    folder = run_dir / FOLDER
    with suppress(HostError):
        files.mkdir(folder)
        if len(files.list(folder)) < MAX_KEPT:
            files.replace(folder / key, sha256_hex(content).encode() + b"\n" + content)
            return True
    return False
