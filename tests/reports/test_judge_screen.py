"""The screens of judge and isolate: golden files, their bounds, and what they must never say (CP-26, A-07)."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from paritrace.compare.judged_result import Isolated, Judged
from paritrace.reports.isolate_screen import isolate_screen
from paritrace.reports.judge_screen import judge_screen
from tests.reports import judgements

JUDGED: dict[str, Callable[[], Judged]] = {
    "same": judgements.same,
    "different": judgements.different,
    "neither": judgements.neither,
    "other_backward": judgements.other_backward,
    "undetermined": judgements.undetermined,
    "equal": judgements.equal,
    "refused": judgements.refused,
}
ISOLATED: dict[str, Callable[[], Isolated]] = {
    "two_mistakes": judgements.two_mistakes,
    "none_apart": judgements.none_apart,
    "nothing": judgements.isolated,
}
WORDS_OF_BLAME = ("regress", "worse", "incorrect", "better", "broken", "bug", "wrong")
HOSTILE = "\x1b[31m[F9]\n\u202eevil\x07[bold]" + "x" * 500


@pytest.mark.parametrize("name", JUDGED)
def test_cp26_the_screen_of_judge_is_as_kept(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"judge_screen/{name}.txt", judge_screen(JUDGED[name](), directory="B/judged/F1.json"))


@pytest.mark.parametrize("name", ISOLATED)
def test_cp26_the_screen_of_isolate_is_as_kept(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"isolate_screen/{name}.txt", isolate_screen(ISOLATED[name](), directory="B/isolated.json"))


@pytest.mark.parametrize("name", JUDGED)
def test_a07_no_screen_says_which_side_is_right(name: str) -> None:
    told = judge_screen(JUDGED[name]()).lower()
    assert not [word for word in WORDS_OF_BLAME if word in told]


@pytest.mark.parametrize("name", JUDGED)
def test_cp26_hostile_names_keep_the_screen_in_its_bounds(name: str) -> None:
    judged = JUDGED[name]()
    tensors = tuple(replace(tensor, path=HOSTILE, why=HOSTILE) for tensor in judged.call.tensors * 40)
    call = replace(judged.call, tensors=tensors, refused=judged.call.refused and HOSTILE, remarks=(HOSTILE,) * 9)
    require_bounds(judge_screen(replace(judged, about=HOSTILE, call=call), directory=HOSTILE))


@pytest.mark.parametrize("name", ISOLATED)
def test_cp26_many_hostile_modules_keep_the_screen_in_its_bounds(name: str) -> None:
    isolated = ISOLATED[name]()
    calls = tuple(replace(call, module_baseline=HOSTILE, cls_candidate=HOSTILE) for call in isolated.calls * 40)
    apart = tuple(range(len(calls)))
    require_bounds(isolate_screen(replace(isolated, calls=calls, apart=apart, left_out={HOSTILE: HOSTILE})))


def require_bounds(screen: str) -> None:
    lines = screen.splitlines()
    assert len(lines) <= 34
    assert max(cell_len(line) for line in lines) <= 100
    assert not [character for character in screen if character != "\n" and not character.isprintable()]
