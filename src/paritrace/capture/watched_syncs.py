"""The syncs of a command, given up when the target does not answer (ST-16)."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from paritrace.capture.syncers import SyncRequest, make_syncer, publish_node
from paritrace.errors import HostError
from paritrace.store.syncing import Syncer
from paritrace.store.watching import Watch, watched

Result = TypeVar("Result")


class Within(Protocol):
    """Does something of a syncer and returns what that returns."""

    def __call__(self, act: Callable[[], Result], /) -> Result: ...


@contextmanager
def watched_syncer(
    request: SyncRequest, local_rank: int | None, *, seconds: float
) -> Generator[tuple[Syncer, Within], None, None]:
    """Yield the syncer of a request and what its syncs are done in; local rank 0 publishes first what the node is.

    Raises:
        HostError: Failed, code `sync_stuck`: the target answered nothing for `seconds`; it is kept for `store status`.
        RequestError, EvidenceError: as `make_syncer` and `Syncer` say.
    """
    watch = Watch()

    def opened() -> Syncer:
        with watch.waiting(f"open {request.target}"):
            return make_syncer(request, watch=watch)

    def within(act: Callable[[], Result], /) -> Result:
        return watched(act, watch, seconds=seconds)

    syncer = within(opened)
    try:
        if local_rank == 0:
            within(lambda: publish_node(syncer, request))
        yield syncer, within
    except HostError as error:
        if error.code == "sync_stuck":
            syncer.note(error)
        raise
