"""What the engine tells of itself: an `EngineAdapter` (IN-5) over the events that its thread has noted."""

import threading
from typing import TYPE_CHECKING

from paritrace.evidence.clocks import monotonic_domain
from paritrace.evidence.ids import Ref
from paritrace.inference import (
    ClockKind,
    Collected,
    CollectionMode,
    Context,
    ContextFacts,
    Iteration,
    Membership,
    Provenance,
    Request,
    Stage,
)
from paritrace.inference.records import Observation
from paritrace.process.identity import own_identity

if TYPE_CHECKING:
    from engine import Job

CAPABILITIES = ("iterations", "memberships", "requests", "stages")


class Evidence:
    """Notes of the engine's thread, and the adapter that gives them; `producer` scopes the engine's ids."""

    def __init__(self, producer: str) -> None:
        self.producer = producer
        self._lock = threading.Lock()
        self._iterations: list[tuple[int, int, int]] = []
        self._members: list[tuple[int, str, str, int]] = []
        self._requests: "list[tuple[Job, str, int]]" = []  # noqa: UP037

    def range_name(self, number: int) -> str:
        """The name of an iteration's range in a trace: whose iteration, and which, so that work joins it by id."""
        return f"paritrace.iteration/{self.producer}/{number}"

    def iterated(
        self, number: int, start_ns: int, end_ns: int, *, prefilled: "list[Job]", decoded: "list[Job]"
    ) -> None:
        with self._lock:
            self._iterations.append((number, start_ns, end_ns))
            self._members += [(number, job.id, "prefill", len(job.prompt)) for job in prefilled]
            self._members += [(number, job.id, "decode", 1) for job in decoded]

    def ended(self, job: "Job", *, status: str) -> None:
        with self._lock:
            self._requests.append((job, status, _now_ns()))

    def collect(self, *, run_id: str, session_id: str) -> Collected:
        """Return all that was noted by now; asking again gives the same events with the same ids."""
        context = self._context(run_id, session_id)
        with self._lock:
            iterations, members, requests = list(self._iterations), list(self._members), list(self._requests)
        events: list[Observation] = []
        for number, start_ns, end_ns in iterations:
            events.append(
                Iteration(
                    context=context,
                    event_id=f"iteration:{number}",
                    iteration_ref=self._ref(number),
                    start_ns=start_ns,
                    end_ns=end_ns,
                )
            )
        for number, job_id, role, tokens in members:
            events.append(
                Membership(
                    context=context,
                    event_id=f"membership:{number}:{job_id}",
                    request_ref=Ref(self.producer, job_id),
                    iteration_ref=self._ref(number),
                    role=role,
                    tokens=tokens,
                )
            )
        for job, status, end_ns in requests:
            events += self._request(context, job, status, end_ns)
        return Collected(events=events, supported=CAPABILITIES, enabled=CAPABILITIES, collected=CAPABILITIES)

    def _request(self, context: Context, job: "Job", status: str, end_ns: int) -> list[Observation]:
        ref = Ref(self.producer, job.id)
        found: list[Observation] = [
            Request(
                context=context,
                event_id=f"request:{job.id}",
                request_ref=ref,
                start_ns=job.arrived_ns,
                end_ns=end_ns,
                status=status,
                input_tokens=len(job.prompt),
                output_tokens=len(job.output),
            )
        ]
        times = (("queue", job.arrived_ns, job.admitted_ns), ("prefill", job.admitted_ns, job.first_token_ns))
        for name, start_ns, stop_ns in (*times, ("decode", job.first_token_ns, end_ns)):
            if start_ns and stop_ns:
                found.append(
                    Stage(
                        context=context,
                        event_id=f"stage:{job.id}:{name}",
                        stage_ref=Ref(self.producer, f"{job.id}/{name}"),
                        name=name,
                        request_ref=ref,
                        start_ns=start_ns,
                        end_ns=stop_ns,
                    )
                )
        return found

    def _context(self, run_id: str, session_id: str) -> Context:
        process = own_identity()
        return Context(
            ContextFacts(
                run_id=run_id,
                session_id=session_id,
                producer_id=self.producer,
                source="examples/serving",
                clock_domain=monotonic_domain(process).name,
                clock_kind=ClockKind.MONOTONIC,
                collection_mode=CollectionMode.ACTIVE,
                provenance=Provenance.OBSERVED,
                engine="examples/serving",
                host=process.host if isinstance(process.host, str) else None,
                pid=process.pid,
            )
        )

    def _ref(self, number: int) -> Ref:
        return Ref(self.producer, str(number))


def _now_ns() -> int:
    import time

    return time.monotonic_ns()
