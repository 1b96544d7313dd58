"""Runs a command with its record around it: start line, command, counters, end line, one sync (SC-2, SC-4, RR-3)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap, gap_of, value_of
from paritrace.files import LOCAL, Files
from paritrace.process.commands import Start as CommandStart
from paritrace.process.commands import run_command
from paritrace.runs.command_watch import CommandWatch, Watching
from paritrace.runs.record_lines import (
    AdapterKind,
    Context,
    Ids,
    Names,
    RecordGap,
    Start,
    cut,
)
from paritrace.runs.recording import RunRecord, invocation_folder, new_id, start_line

if TYPE_CHECKING:
    from paritrace.process.exit_watch import SeenExit
    from paritrace.runs.record_ends import End

NOT_STARTED = "command_not_started"


class CommandRequest(Struct, frozen=True):
    """A command to run and what to look at. `root`: the run directory that gets the record."""

    command: tuple[str, ...]
    root: Path
    kind: AdapterKind = AdapterKind.COMMAND
    timeout_seconds: float | None = None
    watching: Watching = Watching()


class RecordedCommand(Struct, frozen=True):
    """A command that has ended, with its record. `status` is what a shell would tell, None where it never began;
    then `refusal` says why, which no record keeps."""

    start: Start
    end: End
    record: RunRecord
    status: int | None
    refusal: str = ""


def record_command(
    request: CommandRequest,
    *,
    started: Callable[[RunRecord], None] = lambda _: None,
    exits: Callable[[], tuple[SeenExit, ...]] = tuple,
    files: Files = LOCAL,
    clock: Clock = SYSTEM,
) -> RecordedCommand:
    """Run the command to its end and record it; must be called on the main thread.

    `started` is called beside the running command, for what may come after its start; `exits` once it has ended, for
    the ends of others that were seen meanwhile. A record that cannot be written
    changes nothing: `record.trouble` says so.

    Raises:
        RequestError: Refused, code `bad_id`: never for a command that could not be started, which is recorded.
    """
    ids = Ids(new_id("runtime", clock=clock), new_id("invocation", clock=clock), new_id("request", clock=clock))
    record = RunRecord(invocation_folder(request.root, ids), files=files, clock=clock)
    watch = CommandWatch(request.watching, ids, clock=clock, started=lambda: started(record))
    try:
        start = _start(request, ids, watch, clock)
        record.create()
        record.start(start)
        command = CommandStart(os.environ, timeout_seconds=request.timeout_seconds, join=watch.join)
        try:
            ended = run_command(request.command, command, watch=watch, clock=clock)
        except RequestError as error:
            from paritrace.runs.record_ends import RecordedError
            from paritrace.runs.recorded_end import end_line, not_started

            end = end_line(ids, not_started(clock), watch, began_ns=start.monotonic_ns, clock=clock)
            end = replace(end, error=RecordedError(code=NOT_STARTED, stage="start", retryable=False))
            record.end(end)
            return RecordedCommand(start, end, record, None, refusal=error.message)
        watch.reaped(ended)
        from paritrace.runs.recorded_end import end_line, facts_of

        end = end_line(ids, facts_of(ended, watch), watch, began_ns=ended.started_ns, clock=clock)
        end = replace(end, waited_cpu_seconds=ended.cpu_seconds, exits=exits())
        record.end(end)
        return RecordedCommand(start, end, record, ended.status)
    finally:
        watch.close()


def _start(request: CommandRequest, ids: Ids, watch: CommandWatch, clock: Clock) -> Start:
    names = Names(
        agent=cut(Path(request.command[0]).name),
        harness=Gap(RecordGap.NOT_GIVEN),
        adapter=Gap(RecordGap.NOT_GIVEN),
        adapter_kind=request.kind,
    )
    count = watch.before()
    line = start_line(ids, names, Context(), timeout_seconds=request.timeout_seconds, clock=clock)
    return replace(
        line,
        num_arguments=len(request.command) - 1,
        exclusive_container=request.watching.exclusive,
        subreaper=request.watching.subreaper,
        oom_kill=value_of(count),
        oom_kill_gap=gap_of(count),
    )
