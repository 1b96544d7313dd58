"""The engine `attach`: ranks that a launcher started, torchrun for one, dial in (SE-16)."""

from collections.abc import Collection

from paritrace.errors import InternalError
from paritrace.files import LOCAL, Files
from paritrace.session.engines.layout import stacks_path
from paritrace.session.engines.lines import Waker, readable_within
from paritrace.session.engines.listening import Listener
from paritrace.session.engines.rendezvous import publish, withdraw
from paritrace.session.engines.seam import Engine, ExitEvidence, FromEngine, RankSpec
from paritrace.session.engines.stacks import stacks_of

LOOPBACK = "127.0.0.1"


class AttachEngine(Engine):
    """Ranks dial in with the token of the session. Nothing here ends one: training goes on without us.

    `host`: the address to listen on. Others than the loopback are for ranks on several machines: the line is not
    encrypted, so the network has to be trusted as far as the launcher's own is.
    """

    def __init__(self, *, host: str = LOOPBACK, files: Files = LOCAL) -> None:
        self._host = host
        self._files = files
        self._spec: RankSpec | None = None
        self._listener: Listener | None = None
        self._waker = Waker()

    @property
    def stops_ranks(self) -> bool:
        return False

    @property
    def rejected(self) -> tuple[str, ...]:
        """Why processes that dialled in were turned away."""
        return tuple(self._listening().rejected)

    def start(self, spec: RankSpec) -> None:
        """Begin to wait for ranks. Raises HostError: `cannot_listen`, or the directory cannot be written."""
        self._spec = spec
        self._listener = Listener(spec, host=self._host)
        publish(self._files, spec, host=self._host, port=self._listener.port)

    def send(self, rank: int, data: bytes) -> bool:
        """Write to a rank. False where it has not joined, its line is closed, or was stuck: it is closed then."""
        one = self._listening().ranks.get(rank)
        if one is None:
            return False
        try:
            one.line.send(data)
        except OSError:
            return False
        return True

    def receive(self, timeout_seconds: float) -> list[FromEngine]:
        """Return what has come; that a rank is gone is told once, after the last that it wrote."""
        listener = self._listening()
        waited = {self._waker.fileno(), *listener.descriptors()}
        readable_within(waited, 0 if listener.has_news() else timeout_seconds)
        self._waker.rest()
        return listener.brought()

    def wake(self) -> None:
        self._waker.wake()

    def dump_stacks(self, ranks: Collection[int]) -> dict[int, str]:
        """As the seam says; ranks of other machines cannot be asked."""
        spec = self._required()
        joined = self._listening().ranks
        asked = {rank: joined[rank] for rank in ranks if rank in joined}
        return stacks_of(
            {
                rank: (one.joined.pid, stacks_path(spec.directory, spec.generation, rank))
                for rank, one in asked.items()
                if one.here and not one.has_ended
            }
        )

    def terminate(self, rank: int) -> None:
        """Nothing: its launcher's to do."""

    def kill(self, rank: int) -> None:
        """Nothing: its launcher's to do."""

    def exit_evidence(self, rank: int) -> ExitEvidence:
        """Return what is known now: a status only of this machine, and where the kernel tells it to others."""
        one = self._listening().ranks.get(rank)
        if one is None:
            return ExitEvidence(rank=rank, pid=None, wait=None, launcher_owned=True, words="it has not joined")
        return ExitEvidence(
            rank=rank,
            pid=one.joined.pid,
            wait=one.wait,
            launcher_owned=True,
            line_closed=one.told,
        )

    def close(self) -> None:
        """Let go of every line; whoever trains goes on."""
        if self._listener is not None:
            self._listener.close()
            withdraw(self._files, self._required())
        self._waker.close()

    def _listening(self) -> Listener:
        if self._listener is None:
            raise InternalError("the engine was not started", code="internal", fix="report this")
        return self._listener

    def _required(self) -> RankSpec:
        if self._spec is None:
            raise InternalError("the engine was not started", code="internal", fix="report this")
        return self._spec
