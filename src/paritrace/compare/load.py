"""Loading a run for comparison: each session's calls, definitions, states and marks, from its journal."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.detail_store import DetailStore
from paritrace.compare.distributed import IN_FLIGHT, Distributed, complete
from paritrace.compare.kept_steps import KeptSteps
from paritrace.compare.lookups import distinct
from paritrace.compare.sample_store import SampleStore
from paritrace.compare.settings import Settings
from paritrace.compare.shifted_steps import ShiftedJournal
from paritrace.evidence.call_batches import FROM_ORIGIN, NO_CALLS, CallBatch
from paritrace.evidence.calls import (
    Call,
    CodeMark,
    Completed,
    ConfigMark,
    Context,
    Detail,
    EndMark,
    Function,
    GapMark,
    JournalHeader,
    Kind,
    LevelMark,
    LossMark,
    LossOfBytes,
    Name,
    NotCaptured,
    Origin,
    Scalars,
    Scope,
    Site,
    Slot,
    State,
    StateNames,
    StateSamples,
    StepMark,
)
from paritrace.evidence.codec import Record, decode_row
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group, Mesh, Placement, Replicated
from paritrace.evidence.journal import Block, Loss
from paritrace.evidence.remarks import Remarks
from paritrace.evidence.rows import TokenRows
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView

_NEVER = -1 << 63
UNDEFINED = "undefined_reference"
"""The gap under which records are counted whose definitions were lost with damaged lines, or never written."""


@dataclass(slots=True, kw_only=True)
class Recorded:
    """What one process session recorded. Calls are in execution order, which is the order of their ids."""

    session: SessionView
    header: JournalHeader | None = None
    calls: CallColumns = field(default_factory=CallColumns)
    functions: dict[int, Function] = field(default_factory=dict[int, Function])
    sites: dict[int, Site] = field(default_factory=dict[int, Site])
    scopes: dict[int, Scope] = field(default_factory=dict[int, Scope])
    contexts: dict[int, Context] = field(default_factory=dict[int, Context])
    kinds: dict[int, Kind] = field(default_factory=dict[int, Kind])
    names: dict[int, str] = field(default_factory=dict[int, str])
    origins: dict[int, Origin] = field(default_factory=dict[int, Origin])
    scalars: dict[int, Scalars] = field(default_factory=dict[int, Scalars])
    state_names: dict[int, StateNames] = field(default_factory=dict[int, StateNames])
    details: DetailStore = field(default_factory=DetailStore)
    states: list[State] = field(default_factory=list[State])
    state_samples: SampleStore | None = field(default_factory=SampleStore)  # None: not kept
    losses: list[LossMark] = field(default_factory=list[LossMark])
    steps: list[StepMark] = field(default_factory=list[StepMark])
    stood_at: dict[int, int] = field(
        default_factory=dict[int, int]
    )  # id() of a state or mark -> `left` of the call before it
    latest: int = -1  # `left` of the call read last
    levels: list[LevelMark] = field(default_factory=list[LevelMark])
    gaps: Counter[str] = field(default_factory=Counter[str])
    config: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    code: dict[str, str] = field(default_factory=dict[str, str])
    not_captured: list[str] = field(default_factory=list[str])
    distributed: Distributed = field(default_factory=Distributed)
    remarks: Remarks = field(default_factory=Remarks)
    end: EndMark | None = None
    bytes_lost: int = 0
    tagged: bool = False  # some slot bears a semantics tag (CA-5)
    has_token_rows: bool = False


class Blocked(Protocol):
    """A reader of a journal that yields its calls as columns where it can."""

    def blocks(self) -> Iterator[Sequence[Record | Loss] | Block[Record]]: ...


def load(run: Run, session: SessionView, *, settings: Settings, samples: bool = True) -> Recorded:
    """Read one session's journal whole; calls of steps that are not compared are left out.

    Args:
        samples: whether to keep sampled elements of states, which take as much memory as the calls. Draws are compared
            by them, and nothing else is.
    """
    found = Recorded(session=session, state_samples=SampleStore() if samples else None)
    journal = run.journal(session.session_id, in_blocks=True)
    shift = settings.shift_of(run.run_id, session.session_id)
    read(found, ShiftedJournal(journal, by=shift) if shift else journal, settings=settings)
    return found


def read(found: Recorded, journal: Blocked, *, settings: Settings) -> None:
    """Take every record of a journal in, then bring the calls into execution order."""
    for block in journal.blocks():
        if isinstance(block, Block):
            _take_block(found, block, settings)
        else:
            _take_block(found, Block(NO_CALLS, [(0, record) for record in block]), settings)
    found.calls.settle()
    if found.bytes_lost or not _all_defined(found):
        _leave_out_undefined(found)
    if found.remarks.triggers:
        _place_kept_steps(found)
    unseen = complete(found.calls, found.distributed)
    if unseen:  # a capture that ended well counted them itself
        found.gaps[IN_FLIGHT] = max(unseen, found.gaps[IN_FLIGHT])


def _take_block(found: Recorded, block: Block[Record | Loss], settings: Settings) -> None:
    """Take the records in, in their order as far as it counts, then the calls: all contexts are known by then."""
    left = block.calls.columns["left"]
    single: list[Call] = []
    details: list[Detail] = []
    latest, seen = found.latest, 0
    for place, record in block.others:
        if place > seen:
            latest, seen = int(left[place - 1]), place
        kind = type(record)
        if kind is Detail:
            assert isinstance(record, Detail)  # for the type checker
            details.append(record)
        elif kind is Call:
            assert isinstance(record, Call)
            single.append(record)
            latest = record.left
        else:
            found.latest = latest
            _take(found, record, settings)
    found.latest = int(left[-1]) if len(left) > seen else latest
    for line in block.samples if found.state_samples is not None else ():
        _take(found, decode_row(line), settings)
    found.details.take_lines(block.details)
    found.details.take_all(details)
    found.tagged = found.tagged or any(detail.semantics is not None for detail in details)
    _keep_columns(found, block.calls, settings)
    _keep(found, single, settings)


def _keep_columns(found: Recorded, calls: CallBatch, settings: Settings) -> None:
    if settings.steps is not None:
        contexts = calls.columns["context"]
        known = ((c, found.contexts.get(c)) for c in distinct(contexts).tolist())
        unwanted = [c for c, at in known if at and not settings.takes_step(at.step)]
        if unwanted:
            calls = calls.where(~np.isin(contexts, unwanted))
    found.calls.extend(calls)


def _keep(found: Recorded, calls: list[Call], settings: Settings) -> None:
    """Take the calls of compared steps in; of one whose numbers are beyond 64 bits nothing can be said."""
    if settings.steps is not None:
        known = found.contexts
        calls = [c for c in calls if (at := known.get(c.context)) is None or settings.takes_step(at.step)]
    try:
        if calls:
            found.calls.take(calls)
    except OverflowError:
        for call in calls:
            try:
                found.calls.take([call])
            except OverflowError:
                found.gaps[UNDEFINED] += 1


def _place_kept_steps(found: Recorded) -> None:
    kept = KeptSteps(found.calls, contexts=found.contexts, steps=found.remarks.kept_steps)
    records: list[State | LossMark | StepMark] = [*found.states, *found.losses, *found.steps]
    for record in records:
        before = kept.before(record)
        if before is not None:
            found.stood_at[id(record)] = before


def _all_defined(found: Recorded) -> bool:
    """Whether every definition that is referred to is there, told by the distinct references alone."""
    columns = found.calls
    tables: dict[str, tuple[Container[int], int]] = {  # with the number that stands for none
        "function": (found.functions, _NEVER),
        "site": (found.sites, _NEVER),
        "context": (found.contexts, _NEVER),
        "scope": (found.scopes, 0),
        "scalars": (found.scalars, -1),
        "name": (found.names, _NEVER),
        "kind": (found.kinds, _NEVER),
    }
    origins = columns.column("source")[columns.column("output") == FROM_ORIGIN]
    return (
        all(
            number in table or number == none
            for name, (table, none) in tables.items()
            for number in distinct(columns.column(name)).tolist()
        )
        and all(number < 0 or number in found.names for number in distinct(columns.column("node")).tolist())
        and all(number < 0 or number in found.origins for number in distinct(origins).tolist())
        and all(not scope.parent or scope.parent in found.scopes for scope in found.scopes.values())
        and all(one.group in found.distributed.groups for one in found.distributed.collectives.values())
        and all(state.names in found.state_names for state in found.states)
    )


def _leave_out_undefined(found: Recorded) -> None:
    """Leave out, and count, what refers to a definition that is not there: nothing can be said of it (EV-8)."""
    columns = found.calls
    defined = np.fromiter((_is_defined(found, call) for call in columns), bool, len(columns))
    states = [state for state in found.states if state.names in found.state_names]
    lost = int((~defined).sum()) + len(found.states) - len(states)
    if lost:
        found.gaps[UNDEFINED] += lost
    found.states = states
    for scope in list(found.scopes.values()):  # parents stand before their children
        if scope.parent and scope.parent not in found.scopes:
            del found.scopes[scope.id]
    inside = np.array([not scope or scope in found.scopes for scope in columns.column("scope").tolist()], bool)
    found.gaps[UNDEFINED] += int((defined & ~inside).sum())
    found.calls = columns.where(defined & inside)
    found.gaps += Counter()  # drops a zero


def _is_defined(found: Recorded, call: Call) -> bool:
    own = (
        call.function in found.functions
        and call.site in found.sites
        and call.context in found.contexts
        and (not call.scope or call.scope in found.scopes)
        and (call.node < 0 or call.node in found.names)
        and (call.scalars == -1 or call.scalars in found.scalars)
        and found.distributed.is_defined(call)
    )
    return own and all(_is_slot_defined(found, slot) for slot in (*call.inputs, *call.outputs))


def _is_slot_defined(found: Recorded, slot: Slot) -> bool:
    source = slot.source
    known = not isinstance(source, int) or source < 0 or source in found.origins
    return known and slot.name in found.names and slot.kind in found.kinds


def _take(found: Recorded, record: Record | Loss, settings: Settings) -> None:
    found.remarks.see(record)
    match record:
        case State() | LossMark() | StepMark() | LevelMark():
            _take_step(found, record, settings)
        case StateSamples():
            # as the state that it belongs to, which a loss of lines may have taken
            if found.state_samples is not None and _is_taken(record, settings):
                found.state_samples.append(record)
        case Loss() | LossOfBytes():
            found.bytes_lost += record.length
        case GapMark():
            found.gaps[record.reason.value] += record.count
        case ConfigMark():
            found.config[record.source].update(record.values)
        case CodeMark():
            found.code.update(record.files)
        case NotCaptured():
            found.not_captured.extend(name for name in record.names if name not in found.not_captured)
        case JournalHeader():
            found.header = record
        case EndMark():
            found.end = record
            found.gaps |= Counter(record.gaps)  # what its writer dropped stands here alone; of the rest, all of it
        case Group() | Mesh() | Placement() | Replicated() | Collective() | CollectiveCounts() | Completed():
            found.distributed.take(record, settings=settings)
        case _:
            _define(found, record)


def _is_taken(record: State | StateSamples, settings: Settings) -> bool:
    """Whether a state is compared; the one after the last compared step is the begin of the next: it is of both."""
    return settings.takes_step(record.step) or (record.moment == "begin" and settings.takes_step(record.step - 1))


def _take_step(found: Recorded, record: State | LossMark | StepMark | LevelMark, settings: Settings) -> None:
    found.stood_at[id(record)] = found.latest
    match record:
        case State():
            if _is_taken(record, settings):
                found.states.append(record)
        case LossMark():
            if settings.takes_step(record.step):
                found.losses.append(record)
        case StepMark():
            if settings.takes_step(record.step):
                found.steps.append(record)
        case LevelMark():
            found.levels.append(record)


def _define(found: Recorded, record: Record | Loss) -> None:
    match record:
        case Function():
            found.functions[record.id] = record
        case Site():
            found.sites[record.id] = record
        case Scope():
            found.scopes[record.id] = record
        case Context():
            found.contexts[record.id] = record
        case Kind():
            found.kinds[record.id] = record
        case Name():
            found.names[record.id] = record.text
        case Origin():
            found.origins[record.id] = record
        case Scalars():
            found.scalars[record.id] = record
        case StateNames():
            found.state_names[record.id] = record
        case TokenRows():
            found.has_token_rows = True
        case _:
            pass  # nothing else is a definition
