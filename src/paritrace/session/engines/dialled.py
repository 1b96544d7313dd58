"""What engines have in common whose ranks dial in, whoever has started them (SE-16)."""

from collections.abc import Collection

from paritrace.errors import InternalError
from paritrace.session.engines.layout import stacks_path
from paritrace.session.engines.lines import Waker, readable_within
from paritrace.session.engines.listening import Listener
from paritrace.session.engines.seam import Engine, FromEngine, RankSpec, TurnedAway
from paritrace.session.engines.stacks import stacks_of


class DialledEngine(Engine):
    """Its `start` sets `_spec` and `_listener`."""

    def __init__(self) -> None:
        self._spec: RankSpec | None = None
        self._listener: Listener | None = None
        self._waker = Waker()

    @property
    def turned_away(self) -> tuple[TurnedAway, ...]:
        return () if self._listener is None else tuple(self._listener.turned_away.values())

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
        return stacks_of(
            {
                rank: (one.joined.pid, stacks_path(spec.directory, spec.generation, rank))
                for rank, one in joined.items()
                if rank in ranks and one.here and not one.has_ended
            }
        )

    def _listening(self) -> Listener:
        if self._listener is None:
            raise _not_started()
        return self._listener

    def _required(self) -> RankSpec:
        if self._spec is None:
            raise _not_started()
        return self._spec


def _not_started() -> InternalError:
    return InternalError("the engine was not started", code="internal", fix="report this")
