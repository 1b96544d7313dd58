"""What a user supplies: one object per rank, with a few methods and as many of the optional ones as it can (SE-1).

Optional methods are discovered by presence and listed in `status` as capabilities: `check`, `release_setup`,
`config_fields`, `plan_config` with `apply_config`, `save` with `inspect` and `apply`, `accepts`, `prepare_inputs` with
`install_inputs` and `publish_inputs`, `preview`, `offers_preview`, `rebuild`, `state_digest`. All are called on the
rank's work thread, none of them twice at a time; only `prepare_inputs`, which stays on the host, has a thread of its
own, so that steps go on meanwhile. Those marked pure must leave everything as it was.

A method that is not pure and raises has changed something, for all that is known, and the session ends in Error. It
raises `Unchanged` where it is certain that nothing resident was touched: then the command is refused instead (SE-7).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

Metrics = Mapping[str, float | int | str]


class Context(Protocol):
    """What a rank is told, and what it may say. Values, never the environment (SE-2)."""

    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    @property
    def local_rank(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in force; during a run with a schedule, with this step's values in it (SE-24, SE-26)."""
        ...

    @property
    def config_revision(self) -> int: ...
    @property
    def store(self) -> str:
        """An `init_method` (`file://…`) for `torch.distributed.init_process_group`, this generation's alone (SE-16)."""
        ...

    @property
    def group_timeout_seconds(self) -> float:
        """The bound `process_group`: the timeout to join the process group with, the last backstop (SE-21)."""
        ...

    @property
    def scratch(self) -> Path:
        """A folder of this rank, emptied at each generation."""
        ...

    def progress(self, stage: str, done: int, total: int | None = None, unit: str = "") -> None:
        """Say how far loading, building, saving or rendering is: it counts as progress of the work (SE-13)."""
        ...

    def deadline(self, seconds: float) -> None:
        """Declare that what goes on now may take so long without progress: loading, compiling (SE-13)."""
        ...

    def warn(self, words: str) -> None:
        """Say something once; it stands in `status` and in the journal."""
        ...


class Unchanged(Exception):  # noqa: N818  it says what has not happened
    """Raised before anything resident has changed: the command is refused, for all of these reasons (SE-7)."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class Refusal(Struct, frozen=True):
    """A planning, inspecting or preparing method returns this to refuse: every reason at once (SE-7, SE-8)."""

    reasons: tuple[str, ...]


RUN_BOUNDARY = "run"  # a field that may change between two steps
REBUILD = "rebuild"  # a field that device state is made from; what is not classified is taken for one (SE-9)


class ConfigField(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One field of a workload's configuration, as `config_fields` declares it (SE-25, SE-26).

    Values are of the default's type; a default of None takes any. Only a default is ever scaled by the number of ranks.
    """

    name: str
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()
    impact: str = REBUILD  # RUN_BOUNDARY or REBUILD
    owned_by_request: bool = False  # a checkpoint's value for it is never taken: where to write, how often
    scaled_by_world_size: bool = False
    share_of: str | None = None  # derived: that field divided evenly among the ranks that joined


