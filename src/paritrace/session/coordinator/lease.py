"""The one writer lease of a session: while somebody holds it, only who shows it may command (SE-17)."""

import secrets
import threading

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import RequestError
from paritrace.session.api_records import LeaseGiven, LeaseRequest

_NS = 1_000_000_000


class Lease:
    """Held by nobody at first; asked by any thread."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._holder = ""
        self._id: str | None = None
        self._until_ns = 0

    def take(self, asked: LeaseRequest) -> LeaseGiven:
        """Give the lease, or renew it.

        Raises:
            RequestError: Refused, `lease_held`: somebody else holds it.
        """
        with self._lock:
            self._require(asked.lease)
            self._id = asked.lease if self._held() and asked.lease is not None else secrets.token_urlsafe(16)
            self._holder = asked.holder
            self._until_ns = self._clock.monotonic_ns() + int(asked.seconds * _NS)
            return LeaseGiven(self._id, asked.seconds)

    def give_back(self, lease: str) -> None:
        """Let go. Raises as `take`; letting go of what is not held any more is fine."""
        with self._lock:
            self._require(lease)
            self._id = None

    def require(self, lease: str | None) -> None:
        """Let whoever shows the lease, or anybody while nobody holds it, command. Raises as `take`."""
        with self._lock:
            self._require(lease)

    def _held(self) -> bool:
        return self._id is not None and self._clock.monotonic_ns() < self._until_ns

    def _require(self, lease: str | None) -> None:
        if not self._held() or (lease is not None and secrets.compare_digest(lease.encode(), str(self._id).encode())):
            return
        left = (self._until_ns - self._clock.monotonic_ns()) / _NS
        raise RequestError(
            f"{self._holder} holds the writer lease of this session for another {left:.0f} s",
            code="lease_held",
            fix="wait until it is given back or has run out; reading needs no lease",
        )
