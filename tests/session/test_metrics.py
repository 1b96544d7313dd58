"""The metrics that a session keeps: what is kept of them, and reading them back (SE-14, SU-10)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.errors import EvidenceError
from paritrace.session.metrics import MOST_NAMES, Head, KeptMetrics, Sample, encoded, figures_of, metrics_of
from paritrace.session.rank.plain import plain_metrics
from paritrace.session.words import kept_words, sample_words


def sample(number: int, *, step: int = 5, **metrics: float | str) -> Sample:
    return Sample(number, 1, 1, 2, 0, step, metrics)  # type: ignore[arg-type]


def test_numbers_are_kept_and_those_that_are_none_as_words_but_no_text_of_the_workload() -> None:
    told = plain_metrics(
        {
            "loss": 0.5,
            "tokens": 7,
            "norm": float("nan"),
            "top": float("-inf"),
            "said": "<script>secret</script>",
            "flag": True,
            "x" * 101: 1.0,
        }
    )
    assert figures_of(told) == ({"loss": 0.5, "tokens": 7, "norm": "nan", "top": "-inf"}, 3)
    many = {f"m{number}": 1.0 for number in range(MOST_NAMES + 6)}
    assert (len(figures_of(many)[0]), figures_of(many)[1]) == (MOST_NAMES, 6)


@settings(max_examples=25)
@given(st.lists(st.dictionaries(st.text(max_size=8), st.floats(), max_size=4), max_size=6))
def test_what_is_written_is_read_again(told: list[dict[str, float]]) -> None:
    samples = tuple(
        Sample(number, 1, 1, 2, 0, number, figures_of(plain_metrics(metrics))[0])
        for number, metrics in enumerate(told, 1)
    )
    found = metrics_of(encoded(Head()) + b"".join(map(encoded, samples)))
    assert found == KeptMetrics(samples, len(samples))


def test_what_is_left_out_and_what_is_torn_is_counted() -> None:
    data = encoded(Head(every=4)) + encoded(sample(1, loss=1.0)) + b"{torn\n" + encoded(sample(9, loss=2.0)) + b'{"num'
    found = metrics_of(data)
    assert ([one.number for one in found.samples], found.num_taken, found.num_left_out) == ([1, 9], 9, 7)
    assert (found.every, found.num_torn) == (4, 2)
    assert kept_words(found).startswith("2 of 9 samples are kept, now one of 4; 2 lines cannot be read; ")
    assert sample_words(sample(9, loss=0.25, norm="nan")).endswith("step 5: loss 0.25, norm nan")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"no metrics\n", "invalid_document"),
        (b'{"format":"another"}\n', "invalid_document"),
        (encoded(Head(every=0)), "invalid_document"),
        (encoded(Head(version="2.0")), "newer_version"),
    ],
)
def test_another_programs_file_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(EvidenceError) as refused:
        metrics_of(data)
    assert refused.value.code == code
