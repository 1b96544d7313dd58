"""How a request names evidence: by path, or by the result of the operation that made it (AU-16)."""

from pathlib import Path

from paritrace.automation.protocol.captures import TraceResult
from paritrace.automation.protocol.records import FilePath

# a run directory, an archive, a store or its address; relative to the working directory of the tool
Evidence = FilePath | TraceResult


def path_of(evidence: Evidence) -> Path:
    """Return the path that evidence lies at."""
    return Path(evidence.run) if isinstance(evidence, TraceResult) else Path(evidence)
