"""When a rank's syncs are due, so that nodes and ranks do not all upload at once; pure (ST-7, ST-19)."""

from paritrace.evidence.digests import sha256_hex

_GOLDEN = 0.6180339887498949  # its multiples lie evenly between 0 and 1 however many ranks a node has
_HEX_DIGITS = 8


def first_delay_seconds(node_id: str, *, local_rank: int, interval_seconds: float) -> float:
    """Return how long a rank waits before its first sync: the node's share by its digest, the rank's by its number."""
    share = int(sha256_hex(node_id.encode("utf-8"))[:_HEX_DIGITS], 16) / float(16**_HEX_DIGITS)
    return float((share + local_rank * _GOLDEN) % 1.0 * interval_seconds)


def delay_seconds(*, more: bool, interval_seconds: float) -> float:
    """Return how long a rank waits after a sync: not at all while complete bytes are left."""
    return 0.0 if more else interval_seconds
