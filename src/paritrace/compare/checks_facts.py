"""Gathers from one session's records, in one pass and bounded memory, what the invariants of a run rest on."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from paritrace.compare.checks_narrowing import Narrowings
from paritrace.compare.checks_nonfinite import NonFinites
from paritrace.compare.checks_parameters import Parameters
from paritrace.compare.checks_recompute import Recomputations
from paritrace.evidence.blackbox import Trigger
from paritrace.evidence.calls import (
    Call,
    CodeMark,
    Completed,
    ConfigMark,
    Context,
    Detail,
    Function,
    GapMark,
    JournalHeader,
    Kind,
    Level,
    LevelMark,
    LossMark,
    NotCaptured,
    Row,
    Scope,
    Site,
    State,
    StateNames,
    StateSamples,
    StepMark,
)
from paritrace.evidence.definition import Definition
from paritrace.evidence.journal import Loss
from paritrace.evidence.remarks import Remarks
from paritrace.evidence.rows import RowAddresses, TokenRows


class Place(Struct, frozen=True):
    """Where a call happened, spelled for a person."""

    record_id: int
    step: int
    phase: str
    function: str
    file: str
    line: int
    module: str
    level: Level

    @property
    def called(self) -> str:
        """The class of a module call (`Linear` of `torch.nn.modules.linear.Linear`); an operator as it is."""
        last = self.function.rpartition(".")[2]
        return last if last[:1].isupper() and self.level is Level.MODULE else self.function


class Definitions:
    """The definitions seen so far: what ids of a journal stand for."""

    def __init__(self) -> None:
        self.functions: dict[int, Function] = {}
        self.sites: dict[int, Site] = {}
        self.scopes: dict[int, Scope] = {}
        self.contexts: dict[int, Context] = {}
        self.kinds: dict[int, Kind] = {}
        self.state_names: dict[int, StateNames] = {}

    def see(self, record: Definition) -> None:
        match record:
            case Function():
                self.functions[record.id] = record
            case Site():
                self.sites[record.id] = record
            case Scope():
                self.scopes[record.id] = record
            case Context():
                self.contexts[record.id] = record
            case Kind():
                self.kinds[record.id] = record
            case StateNames():
                self.state_names[record.id] = record
            case _:
                pass

    def place(self, call: Call) -> Place:
        """Returns where a call happened; parts that a lost line took away are said to be unknown."""
        site = self.sites.get(call.workload_site) or self.sites.get(call.site)
        context = self.contexts.get(call.context)
        function = self.functions.get(call.function)
        scope = self.scopes.get(call.scope)
        return Place(
            record_id=call.id,
            step=context.step if context else -1,
            phase=context.phase.value if context else "",
            function=function.name if function else "(definition lost)",
            file=site.file if site else "",
            line=site.line if site else 0,
            module=scope.module if scope else "",
            level=function.level if function else Level.OP,
        )


class SessionFacts:
    """What one session's journal says, folded record by record; each part owns its own figures."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.parameters = Parameters()
        self.non_finites = NonFinites()
        self.narrowings = Narrowings()
        self.recomputations = Recomputations()
        self.remarks = Remarks()
        self.header: JournalHeader | None = None
        self.levels: set[str] = set()
        self.losses: list[LossMark] = []
        self.steps: list[StepMark] = []
        self.configs: list[ConfigMark] = []
        self.gaps: Counter[str] = Counter()
        self.not_captured: tuple[str, ...] = ()
        self.lost: list[Loss] = []
        self._call: Call | None = None
        self._details: list[Detail] = []

    def see_all(self, records: Iterable[Row | Definition | Loss]) -> None:
        """Takes every record of the journal, in order."""
        for record in records:
            self._see(record)
        self._finish_call()

    def _see(self, record: Row | Definition | Loss) -> None:
        match record:
            case Call():
                self._finish_call()
                self._call = record
            case Detail():
                self._details.append(record)
            case State():
                self.parameters.see_state(record, self.definitions.state_names, self.definitions.kinds)
            case Loss():
                self.lost.append(record)
            case Completed() | RowAddresses() | TokenRows() | StateSamples():
                pass
            case _:
                self._see_mark(record)

    def _see_mark(self, record: Definition) -> None:
        self.remarks.see(record)
        match record:
            case Trigger():
                if record.steps:
                    self.levels.add(Level.MODULE.value)
            case JournalHeader():
                self.header = record
                self.levels |= {level.value for level in record.levels}
            case LevelMark():
                self.levels |= {level.value for level in record.levels}
            case LossMark():
                self.losses.append(record)
            case StepMark():
                self._finish_call()
                self.steps.append(record)
                self.parameters.see_step(record)
                self.recomputations.forget()
                self.narrowings.forget()
            case ConfigMark():
                self.configs.append(record)
            case GapMark():
                self.gaps[record.reason.value] += record.count
            case NotCaptured():
                self.not_captured = record.names
            case CodeMark():
                pass
            case _:
                self.definitions.see(record)

    def _finish_call(self) -> None:
        """Takes the last call with its details: they follow its line."""
        call, details = self._call, self._details
        self._call, self._details = None, []
        if call is None:
            return
        kinds = self.definitions.kinds
        self.recomputations.see(call)
        self.narrowings.see(call, details, kinds)
        self.non_finites.see(call, details)
