"""What a process loaded from outside the checkout: what a plan leaves out by package, with the reason (CA-11)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType

from paritrace.capture.sites import Sites, inside_packages

OUTSIDE = "outside the checkout"


def loaded_elsewhere(sites: Sites, *, but: frozenset[str]) -> dict[str, str]:
    """Installed packages by their name with the number of their files, other files by their path; each with why.

    Left out are torch, the standard library and paritrace itself, whose calls are never a workload's.

    Args:
        but: names of modules that were loaded before the workload began.
    """
    installed: Counter[str] = Counter()
    others: dict[str, str] = {}
    for path in _origins(but):
        if not path.endswith(".py") or not sites.is_library(path):
            continue
        inside = inside_packages(path)
        if inside is None:
            others[path] = OUTSIDE
        else:
            installed[inside.partition("/")[0]] += 1
    packages = {
        f"{name}/": f"an installed package, {OUTSIDE}: {number:,} {'file' if number == 1 else 'files'} loaded"
        for name, number in sorted(installed.items())
    }
    return packages | dict(sorted(others.items()))


def _origins(but: frozenset[str]) -> Iterator[str]:
    """Where the loaded modules come from, as far as they say; nothing that stands in for a module is asked."""
    loaded: list[tuple[str, object]] = list(sys.modules.items())
    for name, module in loaded:
        if name not in but and issubclass(type(module), ModuleType):
            spec = vars(module).get("__spec__")
            if isinstance(spec, ModuleSpec) and spec.origin is not None:
                yield spec.origin
