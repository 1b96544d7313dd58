"""What stands around a run: secrets masked, git asked carefully, names never values (CA-30, P7)."""

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.surroundings import (
    MASK,
    MAX_DIFF_BYTES,
    NO_TORCH,
    Checkout,
    checkout_of,
    masked,
    surroundings,
)
from paritrace.evidence.gaps import CaptureGap, Gap

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--lr", "0.1"), ("--lr", "0.1")),
        (("--api-key", SECRET), ("--api-key", MASK)),
        (("--api-key=" + SECRET,), (f"--api-key={MASK}",)),
        (("token=" + SECRET,), (f"token={MASK}",)),
        (("--wandb_api_key", SECRET, "--lr", "1"), ("--wandb_api_key", MASK, "--lr", "1")),
        (("--password", "--lr", "1"), ("--password", "--lr", "1")),  # a switch; nothing follows to be masked
        (("--HF_TOKEN", SECRET), ("--HF_TOKEN", MASK)),
        (("--passphrase", SECRET), ("--passphrase", MASK)),
        (("--author", "someone"), ("--author", "someone")),
        (("--authors=a,b",), ("--authors=a,b",)),
        (("--client-secret", SECRET, SECRET), ("--client-secret", MASK, SECRET)),  # the second is no value of it
        (("--token=",), ("--token=",)),
        ((), ()),
    ],
)
def test_values_of_secrets_are_masked(argv: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert masked(argv) == expected


words = st.text(alphabet="abcdefg-=_.", max_size=8)


@given(st.lists(words).map(tuple))
def test_arguments_without_sensitive_names_stay_as_they_are(argv: tuple[str, ...]) -> None:
    assert masked(argv) == argv


@given(st.lists(words), st.sampled_from(["--token", "--api-key", "-password", "--db.secret"]), st.lists(words))
def test_the_value_after_a_sensitive_name_never_shows(before: list[str], name: str, after: list[str]) -> None:
    shown = masked((*before, name, SECRET, *after))
    assert SECRET not in " ".join(shown)
    assert len(shown) == len(before) + 2 + len(after)


def repository(folder: Path) -> Path:
    folder.mkdir()
    for arguments in (
        ("init", "-q"),
        ("config", "user.email", "a@b"),
        ("config", "user.name", "a"),
        ("config", "commit.gpgsign", "false"),
    ):
        git(folder, *arguments)
    (folder / "train.py").write_text("x = 1\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.strip()


def test_the_commit_and_the_difference_of_a_checkout(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    commit = git(folder, "rev-parse", "HEAD")
    assert checkout_of(folder, want_diff=True) == Checkout(commit, b"")
    (folder / "train.py").write_bytes(b"x = 2\n# \xff\n")
    found = checkout_of(folder, want_diff=True)
    assert found.commit == commit
    assert isinstance(found.diff, bytes)
    assert b"-x = 1\n+x = 2\n+# \xff\n" in found.diff
    unasked = checkout_of(folder, want_diff=False)
    assert unasked.commit == commit
    assert isinstance(unasked.diff, Gap)
    assert unasked.diff.gap is CaptureGap.NOT_COLLECTED


def test_a_programme_that_the_checkout_names_for_differences_is_not_run(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    trap = tmp_path / "ran"
    git(folder, "config", "diff.external", f"touch {trap}")
    git(folder, "config", "diff.evil.textconv", f"touch {trap}")
    (folder / ".gitattributes").write_text("*.py diff=evil\n", encoding="utf-8")
    (folder / "train.py").write_text("x = 2\n", encoding="utf-8")
    found = checkout_of(folder, want_diff=True)
    assert isinstance(found.diff, bytes)
    assert b"+x = 2" in found.diff
    assert not trap.exists()


def test_asking_git_writes_nothing_into_the_checkout(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    os.utime(folder / "train.py", (1, 1))  # git would like to refresh its index
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    found = checkout_of(folder, want_diff=True)
    assert found.diff == b"", "a file that was only touched is no difference"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_large_difference_is_a_gap_that_says_how_large(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    (folder / "train.py").write_text("x" * (MAX_DIFF_BYTES + 1), encoding="utf-8")
    found = checkout_of(folder, want_diff=True)
    assert isinstance(found.diff, Gap)
    assert found.diff.gap is CaptureGap.OVER_BUDGET
    assert "bytes" in (found.diff.detail or "")


def test_no_checkout_and_no_git_are_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = repository(tmp_path / "repo")
    assert isinstance(checkout_of(tmp_path, want_diff=True).commit, Gap)
    assert isinstance(checkout_of(folder, want_diff=True).commit, str)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(checkout_of(folder, want_diff=True).commit, Gap)


def test_a_checkout_without_a_commit_is_a_gap(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "-q")
    found = checkout_of(folder, want_diff=True)
    assert isinstance(found.commit, Gap)
    assert found.commit.gap is CaptureGap.NOT_OBSERVED


def test_values_of_the_environment_are_never_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SETTING", SECRET)
    nothing: Gap[CaptureGap] = Gap(CaptureGap.NOT_OBSERVED)
    made = surroundings(
        argv=("train.py", "--token", SECRET), main=None, checkout=Checkout(nothing, nothing), diff_id="", torch=NO_TORCH
    )
    assert "SOME_SETTING" in made.environment_names
    assert SECRET.encode() not in msgspec.json.encode(made)
    assert made.packages["pytest"] == sys.modules["pytest"].__version__
    assert made.packages.items() <= {(found.metadata["Name"], found.version) for found in distributions()}
    left_out = surroundings(
        argv=None, main=tmp_path / "gone.py", checkout=Checkout(nothing, nothing), diff_id="", torch=NO_TORCH
    )
    assert isinstance(left_out.argv, Gap)
    assert left_out.argv.gap is CaptureGap.NOT_COLLECTED
    assert isinstance(left_out.main_digest, Gap)
