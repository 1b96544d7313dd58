"""Makes the workload of a rank: found by its name, built in order, everything that is missing told at once (SE-1)."""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paritrace.errors import RequestError

CAPABILITIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "check": ("check",),
        "release_setup": ("release_setup",),
        "config_fields": ("config_fields",),
        "plan_config": ("plan_config", "apply_config"),
        "save": ("save",),
        "inspect": ("inspect", "apply"),
        "accepts": ("accepts",),
        "prepare_inputs": ("prepare_inputs", "install_inputs", "publish_inputs"),
        "preview": ("preview",),
        "offers_preview": ("offers_preview",),
        "rebuild": ("rebuild",),
        "state_digest": ("state_digest",),
    }
)
"""Each capability and the methods that make it up: it is there where all of them are."""
REQUIRED = ("load", "build", "step", "close")


def class_of(name: str, /) -> Any:
    """Return what `module:Class` names.

    Raises:
        RequestError: Refused: `bad_workload`: the name is not of that form, or names nothing with the four methods.
        Exception: whatever the module raises when it is imported.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise _bad_workload(f"{name!r} is not MODULE:CLASS")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does, so that a workload beside the shell's folder is found
    found = vars(import_module(module)).get(attribute)
    if found is None:
        raise _bad_workload(f"{module} has no {attribute}")
    missing = [method for method in REQUIRED if not callable(getattr(found, method, None))]
    if missing:
        raise _bad_workload(f"{name} has no {', '.join(missing)}")
    return found


def capabilities_of(workload_class: Any, /) -> tuple[str, ...]:
    """Return the capabilities of a class, discovered by presence (SE-1)."""
    return tuple(
        name
        for name, methods in CAPABILITIES.items()
        if all(callable(getattr(workload_class, method, None)) for method in methods)
    )


def half_there(workload_class: Any, /) -> tuple[str, ...]:
    """Return a line for each capability of which some methods are there and others are missing."""
    lines: list[str] = []
    for name, methods in CAPABILITIES.items():
        missing = [method for method in methods if not callable(getattr(workload_class, method, None))]
        if missing and len(missing) < len(methods):
            lines.append(f"{name} is no capability of this workload: it has no {', '.join(missing)}")
    return tuple(lines)


def _bad_workload(words: str) -> RequestError:
    return RequestError(
        words, code="bad_workload", fix="name a class with load, build, step and close, as `package.module:Class`"
    )
