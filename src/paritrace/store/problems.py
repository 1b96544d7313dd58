"""What can be wrong with a store; every problem is listed, not the first (ST-11)."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from paritrace.errors import EvidenceError


class ProblemKind(StrEnum):
    MISSING_BUNDLE = "missing_bundle"  # a gap in the sequence
    MISSING_TAIL = "missing_tail"  # the receipt says there are more
    CONFLICTING_SEQUENCE = "conflicting_sequence"  # two bundles of one number: two machines under one node id
    BROKEN_CHAIN = "broken_chain"  # it does not name the digest of the bundle before it
    WRONG_DIGEST = "wrong_digest"  # the bytes are not those its name says
    WRONG_NAME = "wrong_name"  # its content is of another node, rank or sequence
    WRONG_SEGMENT = "wrong_segment"  # a segment's bytes are not those the manifest says
    BAD_SEGMENT = "bad_segment"  # a row of the manifest that we never write
    DAMAGED_BUNDLE = "damaged_bundle"
    DAMAGED_DOCUMENT = "damaged_document"  # receipt, owner, node or run
    CONFLICTING_RECEIPT = "conflicting_receipt"
    FOREIGN_FILE = "foreign_file"  # a name that paritrace does not give
    FOREIGN_RUN = "foreign_run"  # a bundle of another run
    ANOTHER_OWNER = "another_owner"  # a bundle of a machine that does not own the node id
    PATH_ON_TWO_NODES = "path_on_two_nodes"  # one rank, one path, two nodes
    NOT_VISIBLE_HERE = "not_visible_here"  # listed, and not to be opened from here (EV-12)
    UNREADABLE = "unreadable"  # the target reports an error


NOT_CHECKED = frozenset({ProblemKind.NOT_VISIBLE_HERE, ProblemKind.UNREADABLE})


class Problem(Struct, frozen=True, order=True):
    """`name`: the object of the store; `segment`: the path inside it, empty where it concerns the whole object."""

    name: str
    kind: ProblemKind
    segment: str = ""
    detail: str = ""


def in_words(problem: Problem) -> str:
    """Return one line; names are quoted, since they may hold anything."""
    inside = f", segment {problem.segment!r}" if problem.segment else ""
    return f"{problem.kind.value}: {problem.name!r}{inside}: {problem.detail}"


def damaged_store(label: str, problems: Sequence[Problem]) -> EvidenceError:
    """Return the error that lists every problem of a store."""
    return EvidenceError(
        f"{label}: {len(problems)} problem{'s' if len(problems) != 1 else ''}; nothing was written",
        code="damaged_store",
        fix="restore the named objects from a copy, or take the verified part with --partial",
        details=tuple(map(in_words, problems)),
    )
