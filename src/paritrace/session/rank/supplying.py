"""Inputs on this rank: prepared on the host, installed, published; each set has an identity (SE-9, SE-23)."""

from pathlib import Path
from typing import Any

from msgspec import json as msgspec_json

from paritrace.errors import HostError
from paritrace.session.commands import MAX_LINES, Body, Reason, bounded
from paritrace.session.kept_records import INPUTS, InputsManifest
from paritrace.session.rank.place import Declined, InputsHeld, Outcome, Place, Task
from paritrace.session.rank.plain import require_plain
from paritrace.session.workload import InputSet, Refusal

_ENCODER = msgspec_json.Encoder(order="sorted")


def prepare(task: Task) -> Outcome:
    """Read a candidate on the host, while steps go on. Ranks that prepared different sets refuse by its digest."""
    task.only("reference")
    return prepared_for(task, task.body.get("reference"))


def prepared_for(task: Task, reference: object, *, besides: tuple[Reason, ...] = ()) -> Outcome:
    """Prepare a candidate and keep it for the next round of its command, on the thread that prepares.

    `besides`: what else is wrong with the command; it is told with what is wrong with the inputs. Raises Declined.
    """
    place, command_id = task.place, task.command_id
    if place.preparing - {command_id}:  # no method of a workload is called twice at a time
        place.preparing.discard(command_id)
        raise Declined(place.reason("preparation_in_flight", "inputs that were given up are still being prepared"))
    prepared = None
    try:
        prepared = prepared_set(place, reference)
        if not besides:
            place.retained[command_id] = prepared
    except Declined as refusal:
        besides = (*refusal.reasons, *besides)
    finally:
        place.preparing.discard(command_id)
    if command_id in place.abandoned:  # looked at once it is kept: whoever abandons it lets go of it after saying so
        place.abandoned.discard(command_id)
        place.retained.pop(command_id, None)
        besides = (*besides, place.reason("abandoned", "the command was given up meanwhile"))
    if besides or prepared is None:
        raise Declined(*besides)
    return Outcome(digest=prepared.digest, notes=prepared.notes, facts=report(prepared))


def abandon(place: Place, command_id: str) -> None:
    """Let go of what was prepared; of what is being prepared, once it is there."""
    if command_id in place.preparing:
        place.abandoned.add(command_id)
    place.retained.pop(command_id, None)


def vote(task: Task) -> Outcome:
    """What was prepared is still there."""
    return Outcome(digest=task.kept().digest)


def act(task: Task) -> Outcome:
    """Put what was prepared where it can be published from."""
    place, prepared = task.place, task.kept()
    task.releases()
    place.changed()
    place.workload.install_inputs(place.context, prepared)
    return Outcome(digest=prepared.digest)


def publish(task: Task) -> Outcome:
    """Make the installed inputs the present ones."""
    place, prepared = task.place, task.kept()
    task.releases()
    publish_set(place, prepared)
    place.retained.pop(task.command_id, None)
    return Outcome(digest=prepared.digest, facts={"inputs": place.inputs.facts})


def prepared_set(place: Place, reference: object) -> InputSet:
    """Have the workload prepare a candidate. Raises Declined with every reason it gives."""
    if not place.can("prepare_inputs"):
        raise Declined(place.reason("not_capable", "the workload takes no inputs"))
    if not isinstance(reference, dict):
        raise Declined(place.reason("bad_reference", "`reference` is no object"))
    found: Any = place.workload.prepare_inputs(place.context, reference)
    if isinstance(found, Refusal):
        raise place.refusal(found, "inputs_refused")
    if not isinstance(found, InputSet):
        raise Declined(place.reason("bad_inputs", f"prepare_inputs returned {type(found).__name__}, no InputSet"))
    place.prepared_from[found.digest] = reference
    return found


def again(place: Place, digest: str | None) -> None:
    """Have the inputs that were present before, by the reference that they were prepared from (SE-9, SE-23).

    Those that `load` reads by itself have none, and stay as it has read them.

    Raises:
        Declined: what the reference leads to now is other inputs, or is refused.
    """
    present = place.inputs.known
    if digest is None or (present is not None and present.digest == digest):
        return
    reference = _reference_of(place, digest)
    if reference is None:
        return
    prepared = prepared_set(place, reference)
    if prepared.digest != digest:
        words = f"{reference} led to inputs {digest}, and leads to {prepared.digest} now"
        raise Declined(place.reason("inputs_changed", words))
    _take(place, prepared)


def instead(place: Place, reference: Body) -> None:
    """Have new inputs from the beginning: those that a rebuild brings out of an error (SE-33). Raises Declined."""
    _take(place, prepared_set(place, reference))


def _take(place: Place, prepared: InputSet) -> None:
    place.workload.install_inputs(place.context, prepared)
    publish_set(place, prepared)


def how_to_have(place: Place, digest: str) -> str:
    """Return how these inputs could be had again, "" where that is not known."""
    reference = _reference_of(place, digest)
    return "" if reference is None else f"; inputs of {msgspec_json.encode(reference).decode()} come first"


def publish_set(place: Place, prepared: InputSet) -> None:
    """Publish, count it, and write down what these inputs are."""
    place.workload.publish_inputs(place.context, prepared)
    hold(place, prepared, generation=place.inputs.generation + 1)


def hold(place: Place, known: InputSet | None, *, generation: int) -> None:
    """These are the inputs now; rank 0 writes the manifest of everything that was read, under its digest (SE-23).

    A disk that refuses it ends nothing: the inputs are there, what they are is told, and what is lacking is warned of.
    """
    require_plain(None if known is None else known.digest, str | None)
    place.inputs = InputsHeld(generation=generation, known=known)
    if known is not None and place.rank == 0:
        reference = place.prepared_from.get(known.digest) or _reference_of(place, known.digest)
        manifest = InputsManifest(known.digest, known.entries, known.facts, known.notes, reference)
        data = _ENCODER.encode(manifest)
        try:
            place.files.replace(_path_of(place, known.digest), data)
        except HostError as error:
            place.context.warn(
                f"the manifest of these inputs was not kept, a rebuild cannot have them: {error.message}"
            )


def report(prepared: InputSet) -> Body:
    """What is told of a candidate: at most 500 lines, and how many more there are (SE-22)."""
    entries = list(prepared.entries[:MAX_LINES])
    return {
        "digest": prepared.digest,
        "num_entries": len(prepared.entries),
        "entries": entries,
        "num_more": len(prepared.entries) - len(entries),
        "notes": list(bounded(prepared.notes)),
    }


def _reference_of(place: Place, digest: str) -> Body | None:
    """What inputs were prepared from, as their manifest says; None where there is none."""
    data = place.files.read_if_present(_path_of(place, digest))
    return None if data is None else msgspec_json.decode(data, type=InputsManifest).reference


def _path_of(place: Place, digest: str) -> Path:
    """Where the manifest of inputs is: a digest as the workload spells it may hold any character."""
    name = "".join(letter if letter.isalnum() else "-" for letter in digest)[:100]
    return place.directory / INPUTS / f"{name}.json"
