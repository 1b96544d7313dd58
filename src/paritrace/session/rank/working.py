"""Every round that the work thread does: one function for each (kind, round), and what its outcome is called (SE-7)."""

from collections.abc import Callable
from types import MappingProxyType

from paritrace.session.commands import Kind
from paritrace.session.messages import RoundName
from paritrace.session.rank import running
from paritrace.session.rank.closing import Closing, close
from paritrace.session.rank.place import Declined, Outcome, Place, Task
from paritrace.session.rank_events import Do, Done
from paritrace.session.workload import Unchanged

_DOES: MappingProxyType[tuple[Kind, RoundName], Callable[[Task], Outcome]] = MappingProxyType(
    {
        (Kind.RUN, RoundName.VOTE): running.vote,
        (Kind.STOP, RoundName.ACT): running.stop,
    }
)


class Working:
    """Does one round after the other and never raises what a workload raises."""

    def __init__(self, place: Place, closing: Closing) -> None:
        self._place = place
        self._closing = closing

    def perform(self, item: Do, /) -> Done:
        """Do a round. `Done.released` says whether something resident may have changed before a fault (SE-7)."""
        task = Task(self._place, item)
        try:
            outcome = self._function(item)(task)
        except (Declined, Unchanged) as refusal:
            return self._not_done(item, refusal, released=False)
        except Exception as error:  # noqa: BLE001  the workload's own code: whatever it raises is its answer
            return self._not_done(item, error, released=task.released)
        return Done(
            item.command_id,
            item.name,
            ok=True,
            released=task.released,
            digest=outcome.digest,
            config_revision=outcome.config_revision,
            step=outcome.step,
            notes=outcome.notes,
            facts=outcome.facts,
        )

    def _function(self, item: Do) -> Callable[[Task], Outcome]:
        if item.name is RoundName.ABORT:
            return _abort
        if item.name is RoundName.CLOSE:
            return lambda task: close(task, self._closing)
        return _DOES[item.kind, item.name]

    def _not_done(self, item: Do, error: Exception, *, released: bool) -> Done:
        return Done(item.command_id, item.name, ok=False, released=released, reasons=self._place.reasons_of(error))


def _abort(task: Task) -> Outcome:
    """Let go of what this command prepared, planned or inspected."""
    place = task.place
    if place.retained.pop(task.command_id, None) is None:
        place.abandoned.add(task.command_id)  # its preparation may be under way; what it brings is let go of then
    running.discard(place)
    return Outcome()
