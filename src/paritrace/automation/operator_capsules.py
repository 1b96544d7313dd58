"""`capsule --call`: the operator call at a finding, out of what both runs dumped, as a folder that runs by itself."""

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from paritrace.automation.capsules import FORMAT, VERSION
from paritrace.automation.judging import opened
from paritrace.compare.operator_source import source_of
from paritrace.compare.result import Comparison, Difference, Finding
from paritrace.errors import EvidenceError, RequestError
from paritrace.evidence import replays
from paritrace.evidence.digests import sha256_of
from paritrace.evidence.replays import Traced
from paritrace.evidence.surroundings import Surroundings
from paritrace.evidence.tensor_files import Part, header_of_parts
from paritrace.files import LOCAL
from paritrace.process.children import run_child
from paritrace.reports.capsule_text import CapsuleFacts, ProgramFacts, program_text, readme_text
from paritrace.reports.documents import encoded
from paritrace.runs.kept_calls import KeptCall, kept_call
from paritrace.runs.reading import Run
from paritrace.runs.request import request_of
from paritrace.runs.tensors import open_tensor

CHECK_SECONDS = 300.0  # one operator call of each side; the import of torch takes the most of it
NO_REFERENCE = "Both results are those that were recorded. There is no float64 reference: `paritrace judge` has one."
UNKNOWN = "not recorded"
LAST = 300  # characters of what its check printed


class _Side(NamedTuple):
    key: str
    run: Run
    call: KeptCall


class OperatorCapsule(Struct, frozen=True):
    """What was written, and what its own check printed."""

    facts: CapsuleFacts
    checked: str


def operator_capsule(comparison: Comparison, finding: Finding, /, folder: Path) -> OperatorCapsule:
    """Write the capsule into `folder`, which exists and is empty, and run it once: both sides must give their bits.

    Raises:
        RequestError: Refused, `no_operator_call`: the finding is no pair of operator calls.
        EvidenceError: Refused: `other_run`, `not_dumped` with the commands that keep what is missing, `not_traced`.
    """
    place = finding.place
    with opened(comparison.baseline) as ours, opened(comparison.candidate) as theirs:
        ids = (place.baseline_record_id, place.candidate_record_id)
        found = [_call(run, finding, number) for run, number in zip((ours, theirs), ids, strict=True)]
        sides = [
            _Side(f"{name}-rank{place.rank}", run, call)
            for name, run, call in zip(("baseline", "candidate"), (ours, theirs), found, strict=True)
        ]
        _require_kept(sides, place)
        traced = {side.key: _traced(side) for side in sides}
        programs = {side.key: _program(side, traced[side.key], folder) for side in sides}
    facts = _facts(finding, programs, traced[sides[0].key].settings)
    LOCAL.replace(folder / "run.py", program_text(facts, traced).encode())
    LOCAL.replace(folder / "README.md", readme_text(facts, NO_REFERENCE).encode())
    LOCAL.replace(folder / "capsule.json", encoded(facts))
    return OperatorCapsule(facts, _checked(folder, finding))


def _call(run: Run, finding: Finding, record_id: int) -> KeptCall:
    sessions = [session for session in run.sessions if session.rank == finding.place.rank]
    known = finding.place.level == "op" and not finding.place.region and record_id >= 0 and sessions
    found = kept_call(run, sessions[-1].session_id, record_id) if known else None
    if found is None:
        raise RequestError(
            f"{finding.id} is no operator call on both sides",
            code="no_operator_call",
            fix="leave out --call for the module call around it, or compare runs captured with --level op",
        )
    return found


def _require_kept(sides: list[_Side], place: Difference) -> None:
    if any(slot.dtype == "rng" for side in sides for slot in side.call.inputs):
        raise _not_traced(f"the call of {place.function} draws random numbers, whose generator is not kept with it")
    lacking = [f"{side.run.path}: {', '.join(side.call.missing)}" for side in sides if side.call.missing]
    if lacking:
        raise EvidenceError(
            f"the call of {place.function} is not kept whole ({'; '.join(lacking)})",
            code="not_dumped",
            fix="capture both sides again and keep it, then compare and take the capsule: "
            + "; ".join(_capturing(side, place) for side in sides),
        )


