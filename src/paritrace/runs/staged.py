"""A run whose ranks write to staging: what its own directory says of where they are (ST-24, SU-18)."""

from pathlib import Path

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.errors import EvidenceError
from paritrace.files import LOCAL, Files
from paritrace.runs import envelope as records
from paritrace.runs.documents import read_own_envelope, write_document
from paritrace.runs.envelope import ENVELOPE_NAME, LOCK_NAME, Envelope
from paritrace.runs.launch import Launcher, Start

STORE, STAGING, NODE = "store", "staging", "staging_node"  # keys of an envelope's metadata
TROUBLE = "store_trouble"  # what kept evidence from the store, in words; absent where nothing did
STAGING_FAILED = "store_staging_failed"  # ranks whose last sync failed, as `rank R: code`, `; ` between them (ST-17)
NOT_PUBLISHED = "store_bytes_not_published"
_NO_CONFIGURATION = "0" * 64  # the ranks' own envelopes have it


class Staged(Struct, frozen=True):
    """Where the ranks of a run are: the target they are published to, and this node's staging directory."""

    run_id: str
    store: str
    staging: Path
    node_id: str

    @property
    def folder(self) -> Path:
        """The folder with one run directory for each rank of this node."""
        return self.staging / self.run_id


def claim_staged(
    run_dir: Path, staged: Staged, *, title: str, again: bool = False, files: Files = LOCAL, clock: Clock = SYSTEM
) -> None:
    """Make the run directory of a run whose ranks write to staging; it holds an envelope without sessions.

    Args:
        again: a launcher that started its ranks anew finds the directory of its first start, and leaves it as it is.

    Raises:
        EvidenceError: Refused, code `run_exists`: something is there.
        HostError: Refused, what the disk says.
    """
    files.mkdir(run_dir.parent)
    files.claim(run_dir)
    with files.locked(run_dir / LOCK_NAME, clock=clock):
        if again and _is_of(run_dir, staged, files):
            return
        if files.list(run_dir):
            raise EvidenceError(
                f"{run_dir} holds something already",
                code="run_exists",
                fix="choose another run directory",
            )
        envelope = Envelope(
            format=records.FORMAT,
            version=records.VERSION,
            run_id=staged.run_id,
            created_at=rfc3339(clock.wall_ns()),
            start=Start(launcher=Launcher.PROCESS, job=f"staged {staged.run_id}"),
            config_digest=_NO_CONFIGURATION,
            title=title or None,
            metadata={STORE: staged.store, STAGING: str(staged.staging), NODE: staged.node_id},
        )
        write_document(run_dir / ENVELOPE_NAME, envelope, files=files)


def _is_of(run_dir: Path, staged: Staged, files: Files) -> bool:
    envelope = read_own_envelope(run_dir, files=files)
    return envelope is not None and staged_of(envelope) == staged


def note_staged(run_dir: Path, facts: dict[str, str], *, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
    """Add what is known of the publishing to the run's own envelope (ST-10, ST-17)."""
    from msgspec.structs import replace

    with files.locked(run_dir / LOCK_NAME, clock=clock):
        envelope = read_own_envelope(run_dir, files=files)
        if envelope is not None:
            changed = replace(envelope, metadata={**envelope.metadata, **facts})
            write_document(run_dir / ENVELOPE_NAME, changed, files=files)


def staged_of(envelope: Envelope) -> Staged | None:
    """Return where a run's ranks are, None where they are in its own directory."""
    if envelope.sessions or not {STORE, STAGING, NODE} <= set(envelope.metadata):
        return None
    told = envelope.metadata
    return Staged(run_id=envelope.run_id, store=told[STORE], staging=Path(told[STAGING]), node_id=told[NODE])
