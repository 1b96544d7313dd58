"""A comparison that an operation kept, as results name it and requests take it (AU-7, AU-8, AU-16)."""

from pathlib import Path

from msgspec import Struct

from paritrace.automation.protocol.records import FilePath, Sha256
from paritrace.errors import EvidenceError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files
from paritrace.reports.keeping import MANIFEST
from paritrace.reports.kept_result import open_result

FOLDER = "comparison"  # below the output of an operation


class KeptFile(Struct, frozen=True, forbid_unknown_fields=True):
    """`path`: below the directory."""

    path: str
    num_bytes: int
    sha256: Sha256


class KeptFiles(Struct, frozen=True, forbid_unknown_fields=True):
    """A kept comparison. `sha256` is that of its manifest, which names every file by digest."""

    directory: FilePath
    sha256: Sha256
    files: tuple[KeptFile, ...]


def comparison_folder(output: Path) -> Path:
    """Return where an operation keeps its comparison."""
    return output / FOLDER


def kept_files(directory: Path, *, files: Files) -> KeptFiles:
    """Return what lies in the folder of a kept comparison, by its manifest."""
    listed = open_result(directory, files=files).manifest.files
    return KeptFiles(
        directory=str(directory),
        sha256=sha256_hex(files.read(directory / MANIFEST)),
        files=tuple(KeptFile(one.path, one.size, one.sha256) for one in listed),
    )


def directory_of(kept: FilePath | KeptFiles, *, files: Files) -> Path:
    """Return the folder of a kept comparison that a request names, and see that it is the one that was meant.

    Raises:
        EvidenceError: Refused, `comparison_changed`: the manifest is not the one of the result.
        HostError: Refused: it is not there.
    """
    if isinstance(kept, str):
        return Path(kept)
    directory = Path(kept.directory)
    if sha256_hex(files.read(directory / MANIFEST)) != kept.sha256:
        raise EvidenceError(
            f"{directory} is not the comparison that the result names any more",
            code="comparison_changed",
            fix="compare again, into a new output",
        )
    return directory
