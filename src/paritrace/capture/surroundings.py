"""What stands around a run, gathered once when a session begins (CA-30). Names and versions, never values (P7)."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import HostError
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.surroundings import Surroundings
from paritrace.process.children import run_child

GIT_SECONDS = 10.0  # git on a cold network file system; a checkout that takes longer is said not to be readable
MAX_DIFF_BYTES = 4 << 20  # a larger diff is data, not a change of code
MASK = "***"
_BARE_HEADER = re.compile(r"^diff --git [^\n]*\n(?=diff --git |\Z)", re.MULTILINE)
_FIELD = re.compile(r"^(Name|Version):(.*)$", re.MULTILINE)
_SENSITIVE = re.compile(r"(?i)(key|token|passw|passphrase|secret|credential|auth(?!or))")


class TorchFacts(Struct, frozen=True):
    """What torch says of itself; gathered by `capture.pytorch`."""

    devices: tuple[str, ...]
    num_threads: int | Gap[CaptureGap]
    determinism: dict[str, str]
    policy: dict[str, tuple[str, str]]


NO_TORCH = TorchFacts(
    devices=(), num_threads=Gap(CaptureGap.NOT_OBSERVED, "torch was not imported"), determinism={}, policy={}
)


class Checkout(Struct, frozen=True):
    """State of the git checkout around the workload: its commit and the difference to it."""

    commit: str | Gap[CaptureGap]
    diff: bytes | Gap[CaptureGap]


def surroundings(
    *, argv: tuple[str, ...] | None, main: Path | None, checkout: Checkout, diff_id: str, torch: TorchFacts
) -> Surroundings:
    """Make the record; `argv` None means that the user left it out."""
    return Surroundings(
        argv=Gap(CaptureGap.NOT_COLLECTED, "--no-argv") if argv is None else masked(argv),
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_packages(),
        environment_names=tuple(sorted(os.environ)),
        devices=torch.devices,
        num_threads=torch.num_threads,
        determinism=torch.determinism,
        policy=torch.policy,
        git_commit=checkout.commit,
        git_diff=checkout.diff if isinstance(checkout.diff, Gap) else diff_id,
        main_digest=_digest(main),
    )


def with_torch(known: Surroundings, torch: TorchFacts) -> Surroundings:
    """The same surroundings once torch is there."""
    return replace(
        known,
        devices=torch.devices,
        num_threads=torch.num_threads,
        determinism=torch.determinism,
        policy=torch.policy,
    )


def masked(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments with the values masked whose names speak of keys, tokens or passwords: `--api-key X`, `token=X`."""
    found: list[str] = []
    hide_next = False
    for argument in argv:
        name, equals, value = argument.partition("=")
        if hide_next and not argument.startswith("-"):
            found.append(MASK)
            hide_next = False
        elif equals and value and _SENSITIVE.search(name):
            found.append(f"{name}={MASK}")
            hide_next = False
        else:
            found.append(argument)
            hide_next = argument.startswith("-") and not equals and _SENSITIVE.search(argument) is not None
    return tuple(found)


def checkout_of(root: Path, *, want_diff: bool) -> Checkout:
    """Ask git for the commit and the difference of the working tree to it; without git or a checkout both are gaps."""
    absent: Gap[CaptureGap] = Gap(CaptureGap.NOT_OBSERVED, "no git checkout")
    if not (root / ".git").exists() or shutil.which("git") is None:
        return Checkout(absent, absent)
    commit = _git(root, "rev-parse", "HEAD")
    if not want_diff:
        return Checkout(commit, Gap(CaptureGap.NOT_COLLECTED, "--no-diff"))
    # Without the setting git writes the times of the files it looked at into its index: a checkout is never written.
    diff = _git(root, "-c", "diff.autoRefreshIndex=false", "diff", "--no-ext-diff", "--no-textconv", "HEAD")
    if isinstance(diff, Gap):
        return Checkout(commit, diff)
    data = _without_touched_files(diff).encode("utf-8", "surrogateescape")
    if len(data) > MAX_DIFF_BYTES:
        return Checkout(commit, Gap(CaptureGap.OVER_BUDGET, f"{len(data)} bytes"))
    return Checkout(commit, data)


def _without_touched_files(diff: str) -> str:
    """A difference without the files of which only the time changed: of them git prints a bare header."""
    return _BARE_HEADER.sub("", diff)


def _git(root: Path, *arguments: str) -> str | Gap[CaptureGap]:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = run_child(("git", *arguments), directory=root, environment=environment, deadline_seconds=GIT_SECONDS)
    except (HostError, OSError, UnicodeDecodeError):
        return Gap(CaptureGap.NOT_OBSERVED, "git did not answer")
    if done.status != 0:
        return Gap(CaptureGap.NOT_OBSERVED, f"git ended with status {done.status}")
    return done.stdout.strip() if arguments[0] == "rev-parse" else done.stdout


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name, version = _name_and_version(distribution)
        if name:
            found.setdefault(name, version)
    return dict(sorted(found.items()))


def _name_and_version(distribution: metadata.Distribution) -> tuple[str, str]:
    """Of the head alone: the library parses every long description too, a second where hundreds are installed."""
    head = (distribution.read_text("METADATA") or "").partition("\n\n")[0]
    fields = {name: value.strip() for name, value in reversed(_FIELD.findall(head))}
    if fields.keys() == {"Name", "Version"}:
        return fields["Name"], fields["Version"]
    return distribution.metadata["Name"], distribution.version


def _digest(main: Path | None) -> str | Gap[CaptureGap]:
    if main is None:
        return Gap(CaptureGap.NOT_OBSERVED, f"no main script ({Path(sys.executable).name} session)")
    try:
        return hashlib.sha256(main.read_bytes()).hexdigest()
    except OSError:
        return Gap(CaptureGap.NOT_OBSERVED, "main script not readable")
