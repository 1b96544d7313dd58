"""What a capture is asked to record: one typed record, built in one place and never read from the environment here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from paritrace.capture.declared_mesh import Dimensions
from paritrace.capture.plans import Plan
from paritrace.errors import RequestError
from paritrace.evidence.calls import Level

DEFAULT_STEPS = (0, 3)  # CA-2: module for steps 0 to 2
DEFAULT_MAX_BYTES = 2 << 30  # CA-2
DEFAULT_REGIONS = 4  # CA-6
DEFAULT_DUMP_BYTES = 1 << 30  # CA-9: some hundred activations of a model with billions of parameters
DEFAULT_BLACK_BOX_BYTES = 256 << 20  # 20 steps of 100 modules with 1 kB a slot take some 10 MB; this bounds large ones
SUPPORTED_LEVELS = frozenset({Level.DIGEST, Level.MODULE, Level.CALLSITE, Level.OP})
_SIZE = re.compile(r"^(\d+)\s*(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?$")
_PERCENT = re.compile(r"^(\d{1,6}(?:\.\d{1,6})?)\s*%$")
_UNITS = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


class QueueFull(StrEnum):
    """What happens when the writer cannot keep up (CA-13)."""

    BLOCK = "block"
    DROP = "drop"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Patterns (shell style) of modules, files or functions, as `module:P`, `file:P`, `function:P`; bare is module."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def wants(self, *, module: str, file: str, function: str) -> bool:
        """Whether a call of this module path, file and function is to be recorded."""
        facts = {"module": module, "file": file, "function": function}
        if any(_matches(pattern, facts) for pattern in self.exclude):
            return False
        return not self.select or any(_matches(pattern, facts) for pattern in self.select)

    def excludes_file(self, file: str) -> bool:
        """Whether no call of this file is to be recorded, of whatever module and function."""
        return any(pattern.startswith("file:") and _matches(pattern, {"file": file}) for pattern in self.exclude)

    @property
    def everything(self) -> bool:
        """Whether nothing is left out, so that calls need no look."""
        return not self.select and not self.exclude


@dataclass(frozen=True, kw_only=True)
class CaptureSettings:
    """Settings of one capture (CA-2, CA-13, CA-20, CA-21, CA-24, CA-26, CA-30).

    `steps` is half-open and bounds the levels above `digest`; `declared_steps` says that the user named them, so that
    coverage may speak of expected steps (CA-24).
    """

    levels: frozenset[Level] = frozenset({Level.DIGEST, Level.MODULE})
    steps: tuple[int, int] = DEFAULT_STEPS
    declared_steps: bool = False
    regions: int = DEFAULT_REGIONS
    statistics: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES
    queue_full: QueueFull = QueueFull.BLOCK
    selection: Selection = field(default_factory=Selection)
    callsite_files: tuple[str, ...] = ()  # patterns of files rewritten beside the workload's own (CA-10)
    plan: Plan | None = None  # at level callsite these files and call sites only (CA-11)
    callsite_values: bool = True  # without: which tensors a call carries, and no byte of them is read (CA-11)
    sources: bool = True
    diff: bool = True
    argv: bool = True
    deterministic: bool = False
    eager: bool = False
    estimate: bool = False
    black_box: bool = False  # CA-36
    black_box_bytes: int = DEFAULT_BLACK_BOX_BYTES
    budget: float | None = None  # of the workload's own time of a step; None lowers nothing (CA-2)
    mesh: Dimensions = ()  # what the ranks mean, where torch does not show it (CA-3)
    check_reuse: bool = False  # debug: recompute every inherited fingerprint and count the stale ones (CA-32)
    dump: Selection = field(default_factory=Selection)  # calls whose slots are kept whole; nothing by default (CA-9)
    golden: tuple[str, ...] = ()  # patterns of modules whose calls are kept so that they can be replayed (CA-9)
    dump_bytes: int = DEFAULT_DUMP_BYTES
    perturb_seed: int = 0  # this run is a perturbed one, drawn with this seed (CP-10a); 0: nothing is moved
    rows: tuple[str, ...] = ()  # modules whose outputs are kept token by token where rows are declared (CP-27)
    upcast: str = ""  # run wider: float32 or float64 (CP-10b); "": as it is
    title: str = ""
    tags: tuple[str, ...] = ()
    ranks: tuple[int, ...] | None = None  # the ranks that are captured; None: all

    def __post_init__(self) -> None:
        if not 1 <= self.regions <= 64:
            raise RequestError(
                f"--regions {self.regions} is outside 1 to 64", code="bad_regions", fix="give a number from 1 to 64"
            )
        unsupported = self.levels - SUPPORTED_LEVELS
        if unsupported:
            raise _unsupported(unsupported)
        if self.keeps_tensors and self.levels <= {Level.DIGEST}:
            raise RequestError(
                "--dump and --golden keep tensors of recorded calls, and level digest records none",
                code="dump_without_calls",
                fix="leave --level out, or give --level module or op",
            )
        if not 0 <= self.steps[0] < self.steps[1]:
            raise RequestError(
                f"--steps {self.steps[0]}:{self.steps[1]} holds no step", code="bad_steps", fix="give A:B with A < B"
            )

    @property
    def keeps_tensors(self) -> bool:
        """Whether any tensor is kept whole."""
        return bool(self.dump.select or self.golden)

    def covers(self, step: int) -> bool:
        """Whether levels above `digest` are recorded at this step."""
        return self.steps[0] <= step < self.steps[1]


def parse_steps(text: str) -> tuple[int, int]:
    """`A:B`, half-open; a bare `N` means step N alone. Raises `RequestError` (Refused)."""
    try:
        first, colon, last = text.partition(":")
        start = int(first) if first or not colon else 0
        return (start, int(last)) if colon else (start, start + 1)
    except ValueError:
        raise RequestError(
            f"--steps {text!r} is not A:B", code="bad_steps", fix="give for example --steps 0:3"
        ) from None


def parse_bytes(text: str) -> int:
    """A size such as `2GiB`, `500MB` or `4096`, in bytes. Raises `RequestError` (Refused)."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise RequestError(f"{text!r} is not a size", code="bad_size", fix="give for example --max-bytes 2GiB")
    return int(match[1]) * _UNITS[match[2] or "B"]


def parse_budget(text: str) -> float:
    """A share such as `5%` as a fraction. Raises `RequestError` (Refused)."""
    match = _PERCENT.match(text.strip())
    if match is None or float(match[1]) <= 0:
        raise RequestError(f"{text!r} is not a share of time", code="bad_budget", fix="give for example --budget 5%")
    return float(match[1]) / 100


def parse_levels(names: tuple[str, ...]) -> frozenset[Level]:
    """The levels named, `digest` always among them; none named means `digest` and `module` (CA-2)."""
    if not names:
        return frozenset({Level.DIGEST, Level.MODULE})
    unknown = set(names) - set(Level)
    if unknown:
        raise _unsupported(unknown)
    return frozenset({Level.DIGEST, *(Level(name) for name in names)})


def _unsupported(names: Iterable[str]) -> RequestError:
    return RequestError(
        f"level {', '.join(sorted(map(str, names)))} is not available in this version",
        code="level_unsupported",
        fix="use digest, module, callsite or op",
    )


def _matches(pattern: str, facts: dict[str, str]) -> bool:
    kind, colon, rest = pattern.partition(":")
    if colon and kind in facts:
        return fnmatchcase(facts[kind], rest)
    return fnmatchcase(facts["module"], pattern)
