"""Records of `paritrace narrow`: what is asked, each round, and the result that `--json` prints (CP-15)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.compare.result import Comparison, Difference, Finding, Repeats

FORMAT = "paritrace-narrowed"
VERSION = "1.0"
REGIONS = 16  # of a tensor, for where in it a difference lies; four are too coarse for a row or a head


class Question(StrEnum):
    """What a round asks, from the cheapest to the finest."""

    RECORD = "record"  # both sides anew, every step by digests, where no run was given or a wider one is wanted
    REPEAT = "repeat"  # does the baseline repeat itself?
    REPEAT_CALL = "repeat_call"  # it does not: from which call on?
    STEP = "step"  # at which step do the runs first differ, by the digests of every step?
    MODULES = "modules"
    OPERATORS = "operators"  # of one module
    EVERYTHING = "everything"  # every operator of the step
    COMPILER = "compiler"  # which part of torch's compiler


class Ended(StrEnum):
    """Why there is no further round."""

    FOUND = "found"  # a single call or region stands
    OUTSIDE = "outside"  # a state, a batch or a setting differed before any call: nothing finer is recorded of it
    NO_DIFFERENCE = "no_difference"
    NOT_COMPARED = "not_compared"  # both sides hold no step of those that are asked for
    NOT_REPEATABLE = "not_repeatable"  # the baseline differs from itself where the runs part, or before
    NOT_SEEN_AGAIN = "not_seen_again"  # both were captured again and do not differ there any more
    INSIDE_ROUND_OFF = "inside_round_off"  # of a compiler: it changes bits, and nothing beyond what draws explain
    EVIDENCE_ENDS = "evidence_ends"  # nothing finer can be recorded, and no single call stands


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """What one narrowing is about; a second one in the same folder has to ask the same.

    `baseline` and `candidate` are digests: of run.json, or of a request file. `draws` is the number of perturbed runs
    of the baseline that judge each round, 0: bits decide.
    """

    baseline: str
    candidate: str
    recorded: bool  # both are runs, whose digests can be read at once
    draws: int = 0
    between: tuple[int, int | None] | None = None
    upcast: str = ""
    launcher: str = ""
    compiler: bool = False  # which part of torch's compiler parts, instead of which operator


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    question: Question
    step: int = 0
    module: str = ""
    draws: int = 0


class Finer(Struct, frozen=True):
    """How a round captures. `window`: the step above level `digest`; `draws`: perturbed runs beside it."""

    levels: tuple[str, ...] = ()
    window: int | None = None
    select: tuple[str, ...] = ()
    fine: bool = False  # statistics, and more regions of each tensor
    upcast: str = ""
    draws: int = 0

    @property
    def arguments(self) -> tuple[str, ...]:
        """The same as options of `paritrace run`."""
        return (
            *(f"--level={level}" for level in self.levels),
            *(("--statistics", f"--regions={REGIONS}") if self.fine else ()),
            *((f"--steps={self.window}:{self.window + 1}",) if self.window is not None else ()),
            *(f"--select={pattern}" for pattern in self.select),
            *((f"--upcast={self.upcast}",) if self.upcast else ()),
            *((f"--perturb={self.draws}",) if self.draws else ()),
        )


class Round(Struct, frozen=True, forbid_unknown_fields=True):
    """A round that has ended. `runs`, `comparison`: paths below the narrowing's folder."""

    number: int
    plan: Plan
    question: str
    answer: str
    commands: tuple[str, ...]
    seconds: float
    num_bytes: int
    runs: dict[str, str]
    comparison: str
    remarks: tuple[str, ...] = ()


ITSELF = frozenset({Question.REPEAT, Question.REPEAT_CALL})  # rounds that hold the baseline against itself


class Seen(Struct, frozen=True):
    """A round and what it compared."""

    round: Round
    comparison: Comparison


class Narrowed(Struct, frozen=True):
    """The result. `place` is the call or region that stands; None where none does."""

    format: str
    version: str
    baseline: str
    candidate: str
    directory: str
    ended: Ended
    sentence: str
    strength: str
    place: Difference | None
    others: tuple[Finding, ...]  # what else the last comparison found, a benign change among it
    rounds: tuple[Round, ...]
    seconds: float
    num_bytes: int
    further: tuple[str, ...]  # what evidence would go further
    remarks: tuple[str, ...] = ()
    repeats: Repeats | None = None  # the baseline held against itself, by calls where that was needed
