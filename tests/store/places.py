"""A rank's staging folder, a target and syncs of it, for the tests of the store."""

from pathlib import Path

from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import Files
from paritrace.store.layout import BundleName, StagedRank, parsed
from paritrace.store.syncing import Host, Syncer, SyncReport, SyncSettings
from paritrace.store.targets import Target
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.throttle import Throttle
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import Fault, FaultyFiles

NO_LIMIT = Throttle(None)
QUICK: Files = FaultyFiles(at=0, fault=Fault.STOP)  # meets no fault; nothing is forced to disk, as no power is cut here


def process_of(host: str = "alpha") -> ProcessIdentity:
    return ProcessIdentity(
        host=host, boot_id=f"boot-{host}", pid_namespace="pid:[1]", pid=1, start_ticks=Gap(RunGap.NO_START_TICKS)
    )


class Place:
    """One rank of one node of the run `r`, and the directory that it publishes to."""

    def __init__(self, folder: Path, *, node: str = "n0", rank: int = 0, store: Path | None = None) -> None:
        self.staged = StagedRank(staging=folder / f"staging-{node}", run_id="r", node_id=node, rank=rank)
        self.store = folder / "store" if store is None else store
        self.clock = ManualClock()
        self.host = "alpha"
        self.originals.mkdir(parents=True, exist_ok=True)

    @property
    def originals(self) -> Path:
        return self.staged.originals

    def write(self, name: str, data: bytes, *, mode: str = "wb") -> Path:
        path = self.originals / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write(data)
        return path

    def append(self, name: str, data: bytes) -> Path:
        return self.write(name, data, mode="ab")

    def target(self, files: Files = QUICK) -> Target:
        return DirectoryTarget(self.store, files=files, clock=self.clock)

    def syncer(self, *, files: Files = QUICK, batch_bytes: int = 1 << 20, target: Target | None = None) -> Syncer:
        return Syncer(
            self.staged,
            self.target(files) if target is None else target,
            host=Host(process=process_of(self.host), files=files, clock=self.clock),
            throttle=NO_LIMIT,
            settings=SyncSettings(batch_bytes=batch_bytes, rank_lock_seconds=0.1, node_lock_seconds=0.1),
        )

    def once(self, *, batch_bytes: int = 1 << 20) -> SyncReport:
        return self.syncer(batch_bytes=batch_bytes).once()

    def final(self, *, batch_bytes: int = 1 << 20) -> SyncReport:
        return self.syncer(batch_bytes=batch_bytes).final()

    def bundles(self) -> list[BundleName]:
        names = (parsed(entry.name) for entry in self.target().list(""))
        return sorted(name for name in names if isinstance(name, BundleName))
