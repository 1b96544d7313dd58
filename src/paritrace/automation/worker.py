"""One rank of `discover` or `trace`: what the launcher starts as `-m paritrace.automation.worker ORDER SCRIPT [ARG…]`.

Tracing is set up here, after the launcher has started the rank, and the workload becomes `__main__` for good. When it
has ended, exit callbacks included, staging is flushed into the store and one completion is written (AU-4).
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
from pathlib import Path

from paritrace.automation.protocol.troubles import Trouble, of_error
from paritrace.automation.protocol.workloads import (
    BEGUN,
    COMPLETION,
    RANKS,
    Begun,
    Completion,
    Order,
)
from paritrace.capture import launch
from paritrace.capture.api import set_current
from paritrace.capture.elsewhere import loaded_elsewhere
from paritrace.capture.publishing import require_own_disk
from paritrace.capture.session import Capture, StagedRank, Workload, begin
from paritrace.capture.settings import CaptureSettings
from paritrace.capture.sites import workload_root
from paritrace.capture.syncers import SyncRequest, make_syncer, publish_node
from paritrace.errors import OUR_FAILURE, ParitraceError, RequestError
from paritrace.evidence import codec
from paritrace.evidence.calls import Level
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL
from paritrace.process.identity import boot_id, own_identity
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.launch import Launch, launch_of
from paritrace.store.syncing import BATCH_BYTES, INTERVAL_SECONDS, MIB

MIB_PER_SECOND = 4096.0  # the workload has ended: nothing is slowed down by flushing


class Rank:
    """This rank: its place in the launch, its capture, and the receipt at its end."""

    def __init__(self, order: Order, here: Launch) -> None:
        self._order = order
        self._here = here
        self._node = socket.gethostname()
        self._folder = Path(order.output) / RANKS / f"rank-{here.rank}"
        self._capture: Capture | None = None
        self._process = os.getpid()
        self._troubles: list[Trouble] = []
        self._before: frozenset[str] = frozenset()  # modules that are ours
        self.status: int | None = None

    def claim(self) -> bool:
        """Whether this is the rank's first start into this output."""
        LOCAL.mkdir(self._folder.parent)
        return LOCAL.claim(self._folder)

    def say_begun(self) -> None:
        begun = Begun(rank=self._here.rank, process=own_identity())
        LOCAL.replace(self._folder / BEGUN, codec.encode_document(begun))

    def say_again(self) -> None:
        """Leave word of a second start; its workload goes on uncaptured (CA-22)."""
        begun = Begun(rank=self._here.rank, process=own_identity())
        LOCAL.replace(self._folder / f"again-{os.getpid()}.json", codec.encode_document(begun))

    def refuse(self, error: ParitraceError) -> None:
        """The workload is not run: the receipt says why."""
        self._troubles.append(of_error(error))
        self._complete()

    def begin(self, target: launch.Target) -> launch.Target:
        """Start the capture; returns what to run."""
        order = self._order
        self._require_own_root()
        staged = StagedRank(run_id=order.run_id, node_id=self._node)
        root = workload_root(target.path, imported_from=Path(target.search_path))
        own = Workload(root=root, main=target.path, argv=target.argv)
        folder = Path(order.local_root) / order.run_id / f"rank-{self._here.rank}"
        LOCAL.mkdir(folder.parent)
        capture = self._capture = begin(folder, _settings(order), workload=own, staged=staged)
        set_current(capture)
        self._before = frozenset(sys.modules)
        atexit.register(self.end)  # first registered, so that it is called after the workload's own
        return target if capture.callsites is None else capture.callsites.main(target)

    def _require_own_root(self) -> None:
        """Refuse a local root that another node has as well (AU-10): each rank finds the boot of its own node there."""
        root = Path(self._order.local_root)
        require_own_disk(root)
        boot, mark = boot_id(), root / f".{self._order.run_id}.node"
        if isinstance(boot, Gap):
            return
        found = LOCAL.read_if_present(mark)
        if found is None:
            LOCAL.mkdir(mark.parent)
            LOCAL.replace(mark, boot.encode())
        elif found != boot.encode():
            raise RequestError(
                f"local_root {root} on node {self._node} is another node's as well",
                code="staging_is_shared",
                fix="name a folder on a disk of each node, outside the output",
            )

    def end(self) -> None:
        """End the capture, flush staging, write the receipt."""
        capture = self._capture
        if capture is None or os.getpid() != self._process:  # a forked child: the capture is its parent's
            return
        status = SessionStatus.COMPLETED if self.status == 0 else SessionStatus.INCOMPLETE
        capture.end(status, metadata={"exit_status": str(self.status)})
        if capture.failure is not None:
            self._troubles.append(of_error(capture.failure))
        try:
            self._require_own_root()  # of two nodes that began at once, one sees the other here
        except ParitraceError as error:
            self._troubles.append(of_error(error))
        self._complete(bundles=self._flush())

    def _flush(self) -> int:
        order = self._order
        request = SyncRequest(
            staging=Path(order.local_root),
            target=order.store,
            run_id=order.run_id,
            rank=self._here.rank,
            node_id=self._node,
            interval_seconds=INTERVAL_SECONDS,
            batch_mib=BATCH_BYTES / MIB,
            mib_per_second=MIB_PER_SECOND,
        )
        try:
            syncer = make_syncer(request)
            if isinstance(self._here.local_rank, Gap) or self._here.local_rank == 0:
                publish_node(syncer, request)
            return syncer.final().bundles
        except ParitraceError as error:
            self._troubles.append(of_error(error, what="staging was not flushed: "))
            return 0

    def _complete(self, *, bundles: int = 0) -> None:
        capture = self._capture
        sites = None if capture is None else capture.callsites
        done = Completion(
            rank=self._here.rank,
            world_size=self._here.world_size,
            node_id=self._node,
            process=own_identity(),
            session_id="" if capture is None else capture.session.session_id,
            exit_status=self.status,
            calls=0 if capture is None else capture.num_calls,
            bundles=bundles,
            troubles=tuple(self._troubles),
            loaded={} if sites is None else sites.loaded,
            not_as_planned={} if sites is None else sites.not_as_planned,
            elsewhere={} if capture is None else loaded_elsewhere(capture.recorder.sites, but=self._before),
        )
        LOCAL.write_once(self._folder / COMPLETION, codec.encode_document(done))


