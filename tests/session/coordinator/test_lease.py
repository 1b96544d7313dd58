"""The one writer lease (SE-17)."""

import pytest

from paritrace.errors import RequestError
from paritrace.session.api_records import LeaseRequest
from paritrace.session.coordinator.lease import Lease
from paritrace.testing.clocks import ManualClock


def test_se17_a_lease_is_renewed_by_whoever_shows_it_and_runs_out_by_itself() -> None:
    clock = ManualClock()
    lease = Lease(clock)
    lease.require(None)
    first = lease.take(LeaseRequest("Ada", 60.0))
    clock.move(round(59.0 * 1e9))
    assert lease.take(LeaseRequest("Ada", 60.0, first.lease)).lease == first.lease
    clock.move(round(59.0 * 1e9))
    with pytest.raises(RequestError, match="Ada holds the writer lease of this session for another 1 s"):
        lease.require(None)
    with pytest.raises(RequestError):
        lease.require("another")
    lease.require(first.lease)
    clock.move(round(2.0 * 1e9))
    lease.require(None)
    second = lease.take(LeaseRequest("Eve", 60.0, first.lease))
    assert second.lease != first.lease
    with pytest.raises(RequestError):
        lease.give_back(first.lease)
    lease.give_back(second.lease)
    lease.require(None)
