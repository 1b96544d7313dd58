"""Finds the memory limit that binds a cgroup, as far as its ancestors are visible (RS-7, E-06)."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, MemoryLimit
from paritrace.process.cgroup_texts import parse_counters, parse_limit
from paritrace.process.cgroups import why_replaced

LIMIT = {CgroupVersion.V1: "memory.limit_in_bytes", CgroupVersion.V2: "memory.max"}
_BINDING = "hierarchical_memory_limit"

_Limit = int | Literal["unlimited"]


def visible_memory_limit(scope: CgroupScope) -> MemoryLimit:
    """The tightest limit among a cgroup and its visible ancestors.

    Version 1 also says which limit binds, whoever sets it: the answer then, with a gap for an unseen setter.
    """
    replaced = why_replaced(scope)
    if replaced:
        return _unknown(scope, replaced)
    try:
        limits = dict(_limits(scope))
        binding = _binding(scope)
    except (OSError, ValueError) as error:
        return _unknown(scope, Gap(ResourceGap.UNREADABLE, f"the limits of {scope.path}: {error}"))
    if not limits:
        return _unknown(scope, Gap(ResourceGap.NO_CONTROLLER, f"{scope.path} has no {LIMIT[scope.version]}"))
    set_by, limit = min(limits.items(), key=lambda entry: _size(entry[1]))
    if binding is not None and _size(binding) != _size(limit):
        return MemoryLimit(
            scope=scope,
            limit_bytes=binding,
            set_by=Gap(ResourceGap.UNREADABLE, "set by a cgroup that is not visible here"),
            levels=len(limits),
        )
    return MemoryLimit(
        scope=scope,
        limit_bytes=limit,
        set_by=Gap(ResourceGap.NO_LIMIT) if limit == "unlimited" else set_by,
        levels=len(limits),
    )


def _limits(scope: CgroupScope) -> Iterator[tuple[str, _Limit]]:
    """The limit of each level by path, from the cgroup up to the top of what is mounted; the root has none."""
    path, directory = PurePosixPath(scope.path), Path(scope.directory)
    while True:
        limit = directory / LIMIT[scope.version]
        if limit.exists():  # not in the root of version 2, nor where the memory controller does not serve
            yield str(path), parse_limit(limit.read_text(encoding="ascii"))
        if directory == Path(scope.top) or directory == directory.parent:
            return
        path, directory = path.parent, directory.parent


def _binding(scope: CgroupScope) -> _Limit | None:
    if scope.version is CgroupVersion.V2:
        return None
    counters = parse_counters((Path(scope.directory) / "memory.stat").read_text(encoding="ascii"))
    return parse_limit(str(counters[_BINDING])) if _BINDING in counters else None


def _size(limit: _Limit) -> float:
    return float("inf") if limit == "unlimited" else limit


def _unknown(scope: CgroupScope, why: Gap[ResourceGap]) -> MemoryLimit:
    return MemoryLimit(scope=scope, limit_bytes=why, set_by=why, levels=0)
