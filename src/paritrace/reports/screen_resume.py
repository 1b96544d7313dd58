"""What a resumed run began with, beside what its uninterrupted continuation began with (CP-28)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.result import Comparison
from paritrace.compare.resume_result import ResumeFound, ResumePart, ResumeState
from paritrace.evidence.spans import ranges
from paritrace.reports.harmless import harmless, shorten
from paritrace.reports.layout import Section, paragraph, shortened
from paritrace.reports.wording import count, listed

WORDS = {
    "parameter": "weights",
    "buffer": "buffers",
    "optimizer_state": "optimizer state",
    "scheduler": "scheduler",
    "scaler": "grad scaler",
    "fp8": "FP8 scales",
    "rng": "RNG",
    "sampler": "sampler",
    "data_position": "data position",
    "batch": "batch",
}
NAMES_SHOWN = 2
NAME_COLUMNS = 30
NOT_CAPTURED_SHOWN = 4


def section(comparison: Comparison, /) -> Section:
    """Returns the inventory part by part; nothing where no resume was asked for."""
    found = comparison.resume
    lines = () if found is None else shortened(_lines(found))
    return Section(anchor="resume", lines=lines, keep=4, most=14, spaced=True)


def sentence(comparison: Comparison) -> str:
    """The finding at the boundary, for the headline; where nothing differs there, what is known of the steps after."""
    found = comparison.resume
    if found is None:
        return "The candidate was not compared as a resumed run."
    told = boundary(found)
    if any(part.differ for part in found.parts) or not comparison.counts.paired:
        return told
    after = f"{comparison.counts.ok:,} of {count(comparison.counts.paired, 'paired call')}"
    return f"{told} From there on bits agree in {after}."


def boundary(found: ResumeFound) -> str:
    """What the run began the step with, in a sentence."""
    apart = [part for part in found.parts if part.differ]
    if apart:
        told = listed([_apart(part, found.ranks) for part in apart], most=3)
        return f"The resumed run parts from its continuation before step {found.step}: {told}."
    agree = sum(part.agree for part in found.parts)
    if not agree:
        return f"Nothing that the resumed run began step {found.step} with could be compared."
    return (
        f"The resumed run begins step {found.step} as its continuation does: {count(agree, 'captured value')} agree "
        f"(rank {ranges(found.ranks)})."
    )


def strength(found: ResumeFound) -> str:
    """What the statement covers: where something was not captured, no equal state is claimed (A-18)."""
    names = _not_captured(found)
    unknown = sum(part.unknown for part in found.parts)
    told = [f"not captured: {listed(names, most=NOT_CAPTURED_SHOWN)}"] if names else []
    if unknown:
        told.append(f"{count(unknown, 'value')} on one side only or with a gap")
    if found.ranks_missing:
        told.append(f"rank {ranges(found.ranks_missing)} on one side only")
    if not told:
        return "by fingerprints of every part of the state that is known"
    start = "by fingerprints" if any(part.differ for part in found.parts) else "no equal state is claimed"
    return f"{start}; {'; '.join(told)}"


def _lines(found: ResumeFound) -> Iterator[str]:
    yield from paragraph(f"step {found.step}, rank {ranges(found.ranks)}: {found.assumed}", most=2)
    for part in found.parts:
        yield told_part(part, found.ranks)
    if found.ranks_missing:
        yield f"rank {ranges(found.ranks_missing)} has no session on one side"
    names = _not_captured(found)
    if names:
        yield f"not captured: {listed(names, most=NOT_CAPTURED_SHOWN)}"


def told_part(part: ResumePart, all_ranks: Sequence[int]) -> str:
    """One part in words: how many values agree, which do not and where."""
    word = WORDS.get(part.group, part.group).ljust(16)
    total = part.agree + part.differ + part.idle
    text = f"{word}{part.agree:,} of {total:,} agree" if total else f"{word}not compared"
    if part.differ:
        differing = [state for state in part.states if not state.idle]
        text += f"; {listed([_state(state, all_ranks) for state in differing], most=NAMES_SHOWN)} differ"
        if part.agree_ranks and len(all_ranks) > 1:
            text += f"; rank {ranges(part.agree_ranks)} agrees"
    if part.idle:
        names = [harmless(state.name) for state in part.states if state.idle]
        text += f"; {listed(names, most=NAMES_SHOWN)} differ, never drawn from"
    if part.unknown:
        text += f"; {part.unknown:,} on one side only"
    return text


def _apart(part: ResumePart, all_ranks: Sequence[int]) -> str:
    """`RNG of torch_cpu on ranks 1-7`, `optimizer state (12 values)`."""
    states = [state for state in part.states if not state.idle]
    named = listed([shorten(harmless(state.name), width=NAME_COLUMNS) for state in states[:1]], most=1)
    more = len({state.name for state in states}) - 1
    names = f"{named} and {more:,} more" if more > 0 else named
    on = sorted({rank for state in states for rank in state.ranks})
    where = "" if len(all_ranks) == 1 else f" on rank {ranges(on)}" if len(on) == 1 else f" on ranks {ranges(on)}"
    absent = {state.missing for state in states} - {""}
    verb = f", of which the {'resumed run' if 'candidate' in absent else 'continuation'} has none" if absent else ""
    return f"{WORDS.get(part.group, part.group)} ({names}){verb}{where}"


def _state(state: ResumeState, all_ranks: Sequence[int]) -> str:
    name = shorten(harmless(state.name), width=NAME_COLUMNS)
    return name if len(all_ranks) == 1 else f"{name} (rank {ranges(state.ranks)})"


def _not_captured(found: ResumeFound) -> list[str]:
    """What either side did not capture, said once where both left it out."""
    ours, theirs = (found.not_captured[side] for side in ("baseline", "candidate"))
    both = [name for name in ours if name in theirs]
    alone = [f"{name} ({side})" for side, names in found.not_captured.items() for name in names if name not in both]
    return [harmless(name) for name in (*both, *alone)]
