"""Golden calls of one run, replayed by the recorded programs of two (CP-26)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from paritrace.automation.rerun import Rerun, rerun
from paritrace.compare.judging import Answer
from paritrace.compare.ulps import Values
from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.evidence import codec, replays
from paritrace.evidence.byte_values import byte_values
from paritrace.evidence.replays import Replayed, ReplayRequest, ReplayTask
from paritrace.files import LOCAL
from paritrace.runs.reading import Run, open_run
from paritrace.runs.request import request_of
from paritrace.runs.tensors import GoldenCall, WholeTensor, goldens, open_key

QUIET = ("--no-sources", "--no-diff")  # of a re-run that serves a replay: nothing of it is compared
LOG_LINES = 12


class Wanted(Struct, frozen=True):
    """A replay to be asked for: a golden call, and the module's name in the program that replays it."""

    key: str
    module: str
    golden: GoldenCall
    occasion: tuple[int, int] | None = None


class Replaying(Struct, frozen=True):
    """How: `work` is a folder of our own, `deadline_seconds` of each re-run, `names` of parameters called otherwise.

    `dump_bytes`: what the baseline may keep of tensors, as `paritrace run` takes it; "" leaves it at its default.
    """

    work: Path
    deadline_seconds: float
    gradients: bool = True
    trace: bool = False
    own_weights: bool = False
    names: dict[str, str] = {}
    dump_bytes: str = ""


def record_goldens(run: Run, patterns: Sequence[str], *, steps: tuple[int, int], how: Replaying) -> Run:
    """Re-run a run's program until `steps` are over, keeping golden calls of modules that match; returns that run.

    Raises:
        RequestError, EvidenceError: Refused, as `rerun` and `request_of` say.
        EvidenceError: Failed, `replay_failed`: the program ended by an error before.
    """
    request = how.work / "golden-request.json"
    _write_request(request, how=how, tasks=(), until=steps[1] - 1)
    wanted = ("--level=module", f"--steps={steps[0]}:{steps[1]}", *(f"--golden={name}" for name in patterns))
    bounded = (f"--dump-bytes={how.dump_bytes}",) if how.dump_bytes else ()
    options = (*QUIET, *wanted, *bounded, f"--replay={request}")
    output = how.work / "golden"
    done = rerun(request_of(run), output=output, options=options, deadline_seconds=how.deadline_seconds)
    if not LOCAL.exists(output):
        raise _failed(done, f"{run.path} did not run again")
    return open_run(output)


def replay(run: Run, wanted: Sequence[Wanted], *, source: Run, side: str, how: Replaying) -> dict[str, Answer]:
    """Replay golden calls, kept in `source`, by the program of `run`; returns the answers by key, those that came.

    Raises:
        RequestError, EvidenceError: Refused, as `rerun` and `request_of` say.
        EvidenceError: Failed, `replay_failed`: the program ended by an error before it answered anything.
    """
    folder = answers_folder(how, side=side)
    LOCAL.mkdir(folder)
    tasks = tuple(_task(one, source=source, how=how) for one in wanted)
    _write_request(how.work / f"{side}-request.json", how=how, tasks=tasks, until=0, output=folder)
    options = (*QUIET, "--level=digest", f"--replay={how.work / f'{side}-request.json'}")
    output = how.work / side
    done = rerun(request_of(run), output=output, options=options, deadline_seconds=how.deadline_seconds)
    found = {task.key: answer for task in tasks if (answer := _answer(folder, task.key)) is not None}
    if not found:
        raise _failed(done, f"the program of {run.path} answered no replay")
    return found


def answers_folder(how: Replaying, *, side: str) -> Path:
    """Where the answers of one side's program lie."""
    return how.work / f"{side}-answers"


def goldens_of(run: Run, *, module: str, step: int, number: int) -> tuple[GoldenCall, ...]:
    """The golden calls of one module call, of all ranks that kept it."""
    return tuple(
        found
        for found in goldens(run, module=module)
        if (found.golden.step, found.golden.number) == (step, number) and not found.golden.raised
    )


def float_values(tensor: WholeTensor) -> Values:
    """A stored tensor's values in float64, complex ones with a last dimension of two."""
    array: Any = tensor.array
    if tensor.dtype == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    elif tensor.dtype.startswith("float8"):
        array = byte_values(tensor.dtype)[array]
    elif array.dtype.kind == "c":
        array = array.astype(np.complex128)[..., None].view(np.float64)
    values: Values = np.asarray(array, dtype=np.float64)
    return values


def _task(wanted: Wanted, *, source: Run, how: Replaying) -> ReplayTask:
    return ReplayTask(
        key=wanted.key,
        rank=wanted.golden.rank,
        module=wanted.module,
        tensors=str(source.folder.resolve()),
        golden=wanted.golden.golden,
        gradients=wanted.golden.gradients,
        own_weights=how.own_weights,
        occasion=wanted.occasion,
        names=how.names,
    )


def _write_request(
    path: Path, *, how: Replaying, tasks: tuple[ReplayTask, ...], until: int, output: Path | None = None
) -> None:
    request = ReplayRequest(
        format=replays.REQUEST_FORMAT,
        version=replays.VERSION,
        output=str((output or path.parent).resolve()),
        tasks=tasks,
        until_step=until,
        gradients=how.gradients,
        trace=how.trace,
    )
    LOCAL.replace(path, codec.encode_document(request))


def _answer(folder: Path, key: str) -> Answer | None:
    data = LOCAL.read_if_present(folder / replays.answer_name(key))
    if data is None:
        return None
    replayed = msgspec.json.decode(data, type=Replayed)
    return Answer(replayed, _arrays(folder / replays.tensors_name(key), replayed))


def _arrays(path: Path, replayed: Replayed) -> dict[str, Values]:
    heads = (replays.RECORDED,) if replayed.no_reference else (replays.RECORDED, replays.WIDE)
    found: dict[str, Values] = {}
    for tensor in replayed.tensors:
        for head in heads:
            key = f"{head}{replays.GRADIENT if tensor.gradient else ''}/{tensor.path}"
            try:
                array = open_key(path, key).array
            except EvidenceError as error:
                if error.code != "no_tensor":
                    raise
                continue  # float64 gave no such tensor
            found[key] = array
    return found


def _failed(done: Rerun, what: str) -> EvidenceError:
    last = _last_lines(done.log)
    return EvidenceError(
        f"{what}: it ended with status {done.status}; the end of what it printed: {last}",
        code="replay_failed",
        fix="run the program by hand to see why; `paritrace runs show RUN` prints how it was started",
        outcome=Outcome.FAILED,
    )


def _last_lines(log: Path) -> str:
    try:
        text = LOCAL.read(log).decode("utf-8", errors="replace")
    except HostError:
        return "nothing"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-LOG_LINES:])[-600:]
