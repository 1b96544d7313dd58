"""One rank's sync: finish what is pending, choose, build, publish; once or until all is out (ST-6 to ST-8a)."""

from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError, ParitraceError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL, Files
from paritrace.store import cursor, nodes, records
from paritrace.store.building import build, promise, write_pending
from paritrace.store.checkpoint import Checkpoint, advanced, unchanged
from paritrace.store.choosing import Choice, Chooser, Left, Scope
from paritrace.store.documents import canonical
from paritrace.store.layout import STATE, NodeName, ReceiptName, StagedRank, rank_prefix
from paritrace.store.node_locks import NODE_LOCK_SECONDS, RANK_LOCK_SECONDS, node_lock, rank_lock
from paritrace.store.outcomes import keep_success, keep_trouble, load_outcome
from paritrace.store.ownership import Ownership
from paritrace.store.publishing import drop_leftovers, publish
from paritrace.store.records import NodeFacts, Receipt, Remark, about
from paritrace.store.sources import listing_of, require_staging
from paritrace.store.targets import Target
from paritrace.store.throttle import Throttle

MIB = 1 << 20
INTERVAL_SECONDS = 60.0
BATCH_BYTES = 256 * MIB
NUM_CHOICES = 3  # a source that changes between hashing and building is chosen again at once; then the sync fails
OVERDUE_INTERVALS = 2


class SyncSettings(Struct, frozen=True):
    """`batch_bytes`: payload of a bundle. Waits: for another sync of the rank, and for other ranks' uploads (P5)."""

    interval_seconds: float = INTERVAL_SECONDS
    batch_bytes: int = BATCH_BYTES
    rank_lock_seconds: float = RANK_LOCK_SECONDS
    node_lock_seconds: float = NODE_LOCK_SECONDS


DEFAULTS = SyncSettings()


class Host(Struct, frozen=True):
    """This process and what it acts through."""

    process: ProcessIdentity
    files: Files = LOCAL
    clock: Clock = SYSTEM


class SyncReport(Struct, frozen=True):
    """What one sync did.

    `published`: names of the new objects. `more`: complete bytes are left, so the next sync is due at once.
    `remarks` are new in this sync, `transient` ones are tried again, `tails` are incomplete last records.
    """

    run_id: str
    node_id: str
    rank: int
    published: tuple[str, ...] = ()
    published_bytes: int = 0
    bundles: int = 0
    waiting_bytes: int = 0
    overdue_bytes: int = 0
    more: bool = False
    remarks: tuple[Remark, ...] = ()
    transient: tuple[Remark, ...] = ()
    tails: tuple[Remark, ...] = ()
    final: bool = False


