"""Turns events of a trace into activities and iterations; none of them names an iteration for another (IN-7, IN-10)."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from paritrace.evidence.ids import Ref
from paritrace.inference.columns import UNKNOWN, listed
from paritrace.inference.execution_ranges import kind_of_range
from paritrace.inference.importers.kineto_categories import DEVICE_KINDS, OPERATORS, Group
from paritrace.inference.importers.kineto_contexts import TraceContexts
from paritrace.inference.importers.kineto_events import TraceEvent
from paritrace.inference.importers.kineto_facts import TraceFacts, correlation_of, device_of, text_of
from paritrace.inference.importers.kineto_spans import Span, TimeFault
from paritrace.inference.records import Activity, Iteration
from paritrace.inference.vocabulary import Domain

_NO_GRAPH = frozenset(("", "0"))
_NO_OP = {"no_op_attribution": "graph"}  # a graph's one launch says nothing of the operation that this work is of


class Emitting:
    """Makes events of one trace. `place`: that of an event in the file, by which it is known."""

    def __init__(self, contexts: TraceContexts, /, *, pattern: str | None) -> None:
        self._contexts = contexts
        self._pattern = pattern
        self._named: Counter[str] = Counter()

    def of(self, event: TraceEvent, group: Group, span: Span, /, *, place: int) -> Iterator[Activity | Iteration]:
        """Yield what is kept of a whole event at once: device work, ranges that mark iterations, operators of hosts."""
        if group is Group.DEVICE:
            yield self._work(event, span, place)
        elif group is Group.RANGE and span.end_ns is not None:
            kind = kind_of_range(event.name, pattern=self._pattern)
            if kind is not None:
                yield self._iteration(event, span, place)
        elif group is Group.HOST and event.cat in OPERATORS:
            yield self._operator(event, span, place)

    def _work(self, event: TraceEvent, span: Span, place: int) -> Activity:
        contexts, args = self._contexts, event.args
        device = device_of(event)
        graph = text_of(None if args is None else args.graph_id)
        stream = text_of(None if args is None else args.stream) or text_of(event.tid)
        metadata: dict[str, object] = {}
        if graph not in _NO_GRAPH:
            metadata |= _NO_OP
        return Activity(
            context=contexts.of("", device=device),
            event_id=contexts.event_id(place),
            activity_ref=Ref(contexts.producer, str(place)),
            kind=DEVICE_KINDS[(event.cat or "").lower()],
            domain=Domain.GPU,
            name=event.name or None,
            correlation_scope=contexts.correlation_scope,
            trace_attachment_id=contexts.attachment_id,
            device_id=device or None,
            cuda_correlation_id=correlation_of(event),
            stream_id=stream or None,
            graph_id=None if graph in _NO_GRAPH else graph,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            metadata=metadata if span.fault is None else _with_fault(metadata, span.fault),
        )

    def _operator(self, event: TraceEvent, span: Span, place: int) -> Activity:
        contexts = self._contexts
        return Activity(
            context=contexts.of(text_of(event.pid)),
            event_id=contexts.event_id(place),
            activity_ref=Ref(contexts.producer, str(place)),
            kind="operator",
            domain=Domain.CPU,
            name=event.name or None,
            trace_attachment_id=contexts.attachment_id,
            thread_id=text_of(event.tid) or None,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            metadata=_with_fault({}, span.fault),
        )

    def launches(self, facts: TraceFacts, /) -> Iterator[Activity]:
        """Yield the launches to which device work belongs, in the order of the file; the others are only counted."""
        rows = facts.launches
        used = np.isin(rows["id"], facts.work["id"])
        columns = [listed(rows[name][used]) for name in ("id", "thread", "start", "end", "kind", "name", "place")]
        threads, kinds, names = facts.threads.values, facts.kinds.values, facts.names.values
        for number, thread, start, end, kind, name, place in _rows(columns):
            pid, tid = threads[thread]
            contexts = self._contexts
            yield Activity(
                context=contexts.of(pid),
                event_id=contexts.event_id(place),
                activity_ref=Ref(contexts.producer, str(place)),
                kind=kinds[kind],
                domain=Domain.RUNTIME,
                name=names[name] or None,
                correlation_scope=contexts.correlation_scope,
                trace_attachment_id=contexts.attachment_id,
                cuda_correlation_id=facts.ids.text(number),
                thread_id=tid or None,
                start_ns=None if start == UNKNOWN else start,
                end_ns=None if end == UNKNOWN else end,
            )

    def _iteration(self, event: TraceEvent, span: Span, place: int) -> Iteration:
        contexts = self._contexts
        self._named[event.name] += 1
        nth = self._named[event.name]
        return Iteration(
            context=contexts.of(text_of(event.pid)),
            event_id=contexts.event_id(place),
            iteration_ref=Ref(contexts.producer, event.name if nth == 1 else f"{event.name} ({nth})"),
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            thread_id=text_of(event.tid) or None,
            trace_attachment_id=contexts.attachment_id,
            anchor=event.name,
        )


def _rows(columns: list[list[int]]) -> Iterator[tuple[int, ...]]:
    yield from zip(*columns, strict=True)


def _with_fault(metadata: dict[str, object], fault: TimeFault | None) -> dict[str, object]:
    if fault is not None:
        metadata["time"] = fault.value
    return metadata
