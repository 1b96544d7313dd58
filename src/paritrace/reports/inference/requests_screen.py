"""The screen of `infer requests` (IN-14)."""

from collections.abc import Mapping

from paritrace.inference.requests_report import RequestsReport
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import count


def requests_screen(found: RequestsReport) -> str:
    """Returns the requests by source, and for every two sources how many are one."""
    lines = [f"{count(len(found.sources), 'source')} of requests, joined by request id only"]
    for source in found.sources:
        without = f", {source.without_id:,} without an id" if source.without_id else ""
        lines.append(f"  {harmless(source.source)}: {count(source.requests, 'request')}{without}")
    for one in found.joins:
        total = one.joined + sum(one.unjoined.values())
        reasons = _counts(one.unjoined)
        others = f"; not joined: {reasons}" if reasons else ""
        by = f" ({_counts(one.by_basis)})" if one.joined else ""
        lines.append(
            f"  {harmless(one.first)} and {harmless(one.second)}: {one.joined:,} of {total:,} are one{by}{others}"
        )
    return "\n".join(lines)


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in found.items())
