"""Scheduler iterations out of a stock vLLM's log (IN-12): counts and host time, no request ids."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from paritrace.evidence.ids import Ref
from paritrace.inference.context import Context, Provenance
from paritrace.inference.importers.text_source import TextSource, head_of
from paritrace.inference.importers.vllm_lines import (
    FLAG,
    Failure,
    FlagSetting,
    IterationLine,
    LineForm,
    Unreadable,
    read_line,
)
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.records import Capabilities, Iteration, Observation
from paritrace.inference.vocabulary import LossReason

NAME = "vllm-log"
COMPONENT = "engine_log"
CAPABILITY = "iteration_counts"
RESOLUTION_NS = 10_000  # the line has hundredths of a millisecond
MOST_FAILURES = 100  # places of failures that are kept; all are counted

_LOOKS = re.compile(rb"(?<![A-Za-z])Iteration\(\d+\): |EngineCore|vllm|vLLM|APIServer pid=")
_NO_IDS = "its lines hold counts and no request ids: which requests were in an iteration is unknown"
_HOST_TIME = "elapsed is host time around waiting for a result, to 0.01 ms; it is no time of a device"
_NO_CLOCK = "lines have no date with a year and no zone: when an iteration ran is not known"


def recognises(path: Path) -> bool:
    """Says whether a file looks like a log of vLLM."""
    head = head_of(path)
    return head.lstrip()[:1] not in (b"{", b"[") and _LOOKS.search(head) is not None


def open_log(asked: Asked) -> Imported:
    """Opens a log; see `importing`."""
    source = TextSource(asked, reader=NAME)
    return Imported((source.reference("text/plain"),), _Log(source).events())


class _Engine:
    """The lines of one engine's prefix: where its count stands, and how often it began anew."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.incarnation = 0
        self.last: IterationLine | None = None


