"""Counters between two scrapes: a difference only where it can be said, else one reason of the list (IN-13)."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import RequestError
from paritrace.inference.importers.counter_deltas import DeltaGap, Grown, GrownHistogram, Unresolved, deltas
from paritrace.inference.importers.exposition import Scrape, ScrapeFailed, read_exposition
from paritrace.inference.importers.metrics import open_metrics, recognises
from tests.inference.importers.drawn import DATA, Drawn, drawn, written

BEFORE, AFTER = DATA / "vllm" / "q05_c08_metrics_pre.txt", DATA / "vllm" / "q05_c08_metrics_post.txt"
HISTOGRAM = """# TYPE t histogram
t_bucket{le="0.1"} %d
t_bucket{le="+Inf"} %d
t_count %d
t_sum %s
"""


def scrape(text: str) -> Scrape:
    found = read_exposition(text)
    assert isinstance(found, Scrape)
    return found


def counter(value: object, *, created: object = 5, started: object = 1) -> str:
    return (
        f'# TYPE c_total counter\nc_total{{a="x"}} {value}\n# TYPE c_created gauge\nc_created{{a="x"}} {created}\n'
        f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {started}\n"
    )


def gaps_of(found: Drawn) -> dict[str, int]:
    return {name: count for name, count in found.account.counts.items() if name != "deltas"}


def series_of(found: Drawn, family: str) -> list[dict[str, object]]:
    return [
        one
        for event in found.capabilities
        if event.component == f"metrics:{family}"
        for one in event.metadata["series"]
    ]


def test_the_two_scrapes_of_a_real_vllm_give_exact_differences() -> None:
    found = drawn(open_metrics, BEFORE, after=str(AFTER))
    assert found.account.complete
    assert gaps_of(found) == {}
    assert [one["delta"] for one in series_of(found, "vllm:prompt_tokens")] == [71_680 - 55_296]
    assert [one["delta"] for one in series_of(found, "vllm:generation_tokens")] == [17_920 - 13_824]
    success = {one["labels"]["finished_reason"]: one["delta"] for one in series_of(found, "vllm:request_success")}  # type: ignore[index]
    assert success == {"abort": 0, "error": 0, "length": 32, "repetition": 0, "stop": 0}
    (histogram,) = series_of(found, "vllm:request_prompt_tokens")
    assert histogram["count"] == 32
    assert histogram["sum"] == 16_384
    assert len(found.imported.attachments) == 2


def test_a_restart_between_the_scrapes_leaves_no_difference_at_all(tmp_path: Path) -> None:
    text = re.sub(
        r"(?m)^process_start_time_seconds .*$", "process_start_time_seconds 1.79096059e+09", AFTER.read_text()
    )
    found = drawn(open_metrics, BEFORE, after=str(written(tmp_path, text)))
    assert gaps_of(found) == {"engine_restart": 1}
    assert "deltas" not in found.account.counts
    (told,) = found.capabilities
    assert (told.component, told.available, told.collected) == ("metrics:*", False, ())
    assert not found.account.complete


@pytest.mark.parametrize(
    ("before", "after", "gap"),
    [
        (counter(5), counter(4), DeltaGap.COUNTER_RESET),
        (counter(5), counter("NaN"), DeltaGap.SERIES_MISSING),
        (counter(5), counter("+Inf"), DeltaGap.SERIES_MISSING),
        (counter(5), counter(9, created=6), DeltaGap.COUNTER_RECREATED),
        (counter(5), counter(9, started=2), DeltaGap.ENGINE_RESTART),
        (counter(5), counter(9).replace('"x"', '"y"'), DeltaGap.SERIES_MISSING),
        (
            HISTOGRAM % (1, 2, 2, "0.5"),
            HISTOGRAM.replace("0.1", "0.2") % (1, 2, 2, "0.5"),
            DeltaGap.BUCKET_BOUNDARIES_CHANGED,
        ),
        (HISTOGRAM % (3, 4, 4, "0.5"), HISTOGRAM % (2, 5, 5, "0.7"), DeltaGap.COUNTER_RESET),
    ],
)
def test_each_reason_of_the_list_has_its_case(before: str, after: str, gap: DeltaGap) -> None:
    found = deltas(scrape(before), scrape(after))
    assert {one.gap for one in found if isinstance(one, Unresolved)} == {gap}
    assert not any(isinstance(one, Grown | GrownHistogram) for one in found)


def test_a_number_that_nothing_holds_is_a_scrape_that_failed() -> None:
    assert isinstance(read_exposition(counter("9" * 400)), ScrapeFailed)


def test_a_missing_and_a_broken_scrape_are_two_reasons() -> None:
    whole = scrape(counter(1))
    (missing,) = deltas(None, whole)
    assert isinstance(missing, Unresolved)
    assert (missing.gap, missing.detail) == (DeltaGap.SCRAPE_MISSING, "before")
    (failed,) = deltas(whole, ScrapeFailed("no sample"))
    assert isinstance(failed, Unresolved)
    assert failed.gap is DeltaGap.SCRAPE_FAILED


def test_a_family_that_has_to_be_there_and_is_not_was_not_enabled() -> None:
    found = deltas(scrape(counter(1)), scrape(counter(2)), wanted=("c", "sglang:num_requests"))
    assert [one for one in found if isinstance(one, Unresolved)] == [
        Unresolved("sglang:num_requests", (), DeltaGap.NOT_ENABLED)
    ]


def test_openmetrics_is_read_by_its_own_rules() -> None:
    text = '# TYPE c counter\nc_total{a="x"} %d\nc_created{a="x"} %d\n# EOF\n'
    assert deltas(scrape(text % (1, 5)), scrape(text % (4, 5))) == (Grown("c", (("a", "x"),), 3.0),)
    (recreated,) = deltas(scrape(text % (1, 5)), scrape(text % (4, 6)))
    assert isinstance(recreated, Unresolved)
    assert recreated.gap is DeltaGap.COUNTER_RECREATED


def test_gauges_have_no_difference() -> None:
    assert deltas(scrape("# TYPE g gauge\ng 5\n"), scrape("# TYPE g gauge\ng 9\n")) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>502 Bad Gateway</html>",
        "c{ 1\n",
        'c_total{a="x} 1\n',
        "c_total one\n",
        "# TYPE c_total counter\nc_total 1\nc_total 2\n",  # the same series twice
    ],
)
def test_what_is_no_exposition_is_a_scrape_that_failed(text: str) -> None:
    assert isinstance(read_exposition(text), ScrapeFailed)


def test_labels_with_braces_commas_quotes_and_escapes_are_one_series() -> None:
    odd = r'c_total{a="x,}{ \"y\" \\ \n",b=""}'
    found = deltas(scrape(f"# TYPE c_total counter\n{odd} 1\n"), scrape(f"# TYPE c_total counter\n{odd} 4\n"))
    assert found == (Grown("c", (("a", 'x,}{ "y" \\ \n'), ("b", "")), 3.0),)


def test_one_scrape_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused:
        drawn(open_metrics, BEFORE)
    assert refused.value.code == "scrape_after_missing"


def test_a_file_that_is_not_there_is_a_missing_scrape(tmp_path: Path) -> None:
    found = drawn(open_metrics, BEFORE, after=str(tmp_path / "gone.txt"))
    assert gaps_of(found) == {"scrape_missing": 1}
    assert len(found.imported.attachments) == 1


def test_a_server_without_a_start_time_is_told_as_such(tmp_path: Path) -> None:
    before = written(tmp_path, "# TYPE c_total counter\nc_total 1\n", name="a")
    after = written(tmp_path, "# TYPE c_total counter\nc_total 2\n", name="b")
    assert any("process_start_time" in limit for limit in drawn(open_metrics, before, after=str(after)).account.limits)


def test_expositions_are_recognised(tmp_path: Path) -> None:
    assert recognises(BEFORE)
    assert recognises(written(tmp_path, "up 1\n"))
    assert not recognises(written(tmp_path, '{"a": 1}', name="other"))


@given(old=st.integers(0, 2**53), new=st.integers(0, 2**53))
def test_a_counter_never_shrinks(old: int, new: int) -> None:
    (found,) = deltas(scrape(counter(old)), scrape(counter(new)))
    if isinstance(found, Grown):
        assert found.delta == new - old >= 0
    else:
        assert isinstance(found, Unresolved)
        assert new < old
