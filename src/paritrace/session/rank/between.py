"""What is done between two steps beside the commands: a run begins, ends, and what it brings with it (SE-10, SE-24)."""

from paritrace.session.commands import Body
from paritrace.session.rank import running
from paritrace.session.rank.place import Place
from paritrace.session.rank.stepping import NEVER, Gate
from paritrace.session.rank_events import Do


class BetweenSteps:
    """Asked by the gate on the work thread, where it stops. The gate is given once both are made."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.gate: Gate | None = None

    def due(self) -> int:
        return NEVER

    def arrived(self, step: int) -> None:
        self._place.step = step

    def departs(self, step: int) -> None:
        place = self._place
        assert self.gate is not None
        place.step, (place.epoch, _) = step, self.gate.admitted
        running.begin_if_admitted(place, step)

    def ended(self, step: int) -> Body:
        running.end(self._place)
        return {}

    def done(self, item: Do) -> None:
        place = self._place
        owed, place.owed = place.owed, []
        for one in owed:
            one()
