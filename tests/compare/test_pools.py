"""Whoever compares the ranks, and how many at once: the same result and the same rows, byte for byte (CP-17, PF-11)."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from paritrace.compare.engine import compare
from paritrace.compare.rows import Compared
from paritrace.errors import RequestError
from paritrace.process.pool import LocalPool, OwnProcess, Pool
from paritrace.process.ray_pool import RayPool
from paritrace.reports.documents import comparison_document
from paritrace.runs.reading import open_run
from tests.compare.distributed_runs import Recipe, both

WITHOUT = (("head.weight", "head.bias"),)  # the body's gradient is not reduced


def again(place: Path, pool: Pool | None) -> Compared:
    return compare(open_run(place / "a"), open_run(place / "b"), pool=pool)


def test_the_result_is_the_same_in_other_processes(tmp_path: Path) -> None:
    here = both(tmp_path, Recipe(), Recipe(buckets=WITHOUT))
    for pool in (OwnProcess(), LocalPool(2)):
        there = again(tmp_path, pool)
        assert comparison_document(there.result) == comparison_document(here.result)
        assert list(there.rows) == list(here.rows)


def test_a_fault_of_one_rank_is_said_as_without_workers(tmp_path: Path) -> None:
    both(tmp_path, Recipe(), Recipe())
    journal = tmp_path / "b" / "sessions" / "rank-1" / "calls.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"version":"1.', b'"version":"9.', 1))
    said: list[tuple[str, str]] = []
    for pool in (None, LocalPool(1)):
        with pytest.raises(Exception, match="version '9") as caught:
            again(tmp_path, pool)
        said.append((type(caught.value).__name__, str(caught.value)))
    assert said[0] == said[1]


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed: nothing is refused")
def test_without_ray_the_way_to_install_it_is_told(tmp_path: Path) -> None:
    both(tmp_path, Recipe(), Recipe())
    with pytest.raises(RequestError, match="needs Ray") as caught:
        again(tmp_path, RayPool(2))
    assert "pip install 'paritrace[ray]'" in caught.value.fix


@pytest.mark.slow
def test_eight_ranks_on_one_and_two_workers(tmp_path: Path) -> None:
    from benchmarks.repeated import captured, write_run  # torch: not for the fast tests

    pattern = captured(tmp_path)
    for name, planted in (("a", False), ("b", True)):
        write_run(tmp_path / name, pattern, calls=2_000, planted=planted, ranks=8)
    documents = {comparison_document(again(tmp_path, pool).result) for pool in (None, LocalPool(1), LocalPool(2))}
    assert len(documents) == 1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'paritrace[ray]'")
def test_ray_gives_the_same(tmp_path: Path) -> None:
    here = both(tmp_path, Recipe(), Recipe(buckets=WITHOUT))
    there = again(tmp_path, RayPool(2))
    assert comparison_document(there.result) == comparison_document(here.result)
    journal = tmp_path / "b" / "sessions" / "rank-1" / "calls.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"version":"1.', b'"version":"9.', 1))
    with pytest.raises(Exception, match="version '9"):
        again(tmp_path, RayPool(2))
