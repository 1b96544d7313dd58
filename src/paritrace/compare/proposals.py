"""Records of proposed maps of names: what equal sums of parameters suggest, for a person to review (CP-5)."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct


class ReviewState(StrEnum):
    PROPOSED = "proposed"  # nobody has looked at it: `compare --map FILE` refuses the file
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class ProposedMap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `--map`, why it is proposed, and what a person says of it."""

    rule: str
    evidence: str
    review: ReviewState = ReviewState.PROPOSED
    reason: str = ""


class Related(StrEnum):
    FUSED = "fused"  # one parameter holds the elements of several
    SHARDS = "shards"  # ranks hold parts of what the other run has whole
    OTHER_SHAPE = "other_shape"  # the same elements in another shape: transposed or reshaped
    OTHER_ORDER = "other_order"  # the same elements and shape, read in another order


class RelatedParameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters whose elements are the same though no map of names makes them one; `use` says what does."""

    relation: Related
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    evidence: str
    use: str = ""


class Ambiguous(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters with equal sums of which several could be meant; nothing is proposed."""

    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    why: str


class NameMap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of maps. `compare --map FILE` takes its accepted maps, once a named person has looked at all of them."""

    format: Literal["paritrace-name-map"]
    version: Literal["1.0"]
    baseline: str  # run ids and SHA-256 of run.json, as evidence of where it comes from
    candidate: str
    scheme: str
    step: int
    reviewer: str = ""
    maps: tuple[ProposedMap, ...] = ()
    related: tuple[RelatedParameters, ...] = ()
    ambiguous: tuple[Ambiguous, ...] = ()
    only_baseline: tuple[str, ...] = ()  # parameters that nothing matches
    only_candidate: tuple[str, ...] = ()
