"""Records of a comparison of a resumed run with its uninterrupted continuation: the state at the boundary (CP-28)."""

from msgspec import Struct


class ResumePlan(Struct, frozen=True):
    """What `--resume` came to: part of the settings of the comparison.

    `shifts` are added to the steps of a session: (run, session, number). `assumed` says in words what was taken for
    what. `sessions` are those compared, of the baseline and of the candidate.
    """

    step: int
    assumed: str
    shifts: tuple[tuple[str, str, int], ...] = ()
    sessions: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


class ResumeState(Struct, frozen=True):
    """One value of the inventory that does not agree, on the ranks where it is so; values of the first of them.

    `idle`: a generator that neither side was seen to draw from. `missing`: the side that has none; "" where both do.
    """

    name: str
    ranks: tuple[int, ...]
    baseline: str
    candidate: str
    idle: bool = False
    missing: str = ""


class ResumePart(Struct, frozen=True):
    """One part of the inventory over all ranks; values are counted once per rank. `states` holds the first."""

    group: str
    agree: int
    differ: int
    idle: int  # of generators that nobody drew from: told, and not held against the run
    unknown: int  # a gap on either side, or a part that one side alone captured
    states: tuple[ResumeState, ...]
    agree_ranks: tuple[int, ...] = ()  # where all that both captured agrees


class ResumeFound(Struct, frozen=True):
    """The state inventory at the boundary, part by part, in the order in which a run reads it."""

    step: int
    assumed: str
    ranks: tuple[int, ...]
    ranks_missing: tuple[int, ...]
    parts: tuple[ResumePart, ...]
    not_captured: dict[str, tuple[str, ...]]  # side -> what that side names as not captured
    sessions: dict[str, tuple[str, ...]]
