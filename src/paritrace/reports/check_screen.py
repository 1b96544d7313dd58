"""What a person sees of `check RUN`: what fails first, then what holds, then what could not be checked (CP-25)."""

from collections.abc import Iterator, Sequence
from shlex import quote

from paritrace.compare.checks_result import Checked, Invariant, Outcome, RankCoverage
from paritrace.compare.checks_telling import ranks_told
from paritrace.evidence.remarks import of_ranks
from paritrace.evidence.spans import ranges
from paritrace.reports.check_story import FIRST, in_order, sentence, story_of
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, WIDTH, Section, fit, paragraph
from paritrace.reports.wording import count

MARKS = {Outcome.PASS: "ok", Outcome.FAIL: "FAIL", Outcome.NOT_CHECKABLE: "?", Outcome.NOT_APPLICABLE: "-"}
FAILS = {  # what a failure is, in words; the names of invariants say what holds
    "parameters.have_gradient": "trainable parameters without a gradient",
    "parameters.in_optimizer": "trainable parameters that no optimizer holds",
    "parameters.change": "parameters with a gradient that never change",
    "parameters.tied": "parameters declared tied are not alike",
    "gradients.not_zero": "gradients that are zero at every step",
    "gradients.norm_finite": "the gradient norm is not finite",
    "optimizer.learning_rate": "a learning rate that is zero throughout",
    "batches.not_repeated": "a batch comes again",
    "values.finite": "NaN or infinity appears",
    "loss.finite": "the loss is not finite",
    "dtypes.no_hidden_narrowing": "float32 narrowed unseen",
    "recomputation.equals_original": "a recomputation gives other bits",
    "evidence.journal_whole": "the journal is not whole",
    "evidence.ranks_present": "ranks are missing",
    "evidence.steps_complete": "declared steps are missing",
    "replicas.parameters": "parameters of replicas part",
    "replicas.optimizer_state": "optimizer states of replicas part",
    "replicas.gradients": "gradients of replicas part",
    "replicas.rng": "generators that are not as the mesh asks",
    "batches.across_ranks": "data-parallel ranks share a batch",
    "collectives.match": "members of a group make unlike collectives",
    "collectives.completed": "collectives that were not seen to complete",
    "collectives.results": "a collective gives members unlike results",
    "trace.whole": "the trace ends before its end",
    "trace.values": "values that cannot be read",
    "trace.tables": "tables of a version that is not known",
    "trace.no_loss": "the profiler lost records",
    "device.has_launch": "device work without a launch record",
    "launch.has_work": "launches without device work",
    "device.ids": "correlation ids that are none (0, -1, 2^32-1 or empty)",
    "launch.ids_unique": "launches that share an id",
    "annotations.on_device": "annotations without one",
    "times.known": "events without a time",
    "times.finished": "events without an end",
    "times.nested": "events of one thread that cross",
    "device.in_turn": "work of one stream that overlaps",
}
PATH_COLUMNS = 24  # a longer one would take the place of what the line says
ID_COLUMNS = 31
NAMES_SHOWN = 4
CROWDED = 3  # invariants of one family with one reason
FACTS_SHOWN = 2


def check_screen(checked: Checked, /) -> str:
    """Returns the screen as plain text, at most 34 lines of 100 columns."""
    failed = in_order(invariant for invariant in checked.invariants if invariant.status is Outcome.FAIL)
    held = [invariant for invariant in checked.invariants if invariant.status is Outcome.PASS]
    unknown = [invariant for invariant in checked.invariants if invariant.status is Outcome.NOT_CHECKABLE]
    idle = [invariant for invariant in checked.invariants if invariant.status is Outcome.NOT_APPLICABLE]
    num_ranks = len({one.rank for one in checked.coverage.values()})
    several = len(checked.coverage) > 1
    sections = (
        _headline(checked, failed=failed),
        Section(anchor="fails", lines=_failures(failed, several=several), keep=2, most=18, spaced=True),
        Section(
            anchor="holds",
            lines=tuple(_held(held, num_ranks=num_ranks)),
            keep=1,
            most=20,
            spaced=True,
        ),
        Section(anchor="unknown", lines=tuple(_unknown(unknown)), keep=2, most=12, spaced=True),
        Section(anchor="n/a", lines=tuple(_unknown(idle)), keep=1, most=6, spaced=True),
        _coverage(checked),
        Section(anchor="capture", lines=tuple(_remarks(checked)), keep=2, most=8, spaced=True),
        Section(anchor="next", lines=(f"{_again(checked)}     every invariant with all of its evidence",)),
    )
    return "\n".join(fit(sections, closing=f"more: {_again(checked)}")) + "\n"


