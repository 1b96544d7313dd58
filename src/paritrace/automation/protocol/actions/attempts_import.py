"""The action `attempts-import`: what an evaluation tool left, as a manifest (AU-9, AT-16)."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from paritrace.automation.protocol.actions.attempts_compare import ConfigurationId
from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result, Sha256

MANIFEST = "manifest.json"  # in the output
MAX_REFUSED = 1000  # places told of; the manifest has all


class AttemptsImportRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`paths`: what the tool left, each of them one configuration; `configurations`: their names, in the same order.

    `dry_run`: read everything, say what the manifest would hold, and write nothing.
    """

    output: FilePath
    tool: Literal["inspect", "harbor", "swebench", "terminal-bench", "nemo-fabric", "records"]
    paths: Annotated[tuple[FilePath, ...], Meta(min_length=1)]
    configurations: tuple[ConfigurationId, ...] = ()
    dry_run: bool = False


class AttemptsImportResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attempts-import"):
    """`manifest`: its path, null of a dry run. `num_attempts`: those known of, of which `num_found` left something.

    `refused`: the first of `num_refused` places that could not be read, each with its reason.
    """

    dry_run: bool
    manifest: FilePath | None
    manifest_sha256: Sha256
    configurations: tuple[str, ...]
    num_attempts: int
    num_found: int
    num_sources: int
    refused: tuple[str, ...]
    num_refused: int


def attempts_import(request: AttemptsImportRequest, operation: Operation) -> AttemptsImportResult:
    """Import attempts; the paths in the manifest are relative to the output.

    Raises:
        RequestError: Refused: `not_found`, `configuration_names`, `output_not_fresh`.
        EvidenceError: Refused: `nothing_to_import`, `not_a_job`.
        HostError: Refused: a folder cannot be listed.
    """
    from paritrace.attempts.importers.importing import import_attempts
    from paritrace.evidence.codec import encode_document
    from paritrace.evidence.digests import sha256_hex
    from paritrace.files import LOCAL

    base = Path(request.output).absolute()
    paths = [Path(path) for path in request.paths]
    imported = import_attempts(request.tool, paths, base=base, configurations=request.configurations)
    data, found = encode_document(imported.manifest), imported.manifest
    if request.dry_run:
        operation.require_fresh(request.output)
    else:
        LOCAL.replace(operation.claim(request.output) / MANIFEST, data)
    return AttemptsImportResult(
        dry_run=request.dry_run,
        manifest=None if request.dry_run else str(base / MANIFEST),
        manifest_sha256=sha256_hex(data),
        configurations=tuple(one.id for one in found.configurations),
        num_attempts=len({(one.configuration_id, one.attempt_id) for one in found.attempts}),
        num_found=len({(one.configuration_id, one.attempt_id) for one in found.attempts if one.present}),
        num_sources=len(found.sources),
        refused=tuple(str(one) for one in imported.refusals[:MAX_REFUSED]),
        num_refused=len(imported.refusals),
    )


ACTION = Action(
    name="attempts-import",
    summary="Make a manifest of what an evaluation tool left; every figure keeps its file, digest and place.",
    request=AttemptsImportRequest,
    result=AttemptsImportResult,
    run=attempts_import,
    varying=("manifest", "manifest_sha256"),
    writes=True,
)
