"""What the project promises about its set-up: pinned tools, open lower bounds, no package index of its own (SU-15)."""

import re
import subprocess
import tomllib

import pytest

import paritrace
from tests.house.documents import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOWER_BOUND = r"[a-z0-9.]+>=[0-9.]+(; python_version < '3\.14')?"  # a backport ends where the library begins
SET_UP = ["Makefile", ".ci/run", "pyproject.toml", "requirements/dev.txt", "requirements/constraints.txt"]


def names_in(lines: list[str]) -> set[str]:
    """Normalised names of the requirements in `lines`."""
    found = (re.match(r"[A-Za-z0-9._-]+", line.strip()) for line in lines)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


def pins() -> list[str]:
    lines = (ROOT / "requirements/constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_every_version_of_the_development_environment_is_pinned() -> None:
    assert [line for line in pins() if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)] == []
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    wanted = names_in([*PROJECT["dependencies"], *extras, *(ROOT / "requirements/dev.txt").read_text().splitlines()])
    assert wanted - {"paritrace"} <= names_in(pins())


def test_the_package_itself_states_lower_bounds_only() -> None:
    bounded = [line for line in PROJECT["dependencies"] if not re.fullmatch(LOWER_BOUND, line)]
    assert bounded == [
        "protobuf>=6.31.1,<8"
    ]  # a major version of it refuses messages that an older one made (ADR 0024)


def test_torch_is_not_needed_by_the_core() -> None:
    assert "torch" not in names_in(PROJECT["dependencies"])


def test_one_version() -> None:
    assert PROJECT["version"] == paritrace.__version__


@pytest.mark.parametrize("name", SET_UP)
def test_no_package_index_is_named(name: str) -> None:
    assert not re.search(r"index-url|find-links|trusted-host|https?://", (ROOT / name).read_text())


@pytest.mark.parametrize("target", ["demo", "test", "test-slow", "check", "bench", "docs", "golden"])
def test_front_doors_exist(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ci_script_parses_and_may_be_run() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(script)], check=True)
