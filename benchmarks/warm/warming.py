"""Imports what captures need, once, before a process forks for each of them."""

import gc
import threading
from importlib import import_module
from pkgutil import walk_packages

# What a training imports while it runs, and what a capture does.
NEEDED = ("torch", "torch._dynamo", "torch.utils.checkpoint", "paritrace.cli.run", "paritrace.cli.entry", "tomllib")
PACKAGES = ("paritrace.capture", "paritrace.runs", "paritrace.evidence", "paritrace.process", "paritrace.files")
OPTIONAL = frozenset({"paritrace.evidence.compiled"})  # needs numba, and is loaded only for large tensors


def warm_up(*more: str) -> None:
    """Import what captures need, and `more`, and leave it out of what they look through.

    Raises:
        RuntimeError: another thread runs; a fork would lose it, and the locks that it holds would stay held.
    """
    for name in (*NEEDED, *more):
        import_module(name)
    for package in PACKAGES:
        for found in walk_packages(import_module(package).__path__, f"{package}."):
            if found.name not in OPTIONAL:
                import_module(found.name)
    if threading.active_count() > 1:
        raise RuntimeError("a process with threads cannot be forked safely")
    gc.collect()
    gc.freeze()
