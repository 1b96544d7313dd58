"""The life of a rank that Ray placed: one actor, its output in the rank's log, dialled in like any other (SE-16)."""

import os

import msgspec

from paritrace.process.ray_pool import require_ray
from paritrace.session.engines.layout import log_path, stacks_path
from paritrace.session.engines.local_child import called
from paritrace.session.engines.rendezvous import dialled
from paritrace.session.engines.seam import RankSpec
from paritrace.session.engines.stacks import dump_on_signal


class RankActor:
    """Made remote by the engine; one call at a time."""

    def node(self) -> str:
        """Where it is: asked once it has been placed."""
        return str(require_ray().get_runtime_context().get_node_id())

    def serve(self, spec: bytes, serve: str, *, rank: int, local_rank: int, host: str, port: int) -> int:
        """Be a rank until it leaves; return its exit status."""
        given = msgspec.json.decode(spec, type=RankSpec)
        _output_to(given, rank)
        dump_on_signal(stacks_path(given.directory, given.generation, rank))
        return int(called(serve)(dialled(host, port), given, rank=rank, local_rank=local_rank))


def _output_to(spec: RankSpec, rank: int) -> None:
    """Standard output and error go to the rank's log, which every node sees in the session's directory."""
    path = log_path(spec.directory, spec.generation, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
