"""What a process loaded from outside the checkout: what a plan leaves out by package, with the reason (CA-11)."""

from __future__ import annotations

import sys
from collections import Counter

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
    modules: list[object] = [module for name, module in list(sys.modules.items()) if name not in but]
    for module in modules:
        path = getattr(getattr(module, "__spec__", None), "origin", None)
        if not isinstance(path, str) or not path.endswith(".py") or not sites.is_library(path):
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
