"""Previews of a rank that offers them: one at a time, each a folder that never changes (SE-10, SE-28, SE-32, SE-35)."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, convert
from msgspec import json as msgspec_json

from paritrace.session.checkpoints import discard
from paritrace.session.commands import Body
from paritrace.session.kept_records import PREVIEW_RECORD, PREVIEWS, PreviewRecord
from paritrace.session.rank import saving
from paritrace.session.rank.place import Declined, Outcome, Place, Task

_ENCODER = msgspec_json.Encoder(order="sorted")


class _Made(Struct, frozen=True):
    """The last preview of this rank that was asked for, until there is another one; and what was told before it."""

    path: str
    before: Body


def offered(place: Place) -> bool:
    """Whether this rank makes previews: as its workload says; where it does not say, rank 0 does."""
    if not place.can("preview"):
        return False
    return bool(place.workload.offers_preview(place.context)) if place.can("offers_preview") else place.rank == 0


def vote(task: Task) -> Outcome:
    """Whether a preview can be made now: by a rank that offers one, of which none is being rendered (single flight)."""
    place = task.place
    task.only("options", "generation", "rank")
    if not isinstance(task.body.get("options", {}), dict):
        raise Declined(place.reason("bad_options", "`options` is no object"))
    asked = task.body.get("rank")
    if asked is not None and not (isinstance(asked, int) and 0 <= asked < place.context.world_size):
        raise Declined(place.reason("no_such_rank", f"{asked!r} is none of {place.context.world_size} ranks"))
    if asked == place.rank and not place.offers_preview:
        raise Declined(place.reason("no_preview", f"rank {asked} offers no preview"))
    if place.rendering and _is_asked(task):
        raise Declined(place.reason("preview_in_flight", "the preview before is still being rendered"))
    return Outcome(facts={"offers": _is_asked(task)})


def act(task: Task) -> Outcome:
    """Ranks that are asked copy the state and render; the others stay parked until it has been copied."""
    place = task.place
    if not _is_asked(task):
        return Outcome()
    before, facts = place.preview, make(place, task.body.get("options", {}))
    for earlier in [key for key, one in list(place.retained.items()) if isinstance(one, _Made)]:
        place.retained.pop(earlier)
    place.retained[task.command_id] = _Made(str(facts["path"]), before)
    return Outcome(facts=facts)


def undo(task: Task) -> None:
    """Another rank could not make its own: of a command that is refused nothing stays."""
    place, made = task.place, task.place.retained.get(task.command_id)
    if not isinstance(made, _Made):
        return
    place.preview = made.before
    if place.rendering:
        place.void_preview = made.path  # let go of once it is written
    else:
        discard(place.directory / made.path, files=place.files)


def _is_asked(task: Task) -> bool:
    return task.place.offers_preview and task.body.get("rank") in (None, task.place.rank)


def by_cadence(place: Place) -> None:
    """The preview that is due. One that is still being rendered is waited for by nobody: this one is left out."""
    run = place.run
    if not place.offers_preview or run is None or place.previews_disabled is not None or place.rendering:
        return
    try:
        make(place, run.preview_options)
    except Exception as error:  # noqa: BLE001  the workload's own code: it ends the cadence of this run, not the run
        _disable(place, error)


def next_step(place: Place) -> int | None:
    """The step before which the cadence makes its next preview; None where there is no cadence, or no more (SE-36)."""
    run = place.run
    if not place.offers_preview or run is None or not run.preview_every or place.previews_disabled is not None:
        return None
    return (place.step // run.preview_every + 1) * run.preview_every


def enable(place: Place) -> None:
    """Another run begins: what disabled the cadence of the one before holds no longer."""
    place.previews_disabled = None
    place.preview = {name: value for name, value in place.preview.items() if name != "disabled_reason"}


def make(place: Place, options: Body) -> Body:
    """Make one preview from the state as it is; what the workload leaves to be written is written beside the steps."""
    folder = PREVIEWS if place.rank == 0 else f"{PREVIEWS}/rank-{place.rank}"
    generation = _next_generation(place, folder)
    staging = place.directory / folder / f".{generation}"
    place.files.mkdir(staging)
    live = place.is_live_as
    if live is not None:
        saving.digest_now(place, live)
    where = {"rank": place.rank, "generation": generation, "path": f"{folder}/{generation}", "step": place.step}
    facts: Body = {**where, "stamp": place.stamp, "options": options}
    try:
        made: Any = place.workload.preview(place.context, staging, options)
        if not callable(made):
            _publish(place, staging, facts, made)
            return facts
    except Exception:
        discard(staging, files=place.files)
        raise
    place.rendering = True
    place.preview = {**facts, "rendering": True}
    threading.Thread(target=_render, args=(place, staging, facts, made), name="paritrace-preview", daemon=True).start()
    return {**facts, "rendering": True}


def _render(place: Place, staging: Path, facts: Body, written: Callable[[], tuple[str, ...]]) -> None:
    try:
        before = place.preview
        _publish(place, staging, facts, written())
        if place.void_preview == facts["path"]:
            discard(place.directory / str(facts["path"]), files=place.files)
            place.preview = before
    except Exception as error:  # noqa: BLE001  the workload's own code, on a thread of its own
        discard(staging, files=place.files)
        _disable(place, error)
    finally:
        place.rendering = False


def _publish(place: Place, staging: Path, facts: Body, names: tuple[str, ...]) -> None:
    record = convert({**facts, "files": sorted(str(name) for name in names)}, PreviewRecord)
    place.files.replace(staging / PREVIEW_RECORD, _ENCODER.encode(record))
    place.files.publish_folder(staging, place.directory / str(facts["path"]))
    place.preview = facts


def _disable(place: Place, error: Exception) -> None:
    (reason,) = place.reasons_of(error)[:1]
    place.previews_disabled = reason.words
    place.preview = {**place.preview, "rendering": False, "disabled_reason": reason.words}
    place.context.warn(f"no more previews in this run: {reason.words}")


def _next_generation(place: Place, folder: str) -> int:
    """Each rank counts its own, in a folder to which nobody else writes."""
    place.files.mkdir(place.directory / folder)
    names = [path.name.lstrip(".") for path in place.files.list_all(place.directory / folder)]
    return max((int(name) for name in names if name.isdigit()), default=0) + 1
