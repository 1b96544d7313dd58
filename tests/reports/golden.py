"""Golden files: compared as bytes; written anew with `PARITRACE_UPDATE_GOLDEN=1 pytest tests/reports`."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, content: str) -> None:
    """Fails when `content` is not what the golden file holds; the file is written when an update was asked for."""
    path = GOLDEN / name
    if os.environ.get("PARITRACE_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    assert content == path.read_text(encoding="utf-8"), f"{name} changed: look at it, then update the golden files"
