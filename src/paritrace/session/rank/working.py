"""Every round that the work thread does: one function for each (kind, round), and what its outcome is called (SE-7)."""

from collections.abc import Callable
from types import MappingProxyType

from paritrace.session.commands import Kind
from paritrace.session.messages import RoundName
from paritrace.session.rank import capturing, configuring, loading, previewing, running, saving, supplying
from paritrace.session.rank.closing import Closing, close
from paritrace.session.rank.place import Outcome, Place, Task
from paritrace.session.rank.plain import require_plain
from paritrace.session.rank.stepping import Leaving
from paritrace.session.rank_events import Do, Done


def stop(task: Task) -> Outcome:
    """The rank is parked, its device drained: what is left of its run is given up. The save on pause follows."""
    place = task.place
    run = running.end(place)
    if run is None or run.autosave:
        place.owed.append(lambda: saving.autosave(place))
    return Outcome(facts={"drained": True, "step": place.step})


_DOES: MappingProxyType[tuple[Kind, RoundName], Callable[[Task], Outcome]] = MappingProxyType(
    {
        (Kind.RUN, RoundName.VOTE): running.vote,
        (Kind.STOP, RoundName.ACT): stop,
        (Kind.CONFIGURE, RoundName.PREPARE): configuring.prepare,
        (Kind.CONFIGURE, RoundName.VOTE): configuring.vote,
        (Kind.CONFIGURE, RoundName.ACT): configuring.act,
        (Kind.REBUILD, RoundName.PREPARE): configuring.prepare,
        (Kind.REBUILD, RoundName.VOTE): configuring.vote_rebuild,
        (Kind.REBUILD, RoundName.ACT): configuring.act_rebuild,
        (Kind.SAVE, RoundName.VOTE): saving.vote,
        (Kind.SAVE, RoundName.ACT): saving.act,
        (Kind.LOAD, RoundName.VOTE): loading.vote,
        (Kind.LOAD, RoundName.ACT): loading.act,
        (Kind.INPUTS, RoundName.PREPARE): supplying.prepare,
        (Kind.INPUTS, RoundName.VOTE): supplying.vote,
        (Kind.INPUTS, RoundName.ACT): supplying.act,
        (Kind.INPUTS, RoundName.PUBLISH): supplying.publish,
        (Kind.PREVIEW, RoundName.VOTE): previewing.vote,
        (Kind.PREVIEW, RoundName.ACT): previewing.act,
        (Kind.CAPTURE, RoundName.VOTE): capturing.vote,
        (Kind.CAPTURE, RoundName.ACT): capturing.act,
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
            require_plain(outcome, Outcome)
        except Leaving:
            raise
        except BaseException as error:  # noqa: BLE001  the workload's own code: whatever it raises, `sys.exit` too
            return self._not_done(item, error, released=task.released(error))
        return Done(
            item.command_id,
            item.name,
            ok=True,
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

    def _not_done(self, item: Do, error: BaseException, *, released: bool) -> Done:
        return Done(item.command_id, item.name, ok=False, released=released, reasons=self._place.reasons_of(error))


def _abort(task: Task) -> Outcome:
    """Let go of what this command prepared, planned or inspected."""
    place = task.place
    if task.kind is Kind.SAVE:
        saving.undo(task)
    elif task.kind is Kind.PREVIEW:
        previewing.undo(task)
    supplying.abandon(place, task.command_id)
    running.discard(place)  # of no other command: a run is admitted, or aborted, before there is a next one
    return Outcome()
