"""The attempts manifest: what was planned, what is expected where, and what was declared complete (AT-1).

This module is records alone. A manifest is written by a person or by an importer, as JSON or YAML; `loading.py`
reads it, `evidence.py` reads the files that it names.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from paritrace.attempts.accounts import LARGEST, Accounting, RunTotal
from paritrace.attempts.gaps import Noted
from paritrace.attempts.origins import Id, Origin, Sha256, Source, Whole

FORMAT = "paritrace-attempts"
VERSION = "1.0"

Seconds = Annotated[float, Meta(ge=0.0, le=LARGEST)]
ScoreValue = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]


class Relation(StrEnum):
    """How the attempts of one task are related (AT-1, AT-13)."""

    INDEPENDENT = "independent"
    RETRY_ON_ERROR = "retry_on_error"
    RETRY_ON_FAILURE = "retry_on_failure"
    UNKNOWN = "unknown"


class Execution(StrEnum):
    """How the execution of an attempt or a request ended, whatever a verdict says."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # nothing tells


class StopKind(StrEnum):
    """What made an attempt stop: a column of its own, never a verdict (AT-4, D-02)."""

    FINISHED = "finished"  # by itself
    TIMEOUT = "timeout"
    LIMIT = "limit"  # turns, tokens, messages, money
    ERROR = "error"
    KILLED = "killed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Stop(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How an attempt stopped; `word` is the tool's own name of it (an exception type, a failure mode), no message."""

    kind: StopKind = StopKind.UNKNOWN
    word: str = ""
    limit_seconds: Seconds | None = None  # the timeout in force
    origin: Origin | None = None


class VerdictKind(StrEnum):
    """What an evaluator said."""

    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    SCORE = "score"
    ERROR = "error"  # the evaluator itself failed: nothing is said of the attempt


class Evaluator(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who judged. `version` None is not recorded; another version is another evaluator (D-20)."""

    id: Id
    version: str | None = None


class Evaluation(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One evaluator's verdict on one attempt, apart from how it ran (AT-1). No evaluation at all: not evaluated.

    `counts`: False for a verdict that the evaluating tool wrote and itself leaves out (a reward beside an exception in
    Harbor): it stays a column and counts as missing (AT-16).
    """

    evaluator: Evaluator
    verdict: VerdictKind
    score: ScoreValue | None = None  # required with `score`
    counts: bool = True
    origin: Origin | None = None


class Invocation(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When one call of the agent or the model ran: the scope `invocation` (AT-11). Unix time in nanoseconds."""

    started_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    elapsed_seconds: Seconds | None = None  # by a monotonic clock, where the source has one
    origin: Origin | None = None


class Resource(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One observation of resources, listed by itself and never added up (AT-11)."""

    scope: Id  # of what: a process tree, a cgroup, a container
    name: Id  # with its unit: resident_memory_bytes, cpu_time_seconds
    value: float
    observed_unix_ns: int | None = None
    origin: Origin | None = None


class RequestState(StrEnum):
    """What is there of a request (AT-21)."""

    RESULT = "result"
    RECORD_ONLY = "record_only"
    STARTED_ONLY = "started_only"  # a record that begins and never ends
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNEXPECTED = "unexpected"  # seen, and not in the declared list


class Request(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One request of an attempt: the expected files, or what an importer read of it.

    `result` and `record` name a `Source`: a full result is authoritative, a run record's end line stands in for it
    (AT-3). An importer that read the request out of a larger file gives `state` and `accounting` instead.
    """

    request_id: Id
    result: Id | None = None
    record: Id | None = None
    state: RequestState | None = None
    execution: Execution = Execution.UNKNOWN
    accounting: Accounting | None = None
    invocation: Invocation | None = None
    resources: tuple[Resource, ...] = ()
    gaps: tuple[Noted, ...] = ()
    origin: Origin | None = None


class Attempt(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One planned or observed attempt at a task.

    `present`: False for an attempt of the expected list of which nothing was found. `content_sha256` is of all bytes
    that speak of this attempt, its log's status included: two entries with one `attempt_id` and one content are one
    attempt seen twice, two contents are a conflict and neither is chosen (AT-2, D-05). None: the entry itself is
    compared. `accounting` is the attempt's own, where the tool counts per attempt; the requests' accounts are then held
    against it and are not added to it.
    """

    attempt_id: Id
    configuration_id: Id
    task_id: Id
    task_revision: Id  # a digest, a version; "unknown" where the tool records none
    present: bool = True
    relation: Relation = Relation.UNKNOWN
    retry_of: Id | None = None
    execution: Execution = Execution.UNKNOWN
    stop: Stop = Stop()
    evaluations: tuple[Evaluation, ...] = ()
    duration_seconds: Seconds | None = None  # the caller's own wall time of the task: the scope `task` (AT-11)
    accounting: Accounting | None = None
    requests: tuple[Request, ...] = ()
    requests_complete: bool = False  # the list of requests is declared complete
    invocations: tuple[Invocation, ...] = ()
    resources: tuple[Resource, ...] = ()
    fields: dict[str, str | None] = {}  # what may differ inside a configuration (AT-10); None is not recorded
    content_sha256: Sha256 | None = None
    gaps: tuple[Noted, ...] = ()
    origin: Origin | None = None


class Configuration(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was tried, under one name.

    `attempts_complete`: its list of attempts is declared complete (a lock file, sample ids times epochs).
    `fields`: its own values of what has to be alike (model, harness version, timeout multiplier); None is not recorded.
    `gaps`: what belongs to the configuration and to no single attempt (retries that the tool destroyed).
    """

    id: Id
    attempts_complete: bool = False
    relation: Relation = Relation.UNKNOWN  # of attempts that do not say it themselves
    fields: dict[str, str | None] = {}
    totals: tuple[RunTotal, ...] = ()
    gaps: tuple[Noted, ...] = ()
    origin: Origin | None = None


class PrimaryTest(StrEnum):
    """By what the primary analysis decides (AT-14)."""

    PAIRED_T = "paired_t"
    SIGN_FLIP = "sign_flip"
    MCNEMAR = "mcnemar"


class Primary(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The one analysis that may claim a difference, declared before results are read (AT-14)."""

    baseline: Id
    candidate: Id
    evaluator: Evaluator | None = None  # None: the only one there is
    test: PrimaryTest = PrimaryTest.PAIRED_T
    level: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.95
    planned_looks: tuple[Whole, ...] = ()  # at how many attempts of both; the level is divided over them


class Look(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One look at results: how many attempts there were, and whether the plan had it."""

    num_attempts: Whole
    planned: bool


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole manifest (version 1)."""

    format: str
    version: str
    roots: tuple[Id, ...] = ()  # directories outside the manifest's own in which sources may lie
    sources: tuple[Source, ...] = ()
    configurations: tuple[Configuration, ...]
    attempts: tuple[Attempt, ...]
    primary: Primary | None = None
    score_ranges: dict[str, tuple[float, float]] = {}  # by evaluator id: the lowest and the highest score there can be
    looks: tuple[Look, ...] = ()
    importer: str = ""  # what wrote it: "harbor", "inspect"; "" is a person
    gaps: tuple[Noted, ...] = ()  # of a source as a whole: a line that was refused
