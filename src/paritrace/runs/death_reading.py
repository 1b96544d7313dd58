"""Gathers what a run left of its ranks' ends: records, journals, and what others wrote beside it (RS-13)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.calls import Call, Function, Scope, Site, StepMark
from paritrace.evidence.distributed import CollectiveCounts
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.process.exit_watch import SeenExit
from paritrace.process.stop_facts import Exited
from paritrace.runs.death import DeathGap, DeathPage, RankEnd, Source, SourceState, page_of
from paritrace.runs.death_beside import Beside
from paritrace.runs.envelope import Role
from paritrace.runs.reading import Run
from paritrace.runs.record_lines import AdapterKind
from paritrace.runs.record_reading import ReadRecord, read_records
from paritrace.runs.views import SessionView

XID = "Xid"


def ends_other_than_well(run: Run, *, files: Files = LOCAL) -> tuple[tuple[ReadRecord, ...], DeathPage | None]:
    """Return the records of ends that were no success or were not seen, and the run's page at death."""
    records = read_records(run.folder)
    bad = tuple(one for one in records if one.end is None or one.end.stop is not None)
    return bad, death_page(run, records, files=files)


def death_page(run: Run, records: Sequence[ReadRecord], *, files: Files = LOCAL) -> DeathPage | None:
    """Return the page of a run with several ranks of which not all ended well; None of any other run."""
    last = max((view.incarnation for view in run.sessions), default=0)
    views = [view for view in run.sessions if view.incarnation == last and view.row.role is not Role.RECORD]
    if len(views) < 2 or any(view.status.value == "running" and view.seen.words == "running" for view in views):
        return None
    launchers = [one for one in records if _kind(one) is AdapterKind.LAUNCHER and one.end is not None]
    exits = {seen.name: (one, seen) for one in launchers if one.end for seen in one.end.exits}
    own = {one.start.context.values.get("session_id", ""): one for one in records if one.start is not None}
    if all(_well(view, own.get(view.session_id), exits.get(view.session_id)) for view in views):
        return None
    found = Beside(run, files)
    ranks = [_rank(run, view, own.get(view.session_id), exits.get(view.session_id), found) for view in views]
    return page_of(ranks, in_flight=found.in_flight, sources=(*_launch_source(launchers), *found.sources))


def _kind(one: ReadRecord) -> AdapterKind | None:
    return None if one.start is None else one.start.names.adapter_kind


def _well(view: SessionView, own: ReadRecord | None, seen: tuple[ReadRecord, SeenExit] | None) -> bool:
    if seen is not None and seen[1].wait is not None:
        return seen[1].wait == Exited(0)
    if own is not None and own.end is not None:
        return own.end.stop is None
    return view.status.value == "completed"


def _rank(
    run: Run, view: SessionView, own: ReadRecord | None, seen: tuple[ReadRecord, SeenExit] | None, beside: "Beside"
) -> RankEnd:
    last = _Last(run, view.session_id)
    boot = view.row.process.boot_id
    stack = beside.stacks.get(view.rank)
    return RankEnd(
        session_id=view.session_id,
        rank=view.rank,
        boot=f"{view.row.process.host}/{boot}",
        seen_ns=Gap(DeathGap.NOT_SEEN) if seen is None else seen[1].seen_ns,
        wait=None if seen is None else seen[1].wait,
        own_word=_own_word(own),
        last_step=Gap(DeathGap.NO_STEP) if last.step is None else last.step,
        last_call=last.call_words() or Gap(DeathGap.NO_CALL),
        stack=stack or Gap(DeathGap.NO_STACK),
        groups=dict(last.groups),
    )


def _own_word(own: ReadRecord | None) -> str:
    if own is None or own.start is None:
        return "it has no record of its own"
    if own.end is None:
        return "it wrote no end of its own"
    return "; ".join(own.end.facts.remarks) or "it wrote an end of its own"


class _Last:
    """What one pass over a rank's journal keeps; a journal that cannot be read further ends there."""

    def __init__(self, run: Run, session_id: str) -> None:
        self.step: int | None = None
        self.groups: dict[str, int] = defaultdict(int)
        self._call: Call | None = None
        self._functions: dict[int, Function] = {}
        self._sites: dict[int, Site] = {}
        self._scopes: dict[int, Scope] = {}
        try:
            for item in run.journal(session_id):
                self._take(item)
        except (EvidenceError, HostError):
            pass  # what was read stands; `runs verify` names the damage

    def call_words(self) -> str:
        """The call that was recorded last, with its place in the workload."""
        call = self._call
        if call is None:
            return ""
        function = self._functions.get(call.function)
        site = self._sites.get(call.workload_site) or self._sites.get(call.site)
        name = "a call" if function is None else function.name
        return name if site is None else f"{name} at {site.file}:{site.line} in {site.function}"

    def _take(self, item: object) -> None:
        match item:
            case Call():
                self._call = item
            case StepMark():
                self.step = item.step
            case CollectiveCounts():
                for name, count in item.counts.items():
                    self.groups[name] += count
            case Function():
                self._functions[item.id] = item
            case Site():
                self._sites[item.id] = item
            case _:
                pass


def _launch_source(launchers: Sequence[ReadRecord]) -> Iterator[Source]:
    if not launchers:
        yield Source("launcher's watch", SourceState.ABSENT, "the ranks were not started by `paritrace run --launcher`")
        yield Source("kernel log (Xid)", SourceState.ABSENT, "nobody read it while the ranks ran")
    for one in launchers:
        assert one.end is not None
        yield Source("launcher's watch", SourceState.READ, f"{one.name}: {len(one.end.exits)} ends seen")
        logged = [remark for remark in one.end.facts.remarks if XID in remark or "kernel's log" in remark]
        state = SourceState.UNREADABLE if any("cannot be read" in text for text in logged) else SourceState.READ
        yield Source("kernel log (Xid)", state, "; ".join(logged) or "no Xid line was logged while the ranks ran")
