"""The page at death: who stopped first, on what evidence, what each rank did last, what was in flight; pure (RS-13)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.process.stop_facts import Exited, Wait
from paritrace.runs.stop import exit_words

APART_NS = 1_000_000  # ends that were seen within a millisecond are not put in order: one look may have found both


class DeathGap(StrEnum):
    """Why something of a rank's end is not known."""

    NOT_SEEN = "not_seen"  # nobody watched it: no launcher of ours on its machine
    NO_STEP = "no_step"  # no step had ended
    NO_CALL = "no_call"  # nothing was recorded, or level digest alone
    NO_STACK = "no_stack"  # nothing that shows a stack was there


class SourceState(StrEnum):
    READ = "read"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class RankEnd(Struct, frozen=True, forbid_unknown_fields=True):
    """One rank's end. `seen_ns` is of the monotonic clock of `boot`; `own_word`: what it wrote of itself before."""

    session_id: str
    rank: int
    boot: str
    seen_ns: int | Gap[DeathGap]
    wait: Wait | None
    own_word: str
    last_step: int | Gap[DeathGap]
    last_call: str | Gap[DeathGap]
    stack: tuple[str, ...] | Gap[DeathGap]
    groups: dict[str, int] = {}  # operations begun of each process group, as far as recorded


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that could tell more, and whether it was there."""

    name: str
    state: SourceState
    detail: str


class DeathPage(Struct, frozen=True, forbid_unknown_fields=True):
    """`first_rank` is null where the evidence does not put one end before all others; `why` says which evidence."""

    first_rank: int | None
    first: str
    why: tuple[str, ...]
    ranks: tuple[RankEnd, ...]
    in_flight: tuple[str, ...]
    sources: tuple[Source, ...]


def page_of(ranks: Sequence[RankEnd], *, in_flight: Sequence[str], sources: Sequence[Source]) -> DeathPage:
    """Return the page of ranks that did not all end well."""
    ordered = tuple(sorted(ranks, key=lambda one: one.rank))
    first_rank, first, why = first_stop(ordered)
    return DeathPage(
        first_rank=first_rank,
        first=first,
        why=tuple(why),
        ranks=ordered,
        in_flight=(*_behind(ordered), *in_flight),
        sources=tuple(sources),
    )


def first_stop(ranks: Sequence[RankEnd]) -> tuple[int | None, str, list[str]]:
    """Return which rank is known to have failed first, in words, with the evidence.

    A rank whose end nobody saw may be it; one that ended with exit code 0 is not.
    """
    failed = [one for one in ranks if not ended_well(one)]
    why = list(_words(ranks))
    unseen = [str(one.rank) for one in failed if isinstance(one.seen_ns, Gap)]
    if not failed:
        return None, "every rank ended with exit code 0", why
    if unseen:
        return None, f"which rank stopped first is not known: nobody saw the end of rank {', '.join(unseen)}", why
    if len({one.boot for one in failed}) > 1:
        return None, "which rank stopped first is not known: they ran under clocks that are not related", why
    seen = sorted(failed, key=_seen)
    apart = _seen(seen[1]) - _seen(seen[0]) if len(seen) > 1 else APART_NS
    if apart < APART_NS:
        return None, "which rank stopped first is not known: the first ends were seen within a millisecond", why
    return seen[0].rank, _first_words(seen, apart), why


def _first_words(seen: Sequence[RankEnd], apart: int) -> str:
    how = "" if seen[0].wait is None else f", {exit_words(seen[0].wait)}"
    before = f", {apart / 1e6:.1f} ms before the next one" if len(seen) > 1 else ""
    return f"rank {seen[0].rank} stopped first{how}{before}; what ended it is not known from that"


def ended_well(one: RankEnd) -> bool:
    """Whether a rank's wait status is success."""
    return one.wait == Exited(0)


def _seen(one: RankEnd) -> int:
    return 0 if isinstance(one.seen_ns, Gap) else one.seen_ns


def _words(ranks: Sequence[RankEnd]) -> Iterator[str]:
    known = [_seen(one) for one in ranks if not isinstance(one.seen_ns, Gap)]
    begin = min(known, default=0)
    for one in sorted(ranks, key=_seen):
        how = "its wait status was not seen" if one.wait is None else exit_words(one.wait)
        at = "time not seen" if isinstance(one.seen_ns, Gap) else f"+{(one.seen_ns - begin) / 1e6:.1f} ms"
        yield f"rank {one.rank}: {at}, {how}; {one.own_word}"


def _behind(ranks: Sequence[RankEnd]) -> Iterator[str]:
    """Groups of which ranks had begun other numbers of operations: what the others may have waited in."""
    names = sorted({name for one in ranks for name in one.groups})
    for name in names:
        begun = {one.rank: one.groups.get(name, 0) for one in ranks}
        most = max(begun.values())
        ahead = [str(rank) for rank, count in begun.items() if count == most]
        behind = [f"rank {rank} {count}" for rank, count in begun.items() if count < most]
        if behind:
            yield f"group {name}: rank {', '.join(ahead)} had begun {most} operations, {', '.join(behind)} as recorded"
