"""Whether a store is what was published, without restoring it (ST-13, SU-19)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.store.checking import Checker, RankFacts, StoreFacts
from paritrace.store.placing import collisions, placements
from paritrace.store.problems import NOT_CHECKED, Problem
from paritrace.store.records import StoreGap
from paritrace.store.targets import Target


class StoreVerdict(StrEnum):
    INTACT = "intact"
    DAMAGED = "damaged"  # something changed or is missing
    NOT_CHECKED = "not_checked"  # something could not be read, or no receipt says how much there must be


class StoreVerification(Struct, frozen=True):
    """`verify --json` of a store."""

    source: str
    run_id: str | Gap[StoreGap]
    verdict: StoreVerdict
    ranks: tuple[RankFacts, ...]
    problems: tuple[Problem, ...]


def verify_store(target: Target) -> StoreVerification:
    """Read everything a store holds and check it.

    Raises:
        EvidenceError: Refused, code `not_a_store`.
        HostError: Refused, what the target says of a listing.
    """
    checker = Checker(target)
    facts = checker.check()
    twice = collisions(one for chain in checker.chains.values() for one in placements(chain))
    problems = (*facts.problems, *twice)
    return StoreVerification(target.label, facts.run_id, verdict_of(facts, problems), facts.ranks, problems)


def verdict_of(facts: StoreFacts, problems: tuple[Problem, ...]) -> StoreVerdict:
    """Return the verdict: damage first, then what could not be checked; an end that no receipt names is not checked."""
    if any(problem.kind not in NOT_CHECKED for problem in problems):
        return StoreVerdict.DAMAGED
    if problems or not all(rank.is_complete for rank in facts.ranks):
        return StoreVerdict.NOT_CHECKED
    return StoreVerdict.INTACT