def main(words: list[str]) -> int:
    """Run one rank; returns the workload's exit status, 125 where it was not run."""
    path, script, *arguments = words
    try:
        order = codec.decode_document(LOCAL.read(Path(path)), Order, name=path)
        rank = Rank(order, launch_of(os.environ, process=own_identity()))
        first = rank.claim()
    except ParitraceError as error:  # nothing can be left for the tool: what the launcher keeps is all that tells of it
        _say(error)
        return OUR_FAILURE
    if not first:
        rank.say_again()
        return launch.run(launch.find_script(script, tuple(arguments)))
    rank.say_begun()
    try:
        _require_checkout(order)
        _require_ordered(order, script, arguments)
        target = rank.begin(launch.find_script(script, tuple(arguments)))
    except ParitraceError as error:
        rank.refuse(error)
        _say(error)
        return OUR_FAILURE
    rank.status = launch.run(target)
    return rank.status


def _say(error: ParitraceError) -> None:
    here = f"{error.outcome.value} on {socket.gethostname()}"
    sys.stderr.write(f"{here}: {error.message} [{error.code}]\n    fix: {error.fix}\n")


def _require_checkout(order: Order) -> None:
    """Refuse a node on which the workload is not where the request says (AU-10)."""
    script = os.path.join(order.cwd, order.script)
    if not os.path.exists(script):
        raise RequestError(
            f"{script} is not there on node {socket.gethostname()}",
            code="checkout_not_visible",
            fix="make the same checkout visible at the same path on every node",
        )


def _require_ordered(order: Order, script: str, arguments: list[str]) -> None:
    """Refuse to run what the request does not name."""
    unlike = [
        *(["the script"] if script != order.script else []),
        *(["the arguments"] if tuple(arguments) != order.args else []),
        *(["the working directory"] if not os.path.samefile(".", order.cwd) else []),
    ]
    if unlike:
        raise RequestError(
            f"{' and '.join(unlike)} that the launcher gave this rank differ from the request's",
            code="arguments_changed",
            fix="use a launcher that hands on SCRIPT and every argument as it gets them, and stays in the folder",
        )


def _settings(order: Order) -> CaptureSettings:
    plan = order.plan
    levels = frozenset({Level.CALLSITE} if plan is None else {Level.DIGEST, Level.CALLSITE})
    return CaptureSettings(
        levels=levels,
        steps=(order.steps.first, order.steps.end),
        declared_steps=order.declared_steps,
        regions=order.regions,
        plan=plan,
        callsite_values=plan is not None,
        deterministic=order.deterministic,
        argv=False,
        diff=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
