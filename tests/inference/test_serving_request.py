"""Which iterations served a request: parties joined by ids alone, what is not known said (IN-9, IN-12)."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference import append, init
from paritrace.inference.context import ClockKind
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.records import Observation, Request
from paritrace.inference.serving_request import served_request
from paritrace.inference.vocabulary import Domain
from paritrace.reports.inference.request_screen import request_screen
from tests.inference.evidence import RUN, SESSION, Adapter, claim, context, iteration, member, request

PROXY = context(producer_id="proxy", source="proxy", clock_domain="elsewhere", clock_kind=ClockKind.WALL)


def run_of(place: Path, events: Iterable[Observation]) -> Path:
    init(place, run_id=RUN)
    append(place, run_id=RUN, session=SESSION, engine_adapter=Adapter(events))
    return place


def proxied(number: str, of: str) -> Request:
    return Request(
        context=PROXY,
        event_id=f"p:{number}",
        request_ref=Ref("proxy", number),
        backend_request_ref=Ref("client", of),
        start_ns=0,
        end_ns=5,
        metadata={"x_request_id": "from-the-client"},
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two requests of which one shares an iteration with the other; the proxy knows the first by its own number."""
    return run_of(
        tmp_path / "run",
        [
            *(iteration(name, start, start + 100) for name, start in (("1", 0), ("2", 100), ("3", 900))),
            request("a", start_ns=0, end_ns=180, input_tokens=4, output_tokens=2, status="finished"),
            request("b", start_ns=90, end_ns=150),
            *(member("1", "a"), member("2", "a"), member("2", "b")),
            proxied("17", "a"),
            claim("k1", "1"),
            claim("k2", "2"),
            claim("k3", "2", domain=Domain.CPU, kind="operator"),
        ],
    )


@pytest.mark.parametrize("asked", ["a", "17", "from-the-client"])
def test_in9_any_id_of_a_party_finds_the_request_of_all(run: Path, asked: str) -> None:
    found = served_request(run, asked)
    assert [(one.request.producer_id, one.request.id) for one in found.requests] == [("client", "a"), ("proxy", "17")]
    assert [(one.iteration.id, one.members) for one in found.iterations] == [("1", 1), ("2", 2)]
    assert [[work.activities for work in one.work] for one in found.iterations] == [[1], [1]]
    assert [one.other for one in found.iterations] == [{}, {"cpu": 1}]
    assert found.num_iterations == 2
    assert found.in_flight == 2  # the third ran later
    engine, proxy = found.requests
    assert engine.elapsed_ns == 180
    assert isinstance(proxy.elapsed_ns, Gap)
    assert proxy.elapsed_ns.gap is InferenceGap.NOT_MONOTONIC
    assert "2 members" in request_screen(found)


def test_in12_without_memberships_what_served_it_is_unknown_and_what_ran_meanwhile_an_estimate(tmp_path: Path) -> None:
    events: list[Observation] = [iteration("1", 0, 100), iteration("2", 100, 200), request("a", start_ns=0, end_ns=50)]
    found = served_request(run_of(tmp_path / "run", events), "a")
    assert isinstance(found.num_iterations, Gap)
    assert (found.num_iterations.gap, found.iterations) == (InferenceGap.MEMBERSHIP_UNKNOWN, ())
    assert found.in_flight == 1
    assert "an estimate" in request_screen(found)


def test_in3_iterations_by_another_clock_are_not_in_flight(tmp_path: Path) -> None:
    found = served_request(run_of(tmp_path / "run", [iteration("1", 0, 100), proxied("17", "nobody")]), "17")
    assert isinstance(found.in_flight, Gap)
    assert found.in_flight.gap is InferenceGap.NO_SHARED_CLOCK


def test_an_id_that_nobody_has_is_refused_with_those_there_are(run: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused:
        served_request(run, "z")
    assert refused.value.code == "no_such_request"
    assert "17, a, b" in refused.value.fix
    with pytest.raises(RequestError, match="no event tells"):
        served_request(run_of(tmp_path / "empty", [iteration("1", 0, 1)]), "a")
