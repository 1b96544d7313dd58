"""What an append, an import or a new artifact wrote, as a document (IN-5)."""

from pathlib import Path

from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import head_of, place_of
from paritrace.inference.committing import Committed
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.importing import Account
from paritrace.inference.result import VERSION, AppendReport
from paritrace.inference.sources import source_of

APPEND_FORMAT = "paritrace-infer-append"


def append_report(
    path: Path, committed: Committed, *, account: Account | None = None, files: Files = LOCAL
) -> AppendReport:
    """Return what was written to the artifact at a path, with an importer's account where there is one."""
    place = place_of(path)
    return AppendReport(
        format=APPEND_FORMAT,
        version=VERSION,
        artifact=source_of(place, head_of(place, files=files).context.facts.run_id, files=files),
        written=committed.written,
        num_written=committed.num_written,
        already_present=committed.already_present,
        recovered=committed.recovered.value,
        limits=() if account is None else account.limits,
        counts={} if account is None else dict(account.counts),
        complete=Gap(InferenceGap.NOT_ASKED) if account is None else account.complete,
    )
