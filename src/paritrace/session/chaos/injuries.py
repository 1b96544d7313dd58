"""The rule of a rehearsal: which injuries there are, what is promised for each, whether it was kept (SE-19)."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

FORMAT = "paritrace-session-chaos"
VERSION = "1.0"

KNOWN_SECONDS = 1.0  # a death: evidence written and survivors signalled (PF-17)
REACTION_SECONDS = 1.0  # between a bound that has run out and a status that says so; one beat of a rank
SPARE_SECONDS = 1.0  # for the last process, once the grace and the reaping are over


class Injury(StrEnum):
    """What is done to a session that steps."""

    STOPS = "stops"  # stop and go on, again and again, while words to one rank are held up
    KILL = "kill"  # SIGKILL of one rank
    KILL_TWO = "kill_two"  # of two at once
    FREEZE = "freeze"  # SIGSTOP of one rank, and SIGCONT
    KILL_IN_LOAD = "kill_in_load"  # SIGKILL of one rank while all load a checkpoint
    COORDINATOR = "coordinator"  # SIGKILL of the coordinator


class Promise(StrEnum):
    """What is measured after an injury."""

    SAME_STEP = "same_step"  # every stop was applied, with all ranks at one step; seconds: of the slowest
    KNOWN = "known"  # the session is in Error
    NAMED = "named"  # the report names the cause, or says that it is undetermined where it is
    GONE = "gone"  # no rank is left
    FLAGGED = "flagged"  # the rank is found unresponsive
    GOES_ON = "goes_on"  # after SIGCONT the next command is applied
    LOADS_AGAIN = "loads_again"  # a new generation stands at the checkpoint


PROMISES: Mapping[Injury, tuple[Promise, ...]] = MappingProxyType(
    {
        Injury.STOPS: (Promise.SAME_STEP,),
        Injury.KILL: (Promise.KNOWN, Promise.GONE, Promise.NAMED),
        Injury.KILL_TWO: (Promise.KNOWN, Promise.GONE, Promise.NAMED),
        Injury.FREEZE: (Promise.FLAGGED, Promise.GOES_ON),
        Injury.KILL_IN_LOAD: (Promise.KNOWN, Promise.GONE, Promise.LOADS_AGAIN),
        Injury.COORDINATOR: (Promise.GONE,),
    }
)
_NEEDS = MappingProxyType({Injury.KILL_IN_LOAD: frozenset({"save", "inspect"})})


class Outcome(Struct, frozen=True, forbid_unknown_fields=True):
    """One promise: `seconds` None: not within the bound. `words`: what was seen."""

    injury: Injury
    promise: Promise
    kept: bool
    seconds: float | None
    bound_seconds: float | None  # None: it is no matter of time
    words: str = ""


class Skipped(Struct, frozen=True, forbid_unknown_fields=True):
    """An injury that was not rehearsed, and why."""

    injury: Injury
    why: str


class Rehearsal(Struct, frozen=True, forbid_unknown_fields=True):
    """What `session chaos` found."""

    workload: str
    world_size: int
    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...] = ()
    format: str = FORMAT
    version: str = VERSION

    @property
    def kept(self) -> bool:
        """Whether every promise that was rehearsed was kept."""
        return all(one.kept for one in self.outcomes)


def chosen(
    wanted: Collection[Injury], *, world_size: int, capabilities: Collection[str]
) -> tuple[tuple[Injury, ...], tuple[Skipped, ...]]:
    """Return what can be rehearsed on a workload, all where nothing is wanted by name, and what cannot."""
    asked = [one for one in Injury if not wanted or one in wanted]
    skipped = [Skipped(one, why) for one in asked if (why := _cannot(one, world_size, capabilities))]
    return tuple(one for one in asked if one not in {s.injury for s in skipped}), tuple(skipped)


def bound_of(promise: Promise, bounds: Mapping[str, float], /) -> float | None:
    """Return by when a promise has to be kept, in seconds, by the session's own table of bounds (SE-21)."""
    match promise:
        case Promise.KNOWN:
            return KNOWN_SECONDS
        case Promise.GONE:
            return bounds["term_grace"] + bounds["reap"] + SPARE_SECONDS
        case Promise.FLAGGED:
            return bounds["unresponsive"] + REACTION_SECONDS
        case Promise.SAME_STEP:
            return bounds["park"]
        case Promise.GOES_ON:
            return bounds["park"] + bounds["act"]
        case Promise.LOADS_AGAIN:
            return bounds["join"] + bounds["start"] + bounds["load"]
        case Promise.NAMED:
            return None


def timed(
    injury: Injury, promise: Promise, seconds: float | None, *, bounds: Mapping[str, float], words: str = ""
) -> Outcome:
    """Return the outcome of a promise that is a matter of time."""
    bound = bound_of(promise, bounds)
    kept = seconds is not None and bound is not None and seconds <= bound
    return Outcome(injury, promise, kept, seconds, bound, words)


def named(injury: Injury, root_cause: str | None, *, killed: Iterable[int]) -> Outcome:
    """Return whether the report names the one rank that was killed; of two at once none may be named."""
    ranks = list(killed)
    expected = f"rank {ranks[0]}" if len(ranks) == 1 else "undetermined"
    words = f"root cause: {root_cause}" + ("" if root_cause == expected else f", where it was {expected}")
    return Outcome(injury, Promise.NAMED, root_cause == expected, None, None, words)


def _cannot(injury: Injury, world_size: int, capabilities: Collection[str]) -> str:
    if injury is Injury.KILL_TWO and world_size < 2:
        return "one rank only"
    missing = sorted(_NEEDS.get(injury, frozenset()) - set(capabilities))
    return f"the workload has no {', '.join(missing)}" if missing else ""
