"""Looks at results under a declared primary analysis, and what they leave to it: pure (AT-14, ADR 0051)."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from paritrace.attempts.manifest import Manifest, Primary

FORMAT = "paritrace-attempts-look"
VERSION = "1.0"


class RecordedLook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One look: which attempts of the two configurations there were, and which analysis was declared then."""

    format: str
    version: str
    unix_ns: int
    num_attempts: int
    attempts_sha256: str  # of the ids of the attempts that were there, in their order
    primary_sha256: str
    manifest_sha256: str


class Looked(Struct, frozen=True):
    """What earlier looks mean for a comparison now.

    `extended`: attempts came or went after an unplanned look, so only an anytime-valid interval may claim.
    `redeclared`: the primary analysis is not the one of an earlier look, so nothing was declared before results were
    read. `num_planned`: looks that the plan has, over which the level is divided; 1 where it has none.
    """

    extended: bool = False
    redeclared: bool = False
    num_planned: int = 1
    remarks: tuple[str, ...] = ()

    def divided(self, level: float) -> float:
        """Return the level of each planned look that together keeps `level` (Bonferroni)."""
        return 1 - (1 - level) / self.num_planned


class Entry(Struct, frozen=True):
    """What of an attempt's entry says that it is there."""

    attempt_id: str
    configuration_id: str
    present: bool = True


def look_of(head: Manifest, raw: Iterable[msgspec.Raw], *, manifest_sha256: str, unix_ns: int) -> RecordedLook | None:
    """Return the look that reading this manifest's results is; None where it declares no primary analysis."""
    primary = head.primary
    if primary is None:
        return None
    decode, sides = msgspec.json.Decoder(Entry).decode, (primary.baseline, primary.candidate)
    there = {(one.configuration_id, one.attempt_id) for one in map(decode, raw) if one.present}
    ids = sorted(one for one in there if one[0] in sides)
    return RecordedLook(
        format=FORMAT,
        version=VERSION,
        unix_ns=unix_ns,
        num_attempts=len(ids),
        attempts_sha256=_digest(ids),
        primary_sha256=_digest(_analysis(primary)),
        manifest_sha256=manifest_sha256,
    )


def looked(head: Manifest, now: RecordedLook | None, earlier: Sequence[RecordedLook], *, num_unreadable: int) -> Looked:
    """Return what the looks in the manifest and those that were recorded leave to a look now."""
    by_hand = any(not look.planned for look in head.looks)
    primary = head.primary
    if now is None or primary is None:
        return Looked(extended=by_hand)
    planned = set(primary.planned_looks)
    others = [one for one in earlier if one.attempts_sha256 != now.attempts_sha256]
    as_planned = {now.num_attempts, *(one.num_attempts for one in others)} <= planned
    remarks: list[str] = []
    redeclared = any(one.primary_sha256 != now.primary_sha256 for one in earlier)
    if redeclared:
        remarks.append("the primary analysis was declared, or changed, after results had been looked at")
    if others and not as_planned:
        seen = ", ".join(f"{one:,}" for one in sorted({one.num_attempts for one in others}))
        remarks.append(f"results were looked at before, with other attempts ({seen} of them; now {now.num_attempts:,})")
    if num_unreadable:
        remarks.append(f"{num_unreadable} recorded looks cannot be read: they may have been of other attempts")
    extended = by_hand or bool(num_unreadable) or bool(others and not as_planned)
    return Looked(extended, redeclared, max(1, len(planned)), tuple(remarks))


def _analysis(primary: Primary) -> object:
    return msgspec.to_builtins(primary)


def _digest(value: object) -> str:
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
