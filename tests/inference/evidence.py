"""Events of a small engine and its trace, for the tests of inference evidence."""

from collections.abc import Iterable
from typing import Any

from paritrace.evidence.ids import Ref
from paritrace.inference.collecting import Collected
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.records import Activity, Iteration, Membership, Observation, Request
from paritrace.inference.vocabulary import Attribution, Domain

RUN, SESSION = "run-1", "inference"
SCOPE = Ref("cupti", "capture-1")
FACTS = ContextFacts(
    run_id=RUN,
    session_id=SESSION,
    producer_id="engine",
    source="test",
    clock_domain="host/boot/monotonic_ns",
    clock_kind=ClockKind.MONOTONIC,
    collection_mode=CollectionMode.PASSIVE,
    provenance=Provenance.OBSERVED,
    host="host",
    pid=7,
)


def context(**changed: Any) -> Context:
    facts = {name: getattr(FACTS, name) for name in FACTS.__struct_fields__}
    return Context(ContextFacts(**(facts | changed)))


ENGINE = context()
DEVICE = context(producer_id="cupti", clock_kind=ClockKind.DEVICE, clock_domain="device", device_uuid="GPU-1")


def iteration(name: str, start_ns: int = 0, end_ns: int = 1000, **more: Any) -> Iteration:
    held = more.pop("context", ENGINE)
    return Iteration(
        context=held, event_id=f"i:{name}", iteration_ref=Ref("engine", name), start_ns=start_ns, end_ns=end_ns, **more
    )


def request(name: str, **more: Any) -> Request:
    return Request(context=ENGINE, event_id=f"r:{name}", request_ref=Ref("client", name), **more)


def member(of: str, request_id: str, tokens: int | None = 1) -> Membership:
    return Membership(
        context=ENGINE,
        event_id=f"m:{of}:{request_id}",
        request_ref=Ref("client", request_id),
        iteration_ref=Ref("engine", of),
        role="decode",
        tokens=tokens,
    )


def kernel(name: str, start_ns: int | None = 0, end_ns: int | None = 10, **more: Any) -> Activity:
    held, given = more.pop("context", DEVICE), {"correlation_scope": SCOPE} | more
    return Activity(
        context=held,
        event_id=f"k:{name}",
        activity_ref=Ref("cupti", name),
        kind=given.pop("kind", "kernel"),
        domain=given.pop("domain", Domain.GPU),
        start_ns=start_ns,
        end_ns=end_ns,
        **given,
    )


def claim(name: str, of: str, **more: Any) -> Activity:
    """An activity that its collector says to be of an iteration."""
    return kernel(name, iteration_ref=Ref("engine", of), attribution=Attribution.LINKED, **more)


def launch(name: str, start_ns: int, end_ns: int, **more: Any) -> Activity:
    given = {"thread_id": "3", "context": ENGINE, "domain": Domain.RUNTIME, "kind": "runtime"} | more
    return kernel(name, start_ns, end_ns, **given)


class Adapter:
    """Gives the same events whenever it is asked."""

    def __init__(self, events: Iterable[Observation], **offered: Any) -> None:
        self.events, self.offered = list(events), offered

    def collect(self, *, run_id: str, session_id: str) -> Collected:
        return Collected(events=self.events, **self.offered)
