"""`paritrace store`: publish what a rank staged, see how far it is, restore it, verify it."""

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_lines_option, json_option
from paritrace.cli.output import ExitStatus, error_document, note, write_json, write_json_line, write_text
from paritrace.cli.store_options import BATCH, INTERVAL, NODE_ID, PACE, STAGING, STORE, setting
from paritrace.errors import HostError, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from paritrace.store.syncing import Syncer, SyncReport
    from paritrace.store.verifying import StoreVerdict

_PATH = click.Path(path_type=Path)
LAST_LINE_SECONDS = 1.0  # at an interrupt, for a line under way: where nobody reads, it never ends


@click.group()
def store() -> None:
    """Publish staged ranks to a store, see how far they are, restore and verify a store."""


@store.command()
@setting(STAGING)
@setting(STORE, "target")
@click.option("--run-id", required=True, metavar="ID", help="The run; its ranks stage below DIR/ID.")
@click.option("--rank", type=click.IntRange(0), required=True, help="The rank that is published, by its global number.")
@click.option("--local-rank", type=click.IntRange(0), help="Its number on this node; number 0 publishes node facts.")
@setting(NODE_ID)
@click.option("--once", is_flag=True, help="Publish at most one bundle.")
@click.option("--final", is_flag=True, help="Publish everything that is visible now, then a receipt.")
@setting(INTERVAL)
@setting(BATCH)
@setting(PACE)
@click.option(
    "--deadline",
    type=click.FloatRange(min=1.0),
    default=660.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up with sync_stuck when the target answers nothing for so long.",
)
@json_lines_option
@json_option
def sync(  # noqa: PLR0913  one parameter per option
    staging: Path | None,
    target: str | None,
    run_id: str,
    rank: int,
    local_rank: int | None,
    node_id: str | None,
    once: bool,
    final: bool,
    sync_interval: float,
    sync_batch_mib: float,
    sync_mib_per_second: float,
    deadline: float,
    as_lines: bool,
    as_json: bool,
) -> int:
    """Publish what rank RANK of run ID staged: again and again, or with --once or --final.

    The cap holds for one node: set it near the allowed total over the number of nodes; there is no total cap and no
    scheduler over nodes, which begin at an offset taken from the digest of their ids. What a killed process had not
    flushed is lost with it, what a lost node had not published too; what was published stays.

    A target that answers nothing for --deadline seconds ends the command, also where the kernel keeps who asks.

    Exit status: 0 done; 2 an error, whose message says what is kept for the next try; 3 something was not taken.
    """
    from paritrace.capture.syncers import SyncRequest
    from paritrace.capture.watched_syncs import watched_syncer
    from paritrace.cli.store_text import sync_text

    if once and final:
        raise RequestError("--once and --final exclude each other", code="usage", fix="give one of them")
    if as_json and not once and not final:
        raise RequestError(
            "syncs that go on print no single document",
            code="usage",
            fix="give --json-lines, or --once or --final with --json",
        )
    request = SyncRequest(staging, target, run_id, rank, node_id, sync_interval, sync_batch_mib, sync_mib_per_second)
    with watched_syncer(request, local_rank, seconds=deadline) as (syncer, within):
        if not once and not final:
            with _whole_lines() as writing:
                tell = _teller(as_lines=as_lines, writing=writing)
                return within(lambda: _periodic(syncer, request.node, local_rank or 0, sync_interval, tell=tell))
        report = within(syncer.final if final else syncer.once)
    if as_lines:
        write_json_line(report)
    elif as_json:
        write_json(report)
    else:
        write_text(sync_text(report))
    return _status_of_sync(report)


@store.command()
@click.argument("target", required=False, metavar="[STORE]")
@setting(STAGING)
@click.option("--run-id", metavar="ID", help="With --staging: this run alone; default: all.")
@json_option
def status(target: str | None, staging: Path | None, run_id: str | None, as_json: bool) -> int:
    """Show how far each rank is: published in STORE, and staged in the directory of this node.

    Exit status: 0; 3 when a bundle is missing, a sync failed, or bytes are overdue by two intervals.
    """
    from paritrace.capture.syncers import no_store
    from paritrace.cli.store_text import status_text
    from paritrace.store.status import status_of
    from paritrace.store.syncing import BATCH_BYTES
    from paritrace.store.targets import open_target

    if target is None and staging is None:
        raise no_store()
    found = status_of(None if target is None else open_target(target), staging, run_id, batch_bytes=BATCH_BYTES)
    if as_json:
        write_json(found)
    else:
        write_text(status_text(found))
    worried = bool(found.problems) or any(rank.trouble or rank.overdue_bytes for rank in found.staged)
    return ExitStatus.UNDETERMINED if worried else ExitStatus.DONE


