"""Records of `check RUN`: what one run says about itself (CP-25; surface.md, stable keys)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.compare.result import RunRef
from paritrace.process.stop_facts import Stop
from paritrace.runs.attendance import Attendance
from paritrace.runs.death import DeathPage
from paritrace.runs.record_reading import RecordState

FORMAT = "paritrace-check"
VERSION = "1.2"


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105  a word of the vocabulary
    FAIL = "fail"
    NOT_CHECKABLE = "not_checkable"
    NOT_APPLICABLE = "not_applicable"  # there is nothing that it speaks of: one rank has no replica


class Parting(Struct, frozen=True):
    """Where a state that replicas share first differs between them.

    `what`: the group of the state inventory. `sides`: ranks that agree stand together, and together they are the ranks
    that were compared there. `basis`: how these ranks are known to be replicas.
    """

    what: str
    name: str
    step: int
    moment: str
    sides: tuple[tuple[int, ...], ...]
    basis: str


class Evidence(Struct, frozen=True):
    """What an outcome rests on: `facts` for a person, places as record ids, steps and names for a program.

    `total` is how many there are; the lists hold the first of them.
    """

    facts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    record_ids: tuple[int, ...] = ()
    total: int = 0
    file: str = ""
    line: int = 0
    module: str = ""
    reason: str = ""  # not_checkable, not_applicable: why
    ranks: tuple[int, ...] = ()  # of an invariant across ranks: those that were compared
    partings: tuple[Parting, ...] = ()  # of replicas, earliest first


class Invariant(Struct, frozen=True):
    """One invariant of the run. `rank` and `step` say where it failed first or what it speaks of; -1: all."""

    id: str  # for example "parameters.have_gradient"
    status: Outcome
    rank: int
    step: int
    name: str  # the invariant in words
    evidence: Evidence


class RankCoverage(Struct, frozen=True):
    """What one session recorded."""

    rank: int
    session_id: str
    status: str
    steps_seen: tuple[int, ...]
    expected_steps: int | None
    levels: tuple[str, ...]
    calls: int
    states: int
    gaps: dict[str, int]
    losses: int
    bytes_lost: int
    has_receipt: bool
    not_captured: tuple[str, ...]
    remarks: tuple[str, ...] = ()  # of the capture itself: black box, triggers, levels given up


class EndOf(Struct, frozen=True):
    """What one run record says of an end that was no success. `stop` None: the record has no end line.

    `session_id` is "" where the record is of no session of its own, as a launcher's; `words` say the same to a person.
    """

    record: str
    session_id: str
    state: RecordState
    stop: Stop | None
    words: tuple[str, ...]


class Ends(Struct, frozen=True):
    """How the run's processes ended, where they did not all end well; `death` is None of a run of one rank."""

    records: tuple[EndOf, ...]
    num_left_out: int
    death: DeathPage | None


class Checked(Struct, frozen=True):
    format: str
    version: str
    run: RunRef
    invariants: tuple[Invariant, ...]
    coverage: dict[str, RankCoverage]  # session id -> what it recorded
    counts: dict[str, int]  # status -> invariants
    limits: tuple[str, ...]
    ranks: tuple[Attendance, ...] = ()  # which ranks wrote a session and a receipt, restart by restart (CA-16)
    ends: Ends | None = None  # None: every end that is recorded was a success, or nothing is recorded (RR-5)
