"""What a capture by plan records: the files, their digests and the call sites in them (CA-11, CA-25, AU-19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from paritrace.errors import EvidenceError, Outcome, RequestError
from paritrace.evidence.digests import sha256_hex

FORMAT = "paritrace-plan"
VERSION = "1.0"
OBSERVED_CALLSITES_ONLY = "observed_callsites_only"
CHANGED = "source_changed"  # the reason of a file that is not the planned one, as its record begins


class Position(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a call expression begins; `column` is 0-based."""

    line: int
    column: int


class Steps(Struct, frozen=True, forbid_unknown_fields=True):
    """A half-open span of training steps."""

    first: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=1)]


class PlannedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the checkout, by its path below the root, and the call expressions in it that are recorded."""

    file: str
    sha256: str
    sites: tuple[Position, ...]


class ExcludedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file whose calls are not recorded, and why."""

    file: str
    reason: str


class ContextVariable(Struct, frozen=True, forbid_unknown_fields=True):
    """A local variable of the workload whose value goes with each recorded call of that function."""

    file: str
    function: str  # its qualified name, `Trainer.fit`; `<module>` for the file itself
    name: str


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """Says which call sites are recorded, and of what sources; it covers nothing else.

    `main` is the script's path below the root of its checkout, as the files' are.
    """

    format: str
    version: str
    main: str
    configuration_sha256: str
    files: tuple[PlannedFile, ...]
    excluded: tuple[ExcludedFile, ...]
    context_vars: tuple[ContextVariable, ...]
    steps: Steps
    regions: int
    coverage: str = OBSERVED_CALLSITES_ONLY


class PlannedSources:
    """The planned files by their path below the root; a rule, reads nothing."""

    def __init__(self, plan: Plan) -> None:
        self._files = {one.file: one for one in plan.files}
        self._sites = {one.file: frozenset((site.line, site.column) for site in one.sites) for one in plan.files}

    def has(self, file: str) -> bool:
        """Whether calls of this file are recorded."""
        return file in self._files

    def sites(self, file: str, source: bytes) -> frozenset[tuple[int, int]] | str:
        """The call sites of a file that is about to be compiled, or why it is not the planned one."""
        return changed(self._files[file], source) or self._sites[file]


def changed(planned: PlannedFile, source: bytes | None) -> str:
    """How a source differs from the planned one, None being a file that is not there; empty where it does not."""
    if source is None:
        return f"{CHANGED}: it is not there, the plan has sha256 {planned.sha256}"
    found = sha256_hex(source)
    return "" if found == planned.sha256 else f"{CHANGED}: sha256 {found}, the plan has {planned.sha256}"


def changed_files(plan: Plan, sources: Mapping[str, bytes | None]) -> dict[str, str]:
    """The planned files that are not as they were planned, each with how it differs."""
    found = {one.file: changed(one, sources.get(one.file)) for one in plan.files}
    return {file: how for file, how in found.items() if how}


def source_changed(files: Iterable[str], *, when: str, rank: int | None = None) -> EvidenceError:
    """The failure of a capture whose sources are not the planned ones."""
    named = ", ".join(sorted(files))
    return EvidenceError(
        f"{'' if rank is None else f'rank {rank}: '}{named} {when} not what was planned",
        code="source_changed",
        fix="nothing was written there; discover and prepare anew for the source as it is now, into new outputs",
        outcome=Outcome.REFUSED if rank is None else Outcome.FAILED,
    )


def parse_context_variable(text: str) -> ContextVariable:
    """`FILE:FUNCTION:NAME`. Raises `RequestError` (Refused, `bad_context_variable`)."""
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not all(parts) or not parts[2].isidentifier():
        raise RequestError(
            f"{text!r} is not FILE:FUNCTION:NAME",
            code="bad_context_variable",
            fix="give for example train.py:main:step, or model.py:Net.forward:layer",
        )
    return ContextVariable(*parts)
