"""Rows of tokens as they are captured: what holds a declaration, what is kept, that nothing is disturbed (CP-27)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import paritrace
from paritrace.evidence.calls import EndMark, Name
from paritrace.evidence.codec import Record
from paritrace.evidence.gaps import CountedGap
from paritrace.evidence.journal import Loss
from paritrace.evidence.row_summaries import row_sample_indices
from paritrace.evidence.rows import RowAddresses, TokenRows
from paritrace.runs.reading import open_run
from tests.compare.token_workloads import Model, padded


def records(run: Path) -> list[Record | Loss]:
    with open_run(run) as opened:
        (session,) = opened.sessions
        return list(opened.records(session.session_id, strict=True))


def rows_of(run: Path) -> dict[str, list[TokenRows]]:
    found = records(run)
    names = {record.id: record.text for record in found if isinstance(record, Name)}
    told: dict[str, list[TokenRows]] = {}
    for record in found:
        if isinstance(record, TokenRows):
            told.setdefault(names[record.name], []).append(record)
    return told


def gaps(run: Path) -> dict[str, int]:
    (end,) = (record for record in records(run) if isinstance(record, EndMark))
    return end.gaps


class Twice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.shared(self.shared(x))
        return out


def test_rows_hold_what_their_bytes_say(tmp_path: Path) -> None:
    hidden = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    with paritrace.trace(tmp_path / "run"):
        rows = paritrace.rows(["a", "b"], attention_mask=[[1, 1, 0], [1, 1, 1]])
        rows.observe("x", hidden, semantics="tagged")
        rows.observe("transposed", hidden.transpose(0, 1).contiguous().transpose(0, 1))
        rows.observe("flat", hidden.reshape(6, 4))
    (addresses,) = (record for record in records(tmp_path / "run") if isinstance(record, RowAddresses))
    assert addresses.samples == ("a", "b")
    assert np.frombuffer(addresses.index, "<i4").tolist() == [0, 0, 1, 1, 1]
    assert np.frombuffer(addresses.positions, "<i4").tolist() == [0, 1, 0, 1, 2]
    found = rows_of(tmp_path / "run")
    (x,) = found["x"]
    kept = hidden.reshape(6, 4)[[0, 1, 3, 4, 5]]
    assert np.frombuffer(x.rows, "<i4").tolist() == [0, 1, 3, 4, 5]
    assert np.frombuffer(x.samples, "<f4").reshape(5, 4).tolist() == kept.tolist()
    assert np.frombuffer(x.norms, "<f8") == pytest.approx(kept.double().norm(dim=1).tolist())
    assert (x.semantics, x.features, x.tops) == ("tagged", 4, b"")
    assert found["transposed"][0].bits == found["flat"][0].bits == x.bits, "wherever the elements lie in memory"


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.bool, torch.complex64]
)
def test_every_dtype_has_rows(tmp_path: Path, dtype: torch.dtype) -> None:
    with paritrace.trace(tmp_path / "run"):
        paritrace.rows(["a"], positions=[[0, 1]]).observe("x.logits", torch.tensor([[[1, 3], [2, 0]]]).to(dtype))
    (x,) = rows_of(tmp_path / "run")["x.logits"]
    assert len(x.bits) == 16
    assert len(x.samples) == 4 * torch.tensor([], dtype=dtype).element_size()
    if dtype is not torch.complex64:
        assert np.frombuffer(x.tops, "<i8").tolist() == [0 if dtype is torch.bool else 1, 0]


def test_token_ids_are_kept_by_their_fingerprints_alone(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run"):
        paritrace.rows(["a"], input_ids=torch.tensor([[7, 8]]), position_ids=torch.tensor([[4, 5]]))
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
    found = rows_of(tmp_path / "run")
    assert (found["input_ids"][0].samples, found["input_ids"][0].norms) == (b"", b"")
    assert np.frombuffer(found["position_ids"][0].samples, "<i8").tolist() == [4, 5]


def test_a_declaration_is_for_one_forward_and_a_block_for_all_inside(tmp_path: Path) -> None:
    model, x = torch.nn.Linear(3, 3), torch.ones(1, 2, 3)
    with paritrace.trace(tmp_path / "run", rows=["*"]):
        paritrace.rows(["a"], positions=[[0, 1]])
        model(x)
        model(x)  # of another batch, as far as anybody was told
        with paritrace.rows(["b"], positions=[[0, 1]]):
            model(x)
            model(x)
        model(x)
    assert len(rows_of(tmp_path / "run")[":out"]) == 3


def test_a_shared_layer_has_a_name_for_each_time(tmp_path: Path) -> None:
    model = Twice()
    with paritrace.trace(tmp_path / "run", rows=["shared"]):
        for name in "ab":
            paritrace.rows([name], positions=[[0]])
            model(torch.ones(1, 1, 4))
    assert {name: len(rows) for name, rows in rows_of(tmp_path / "run").items()} == {
        "shared:out": 2,
        "shared[1]:out": 2,
    }


def test_what_does_not_fit_is_counted_and_never_raised(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 3)
    with paritrace.trace(tmp_path / "run", rows=["*"]):
        paritrace.rows(["a", "b"], positions=[[0, 1]]).observe("x", torch.ones(1))
        paritrace.rows([object()], positions=[0])
        paritrace.rows(["a"], position_ids="nonsense")
        paritrace.rows(["a"], positions=[[0], [0, 1]])
        paritrace.rows(["a"], positions=torch.ones(1, 2, device="meta"))
        paritrace.rows(["a"], positions=[[0, 1]], input_ids=[[1, 2, 3]])
        rows = paritrace.rows(["a"], positions=[[0, 1]])
        model(torch.ones(5, 3))
        rows.observe("x", torch.ones(7))
        rows.observe("x", torch.ones(1, 2, 3, device="meta"))
        rows.observe("x", torch.ones(1, 2, 3).to_sparse())
    counted = gaps(tmp_path / "run")
    assert counted == {CountedGap.ROWS_NOT_ADDRESSED: 10}
    assert rows_of(tmp_path / "run") == {}


def test_empty_batches_and_hostile_names(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run"):
        paritrace.rows([], cu_seqlens=[0]).observe("x", torch.ones(0, 4))
        paritrace.rows(["\x1b[31m\udcff\n"], positions=[[0]]).observe("y\x00", torch.ones(1, 1, 4))
    found = rows_of(tmp_path / "run")
    assert found["x"][0].bits == b""
    assert len(found["y\x00"][0].bits) == 8


def test_without_a_capture_and_beyond_its_steps_nothing_happens(tmp_path: Path) -> None:
    rows = paritrace.rows(["a"], positions=[[0]])
    rows[:, :].observe("x", torch.ones(1, 1))
    with paritrace.trace(tmp_path / "run", steps=(1, 2)):
        for step in range(3):
            paritrace.step(step)
            paritrace.rows(["a"], positions=[[0]]).observe("x", torch.ones(1, 1))
    assert len(rows_of(tmp_path / "run")["x"]) == 1


def test_rows_declared_before_a_lazy_end_of_a_step_are_of_the_step_they_are_for(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with paritrace.trace(tmp_path / "run", rows=["*"], steps=(1, 2)):
        for _ in range(3):
            paritrace.rows(["a"], positions=[[0, 1]], input_ids=[[1, 2]])
            torch.autograd.backward(model(torch.ones(1, 2, 3)).sum())
            optimizer.step()
    found = rows_of(tmp_path / "run")
    assert len(found[":out"]) == len(found["input_ids"]) == 1
    assert found[":out"][0].context == found["input_ids"][0].context


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_the_same_operators_run_in_the_same_order_with_and_without_rows(tmp_path: Path) -> None:
    """CA-34, CA-33: nothing is dispatched, held or frozen by the rows."""

    def counted() -> tuple[list[str], torch.Tensor]:
        model = Model()
        with Counting() as counting:
            padded(model, left=True)
        return counting.seen, torch.cat([parameter.flatten() for parameter in model.parameters()])

    bare = counted()
    with paritrace.trace(tmp_path / "run", rows=["*"]):
        captured = counted()
    assert captured[0] == bare[0]
    assert torch.equal(captured[1], bare[1])
    held = torch.ones(1, 2, 3)
    with paritrace.trace(tmp_path / "other"):
        paritrace.rows(["a"], positions=torch.arange(2)[None]).observe("x", held)
    assert held.untyped_storage().resizable()


def test_a_training_has_the_same_bits_with_rows(tmp_path: Path) -> None:
    """CA-14: losses, gradients, weights and the generator."""

    def trained() -> list[torch.Tensor]:
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        ids, allowed = torch.arange(12).reshape(2, 6), torch.ones(2, 6, 6, dtype=torch.bool).tril()
        seen: list[torch.Tensor] = []
        for step in range(3):
            rows = paritrace.rows([f"a{step}", f"b{step}"], input_ids=ids)
            logits = torch.nn.functional.dropout(model(ids, torch.arange(6).expand(2, 6), allowed))
            rows.observe("logits", logits)
            loss = logits.square().mean()
            torch.autograd.backward(loss)
            seen += [
                loss.detach(),
                *(parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None),
            ]
            optimizer.step()
            optimizer.zero_grad()
        return [*seen, *(parameter.detach() for parameter in model.parameters()), torch.get_rng_state()]

    bare = trained()
    with paritrace.trace(tmp_path / "run", rows=["*"]):
        captured = trained()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(bare, captured, strict=True))
    assert len(rows_of(tmp_path / "run")["logits"]) == 3


def test_sampled_places_depend_on_the_length_of_a_row_alone() -> None:
    assert row_sample_indices(5) == (0, 1, 2, 3, 4)
    assert len(row_sample_indices(50)) <= 16 < 50
    assert len(row_sample_indices(4096)) == 16
    assert len(set(row_sample_indices(4096))) == 16