def _capturing(side: _Side, place: Difference) -> str:
    """The command that keeps the call, of the side's own program."""
    what = place.module or place.function
    options = f"--level op --steps {place.step}:{place.step + 1} --dump {shlex.quote(what)}"
    try:
        request = request_of(side.run)
    except EvidenceError:
        return f"paritrace run {options} …"
    arguments = request.arguments if isinstance(request.arguments, tuple) else ("…",)
    workload = shlex.join((*(("-m",) if request.module else ()), request.name, *arguments))
    return f"paritrace run -o NEW-{side.key.partition('-')[0]} {options} {workload}"


def _traced(side: _Side) -> Traced:
    call = side.call
    try:
        source = source_of(call)
    except ValueError as error:
        raise _not_traced(f"the call of {call.function} cannot be written down: {error}") from None
    return Traced(
        source=source,
        arguments=tuple(slot.name for slot in call.inputs),
        outputs=tuple(slot.name for slot in call.outputs),
        constants=(),
        strides=tuple(slot.strides for slot in call.inputs),
        settings=_settings(next((row.surroundings for row in side.run.envelope.sessions if row.surroundings), None)),
    )


def _settings(of: Surroundings | None) -> dict[str, str]:
    """What of torch a result may depend on, as the run recorded it; by the names that `run.py` knows."""
    switches = {} if of is None else of.determinism
    cpu = [] if of is None else [text.removeprefix("cpu ") for text in of.devices if text.startswith("cpu ")]
    threads = 1 if of is None or not isinstance(of.num_threads, int) else of.num_threads
    return {
        "torch": UNKNOWN if of is None else of.packages.get("torch", UNKNOWN),
        "threads": str(threads),
        "cpu": next(iter(cpu), UNKNOWN),
        "mkldnn": switches.get("mkldnn", "True"),
        "matmul precision": switches.get("float32_matmul_precision", "highest"),
        "deterministic": switches.get("deterministic_algorithms", "False"),
    }


def _program(side: _Side, traced: Traced, folder: Path) -> ProgramFacts:
    """Write the tensors of one side into one file, inputs and recorded results."""
    name = replays.tensors_name(side.key)
    slots = [(f"{replays.ARGUMENT}/{place}", slot) for place, slot in enumerate(side.call.inputs)]
    slots += [(f"{replays.BITS}/{slot.name}", slot) for slot in side.call.outputs]
    bodies = [open_tensor(side.run, slot.sha256).data.tobytes() for _, slot in slots]
    parts = [Part(key, slot.dtype, slot.shape, len(body)) for (key, slot), body in zip(slots, bodies, strict=True)]
    try:
        header = header_of_parts(parts)
    except ValueError as error:
        raise _not_traced(str(error)) from None
    LOCAL.create(folder / name, iter([header, *bodies]))
    return ProgramFacts(
        file=name,
        sha256=sha256_of(LOCAL.iter_chunks(folder / name)).sha256,
        arguments=traced.arguments,
        outputs=traced.outputs,
        constants=(),
        strides=traced.strides,
        groups={},
        reductions={},
        module="",
        cls=side.call.function,
    )


def _facts(finding: Finding, programs: dict[str, ProgramFacts], settings: dict[str, str]) -> CapsuleFacts:
    place = finding.place
    where = f"in {place.module or 'the root module'}, step {place.step}"
    return CapsuleFacts(
        format=FORMAT,
        version=VERSION,
        title=f"{finding.id}: the call of {place.function} {where}",
        finding=finding.sentence,
        step=place.step,
        ranks=(place.rank,),
        collectives=False,
        settings=settings,
        programs=programs,
        remarks=("each side has the inputs that it was called with in its own run",),
    )


def _checked(folder: Path, finding: Finding) -> str:
    """Run the capsule as its reader will; one that does not give the recorded bits is not handed out."""
    done = run_child(
        (sys.executable, "-I", "-B", str(folder.resolve() / "run.py")),
        directory=folder,
        environment=os.environ,
        deadline_seconds=CHECK_SECONDS,
    )
    if done.status:
        last = " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        called = finding.place.function
        raise _not_traced(f"the call of {called}, computed again, is not what was recorded: {last[-LAST:]}")
    return done.stdout


def _not_traced(message: str) -> EvidenceError:
    return EvidenceError(
        message,
        code="not_traced",
        fix="leave out --call: the module call around it is written down by running it again",
    )
