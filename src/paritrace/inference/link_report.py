"""Linking an artifact: every activity's link derived, what is new kept, and counts by basis and reason (IN-7)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from paritrace.errors import RequestError
from paritrace.evidence.coverage import Coverage, ExpectedGap, coverage
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.appending import DEFAULTS, AppendOptions
from paritrace.inference.artifact import Events, Place, head_of, place_of
from paritrace.inference.committing import Asked, Machine, commit
from paritrace.inference.enveloping import SessionFacts, envelope_path
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.gathering import AT_ONCE, Gathering
from paritrace.inference.kept_links import KeptLinks, said_by
from paritrace.inference.linking import RULE, LinkTables, link_of
from paritrace.inference.records import Activity, AnyEvent, Event, Link, Loss
from paritrace.inference.result import VERSION, LinkCounts, LinkExplanation, LinkReport
from paritrace.inference.sources import source_of
from paritrace.inference.vocabulary import Domain, LossStatus
from paritrace.inference.words import because
from paritrace.process.identity import own_identity

LINK_FORMAT = "paritrace-infer-link"
EXPLANATION_FORMAT = "paritrace-infer-explanation"


class Tally:
    """Counts links of one domain."""

    def __init__(self) -> None:
        self.bases: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def take(self, found: Link) -> None:
        """Count one link."""
        if found.basis is not None:
            self.bases[found.basis.value] += 1
        if found.reason is not None:
            self.reasons[found.reason.value] += 1

    def counts(self) -> LinkCounts:
        """Return the counts; a fraction of no activities is a gap."""
        linked, rest = self.bases.total(), self.reasons.total()
        fraction: float | Gap[InferenceGap] = Gap(InferenceGap.NO_ACTIVITIES)
        if linked + rest:
            fraction = linked / (linked + rest)
        return LinkCounts(
            activities=linked + rest,
            linked=linked,
            by_basis=dict(sorted(self.bases.items())),
            by_reason=dict(sorted(self.reasons.items())),
            linked_fraction=fraction,
        )


class Losses:
    """Counts what sources tell of their losses."""

    def __init__(self) -> None:
        self._lost: Counter[str] = Counter()
        self._said: Counter[LossStatus] = Counter()

    def take(self, one: Loss) -> None:
        """Count one loss."""
        self._said[one.status] += 1
        if one.status is LossStatus.REPORTED:
            self._lost[one.reason.value] += one.count or 1

    def coverage(self, observed: int) -> Coverage:
        """Return how many device activities there are of how many, as far as the sources tell."""
        if self._said[LossStatus.ZERO_REPORTED] and set(self._said) == {LossStatus.ZERO_REPORTED}:
            return coverage(observed, expected=observed, declared=True, gaps={})
        gap = ExpectedGap.NOT_RECORDED if self._lost else ExpectedGap.NOT_DECLARED
        return coverage(observed, expected=Gap(gap), declared=False, gaps=self._lost)


def link_artifact(path: Path, *, options: AppendOptions = DEFAULTS) -> LinkReport:
    """Derive every activity's link anew, over the whole artifact, and append those that are new.

    A link that says something else than one that is kept supersedes it; a link that says the same is not written again.

    Raises:
        EvidenceError, HostError: as `append`, and as reading the artifact.
    """
    place = place_of(path)
    head = head_of(place, files=options.files)
    events = Events(place, files=options.files)
    kept, losses = KeptLinks(), Losses()
    tables = LinkTables(_seen(events, kept, losses))
    tallies: dict[str, Tally] = {domain.value: Tally() for domain in Domain}
    run_id = head.context.facts.run_id
    new = _NewLinks(run_id)
    unchanged = superseded = 0
    for activity in events:
        if not isinstance(activity, Activity):
            continue
        derived = link_of(activity, tables)
        tallies[activity.domain.value].take(derived)
        old = list(kept.of(activity.activity_ref))
        if old and said_by(derived) in {said for said, _ in old}:
            unchanged += 1
            continue
        superseded += len(old)
        ids = tuple(sorted(event_id for _, event_id in old))
        session = activity.context.facts.session_id
        new.take(link_of(activity, tables, supersedes=ids) if ids else derived, session=session)
    gatherings = new.gathered()
    written = _written(place, gatherings, head.context.facts.session_id, run_id=run_id, options=options)
    gpu = tallies[Domain.GPU.value].counts()
    return LinkReport(
        format=LINK_FORMAT,
        version=VERSION,
        artifact=source_of(place, run_id, files=options.files),
        rule=RULE,
        gpu=gpu,
        by_domain={name: tally.counts() for name, tally in sorted(tallies.items()) if tally.counts().activities},
        linked_fraction=gpu.linked_fraction,
        coverage=losses.coverage(gpu.activities),
        written=written,
        already_present=unchanged,
        superseded=superseded,
    )


def explain_link(path: Path, activity_id: str, *, options: AppendOptions = DEFAULTS) -> LinkExplanation:
    """Return one activity's link with the lines of the events it rests on.

    Args:
        activity_id: the activity's id, its event id, or `PRODUCER ID` where several producers have it.

    Raises:
        RequestError: Refused: `no_such_activity`, `ambiguous_activity`.
    """
    place = place_of(path)
    head = head_of(place, files=options.files)
    events = Events(place, files=options.files)
    line, activity = _activity(events, activity_id)
    derived = link_of(activity, LinkTables(events))
    wanted = set(derived.evidence)
    lines = {
        one.found.event_id: one.number
        for one in events.lines()
        if isinstance(one.found, Event) and one.found.event_id in wanted
    }
    return LinkExplanation(
        format=EXPLANATION_FORMAT,
        version=VERSION,
        artifact=source_of(place, head.context.facts.run_id, files=options.files),
        activity_id=activity.activity_ref.id,
        activity_line=line,
        link=derived,
        because=because(derived),
        evidence_lines=dict(sorted(lines.items(), key=lambda item: item[1])),
    )


def _seen(events: Iterable[AnyEvent], kept: KeptLinks, losses: Losses) -> Iterator[AnyEvent]:
    """Yield the events, after links and losses among them are taken: an artifact is long, and read once for all."""
    for event in events:
        if isinstance(event, Link):
            kept.take(event)
        elif isinstance(event, Loss):
            losses.take(event)
        yield event


class _NewLinks:
    """Gathers links by the session of their activity, some hundred at once."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._gatherings: dict[str, Gathering] = {}
        self._waiting: dict[str, list[Link]] = {}

    def take(self, one: Link, *, session: str) -> None:
        waiting = self._waiting.setdefault(session, [])
        waiting.append(one)
        if len(waiting) >= AT_ONCE:
            self._flush(session)

    def gathered(self) -> dict[str, Gathering]:
        """All that was taken, by session."""
        for session in self._waiting:
            self._flush(session)
        return self._gatherings

    def _flush(self, session: str) -> None:
        gathering = self._gatherings.get(session)
        if gathering is None:
            gathering = Gathering(run_id=self._run_id, session_id=session, ours=True)
            self._gatherings[session] = gathering
        gathering.take_all(self._waiting[session], of="paritrace infer link")
        self._waiting[session] = []


