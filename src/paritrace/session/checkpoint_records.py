"""Records of a checkpoint: what each rank says of the files it wrote, the manifest of all of them (SE-8, SE-10)."""

from typing import Any

from msgspec import Struct, field

from paritrace.evidence.digests import sha256_hex
from paritrace.session.commands import Body, Reason

FORMAT = "paritrace-checkpoint"
VERSION = "1.1"
MANIFEST = "manifest.json"
COORDINATOR = -1  # the rank of a reason that is none's


class Written(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One file as its rank wrote it. `of_rank`: another number of ranks does without it."""

    rank: int
    num_bytes: int
    sha256: str
    of_rank: bool = False


class Origin(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a state was: the same on every rank that saved it."""

    session_id: str
    workload: str
    world_size: int
    generation: int
    command_epoch: int
    config_revision: int
    step: int
    values: dict[str, Any] = field(default_factory=dict[str, Any])  # the configuration in force (SE-25)
    inputs: Body = field(default_factory=dict[str, Any])  # digest or gap, generation (SE-23)


class Receipt(Struct, frozen=True, forbid_unknown_fields=True):
    """What one rank wrote. The last thing that it writes."""

    rank: int
    origin: Origin
    made_unix_ns: int
    state_digest: str | None = None  # None: the workload has none to give
    files: dict[str, Written] = field(default_factory=dict[str, Written])


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `manifest.json`, the last file of a checkpoint to appear. Its own SHA-256 is the checkpoint's."""

    origin: Origin
    sharded: bool  # whether other ranks than the first wrote files that any other number of ranks would need
    files: dict[str, Written]
    state_digests: dict[str, str | None]  # by rank
    made_unix_ns: int
    format: str = FORMAT
    version: str = VERSION

    @property
    def content_digest(self) -> str:
        """SHA-256 over names and digests of all files: the same bytes in every file are the same state (SE-15)."""
        return sha256_hex("\n".join(f"{name} {file.sha256}" for name, file in sorted(self.files.items())).encode())

    @property
    def num_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(file.num_bytes for file in self.files.values())


def manifest_of(receipts: list[Receipt], /) -> Manifest | tuple[Reason, ...]:
    """Return the manifest of what all ranks wrote, or every reason why these are no checkpoint."""
    if not receipts:
        return (Reason(COORDINATOR, "missing_rank", "no rank has written a receipt"),)
    receipts = sorted(receipts, key=lambda receipt: receipt.rank)
    origin = receipts[0].origin
    reasons = [
        Reason(rank, "missing_rank", f"rank {rank} has not written its receipt")
        for rank in sorted(set(range(origin.world_size)) - {receipt.rank for receipt in receipts})
    ]
    files: dict[str, Written] = {}
    for receipt in receipts:
        if receipt.origin != origin:
            reasons.append(Reason(receipt.rank, "ranks_apart", _apart(origin, receipt.origin)))
        for name, file in receipt.files.items():
            if name in files:
                words = f"{name} was written by rank {files[name].rank} too"
                reasons.append(Reason(receipt.rank, "name_taken", words))
            files[name] = file
    if not files:
        reasons.append(Reason(COORDINATOR, "nothing_saved", "no rank has written a file"))
    if reasons:
        return tuple(reasons)
    return Manifest(
        origin=origin,
        sharded=any(file.rank > 0 and not file.of_rank for file in files.values()),
        files=dict(sorted(files.items())),
        state_digests={str(receipt.rank): receipt.state_digest for receipt in receipts},
        made_unix_ns=max(receipt.made_unix_ns for receipt in receipts),
    )


def digest_of_manifest(data: bytes, /) -> str:
    """Return the digest of a checkpoint: that of its manifest, which holds those of its files."""
    return sha256_hex(data)


def _apart(first: Origin, other: Origin) -> str:
    names = [name for name in first.__struct_fields__ if getattr(first, name) != getattr(other, name)]
    return f"saved with another {', '.join(names)} than rank 0"
