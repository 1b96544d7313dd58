"""Two log directories compared without a manifest first: each tool's own list is the inventory (AT-22)."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.importers.collecting import Imported
from paritrace.attempts.importers.importing import import_attempts, tool_of
from paritrace.attempts.judged_twice import JudgedTwice, apart, judged_twice
from paritrace.attempts.loading import Loaded, parse
from paritrace.attempts.manifest import Attempt, Manifest
from paritrace.errors import RequestError
from paritrace.evidence.codec import encode_document

IN_MEMORY = "(made from directories)"  # what stands where a manifest's path stands


class Directories(Struct, frozen=True):
    """What lies in the directories, as one manifest; `repeats` are configurations that repeat the baseline."""

    loaded: Loaded
    baseline: str
    candidate: str
    repeats: tuple[str, ...]
    judged_twice: JudgedTwice | None
    refused: tuple[str, ...]


def load_directories(baseline: Path, candidate: Path, *, repeats: Sequence[Path] = ()) -> Directories:
    """Returns the attempts of two log directories, and of repeats of the first, each one configuration.

    Raises:
        RequestError: Refused: `not_attempts`, nothing that we know lies at one of the paths; `not_a_repeat`, a repeat
            holds attempts of the baseline itself.
        EvidenceError: Refused: `nothing_to_import`, `not_a_job`.
    """
    paths = [baseline, candidate, *repeats]
    names = _names(paths)
    imported = [_import(path, name) for path, name in zip(paths, names, strict=True)]
    first, second = (one.manifest.attempts for one in imported[:2])
    for path, one in zip(repeats, imported[2:], strict=True):
        _require_other_attempts(path, first, one.manifest.attempts)
    manifest = _joined([one.manifest for one in imported])
    document = encode_document(manifest)
    return Directories(
        loaded=parse(document, name=IN_MEMORY, digest=sha256(document).hexdigest()),
        baseline=names[0],
        candidate=names[1],
        repeats=tuple(names[2:]),
        judged_twice=judged_twice(first, second),
        refused=tuple(str(refusal) for one in imported for refusal in one.refusals),
    )


def are_attempts(*paths: Path) -> bool:
    """Says whether what lies at every path is the work of an evaluation tool that we know."""
    return all(tool_of(path) is not None for path in paths)


def _import(path: Path, name: str) -> Imported:
    tool = tool_of(path)
    if tool is None:
        raise RequestError(
            f"{path} holds nothing of an evaluation tool that is known",
            code="not_attempts",
            fix="give folders of one tool's results; `paritrace attempts import --help` lists the tools",
        )
    return import_attempts(tool, [path], base=Path(), configurations=[name])


def _require_other_attempts(path: Path, baseline: Sequence[Attempt], repeat: Sequence[Attempt]) -> None:
    own = {one.attempt_id for one in baseline if one.present}
    if any(one.attempt_id in own for one in repeat if one.present):
        raise RequestError(
            f"{path} holds attempts of the baseline itself",
            code="not_a_repeat",
            fix="a repeat is another run of the same configuration; two judgings of one run are compared directly",
        )


def _joined(manifests: Sequence[Manifest]) -> Manifest:
    sources = {source.id: source for one in manifests for source in one.sources}
    tools = sorted({one.importer for one in manifests})
    return replace(
        manifests[0],
        roots=tuple(sorted({root for one in manifests for root in one.roots})),
        sources=tuple(sources[name] for name in sorted(sources)),
        configurations=tuple(configuration for one in manifests for configuration in one.configurations),
        attempts=apart([attempt for one in manifests for attempt in one.attempts]),
        gaps=tuple(gap for one in manifests for gap in one.gaps),
        importer=", ".join(tools),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """Returns the shortest endings of the paths that tell them apart; a path given twice gets a number."""
    parts = [Path(os.path.realpath(path)).parts for path in paths]
    names: list[str] = []
    for path, own in zip(paths, parts, strict=True):
        length = 1
        while length < len(own) and sum(other[-length:] == own[-length:] for other in parts) > parts.count(own):
            length += 1
        name = "/".join(own[-length:]).lstrip("/")
        name = name.removesuffix(path.suffix) if path.is_file() else name
        count = sum(before == name or before.startswith(f"{name} (") for before in names)
        names.append(f"{name} ({count + 1})" if count else name)
    return names
