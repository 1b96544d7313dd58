"""`paritrace attempts import`: what an evaluation tool left, as a manifest (AT-16)."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json, write_json_bytes, write_text

if TYPE_CHECKING:
    from paritrace.attempts.importers.collecting import Imported

TOOLS = ("inspect", "harbor", "swebench", "terminal-bench", "nemo-fabric", "records")
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("tool", type=click.Choice(TOOLS))
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="PATH...")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="Write the manifest to FILE [default: stdout].")
@click.option(
    "--configuration",
    "configurations",
    multiple=True,
    metavar="NAME",
    help="Name of a path's configuration, once for each PATH in order [default: the path's own name].",
)
@json_option
def import_results(
    tool: str, paths: tuple[Path, ...], output: Path | None, configurations: tuple[str, ...], as_json: bool
) -> None:
    """Write the manifest of what TOOL left at each PATH; each PATH is one configuration.

    What was planned comes from the tool's own list. Every figure keeps its file, digest and place. What cannot be read
    is refused by file and line on stderr and noted in the manifest, and the rest is read. What a person declared in a
    manifest that is there already (primary, score_ranges, looks) is kept.
    """
    from msgspec.structs import replace

    from paritrace.attempts.declarations import declared_in, with_declared
    from paritrace.attempts.importers.importing import import_attempts
    from paritrace.evidence.codec import encode_document
    from paritrace.files import LOCAL
    from paritrace.reports.harmless import harmless

    base = Path() if output is None else output.parent
    imported = import_attempts(tool, paths, base=base, configurations=configurations)
    for refusal in imported.refusals:
        note(f"not read: {harmless(str(refusal))}")
    if output is None:
        write_json_bytes(encode_document(imported.manifest))
        return
    kept = declared_in(LOCAL.read_if_present(output) or b"")
    if kept is not None and kept.names():
        imported = replace(imported, manifest=with_declared(imported.manifest, kept))
        note(f"kept from the {output.name} that was there: {', '.join(kept.names())}")
    LOCAL.replace(output, encode_document(imported.manifest))
    if as_json:
        write_json(_told(imported, output))
    else:
        write_text(_screen(imported, output))


def _told(imported: "Imported", output: Path) -> dict[str, object]:
    manifest = imported.manifest
    return {
        "manifest": str(output),
        "configurations": [one.id for one in manifest.configurations],
        "num_attempts": len({(one.configuration_id, one.attempt_id) for one in manifest.attempts}),
        "num_found": len({(one.configuration_id, one.attempt_id) for one in manifest.attempts if one.present}),
        "num_sources": len(manifest.sources),
        "refused": [str(refusal) for refusal in imported.refusals],
    }


def _screen(imported: "Imported", output: Path) -> str:
    from paritrace.reports.harmless import harmless
    from paritrace.reports.wording import count

    manifest = imported.manifest
    files = count(len(manifest.sources), "file")
    lines = [f"{harmless(str(output))}: what {manifest.importer} left, {files}, each with its digest"]
    for one in manifest.configurations:
        own = [attempt for attempt in manifest.attempts if attempt.configuration_id == one.id]
        planned = "planned" if one.attempts_complete else "seen; nothing says how many were planned"
        found = {attempt.attempt_id for attempt in own if attempt.present}  # one seen twice is one
        listed = {attempt.attempt_id for attempt in own}
        lines.append(f"  {harmless(one.id)}: {count(len(listed), 'attempt')} {planned}, {len(found):,} found")
    if imported.refusals:
        lines.append(f"  not read: {count(len(imported.refusals), 'place')}, see above, or `gaps` of the manifest")
    verb = "compare" if len(manifest.configurations) > 1 else "summarize"
    return "\n".join([*lines, f"next: paritrace attempts {verb} {harmless(quote(str(output)))}"])
