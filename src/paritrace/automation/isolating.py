"""`isolate`: every module of the candidate on the inputs that the baseline gave its own (CP-26)."""

import time
from collections.abc import Sequence

from msgspec import Struct

from paritrace.automation.judging import reproduces
from paritrace.automation.replays import Replaying, Wanted, record_goldens, replay
from paritrace.compare.isolating import apart_by_themselves
from paritrace.compare.judged_result import ISOLATED_FORMAT, VERSION, Isolated, JudgedCall
from paritrace.compare.judging import judged_call
from paritrace.compare.result import RunRef
from paritrace.errors import EvidenceError, Outcome
from paritrace.evidence.dumps import gaps_of
from paritrace.runs.reading import Run
from paritrace.runs.tensors import GoldenCall, goldens


class Isolating(Struct, frozen=True):
    """Which modules, by shell patterns, in steps, half-open; `modules`: the candidate's names where they are others."""

    patterns: tuple[str, ...]
    steps: tuple[int, int]
    modules: dict[str, str] = {}


def isolate(baseline: Run, candidate: Run, /, *, what: Isolating, how: Replaying) -> Isolated:
    """Replay all chosen modules by both programs on the baseline's inputs.

    Raises:
        RequestError, EvidenceError, HostError: as `automation.judging.judge` says.
        EvidenceError: Failed, `not_replayed`: no call of a chosen module was kept.
    """
    started = time.monotonic()
    source = record_goldens(baseline, what.patterns, steps=what.steps, how=how)
    kept = [golden for golden in goldens(source) if not golden.golden.raised]
    if not kept:
        raise _none_kept(what)
    left_out = {_name(golden): _why(golden) for golden in kept if gaps_of(golden.golden)}
    calls, refused = _judged(baseline, candidate, source, kept, what=what, how=how)
    return Isolated(
        format=ISOLATED_FORMAT,
        version=VERSION,
        baseline=RunRef(baseline.run_id, baseline.digest, str(baseline.path)),
        candidate=RunRef(candidate.run_id, candidate.digest, str(candidate.path)),
        own_weights=how.own_weights,
        steps=tuple(range(*what.steps)),
        calls=calls,
        apart=apart_by_themselves(calls),
        left_out=left_out | refused,
        seconds=time.monotonic() - started,
    )


def _judged(
    baseline: Run, candidate: Run, source: Run, kept: Sequence[GoldenCall], *, what: Isolating, how: Replaying
) -> tuple[tuple[JudgedCall, ...], dict[str, str]]:
    """The judged calls in the order in which the baseline returned from them, and those that were not replayed."""
    from msgspec.structs import replace

    wanted = [_wanted(place, golden, what.modules) for place, golden in enumerate(kept)]
    recorded = [Wanted(one.key, one.golden.golden.module, one.golden, one.occasion) for one in wanted]
    ours = replay(baseline, recorded, source=source, side="baseline", how=replace(how, own_weights=False, names={}))
    theirs = replay(candidate, wanted, source=source, side="candidate", how=how)
    calls: list[JudgedCall] = []
    refused: dict[str, str] = {}
    for one in wanted:
        golden = one.golden.golden
        if one.key not in ours or one.key not in theirs:
            refused[_name(one.golden)] = "its program ended before it was called"
            continue
        made = judged_call(ours[one.key], theirs[one.key], rank=one.golden.rank, step=golden.step, number=golden.number)
        if made.refused:
            refused[_name(one.golden)] = made.refused
        else:
            calls.append(replace(made, reproduces=reproduces(source, golden, ours[one.key])))
    return tuple(calls), refused


def _wanted(place: int, golden: GoldenCall, modules: dict[str, str]) -> Wanted:
    called = golden.golden
    return Wanted(
        f"call{place:06}", modules.get(called.module, called.module), golden, occasion=(called.step, called.number)
    )


def _name(golden: GoldenCall) -> str:
    called = golden.golden
    rank = f" on rank {golden.rank}" if golden.rank else ""
    return f"{called.module or 'the root module'}, step {called.step}, call {called.number}{rank}"


def _why(golden: GoldenCall) -> str:
    return ", ".join(f"{name} was not kept ({gap.detail or gap.gap.value})" for name, gap in gaps_of(golden.golden)[:3])


def _none_kept(what: Isolating) -> EvidenceError:
    first, end = what.steps
    return EvidenceError(
        f"the baseline called no module like {', '.join(what.patterns)} in steps {first} to {end - 1}",
        code="not_replayed",
        fix="name other modules with --modules; `paritrace run --golden PATTERN` shows what it keeps",
        outcome=Outcome.FAILED,
    )
