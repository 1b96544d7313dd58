"""The rule by which a checkpoint is chosen to start from: by metadata alone, with every reason against one (SE-10)."""

from msgspec import Struct

from paritrace.session.checkpoint_records import Manifest
from paritrace.session.workload import Accepts


class Candidate(Struct, frozen=True):
    """A folder that may be a checkpoint: its manifest, or why it is none."""

    name: str
    manifest: Manifest | str
    sizes: dict[str, int | None]  # of its files as they lie there; None: missing


class Wanted(Struct, frozen=True):
    """What has to hold for a start. A field that is None is not asked for; `accepts` is the workload's own word."""

    workload: str
    world_size: int
    inputs_digest: str | None = None
    accepts: Accepts = Accepts()

    def takes_workload(self, manifest: Manifest, /) -> bool:
        """Whether a checkpoint is of this workload, or of one that it accepts."""
        return manifest.origin.workload in {self.workload, *self.accepts.workloads}

    def takes_world_size(self, manifest: Manifest, /) -> bool:
        """Whether as many ranks as are wanted can load it: a whole one by any number."""
        return not manifest.sharded or self.accepts.world_sizes or manifest.origin.world_size == self.world_size


class Rejected(Struct, frozen=True):
    """A candidate that was not chosen, with every reason."""

    name: str
    reasons: tuple[str, ...]


class Choice(Struct, frozen=True):
    """`chosen` is the one made last of those that hold; None where none does."""

    chosen: str | None
    rejected: tuple[Rejected, ...]


def choice(candidates: list[Candidate], wanted: Wanted, /) -> Choice:
    """Return the last made of the candidates that hold, and all that do not, each with all of its reasons (SE-10)."""
    held: list[tuple[int, int, str]] = []
    rejected: list[Rejected] = []
    for candidate in candidates:
        reasons = reasons_against(candidate, wanted)
        if reasons:
            rejected.append(Rejected(candidate.name, reasons))
        elif isinstance(candidate.manifest, Manifest):
            held.append((candidate.manifest.made_unix_ns, candidate.manifest.origin.step, candidate.name))
    return Choice(max(held)[2] if held else None, tuple(rejected))


def reasons_against(candidate: Candidate, wanted: Wanted, /) -> tuple[str, ...]:
    """Return every reason why a candidate is not to be started from; empty where it may be."""
    manifest = candidate.manifest
    if not isinstance(manifest, Manifest):
        return (manifest,)
    origin = manifest.origin
    found: list[str] = []
    if not wanted.takes_workload(manifest):
        found.append(f"of workload {origin.workload}, not {wanted.workload}")
    if not wanted.takes_world_size(manifest):
        found.append(f"sharded over {origin.world_size} ranks, not {wanted.world_size}")
    stored = origin.inputs.get("digest")
    if wanted.inputs_digest is not None and stored is not None and stored != wanted.inputs_digest:
        found.append(f"saved with inputs {stored}, not {wanted.inputs_digest}")
    for name, written in manifest.files.items():
        size = candidate.sizes.get(name)
        if size is None:
            found.append(f"{name} is missing")
        elif size != written.num_bytes:
            found.append(f"{name} has {size} bytes, {written.num_bytes} were saved")
    return tuple(found)
