"""What `paritrace store` prints for people."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from paritrace.clock import rfc3339
from paritrace.errors import HostError
from paritrace.evidence.gaps import Gap
from paritrace.store.checking import RankFacts
from paritrace.store.legacy import Extracted
from paritrace.store.problems import Problem, in_words
from paritrace.store.records import Remark, RemarkKind, StoreGap
from paritrace.store.restoring import Restored
from paritrace.store.status import PublishedRank, StagedRankStatus, StoreStatus
from paritrace.store.syncing import SyncReport
from paritrace.store.verifying import StoreVerification

LIMITS = (  # ST-19
    "the cap is each node's own, and nothing caps or schedules all nodes together; what a killed process had not"
    " flushed, and what a lost node had not published, is lost; what was published stays"
)
MAX_LINES = 24  # of one list: a screen; --json has all


def sync_text(report: SyncReport | HostError) -> str:
    """What a sync did, or what it met."""
    if isinstance(report, HostError):
        return f"{report.outcome.value}: {report.message} [{report.code}]; tried again at the next sync"
    head = (
        f"node {report.node_id}, rank {report.rank}: {_count(len(report.published), 'object')} published"
        f" ({report.published_bytes:,} bytes), {_count(report.bundles, 'bundle')} in all"
    )
    waiting = f"{report.waiting_bytes:,} bytes wait" if report.waiting_bytes else ""
    overdue = f"{report.overdue_bytes:,} of them for more than two intervals" if report.overdue_bytes else ""
    num_unread = sum(remark.kind is RemarkKind.UNREADABLE for remark in report.transient)
    unread = f"{_count(num_unread, 'path')} could not be read, and the next sync tries again" if num_unread else ""
    remarks = [*report.remarks, *report.transient, *report.tails]
    return "\n".join(_lines([head, waiting, overdue, unread, *_bounded(map(remark_text, remarks))]))


def status_text(status: StoreStatus) -> str:
    """How far each rank is."""
    published = [_published(rank) for rank in status.published]
    staged = [line for rank in status.staged for line in _staged(rank)]
    space = ""
    if not isinstance(status.free_bytes, Gap) and not isinstance(status.needed_bytes, Gap):
        space = f"staging has {status.free_bytes:,} bytes free; a pending bundle needs up to {status.needed_bytes:,}"
    head = f"{status.source}: {_count(len(published), 'rank')}" if status.source is not None else ""
    problems = _bounded(map(in_words, status.problems))
    limits = LIMITS if staged else ""
    lines = _lines([head, *_bounded(published), *_bounded(staged), space, *problems, limits])
    return "\n".join(lines) or "nothing is staged"


def restored_text(restored: Restored, destination: Path) -> str:
    """What was restored, and what was not."""
    whole = "in part" if restored.problems else "whole"
    head = f"run {restored.run_id} restored {whole} into {destination}"
    older = f"older versions of {_count(restored.older_versions, 'file')}: .paritrace-versions"
    return "\n".join(
        _lines([head, *_ranks(restored.ranks), older if restored.older_versions else "", *_problems(restored.problems)])
    )


def extracted_text(extracted: Extracted, destination: Path) -> str:
    """What an old archive held."""
    files = _count(extracted.num_files, "file")
    return (
        f"{files}, {extracted.num_bytes:,} bytes extracted into {destination}\n"
        f"an archive of the older layout has no checksums of its files; its own SHA-256 is {extracted.sha256}"
    )


def verification_text(found: StoreVerification) -> str:
    """Whether a store is intact."""
    run = "an unknown run" if isinstance(found.run_id, Gap) else f"run {found.run_id}"
    head = f"{found.source}: {run}: {found.verdict.value.replace('_', ' ')}"
    return "\n".join(_lines([head, *_ranks(found.ranks), *_problems(found.problems)]))


def remark_text(remark: Remark) -> str:
    """One line about what was not taken or is lost."""
    if remark.kind is RemarkKind.EMPTY_FOLDER:
        return f"    {remark.kind.value}: {remark.path!r}"
    length = "an unknown number of" if isinstance(remark.length, Gap) else f"{remark.length:,}"
    return f"    {remark.kind.value}: {remark.path!r} from byte {remark.offset:,}: {length} bytes"


def _ranks(ranks: Iterable[RankFacts]) -> list[str]:
    return _bounded(line for rank in ranks for line in _rank(rank))


def _rank(rank: RankFacts) -> Iterator[str]:
    match rank.expected:
        case Gap(StoreGap.NO_RECEIPT):
            of = "; no receipt says whether that is all"
        case Gap():
            of = ""
        case int():
            of = f" of {rank.expected}"
    yield (
        f"  node {rank.node_id}, rank {rank.rank}: {_count(rank.bundles, 'bundle')}{of},"
        f" {rank.records:,} records, {rank.payload_bytes:,} bytes"
    )
    yield from map(remark_text, rank.remarks)


def _published(rank: PublishedRank) -> str:
    end = "ended by a receipt" if rank.has_receipt else "no receipt yet"
    return (
        f"  node {rank.node_id}, rank {rank.rank}: {_count(rank.bundles, 'bundle')}, {rank.stored_bytes:,} bytes, {end}"
    )


def _staged(rank: StagedRankStatus) -> Iterator[str]:
    if not rank.checkpoint_readable:
        yield f"  rank {rank.rank}, staged here: no checkpoint that can be read"
    waiting = "unknown" if isinstance(rank.waiting_bytes, Gap) else f"{rank.waiting_bytes:,}"
    last = "never" if isinstance(rank.last_success_unix_ns, Gap) else rfc3339(rank.last_success_unix_ns)
    yield (
        f"  rank {rank.rank}, staged here: {_count(rank.bundles, 'bundle')} published, {waiting} bytes wait,"
        f" last success {last}"
    )
    if rank.pending_bytes:
        yield f"    a bundle of {rank.pending_bytes:,} bytes is built and not published"
    if rank.overdue_bytes:
        yield f"    {rank.overdue_bytes:,} bytes wait for more than two intervals"
    if rank.trouble is not None:
        yield f"    last error: {rank.trouble.message} [{rank.trouble.code}]"


def _problems(problems: Iterable[Problem]) -> list[str]:
    return _bounded(f"  {in_words(problem)}" for problem in problems)


def _bounded(lines: Iterable[str]) -> list[str]:
    every = list(lines)
    if len(every) <= MAX_LINES:
        return every
    return [*every[:MAX_LINES], f"  … and {len(every) - MAX_LINES} more; --json has all"]


def _lines(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
