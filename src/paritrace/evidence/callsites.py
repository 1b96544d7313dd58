"""Which source files were rewritten in memory for level `callsite`, and what in them was left alone (CA-10)."""

from msgspec import Struct

from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import CaptureGap, Gap


class LeftAlone(Struct, frozen=True, array_like=True, gc=False):
    """A call that is not observed, since what it does depends on the frame or the name it is called by.

    `column` is 0-based; `name` is the callee's: `super`, `locals`, `eval` and such.
    """

    line: int
    column: int
    name: str


class RewrittenFile(Definition, frozen=True, tag="rewritten"):
    """One source file of the workload and how many of its calls are observed; coverage is of these sites only.

    `reason` says why a file that was loaded was not rewritten, and is empty where it was. `digest` names the text that
    was compiled.
    """

    file: str  # as `Site.file` is spelt
    digest: str | Gap[CaptureGap]
    num_calls: int
    left_alone: tuple[LeftAlone, ...] = ()
    reason: str = ""
