"""What an artifact's device time adds up to, as a bounded document (IN-9)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from paritrace.files import LOCAL, Files
from paritrace.inference.account_beside import beside
from paritrace.inference.artifact import Events, head_of, place_of
from paritrace.inference.device_time import account
from paritrace.inference.result import VERSION, AccountReport
from paritrace.inference.shares import ShareModel, members_of, shared
from paritrace.inference.sources import source_of

ACCOUNT_FORMAT = "paritrace-infer-account"
MOST_LISTED = 1000  # of iterations, of losses, of shared work: a document is bounded, the numbers are always there
Item = TypeVar("Item")


def account_artifact(path: Path, *, model: ShareModel | None = None, files: Files = LOCAL) -> AccountReport:
    """Return the device time of an artifact, its losses, and shares of requests where a model is named.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    place = place_of(path)
    head = head_of(place, files=files)
    events = Events(place, files=files)
    found = account(events)
    told = beside(events)
    shares = () if model is None else shared(found.iterations, members_of(events), model=model)
    return AccountReport(
        format=ACCOUNT_FORMAT,
        version=VERSION,
        artifact=source_of(place, head.context.facts.run_id, files=files),
        devices=found.devices,
        unmeasured_without_device=found.unmeasured_without_device,
        num_iterations=len(found.iterations),
        iterations=first_of(found.iterations),
        iterations_left_out=left_out(found.iterations),
        loss=first_of(found.loss),
        loss_left_out=left_out(found.loss),
        shares=first_of(shares),
        shares_left_out=left_out(shares),
        sources=told.sources,
        steps=told.steps,
    )


def first_of(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return as many of a list as a document shows."""
    return tuple(items[:MOST_LISTED])


def left_out(items: Sequence[object]) -> int:
    """Return how many of a list a document does not show."""
    return max(0, len(items) - MOST_LISTED)