class _Log:
    """One log as it is read."""

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self._counts: Counter[str] = Counter()
        self._engines: dict[tuple[str, int | None], _Engine] = {}
        self._flag: bool | None = None
        self._failures: list[dict[str, object]] = []
        self._own = source.context(provenance=Provenance.OBSERVED, engine="vllm")

    def events(self) -> Events:
        torn = False
        for line in self._source.lines():
            torn = not line.whole
            said = None if line.data is None else read_line(line.data.decode("utf-8", "replace"))
            if line.data is None:
                self._counts["lines_too_long"] += 1
            match said:
                case IterationLine():
                    yield from self._iteration(said, line.number)
                case Unreadable():
                    self._counts["unreadable_iteration_lines"] += 1
                case FlagSetting():
                    self._flag = said.on
                case Failure():
                    self._failure(said, line.number)
                case None:
                    pass
        yield from self._losses()
        yield self._capabilities()
        return self._account(torn=torn)

    def _iteration(self, said: IterationLine, number: int) -> Iterator[Observation]:
        engine = self._engines.get((said.scope, said.pid))
        if engine is None:
            engine = _Engine(self._source.context(engine="vllm", pid=said.pid))
            self._engines[(said.scope, said.pid)] = engine
        place = self._placed(engine, said, number)
        if place is None:
            return
        self._counts["dummy_iterations" if said.dummy else "iterations"] += 1
        yield Iteration(
            context=engine.context,
            event_id=self._source.event_id(number),
            iteration_ref=Ref(self._source.attachment_id, place),
            metadata=_metadata(said, engine, number),
        )

    def _placed(self, engine: _Engine, said: IterationLine, number: int) -> str | None:
        """The iteration's id inside the file; None for a line that only repeats the one before."""
        last, engine.last = engine.last, said
        repeated = last is not None and said.index == last.index
        if repeated and said == last:
            self._counts["repeated_lines"] += 1
            return None
        if last is None:
            self._counts["before_first_line"] += said.index
        elif said.index < last.index:
            engine.incarnation += 1
            self._counts["engine_restarts"] += 1
            self._counts["before_first_line"] += said.index
        elif not repeated:
            self._counts["missing_iterations"] += said.index - last.index - 1
        pid = "" if said.pid is None else f"@{said.pid}"
        twice = f":line-{number}" if repeated else ""
        self._counts["indices_given_twice"] += repeated
        return f"{said.scope or 'engine'}{pid}#{engine.incarnation}:{said.index}{twice}"

    def _failure(self, said: Failure, number: int) -> None:
        self._counts[f"failure:{said.kind.value}"] += 1
        if len(self._failures) < MOST_FAILURES:
            self._failures.append({"failure": said.kind.value, "line": number})

    def _losses(self) -> Iterator[Observation]:
        for what, reason in (
            ("unreadable_iteration_lines", LossReason.INVALID),
            ("missing_iterations", LossReason.UNKNOWN),
            ("lines_too_long", LossReason.INVALID),
        ):
            if self._counts[what]:
                yield self._source.loss(self._own, what, reason, count=self._counts[what])

    def _capabilities(self) -> Capabilities:
        found = bool(self._counts["iterations"] or self._counts["dummy_iterations"])
        on = found or self._flag is True
        return Capabilities(
            context=self._own,
            event_id=self._source.event_id(COMPONENT),
            component=COMPONENT,
            available=True,
            supported=(CAPABILITY,),
            enabled=(CAPABILITY,) if on else (),
            collected=(CAPABILITY,) if found else (),
            metadata={
                "counts": {name: count for name, count in sorted(self._counts.items()) if count},
                "engines": sorted({scope or "engine" for scope, _ in self._engines}),
                "failures": self._failures,
                "flag": FLAG,
                "flag_stated": self._flag,
            },
        )

    def _account(self, *, torn: bool) -> Account:
        limits = [_NO_IDS, _HOST_TIME, _NO_CLOCK] if self._engines else [self._absent()]
        if any(engine.last is not None and engine.last.form is LineForm.FRONT_END for engine in self._engines.values()):
            limits.append("the front end prints its lines; with --disable-log-stats it prints none")
        if self._counts["indices_given_twice"]:
            limits.append("two lines of one prefix give the same number: perhaps two engines write without a prefix")
        if self._failures:
            kinds = sorted({str(one["failure"]) for one in self._failures})
            limits.append(f"the engine says that it failed: {', '.join(kinds)}")
        whole = not torn and not any(
            self._counts[name] for name in ("unreadable_iteration_lines", "missing_iterations", "lines_too_long")
        )
        counts = {name: count for name, count in sorted(self._counts.items()) if count}
        return Account(complete=whole and bool(self._engines), counts=counts, limits=tuple(limits))

    def _absent(self) -> str:
        stated = "; its configuration says that it is off" if self._flag is False else ""
        return f"no iteration line: vLLM prints them with {FLAG}{stated}"


def _metadata(said: IterationLine, engine: _Engine, number: int) -> dict[str, object]:
    known: dict[str, object] = {
        "context_requests": said.num_context_requests,
        "context_tokens": said.num_context_tokens,
        "generation_requests": said.num_generation_requests,
        "generation_tokens": said.num_generation_tokens,
        "host_observed_ns": said.elapsed_ns,
        "host_observed_resolution_ns": RESOLUTION_NS,
        "incarnation": engine.incarnation,
        "index": said.index,
        "line": number,
        "line_form": said.form.value,
        "membership": "unknown",
        "scope": said.scope,
    }
    if said.dummy:
        known["dummy"] = True
    if said.kv_cache_percent is not None:
        known["kv_cache_percent"] = said.kv_cache_percent
    if said.logged is not None:
        known["logged"] = said.logged
    return known


READER = Reader(
    name=NAME,
    kind=SourceKind.LOG,
    reads=f"a log of vLLM, with the lines of {FLAG}",
    recognises=recognises,
    open=open_log,
)
