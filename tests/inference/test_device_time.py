"""Three numbers for each device and clock, exact, and shares that add up (IN-9, IN-26)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.busy import busy, busy_of_owners
from paritrace.inference.context import ClockKind
from paritrace.inference.device_time import Account, account
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.records import AnyEvent
from paritrace.inference.result import DeviceTime
from paritrace.inference.shares import ShareModel, members_of, require_whole, shared
from paritrace.inference.vocabulary import Domain
from tests.inference.evidence import DEVICE, claim, context, iteration, kernel, member

SPANS = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 30)), max_size=25)


@given(SPANS)
def test_sum_and_union_are_those_of_counting_every_nanosecond(spans: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    ends = starts + np.array([length for _, length in spans], dtype=np.int64)
    covered = {moment for start, length in spans for moment in range(start, start + length)}
    found = busy(starts, ends)
    assert (found.busy_ns, found.summed_ns) == (len(covered), sum(length for _, length in spans))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50), st.integers(0, 30)), max_size=25))
def test_each_owner_has_its_own(spans: list[tuple[int, int, int]]) -> None:
    columns = np.array(spans, dtype=np.int64).reshape(-1, 3)
    found = busy_of_owners(columns[:, 1], columns[:, 1] + columns[:, 2], columns[:, 0])
    for owner in {one for one, _, _ in spans}:
        own = [(start, length) for one, start, length in spans if one == owner]
        covered = {moment for start, length in own for moment in range(start, start + length)}
        assert found[owner] == (busy(*_columns(own)), len(own))
        assert found[owner][0].busy_ns == len(covered)


def _columns(spans: list[tuple[int, int]]) -> tuple[Any, Any]:
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    return starts, starts + np.array([length for _, length in spans], dtype=np.int64)


def test_times_at_the_ends_of_what_is_allowed_do_not_wrap() -> None:
    longest = kernel("a", -(2**62), 2**62 - 1)
    found = only(account([longest, replace(longest, event_id="b", activity_ref=Ref("cupti", "b"))]))
    assert (found.busy_ns, found.summed_ns) == (2**63 - 1, 2 * (2**63 - 1))


def only(of: Account) -> DeviceTime:
    assert len(of.devices) == 1
    return of.devices[0]


def test_side_by_side_work_is_summed_twice_and_busy_once() -> None:
    found = only(account([iteration("1"), claim("a", "1", start_ns=0, end_ns=10), kernel("b", 5, 12)]))
    assert (found.busy_ns, found.summed_ns, found.activities, found.unlinked, found.unlinked_busy_ns) == (
        12,
        17,
        2,
        1,
        7,
    )


def test_devices_and_clocks_stand_apart() -> None:
    other_device, other_clock = context(device_uuid="GPU-2"), context(device_uuid="GPU-1", clock_domain="another")
    work = [kernel("a"), kernel("b", context=other_device), kernel("c", context=other_clock)]
    assert [one.busy_ns for one in account(work).devices] == [10, 10, 10]


def test_without_uuid_a_device_is_one_of_its_trace() -> None:
    no_uuid = context(device_uuid=None)
    work = [kernel(name, context=no_uuid, device_id="0", trace_attachment_id=name) for name in "ab"]
    found = account([*work, kernel("c", context=no_uuid)])
    assert [one.device for one in found.devices] == ["a#0", "b#0"]
    assert found.unmeasured_without_device == 1


def test_work_without_times_is_counted_and_measured_nowhere() -> None:
    found = only(account([kernel("a", None, None), kernel("b", 0, 10)]))
    assert (found.activities, found.unmeasured, found.busy_ns) == (2, 1, 10)


def test_busy_intervals_count_in_place_of_the_span() -> None:
    assert only(account([kernel("a", 100, 200, intervals=((0, 10), (50, 5)))])).busy_ns == 15


def test_a_graph_as_a_whole_is_busy_time_of_its_own_kind() -> None:
    graph = kernel("g", 0, 100, kind="graph_level")
    empty = kernel("h", 0, 0, kind="graph_level")
    found = only(account([graph, empty, kernel("k", 90, 120)]))
    assert (found.busy_ns, found.graph_level_ns, found.graph_level, found.unmeasured) == (120, 90, 2, 1)


def test_elapsed_is_of_a_monotonic_clock_alone() -> None:
    wall, timeless = iteration("w", context=context(clock_kind=ClockKind.WALL)), iteration("t")
    found = account([iteration("m"), wall, replace(timeless, end_ns=None)])
    told = {one.iteration.id: one.elapsed_ns for one in found.iterations}
    assert told["m"] == 1000
    assert told["w"] == Gap(InferenceGap.NOT_MONOTONIC, "host/boot/monotonic_ns")
    assert told["t"] == Gap(InferenceGap.NO_TIMES)


def test_iterations_stand_in_the_order_of_their_numbers() -> None:
    names = ["9", "10", "a2/01", "a2/1", "a2/9", "a10/3", "x", "9" * 30, "1" + "0" * 5000]
    found = account([iteration(name) for name in reversed(names)])
    assert [one.iteration.id for one in found.iterations] == ["9", "10", names[-2], names[-1], *names[2:7]]


def test_host_work_is_no_device_time() -> None:
    assert account([kernel("a", domain=Domain.CPU)]).devices == ()


WORK: list[AnyEvent] = [
    iteration("1"),
    claim("a", "1", start_ns=0, end_ns=10),
    claim("b", "1", start_ns=5, end_ns=15),
    kernel("c", 12, 30),
    member("1", "x", 2),
    member("1", "y", 5),
]


@given(st.permutations(WORK))
def test_the_order_of_events_makes_no_difference(order: list[AnyEvent]) -> None:
    assert account(order) == account(WORK)


@pytest.mark.parametrize(
    ("model", "shares", "remainder"), [(ShareModel.TOKENS, [4, 10], 1), (ShareModel.MEMBERS, [7, 7], 1)]
)
def test_shares_and_remainder_are_the_measured_union(model: ShareModel, shares: list[int], remainder: int) -> None:
    (found,) = shared(account(WORK).iterations, members_of(WORK), model=model)
    assert found.busy_ns == 15
    assert ([one.share_ns for one in found.shares], found.remainder_ns) == (shares, remainder)


def test_a_member_without_tokens_makes_all_the_remainder() -> None:
    events = [*WORK, member("1", "z", None)]
    (found,) = shared(account(events).iterations, members_of(events), model=ShareModel.TOKENS)
    assert (found.shares, found.remainder_ns) == ((), 15)


def test_shares_that_do_not_add_up_are_refused() -> None:
    (found,) = shared(account(WORK).iterations, members_of(WORK), model=ShareModel.MEMBERS)
    members = members_of(WORK)[Ref("engine", "1")]
    wrong = [
        replace(found, remainder_ns=2),
        replace(found, shares=(*found.shares, found.shares[0]), remainder_ns=found.remainder_ns - 7),
        replace(found, shares=(replace(found.shares[0], request=Ref("client", "q")), found.shares[1])),
        replace(found, shares=(replace(found.shares[0], share_ns=-1), found.shares[1]), remainder_ns=9),
    ]
    for one in wrong:
        with pytest.raises(RequestError) as caught:
            require_whole(one, members=members)
        assert caught.value.code == "shares_do_not_add_up"
    require_whole(found, members=members)
    assert DEVICE.facts.device_uuid == found.device
