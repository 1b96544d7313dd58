"""Loading on this rank in two phases: inspected whole, then applied or let go of; a start from a checkpoint (SE-8)."""

from typing import Any

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.session.checkpoint_choice import Wanted
from paritrace.session.checkpoint_survey import LATEST, latest
from paritrace.session.checkpoints import Checkpoint, damages, path_of, read_checkpoint
from paritrace.session.commands import Body, Reason
from paritrace.session.rank import configuring, supplying
from paritrace.session.rank.configuring import Change, Differing
from paritrace.session.rank.place import Declined, LiveAs, Outcome, Place, Task, digest_of
from paritrace.session.workload import Accepts, Inspected, Refusal, Unchanged


class Retained(Struct, frozen=True):
    """What was inspected and may be applied; held until then, or until the command is given up."""

    checkpoint: Checkpoint
    name: str
    inspected: Inspected
    change: Change | None

    accepted: Body  # what it was saved by, where that is another workload, or another number of ranks

    @property
    def facts(self) -> Body:
        """What is told of it before anything is applied, its bytes of host memory among it."""
        origin = self.checkpoint.manifest.origin
        told: Body = {
            "checkpoint": self.name,
            "name": self.name,
            "digest": self.checkpoint.digest,
            "step": self.inspected.step,
            "retained_bytes": self.inspected.retained_bytes,
            "num_bytes": self.checkpoint.manifest.num_bytes,
            "saved": {
                "session": origin.session_id,
                "workload": origin.workload,
                "world_size": origin.world_size,
                "notes": list(self.inspected.notes),
            },
        }
        if self.accepted:
            told["accepted"] = self.accepted
        return told if self.change is None else {**told, **self.change.facts}


def vote(task: Task) -> Outcome:
    """Inspect a checkpoint on the host; every failing invariant is a reason, and nothing changes."""
    task.only("checkpoint", "rebuild", "tolerate_unknown")
    place = task.place
    name, passed_over = _named(place, task.body.get("checkpoint"))
    retained = inspect(place, name)
    place.retained[task.command_id] = retained
    notes = (*(f"not taken: {words}" for words in passed_over), *_notes(retained))
    return Outcome(digest=_agreed(retained), notes=notes, facts=retained.facts)


def act(task: Task) -> Outcome:
    """Apply what was inspected. From the workload's own `apply` on a fault is fatal."""
    place, retained = task.place, task.kept()
    assert isinstance(retained, Retained)
    task.releases()
    step = apply(place, retained, revision=place.context.config_revision + 1, task=task)
    place.retained.pop(task.command_id, None)
    place.before = None
    digest = place.state_digest
    facts = retained.facts if digest is None else {**retained.facts, "state_digest": digest}
    return Outcome(
        digest=None if retained.inspected.sharded else digest,  # F-08: other weights on another rank are no load
        config_revision=place.context.config_revision,
        step=step,
        notes=_notes(retained),
        facts=facts,
    )


def inspect(place: Place, name: str) -> Retained:
    """Return a checkpoint that can be applied on this rank. Raises Declined with everything that is wrong with it."""
    try:
        checkpoint = read_checkpoint(path_of(place.directory, name), files=place.files)
    except (RequestError, EvidenceError, HostError) as error:
        raise Declined(place.reason(error.code, error.message)) from None
    reasons = _against(place, checkpoint)
    inspected, change = None, None
    try:
        inspected = _inspected(place, checkpoint)
        stored = {**checkpoint.manifest.origin.values, **inspected.values}
        change = configuring.changed(place, Differing(stored=stored))
    except Exception as error:  # noqa: BLE001  whatever a damaged file makes the workload raise is a reason
        reasons += place.reasons_of(error, code="inspect_raised")
    if reasons or inspected is None:
        raise Declined(*reasons)
    return Retained(checkpoint, name, inspected, change, _accepted(place, checkpoint))


def apply(place: Place, retained: Retained, *, revision: int, task: Task | None = None) -> int:
    """Put what was inspected into the resident state, its configuration with it. Returns the step to go on from."""
    step: Any = place.workload.apply(place.context, retained.inspected)
    if not isinstance(step, int) or step < 0 or step != retained.inspected.step:
        raise ValueError(f"apply returned step {step!r}, inspected was {retained.inspected.step}")
    if task is not None:
        task.releases()
    if retained.change is not None:
        try:
            configuring.put_in_force(place, retained.change, revision=revision)
        except Unchanged as error:  # the state is the checkpoint's by now: this is no refusal any more
            raise RuntimeError(f"its configuration was not taken: {error}") from error
    place.step = step
    name = retained.name if "/" in retained.name else f"checkpoints/{retained.name}"
    place.live_as = LiveAs(name, step, place.steps_taken, retained.checkpoint.digest)
    return step


