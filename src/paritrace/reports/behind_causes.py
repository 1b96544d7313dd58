"""What the changes around the runs, the states outside the calls and the one-sided calls rest on (P9)."""

from paritrace.compare.result import Change, CollectiveDifference, Comparison, OneSided, Outside
from paritrace.compare.rows import Side
from paritrace.evidence.spans import ranges
from paritrace.reports.behind import Behind, pair_of
from paritrace.reports.wording import count


def change_text(change: Change) -> str:
    return f"{change.kind} {change.name}: {change.baseline or '(none)'} -> {change.candidate or '(none)'}"


def outside_text(state: Outside) -> str:
    return (
        f"{state.group} {state.name}, step {state.step} ({state.moment}), rank {state.rank}: "
        f"{state.baseline} -> {state.candidate}"
    )


def changed(comparison: Comparison, _part: str) -> Behind:
    facts = tuple(change_text(change) for change in comparison.changed)
    return Behind(f"{count(len(facts), 'recorded fact')} around the runs differ; see run.json of both.", facts)


def outside_states(comparison: Comparison, _part: str) -> Behind:
    facts = tuple(outside_text(state) for state in comparison.outside)
    return Behind(f"{count(len(facts), 'state')} outside the calls differ; from the state inventories.", facts)


def one_sided(comparison: Comparison, _part: str) -> Behind:
    calls = comparison.recorded_on_one_side
    return Behind(
        f"{count(sum(call.count for call in calls), 'call')} recorded on one side only, between two pairs.",
        facts=tuple(_one_sided_fact(call) for call in calls),
        record_ids=tuple((Side(call.side), call.rank, call.record_id) for call in calls),
    )


def collectives(comparison: Comparison, _part: str) -> Behind:
    told = comparison.collectives
    return Behind(
        f"{count(len(told), 'statement')} about collectives; those between the ranks of one run are made by check.",
        facts=tuple(_collective_fact(one) for one in told),
        record_ids=tuple(
            (side, rank, record)
            for one in told
            for rank, *both in one.records
            for side, record in zip((Side.BASELINE, Side.CANDIDATE), both, strict=True)
            if record >= 0
        ),
    )


def _collective_fact(told: CollectiveDifference) -> str:
    sides = f"baseline {told.baseline or 'none'}; candidate {told.candidate or 'none'}"
    whole = "" if told.complete else "; a recording is incomplete"
    return f"{told.kind.value}: {told.sentence}, rank {ranges(told.ranks)}, step {ranges(told.steps)}; {sides}{whole}"


def _one_sided_fact(call: OneSided) -> str:
    return (
        f"{call.side} {count(call.count, 'call')} {call.function} at {call.file}:{call.line}, step {call.step}, "
        f"between {_pair(call.after_pair)} and {_pair(call.before_pair)}"
    )


def _pair(ids: tuple[int, int]) -> str:
    return f"baseline:{ids[0]}=candidate:{ids[1]}" if ids[0] >= 0 else "the end of its scope"


def findings(comparison: Comparison, _part: str) -> Behind:
    return Behind(
        f"{count(len(comparison.findings), 'finding')}.",
        facts=tuple(f"[{finding.id}] {finding.sentence}" for finding in comparison.findings),
        record_ids=tuple(pair for finding in comparison.findings for pair in pair_of(finding.place)),
    )
