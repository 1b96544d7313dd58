"""Lines of a vLLM log: an iteration each, whether the flag was on, and why an engine did not start (IN-12)."""

import re
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

FLAG = "--enable-logging-iteration-details"
MOST_LINE = 65_536  # characters of a line that are looked at; configuration lines are long, iteration lines are not

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_NAMED = re.compile(r"(?<![A-Za-z])Iteration\(")
_ITERATION = re.compile(
    r"(?<![A-Za-z])Iteration\((?P<index>\d{1,18})\): "
    r"(?P<context_requests>\d{1,18}) context requests, (?P<context_tokens>\d{1,18}) context tokens, "
    r"(?P<generation_requests>\d{1,18}) generation requests, (?P<generation_tokens>\d{1,18}) generation tokens, "
    r"iteration elapsed time: (?P<elapsed>\d{1,12}(?:\.\d{1,6})?) ms(?P<dummy> \(dummy\))?"
    r"(?P<tail>(?:, [A-Za-z ]{1,64}: \d{1,18}(?:\.\d{1,6})?%?)*)(?P<dummy_last> \(dummy\))?\Z"
)
_KV_CACHE = re.compile(r"GPU KV cache usage: (?P<percent>[\d.]+)%")
_PROCESS = re.compile(r"\((?P<name>[A-Za-z][A-Za-z0-9_]{0,63}) pid=(?P<pid>\d{1,10})\)")
_BARE_CORE = re.compile(r"(?<![A-Za-z0-9_])(?P<name>EngineCore(?:_DP\d{1,6}|_\d{1,6})?)(?![A-Za-z0-9_])")
_ENGINE = re.compile(r"(?<![A-Za-z])Engine (?P<number>\d{1,6}): \Z")
_LOGGED = re.compile(r"(?<!\d)(?P<logged>\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)(?!\d)")
_SETTING = re.compile(r"enable_logging_iteration_details['\"]?\s*[=:]\s*(?P<value>True|False)")


class LineForm(StrEnum):
    """Which part of vLLM wrote an iteration's line."""

    ENGINE = "engine"  # the engine's own process: the line ends with the time
    FRONT_END = "front_end"  # the front end's statistics logger: the usage of the KV cache follows


class StartFailure(StrEnum):
    """Why a vLLM engine did not start, or ended, as its log says."""

    INITIALIZATION_FAILED = "engine_core_initialization_failed"
    FAILED_TO_START = "engine_core_failed_to_start"
    OUT_OF_MEMORY = "accelerator_out_of_memory"
    MEMORY_IN_USE = "accelerator_memory_in_use"
    NO_CACHE_BLOCKS = "no_memory_for_cache_blocks"
    LENGTH_EXCEEDS_CACHE = "maximum_length_exceeds_cache"
    ADDRESS_IN_USE = "address_in_use"
    FATAL_ERROR = "engine_core_fatal_error"
    ENGINE_DEAD = "engine_dead"


_FAILURES = tuple(
    (re.compile(pattern), failure)
    for pattern, failure in (
        (r"Engine core initialization failed", StartFailure.INITIALIZATION_FAILED),
        (r"EngineCore failed to start", StartFailure.FAILED_TO_START),
        (r"OutOfMemoryError: (?:CUDA|HIP|XPU) out of memory", StartFailure.OUT_OF_MEMORY),
        (r"Free memory on device .{0,200}is less than desired GPU memory utilization", StartFailure.MEMORY_IN_USE),
        (r"No available memory for the cache blocks", StartFailure.NO_CACHE_BLOCKS),
        (r"max seq len \([\d,]+\)(?: is larger than|, ).{0,200}KV cache", StartFailure.LENGTH_EXCEEDS_CACHE),
        (r"(?:\[Errno 98\]|address already in use|Address already in use)", StartFailure.ADDRESS_IN_USE),
        (r"EngineCore encountered a fatal error", StartFailure.FATAL_ERROR),
        (r"(?<![A-Za-z])EngineDeadError", StartFailure.ENGINE_DEAD),
    )
)
_SAYS = re.compile("|".join([_SETTING.pattern, *(pattern.pattern for pattern, _ in _FAILURES)]))  # most lines: nothing


class IterationLine(Struct, frozen=True):
    """One iteration as the host saw it; it holds counts and no request ids.

    `scope`: the engine's prefix, "" where the line has none. `elapsed_ns`: host time around waiting for the result, in
    the hundredths of a millisecond that the line has. `logged`: month, day and time as printed, without year and zone.
    """

    form: LineForm
    scope: str
    pid: int | None
    index: int
    num_context_requests: int
    num_context_tokens: int
    num_generation_requests: int
    num_generation_tokens: int
    elapsed_ns: int
    dummy: bool
    kv_cache_percent: str | None
    logged: str | None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The four counts that a trace's range `execute_context_n(t)_generation_g(u)` has too."""
        return (
            self.num_context_requests,
            self.num_context_tokens,
            self.num_generation_requests,
            self.num_generation_tokens,
        )


class Unreadable(Struct, frozen=True):
    """A line that names an iteration and is not one as we know them: a missing step, never skipped in silence."""


class FlagSetting(Struct, frozen=True):
    """The configuration as the engine printed it says whether iterations are logged."""

    on: bool


class Failure(Struct, frozen=True):
    """The engine said that it failed, and as what."""

    kind: StartFailure


Said = IterationLine | Unreadable | FlagSetting | Failure


def read_line(line: str) -> Said | None:
    """Returns what a line of a log says, None where it says nothing that we read."""
    text = _ESCAPES.sub("", line[:MOST_LINE]).rstrip("\r\n ")
    named = len(_NAMED.findall(text))
    if named:
        found = _ITERATION.search(text)
        return Unreadable() if found is None or named > 1 else _iteration(text[: found.start()], found)
    if _SAYS.search(text) is None:
        return None
    setting = _SETTING.search(text)
    if setting is not None:
        return FlagSetting(setting["value"] == "True")
    return next((Failure(kind) for pattern, kind in _FAILURES if pattern.search(text) is not None), None)


def _iteration(before: str, found: re.Match[str]) -> IterationLine:
    process = _PROCESS.search(before)
    core = _BARE_CORE.search(before)
    engine = _ENGINE.search(before)
    named = process["name"] if process is not None else core["name"] if core is not None else ""
    logged = _LOGGED.search(before)
    usage = _KV_CACHE.search(found["tail"])
    return IterationLine(
        form=LineForm.FRONT_END if found["tail"] or engine is not None else LineForm.ENGINE,
        scope="/".join(part for part in (named, f"Engine {engine['number']}" if engine is not None else "") if part),
        pid=int(process["pid"]) if process is not None else None,
        index=int(found["index"]),
        num_context_requests=int(found["context_requests"]),
        num_context_tokens=int(found["context_tokens"]),
        num_generation_requests=int(found["generation_requests"]),
        num_generation_tokens=int(found["generation_tokens"]),
        elapsed_ns=int(Decimal(found["elapsed"]) * 1_000_000),
        dummy=found["dummy"] is not None or found["dummy_last"] is not None,
        kv_cache_percent=usage["percent"] if usage is not None else None,
        logged=logged["logged"] if logged is not None else None,
    )
