"""The chart of a session's metrics: marks of samples, no line, and what it leaves out in words (SU-10, SU-12)."""

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.reports.shelf import key_of
from paritrace.session.metrics import Figure, Head, KeptMetrics, Sample, encoded
from paritrace.session.segments import segments_of
from paritrace.web import metrics_chart
from paritrace.web.metrics_chart import BOTTOM, LEFT, RIGHT, TOP, WIDTH, MetricsShown, metrics_shown
from tests.session.journals import Told
from tests.web.conftest import Served
from tests.web.sessions import write_session
from tests.web.shelves import MARKUP

MARK = re.compile(r"M([\d.]+) ([\d.]+)h0")


def kept(*samples: Sample) -> KeptMetrics:
    return KeptMetrics(samples, len(samples))


def sample(step: int, *, epoch: int = 1, generation: int = 1, **metrics: Figure) -> Sample:
    return Sample(step + 1, 1_700_000_000_000_000_000, generation, epoch, 0, step, metrics)


def marks(path: str) -> list[tuple[float, float]]:
    assert MARK.sub("", path) == "", "marks alone: nothing is drawn between two of them"
    return [(float(x), float(y)) for x, y in MARK.findall(path)]


def loaded_back() -> Told:
    """Steps 0 to 9, saved at 5, a load of that, and steps from 5 on again."""
    told = Told()
    told.started().ran(0, 5).checkpoint("saved", "here", 5)
    told.epoch += 1  # of the save
    told.ran(5, 10).checkpoint("loaded", "here", 5).revised("load", 5)
    told.epoch += 1
    return told.run("admitted", 5)


def test_steps_that_a_load_went_back_behind_are_pale_and_the_new_segment_is_marked() -> None:
    samples = [sample(step, loss=1.0) for step in (0, 4)]
    samples += [sample(step, epoch=3, loss=2.0) for step in (6, 9)]
    samples += [sample(step, epoch=5, loss=3.0) for step in (6, 9)]
    found = metrics_shown(kept(*samples), segments_of(loaded_back().lines))
    (chart,) = found.charts
    assert (len(marks(chart.strong)), len(marks(chart.pale))) == (4, 2)
    assert "drawn" not in chart.said
    assert [one.text for one in chart.boundaries] == ["segment 1 begins at step 5: loaded here, revision 1"]
    assert [(row.step, row.segment) for row in found.rows] == [
        (9, "1"),
        (6, "1"),
        (9, "0, left"),
        (6, "0, left"),
        (4, "0"),
        (0, "0"),
    ]
    assert any("Pale marks" in text for text in found.said)


def test_a_sample_whose_segment_the_journal_does_not_tell_is_pale() -> None:
    found = metrics_shown(kept(sample(3, generation=7, loss=1.0)), segments_of(loaded_back().lines))
    assert (marks(found.charts[0].strong), found.rows[0].segment) == ([], "not known")


def test_numbers_that_are_none_are_crosses_and_counted() -> None:
    found = metrics_shown(kept(sample(0, loss=1.0), sample(5, loss="nan"), sample(9, loss="-inf")), ())
    (chart,) = found.charts
    assert chart.not_finite.count("M") == 2
    assert chart.said.startswith("3 samples, steps 0 to 9; lowest 1, highest 1, last -inf; 2 not finite")
    assert [row.values for row in found.rows] == [("-inf",), ("nan",), ("1",)]
    alone = metrics_shown(kept(sample(0, loss="nan")), ()).charts[0]
    assert (alone.strong, alone.pale, alone.y_ticks) == ("", "", ())


def test_what_is_left_out_is_said() -> None:
    names: dict[str, Figure] = {f"m{number}": 1.0 for number in range(15)}
    found = metrics_shown(KeptMetrics((Sample(9, 1, 1, 1, 0, 3, names, 4),), 9, 8), ())
    assert len(found.charts) == 12
    for words in ("1 of 9 samples are kept, now one of 8", "Showing 12 of 15 metrics", "Up to 4 metrics of a step"):
        assert any(words in text for text in found.said), words
    assert metrics_shown(KeptMetrics(), ()) == MetricsShown((), (), ("No sample of a metric was kept.",))


def test_a_full_record_is_drawn_by_the_lowest_and_highest_of_each_column() -> None:
    found = metrics_shown(kept(*(sample(step, loss=float(step % 7)) for step in range(4096))), ())
    drawn = marks(found.charts[0].pale)
    assert len(drawn) <= 2 * metrics_chart.COLUMNS + 2
    assert {y for _, y in drawn} == {TOP, BOTTOM}
    assert f"; {len(drawn)} drawn, the lowest and the highest of each place" in found.charts[0].said
    assert len(found.rows) == metrics_chart.MOST_ROWS


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**53), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63)
        ),
        min_size=1,
        max_size=12,
    )
)
def test_su12_whatever_the_numbers_marks_lie_on_the_chart(told: list[tuple[int, float]]) -> None:
    (chart,) = metrics_shown(kept(*(sample(step, loss=value) for step, value in told)), ()).charts
    for x, y in marks(chart.pale):
        assert LEFT <= x <= WIDTH - RIGHT
        assert TOP <= y <= BOTTOM
    assert len(chart.y_ticks) <= metrics_chart.TICKS + 2
    assert all(TOP <= tick.at <= BOTTOM for tick in chart.y_ticks)


def test_su12_a_name_stands_as_it_is_and_is_harmless_on_the_page(tmp_path: Path, served: Served) -> None:
    told = Sample(1, 1, 1, 1, 0, 0, {MARKUP: 1.0}), Sample(2, 1, 1, 1, 0, 9, {MARKUP: 1e308})
    write_session(tmp_path / "session")
    (tmp_path / "session" / "metrics.jsonl").write_bytes(encoded(Head()) + b"".join(map(encoded, told)))
    client = served(tmp_path)
    page = client.get(f"/session/{key_of(tmp_path / 'session')}/").text
    assert MARKUP not in page
    assert 'aria-label="&lt;' in page
    kept_for_programs = client.get(f"/api/sessions/{key_of(tmp_path / 'session')}/metrics").json()
    assert [one["metrics"] for one in kept_for_programs["samples"]] == [{MARKUP: 1.0}, {MARKUP: 1e308}]


def test_su12_a_record_of_another_program_is_named_and_the_rest_is_shown(tmp_path: Path, served: Served) -> None:
    write_session(tmp_path / "session")
    (tmp_path / "session" / "metrics.jsonl").write_text("mine\n")
    page = served(tmp_path).get(f"/session/{key_of(tmp_path / 'session')}/")
    assert page.status_code == 200
    assert "metrics.jsonl holds no metrics of a session" in page.text
    assert "checkpoints/here" in page.text
