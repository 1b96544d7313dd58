"""Keys that stand twice in one object of a trace: which of two values holds is unknown, so neither is read (P2, P9).

Parsers keep the last one without a word. A block of events is screened, since to look at every key of a trace takes
twice as long as reading it: the text of a key that is read has to stand as often as there are events with that field.
"""

import json
from collections import Counter
from collections.abc import Sequence

from paritrace.inference.importers.kineto_events import TraceEvent

READ = frozenset(
    ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "correlation", "device", "stream", "graph id")
)
Pairs = list[tuple[str, object]]


def once(pairs: Pairs, /) -> tuple[dict[str, object], list[str]]:
    """Return the members of an object whose keys stand in it once, and the keys that do not."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found, []
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    return {key: value for key, value in pairs if key not in twice}, twice


def may_repeat(text: bytes, events: Sequence[TraceEvent], /) -> bool:
    """Say whether a key that is read may stand twice in one of a block's events; false only where none does."""
    if b"\\" in text and b"\\u00" in text:
        return True  # a key that is spelled with escapes is not found by its text
    given = [one.args for one in events if one.args is not None]
    expected = {
        b'"ph"': [one.ph != "" for one in events],
        b'"cat"': [one.cat is not None for one in events],
        b'"name"': [one.name != "" for one in events],
        b'"pid"': [one.pid is not None for one in events],
        b'"tid"': [one.tid is not None for one in events],
        b'"ts"': [one.ts is not None for one in events],
        b'"dur"': [one.dur is not None for one in events],
        b'"args"': [True] * len(given),
        b'"correlation"': [one.correlation is not None for one in given],
        b'"device"': [one.device is not None for one in given],
        b'"stream"': [one.stream is not None for one in given],
        b'"graph id"': [one.graph_id is not None for one in given],
    }
    return any(text.count(key) != sum(there) for key, there in expected.items())


def repeats(text: bytes, /) -> bool:
    """Say whether a key that is read stands twice in an object of a list of events, or that cannot be found out."""
    met = False

    def noticed(pairs: Pairs) -> None:
        nonlocal met
        met = met or not READ.isdisjoint(once(pairs)[1])

    try:
        json.loads(text, object_pairs_hook=noticed, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return True
    return met
