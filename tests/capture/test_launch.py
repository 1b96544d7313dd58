"""Finding a workload, its exit status, and tracebacks without our frames (CA-18)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from paritrace.capture import launch
from paritrace.capture.estimate import estimate_text
from paritrace.capture.launch import exit_status, find_module, find_script, hide_own_frames, without_own_frames
from paritrace.errors import Outcome, RequestError

OWN = str(Path(launch.__file__).parent / "made_up.py")


def frames(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next


def raising(*places: str) -> BaseException:
    """An error that passed through functions of these files, the innermost last."""
    names: dict[str, object] = {}
    exec(compile("def f0():\n    raise ValueError('deep')\n", places[-1], "exec"), names)
    for number, place in enumerate(reversed(places[:-1]), 1):
        exec(compile(f"def f{number}():\n    return f{number - 1}()\n", place, "exec"), names)
    outer = names[f"f{len(places) - 1}"]
    assert callable(outer)
    try:
        outer()
    except ValueError as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this function
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "places",
    [
        ("user.py",),
        (OWN, "user.py"),
        ("user.py", OWN, "torch.py"),
        (OWN, OWN, "user.py", OWN, OWN, "torch.py", OWN),
        (OWN, OWN),
        (OWN,),
    ],
)
def test_our_frames_are_taken_out_and_all_others_stay(places: tuple[str, ...]) -> None:
    error = raising(*places)
    assert list(frames(error.__traceback__)) == list(places)
    kept = without_own_frames(error.__traceback__)
    assert list(frames(kept)) == [place for place in places if place != OWN]


def test_errors_that_caused_an_error_are_cleaned_too_and_circles_end() -> None:
    first, second, third = raising(OWN, "a.py"), raising("b.py", OWN), raising(OWN)
    group = BaseExceptionGroup("both", [third])
    first.__cause__, first.__context__ = second, group
    second.__context__ = first
    hide_own_frames(first)
    assert [list(frames(error.__traceback__)) for error in (first, second, third)] == [["a.py"], ["b.py"], []]


def test_no_traceback_at_all() -> None:
    assert without_own_frames(None) is None


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        (None, 0, ""),
        (0, 0, ""),
        (3, 3, ""),
        (-1, 255, ""),
        (256, 0, ""),
        (True, 1, ""),
        ("stop", 1, "stop\n"),
        ("", 1, "\n"),
        (["x"], 1, "['x']\n"),
        (2.5, 1, "2.5\n"),
    ],
)
def test_exit_statuses_are_pythons(code: object, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(SystemExit(code)) == status
    assert capsys.readouterr() == ("", said)


def test_a_script_is_compiled_and_not_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise AssertionError('ran')\n", encoding="utf-8")
    target = find_script(str(script), ("a", "--b"))
    assert (target.path, target.argv, target.spec, target.package) == (script, (str(script), "a", "--b"), None, None)
    assert target.search_path == str(tmp_path)
    assert target.code.co_filename == str(script)


def test_an_encoding_that_the_source_declares_is_read(tmp_path: Path) -> None:
    script = tmp_path / "latin.py"
    script.write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    names: dict[str, object] = {}
    exec(find_script(str(script), ()).code, names)
    assert names["x"] == "é"


def test_our_own_future_statements_do_not_reach_the_workload(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def f(x: 1 + 1): pass\n", encoding="utf-8")
    names: dict[str, object] = {}
    exec(find_script(str(script), ()).code, names)
    assert getattr(names["f"], "__annotations__") == {"x": 2}  # noqa: B009  a function by its type, an object here


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"def f(:\n", "bad_script"), (b"x = 1\0\n", "bad_script"), (b"\xff\xfe bad", "bad_script"), (None, "no_script")],
)
def test_what_is_no_script_is_refused(data: bytes | None, code: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    if data is not None:
        script.write_bytes(data)
    with pytest.raises(RequestError) as caught:
        find_script(str(script), ())
    assert (caught.value.code, caught.value.outcome) == (code, Outcome.REFUSED)


@pytest.mark.parametrize("name", ["no_such_module_here", "json.nothing", "sys", "a..b", "..x", ""])
def test_what_is_no_module_is_refused_and_the_path_stays(name: str) -> None:
    before = list(sys.path)
    with pytest.raises(RequestError) as caught:
        find_module(name, ())
    assert (caught.value.code, caught.value.outcome) == ("no_module", Outcome.REFUSED)
    assert sys.path == before


def test_a_package_is_found_by_its_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pkg_of_launch_test"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "__main__.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    target = find_module("pkg_of_launch_test", ("a",))
    assert (target.path, target.package) == (package / "__main__.py", "pkg_of_launch_test")
    assert target.argv == (str(package / "__main__.py"), "a")
    assert target.search_path == str(tmp_path)
    for name in [name for name in sys.modules if name.startswith("pkg_of_launch_test")]:
        del sys.modules[name]


def test_the_text_of_an_estimate() -> None:
    second = 1_000_000_000
    text = estimate_text([0, 5 * second, 8 * second, 10 * second], [100, 2_500_100, 2_500_300], calls=1234)
    assert text == (
        "estimate from one captured step: 1,234 calls, 2.5 MB per step; it took 3.00 s, 1.50 times the next, bare one"
        " (2.00 s)"
    )
    assert "not measurable" in estimate_text([0, 1, 2, 2], [0, 0, 0], calls=0)
