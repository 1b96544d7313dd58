"""Trajectories out of what tools leave: Inspect samples, Harbor trials and ATIF files (AT-23)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from paritrace.attempts.importers import atif, harbor
from paritrace.attempts.importers.collecting import TOO_DEEP, typed
from paritrace.attempts.importers.harbor_format import TrialResult
from paritrace.attempts.importers.harbor_trials import rewards_of
from paritrace.attempts.importers.inspect_logs import is_inspect_log, logs_of, read_log
from paritrace.attempts.importers.inspect_trajectories import trace_of_sample
from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.origins import Origin
from paritrace.attempts.trace_steps import Call, message_of, steps_of
from paritrace.attempts.traces import Trace
from paritrace.evidence.plain_json import Refusal


def trajectories(path: Path, evidence: Evidence) -> Iterator[Trace]:
    """Yields the trajectories below a path, in order of its files, one at a time; what cannot be read is told."""
    evidence.root(path)
    if path.is_dir() and (path / harbor.TRAJECTORY).is_file():
        yield from _of_trial(path, evidence)
    elif path.is_dir() and harbor.is_job(path):
        yield from _of_job(path, evidence)
    elif path.suffix == ".eval":
        yield from _of_log(path, evidence)
    elif path.is_dir():
        yield from _below(path, evidence)
    else:
        yield from _of_document(path, evidence)


def _below(folder: Path, evidence: Evidence) -> Iterator[Trace]:
    for path in logs_of(folder, evidence):
        yield from _of_log(path, evidence) if path.suffix == ".eval" else _of_document(path, evidence)


def _of_document(path: Path, evidence: Evidence) -> Iterator[Trace]:
    document = evidence.json(path)
    if document is None or document.value is None:
        return
    if atif.is_trajectory(document.value):
        origin = Origin(source=document.source)
        trajectory = typed(document.value, atif.Trajectory, evidence, origin)
        if trajectory is not None:
            name = trajectory.session_id or document.source
            yield trace_of_atif(trajectory, origin, task=name, attempt=name)
    elif is_inspect_log(document.value):
        yield from _of_log(path, evidence)


def _of_job(folder: Path, evidence: Evidence) -> Iterator[Trace]:
    for entry in evidence.files(folder):
        if entry.is_dir() and (entry / harbor.TRAJECTORY).is_file():
            yield from _of_trial(entry, evidence)


def _of_trial(folder: Path, evidence: Evidence) -> Iterator[Trace]:
    document = evidence.json(folder / harbor.TRAJECTORY)
    if document is None or not atif.is_trajectory(document.value):
        return
    origin = Origin(source=document.source)
    trajectory = typed(document.value, atif.Trajectory, evidence, origin)
    if trajectory is None:
        return
    found = evidence.json(folder / harbor.RESULT)
    result = None
    if found is not None and found.value is not None:
        result = typed(found.value, TrialResult, evidence, Origin(source=found.source))
    task = folder.name.rsplit("__", 1)[0] if result is None else result.task_name.rsplit("/", 1)[-1]
    outcome = "" if result is None else ", ".join(f"{name} {value:g}" for name, value in rewards_of(result).items())
    yield trace_of_atif(trajectory, origin, task=task, attempt=folder.name, outcome=outcome)


def trace_of_atif(trajectory: atif.Trajectory, origin: Origin, *, task: str, attempt: str, outcome: str = "") -> Trace:
    """Returns an ATIF document as a trace: the steps of its agent, those that were copied from another left out."""
    own = [(index, step) for index, step in enumerate(trajectory.steps) if step.source == "agent"]
    copied = sum(bool(step.is_copied_context) for _, step in own)
    calls = [call for index, step in own if not step.is_copied_context for call in _atif_calls(step, index, origin)]
    return Trace(
        task_id=task,
        attempt_id=attempt,
        steps=steps_of(calls),
        origin=origin,
        outcome=outcome,
        inherited=copied,
    )


def _atif_calls(step: atif.Step, index: int, origin: Origin) -> Iterable[Call]:
    said = step.message if isinstance(step.message, str) else None
    place = f"{origin.pointer}/steps/{index}"
    results = {} if step.observation is None else _results(step.observation.results)
    for number, call in enumerate(step.tool_calls or []):
        yield Call(
            name=call.function_name,
            arguments=call.arguments,
            turn=index,
            origin=Origin(source=origin.source, pointer=f"{place}/tool_calls/{number}"),
            result=results.get(call.tool_call_id),
            has_result=call.tool_call_id in results,
            said=said if number == 0 else None,
        )
    if not step.tool_calls and said is not None and said.strip():
        yield message_of(said, turn=index, origin=Origin(source=origin.source, pointer=f"{place}/message"))


def _results(results: list[atif.ObservationResult]) -> dict[str, Any]:
    return {result.source_call_id: result.content for result in results if result.source_call_id}


def _of_log(path: Path, evidence: Evidence) -> Iterator[Trace]:
    read = read_log(path, evidence)
    if read is None:
        return
    log, samples = read
    for one in samples:
        try:
            yield trace_of_sample(one.placed.sample, one.plain, log.header, one.placed.origin)
        except RecursionError:
            origin = one.placed.origin
            evidence.note(Refusal(path=origin.source, member=origin.member, line=0, detail=TOO_DEEP), origin)
