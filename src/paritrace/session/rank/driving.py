"""The loop of a workload: one boundary, one step, again and again, until the rank leaves (SE-1)."""

from typing import NoReturn

from paritrace.errors import ParitraceError
from paritrace.session.commands import Reason
from paritrace.session.rank import configuring, running
from paritrace.session.rank.context import Measured
from paritrace.session.rank.place import Place
from paritrace.session.rank.stepping import Gate, Leaving


def drive(gate: Gate, place: Place) -> NoReturn:
    """Take steps as the gate lets them begin; a step that raises is told, and no other one begins.

    Raises:
        Leaving: the way out.
    """
    step = place.step
    while True:
        try:
            step = gate.boundary(step)
        except ParitraceError as error:
            gate.broke(step, (place.reason(error.code, error.message),))
        take(gate, place, step)
        step += 1


def take(gate: Gate, place: Place, step: int) -> None:
    """Take one step."""
    place.step = step
    running.set_scheduled(place, step)
    try:
        admitted = gate.admitted
        place.context.metrics = Measured(step, *admitted, place.workload.step(place.context, step))
    except Leaving:
        raise
    except BaseException as error:  # noqa: BLE001  the workload's own code: `sys.exit` too is told, and work ends
        reasons = place.reasons_of(error, code="step_raised")
        gate.broke(step, (*reasons, *_put_back(place)))
    place.steps_taken += 1
    place.before = None


def _put_back(place: Place) -> tuple[Reason, ...]:
    """Values whose first step did not come to its end are put back, and it is said (SE-33)."""
    try:
        words = configuring.put_back(place)
    except Exception as error:  # noqa: BLE001  the workload's own code, after it has failed already
        return place.reasons_of(error, code="not_put_back")
    return () if words is None else (place.reason("values_put_back", words),)
