"""The short way into `paritrace record` reads what the frame reads, or leaves it to the frame (PF-16, SC-2, SU-1)."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.cli.plain_record import plain_record
from paritrace.cli.record import record
from paritrace.cli.recorded import Asked
from paritrace.cli.settings_places import NO_SETTINGS_FILE

NOWHERE = Path("/")
PLAIN = [
    ["-o", "new", "--", "true"],
    ["--output", "new", "true", "-o", "x"],
    ["--output=new", "--timeout", "1.5", "--sample=0.1", "--", "true", "--"],
    ["--json", "--cgroup", "--exclusive", "--subreaper", "--title", "a b", "-o", "new", "true"],
    ["-o", "first", "-o", "second", "--title=", "--", "--json"],
    ["-o", "new", "--title=--json", "true"],
]
FOR_THE_FRAME = [
    [],
    ["-o", "new"],
    ["-o", "new", "--"],
    ["true"],
    ["-onew", "true"],
    ["-o", "new", "--help", "true"],
    ["-o", "new", "--debug", "true"],
    ["-o", "new", "--time", "1", "true"],
    ["-o", "new", "--timeout", "0", "true"],
    ["-o", "new", "--timeout", "-1", "true"],
    ["-o", "new", "--timeout", "1e3", "true"],
    ["-o", "new", "--timeout", "nan", "true"],
    ["-o", "new", "--sample", "0.05", "true"],
    ["-o", "new", "--sample", "61", "true"],
    ["-o", "new", "--json=1", "true"],
    ["-o", "--json", "true"],
    ["-o", "new", "-", "true"],
]
WORDS = st.lists(st.sampled_from(sorted({word for words in PLAIN + FOR_THE_FRAME for word in words})), max_size=9)


def asked_of_the_frame(words: list[str]) -> Asked:
    params = dict(record.make_context("record", list(words)).params)
    params.pop("debug", None)
    return Asked(**params)


@pytest.mark.parametrize("words", PLAIN)
def test_plain_words_are_read_as_the_frame_reads_them(words: list[str]) -> None:
    assert plain_record(["record", *words], {}, folder=NOWHERE) == asked_of_the_frame(words)


@pytest.mark.parametrize("words", FOR_THE_FRAME)
def test_what_the_frame_refuses_or_explains_is_left_to_it(words: list[str]) -> None:
    assert plain_record(["record", *words], {}, folder=NOWHERE) is None


@given(WORDS)
def test_no_words_are_read_in_two_ways(words: list[str]) -> None:
    asked = plain_record(["record", *words], {}, folder=NOWHERE)
    if asked is not None:
        assert asked == asked_of_the_frame(words)


def test_every_option_of_the_frame_is_known_or_its_own() -> None:
    known = set(Asked._fields) | {"debug"}
    assert {parameter.name for parameter in record.params} <= known
    assert not [one for one in record.params if isinstance(one, click.Option) and one.multiple]


def test_other_commands_are_for_the_frame() -> None:
    assert plain_record(["run", "-o", "new", "--", "true"], {}, folder=NOWHERE) is None
    assert plain_record([], {}, folder=NOWHERE) is None


def test_a_variable_or_a_settings_file_has_its_say(tmp_path: Path) -> None:
    words = ["record", "-o", "new", "--", "true"]
    assert plain_record(words, {"PARITRACE_RECORD_TIMEOUT": "3"}, folder=tmp_path) is None
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    assert plain_record(words, {}, folder=below) is not None
    (tmp_path / "pyproject.toml").write_text('[tool."parit\\u0072ace".record]\ntitle = "x"\n')
    assert plain_record(words, {}, folder=below) is None
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "a" / "paritrace.toml").write_text("")
    assert plain_record(words, {}, folder=below) is None
    assert plain_record(words, {NO_SETTINGS_FILE: "1"}, folder=below) is not None


LOADED = """
import subprocess, sys
there = set(sys.modules)
from paritrace.cli.start import main
before = subprocess.Popen.__init__
def start(self, *arguments, **more):
    print(*sorted(set(sys.modules) - there), file=sys.stderr)
    return before(self, *arguments, **more)
subprocess.Popen.__init__ = start
sys.argv = ["paritrace", "record", "-o", sys.argv[1], "--", "true"]
main()
"""
LATE = {"click", "tomllib", "shutil", "ctypes", "hashlib", "json", "socket"}
LATE_OF_OURS = {
    "paritrace.cli.entry",
    "paritrace.process.stop_facts",
    "paritrace.process.samples",
    "paritrace.runs.record_ends",
    "paritrace.runs.recorded_session",
}


def test_what_only_the_end_needs_is_not_loaded_before_the_start(tmp_path: Path) -> None:
    """PF-16: modules instead of milliseconds, which a test cannot promise."""
    command = [sys.executable, "-c", LOADED, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, cwd=tmp_path)
    loaded = set(done.stderr.splitlines()[0].split())
    assert "paritrace.runs.recorded_command" in loaded
    assert loaded & (LATE | LATE_OF_OURS) == set()


def test_a_directory_that_is_gone_has_no_settings() -> None:
    assert plain_record(["record", "-o", "/new", "--", "true"], {}, folder=None) is not None


@pytest.mark.parametrize(
    ("words", "status"), [(["record", "-o", "{}/new", "--", "sh", "-c", "exit 3"], 3), (["run", "x.py"], 125)]
)
def test_su_3_from_a_directory_that_was_removed(tmp_path: Path, words: list[str], status: int) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; from paritrace.cli.start import main; os.rmdir(os.getcwd()); main()"
    command = [sys.executable, "-c", code, *(word.format(tmp_path) for word in words)]
    done = subprocess.run(command, cwd=gone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
