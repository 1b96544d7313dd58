"""A run on this rank: what is voted for, its schedule, and how it ends (SE-24)."""

from msgspec.structs import replace

from paritrace.session.rank.place import Declined, Outcome, Place, RunHeld, Task, digest_of
from paritrace.session.schedule import Schedule, schedule_of, values_at


def vote(task: Task) -> Outcome:
    """Check what this run alone brings; it is installed by the run's first step, and on no rank where one refuses."""
    place, body = task.place, task.body
    task.only("steps", "schedule", "autosave", "preview_every", "preview_options")
    steps = body.get("steps")
    if not isinstance(steps, int) or steps < 1:
        raise Declined(place.reason("bad_steps", f"{steps!r} is no number of steps from 1 on"))
    schedule = schedule_of(body.get("schedule", {}), steps=steps, fields=place.declared)
    if not isinstance(schedule, Schedule):
        raise Declined(*(place.reason(reason.code, reason.words) for reason in schedule))
    every = body.get("preview_every", 0)
    if every and not place.can("preview"):
        raise Declined(place.reason("not_capable", "the workload has no preview"))
    place.voted_run = RunHeld(
        steps=steps,
        schedule=schedule,
        autosave=bool(body.get("autosave", True)),
        preview_every=every,
        preview_options=body.get("preview_options", {}),
    )
    agreed = digest_of({"steps": steps, "schedule": schedule.digest, "from": place.step, "preview_every": every})
    return Outcome(digest=agreed, facts={"first_step": place.step, "schedule_digest": schedule.digest})


def discard(place: Place) -> None:
    """The run that was voted for is not admitted."""
    place.voted_run = None


def begin_if_admitted(place: Place, step: int) -> bool:
    """`step` begins; where it is the first of a run that was voted for, that run is the one under way from now on."""
    if place.voted_run is None:
        return False
    place.run, place.voted_run = replace(place.voted_run, first_step=step), None
    return True


def set_scheduled(place: Place, step: int) -> None:
    """Put this step's values of the schedule into the configuration that the workload sees."""
    run = place.run
    if run is not None and run.first_step is not None and run.schedule.courses:
        place.context.schedule(values_at(run.schedule, step - run.first_step))


def end(place: Place) -> RunHeld | None:
    """The run is over: its schedule leaves no trace. Returns what it was."""
    run, place.run = place.run, None
    place.context.schedule(None)
    return run
