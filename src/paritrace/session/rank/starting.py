"""How a workload becomes resident: checked, loaded, built, told of (SE-1, SE-34)."""

from paritrace.session.commands import Body
from paritrace.session.rank import configuring, loading, previewing, supplying
from paritrace.session.rank.place import Declined, Place
from paritrace.session.workload import InputSet


def start(place: Place) -> Body:
    """Check, load and build; return what is told of it. Raises Declined, or whatever the workload raises."""
    workload, context = place.workload, place.context
    if place.can("check"):
        context.enter("checking")
        missing = tuple(workload.check(context))
        if missing:
            raise Declined(*(place.reason("check_failed", words) for words in missing))
    chosen = loading.start_from(place)
    configuring.first(place, None if chosen is None else chosen[1].manifest.origin.values)
    context.enter("loading")
    told = workload.load(context)
    supplying.hold(place, told if isinstance(told, InputSet) else None, generation=0)
    context.enter("building")
    workload.build(context)
    stored = place.spec.inputs_digest if chosen is None else chosen[1].manifest.origin.inputs.get("digest")
    context.enter("loading")
    if place.spec.inputs_reference is None:
        supplying.again(place, stored)
    else:
        supplying.instead(place, place.spec.inputs_reference)
    resumed = {}
    if chosen is not None:
        context.enter("resuming")
        resumed = {**loading.resume(place, chosen[0]), **chosen[2]}
        for words in chosen[2].get("rejected", ()):
            context.warn(f"not started from {words}")
    if place.can("release_setup"):
        workload.release_setup(context)
    place.offers_preview = previewing.offered(place)
    context.enter("")
    digest = place.state_digest
    facts: Body = {"inputs": place.inputs.facts, "config": configuring.told(place), **resumed}
    return facts if digest is None else {**facts, "state_digest": digest}
