"""A workload as a request names it, the order that its ranks get, and what each rank leaves (AU-4, AU-15, AU-22)."""

from typing import Annotated

from msgspec import Meta, Struct

from paritrace.automation.protocol.records import FilePath, Sha256, UniqueRanks
from paritrace.automation.protocol.troubles import Trouble
from paritrace.capture.plans import Plan, Steps
from paritrace.evidence.ids import ProcessIdentity

Word = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
VariableName = Annotated[str, Meta(min_length=1, pattern=r"^[^=\x00]+$")]

ORDER = "order.json"  # in the output: what the launcher gives each rank; without values of the environment
RANKS = "ranks"  # in the output: one folder a rank, made when it begins
BEGUN = "begun.json"
COMPLETION = "completion.json"
STORE = "store"
RUN = "run"


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is run. `launcher` is a command that takes `-m MODULE ARG…` as `python` and `torchrun` do.

    `env` comes on top of the caller's own environment; its values are in the request alone.
    """

    cwd: FilePath
    launcher: Annotated[tuple[Word, ...], Meta(min_length=1)]
    script: FilePath  # a Python file, below `cwd` unless absolute
    args: tuple[Word, ...] = ()
    env: dict[VariableName, Word] = {}
    ranks: UniqueRanks


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of the workload's numerical settings is changed: nothing, or the named list of switches (CA-21)."""

    deterministic: bool = False


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every rank of one operation is to do, alike on all nodes. Without `plan` it discovers."""

    action: str
    request_sha256: Sha256
    output: str
    store: str
    local_root: str
    run_id: str
    cwd: str
    script: str
    args: tuple[str, ...]
    ranks: tuple[int, ...]
    deterministic: bool
    steps: Steps
    declared_steps: bool
    regions: int
    plan: Plan | None = None


class Begun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rank that has begun; written before its workload."""

    rank: int
    process: ProcessIdentity


class Completion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rank's one receipt, written after the exit callbacks of its workload and after its staging was flushed.

    `loaded`: the planned files that it loaded, each with the SHA-256 of what was compiled (AU-19). `elsewhere`: what it
    loaded from outside the checkout, as a reason by package or file. `exit_status` is null where the workload did not
    run.
    """

    rank: int
    world_size: int
    node_id: str
    process: ProcessIdentity
    session_id: str
    exit_status: int | None
    calls: int
    bundles: int
    troubles: tuple[Trouble, ...]
    loaded: dict[str, str]
    not_as_planned: dict[str, str]
    elsewhere: dict[str, str]
