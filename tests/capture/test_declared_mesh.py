"""`--mesh`: what its text means, where a rank is in it, and what is refused (CA-3)."""

from itertools import product
from pathlib import Path

import pytest

import paritrace
from paritrace.capture.declared_mesh import declared_mesh, parse_mesh
from paritrace.errors import Outcome, RequestError
from paritrace.evidence.distributed import Mesh
from paritrace.runs.reading import open_run


def test_ranks_lie_row_major() -> None:
    dimensions = parse_mesh("pp=2, dp=3,tp=2")
    found = [declared_mesh(dimensions, rank=rank, world_size=12, new_id=4) for rank in range(12)]
    assert [mesh.coordinate for mesh in found] == list(product(range(2), range(3), range(2)))
    assert found[7] == Mesh(4, ("pp", "dp", "tp"), (2, 3, 2), (1, 0, 1), "declared", (-1, -1, -1))


@pytest.mark.parametrize(
    "text", ["", "dp", "dp=", "dp=0", "dp=-1", "dp=2;tp=2", "dp=2,dp=2", "=2", "dp=two", "dp=2,", "dp=٢", "d p=2"]
)
def test_what_is_no_mesh_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        parse_mesh(text)
    assert (refused.value.code, refused.value.outcome) == ("bad_mesh", Outcome.REFUSED)


def test_a_mesh_that_does_not_fit_the_world_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused, paritrace.trace(tmp_path / "run", mesh="dp=2,tp=2", diff=False):
        raise AssertionError("never entered")
    assert refused.value.code == "bad_mesh"
    assert "4 ranks, and the world has 1" in refused.value.message
    assert not (tmp_path / "run").exists()


def test_the_declared_mesh_is_in_the_journal(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run", mesh="dp=1,tp=1", diff=False):
        pass
    with open_run(tmp_path / "run") as run:
        meshes = [record for record in run.records("rank-0") if isinstance(record, Mesh)]
    assert meshes == [Mesh(0, ("dp", "tp"), (1, 1), (0, 0), "declared", (-1, -1))]