class Plan(Struct, frozen=True):
    """What `plan_config` returns: the changes as they would be applied. Its digest must be the same on all ranks.

    `impact` by field: `run` (takes effect at a run boundary) or `rebuild`; a field that is not named needs a rebuild.
    """

    values: dict[str, Any]
    impact: dict[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    payload: object = None  # kept on this rank for `apply_config`; not part of the digest


class Inspected(Struct, frozen=True):
    """What `inspect` returns for a checkpoint that can be applied; kept until apply or discard."""

    step: int
    digest: str  # of the inspected content: compared across ranks where `sharded` is False (SE-30)
    retained_bytes: int  # what is held in host memory until then
    values: dict[str, Any] = field(default_factory=dict[str, Any])  # configuration stored by it (SE-25)
    sharded: bool = False
    notes: tuple[str, ...] = ()
    payload: object = None


class OfRank(str):
    """A name that `save` returns, of a file that another number of ranks does without: a rank's random streams.

    Where ranks other than the first write nothing else, the checkpoint is whole, and any number of ranks loads it.
    """

    __slots__ = ()


class Accepts(Struct, frozen=True):
    """Which checkpoints a workload takes beside those that its own class saved by as many ranks (SE-8).

    `inspect` still judges the content. What was accepted is told by the load, and stands in the journal.
    """

    workloads: tuple[str, ...] = ()  # `module:Class`: another implementation of the same state
    world_sizes: bool = False  # sharded by another number of ranks: `apply` reshards


class InputSet(Struct, frozen=True):
    """What `prepare_inputs` returns, and `load` where it can: the identity of inputs, and what is listed of it (SE-23).

    `facts` belong to the inputs, a vocabulary's size for example: no request may give a value of such a name.
    """

    digest: str
    entries: tuple[dict[str, Any], ...] = ()  # path or store position, size, digest, provenance
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    payload: object = None


class Workload(Protocol):
    """The four methods that every workload has. It is made by `IMPORT_PATH(**arguments)`, arguments from JSON."""

    def load(self, ctx: Context) -> InputSet | None:
        """Read host inputs, and return their identity where it is known."""
        ...

    def build(self, ctx: Context) -> None:
        """Make device state; collectives are allowed."""
        ...

    def step(self, ctx: Context, n: int) -> Metrics:
        """Do exactly step `n`, counted from 0, and return its metrics."""
        ...

    def close(self, ctx: Context) -> None:
        """Let go of everything; called on every path."""
        ...


class CanDeclareFields(Protocol):
    """Where fields are declared, unknown keys and values beyond a limit are refused before `plan_config` is asked."""

    def config_fields(self) -> tuple[ConfigField, ...]: ...  # pure


class CanConfigure(Protocol):
    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Plan | Refusal: ...  # pure
    def apply_config(self, ctx: Context, plan: Plan) -> None: ...


class CanSave(Protocol):
    """`save` is called on every rank, with one folder for all, and returns the names of the files that this rank wrote.

    No two ranks write the same name; where it is not sharded, rank 0 alone writes and the others return `()`.
    `inspect` is pure and sees every failing invariant; `apply` returns the step to go on from.
    """

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]: ...
    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal: ...  # pure
    def apply(self, ctx: Context, inspected: Inspected) -> int: ...


class CanAccept(Protocol):
    def accepts(self) -> Accepts: ...  # pure


class CanTakeInputs(Protocol):
    def prepare_inputs(self, ctx: Context, reference: Mapping[str, Any]) -> InputSet | Refusal: ...  # host side
    def install_inputs(self, ctx: Context, prepared: InputSet) -> None: ...
    def publish_inputs(self, ctx: Context, prepared: InputSet) -> None: ...


class CanPreview(Protocol):
    """Called on rank 0 alone, or on the ranks that offer one, while all stay parked (SE-35). It returns the names of
    the files it wrote, or, once the state has been copied, a function that writes them while steps go on (SE-32)."""

    def preview(
        self, ctx: Context, folder: Path, options: Mapping[str, Any]
    ) -> tuple[str, ...] | Callable[[], tuple[str, ...]]: ...


class CanOfferPreview(Protocol):
    """Whether this rank has something to show; asked once it is built. Without it, rank 0 alone has."""

    def offers_preview(self, ctx: Context) -> bool: ...  # pure


class CanRebuild(Protocol):
    def rebuild(self, ctx: Context, request: Mapping[str, Any]) -> None: ...


class CanDigest(Protocol):
    def state_digest(self, ctx: Context) -> str: ...


class CanCheck(Protocol):
    def check(self, ctx: Context) -> tuple[str, ...]: ...  # what is missing: device, packages; before long loading


class CanReleaseSetup(Protocol):
    def release_setup(self, ctx: Context) -> None: ...
