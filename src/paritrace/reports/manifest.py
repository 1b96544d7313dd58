"""Records of a kept comparison: its manifest, which names sources and exports by SHA-256 (P3, CP-22)."""

from hashlib import sha256

import msgspec
from msgspec import Struct

from paritrace.compare.alignment import Review
from paritrace.compare.result import Comparison, RunRef
from paritrace.evidence.versions import Reading, reading_of

FORMAT = "paritrace-comparison-manifest"
VERSION = "1.1"
LAST_FORMAT = "paritrace-last-comparison"
KEY_DIGITS = 16  # of the folder's name; the manifest holds the whole key


class SourceFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A journal that the comparison read, as it was then."""

    side: str
    session_id: str
    path: str  # inside the run
    size: int
    sha256: str


class ExportedFile(Struct, frozen=True, forbid_unknown_fields=True):
    path: str  # beside the manifest
    size: int
    sha256: str


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """Written last: a folder without one is not a result."""

    format: str
    version: str
    key: str
    baseline: RunRef
    candidate: RunRef
    settings: dict[str, str]
    sources: tuple[SourceFile, ...]
    files: tuple[ExportedFile, ...]
    aligned_from: str = ""  # since 1.1: SHA-256 of the manifest of which an alignment map made this result


class LastComparison(Struct, frozen=True, forbid_unknown_fields=True):
    """Which comparison of a candidate was made last; `directory` is relative to its `comparisons` folder."""

    format: str
    version: str
    directory: str
    made_unix_ns: int


def key_of(comparison: Comparison, sources: tuple[SourceFile, ...], /, *, made_by: str) -> str:
    """Returns the SHA-256 of what a result follows from: both runs, their journals, the settings, our version."""
    facts = (
        comparison.baseline.digest,
        comparison.candidate.digest,
        sorted((source.side, source.path, source.sha256) for source in sources),
        comparison.settings,
        comparison.version,
        made_by,
    )
    return sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()


def key_of_aligned(review: Review, /, *, made_by: str) -> str:
    """Returns the SHA-256 of what a reviewed result follows from: the source's manifest, the map, our version."""
    facts = (review.source_sha256, review.map_sha256, made_by)
    return sha256(msgspec.json.encode(facts)).hexdigest()


def is_readable(manifest: Manifest, /) -> bool:
    """Says whether this version reads a manifest of that version."""
    return manifest.format == FORMAT and reading_of(manifest.version, ours=VERSION) is Reading.SAME
