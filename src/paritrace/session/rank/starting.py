"""How a workload becomes resident: checked, loaded, built, told of (SE-1, SE-34)."""

from paritrace.session.commands import Body
from paritrace.session.rank.place import Declined, InputsHeld, Place
from paritrace.session.workload import InputSet


def start(place: Place) -> Body:
    """Check, load and build; return what is told of it. Raises Declined, or whatever the workload raises."""
    workload, context = place.workload, place.context
    if place.can("check"):
        context.enter("checking")
        missing = tuple(workload.check(context))
        if missing:
            raise Declined(*(place.reason("check_failed", words) for words in missing))
    context.enter("loading")
    told = workload.load(context)
    place.inputs = InputsHeld(known=told if isinstance(told, InputSet) else None)
    context.enter("building")
    workload.build(context)
    if place.can("release_setup"):
        workload.release_setup(context)
    context.enter("")
    digest = place.state_digest
    return {"inputs": place.inputs.facts, **({} if digest is None else {"state_digest": digest})}
