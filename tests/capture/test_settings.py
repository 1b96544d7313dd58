"""What a capture may be asked for, and what is Refused (CA-2, CA-20, CA-24)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.settings import CaptureSettings, Selection, parse_bytes, parse_levels, parse_steps
from paritrace.errors import Outcome, RequestError
from paritrace.evidence.calls import Level


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0:3", (0, 3)), ("5:9", (5, 9)), (":4", (0, 4)), ("7", (7, 8)), (" 2 : 4 ", (2, 4)), ("0", (0, 1))],
)
def test_steps_are_half_open(text: str, expected: tuple[int, int]) -> None:
    assert parse_steps(text) == expected
    covering = CaptureSettings(steps=expected)
    assert [step for step in range(12) if covering.covers(step)] == list(range(*expected))


@pytest.mark.parametrize("text", ["", ":", "3:", "a:b", "1:2:3", "1.5", "0x3:9", "-"])
def test_other_texts_for_steps_are_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        CaptureSettings(steps=parse_steps(text))
    assert (caught.value.code, caught.value.outcome) == ("bad_steps", Outcome.REFUSED)


@pytest.mark.parametrize("steps", [(3, 3), (4, 2), (-1, 3), (-3, -1)])
def test_a_span_without_a_step_is_refused(steps: tuple[int, int]) -> None:
    with pytest.raises(RequestError, match="holds no step") as caught:
        CaptureSettings(steps=steps)
    assert caught.value.code == "bad_steps"


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("4096 B", 4096), ("2GiB", 2 << 30), ("500MB", 500_000_000), ("1 TiB", 1 << 40), ("3kB", 3000)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1.5GiB", "2 gib", "2XB", "2GiB extra", "0x10"])
def test_other_texts_for_a_size_are_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_bytes(text)
    assert (caught.value.code, caught.value.outcome) == ("bad_size", Outcome.REFUSED)


@given(st.integers(0, 1 << 50), st.sampled_from(["", "B", "KiB", "MiB", "kB", "GB"]))
def test_a_size_is_a_number_of_units(number: int, unit: str) -> None:
    unit_size = {"": 1, "B": 1, "KiB": 1024, "MiB": 1 << 20, "kB": 1000, "GB": 10**9}[unit]
    assert parse_bytes(f"{number}{unit}") == number * unit_size


def test_levels() -> None:
    assert parse_levels(()) == {Level.DIGEST, Level.MODULE} == CaptureSettings().levels
    assert parse_levels(("digest",)) == {Level.DIGEST}
    assert parse_levels(("op",)) == {Level.DIGEST, Level.OP}, "digest is always on"
    assert parse_levels(("callsite", "module")) == {Level.DIGEST, Level.MODULE, Level.CALLSITE}


@pytest.mark.parametrize("name", ["kernel"])
def test_a_level_that_this_version_lacks_is_refused_by_name(name: str) -> None:
    with pytest.raises(RequestError, match=name) as caught:
        CaptureSettings(levels=parse_levels((name,)))
    assert (caught.value.code, caught.value.outcome) == ("level_unsupported", Outcome.REFUSED)


@pytest.mark.parametrize("name", ["modul", "", "OP", "everything"])
def test_a_level_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="level") as caught:
        parse_levels(("digest", name))
    assert (caught.value.code, caught.value.outcome) == ("level_unsupported", Outcome.REFUSED)


@pytest.mark.parametrize("regions", [-1, 0, 65, 1000])
def test_regions_outside_of_1_to_64_are_refused(regions: int) -> None:
    with pytest.raises(RequestError, match="1 to 64") as caught:
        CaptureSettings(regions=regions)
    assert caught.value.code == "bad_regions"


@pytest.mark.parametrize("regions", [1, 4, 64])
def test_regions_within(regions: int) -> None:
    assert CaptureSettings(regions=regions).regions == regions


CALL = {"module": "model.layers.3.mlp", "file": "pkg/attention.py", "function": "aten.addmm.default"}


@pytest.mark.parametrize(
    ("select", "exclude", "wanted"),
    [
        ((), (), True),
        (("model.layers.*",), (), True),
        (("module:model.layers.3*",), (), True),
        (("model.layers.4*",), (), False),
        (("model.layers.4*", "file:pkg/*"), (), True),
        (("file:*.py",), ("function:aten.addmm*",), False),
        (("file:other.py",), (), False),
        (("function:aten.addmm.default",), (), True),
        ((), ("model.*",), False),
        (("model.layers.3.mlp",), ("model.layers.3.mlp",), False),
        (("*",), ("Model.*",), True),  # case matters
        (("layers",), (), False),  # the whole path, not a part of it
        (("model.layers.[0-3].mlp",), (), True),
        (("nokind:pkg/*",), (), False),  # an unknown kind is a module pattern with a colon in it
    ],
)
def test_selection(select: tuple[str, ...], exclude: tuple[str, ...], wanted: bool) -> None:
    selection = Selection(select=select, exclude=exclude)
    assert selection.wants(**CALL) is wanted
    assert selection.everything is (not select and not exclude)


@given(st.lists(st.sampled_from(["*", "model.*", "file:*", "function:x", "[", "a:b"]), max_size=3).map(tuple))
def test_what_is_excluded_is_never_wanted(patterns: tuple[str, ...]) -> None:
    chosen = Selection(select=patterns)
    left_out = Selection(exclude=patterns)
    assert chosen.wants(**CALL) != left_out.wants(**CALL) or not patterns
    assert not (Selection(select=patterns, exclude=patterns).wants(**CALL) and patterns)