def _again(checked: Checked) -> str:
    path = quote(checked.run.path)
    return f"paritrace check {path if len(path) <= PATH_COLUMNS and path.isprintable() else 'RUN'} --json"


def _headline(checked: Checked, *, failed: Sequence[Invariant]) -> Section:
    said, strength = statement(checked, failed=failed)
    return Section(anchor="check", lines=(*paragraph(said, most=3), *paragraph(strength, most=2)), keep=5)


def statement(checked: Checked, /, *, failed: Sequence[Invariant]) -> tuple[str, str]:
    """Returns what was found in a sentence, and how strong that is; `failed` in the order in which they are told."""
    counts = checked.counts
    total = len(checked.invariants) - counts.get(Outcome.NOT_APPLICABLE, 0)
    open_ones = counts.get(Outcome.NOT_CHECKABLE, 0)
    if failed:
        said = _leading(failed, total=total)
    elif total > open_ones:
        said = f"No invariant that could be checked fails: {counts.get(Outcome.PASS, 0):,} of {total:,} hold."
    else:
        said = "Nothing could be checked."
    unchecked = f"{open_ones:,} of {total:,} could not be checked" if open_ones else f"all {total:,} could be checked"
    return said, f"{unchecked}; `ok` speaks of what was recorded, not of all that ran"


def _leading(failed: Sequence[Invariant], *, total: int) -> str:
    """Returns the most telling failure in a sentence, and how many there are."""
    kinds = len({invariant.id for invariant in failed})
    counted = f"{len(failed):,} of {total:,} invariants {_fail(len(failed))}"
    story = story_of(failed)
    if story is not None:
        told = sentence(story)
        return f"{told[:1].upper() + told[1:] if story.partings[0].what != 'parameter' else told} {counted}."
    if failed[0].id in FIRST and failed[0].evidence.facts:
        return f"{failing(failed[0])}: {shorten(failed[0].evidence.facts[0], width=150)}. {counted}."
    return f"{counted}{'; first' if kinds > 1 or len(failed) > 1 else ''}: {_short(failed[0])}"


def _short(invariant: Invariant) -> str:
    names = f" ({_some(invariant, most=1)})" if invariant.evidence.names else ""
    step = f" at step {invariant.step}" if invariant.step >= 0 else ""
    return f"{failing(invariant)}{step}{names}."


def failing(invariant: Invariant, /) -> str:
    """Returns what a failure is, in words."""
    return FAILS.get(invariant.id, f"not so: {invariant.name}")


def _fail(number: int) -> str:
    return "fails" if number == 1 else "fail"


def _some(invariant: Invariant, *, most: int) -> str:
    evidence = invariant.evidence
    shown = [shorten(name, width=36) for name in evidence.names[:most]]
    more = f" and {evidence.total - len(shown):,} more" if evidence.total > len(shown) else ""
    return ", ".join(shown) + more


def _failures(failed: Sequence[Invariant], *, several: bool) -> tuple[str, ...]:
    """One block for what fails alike on several ranks."""
    alike: dict[tuple[str, int, tuple[str, ...]], list[Invariant]] = {}
    for invariant in failed:
        alike.setdefault((invariant.id, invariant.step, invariant.evidence.names), []).append(invariant)
    return tuple(line for same in alike.values() for line in _failure(same, several=several))


def _failure(same: Sequence[Invariant], *, several: bool) -> list[str]:
    invariant = same[0]
    evidence = invariant.evidence
    known = sorted({one.rank for one in same if one.rank >= 0})
    rank = f" {ranks_told(known)}" if several and known else ""
    step = f" at step {invariant.step}" if invariant.step >= 0 else ""
    lines = [_row(invariant, f"{failing(invariant)}{step}{rank}")]
    if evidence.names and not evidence.partings:  # their facts name them, with their sides
        lines.append(_indented(_some(invariant, most=NAMES_SHOWN)))
    if evidence.file:
        calls = "".join(f"  call {record_id}" for record_id in evidence.record_ids[:1])
        lines.append(_indented(f"{evidence.file}:{evidence.line}  {evidence.module}{calls}"))
    return lines + [_indented(fact) for fact in evidence.facts[:FACTS_SHOWN]]