def _written(place: Place, gatherings: dict[str, Gathering], first: str, *, run_id: str, options: AppendOptions) -> int:
    envelope = envelope_path(place, given=options.envelope, files=options.files)
    machine = Machine(own_identity(), options.files, options.clock)
    written = 0
    for session, gathering in sorted(gatherings.items()):
        asked = Asked(
            run_id=run_id,
            session=SessionFacts(session_id=session),
            first_session=first,
            envelope=envelope,
            gatherings=(gathering,),
        )
        written += commit(place, asked, machine).num_written
    return written


def _activity(events: Events, wanted: str) -> tuple[int, Activity]:
    found: dict[Ref, tuple[int, Activity]] = {}
    for line in events.lines():
        event = line.found
        if isinstance(event, Activity):
            ref = event.activity_ref
            if wanted in (ref.id, event.event_id, f"{ref.producer_id} {ref.id}"):
                found.setdefault(ref, (line.number, event))
    if not found:
        raise RequestError(
            f"no activity is named {wanted[:200]!r}",
            code="no_such_activity",
            fix="give an activity's id or event id as the artifact has it",
        )
    if len(found) > 1:
        raise RequestError(
            f"{len(found)} activities are named {wanted[:200]!r}, of producers"
            f" {', '.join(sorted(ref.producer_id for ref in found))[:200]}",
            code="ambiguous_activity",
            fix="give its event id, or 'PRODUCER ID' in one argument",
        )
    return next(iter(found.values()))
