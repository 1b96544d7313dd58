"""Settings: flag > environment > file > default; unknown keys are refused by name (SU-1)."""

import json
import sys
from collections.abc import Generator
from pathlib import Path

import click
import pytest

from paritrace.cli.entry import COMMANDS, Entry, status_of
from paritrace.cli.output import write_json
from paritrace.cli.settings_file import SettingsFile, read_nearest
from paritrace.errors import RequestError


@click.command()
@click.option("--level", "levels", multiple=True, default=("module",))
@click.option("--max-bytes", type=int, default=7)
@click.option("--no-sources", is_flag=True)
def sample(levels: tuple[str, ...], max_bytes: int, no_sources: bool) -> None:
    write_json({"levels": levels, "max_bytes": max_bytes, "no_sources": no_sources})


@click.group()
def family() -> None:
    """A command with commands of its own."""


@family.command()
@click.option("--depth", type=int, required=True)
def member(depth: int) -> None:
    write_json({"depth": depth})


@pytest.fixture(autouse=True)
def small_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """A few commands alone; all of them stand in their order again afterwards, as completion and help tell it."""
    own = {name: COMMANDS[name] for name in ("doctor", "config", "completion")}
    own["sample"] = Entry(f"{__name__}:sample", "sample")
    own["family"] = Entry(f"{__name__}:family", "family")
    assert __name__ in sys.modules
    before = dict(COMMANDS)
    COMMANDS.clear()
    COMMANDS.update(own)
    monkeypatch.chdir(tmp_path)
    yield
    COMMANDS.clear()
    COMMANDS.update(before)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    status = status_of(list(arguments))
    out, err = capsys.readouterr()
    assert status == 0, err
    document: dict[str, object] = json.loads(out)
    return document


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert status_of(list(arguments)) == 2
    return capsys.readouterr().err


def test_order_of_sources(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(capsys, "sample")["max_bytes"] == 7
    (tmp_path / "paritrace.toml").write_text("[sample]\nmax-bytes = 8\n")
    assert run(capsys, "sample")["max_bytes"] == 8
    monkeypatch.setenv("PARITRACE_SAMPLE_MAX_BYTES", "9")
    assert run(capsys, "sample")["max_bytes"] == 9
    assert run(capsys, "sample", "--max-bytes", "10")["max_bytes"] == 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('level = ["op", "module"]', {"levels": ["op", "module"]}),
        ('level = "op"', {"levels": ["op"]}),
        ("no-sources = true", {"no_sources": True}),
    ],
)
def test_kinds_of_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, expected: dict[str, object]
) -> None:
    (tmp_path / "paritrace.toml").write_text(f"[sample]\n{text}\n")
    assert run(capsys, "sample").items() >= expected.items()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[sample]\nmax-byte = 8", "`sample` has no setting 'max-byte'"),
        ("[sampel]\nmax-bytes = 8", "no command has settings named 'sampel'"),
        ("sample = 3", "no command has settings named 'sample'"),
        ("[sample]\nmax-bytes = [8, 9]", "max-bytes = [8, 9] is not one value"),
        ("[sample]\nmax-bytes = 2026-01-01", "is not one value"),
        ('[sample]\nno-sources = "yes"', "no-sources = 'yes' is not true or false"),
        ("[sample]\nlevel = [[1]]", "level = [[1]] is not a list of values"),
        ("[sample]\nhelp = true", "`sample` has no setting 'help'"),
        ('[sample]\nmax-bytes = "many"', "'many' is not a valid integer"),
        ("[sample", "not valid TOML"),
    ],
)
def test_wrong_settings_are_refused_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, named: str
) -> None:
    (tmp_path / "paritrace.toml").write_text(text)
    assert named in refused(capsys, "sample")


def test_commands_of_a_family(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "paritrace.toml").write_text("[family.member]\ndepth = 4\n")
    assert run(capsys, "family", "member") == {"depth": 4}
    (tmp_path / "paritrace.toml").write_text("[family.membre]\ndepth = 4\n")
    assert "`family` has no command 'membre'" in refused(capsys, "family", "member")


def test_help_is_reachable_with_a_broken_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "paritrace.toml").write_text("[")
    assert status_of(["--help"]) == 0
    assert status_of(["completion", "bash"]) == 0
    capsys.readouterr()


def test_nearest_file_counts(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "paritrace.toml").write_text("[sample]\nmax-bytes = 1\n")
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert read_nearest(below).path == tmp_path / "paritrace.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.paritrace.sample]\nmax-bytes = 2\n")
    assert read_nearest(below) == SettingsFile(tmp_path / "a" / "pyproject.toml", {"sample": {"max-bytes": 2}})
    (tmp_path / "a" / "paritrace.toml").write_text("[sample]\nmax-bytes = 3\n")
    assert read_nearest(below).path == tmp_path / "a" / "paritrace.toml"


def test_shared_section_must_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool.paritrace = 3\n")
    with pytest.raises(RequestError, match=r"tool\.paritrace is not a table"):
        read_nearest(tmp_path)


def test_config_show_names_value_and_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "paritrace.toml").write_text('[sample]\nlevel = ["op"]\n[family.member]\ndepth = 4\n')
    monkeypatch.setenv("PARITRACE_SAMPLE_MAX_BYTES", "9")
    document = run(capsys, "config", "show", "--json")
    assert document["file"] == str(tmp_path / "paritrace.toml")
    settings = document["settings"]
    assert isinstance(settings, list)
    found = {(s["command"], s["key"]): (s["value"], s["source"], s["environment"]) for s in settings}
    assert found["sample", "level"] == (["op"], "file", "PARITRACE_SAMPLE_LEVEL")
    assert found["sample", "max-bytes"] == (9, "environment", "PARITRACE_SAMPLE_MAX_BYTES")
    assert found["sample", "no-sources"] == (False, "default", "PARITRACE_SAMPLE_NO_SOURCES")
    assert found["family member", "depth"] == (4, "file", "PARITRACE_FAMILY_MEMBER_DEPTH")
    assert found["doctor", "json"] == (False, "default", "PARITRACE_DOCTOR_JSON")


def test_config_show_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["config", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "settings file: none"
    assert "default     family member --depth = null  (PARITRACE_FAMILY_MEMBER_DEPTH)" in lines


def test_config_show_refuses_what_the_command_would_refuse(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITRACE_SAMPLE_MAX_BYTES", "many")
    assert "'many' is not a valid integer" in refused(capsys, "config", "show")


def test_config_show_is_not_turned_into_json_by_another_commands_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITRACE_DOCTOR_JSON", "1")
    monkeypatch.setenv("PARITRACE_SAMPLE_MAX_BYTES", "many")
    assert status_of(["config", "show"]) == 2
    assert capsys.readouterr().out == ""