@store.command()
@click.argument("source", metavar="STORE")
@click.argument("destination", type=_PATH, metavar="DEST")
@click.option(
    "--partial", is_flag=True, help="Restore each rank up to its first problem; the rest is named as missing."
)
@json_option
def restore(source: str, destination: Path, partial: bool, as_json: bool) -> int:
    """Restore STORE, or an old archive sync.tar.gz, into the directory DEST, which must not exist.

    Exit status: 0 restored whole; 2 refused, with every problem, and nothing written; 3 restored in part.
    """
    from paritrace.cli.store_text import extracted_text, restored_text
    from paritrace.store.opening import restore_from
    from paritrace.store.restoring import Restored

    found = restore_from(source, destination, partial=partial)
    if as_json:
        write_json(found)
    elif isinstance(found, Restored):
        write_text(restored_text(found, destination))
    else:
        write_text(extracted_text(found, destination))
    missing = isinstance(found, Restored) and bool(found.problems)
    return ExitStatus.UNDETERMINED if missing else ExitStatus.DONE


@store.command()
@click.argument("source", metavar="STORE")
@json_option
def verify(source: str, as_json: bool) -> int:
    """Read every bundle of STORE and check it, without restoring.

    Exit status: 0 intact; 2 something changed or is missing; 3 something could not be checked, the end of a run without
    a final sync for example.
    """
    from paritrace.cli.store_text import verification_text
    from paritrace.store.targets import open_target
    from paritrace.store.verifying import verify_store

    found = verify_store(open_target(source))
    if as_json:
        write_json(found)
    else:
        write_text(verification_text(found))
    return _status_of_verdict(found.verdict)


def _status_of_verdict(verdict: "StoreVerdict") -> ExitStatus:
    from paritrace.store.verifying import StoreVerdict

    match verdict:
        case StoreVerdict.INTACT:
            return ExitStatus.DONE
        case StoreVerdict.DAMAGED:
            return ExitStatus.TROUBLE
        case StoreVerdict.NOT_CHECKED:
            return ExitStatus.UNDETERMINED


def _status_of_sync(report: "SyncReport") -> ExitStatus:
    from paritrace.store.records import is_loss

    lost = any(is_loss(remark) for remark in (*report.remarks, *report.transient))
    return ExitStatus.UNDETERMINED if lost else ExitStatus.DONE


@contextmanager
def _whole_lines() -> "Generator[threading.Lock]":
    """Give a lock to write a line under: at an interrupt one under way is waited for, and none begins after it.

    Syncs go on in a thread that the end of the process does not wait for: Python aborts where it ends beside a write.
    """
    writing = threading.Lock()
    try:
        yield writing
    except KeyboardInterrupt:
        writing.acquire(timeout=LAST_LINE_SECONDS)
        raise


def _teller(*, as_lines: bool, writing: threading.Lock) -> "Callable[[SyncReport | HostError], None]":
    from paritrace.cli.store_text import sync_text

    def tell(report: "SyncReport | HostError") -> None:
        with writing:
            if not as_lines:
                note(sync_text(report))
            elif isinstance(report, HostError):
                write_json_line({"ok": False, "error": error_document(report)})
            else:
                write_json_line(report)

    return tell


def _periodic(
    syncer: "Syncer",
    node_id: str,
    local_rank: int,
    interval_seconds: float,
    *,
    tell: "Callable[[SyncReport | HostError], None]",
) -> int:
    from paritrace.store.periodic import sync_for_ever

    sync_for_ever(
        syncer,
        node_id=node_id,
        local_rank=local_rank,
        interval_seconds=interval_seconds,
        tell=tell,
    )
    return ExitStatus.DONE
