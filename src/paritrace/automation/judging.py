"""`judge`: from a finding to both sides' call on the same inputs, against float64 (CP-26)."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.automation.replays import Replaying, Wanted, float_values, goldens_of, record_goldens, replay
from paritrace.compare.enclosing import Enclosing, enclosing
from paritrace.compare.judged_result import JUDGED_FORMAT, VERSION, Judged, JudgedCall
from paritrace.compare.judging import Answer, judged_call
from paritrace.compare.load import load
from paritrace.compare.result import Comparison, Finding, Group, RunRef
from paritrace.compare.settings import Settings
from paritrace.errors import EvidenceError, Outcome, RequestError
from paritrace.evidence.dumps import Golden, TensorLeaf, leaves, tree_of
from paritrace.evidence.replays import RECORDED
from paritrace.runs.reading import Run, open_run
from paritrace.runs.tensors import GoldenCall, open_tensor


class BothSides(Struct, frozen=True):
    """One module call of both runs, on every rank where the baseline kept it: the goldens and the answers by rank."""

    baseline: Enclosing
    candidate: Enclosing
    source: Run
    goldens: tuple[GoldenCall, ...]
    ours: dict[int, Answer]
    theirs: dict[int, Answer]


def judge(comparison: Comparison, finding: Finding, /, *, how: Replaying) -> Judged:
    """Judge a finding: re-run, replay and compare the innermost module call around it.

    Raises:
        RequestError: Refused: `no_module_call`, and as `rerun` says.
        EvidenceError: Refused: `other_run`, `no_request`, `source_changed`; Failed: `replay_failed`, `not_replayed`.
        HostError: Failed, `child_too_slow`.
    """
    started = time.monotonic()
    both = replay_finding(comparison, finding, how=how)
    own, *others = judged_ranks(both, first=finding.place.rank)
    return Judged(
        format=JUDGED_FORMAT,
        version=VERSION,
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        finding=finding.id,
        about=about(finding, both.baseline),
        call=own,
        other_ranks=tuple(others),
        seconds=time.monotonic() - started,
    )


def replay_finding(comparison: Comparison, finding: Finding, /, *, how: Replaying) -> BothSides:
    """Replay the module call around a finding by both programs; raises as `judge` does."""
    with opened(comparison.baseline) as baseline, opened(comparison.candidate) as candidate:
        ours = _around(baseline, finding, finding.place.baseline_record_id)
        theirs = _around(candidate, finding, finding.place.candidate_record_id)
        kept = goldens_of(baseline, module=ours.module, step=ours.step, number=ours.number)
        source = baseline
        if not kept:
            source = record_goldens(baseline, (ours.module,), steps=(ours.step, ours.step + 1), how=how)
            kept = goldens_of(source, module=ours.module, step=ours.step, number=ours.number)
        if not kept:
            raise _not_kept(ours)
        own_names = replace(how, names={})
        first = replay(baseline, _wanted(kept, ours.module), source=source, side="baseline", how=own_names)
        second = replay(candidate, _wanted(kept, theirs.module), source=source, side="candidate", how=how)
        return BothSides(ours, theirs, source, kept, _by_rank(kept, first), _by_rank(kept, second))


def opened(reference: RunRef, /) -> Run:
    """The run that a result was made of.

    Raises:
        EvidenceError: Refused, `other_run`: what lies there now is another run, or was changed since.
    """
    run = open_run(Path(reference.path))
    if run.run_id != reference.run_id:
        run.close()
        raise EvidenceError(
            f"{reference.path} holds run {run.run_id} now, and the result is of run {reference.run_id}",
            code="other_run",
            fix="compare the runs again: paritrace compare BASE CAND",
        )
    return run


def about(finding: Finding, around: Enclosing, /) -> str:
    """Which call is judged, and how it relates to the finding."""
    name = around.module or "the root module"
    if around.itself:
        return f"the call of {name} ({around.cls})"
    what = "the region" if finding.place.region else around.function
    if finding.place.group is Group.UNDETERMINED:
        what += f" in {finding.place.module}, which gets inputs that differ already"
    return f"the call of {name} ({around.cls}), the innermost module call around {what}"


def _around(run: Run, finding: Finding, record_id: int) -> Enclosing:
    """The innermost module call; around a module whose inputs differ by code that was not recorded, the next one."""
    sessions = [session for session in run.sessions if session.rank == finding.place.rank]
    if record_id >= 0 and sessions:
        recorded = load(run, sessions[-1], settings=Settings())
        found = enclosing(recorded, record_id, outer=finding.place.group is Group.UNDETERMINED)
        if found is not None:
            return found
    raise RequestError(
        f"{finding.id} is no part of a module call in {run.path}: only module calls can be judged",
        code="no_module_call",
        fix="choose a finding in a module's forward or backward; paritrace explain lists what is behind this one",
    )


def _wanted(kept: Sequence[GoldenCall], module: str) -> list[Wanted]:
    return [Wanted(_key(golden), module, golden) for golden in kept]


def _key(golden: GoldenCall) -> str:
    return f"rank{golden.rank}"


def _by_rank(kept: Sequence[GoldenCall], answers: Mapping[str, Answer]) -> dict[int, Answer]:
    return {golden.rank: answers[_key(golden)] for golden in kept if _key(golden) in answers}


def judged_ranks(both: BothSides, *, first: int) -> list[JudgedCall]:
    """What is said on each rank that answered, the finding's own rank first."""
    ranks = sorted(both.ours.keys() & both.theirs.keys(), key=lambda rank: (rank != first, rank))
    if not ranks or ranks[0] != first:
        raise EvidenceError(
            f"rank {first} answered on one side only",
            code="not_replayed",
            fix="judge with a longer --deadline, or read what the re-runs printed with --keep DIR",
            outcome=Outcome.FAILED,
        )
    by_rank = {golden.rank: golden.golden for golden in both.goldens}
    return [_judged(both, rank, by_rank[rank]) for rank in ranks]


def _judged(both: BothSides, rank: int, golden: Golden) -> JudgedCall:
    made = judged_call(both.ours[rank], both.theirs[rank], rank=rank, step=golden.step, number=golden.number)
    return replace(made, reproduces=reproduces(both.source, golden, both.ours[rank]))


def reproduces(source: Run, golden: Golden, answer: Answer, /) -> bool | None:
    """Whether a replay gave the recorded outputs bit for bit; None where none was kept or nothing was computed."""
    kept = {leaf.path: leaf.tensor for leaf in leaves(tree_of(golden.outputs)) if isinstance(leaf, TensorLeaf)}
    compared = [
        float_values(open_tensor(source, tensor.kept)).tobytes() == array.astype("f8").tobytes()
        for path, tensor in kept.items()
        if isinstance(tensor.kept, str) and (array := answer.arrays.get(f"{RECORDED}/{path}")) is not None
    ]
    return all(compared) if compared else None


def _not_kept(around: Enclosing) -> EvidenceError:
    return EvidenceError(
        f"the baseline ran again, and call {around.number} of {around.module} in step {around.step} was not kept",
        code="not_replayed",
        fix="capture it with `paritrace run --golden MODULE` and see what is counted as a gap there",
        outcome=Outcome.FAILED,
    )
