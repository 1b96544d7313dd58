"""The state at the boundary of a resume, part by part and rank by rank (CP-28, A-17, A-18): pure."""

from collections.abc import Iterator, Mapping, Sequence

from paritrace.compare.resume_result import ResumeFound, ResumePart, ResumePlan, ResumeState
from paritrace.compare.resume_states import Key, SessionStates, Value
from paritrace.evidence.gaps import Gap

ORDER = (
    "parameter",
    "buffer",
    "optimizer_state",
    "scheduler",
    "scaler",
    "fp8",
    "rng",
    "sampler",
    "data_position",
    "batch",
)
STATES_KEPT = 20
RNG, OPTIMIZER = "rng", "optimizer_state"
Pair = tuple[SessionStates, SessionStates]
ByName = dict[Key, dict[int, tuple[Value | None, Value | None]]]


def inventory(
    pairs: Mapping[int, Pair], plan: ResumePlan, *, own_steps: Mapping[int, int], missing: Sequence[int]
) -> ResumeFound:
    """Compare the state that both sides began the step with.

    Args:
        pairs: the sessions of both sides by rank.
        own_steps: what the candidate calls the step, by rank.
        missing: ranks that one side alone has.
    """
    values: ByName = {}
    for rank, (ours, theirs) in sorted(pairs.items()):
        held = (_whole(ours.inventory(plan.step)), _whole(theirs.inventory(own_steps[rank])))
        for key in held[0].keys() | held[1].keys():
            values.setdefault(key, {})[rank] = (held[0].get(key), held[1].get(key))
    moved = {name for pair in pairs.values() for side in pair for name in _moved(side)}
    empty = (
        frozenset(rank for rank, pair in pairs.items() if pair[0].had_no_optimizer_state(plan.step)),
        frozenset(rank for rank, pair in pairs.items() if pair[1].had_no_optimizer_state(own_steps[rank])),
    )
    return ResumeFound(
        step=plan.step,
        assumed=plan.assumed,
        ranks=tuple(sorted(pairs)),
        ranks_missing=tuple(missing),
        parts=tuple(
            _part(group, {key: of for key, of in values.items() if key[0] == group}, moved=moved, empty=empty)
            for group in (*ORDER, *sorted({key[0] for key in values} - {*ORDER}))
            if any(key[0] == group for key in values)
        ),
        not_captured={
            "baseline": _names(ours for ours, _ in pairs.values()),
            "candidate": _names(theirs for _, theirs in pairs.values()),
        },
        sessions={"baseline": plan.sessions[0], "candidate": plan.sessions[1]},
    )


def _whole(found: Mapping[Key, Value]) -> dict[Key, Value]:
    """An inventory in which a batch is one value: its elements and their order."""
    joined: dict[Key, Value] = {key: value for key, value in found.items() if key[0] != "batch_order"}
    for (group, name), value in found.items():
        elements = joined.get(("batch", name))
        if group == "batch_order" and isinstance(value, str) and isinstance(elements, str):
            joined["batch", name] = f"{elements} {value}"
    return joined


def _moved(side: SessionStates) -> set[str]:
    """The generators whose state was seen to change from one begin to another."""
    seen: dict[str, set[str]] = {}
    for held in side.begins.values():
        for (group, name), value in held.items():
            if group == RNG and isinstance(value, str):
                seen.setdefault(name, set()).add(value)
    return {name for name, values in seen.items() if len(values) > 1}


def _names(sides: Iterator[SessionStates]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for side in sides for name in side.not_captured))


def _part(group: str, values: ByName, *, moved: set[str], empty: tuple[frozenset[int], frozenset[int]]) -> ResumePart:
    agree, differ, idle, unknown = 0, 0, 0, 0
    states: dict[tuple[str, bool, str], list[tuple[int, Value | None, Value | None]]] = {}
    apart: set[int] = set()
    ranks: set[int] = set()
    for (_, name), of in sorted(values.items()):
        quiet = group == RNG and name not in moved
        for rank, (left, right) in of.items():
            ranks.add(rank)
            missing = _missing(group, rank, left, right, empty)
            if missing is None:
                unknown += 1
            elif left == right:
                agree += 1
            else:
                idle, differ = idle + quiet, differ + (not quiet)
                apart |= set() if quiet else {rank}
                states.setdefault((name, quiet, missing), []).append((rank, left, right))
    told = [_state(name, quiet, missing, found) for (name, quiet, missing), found in states.items()]
    told.sort(key=lambda state: state.idle)
    return ResumePart(
        group=group,
        agree=agree,
        differ=differ,
        idle=idle,
        unknown=unknown,
        states=tuple(told[:STATES_KEPT]),
        agree_ranks=tuple(sorted(ranks - apart)),
    )


def _missing(
    group: str, rank: int, left: Value | None, right: Value | None, empty: tuple[frozenset[int], frozenset[int]]
) -> str | None:
    """The side that is known to hold none of it, "" where both hold some; None where nothing can be said."""
    if isinstance(left, str) and isinstance(right, str):
        return ""
    if group == OPTIMIZER and isinstance(left, str) and right is None and rank in empty[1]:
        return "candidate"
    if group == OPTIMIZER and isinstance(right, str) and left is None and rank in empty[0]:
        return "baseline"
    return None


def _state(name: str, idle: bool, missing: str, found: Sequence[tuple[int, Value | None, Value | None]]) -> ResumeState:
    _, left, right = found[0]
    return ResumeState(
        name=name,
        ranks=tuple(rank for rank, _, _ in found),
        baseline=_spelled(left),
        candidate=_spelled(right),
        idle=idle,
        missing=missing,
    )


def _spelled(value: Value | None) -> str:
    return "" if value is None or isinstance(value, Gap) else value
