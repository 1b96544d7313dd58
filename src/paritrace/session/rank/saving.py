"""Saving on this rank: what was asked for, and by itself on pause and every so many steps (SE-8, SE-10)."""

import re
from contextlib import suppress
from pathlib import Path

from paritrace.clock import SYSTEM
from paritrace.errors import EvidenceError, HostError, ParitraceError, RequestError
from paritrace.session.checkpoint_records import Origin, Receipt
from paritrace.session.checkpoint_survey import LATEST
from paritrace.session.checkpoints import (
    AUTOSAVE,
    Checkpoint,
    checked_name,
    discard,
    publish,
    read_checkpoint,
    seal,
    staging_of,
)
from paritrace.session.commands import Body
from paritrace.session.directory import CHECKPOINTS
from paritrace.session.rank.place import Declined, LiveAs, Outcome, Place, Task, digest_of
from paritrace.session.rank_events import AutosaveEnded

KEPT_AUTOSAVES = 2  # the last one, and the one before it should the last turn out to be unusable
LOCK = ".lock"
_STAGING = re.compile(r"\.step-(\d+)-g(\d+)-e(\d+)\Z")


def vote(task: Task) -> Outcome:
    """Agree on the name; nothing has it yet. Without one it is the step's."""
    place = task.place
    task.only("name")
    try:
        name = checked_name(task.body.get("name", f"step-{place.step:08d}"))
    except RequestError as error:
        raise Declined(place.reason(error.code, error.message)) from None
    if name == LATEST:
        raise Declined(
            place.reason("bad_name", f"{LATEST} is what a load calls the newest checkpoint; give another name")
        )
    if place.files.exists(place.directory / CHECKPOINTS / name):
        raise Declined(place.reason("checkpoint_exists", f"there is a checkpoint {name} already"))
    place.retained[task.command_id] = name
    return Outcome(digest=digest_of({"name": name, "step": place.step}))


def act(task: Task) -> Outcome:
    """Write this rank's files; the coordinator publishes them once all ranks have. Nothing resident changes."""
    place, name = task.place, task.kept()
    staging = staging_of(task.command_id)
    receipt = _write(place, place.directory / CHECKPOINTS / staging)
    place.retained.pop(task.command_id, None)
    place.live_as = LiveAs(f"{CHECKPOINTS}/{name}", place.step, place.steps_taken)
    facts = {
        "name": name,
        "staging": staging,
        "step": place.step,
        "num_bytes": sum(file.num_bytes for file in receipt.files.values()),
        "num_files": len(receipt.files),
    }
    return Outcome(facts=facts if receipt.state_digest is None else {**facts, "state_digest": receipt.state_digest})


def undo(task: Task) -> None:
    """What this rank wrote is no checkpoint, since another one could not, or none of them got as far (SE-8)."""
    place = task.place
    place.changed()
    if place.rank == 0:  # all ranks have answered by now, so that nobody writes there any more
        discard(place.directory / CHECKPOINTS / staging_of(task.command_id), files=place.files)


def autosave(place: Place) -> None:
    """Save by itself, all ranks at this step; what fails is a warning, and the save before it stays (SE-10)."""
    if not (place.can("save") and place.can("inspect")):
        return
    if place.is_live_as is not None or place.autosave_tried == place.steps_taken:
        return  # decided by what all ranks have in common: a save may need all of them
    place.autosave_tried = place.steps_taken
    before, began_ns = place.context.said.phase, SYSTEM.monotonic_ns()
    place.context.enter("autosave")
    facts, words = Body(), ""
    try:
        made = _autosave(place)
        if made is not None:
            facts = {"name": f"{AUTOSAVE}/{made.folder.name}", **made.identity}
    except Exception as error:  # noqa: BLE001  the workload's own code, and the disk: neither ends the work
        (reason,) = place.reasons_of(error)[:1]
        words = reason.words
        place.context.warn(f"the autosave at step {place.step} failed: {words}")
    finally:
        place.context.enter(before)
    if facts or words:
        place.say(AutosaveEnded(place.step, (SYSTEM.monotonic_ns() - began_ns) / 1e9, facts, words))


def _autosave(place: Place) -> Checkpoint | None:
    """Write this rank's part; returns the autosave where this rank was the last, and so published it for all."""
    folder = place.directory / AUTOSAVE
    name = f"step-{place.step:08d}-g{place.spec.generation}-e{place.epoch}"
    staging = folder / f".{name}"
    if place.files.exists(folder / name):
        return None
    _write(place, staging)
    with place.files.locked(folder / LOCK):
        if place.files.exists(folder / name):
            return None
        made = _published_if_whole(place, staging, folder / name)
        if made is not None:
            _tidy(place, folder, keep=name)
    digest = "" if made is None else made.digest
    place.live_as = LiveAs(f"{AUTOSAVE}/{name}", place.step, place.steps_taken, digest)
    return made


def _published_if_whole(place: Place, staging: Path, path: Path) -> Checkpoint | None:
    """Whoever writes its receipt last publishes for all; a rank whose save failed leaves it unpublished."""
    receipts = [one for one in place.files.list(staging) if one.name.startswith("receipt-")]
    return publish(staging, path, files=place.files) if len(receipts) == place.spec.world_size else None


def _tidy(place: Place, folder: Path, *, keep: str) -> None:
    """Keep the last ones, and nothing of what failed."""
    made: list[tuple[int, Path]] = []
    for path in place.files.list(folder):
        with suppress(EvidenceError, HostError):
            made.append((read_checkpoint(path, files=place.files).manifest.made_unix_ns, path))
    old = [path for _, path in sorted(made)[:-KEPT_AUTOSAVES] if path.name != keep]
    now = _order_of(f".{keep}")
    unfinished = [path for path in place.files.list_all(folder) if (order := _order_of(path.name)) and order < now]
    for path in (*old, *unfinished):
        hidden = folder / f".old-{path.name.lstrip('.')}"
        with suppress(HostError):  # a disk that refuses leaves a folder too many
            place.files.rename_folder(path, hidden)
            discard(hidden, files=place.files)


def _order_of(staging: str) -> tuple[int, ...]:
    """Generation, epoch and step of an autosave under way: another rank may be at a later one already."""
    found = _STAGING.match(staging)
    return () if found is None else (int(found[2]), int(found[3]), int(found[1]))


def _write(place: Place, staging: Path) -> Receipt:
    place.files.mkdir(staging)
    names = tuple(place.workload.save(place.context, staging))
    receipt = Receipt(
        rank=place.rank, origin=origin_of(place), made_unix_ns=SYSTEM.wall_ns(), state_digest=place.state_digest
    )
    return seal(staging, names, receipt, files=place.files)


def origin_of(place: Place) -> Origin:
    """Where the state is now; the same on every rank that stands at the same step."""
    return Origin(
        session_id=place.spec.session_id,
        workload=place.spec.workload,
        world_size=place.spec.world_size,
        generation=place.spec.generation,
        command_epoch=place.epoch,
        config_revision=place.context.config_revision,
        step=place.step,
        values=dict(place.context.plain_config),
        inputs=place.inputs.facts,
    )


def digest_now(place: Place, live: LiveAs) -> LiveAs:
    """Return the same with its digest, once its manifest has been written by whoever came last."""
    if live.digest:
        return live
    try:
        found = read_checkpoint(place.directory / live.path, files=place.files).digest
    except ParitraceError:
        return live
    place.live_as = LiveAs(live.path, live.step, live.steps_taken, found)
    return place.live_as
