"""The start line of run-record.jsonl: listed fields, every value cut, every name whole (RR-1, RR-2, RR-11).

Its end line has a module of its own, which nothing loads before what is recorded has started (PF-16).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.cgroup_evidence import OomCount

FORMAT = "paritrace-run-record"
VERSION = "1.0"
RECORDS_FOLDER = ".paritrace"
DEATH_FOLDER = "death"  # in the run directory: where people put what other tools wrote of its end
RECORD_NAME = "run-record.jsonl"
INVOCATION_NAME = "invocation.json"
MAX_VALUE_CHARACTERS = 256
MAX_RECORD_BYTES = 16 << 20  # a record is two lines of some kilobytes; more is not one of ours
CUT_MARK = "…"


class AdapterKind(StrEnum):
    PROCESS = "process"
    PYTHON = "python"
    COMMAND = "command"  # `paritrace record -- CMD`
    LAUNCHER = "launcher"  # `paritrace run --launcher`
    OWN_PROCESS = "own_process"  # `paritrace run`: the workload's process records itself
    HTTP = "http"  # refused at planning, as the next one
    NATIVE_PLUGIN = "native_plugin"


class RecordGap(StrEnum):
    """Why a fact of a record has no value."""

    NOT_COLLECTED = "not_collected"
    NOT_GIVEN = "not_given"  # whoever asked did not say
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    NO_TIMEOUT = "no_timeout"


class Ids(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose record it is: both lines have these three."""

    runtime_id: str
    invocation_id: str
    request_id: str


class Names(Struct, frozen=True, forbid_unknown_fields=True):
    """Who was run, each value cut; a name that nobody gave is a gap."""

    agent: str | Gap[RecordGap]
    harness: str | Gap[RecordGap]
    adapter: str | Gap[RecordGap]
    adapter_kind: AdapterKind
    models: dict[str, str] = {}  # role (whole) -> model (cut)


class Context(Struct, frozen=True, forbid_unknown_fields=True):
    """Context keys that were allowed, with their values cut; all others, and overrides, by name alone."""

    values: dict[str, str] = {}
    names: tuple[str, ...] = ()
    override_names: tuple[str, ...] = ()


class Start(Struct, frozen=True, tag_field="line", tag="start", forbid_unknown_fields=True):
    """The first line. `wall_ns` and `monotonic_ns` were read together; `timeout_seconds` is the limit, no deadline.

    `recorder`: the process that writes the record; while it lives a record without an end is still being written.
    """

    format: str
    version: str
    time: str
    wall_ns: int
    monotonic_ns: int
    boot_id: str | Gap[RunGap]
    recorder: ProcessIdentity
    runtime_id: str
    invocation_id: str
    request_id: str
    names: Names
    context: Context
    timeout_seconds: float | Gap[RecordGap]
    exclusive_container: bool = False
    oom_kill: OomCount | None = None
    oom_kill_gap: Gap[ResourceGap] | None = None
    num_arguments: int | Gap[RecordGap] = Gap(RecordGap.NOT_COLLECTED)
    subreaper: bool = False


class Invocation(Struct, frozen=True, forbid_unknown_fields=True):
    """invocation.json: written before each request, it alone shows what a killed run had begun (RR-7). No input."""

    format: str
    version: str
    runtime_id: str
    invocation_id: str
    request_id: str
    adapter: str | Gap[RecordGap]
    adapter_kind: AdapterKind
    started: str
    started_monotonic_ns: int
    deadline: str | Gap[RecordGap]


INVOCATION_FORMAT = "paritrace-invocation"


def cut(value: str) -> str:
    """Return a value of at most 256 characters, the last one a mark where it was longer (RR-11)."""
    return value if len(value) <= MAX_VALUE_CHARACTERS else value[: MAX_VALUE_CHARACTERS - 1] + CUT_MARK


def given(value: str | None) -> str | Gap[RecordGap]:
    """Return a value cut, or the gap that nobody gave it."""
    return Gap(RecordGap.NOT_GIVEN) if value is None else cut(value)


def context_of(context: Mapping[str, object], *, allowed: Iterable[str], overrides: Mapping[str, object]) -> Context:
    """Return what a record may keep of a context: allowed keys with text, number or truth; everything else by name."""
    kept = {key: cut(_text(context[key])) for key in sorted(set(allowed) & set(context)) if _is_plain(context[key])}
    return Context(
        values=kept,
        names=tuple(sorted(set(context) - set(kept))),
        override_names=tuple(sorted(overrides)),
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)
