"""A rank's syncs at an interval, until the process is ended; trouble of the target is waited out (ST-7, ST-16)."""

from collections.abc import Callable

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.store.schedule import delay_seconds, first_delay_seconds
from paritrace.store.syncing import Syncer, SyncReport

STAGING_GONE = "staging_gone"


def sync_for_ever(
    syncer: Syncer,
    *,
    node_id: str,
    local_rank: int,
    interval_seconds: float,
    tell: Callable[[SyncReport | HostError], None],
    clock: Clock = SYSTEM,
) -> None:
    """Sync until interrupted.

    A full disk, a permission or a target that went away is told, kept for `store status`, and tried again after the
    interval: what is pending stays as it is. A staging directory that is gone ends it, and so does evidence that is in
    conflict.

    Raises:
        HostError: Refused, code `staging_gone`.
        EvidenceError: as `Syncer.once` says.
    """
    clock.sleep(first_delay_seconds(node_id, local_rank=local_rank, interval_seconds=interval_seconds))
    while True:
        more = False
        try:
            report = syncer.once()
            more = report.more
            tell(report)
        except HostError as error:
            if error.code == STAGING_GONE:
                raise
            tell(error)
        clock.sleep(delay_seconds(more=more, interval_seconds=interval_seconds))
