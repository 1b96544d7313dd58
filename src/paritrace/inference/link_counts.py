"""Counts of links as the rule derives them now, by domain; nothing is written (IN-7)."""

from paritrace.inference.artifact import Events
from paritrace.inference.link_report import Tally
from paritrace.inference.linking import LinkTables, link_of
from paritrace.inference.records import Activity
from paritrace.inference.result import LinkCounts
from paritrace.inference.vocabulary import Domain


def derived_counts(events: Events, *, tables: LinkTables) -> dict[str, LinkCounts]:
    """Return the links of every activity by the name of its domain; a domain without activities is left out.

    Args:
        tables: of the same events.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    tallies = {domain: Tally() for domain in Domain}
    for event in events:
        if isinstance(event, Activity):
            tallies[event.domain].take(link_of(event, tables))
    counted = {domain.value: tally.counts() for domain, tally in tallies.items()}
    return {name: counts for name, counts in sorted(counted.items()) if counts.activities}
