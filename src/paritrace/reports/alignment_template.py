"""Prints a map to fill in: every call that a kept comparison left undetermined, with those of its key (CP-14)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from paritrace.compare import alignment
from paritrace.compare.alignment import NOBODY, Decision
from paritrace.compare.rows import Correspondence, Side
from paritrace.reports.calls_table import CallsTable, TableCall
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import module_or_root, short_function

MOST = 200  # entries of one template: a person fills it in
CANDIDATES_SHOWN = 8
Place = tuple[int, str, str, str]
"""Rank, stream, scope and key: where a counterpart is looked for."""


class Template(NamedTuple):
    """The document, and how many undetermined calls it leaves out."""

    document: bytes
    left_out: int


def template(table: CallsTable, /, *, artifact_sha256: str, most: int = MOST) -> Template:
    """Returns a map in which every undetermined call is kept undetermined; whoever fills it in gives reasons.

    Entries come by rank, step and order of execution, the first `most` of them.
    """
    calls = table.matching({"correspondence": Correspondence.UNDETERMINED})
    there: dict[tuple[Side, Place], list[int]] = defaultdict(list)
    for call in calls:
        there[call.side, _place(call)].append(call.record_id)
    ordered = sorted(calls, key=lambda call: (call.rank, call.step, call.side, call.record_id))
    sessions = _several_sessions(table)
    document = {
        "format": alignment.FORMAT,
        "version": alignment.VERSION,
        "artifact_sha256": artifact_sha256,
        "reviewer": "",
        "reason": "",
        "pairs": [_entry(call, there, sessions) for call in ordered[:most]],
        "slots": [],
    }
    return Template(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n", max(0, len(ordered) - most))


def _place(call: TableCall) -> Place:
    return (call.rank, call.stream, call.scope, call.key)


def _several_sessions(table: CallsTable) -> set[tuple[Side, int]]:
    """The ranks that were started several times: their calls are named with their session."""
    sessions: dict[tuple[Side, int], set[str]] = defaultdict(set)
    for side, rank, session in table.sessions():
        sessions[side, rank].add(session)
    return {place for place, found in sessions.items() if len(found) > 1}


def _entry(
    call: TableCall, there: dict[tuple[Side, Place], list[int]], sessions: set[tuple[Side, int]]
) -> dict[str, object]:
    other = Side.CANDIDATE if call.side is Side.BASELINE else Side.BASELINE
    ids: dict[Side, int | str] = {call.side: call.record_id, other: NOBODY}
    entry: dict[str, object] = {
        "decision": Decision.UNDETERMINED.value,
        "rank": call.rank,
        "baseline": ids[Side.BASELINE],
        "candidate": ids[Side.CANDIDATE],
        "reason": "",
        "about": harmless("; ".join(_about(call, other, there[other, _place(call)]))),
    }
    if (call.side, call.rank) in sessions:
        entry[f"{call.side.value}_session"] = call.session_id
    return entry


def _about(call: TableCall, other: Side, same_key: Sequence[int]) -> Iterator[str]:
    yield f"{short_function(call.function)} at {call.file}:{call.line} in {module_or_root(call.module)}"
    yield f"step {call.step}, {call.phase}, {call.reason}"
    if same_key:
        shown = ", ".join(map(str, same_key[:CANDIDATES_SHOWN]))
        more = f" and {len(same_key) - CANDIDATES_SHOWN} more" if len(same_key) > CANDIDATES_SHOWN else ""
        yield f"undetermined of the same key in the {other.value}: {shown}{more}"
