"""Records that a session's ranks keep beside checkpoints: previews, and what inputs are; the stamp of both (SE-28)."""

from typing import Any

from msgspec import Struct, field

from paritrace.session.commands import Body

PREVIEWS, INPUTS = "previews", "inputs"
PREVIEW_RECORD = "preview.json"  # of each folder of a preview, written last


class InputsNamed(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The inputs of a state; `gap` in place of the digest where the workload does not tell it (SE-23)."""

    generation: int
    digest: str | None = None
    gap: str | None = None


class IdenticalTo(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The checkpoint that a state is byte-identical to; without a digest while its manifest is not written (SE-28)."""

    path: str
    step: int
    digest: str | None = None


class Stamp(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Of which state something is (SE-15)."""

    session: str
    generation: int
    command_epoch: int
    config_revision: int
    step: int
    inputs: InputsNamed
    checkpoint: IdenticalTo | None = None


class PreviewRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """`preview.json`. `path`: of its folder within the session; `files`: what the workload of that rank wrote there."""

    generation: int  # of this rank's previews
    path: str
    step: int
    stamp: Stamp
    options: Body
    files: tuple[str, ...]
    rank: int = 0
    format: str = "paritrace-session-preview"
    version: str = "1.1"


class InputsManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """`inputs/DIGEST.json`: everything that was read, and the reference it was prepared from, where there is one."""

    digest: str
    entries: tuple[dict[str, Any], ...] = ()  # path or store position, size, digest, provenance
    facts: Body = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    reference: Body | None = None
    format: str = "paritrace-session-inputs"
    version: str = "1.0"
