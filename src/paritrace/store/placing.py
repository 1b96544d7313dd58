"""Where each stream of a store goes in a restored run: the last one of a name gets it; pure (ST-1, ST-4, ST-11)."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from paritrace.store.chain import Chain, Stream, StreamKey
from paritrace.store.layout import RankKey, folders_of
from paritrace.store.problems import Problem, ProblemKind

VERSIONS = ".paritrace-versions"  # hidden: readers of a run see the last version of every file alone


class Placed(Struct, frozen=True):
    """`to`: relative to the restored run."""

    key: RankKey
    stream: StreamKey
    to: str


def placements(chain: Chain) -> list[Placed]:
    """Return where the streams of one rank go: the newest of a path there, older ones into the folder of versions."""
    taken: set[str] = set()
    folders: set[str] = set()
    found: list[Placed] = []
    newest_first = sorted(chain.streams.values(), key=_age, reverse=True)
    for stream in newest_first:
        above = set(folders_of(stream.path))
        if stream.path in taken or stream.path in folders or above & taken:
            found.append(Placed(chain.key, stream.key, _as_version(chain.key, stream.key)))
            continue
        taken.add(stream.path)
        folders |= above
        found.append(Placed(chain.key, stream.key, f"rank-{chain.key.rank}/{stream.path}"))
    return found


def collisions(placed: Iterable[Placed]) -> Iterator[Problem]:
    """Yield the paths that one rank has on two nodes: they cannot both be restored under it."""
    seen: dict[str, Placed] = {}
    for one in placed:
        other = seen.setdefault(one.to, one)
        if other is not one:
            detail = f"rank {one.key.rank} published it on node {other.key.node_id} and on node {one.key.node_id}"
            yield Problem(one.to, ProblemKind.PATH_ON_TWO_NODES, detail=detail)


def node_facts_path(key: RankKey) -> str:
    """Return where a node's facts go in the folder of a rank."""
    return f"rank-{key.rank}/paritrace-node.{key.node_id}.json"


def _age(stream: Stream) -> tuple[int, int, str]:
    return stream.sequence, stream.key.version, stream.key.origin


def _as_version(key: RankKey, stream: StreamKey) -> str:
    return f"{VERSIONS}/{key.node_id}/rank-{key.rank}/{stream.origin}.v{stream.version}"
