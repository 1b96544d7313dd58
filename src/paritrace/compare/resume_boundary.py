"""Which session was resumed, from which step on it is to be compared, and what was assumed for that (CP-28)."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paritrace.compare.resume_result import ResumePlan
from paritrace.compare.resume_states import SessionStates
from paritrace.errors import RequestError
from paritrace.evidence.spans import ranges

_RESUME = re.compile(r"(?P<step>[0-9]{1,18})(=(?P<own>[0-9]{1,18}))?")


class Asked(NamedTuple):
    """`--resume STEP` or `STEP=OWN`: step STEP of the baseline is step OWN of the candidate."""

    step: int
    own: int | None


def parse_resume(text: str) -> Asked:
    """Read the option.

    Raises:
        RequestError: Refused, `bad_resume`.
    """
    match = _RESUME.fullmatch(text)
    if match is None:
        raise RequestError(
            f"--resume {text!r:.60} is neither STEP nor STEP=OWN",
            code="bad_resume",
            fix="give the first step after the checkpoint, --resume 1000; 1000=0 for a script that counts from 0 again",
        )
    return Asked(int(match["step"]), None if match["own"] is None else int(match["own"]))


class Side(NamedTuple):
    """The sessions of one run by rank, in the order of their incarnations."""

    run_id: str
    sessions: Mapping[int, Sequence[SessionStates]]


def plan(asked: Asked, *, baseline: Side, candidate: Side) -> ResumePlan:
    """Choose one session of each rank on each side, and how the candidate's steps are counted.

    The baseline is the first session that went through the step; the candidate the last one that begins there, and
    never a session that is the baseline.

    Raises:
        RequestError: Refused, `no_such_boundary`: no rank of a side has a session that begins the step.
    """
    ours = {rank: one for rank, found in baseline.sessions.items() if (one := _continuing(found, asked.step))}
    if not ours:
        raise _no_boundary("baseline", asked.step, baseline)
    taken = {one.session.session_id for one in ours.values()} if baseline.run_id == candidate.run_id else set[str]()
    left = {
        rank: [one for one in found if one.session.session_id not in taken]
        for rank, found in candidate.sessions.items()
    }
    theirs = {rank: last for rank, found in left.items() if (last := _resumed(found, asked))}
    if not theirs:
        raise _no_boundary("candidate", asked.step, candidate._replace(sessions=left))
    shifts = {rank: asked.step - own for rank, (_, own) in theirs.items()}
    return ResumePlan(
        step=asked.step,
        assumed=_assumed(asked, theirs, shifts),
        shifts=tuple(
            (candidate.run_id, one.session.session_id, shifts[rank])
            for rank, (one, _) in sorted(theirs.items())
            if shifts[rank]
        ),
        sessions=(
            tuple(ours[rank].session.session_id for rank in sorted(ours)),
            tuple(theirs[rank][0].session.session_id for rank in sorted(theirs)),
        ),
    )


def _continuing(sessions: Sequence[SessionStates], step: int) -> SessionStates | None:
    return next((one for one in sessions if step in one.begins), None)


def _resumed(sessions: Sequence[SessionStates], asked: Asked) -> tuple[SessionStates, int] | None:
    """The session that was resumed and what it calls the step; None where none has it."""
    for one in reversed(sessions):
        own = _own_number(one, asked)
        if own is not None and own in one.begins:
            return one, own
    return None


def _own_number(one: SessionStates, asked: Asked) -> int | None:
    """A session that begins at 0 counts from the checkpoint on, unless it was said otherwise."""
    if asked.own is not None:
        return asked.own
    return 0 if one.first == 0 else asked.step


def _assumed(asked: Asked, theirs: Mapping[int, tuple[SessionStates, int]], shifts: Mapping[int, int]) -> str:
    if asked.own is not None:
        return f"step {asked.own} of the candidate is step {asked.step} of the baseline, as declared"
    if asked.step and any(shifts.values()):
        return f"the candidate counts from 0 again: its step 0 is taken for step {asked.step}"
    firsts = sorted({one.first for one, _ in theirs.values() if one.first is not None})
    if firsts != [asked.step]:
        return f"the candidate counts on, and begins before, at step {ranges(firsts)}"
    return f"the candidate counts on from step {asked.step}"


def _no_boundary(side: str, step: int, found: Side) -> RequestError:
    held = sorted({number for sessions in found.sessions.values() for one in sessions for number in one.begins})
    shown = f"it has the begin of step {ranges(held)}" if held else "no begin of a step was recorded"
    return RequestError(
        f"no session of the {side} begins step {step}: {shown}",
        code="no_such_boundary",
        fix="name the first step after the checkpoint; STEP=OWN where the resumed script counts otherwise",
    )
