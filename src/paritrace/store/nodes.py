"""What a node says of itself, kept in staging so that it says it once (ST-5)."""

from pathlib import Path

from paritrace.errors import HostError
from paritrace.files import Files
from paritrace.store.documents import canonical
from paritrace.store.layout import StagedRank
from paritrace.store.records import NodeFacts


def path_of(place: StagedRank) -> Path:
    """Return where the node's facts lie in staging."""
    return place.node_state / "node.json"


def staged(place: StagedRank, facts: NodeFacts, *, files: Files) -> bytes:
    """Return the bytes that the node publishes: those of its first start in this run.

    Raises:
        HostError: Refused, what the disk says.
    """
    try:
        files.create(path_of(place), (canonical(facts),))
    except HostError as error:
        if error.code != "already_there":
            raise
    return files.read(path_of(place))
