"""The frame of the command line: exit statuses, errors in words, start-up without weight (SU-1, SU-3, SU-4, SU-5)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.cli.entry import COMMANDS, Entry, as_paritrace_error, paritrace, status_of
from paritrace.cli.output import ExitStatus, worst
from paritrace.errors import EvidenceError, HostError, InternalError, Outcome, RequestError

WORKLOADS_OWN = ("torch", "numpy", "numba", "pyarrow")  # each reads the environment when it is imported
HEAVY = ("torch", "numpy", "duckdb", "pyarrow", "rich", "numba", "msgspec", "zstandard", "fastapi", "jinja2")


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A command `planted` in the table that raises `error` or returns `result`, whichever the test puts in."""
    behaviour: dict[str, object] = {}

    def behave() -> object:
        error = behaviour.get("error")
        if isinstance(error, BaseException):
            raise error
        return behaviour.get("result")

    command = click.Command("planted", callback=behave)
    monkeypatch.setattr(sys.modules[__name__], "PLANTED", command, raising=False)
    monkeypatch.setitem(COMMANDS, "planted", Entry(f"{__name__}:PLANTED", "planted"))
    return behaviour


@pytest.mark.parametrize(
    ("error", "status", "first_line"),
    [
        (RequestError("no such level", code="level", fix="f"), 2, "refused: no such level [level]"),
        (EvidenceError("torn", code="torn", fix="f", outcome=Outcome.FAILED), 2, "failed: torn [torn]"),
        (click.UsageError("two\n lines"), 2, "refused: two lines [usage]"),
        (click.FileError("A", "gone"), 2, "refused: Could not open file 'A': gone [usage]"),
        (ZeroDivisionError("by zero"), 2, "failed: a fault of paritrace itself: ZeroDivisionError: by zero [internal]"),
        (OSError(28, "-", "A"), 2, "failed: use A: No space left on device [disk_full]"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
    ],
)
def test_every_error_ends_in_words(
    planted: dict[str, object],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    first_line: str,
) -> None:
    planted["error"] = error
    assert status_of(["planted"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == first_line
    assert len(lines) == (1 if status == 130 else 2)


@pytest.mark.parametrize("result", [None, 0, 1, 3, 125])
def test_a_command_returns_its_status(planted: dict[str, object], result: int | None) -> None:
    planted["result"] = result
    assert status_of(["planted"]) == (result or 0)


def test_exit_of_the_context_is_the_status(planted: dict[str, object]) -> None:
    planted["error"] = click.exceptions.Exit(3)
    assert status_of(["planted"]) == 3


@pytest.mark.parametrize("arguments", [["--debug", "planted"], ["planted", "--debug"]])
def test_debug_shows_the_traceback(
    planted: dict[str, object], capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    planted["error"] = ZeroDivisionError("by zero")
    assert status_of(arguments) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_debug_from_the_environment(
    planted: dict[str, object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITRACE_DEBUG", "1")
    planted["error"] = ZeroDivisionError("by zero")
    status_of(["planted"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nothing-of-the-sort", "--json"], ["doctor", "--json", "--nonsense"]])
def test_usage_errors_are_a_document_too(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert status_of(arguments) == ExitStatus.TROUBLE
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert document["error"].keys() == {"code", "kind", "message", "fix"}
    assert document["error"]["kind"] == "refused"


def test_json_after_two_dashes_belongs_to_the_workload(capsys: pytest.CaptureFixture[str]) -> None:
    status_of(["nothing-of-the-sort", "--", "--json"])
    assert capsys.readouterr().out == ""


def test_errors_of_a_json_command_are_a_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert status_of(["doctor", str(tmp_path / "missing"), "--json"]) == ExitStatus.TROUBLE
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "no_directory"
    assert "fix:" in err


def test_as_paritrace_error_keeps_who_must_act() -> None:
    assert isinstance(as_paritrace_error(click.UsageError("x")), RequestError)
    assert isinstance(as_paritrace_error(PermissionError(13, "x")), HostError)
    assert isinstance(as_paritrace_error(KeyError("x")), InternalError)


@given(st.lists(st.sampled_from([s for s in ExitStatus if s <= ExitStatus.UNDETERMINED])))
def test_precedence_of_statuses(statuses: list[ExitStatus]) -> None:
    """SU-3: 2 > 1 > 3 > 0."""
    expected = next((s for s in (2, 1, 3) if s in statuses), 0)
    assert worst(*statuses) == expected


def test_help_lists_every_command_without_loading_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["--help"]) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_table_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of([name, "--help"]) == 0
    assert "--help" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["--version"]) == 0
    assert capsys.readouterr().out.startswith("paritrace, version ")


def _python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_help_and_import_load_nothing_heavy() -> None:
    """SU-1, PF-19."""
    source = f"""
import sys
import paritrace
from paritrace.cli.entry import status_of
assert status_of(["--help"]) == 0
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = _python("-c", source)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_captured_workload_begins_with_nothing_heavy_imported(tmp_path: Path) -> None:
    """CA-18: what a script sets before it imports torch or NumPy must still take effect."""
    script = tmp_path / "first_lines.py"
    script.write_text(
        f"import sys; print([name for name in {WORKLOADS_OWN!r} if name in sys.modules])", encoding="utf-8"
    )
    done = _python("-m", "paritrace", "run", "-o", str(tmp_path / "run"), str(script))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_core_works_without_torch() -> None:
    """SU-15: every module outside the `pytorch` packages imports, and commands answer, with torch out of reach."""
    source = """
import pkgutil, sys
class Absent:  # not `sys.modules["torch"] = None`: SciPy takes a name that is there for the module
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Absent())
import paritrace
skipped = tuple(f"paritrace.{name}" for name in ("capture.pytorch", "inference.pytorch", "session.pytorch", "__main__"))
for module in pkgutil.walk_packages(paritrace.__path__, "paritrace."):
    if not module.name.startswith(skipped):
        __import__(module.name)
from paritrace.cli.entry import status_of
assert status_of(["doctor", "--json"]) == 0
"""
    done = _python("-c", source)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["format"] == "paritrace-doctor"


def test_module_and_script_are_the_same_command() -> None:
    done = _python("-m", "paritrace", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("paritrace, version ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`paritrace ... | head -0`: quiet, and the status a shell gives for SIGPIPE."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "paritrace", "doctor", "--json"],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (ExitStatus.BROKEN_PIPE, "")


def test_commands_are_loaded_from_the_table_only() -> None:
    assert paritrace.commands == {}
