"""Two scrapes of a server's Prometheus text as what its counters grew by (IN-13)."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from paritrace.errors import HostError, RequestError
from paritrace.files import LOCAL
from paritrace.inference.context import Provenance
from paritrace.inference.importers.counter_deltas import Delta, DeltaGap, Unresolved, deltas
from paritrace.inference.importers.exposition import Scrape, ScrapeFailed, read_exposition
from paritrace.inference.importers.text_source import TextSource, head_of
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.records import Capabilities

NAME = "prometheus"
COMPONENT = "metrics"
CAPABILITY = "counter_deltas"
MOST_SCRAPE_BYTES = 64 << 20  # an exposition is read in memory; the largest servers expose some MiB
AFTER = "after"
WANTED = "wanted"

_LOOKS = re.compile(rb"(?m)^(?:# (?:HELP|TYPE) \S|[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^\n]*\})? [-+0-9.eENaInf]+)")


def recognises(path: Path) -> bool:
    """Says whether a file looks like Prometheus text."""
    return _LOOKS.match(head_of(path).lstrip()) is not None


def open_metrics(asked: Asked) -> Imported:
    """Opens two scrapes; see `importing`.

    Raises:
        RequestError: Refused, `scrape_after_missing` where no later scrape was named.
    """
    if AFTER not in asked.options:
        raise RequestError(
            f"{asked.path} is one scrape: what counters grew by needs two",
            code="scrape_after_missing",
            fix="name the earlier scrape and then the later one",
        )
    later = Path(asked.options[AFTER])
    before = TextSource(asked, reader=NAME)
    after = TextSource(asked, reader=NAME, path=later)
    wanted = tuple(name for name in asked.options.get(WANTED, "").split(",") if name)
    there = [one for one in (before, after) if LOCAL.exists(one.path)]
    return Imported(
        tuple(one.reference("text/plain; version=0.0.4") for one in there), _events(before, after, wanted=wanted)
    )


def _events(before: TextSource, after: TextSource, *, wanted: tuple[str, ...]) -> Events:
    context = before.context(provenance=Provenance.OBSERVED)
    first, second = _scrape(before.path), _scrape(after.path)
    found = deltas(first, second, wanted=wanted)
    counts: Counter[str] = Counter()
    for name, group in groupby(found, key=lambda one: one.name):
        of_family = list(group)
        counts.update(one.gap.value if isinstance(one, Unresolved) else "deltas" for one in of_family)
        collected = any(not isinstance(one, Unresolved) for one in of_family)
        yield Capabilities(
            context=context,
            event_id=before.event_id(after.attachment_id, name),
            component=f"{COMPONENT}:{name}",
            available=collected,
            supported=(CAPABILITY,) if collected else (),
            enabled=(CAPABILITY,) if collected else (),
            collected=(CAPABILITY,) if collected else (),
            metadata={
                "before": before.attachment_id,
                "after": after.attachment_id,
                "series": [_plain(one) for one in of_family],
            },
        )
    limits = tuple(_limits(first, second, found))
    return Account(complete=not set(counts) - {"deltas"}, counts=dict(sorted(counts.items())), limits=limits)


def _plain(one: Delta) -> dict[str, object]:
    """One series as metadata: a number that JSON has not is text."""
    plain: dict[str, object] = msgspec.to_builtins(one)
    return {key: value for key, value in plain.items() if key not in ("name", "labels")} | {"labels": dict(one.labels)}


def _limits(before: Scrape | ScrapeFailed | None, after: object, found: tuple[Delta, ...]) -> Iterator[str]:
    yield "a difference covers all traffic between the two scrapes, also that of others"
    if isinstance(before, Scrape) and isinstance(after, Scrape) and not before.process_starts:
        yield "the server does not export process_start_time_seconds: a restart shows only where a counter fell"
    for one in found:
        if isinstance(one, Unresolved) and one.gap is not DeltaGap.SERIES_MISSING:
            yield f"{one.name}: {one.gap.value}, {one.detail}" if one.detail else f"{one.name}: {one.gap.value}"


def _scrape(path: Path) -> Scrape | ScrapeFailed | None:
    if not LOCAL.exists(path):
        return None
    try:
        data = b"".join(LOCAL.iter_chunks(path, length=MOST_SCRAPE_BYTES + 1))
    except HostError as error:
        return ScrapeFailed(error.code)
    if len(data) > MOST_SCRAPE_BYTES:
        return ScrapeFailed(f"larger than {MOST_SCRAPE_BYTES >> 20} MiB")
    try:
        return read_exposition(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return ScrapeFailed(f"byte {error.start} is not UTF-8")
    except ImportError as error:
        raise HostError(
            f"Prometheus text is read by prometheus_client, which is not installed ({error.name})",
            code="missing_extra",
            fix="pip install 'paritrace[infer]'",
        ) from error


READER = Reader(
    name=NAME,
    kind=SourceKind.METRICS,
    reads="two scrapes of a server's Prometheus text",
    recognises=recognises,
    open=open_metrics,
    options=((AFTER, "the later scrape"), (WANTED, "families that have to be there, with commas between them")),
)
