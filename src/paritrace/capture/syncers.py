"""From what a person asked for to the syncer of one rank, with every check that comes before it (ST-1, ST-17)."""

import platform
import socket
from pathlib import Path

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import checked_id
from paritrace.process.identity import own_identity
from paritrace.store import records
from paritrace.store.layout import StagedRank
from paritrace.store.records import NodeFacts, StoreGap
from paritrace.store.syncing import MIB, Host, Syncer, SyncSettings
from paritrace.store.targets import open_target
from paritrace.store.throttle import Throttle
from paritrace.store.watching import Watch, WatchedTarget

_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")


class SyncRequest(Struct, frozen=True):
    """What a person asked for."""

    staging: Path | None
    target: str | None
    run_id: str
    rank: int
    node_id: str | None
    interval_seconds: float
    batch_mib: float
    mib_per_second: float

    @property
    def node(self) -> str:
        return self.node_id if self.node_id is not None else socket.gethostname()


def make_syncer(request: SyncRequest, *, watch: Watch | None = None) -> Syncer:
    """Return the syncer of a request; `watch` sees what its target is asked for.

    Raises:
        RequestError: Refused: `no_staging`, `no_store`, `bad_id`, `staging_in_store`, `bad_target`, `bad_rate`.
    """
    staging, target = _places(request)
    place = StagedRank(
        staging=staging,
        run_id=checked_id(request.run_id, what="run id"),
        node_id=checked_id(request.node, what="node id"),
        rank=request.rank,
    )
    opened = open_target(target)
    return Syncer(
        place,
        opened if watch is None else WatchedTarget(opened, watch),
        host=Host(process=own_identity()),
        throttle=Throttle(request.mib_per_second * MIB),
        settings=SyncSettings(interval_seconds=request.interval_seconds, batch_bytes=int(request.batch_mib * MIB)),
    )


def publish_node(syncer: Syncer, request: SyncRequest) -> None:
    """Publish what this node is (ST-5); names and versions only."""
    from paritrace.capture.surroundings import NO_TORCH, Checkout, surroundings
    from paritrace.evidence.gaps import CaptureGap

    none = Checkout(Gap(CaptureGap.NOT_COLLECTED), Gap(CaptureGap.NOT_COLLECTED))
    known = surroundings(argv=None, main=None, checkout=none, diff_id="", torch=NO_TORCH)
    process = own_identity()
    syncer.publish_node(
        NodeFacts(
            format=records.NODE_FORMAT,
            version=records.VERSION,
            node_id=request.node,
            host=process.host,
            boot_id=process.boot_id if isinstance(process.boot_id, str) else Gap(StoreGap.NOT_OBSERVABLE),
            platform=known.platform,
            python=platform.python_version(),
            devices=_devices(),
            drivers=_drivers(),
            packages=known.packages,
            environment_names=known.environment_names,
        )
    )


def _places(request: SyncRequest) -> tuple[Path, str]:
    if request.target is None:
        raise no_store()
    if request.staging is None:
        raise RequestError(
            "a store without a staging directory",
            code="no_staging",
            fix="name a directory on a disk of this node: --staging, or PARITRACE_STAGING_DIR",
        )
    staging = request.staging.expanduser().absolute()
    store = Path(request.target.removeprefix("file://")).expanduser().absolute()
    if "://" not in request.target.removeprefix("file://") and _overlap(staging.resolve(), store.resolve()):
        raise RequestError(
            f"staging {staging} and store {store} lie inside each other",
            code="staging_in_store",
            fix="stage on a disk of this node, outside the store",
        )
    return staging, request.target


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


def no_store() -> RequestError:
    """Return the error for a question about no store."""
    return RequestError(
        "no store is named", code="no_store", fix="name one: --store TARGET, STORE, or the variable PARITRACE_STORE"
    )


def _devices() -> tuple[str, ...] | Gap[StoreGap]:
    """The models that the NVIDIA driver lists, without loading any of its libraries; others are not looked for."""
    try:
        texts = [
            path.read_text(encoding="utf-8", errors="replace") for path in sorted(_NVIDIA_GPUS.glob("*/information"))
        ]
    except OSError:
        return Gap(StoreGap.NOT_OBSERVABLE)
    lines = [line.partition(":") for text in texts for line in text.splitlines()]
    models = tuple(value.strip() for name, _, value in lines if name.strip() == "Model")
    return models or Gap(StoreGap.NOT_OBSERVABLE)


def _drivers() -> dict[str, str]:
    try:
        return {"nvidia": _NVIDIA_DRIVER.read_text(encoding="utf-8", errors="replace").partition("\n")[0]}
    except OSError:
        return {}