def start_from(place: Place) -> tuple[str, Checkpoint, Body] | None:
    """Return the checkpoint that this generation starts from, by its metadata; None where it starts anew (SE-37).

    Raises Declined: there is none, with every candidate and the reasons against it.
    """
    asked = place.spec.start_from
    if asked is None:
        return None
    name, told = asked, Body()
    if asked == LATEST:
        name, told = _latest(place)
    try:
        return name, read_checkpoint(path_of(place.directory, name), files=place.files), told
    except (RequestError, EvidenceError, HostError) as error:
        raise Declined(place.reason(error.code, error.message)) from None


def resume(place: Place, name: str) -> Body:
    """Start from a chosen checkpoint. One that fails now is an error, and no other one is taken instead (SE-10)."""
    retained = inspect(place, name)
    apply(place, retained, revision=place.context.config_revision)
    return {"start_from": retained.facts}


def _named(place: Place, asked: object) -> tuple[str, tuple[str, ...]]:
    """The checkpoint's name, and where it was chosen here, which others were not and why (SE-10)."""
    if not isinstance(asked, str):
        raise Declined(place.reason("bad_name", "`checkpoint` is no name"))
    if asked != LATEST:
        return asked, ()
    name, told = _latest(place)
    return name, tuple(told["rejected"])


def _latest(place: Place) -> tuple[str, Body]:
    found = latest(place.directory, _wanted(place), files=place.files)
    rejected = [f"{one.name}: {'; '.join(one.reasons)}" for one in found.rejected]
    if found.chosen is None:
        raise Declined(
            place.reason("no_checkpoint", "there is no checkpoint that could be taken"),
            *(place.reason("rejected", words) for words in rejected),
        )
    return found.chosen, {"chosen": found.chosen, "rejected": rejected}


def _against(place: Place, checkpoint: Checkpoint) -> tuple[Reason, ...]:
    """What the manifest and the files say against it; the content is the workload's to judge."""
    manifest, spec, wanted = checkpoint.manifest, place.spec, _wanted(place)
    origin = manifest.origin
    found: list[tuple[str, str]] = []
    if not wanted.takes_workload(manifest):
        words = f"saved by {origin.workload}, this is {spec.workload}, which does not say that it accepts that"
        found.append(("another_workload", words))
    if not wanted.takes_world_size(manifest):
        words = (
            f"sharded over {origin.world_size} ranks, here are {spec.world_size}, and it does not say that it reshards"
        )
        found.append(("another_world_size", words))
    known, stored = place.inputs.known, origin.inputs.get("digest")
    if known is not None and stored is not None and stored != known.digest:
        words = f"saved with inputs {stored}, present are {known.digest}{supplying.how_to_have(place, stored)}"
        found.append(("other_inputs", words))
    lines = damages(checkpoint, rank=place.rank, world_size=spec.world_size, files=place.files)
    return tuple(place.reason(code, words) for code, words in (*found, *(("damaged_file", line) for line in lines)))


def _wanted(place: Place) -> Wanted:
    known = place.inputs.known
    accepts = place.workload.accepts() if place.can("accepts") else Accepts()
    return Wanted(place.spec.workload, place.spec.world_size, None if known is None else known.digest, accepts)


def _accepted(place: Place, checkpoint: Checkpoint) -> Body:
    """What is not this workload's own, or of another number of ranks, and was taken all the same: for the journal."""
    origin, spec = checkpoint.manifest.origin, place.spec
    own: Body = {"workload": spec.workload, "world_size": spec.world_size}
    saved: Body = {"workload": origin.workload, "world_size": origin.world_size}
    return {name: value for name, value in saved.items() if value != own[name]}


def _inspected(place: Place, checkpoint: Checkpoint) -> Inspected:
    found: Any = place.workload.inspect(place.context, checkpoint.folder)
    if isinstance(found, Refusal):
        raise place.refusal(found, "checkpoint_refused")
    if not isinstance(found, Inspected):
        raise TypeError(f"inspect returned {type(found).__name__}, no Inspected")
    if found.step != checkpoint.manifest.origin.step:
        words = f"its content is of step {found.step}, its manifest of {checkpoint.manifest.origin.step}"
        raise Declined(place.reason("step_differs", words))
    return found


def _agreed(retained: Retained) -> str:
    """What all ranks must have found alike before anything is applied (SE-30, F-07)."""
    return digest_of(
        {
            "checkpoint": retained.checkpoint.digest,
            "step": retained.inspected.step,
            "content": None if retained.inspected.sharded else retained.inspected.digest,
            "configuration": None if retained.change is None else configuring.agreed_digest(retained.change),
        }
    )


def _notes(retained: Retained) -> tuple[str, ...]:
    accepted = tuple(f"it was saved by another {name}: {value}" for name, value in retained.accepted.items())
    return (*accepted, *retained.inspected.notes, *(() if retained.change is None else retained.change.notes))
