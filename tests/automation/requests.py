"""Requests of small real programs, for tests that run them."""

import sys
from pathlib import Path

from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.runs.request import FORMAT, NO_LAUNCHER, VERSION, RunRequest


def request_for(
    script: Path,
    *,
    arguments: tuple[str, ...] | Gap[CaptureGap] = (),
    launcher: str | Gap[CaptureGap] = NO_LAUNCHER,
    kept: tuple[str, ...] = (),
    python: str = sys.executable,
) -> RunRequest:
    """The request of `python script` in its folder, its source as it is on disk now."""
    return RunRequest(
        format=FORMAT,
        version=VERSION,
        name=script.name,
        module=False,
        arguments=arguments,
        directory=str(script.parent),
        python=python,
        root=str(script.parent),
        main=str(script),
        launcher=launcher,
        kept=kept,
        sources={str(script): (sha256_hex(script.read_bytes()),)},
    )
