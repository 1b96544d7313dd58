"""Results of `vllm bench serve`: the summary, and with --save-detailed each request (IN-15)."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from paritrace.errors import EvidenceError
from paritrace.evidence.ids import Ref
from paritrace.evidence.plain_json import elements, is_object
from paritrace.inference.context import ClockKind, Context
from paritrace.inference.importers.client_summary import Figure, Summary, event_of, figure, latency, limits_of
from paritrace.inference.importers.client_terms import TIMINGS, Outcome, Timing
from paritrace.inference.importers.text_source import TextSource, head_of
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.plain_values import whole
from paritrace.inference.records import Request
from paritrace.inference.vocabulary import LossReason

NAME = "vllm-bench"
METRICS = ("ttft", "tpot", "itl", "e2el")
LOAD = ("request_rate", "burstiness", "max_concurrency", "num_prompts", "backend", "endpoint_type", "model_id")
ARRAYS = ("input_lens", "output_lens", "ttfts", "itls", "errors", "start_times", "generated_texts")
_RATES = ("request_throughput", "output_throughput", "total_token_throughput", "request_goodput")
_MARKS = (b'"mean_ttft_ms"', b'"request_throughput"', b'"ttfts"', b'"median_ttft_ms"')
_ONE_PER_CHUNK = "one inter-token latency is one chunk's: how many tokens came with it is not known"


def recognises(path: Path) -> bool:
    """Says whether a file looks like a result of the benchmark."""
    head = head_of(path)
    return head.lstrip()[:1] == b"{" and any(mark in head for mark in _MARKS)


def open_result(asked: Asked) -> Imported:
    """Opens one result; see `importing`.

    Raises:
        EvidenceError: Refused, `not_importable` where it is no result, `too_large_to_import`.
    """
    source = TextSource(asked, reader=NAME)
    parsed = source.document()
    if not is_object(parsed.value):
        said = "; ".join(str(one) for one in parsed.refusals) or "no JSON object"
        raise EvidenceError(
            f"{asked.path} is no result of vllm bench: {said}",
            code="not_importable",
            fix="give the JSON file that --save-result wrote",
        )
    result = _Result(source, parsed.value, num_refused=len(parsed.refusals))
    return Imported((source.reference("application/json"),), result.events())


class _Result:
    """One result: its numbers, and its arrays where it has them."""

    def __init__(self, source: TextSource, value: Mapping[str, object], *, num_refused: int) -> None:
        self._source = source
        self._value = value
        self._num_refused = num_refused
        self._arrays = {name: elements(value.get(name)) for name in ARRAYS if isinstance(value.get(name), list)}
        self._lengths = {len(array) for name, array in self._arrays.items() if array or name in ("ttfts", "errors")}

    @property
    def detailed(self) -> bool:
        return "ttfts" in self._arrays and "errors" in self._arrays

    def events(self) -> Events:
        context = self._source.context(clock=ClockKind.MONOTONIC)
        uneven = self.detailed and len(self._lengths) != 1
        summary = self.summary(has_values=self.detailed and not uneven)
        yield event_of(summary, context=context, event_id=self._source.event_id("summary"))
        if uneven:
            yield self._source.loss(context, "requests", LossReason.INVALID, count=None)
        elif self.detailed:
            yield from self._requests(context)
        limits = [*limits_of(summary), _ONE_PER_CHUNK]
        if uneven:
            limits.append("arrays of different lengths: which value is whose is not known, none is taken")
        if self._num_refused:
            limits.append(f"{self._num_refused} values are not strict JSON and are not read")
        counts = {f"requests:{name}": count for name, count in summary.counts.items()}
        return Account(complete=not uneven and not self._num_refused, counts=counts, limits=tuple(limits))

    def summary(self, *, has_values: bool) -> Summary:
        counts = self._counts()
        return Summary(
            tool=NAME,
            quantiles={f"{name}_ms": self._quantiles(name, counts) for name in METRICS if self._has(name)},
            units={f"{name}_ms": "ms" for name in METRICS if self._has(name)},
            counts=counts,
            rates={name: figure(self._value[name]) for name in _RATES if name in self._value},
            load={name: self._value[name] for name in LOAD if isinstance(self._value.get(name), str | int | float)},
            has_values=has_values,
        )

    def _has(self, metric: str) -> bool:
        return any(name.endswith(f"_{metric}_ms") for name in self._value)

    def _quantiles(self, metric: str, counts: Mapping[str, int]) -> dict[str, Figure]:
        end = f"_{metric}_ms"
        completed = counts.get(Outcome.SUCCESSFUL.value)
        return {
            name.removesuffix(end): _deviation_or_latency(name, value, num_successful=completed)
            for name, value in self._value.items()
            if name.endswith(end)
        }

    def _counts(self) -> dict[str, int]:
        """Requests by outcome, as far as the file says; what is missing from `num_prompts` failed or was never sent."""
        counts: dict[str, int] = {}
        for outcome, name in ((Outcome.SUCCESSFUL, "completed"), (Outcome.FAILED, "failed")):
            count = whole(self._value.get(name))
            if count is not None:
                counts[outcome.value] = count
        offered = whole(self._value.get("num_prompts"))
        if offered is not None:
            counts["offered"] = offered
        return counts

    def _requests(self, context: Context) -> Iterator[Request]:
        for place in range(len(self._arrays["ttfts"])):
            error = self._at("errors", place)
            failed = bool(error)
            first, gaps = self._at("ttfts", place), elements(self._at("itls", place))
            timings = {} if failed else _timings(first, gaps)
            began = _ns(self._at("start_times", place))
            yield Request(
                context=context,
                event_id=self._source.event_id("requests", place),
                request_ref=Ref(self._source.attachment_id, str(place)),
                start_ns=began,
                status=_outcome(failed=failed, first=first, length=self._at("output_lens", place)).value,
                input_tokens=whole(self._at("input_lens", place)),
                output_tokens=None if failed else whole(self._at("output_lens", place)),
                metadata={TIMINGS: timings, "num_chunks": len(gaps) + 1} if timings else {},
            )

    def _at(self, array: str, place: int) -> object:
        held = self._arrays.get(array, [])
        return held[place] if place < len(held) else None


def _outcome(*, failed: bool, first: object, length: object) -> Outcome:
    """The benchmark's success flag is not saved: no error and no output at all is no success that it shows."""
    if failed:
        return Outcome.FAILED
    return Outcome.INCOMPLETE if not first and not length else Outcome.SUCCESSFUL


def _timings(first: object, gaps: list[object]) -> dict[str, object]:
    """Times to the first chunk and to the last, by adding what the file has as decimal numbers."""
    started = _ns(first)
    steps = [_ns(gap) for gap in gaps]
    known = [step for step in steps if step is not None]
    if not started:
        return {}
    timings: dict[str, object] = {Timing.TIME_TO_FIRST_OUTPUT.value: started}
    if len(known) == len(steps):
        timings[Timing.LATENCY.value] = started + sum(known)
        if known:
            timings[Timing.MEAN_BETWEEN_CHUNKS.value] = round(sum(known) / len(known))
    return timings


def _deviation_or_latency(name: str, value: object, *, num_successful: int | None) -> Figure:
    """A standard deviation of one request is 0; a latency is not."""
    if name.startswith("std_") and num_successful != 0:
        return figure(value)
    return latency(value, num_successful=num_successful)


def _ns(seconds: object) -> int | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 9e9:
        return None
    return int((Decimal(str(seconds)) * 1_000_000_000).to_integral_value())


READER = Reader(
    name=NAME,
    kind=SourceKind.CLIENT,
    reads="a result of vllm bench serve, with or without --save-detailed",
    recognises=recognises,
    open=open_result,
)
