"""Telling a store by its look, without what reads one: every run that is opened is asked whether it is one (PF-10)."""

from pathlib import Path

from paritrace.files import LOCAL, Files
from paritrace.store.layout import BUNDLES


def is_store(path: Path, *, files: Files = LOCAL) -> bool:
    """Say whether a directory holds published bundles."""
    return files.exists(path / BUNDLES)
