"""Clocks share a time line where a record aligns them, and nowhere else (IN-19)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.inference.records import ClockAlignment
from paritrace.reports.traces.time_lines import Span, TimeLines, time_lines
from tests.inference.evidence import ENGINE


def aligned(source: str, target: str, offset_ns: int, *, by: int = 0, until: int | None = None) -> ClockAlignment:
    return ClockAlignment(
        context=ENGINE,
        event_id=f"{source}-{target}-{offset_ns}",
        from_clock_domain=source,
        to_clock_domain=target,
        offset_ns=offset_ns,
        uncertainty_ns=by,
        valid_to_ns=until,
    )


def test_in19_two_bases_apart_are_laid_by_them_and_not_at_zero() -> None:
    spans = {"a": Span(100, 200), "b": Span(100, 200)}
    both = [aligned("a", "unix", 1_000_000), aligned("b", "unix", 2_600_000)]
    (line,) = time_lines(spans, alignments=both).lines
    assert line.offsets["b"] - line.offsets["a"] == 1_600_000
    assert min(line.offsets.values()) + 100 == 0


def test_in19_one_that_lacks_its_base_is_behind_the_other_and_never_overlaid() -> None:
    spans = {"a": Span(100, 200), "b": Span(100, 200)}
    first, second = time_lines(spans, alignments=[aligned("a", "unix", 5)], leading=["b"]).lines
    assert (set(first.offsets), set(second.offsets)) == ({"b"}, {"a"})
    assert first.offsets["b"] + 200 < second.offsets["a"] + 100


def test_in19_alignments_that_disagree_or_hold_in_part_join_nothing_and_are_named() -> None:
    spans = {"a": Span(0, 10), "b": Span(0, 10)}
    disagree = time_lines(spans, alignments=[aligned("a", "b", 5, by=1), aligned("a", "b", 9, by=1)])
    assert len(disagree.lines) == 2
    assert disagree.unused == ("a to b: 2 alignments disagree",)
    part = time_lines(spans, alignments=[aligned("a", "b", 5, until=9)])
    assert len(part.lines) == 2
    assert part.unused == ("a to b: holds for a part of its times only",)
    agree = time_lines(spans, alignments=[aligned("a", "b", 5, by=2), aligned("a", "b", 7, by=1, until=10)])
    assert (len(agree.lines), agree.lines[0].uncertainty_ns, agree.unused) == (1, 1, ())


NAMES = st.sampled_from("abcdef")


@settings(deadline=None)  # the first call waits for what it imports
@given(
    st.dictionaries(NAMES, st.tuples(st.integers(-(10**18), 10**18), st.integers(0, 10**15)), min_size=1),
    st.dictionaries(st.frozensets(NAMES, min_size=2, max_size=2), st.integers(-(10**9), 10**9)),
    st.sets(NAMES),
)
def test_in19_every_clock_is_on_one_line_and_lines_never_overlap(
    told: dict[str, tuple[int, int]], pairs: dict[frozenset[str], int], leading: set[str]
) -> None:
    spans = {name: Span(first, first + length) for name, (first, length) in told.items()}
    given_ = [aligned(min(pair), max(pair), offset) for pair, offset in pairs.items()]
    found: TimeLines = time_lines(spans, alignments=given_, leading=leading)
    assert sorted(name for line in found.lines for name in line.offsets) == sorted(spans)
    last = -1
    for line in found.lines:
        firsts = [spans[name].first_ns + offset for name, offset in line.offsets.items()]
        assert min(firsts) > last
        last = max(spans[name].last_ns + offset for name, offset in line.offsets.items())
    joined = len(spans) - len(found.lines)
    assert joined <= len(pairs)
