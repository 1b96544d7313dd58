"""Keys by which an activity is found elsewhere: scoped ids, and what is no id (IN-7, IN-24)."""

from collections.abc import Iterator

from paritrace.inference.records import Activity
from paritrace.inference.vocabulary import LinkReason

SENTINELS = frozenset({"0", "-1", str(2**32 - 1), "null", ""})
Key = tuple[str | int, ...]


def ids_of(activity: Activity) -> Iterator[tuple[str, str]]:
    """Yield the correlation ids of an activity that are ids, each with its kind."""
    for kind, found in (("runtime", activity.runtime_correlation_id), ("cuda", activity.cuda_correlation_id)):
        if found is not None and found.strip() not in SENTINELS:
            yield kind, found


def keys_of(activity: Activity) -> Iterator[tuple[Key, str, str | None]]:
    """Yield the full keys of an activity: where its id is unique, the id, the device; a missing one is its own value.

    Nothing is yielded without scope, host and pid, which every key needs.
    """
    facts, scope = activity.context.facts, activity.correlation_scope
    if scope is None or facts.host is None or facts.pid is None:
        return
    for kind, found in ids_of(activity):
        key = (facts.run_id, facts.session_id, facts.host, facts.pid, scope.producer_id, scope.id, kind)
        yield key, found, facts.device_uuid


def launch_keys_of(activity: Activity) -> Iterator[tuple[Key, str]]:
    """Yield the keys by which a piece of work and its launch find each other inside one trace: where, and the id."""
    facts, scope = activity.context.facts, activity.correlation_scope
    if scope is None:
        return
    trace = activity.trace_attachment_id or ""
    for kind, found in ids_of(activity):
        yield (facts.run_id, facts.session_id, trace, scope.producer_id, scope.id, kind), found


def why_no_key(activity: Activity) -> LinkReason | None:
    """Return why an activity has no usable id, None where it has one."""
    if activity.correlation_scope is None:
        return LinkReason.NO_SCOPE
    if any(True for _ in ids_of(activity)):
        return None
    given = (activity.runtime_correlation_id, activity.cuda_correlation_id)
    return LinkReason.NO_KEY if all(one is None for one in given) else LinkReason.SENTINEL
