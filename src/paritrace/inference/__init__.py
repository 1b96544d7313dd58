"""Inference evidence: requests, scheduler iterations, device work, and what was lost.

The records of events, the protocols of collectors, and `append`, `read`, `link`, `resolve`, `account` (IN-25).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paritrace.inference.api import Activity as Activity
    from paritrace.inference.api import AppendOptions as AppendOptions
    from paritrace.inference.api import Artifact as Artifact
    from paritrace.inference.api import Attribution as Attribution
    from paritrace.inference.api import Basis as Basis
    from paritrace.inference.api import Capabilities as Capabilities
    from paritrace.inference.api import ClockAlignment as ClockAlignment
    from paritrace.inference.api import ClockKind as ClockKind
    from paritrace.inference.api import Collected as Collected
    from paritrace.inference.api import CollectionMode as CollectionMode
    from paritrace.inference.api import Committed as Committed
    from paritrace.inference.api import Context as Context
    from paritrace.inference.api import ContextFacts as ContextFacts
    from paritrace.inference.api import Domain as Domain
    from paritrace.inference.api import EngineAdapter as EngineAdapter
    from paritrace.inference.api import Events as Events
    from paritrace.inference.api import Iteration as Iteration
    from paritrace.inference.api import Link as Link
    from paritrace.inference.api import LinkReason as LinkReason
    from paritrace.inference.api import Loss as Loss
    from paritrace.inference.api import LossReason as LossReason
    from paritrace.inference.api import LossStatus as LossStatus
    from paritrace.inference.api import Membership as Membership
    from paritrace.inference.api import ProfilerTrace as ProfilerTrace
    from paritrace.inference.api import Provenance as Provenance
    from paritrace.inference.api import Ref as Ref
    from paritrace.inference.api import Request as Request
    from paritrace.inference.api import SessionFacts as SessionFacts
    from paritrace.inference.api import Stage as Stage
    from paritrace.inference.api import TraceCollector as TraceCollector
    from paritrace.inference.api import account as account
    from paritrace.inference.api import append as append
    from paritrace.inference.api import init as init
    from paritrace.inference.api import link as link
    from paritrace.inference.api import read as read
    from paritrace.inference.api import resolve as resolve

__all__ = [
    "Activity",
    "AppendOptions",
    "Artifact",
    "Attribution",
    "Basis",
    "Capabilities",
    "ClockAlignment",
    "ClockKind",
    "Collected",
    "CollectionMode",
    "Committed",
    "Context",
    "ContextFacts",
    "Domain",
    "EngineAdapter",
    "Events",
    "Iteration",
    "Link",
    "LinkReason",
    "Loss",
    "LossReason",
    "LossStatus",
    "Membership",
    "ProfilerTrace",
    "Provenance",
    "Ref",
    "Request",
    "SessionFacts",
    "Stage",
    "TraceCollector",
    "account",
    "append",
    "init",
    "link",
    "read",
    "resolve",
]


def __getattr__(name: str) -> object:
    """Public names are imported when they are first used: the package alone costs no NumPy."""
    if name in __all__:
        return vars(import_module("paritrace.inference.api"))[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
