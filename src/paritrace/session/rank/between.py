"""What is done between two steps beside the commands: runs begin and end; captures, autosaves, previews by cadence."""

from paritrace.session.commands import Body
from paritrace.session.rank import capturing, previewing, running, saving
from paritrace.session.rank.place import Place
from paritrace.session.rank.stepping import NEVER, Gate
from paritrace.session.rank_events import Do


class BetweenSteps:
    """Asked by the gate on the work thread, where it stops. The gate is given once both are made."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.gate: Gate | None = None

    def due(self) -> int:
        """The lowest step at which one of them has something to do."""
        place = self._place
        preview = previewing.next_step(place)
        return min(
            capturing.due(place),
            _next_multiple(place.step, place.spec.autosave_every),
            NEVER if preview is None else preview,
        )

    def arrived(self, step: int) -> None:
        """Steps below `step` are done: what is due by cadence is due by the step's number, so on all ranks alike."""
        place = self._place
        place.step = step
        capturing.arrived(place, step)
        if place.run is None or step == place.run.first_step:
            return
        if place.spec.autosave_every and step % place.spec.autosave_every == 0:
            saving.autosave(place)
        if place.run.preview_every and step % place.run.preview_every == 0:
            previewing.by_cadence(place)

    def departs(self, step: int) -> None:
        place = self._place
        assert self.gate is not None
        place.step, (place.epoch, _) = step, self.gate.admitted
        if running.begin_if_admitted(place, step):
            previewing.enable(place)
        capturing.departs(place, step)

    def ended(self, step: int) -> Body:
        """The run is at its target: its schedule leaves no trace, and the save on pause is made before it is told."""
        place = self._place
        run = running.end(place)
        if run is not None and run.autosave:
            saving.autosave(place)
        live = place.is_live_as
        return {} if live is None else {"checkpoint": saving.digest_now(place, live).facts}

    def done(self, item: Do) -> None:
        """What follows a command while nobody waits for it: the save on pause after a stop."""
        place = self._place
        owed, place.owed = place.owed, []
        for one in owed:
            one()


def _next_multiple(step: int, every: int) -> int:
    return NEVER if every == 0 else (step // every + 1) * every
