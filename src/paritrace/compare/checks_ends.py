"""How a run's processes ended, for its check: from the run's records, where they did not end well (RR-5, RS-13)."""

from collections.abc import Iterable

from paritrace.compare.checks_result import EndOf, Ends
from paritrace.runs.death_reading import ends_other_than_well
from paritrace.runs.reading import Run
from paritrace.runs.record_reading import ReadRecord
from paritrace.runs.record_words import record_words

MOST_RECORDS = 1000  # of a check's document; how many more there are is counted


def ends_of(run: Run) -> Ends | None:
    """Return what a run's records say of bad ends, and its page at death; None where all that is recorded went well."""
    records, death = ends_other_than_well(run)
    if not records and death is None:
        return None
    return Ends(tuple(_ends(records[:MOST_RECORDS])), max(0, len(records) - MOST_RECORDS), death)


def _ends(records: Iterable[ReadRecord]) -> Iterable[EndOf]:
    for one in records:
        session = "" if one.start is None else str(one.start.context.values.get("session_id", ""))
        stop = None if one.end is None else one.end.stop
        yield EndOf(one.name, session, one.state, stop, tuple(record_words(one)))
