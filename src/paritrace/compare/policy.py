"""Records of a policy: the rules by which a user lets a comparison pass or fail (CP-13), and what became of each."""

from enum import StrEnum
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from paritrace.correspondence.vocabulary import Verdict

__all__ = ["Verdict"]  # of the vocabulary of every comparison

FORMAT = "paritrace-policy"
VERSION = "1.0"

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
NotNegative = Annotated[float, Meta(ge=0.0)]
Count = Annotated[int, Meta(ge=0)]
Rung = Literal[
    "code",
    "config",
    "data",
    "weights",
    "rng",
    "forward",
    "loss",
    "backward",
    "reduced grads",
    "grad norm",
    "optimizer",
    "weights+1",
]


class Figure(StrEnum):
    """Of two recorded tensors: symmetric, so that exchanging the runs changes nothing."""

    RELATIVE_ERROR = "relative_error"  # L2 of the difference over the samples, over the larger of both norms
    MAX_ULP = "max_ulp"  # over the samples
    NORM_RATIO = "norm_ratio"  # of L2 norms over all elements, the larger over the smaller: 1 where they agree


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all rules have. `name` is for people; left out, it is the kind."""

    name: str = ""


class CallRule(Rule, frozen=True, kw_only=True):
    """A rule about calls whose names are like these shell patterns, in the spelling of the result."""

    module: str = "*"
    function: str = "*"
    phase: str = "*"
    level: str = "*"


class InsideEnvelope(Rule, frozen=True, kw_only=True, tag="inside_envelope"):
    """Nothing that was judged lies beyond the envelope; undetermined without an envelope."""


class UndeterminedShare(CallRule, frozen=True, kw_only=True, tag="undetermined_share"):
    """At most this share of the calls of either run has no counterpart."""

    most: Share


class BitsAgree(CallRule, frozen=True, kw_only=True, tag="bits_agree"):
    """Every such call has a counterpart, and all recorded fields of both agree."""


class StatesAgree(Rule, frozen=True, kw_only=True, tag="states_agree"):
    """Every such figure of a step agrees: parameters, buffers, gradients, batches, generators …"""

    group: str = "*"
    state: str = "*"
    moment: str = "*"


class Rungs(Rule, frozen=True, kw_only=True, tag="ladder"):
    """These rungs of the ladder agree in bits (`=`), or are at least inside the envelope (`~`)."""

    rungs: tuple[Rung, ...]
    at_least: Literal["=", "~"] = "="


class Threshold(CallRule, frozen=True, kw_only=True, tag="threshold"):
    """A figure of every such recorded tensor is at most this, where both runs summarised it. A NaN never passes."""

    figure: Figure
    most: NotNegative
    slot: str = "*"
    direction: Literal["i", "o", "*"] = "o"


class StepValue(Rule, frozen=True, kw_only=True, tag="step_value"):
    """The loss (or gradient norm) of every step differs at most by this. A NaN never passes."""

    of: Literal["loss", "grad_norm"] = "loss"
    relative: NotNegative | None = None
    absolute: NotNegative | None = None


class CollectivesAgree(Rule, frozen=True, kw_only=True, tag="collectives_agree"):
    """No statement about collectives that differ was made, and some collective was compared."""


class RanksCompared(Rule, frozen=True, kw_only=True, tag="all_ranks"):
    """All ranks of both runs were compared."""


class Complete(Rule, frozen=True, kw_only=True, tag="complete"):
    """The evidence of both runs is complete: expected steps declared and seen, nothing lost."""


class ConfigValue(Rule, frozen=True, kw_only=True, tag="config_value"):
    """A recorded setting has this value: what is declared is what was observed, also where both runs agree (A-19)."""

    source: str
    setting: str
    value: str
    side: Literal["baseline", "candidate", "both"] = "both"


class RowsAgree(Rule, frozen=True, kw_only=True, tag="rows_agree"):
    """Every row of tokens has a counterpart and agrees in bits (`=`), or is at least inside the envelope (`~`)."""

    at_least: Literal["=", "~"] = "="


class ResumeAgrees(Rule, frozen=True, kw_only=True, tag="resume_agrees"):
    """A resumed run began with what its continuation began with, in every part whose group is like this pattern."""

    group: str = "*"


AnyRule = (
    InsideEnvelope
    | UndeterminedShare
    | BitsAgree
    | StatesAgree
    | Rungs
    | Threshold
    | StepValue
    | CollectivesAgree
    | RanksCompared
    | Complete
    | ConfigValue
    | RowsAgree
    | ResumeAgrees
)


KINDS: dict[str, type[Rule]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyRule)}


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy file. All rules must hold."""

    format: Literal["paritrace-policy"]
    version: Literal["1.0"]
    rules: tuple[AnyRule, ...]
    name: str = ""


class RulePlace(Struct, frozen=True):
    """Where a rule breaks, or cannot be told; record ids are -1 where there is no call."""

    rank: int
    step: int
    microbatch: int = 0
    phase: str = ""
    module: str = ""
    function: str = ""
    slot: str = ""
    baseline_record_id: int = -1
    candidate_record_id: int = -1


class Tally(Struct, frozen=True):
    """What one rank gives to one rule: how many things were checked, of these how many break it or cannot be told.

    `worst`: the largest figure met, of rules that have one; `unsampled`: what had no figure and is not counted.
    """

    checked: int = 0
    broken: int = 0
    unknown: int = 0
    worst: float | None = None
    unsampled: int = 0
    place: RulePlace | None = None  # the first that breaks it, else the first that cannot be told
    facts: tuple[str, ...] = ()


class RuleResult(Struct, frozen=True):
    """One rule of a policy: its verdict, the evidence in words, the figures and the place."""

    number: int  # from 1, in the order of the file
    name: str
    kind: str
    verdict: Verdict
    evidence: str
    checked: int = 0
    broken: int = 0
    unknown: int = 0
    worst: float | None = None
    place: RulePlace | None = None


class PolicyResult(Struct, frozen=True):
    """What a policy says: `fail` if a rule fails, else `undetermined` if one is, else `pass`."""

    name: str
    sha256: str  # of the file
    verdict: Verdict
    rules: tuple[RuleResult, ...]


class LoadedPolicy(Struct, frozen=True):
    """A policy with the digest of the file it was read from."""

    policy: Policy
    sha256: str
