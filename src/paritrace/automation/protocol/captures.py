"""The results of discover, prepare and trace: each is an input of later requests (AU-5 to AU-7, AU-16)."""

from msgspec import Struct

from paritrace.automation.observed_sites import ObservedFile
from paritrace.automation.protocol.records import Result, Sha256
from paritrace.capture.plans import Plan


class RankFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rank of a capture: where it ran, and how much of it there is."""

    rank: int
    node_id: str
    session_id: str
    calls: int
    bundles: int


class CaptureResult(Result, frozen=True, kw_only=True):
    """A whole capture. `run`: its run directory; `checkout`: the root that files are named from."""

    run: str
    run_id: str
    checkout: str
    cwd: str
    script: str
    deterministic: bool
    environment_names: tuple[str, ...]
    ranks: tuple[RankFacts, ...]


class DiscoverResult(CaptureResult, frozen=True, kw_only=True, tag="discover"):
    """`main`: the script below the checkout. `elsewhere`: what was loaded from outside of it, as a reason by package
    or file."""

    main: str
    files: tuple[ObservedFile, ...]
    elsewhere: dict[str, str]


class PrepareResult(Result, frozen=True, kw_only=True, tag="prepare"):
    """`configuration` and `plan_file` are in the output; `discovery`: the digest of what this was made of."""

    configuration: str
    plan_file: str
    discovery: Sha256
    checkout: str
    cwd: str
    script: str
    plan: Plan


class TraceResult(CaptureResult, frozen=True, kw_only=True, tag="trace"):
    """`plan`: the digest of the result that it was captured by. `sources`: the planned files that ranks loaded, with
    their SHA-256; `not_loaded`: those that no rank did."""

    plan: Sha256
    coverage: str
    sources: dict[str, Sha256]
    not_loaded: tuple[str, ...]
