"""One id, one attempt: the same bytes twice are counted once, different bytes are a conflict (AT-2): pure."""

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.manifest import Attempt


class Identities(Struct, frozen=True):
    """What was found of ids. `repeated` counts the entries beyond the first; `conflicting` have several contents."""

    num_entries: int
    repeated: dict[str, int]
    conflicting: frozenset[str]


def content_of(attempt: Attempt) -> str:
    """Returns what tells this attempt's content: the declared digest, else one of the entry without its places."""
    if attempt.content_sha256 is not None:
        return attempt.content_sha256
    return sha256(msgspec.json.encode(replace(attempt, origin=None), order="sorted")).hexdigest()


def identities_of(attempts: Iterable[Attempt]) -> Identities:
    """Returns which ids occur more than once, and which of them with different content."""
    seen: dict[str, str] = {}
    repeated: dict[str, int] = {}
    conflicting: set[str] = set()
    entries = 0
    for attempt in attempts:
        entries += 1
        content = content_of(attempt)
        before = seen.setdefault(attempt.attempt_id, content)
        repeated[attempt.attempt_id] = repeated.get(attempt.attempt_id, -1) + 1
        if before != content:
            conflicting.add(attempt.attempt_id)
    twice = {name: count for name, count in sorted(repeated.items()) if count and name not in conflicting}
    return Identities(entries, twice, frozenset(conflicting))
