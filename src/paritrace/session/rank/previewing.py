"""Previews on rank 0: one at a time, each a folder of its own that never changes (SE-10, SE-28, SE-32, SE-35)."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import convert
from msgspec import json as msgspec_json

from paritrace.session.checkpoints import discard
from paritrace.session.commands import Body
from paritrace.session.kept_records import PREVIEW_RECORD, PREVIEWS, PreviewRecord
from paritrace.session.rank import saving
from paritrace.session.rank.place import Declined, Outcome, Place, Task

_ENCODER = msgspec_json.Encoder(order="sorted")


def vote(task: Task) -> Outcome:
    """Whether a preview can be made now: none is being rendered (single flight)."""
    place = task.place
    task.only("options", "generation")
    if not isinstance(task.body.get("options", {}), dict):
        raise Declined(place.reason("bad_options", "`options` is no object"))
    if place.rendering:
        raise Declined(place.reason("preview_in_flight", "the preview before is still being rendered"))
    return Outcome()


def act(task: Task) -> Outcome:
    """Rank 0 copies the state and renders; the others stay parked until it has been copied."""
    place = task.place
    return Outcome(facts=make(place, task.body.get("options", {}))) if place.rank == 0 else Outcome()


def by_cadence(place: Place) -> None:
    """The preview that is due. One that is still being rendered is waited for by nobody: this one is left out."""
    run = place.run
    if place.rank != 0 or run is None or place.previews_disabled is not None or place.rendering:
        return
    try:
        make(place, run.preview_options)
    except Exception as error:  # noqa: BLE001  the workload's own code: it ends the cadence of this run, not the run
        _disable(place, error)


def next_step(place: Place) -> int | None:
    """The step before which the cadence makes its next preview; None where there is no cadence, or no more (SE-36)."""
    run = place.run
    if place.rank != 0 or run is None or not run.preview_every or place.previews_disabled is not None:
        return None
    return (place.step // run.preview_every + 1) * run.preview_every


def enable(place: Place) -> None:
    """Another run begins: what disabled the cadence of the one before holds no longer."""
    place.previews_disabled = None
    place.preview = {name: value for name, value in place.preview.items() if name != "disabled_reason"}


def make(place: Place, options: Body) -> Body:
    """Make one preview from the state as it is; what the workload leaves to be written is written beside the steps."""
    generation = _next_generation(place)
    staging = place.directory / PREVIEWS / f".{generation}"
    place.files.mkdir(staging)
    live = place.is_live_as
    if live is not None:
        saving.digest_now(place, live)
    where = {"generation": generation, "path": f"{PREVIEWS}/{generation}", "step": place.step}
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
        _publish(place, staging, facts, written())
    except Exception as error:  # noqa: BLE001  the workload's own code, on a thread of its own
        discard(staging, files=place.files)
        _disable(place, error)
    finally:
        place.rendering = False


def _publish(place: Place, staging: Path, facts: Body, names: tuple[str, ...]) -> None:
    record = convert({**facts, "files": sorted(str(name) for name in names)}, PreviewRecord)
    place.files.replace(staging / PREVIEW_RECORD, _ENCODER.encode(record))
    place.files.publish_folder(staging, place.directory / PREVIEWS / str(facts["generation"]))
    place.preview = facts


def _disable(place: Place, error: Exception) -> None:
    (reason,) = place.reasons_of(error)[:1]
    place.previews_disabled = reason.words
    place.preview = {**place.preview, "rendering": False, "disabled_reason": reason.words}
    place.context.warn(f"no more previews in this run: {reason.words}")


def _next_generation(place: Place) -> int:
    folder = place.directory / PREVIEWS
    place.files.mkdir(folder)
    taken = [int(path.name.lstrip(".")) for path in place.files.list_all(folder) if path.name.lstrip(".").isdigit()]
    return max(taken, default=0) + 1
