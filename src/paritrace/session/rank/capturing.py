"""Captures the next steps of a session into a run directory of its own, stamped with where they were taken (SE-15)."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from msgspec import json as msgspec_json

from paritrace.capture import api
from paritrace.capture.session import Workload, begin
from paritrace.capture.settings import CaptureSettings, Selection, parse_levels
from paritrace.capture.sites import workload_root
from paritrace.errors import ParitraceError, RequestError
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.launch import Launch, Launcher, Start
from paritrace.session.checkpoints import checked_name
from paritrace.session.commands import Reason
from paritrace.session.directory import CAPTURES
from paritrace.session.rank import saving
from paritrace.session.rank.place import Armed, Declined, Outcome, Place, Task, digest_of
from paritrace.session.rank.stepping import NEVER

STAMP = "paritrace_session"  # key of a session's metadata in run.json; its value is a JSON object


def vote(task: Task) -> Outcome:
    """Whether the next steps can be captured at this level, and under which name. Nothing is written yet."""
    place, body = task.place, task.body
    task.only("steps", "level", "name", "select", "regions", "statistics")
    steps, level = body.get("steps"), body.get("level", "module")
    reasons: list[Reason] = []
    if not isinstance(steps, int) or steps < 1:
        reasons.append(place.reason("bad_steps", f"{steps!r} is no number of steps from 1 on"))
    named = (level,) if isinstance(level, str) else tuple(level)
    name, settings = f"step-{place.step:08d}-{'-'.join(named)}", CaptureSettings()
    try:
        settings = CaptureSettings(
            levels=parse_levels(named),
            selection=Selection(select=tuple(body.get("select", ()))),
            regions=body.get("regions") or CaptureSettings.regions,
            statistics=bool(body.get("statistics", False)),
        )
        name = checked_name(body.get("name") or name)
    except RequestError as error:
        reasons.append(place.reason(error.code, error.message))
    if place.files.exists(place.directory / CAPTURES / name):
        reasons.append(place.reason("capture_exists", f"there is a capture {name} already"))
    if place.armed is not None or api.current() is not None:
        reasons.append(place.reason("capture_running", "steps are being captured already"))
    if find_spec("torch") is None:
        reasons.append(place.reason("missing_extra", "capturing needs PyTorch, which is not installed"))
    if reasons:
        raise Declined(*reasons)
    assert isinstance(steps, int)
    place.retained[task.command_id] = Armed(name=name, settings=settings, steps=steps)
    return Outcome(digest=digest_of({**body, "name": name, "from": place.step}))


def act(task: Task) -> Outcome:
    """The next steps are captured from now on; nothing resident changes."""
    place, armed = task.place, task.kept()
    assert isinstance(armed, Armed)
    place.retained.pop(task.command_id, None)
    place.armed = armed
    return Outcome(
        facts={
            "name": armed.name,
            "run": f"{CAPTURES}/{armed.name}",
            "first_step": place.step,
            "steps": armed.steps,
            "level": sorted(armed.settings.levels),
        }
    )


def due(place: Place) -> int:
    """The lowest step at which the capture has something to do: each one while it lasts, which costs more anyway."""
    return NEVER if place.armed is None else 0


def departs(place: Place, step: int) -> None:
    """Begin the capture with the first step after it was asked for, and name every one of its steps."""
    armed = place.armed
    if armed is None:
        return
    try:
        if armed.capture is None:
            armed = place.armed = _begun(place, armed, step)
        assert armed.capture is not None
        armed.capture.name_step(step)
    except Exception as error:  # noqa: BLE001  whatever it is, the workload goes on as it would without us (P6)
        place.armed = None
        words = error.message if isinstance(error, ParitraceError) else f"{type(error).__name__}: {error}"
        place.context.warn(f"the capture {armed.name} was given up at step {step}: {words}")


def arrived(place: Place, step: int) -> None:
    """End the capture once its steps are taken."""
    armed = place.armed
    if armed is not None and armed.first_step is not None and step >= armed.first_step + armed.steps:
        end(place)


def end(place: Place) -> None:
    """End the capture as it is; where steps are missing, its run says so by what it holds."""
    armed, place.armed = place.armed, None
    if armed is None or armed.capture is None:
        return
    api.set_current(None)
    armed.capture.end(SessionStatus.COMPLETED, metadata={})
    if armed.capture.failure is not None:
        place.context.warn(f"the capture {armed.name}: {armed.capture.failure.message}")


def _begun(place: Place, armed: Armed, step: int) -> Armed:
    settings = replace(armed.settings, steps=(step, step + armed.steps), declared_steps=True, title=armed.name)
    live = place.is_live_as
    if live is not None:
        saving.digest_now(place, live)
    stamp = {STAMP: msgspec_json.encode(place.stamp).decode()}
    root = workload_root(_main_of(place))
    capture = begin(
        place.directory / CAPTURES / armed.name,
        settings,
        workload=Workload(root=root, main=None, argv=(), launch=_launch(place, armed)),
    )
    api.set_current(capture)
    capture.session.set_metadata(stamp)
    capture.session.flush()
    return Armed(armed.name, settings, armed.steps, first_step=step, capture=capture)


def _main_of(place: Place) -> Path:
    """The file of the workload's class: its folder is the root of the code that is captured."""
    file = vars(sys.modules[type(place.workload).__module__]).get("__file__")
    return Path(file) if file is not None else Path.cwd() / "workload"


def _launch(place: Place, armed: Armed) -> Launch:
    """All ranks of the session join one run: identity is passed as values, never by the environment (SE-2)."""
    spec = place.spec
    return Launch(
        start=Start(Launcher.ENVIRONMENT, f"session {spec.session_id}/{spec.generation}/{armed.name}"),
        restart=0,
        rank=place.rank,
        local_rank=place.context.local_rank,
        world_size=spec.world_size,
        job_id=Gap(RunGap.NO_LAUNCHER),
    )