class Syncer:
    """Publishes one rank of one node. Used by one thread at a time; other processes are kept out by locks."""

    def __init__(
        self,
        place: StagedRank,
        target: Target,
        *,
        host: Host,
        throttle: Throttle,
        settings: SyncSettings = DEFAULTS,
    ) -> None:
        self._place = place
        self._target = target
        self._process = host.process
        self._throttle = throttle
        self._settings = settings
        self._files, self._clock = host.files, host.clock
        self._report = SyncReport(run_id=place.run_id, node_id=place.node_id, rank=place.rank)

    def once(self) -> SyncReport:
        """Publish at most one bundle: a pending one, or a new one.

        Raises:
            HostError: Refused or Failed: `lock_timeout`, `staging_gone`, what the disk or the target says; what is
                pending stays so.
            EvidenceError: Refused: `checkpoint_lost`, `duplicate_node`, `foreign_run`, `old_layout`, `pending_lost`,
                `changed_while_read`.
        """
        with self._held() as checkpoint:
            if checkpoint.pending is not None:
                self._publish(checkpoint)
                before = load_outcome(self._place, files=self._files)
                self._report = replace(
                    self._report, more=True, waiting_bytes=before.waiting_bytes, overdue_bytes=before.overdue_bytes
                )
                return self._finished()
            after, choice = self._one_bundle(checkpoint, self._scope(ends=None, recheck=False))
            self._told(after, choice)
            return self._finished()

    def final(self) -> SyncReport:
        """Publish everything that was visible at the start, then a receipt. Raises as `once` does."""
        with self._held() as checkpoint:
            ends = {path: found.num_bytes for path, found in self._listed().items()}
            drained, choice = self._drained(self._publish(checkpoint), ends)
            self._publish(self._with_receipt(drained, choice))
            self._report = replace(self._report, more=False, final=True)
            return self._finished()

    def publish_node(self, facts: NodeFacts) -> str:
        """Publish what this node is, once: what an earlier start said stands. Returns the name of the object.

        Raises:
            EvidenceError, HostError: as `once` does.
        """
        with self._held():
            data = nodes.staged(self._place, facts, files=self._files)
            name = str(NodeName(self._place.node_id, sha256_hex(data)))
            source = nodes.path_of(self._place)
            self._target.put_if_absent(name, source, sha256=sha256_hex(data), throttle=self._throttle)
            return name

    def note(self, error: ParitraceError) -> None:
        """Keep for `status` what a sync ended with that could not say so itself."""
        keep_trouble(self._place, error, unix_ns=self._clock.wall_ns(), files=self._files)

    def _drained(self, checkpoint: Checkpoint, ends: dict[str, int]) -> tuple[Checkpoint, Choice]:
        """Publish bundles until a look at everything finds none to build; return the last checkpoint and choice.

        What one look finds fills as many bundles as it takes, so that the work grows as the files do.
        """
        scope = self._scope(ends=ends, recheck=True)
        left: Left | None = None
        while True:
            before, was_look = checkpoint.progress.bundles, left is None
            checkpoint, choice = self._one_bundle(checkpoint, scope, left)
            self._told(checkpoint, choice)
            scope, left = replace(scope, recheck=False), choice.left
            if was_look and checkpoint.progress.bundles == before:
                return checkpoint, choice

    @contextmanager
    def _held(self) -> Generator[Checkpoint, None, None]:
        """Hold the rank's lock with its checkpoint read; what goes wrong is kept for `status`."""
        place = self._place
        self._report = SyncReport(run_id=place.run_id, node_id=place.node_id, rank=place.rank)
        try:
            require_staging(place.originals, files=self._files)
            with rank_lock(
                place.node_state,
                place.rank,
                owner=self._process,
                files=self._files,
                clock=self._clock,
                wait_seconds=self._settings.rank_lock_seconds,
            ):
                ownership = Ownership(place, self._target, throttle=self._throttle, files=self._files)
                token = ownership.token(self._process)
                checkpoint = cursor.load(place, self._target, token=token, files=self._files)
                drop_leftovers(place, checkpoint, files=self._files)
                self._target.drop_leftovers(rank_prefix(place.key))
                yield checkpoint
        except ParitraceError as error:
            keep_trouble(place, error, unix_ns=self._clock.wall_ns(), files=self._files)
            raise

    def _listed(self) -> dict[str, records.SourceIdentity]:
        return listing_of(self._place.originals, files=self._files).found

    def _scope(self, *, ends: dict[str, int] | None, recheck: bool) -> Scope:
        return Scope(
            payload_bytes=self._settings.batch_bytes,
            overdue_ns=int(OVERDUE_INTERVALS * self._settings.interval_seconds * 1e9),
            ends=ends,
            recheck=recheck,
        )

    def _one_bundle(self, checkpoint: Checkpoint, scope: Scope, left: Left | None = None) -> tuple[Checkpoint, Choice]:
        """Choose and publish one bundle; return the checkpoint after it and the choice, which may be empty."""
        promised, choice = self._promised(checkpoint, scope, left)
        return self._publish(promised), choice

    def _promised(self, checkpoint: Checkpoint, scope: Scope, left: Left | None) -> tuple[Checkpoint, Choice]:
        for tries_left in reversed(range(NUM_CHOICES)):
            chooser = Chooser(self._place.originals, checkpoint.progress, scope, files=self._files, clock=self._clock)
            choice = chooser.choose() if left is None else chooser.go_on(left)
            if not choice.segments:
                return self._noted(checkpoint, choice), choice
            try:
                final = scope.ends is not None
                return build(self._place, checkpoint, choice, final=final, files=self._files), choice
            except EvidenceError as error:
                if error.code != "changed_while_read" or not tries_left:
                    raise
        raise AssertionError("the last choice is built or raises")

    def _noted(self, checkpoint: Checkpoint, choice: Choice) -> Checkpoint:
        """Keep what was seen where nothing is published; its remarks go into the next bundle."""
        progress = advanced(checkpoint.progress, choice.then)
        if progress == checkpoint.progress:
            return checkpoint
        noted = replace(checkpoint, progress=progress)
        cursor.save(self._place, noted, files=self._files)
        return noted

    def _with_receipt(self, checkpoint: Checkpoint, choice: Choice) -> Checkpoint:
        """Promise the receipt of a final sync, unless the last one states the same."""
        progress = checkpoint.progress
        every = {about(one): one for one in (*progress.remarks, *choice.transient, *choice.tails)}
        receipt = Receipt(
            format=records.RECEIPT_FORMAT,
            version=records.VERSION,
            run_id=self._place.run_id,
            node_id=self._place.node_id,
            rank=self._place.rank,
            incarnation=checkpoint.incarnation,
            number=progress.receipts,
            bundles=progress.bundles,
            head=progress.head,
            payload_bytes=progress.payload_bytes,
            remarks=tuple(sorted(every.values(), key=about)),
        )
        stated = sha256_hex(canonical(replace(receipt, number=0)))
        if stated == progress.receipt_sha256:
            return checkpoint
        number = progress.receipts + 1
        data = canonical(replace(receipt, number=number))
        built = write_pending(self._place, "receipt", iter((data,)), files=self._files)
        then = replace(unchanged(progress), receipts=number, receipt_sha256=stated)
        name = str(ReceiptName(self._place.key, number, built.sha256))
        return promise(self._place, checkpoint, built.promised(name, then), files=self._files)

    def _publish(self, checkpoint: Checkpoint) -> Checkpoint:
        """Publish what is pending, one upload of the node at a time."""
        pending = checkpoint.pending
        if pending is None:
            return checkpoint
        with node_lock(
            self._place.staging / STATE,
            owner=self._process,
            files=self._files,
            clock=self._clock,
            wait_seconds=self._settings.node_lock_seconds,
        ):
            after, _ = publish(self._place, checkpoint, self._target, throttle=self._throttle, files=self._files)
        self._report = replace(
            self._report,
            published=(*self._report.published, pending.name),
            published_bytes=self._report.published_bytes + pending.num_bytes,
            bundles=after.progress.bundles,
        )
        return after

    def _told(self, checkpoint: Checkpoint, choice: Choice) -> None:
        self._report = replace(
            self._report,
            bundles=checkpoint.progress.bundles,
            waiting_bytes=choice.waiting_bytes,
            overdue_bytes=choice.overdue_bytes,
            more=choice.more,
            remarks=tuple(dict.fromkeys((*self._report.remarks, *choice.remarks))),
            transient=choice.transient,
            tails=choice.tails,
        )

    def _finished(self) -> SyncReport:
        keep_success(
            self._place,
            waiting_bytes=self._report.waiting_bytes,
            overdue_bytes=self._report.overdue_bytes,
            unix_ns=self._clock.wall_ns(),
            files=self._files,
        )
        return self._report
