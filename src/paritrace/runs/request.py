"""What a run was asked for: program, arguments, folder, launcher; kept in it so that it can be run again (CP-15)."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import EvidenceError, RequestError
from paritrace.evidence import codec
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.versions import Reading, reading_of
from paritrace.runs.envelope import Attachment, AttachmentKind

if TYPE_CHECKING:
    from paritrace.runs.reading import Run  # loads NumPy, which a workload may want to set up first (CA-18)

FORMAT = "paritrace-request"
VERSION = "1.0"
TITLE = "request"  # of the attachment
MAIN = "<main>"  # how evidence spells the main script
NO_LAUNCHER = ""


class RunRequest(Struct, frozen=True, tag_field="type", tag="request", forbid_unknown_fields=True):
    """One start of a workload under `paritrace run`, as one would type it again (CP-15).

    `launcher` is the text of --launcher, `NO_LAUNCHER` for a process of its own, and a gap where somebody else's
    launcher started the ranks: its command line was not seen. `arguments` are a gap where one was masked or --no-argv
    kept them out. `kept` are options that change what runs or what may be recorded of it; `capture` are the others, as
    given; a re-run has its own in their place. `num_draws` is that of --perturb, 0 without it.

    `sources` (absolute path -> the SHA-256 digests under which it was recorded) and `environment_names` are filled in
    by `request_of` from the run itself; the stored document leaves them empty.
    """

    format: str
    version: str
    name: str  # path of the script as given, or name of the module
    module: bool
    arguments: tuple[str, ...] | Gap[CaptureGap]
    directory: str
    python: str  # the interpreter
    root: str  # folder that the workload's files are spelled from
    main: str  # absolute path of the main script
    launcher: str | Gap[CaptureGap] = NO_LAUNCHER
    kept: tuple[str, ...] = ()
    capture: tuple[str, ...] = ()
    num_draws: int = 0
    sources: dict[str, tuple[str, ...]] = {}
    environment_names: tuple[str, ...] = ()


def encode_request(request: RunRequest) -> bytes:
    """The document as it is kept: without what the run itself says."""
    return codec.encode_document(replace(request, sources={}, environment_names=()))


def request_of(run: "Run") -> RunRequest:
    """What a run was asked for, with the digests of the sources that it recorded.

    Raises:
        EvidenceError: Refused, code `no_request`: captured from a notebook or by a version that kept none, or its ranks
            were started by unlike commands; `invalid_document`, `newer_version`, `foreign_request` for one that is
            damaged or not ours.
    """
    rows = [row for row in run.envelope.attachments if row.kind is AttachmentKind.OTHER and row.title == TITLE]
    if len(rows) != 1:
        why = f"its ranks were started by {len(rows)} unlike commands" if rows else "it does not hold its own command"
        raise EvidenceError(
            f"{run.path} cannot be run again: {why}",
            code="no_request",
            fix="capture it again with `paritrace run -o RUN SCRIPT`, or give a request file in its place",
        )
    parsed = parse_request(run.attachment(rows[0].attachment_id), name=f"the request of {run.path}")
    return replace(parsed, sources=_sources(run.envelope.attachments, parsed), environment_names=_names(run))


def parse_request(data: bytes, *, name: str) -> RunRequest:
    """The request in the bytes of a document.

    Raises:
        EvidenceError: Refused, codes `foreign_request`, `newer_version` and `invalid_document`.
    """
    said = codec.declared(data.removeprefix(codec.BOM))
    reading = Reading.FOREIGN if said is None or said.format != FORMAT else reading_of(said.version, ours=VERSION)
    match reading:
        case Reading.SAME:
            return codec.decode_document(data, RunRequest, name=name)
        case Reading.NEWER_MINOR:
            return codec.decode_document_lenient(data, RunRequest, name=name)[0]
        case Reading.OTHER_MAJOR:
            raise EvidenceError(
                f"{name} is of a version that this paritrace does not read",
                code="newer_version",
                fix="use the paritrace that wrote it, or a later one",
            )
        case Reading.FOREIGN:
            raise EvidenceError(
                f"{name} is no {FORMAT} document",
                code="foreign_request",
                fix="copy that of a run, the attachment named `request`, and change it",
            )


def require_whole(request: RunRequest) -> tuple[tuple[str, ...], str]:
    """The arguments and the launcher, where both are known.

    Raises:
        RequestError: Refused: `arguments_unknown`, `launcher_unknown`; both say what to give by hand.
    """
    if isinstance(request.arguments, Gap):
        raise RequestError(
            f"the arguments of {request.name} are not recorded ({request.arguments.detail})",
            code="arguments_unknown",
            fix="copy the run's attachment `request` into a file, set `arguments` in it, and give that file instead",
        )
    if isinstance(request.launcher, Gap):
        raise RequestError(
            f"what started the ranks of {request.name} is not recorded ({request.launcher.detail})",
            code="launcher_unknown",
            fix='give it: --launcher "torchrun --nproc-per-node 2"',
        )
    return request.arguments, request.launcher


def _sources(attachments: tuple[Attachment, ...], request: RunRequest) -> dict[str, tuple[str, ...]]:
    """Recorded texts of files below the workload's root; several digests where a file changed while ranks ran."""
    found: dict[str, tuple[str, ...]] = {}
    for row in attachments:
        if row.kind is AttachmentKind.SOURCE and not isinstance(row.sha256, Gap):
            path = request.main if row.title == MAIN else str(Path(request.root) / row.title)
            found[path] = (*found.get(path, ()), row.sha256)
    return found


def _names(run: "Run") -> tuple[str, ...]:
    surroundings = [row.surroundings for row in run.envelope.sessions if row.surroundings is not None]
    return surroundings[0].environment_names if surroundings else ()
