"""The mesh that the user declares with `--mesh`: what its text means, whether it fits, where this rank is (CA-3)."""

from __future__ import annotations

import re

from paritrace.errors import RequestError
from paritrace.evidence.distributed import Mesh

DECLARED = "declared"
_DIMENSION = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=([1-9][0-9]{0,6})")
Dimensions = tuple[tuple[str, int], ...]


def parse_mesh(text: str) -> Dimensions:
    """`dp=2,tp=4`: names and sizes, the last one varying fastest over the ranks. Raises `RequestError` (Refused)."""
    found = [_DIMENSION.fullmatch(part.strip()) for part in text.split(",")]
    named = [(match[1], int(match[2])) for match in found if match is not None]
    if len(named) != len(found) or len({name for name, _ in named}) != len(named):
        raise RequestError(
            f"--mesh {text!r} is not NAME=SIZE,NAME=SIZE with each name once",
            code="bad_mesh",
            fix="give for example --mesh dp=2,tp=4",
        )
    return tuple(named)


def declared_mesh(dimensions: Dimensions, *, rank: int, world_size: int, new_id: int) -> Mesh:
    """The declared mesh as seen from a rank: rank 0 is at the origin, the last dimension varies fastest (row-major).

    Raises:
        RequestError: Refused, `bad_mesh`: the sizes do not multiply to the world size.
    """
    require_mesh(dimensions, world_size=world_size)
    coordinate: list[int] = []
    for _, size in reversed(dimensions):
        rank, place = divmod(rank, size)
        coordinate.insert(0, place)
    names, shape = zip(*dimensions, strict=True)
    return Mesh(new_id, names, shape, tuple(coordinate), DECLARED, (-1,) * len(shape))


def require_mesh(dimensions: Dimensions, *, world_size: int) -> None:
    """Refuse a declared mesh that has not exactly one place for each rank; none declared fits everywhere."""
    product = 1
    for _, size in dimensions:
        product *= size
    if dimensions and product != world_size:
        spelled = ",".join(f"{name}={size}" for name, size in dimensions)
        raise RequestError(
            f"--mesh {spelled} is a mesh of {product} ranks, and the world has {world_size}",
            code="bad_mesh",
            fix="give sizes whose product is the number of ranks, or leave --mesh out",
        )
