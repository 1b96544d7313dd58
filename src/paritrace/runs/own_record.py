"""The record that a captured process writes of itself: it knows its own exit status, and nobody tells it of a kill."""

import os
from pathlib import Path

from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.files import LOCAL, Files
from paritrace.process.stop_facts import ExchangeEnd, StopFacts, StopGap
from paritrace.runs.envelope import AttachmentKind
from paritrace.runs.record_ends import End, RecordedError
from paritrace.runs.record_lines import AdapterKind, Context, Ids, Names, RecordGap, cut
from paritrace.runs.recorded_end import status_of
from paritrace.runs.recording import RunRecord, invocation_folder, new_id, start_line
from paritrace.runs.session import OpenSession
from paritrace.runs.stop import stop_of

INTERRUPTED_STATUS = 130  # what an interpreter that was interrupted from the keyboard ends with


class OwnRecord:
    """One process's own record, from before its workload to its end; a failure of storage stays in `record.trouble`."""

    def __init__(self, session: OpenSession, *, name: str, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self._session = session
        self._clock = clock
        made = [new_id(kind, clock=clock) for kind in ("runtime", "invocation", "request")]
        self._ids = Ids(*made)
        self._name = name
        self._began_ns = clock.monotonic_ns()
        self.record = RunRecord(invocation_folder(session.run_dir, self._ids), files=files, clock=clock)

    def begin(self) -> None:
        """Write the start line and register the record with the session, which seals it at its end."""
        names = Names(
            agent=cut(Path(self._name).name),
            harness=Gap(RecordGap.NOT_GIVEN),
            adapter=Gap(RecordGap.NOT_GIVEN),
            adapter_kind=AdapterKind.OWN_PROCESS,
        )
        context = Context(values={"rank": str(self._session.rank), "session_id": self._session.session_id})
        self.record.create()
        self.record.start(start_line(self._ids, names, context, timeout_seconds=None, clock=self._clock))
        if self.record.trouble is None:
            name = f"{self._ids.runtime_id}/{self._ids.invocation_id}"
            self._session.hold_live(name, AttachmentKind.RUN_RECORD, self.record.path)

    def end(self, status: int | None) -> None:
        """Write the end line; `status` is what the interpreter is about to end with, None where that is not known."""
        wall_ns, monotonic_ns = self._clock.wall_ns(), self._clock.monotonic_ns()
        facts = StopFacts(
            exchange=_exchange(status), ended_ns=monotonic_ns, wait=None, wait_gap=Gap(StopGap.OWN_RECORD)
        )
        if status is not None:
            facts = replace(facts, remarks=(f"about to end with exit status {status}, by its own word",))
        times = os.times()
        self.record.end(
            End(
                time=rfc3339(wall_ns),
                wall_ns=wall_ns,
                monotonic_ns=monotonic_ns,
                runtime_id=self._ids.runtime_id,
                invocation_id=self._ids.invocation_id,
                request_id=self._ids.request_id,
                status=status_of(facts),
                error=None if status is not None else RecordedError("status_unknown", "invoke", retryable=False),
                elapsed_seconds=(monotonic_ns - self._began_ns) / 1e9,
                stop=stop_of(facts),
                facts=facts,
                oom_kill_gap=Gap(ResourceGap.NOT_COLLECTED),
                usage_gap=Gap(RecordGap.NOT_COLLECTED),
                resources_gap=Gap(ResourceGap.NOT_COLLECTED),
                sampled_gap=Gap(ResourceGap.NOT_COLLECTED),
                waited_cpu_seconds=times.user + times.system + times.children_user + times.children_system,
            )
        )


def _exchange(status: int | None) -> ExchangeEnd:
    match status:
        case None:
            return ExchangeEnd.RAISED
        case 0:
            return ExchangeEnd.SUCCEEDED
        case _ if status == INTERRUPTED_STATUS:
            return ExchangeEnd.CANCELLED
        case _:
            return ExchangeEnd.COMMAND_FAILED
