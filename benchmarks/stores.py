"""Ranks to publish, of one large file or of many small ones, for the measurements of the store."""

import os
import shutil
from pathlib import Path

from paritrace.process.identity import own_identity
from paritrace.store.layout import StagedRank
from paritrace.store.syncing import Host, Syncer, SyncSettings
from paritrace.store.targets import Target, open_target
from paritrace.store.throttle import MIB, Throttle

SMALL_BYTES = 100 << 10


def staged(folder: Path, *, files: int, num_bytes: int) -> StagedRank:
    """A rank with so many files of so many random bytes, which no compression shortens."""
    place = StagedRank(folder / "staging", "run", "node", 0)
    place.originals.mkdir(parents=True)
    for number in range(files):
        (place.originals / f"{number:05d}.bin").write_bytes(os.urandom(num_bytes))
    return place


def published(place: StagedRank, store: Path, *, throttle: Throttle | None = None) -> Target:
    """Publish all of it into a new store, with nothing known of an earlier one."""
    shutil.rmtree(place.node_state, ignore_errors=True)
    shutil.rmtree(store, ignore_errors=True)
    target = open_target(str(store))
    synced(place, target, throttle=throttle or Throttle(None)).final()
    return target


def synced(place: StagedRank, target: Target, *, throttle: Throttle) -> Syncer:
    """A syncer with the defaults of the command."""
    return Syncer(
        place,
        target,
        host=Host(process=own_identity()),
        throttle=throttle,
        settings=SyncSettings(batch_bytes=256 * MIB),
    )
