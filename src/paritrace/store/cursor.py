"""Reading and writing a rank's checkpoint, and whether it and the target tell one story (ST-8a, ST-9)."""

from msgspec.structs import replace

from paritrace.errors import EvidenceError
from paritrace.files import Files
from paritrace.store import checkpoint as records
from paritrace.store.checkpoint import Checkpoint, Progress
from paritrace.store.documents import canonical, staged_document
from paritrace.store.layout import BundleName, StagedRank, parsed, rank_prefix
from paritrace.store.targets import Target

_WAY_OUT = "put the staging directory back as it was, or go on under a new run id with a new target"


def load(place: StagedRank, target: Target, *, token: str, files: Files) -> Checkpoint:
    """Return the rank's checkpoint, a first one where neither it nor any bundle of the rank is there.

    Raises:
        EvidenceError: Refused, code `checkpoint_lost`: it is missing, unreadable, of another run, node or rank, or the
            target holds more or less than it says. Nothing is published, and numbering never begins anew.
    """
    try:
        found = staged_document(place.checkpoint, Checkpoint, format_name=records.FORMAT, files=files)
    except EvidenceError as error:
        raise _lost(place, error.message) from error
    if found is None:
        if next(iter(target.list(rank_prefix(place.key))), None) is not None:
            raise _lost(place, f"there is no {place.checkpoint}, and {target.label} holds bundles of this rank")
        return _first(place, token)
    _require_same(found, place, token)
    _require_history(found, place, target)
    return found


def save(place: StagedRank, checkpoint: Checkpoint, *, files: Files) -> None:
    """Replace the checkpoint: old or new, never a part.

    Raises:
        HostError: Refused, the old one stands; Failed when the new one could not be forced to disk.
    """
    files.replace(place.checkpoint, canonical(replace(checkpoint, version=records.VERSION)))


def _first(place: StagedRank, token: str) -> Checkpoint:
    return Checkpoint(
        format=records.FORMAT,
        version=records.VERSION,
        run_id=place.run_id,
        node_id=place.node_id,
        rank=place.rank,
        incarnation=token,
        progress=Progress(),
    )


def _require_same(found: Checkpoint, place: StagedRank, token: str) -> None:
    said = (found.run_id, found.node_id, found.rank, found.incarnation)
    if said != (place.run_id, place.node_id, place.rank, token):
        whose = f"run {found.run_id}, node {found.node_id}, rank {found.rank}"
        raise _lost(place, f"{place.checkpoint} is of {whose}, or of another start")


def _require_history(found: Checkpoint, place: StagedRank, target: Target) -> None:
    """The last published bundle is there, and none after it but the pending one: two short listings."""
    bundles, pending = found.progress.bundles, found.pending
    if bundles and not any(name.sha256 == found.progress.head for name in _numbered(place, bundles, target)):
        raise _lost(place, f"{target.label} does not hold bundle {bundles}, which was published")
    due = "" if pending is None else pending.name
    unknown = [name for name in _numbered(place, bundles + 1, target) if str(name) != due]
    if unknown:
        raise _lost(place, f"{target.label} holds {unknown[0]}, which {place.checkpoint} does not know")


def _numbered(place: StagedRank, sequence: int, target: Target) -> list[BundleName]:
    names = (parsed(entry.name) for entry in target.list(f"{rank_prefix(place.key)}{sequence:08d}-"))
    return [name for name in names if isinstance(name, BundleName)]


def _lost(place: StagedRank, why: str) -> EvidenceError:
    return EvidenceError(
        f"what {place.key} of run {place.run_id} has published is not known: {why}",
        code="checkpoint_lost",
        fix=_WAY_OUT,
    )
