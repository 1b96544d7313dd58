"""`capsule`: the module call at a finding as a folder that runs by itself (CP-26)."""

from pathlib import Path

from paritrace.automation.judging import BothSides, about, judged_ranks, replay_finding
from paritrace.automation.replays import Replaying, answers_folder
from paritrace.compare.judged_result import JudgedCall
from paritrace.compare.judging import Answer
from paritrace.compare.result import Comparison, Finding
from paritrace.errors import EvidenceError
from paritrace.evidence import replays
from paritrace.evidence.digests import sha256_of
from paritrace.evidence.replays import Traced
from paritrace.files import LOCAL
from paritrace.reports.capsule_text import CapsuleFacts, ProgramFacts, program_text, readme_text
from paritrace.reports.documents import encoded
from paritrace.reports.judge_screen import verdict

FORMAT = "paritrace-capsule"
VERSION = "1.0"


def capsule(comparison: Comparison, finding: Finding, /, folder: Path, *, how: Replaying) -> CapsuleFacts:
    """Write a capsule into `folder`, which exists and is empty; `capsule.json` is written last.

    Raises:
        RequestError, EvidenceError, HostError: as `judge` does.
        EvidenceError: Refused, `not_traced`: the call cannot be written down as operators of torch.
    """
    both = replay_finding(comparison, finding, how=how)
    judged = judged_ranks(both, first=finding.place.rank)
    found = _programs(both, judged)
    facts = _facts(finding, both, judged, found, folder=folder, how=how)
    LOCAL.replace(folder / "run.py", program_text(facts, {key: traced for key, (_, traced) in found.items()}).encode())
    LOCAL.replace(folder / "README.md", readme_text(facts, verdict(judged[0])).encode())
    LOCAL.replace(folder / "capsule.json", encoded(facts))
    return facts


def _programs(both: BothSides, judged: list[JudgedCall]) -> dict[str, tuple[Answer, Traced]]:
    """The traced calls by `SIDE-rankN`, of the ranks that are needed: all where there is a collective, else one."""
    ranks = [call.rank for call in judged]
    found = {
        f"{side}-rank{rank}": answers[rank]
        for rank in sorted(ranks)
        for side, answers in (("baseline", both.ours), ("candidate", both.theirs))
    }
    traced = {key: (answer, _traced(key, answer)) for key, answer in found.items()}
    if any(program.collectives for _, program in traced.values()):
        return traced
    return {key: value for key, value in traced.items() if key.endswith(f"-rank{ranks[0]}")}


def _traced(key: str, answer: Answer) -> Traced:
    replayed = answer.replayed
    if replayed.traced is not None:
        return replayed.traced
    raise EvidenceError(
        f"the call of {replayed.module or 'the root module'} ({key}) cannot be written down: "
        f"{replayed.refused or replayed.not_traced}",
        code="not_traced",
        fix="choose a finding in a module inside it; paritrace judge needs no such program",
    )


def _facts(
    finding: Finding,
    both: BothSides,
    judged: list[JudgedCall],
    found: dict[str, tuple[Answer, Traced]],
    *,
    folder: Path,
    how: Replaying,
) -> CapsuleFacts:
    first = next(iter(found.values()))[1]
    place = f"{about(finding, both.baseline)}, step {both.baseline.step}"
    return CapsuleFacts(
        format=FORMAT,
        version=VERSION,
        title=f"{finding.id}: {place}",
        finding=finding.sentence,
        step=both.baseline.step,
        ranks=tuple(sorted({int(key.rpartition("rank")[2]) for key in found})),
        collectives=any(traced.collectives for _, traced in found.values()),
        settings=first.settings,
        programs={key: _program(key, *one, folder=folder, how=how) for key, one in found.items()},
        remarks=judged[0].remarks,
    )


def _program(key: str, answer: Answer, traced: Traced, *, folder: Path, how: Replaying) -> ProgramFacts:
    """Copy the tensors of one program into the folder, as they are."""
    name = replays.tensors_name(key)
    source = answers_folder(how, side=key.partition("-")[0]) / replays.tensors_name(answer.replayed.key)
    LOCAL.create(folder / name, LOCAL.iter_chunks(source))
    return ProgramFacts(
        file=name,
        sha256=sha256_of(LOCAL.iter_chunks(folder / name)).sha256,
        arguments=traced.arguments,
        outputs=traced.outputs,
        constants=traced.constants,
        strides=traced.strides,
        groups=traced.groups,
        reductions=traced.reductions,
        module=answer.replayed.module,
        cls=answer.replayed.cls,
    )