def _held(held: Sequence[Invariant], *, num_ranks: int) -> list[str]:
    lines: list[str] = []
    by_id: dict[str, list[Invariant]] = {}
    for invariant in sorted(held, key=lambda one: one.rank >= 0):  # what holds across ranks comes first
        by_id.setdefault(invariant.id, []).append(invariant)
    for same in by_id.values():
        invariant = same[0]
        known = [one.rank for one in same if one.rank >= 0]
        rank = f" ({ranks_told(known)})" if known and len(set(known)) < num_ranks else ""
        lines.append(_row(invariant, invariant.name + rank))
        if invariant.id in _TELLING:
            lines += [_indented(fact) for fact in invariant.evidence.facts[:FACTS_SHOWN]]
    return lines


# Their facts are worth a line although they hold: what is narrowed in the open, what is tied, what the rate was.
_TELLING = frozenset({"dtypes.no_hidden_narrowing", "parameters.tied", "optimizer.learning_rate"})


def _unknown(unknown: Sequence[Invariant]) -> list[str]:
    """One line per reason: several invariants are often not checkable for the same one."""
    by_reason: dict[str, list[str]] = {}
    for invariant in unknown:
        by_reason.setdefault(invariant.evidence.reason, []).append(invariant.id)
    lines: list[str] = []
    for reason, identities in by_reason.items():
        lines += paragraph(f"{reason}: {', '.join(_families(identities))}", most=3)
    return lines


def _families(identities: Sequence[str]) -> list[str]:
    """Returns the names of invariants, once each; of a crowded family only how many: `replicas.* (6)`."""
    families: dict[str, list[str]] = {}
    for identity in dict.fromkeys(identities):
        families.setdefault(identity.partition(".")[0], []).append(identity)
    return [
        one
        for family, members in families.items()
        for one in (members if len(members) < CROWDED else [f"{family}.* ({len(members)})"])
    ]


def _coverage(checked: Checked) -> Section:
    lines = [line for text in coverage_texts(checked) for line in paragraph(text, most=2)]
    return Section(anchor="coverage", lines=tuple(lines), keep=1, most=6, spaced=True)


def coverage_texts(checked: Checked, /) -> Iterator[str]:
    """Yields what was recorded: one statement for sessions that recorded alike."""
    alike: dict[tuple[str, tuple[int, ...], tuple[str, ...]], list[RankCoverage]] = {}
    for coverage in checked.coverage.values():
        alike.setdefault((coverage.status, coverage.steps_seen, coverage.levels), []).append(coverage)
    for (status, seen, levels), same in alike.items():
        steps = f"step {ranges(seen)}" if seen else "no step"
        calls, states = sum(one.calls for one in same), sum(one.states for one in same)
        yield (
            f"{ranks_told(one.rank for one in same)}: {status}; {steps}; {count(calls, 'call')}, "
            f"{count(states, 'state row')}{' in all' if len(same) > 1 else ''}; levels {', '.join(levels) or 'none'}"
        )


def _remarks(checked: Checked) -> Iterator[str]:
    for remark in remarks_of(checked):
        yield from paragraph(remark, most=2)


def remarks_of(checked: Checked, /) -> Iterator[str]:
    """Yields what is remarked of the capture itself, with the ranks it is true of."""
    by_rank: dict[int, tuple[str, ...]] = {}
    for coverage in checked.coverage.values():
        by_rank[coverage.rank] = by_rank.get(coverage.rank, ()) + coverage.remarks
    yield from of_ranks(by_rank)


def _row(invariant: Invariant, text: str) -> str:
    head = f"{MARKS[invariant.status].ljust(4)}  {shorten(invariant.id, width=ID_COLUMNS).ljust(ID_COLUMNS)}  "
    return head + shorten(text, width=CONTENT - len(head))


def _indented(text: str) -> str:
    return "      " + shorten(text, width=min(CONTENT, WIDTH) - 6)
