"""Element-wise figures in a comparison of two runs that keep tensors whole (CP-11, A-05, A-06, A-11)."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.masks import parse_mask
from paritrace.compare.result import Comparison, Difference, DifferenceClass, SlotDifference
from paritrace.compare.rows import CallRow, Compared
from paritrace.compare.settings import Settings
from paritrace.errors import ParitraceError, RequestError
from paritrace.files import LOCAL
from paritrace.reports.element_words import element_facts, element_line
from paritrace.reports.parquet import write_calls
from paritrace.runs.reading import open_run
from tests.capture.kept import keep

Work = Callable[[], object]
SEEN = ("function:paritrace.observe(*)",)


def observed(tensor: torch.Tensor, semantics: str | None = None) -> Work:
    return lambda: paritrace.observe("x", tensor, semantics=semantics)


def both(tmp_path: Path, baseline: Work, candidate: Work, *, masks: tuple[str, ...] = ()) -> Compared:
    keep(tmp_path / "a", baseline, dump=SEEN)
    keep(tmp_path / "b", candidate, dump=SEEN)
    return again(tmp_path, masks=masks)


def again(tmp_path: Path, *, masks: tuple[str, ...] = ()) -> Compared:
    with open_run(tmp_path / "a") as a, open_run(tmp_path / "b") as b:
        found = compare(a, b, Settings(masks=tuple(parse_mask(mask) for mask in masks)))
        return Compared(result=found.result, rows=tuple(found.rows))


def slot_of(result: Comparison, name: str = "tensor") -> SlotDifference:
    place = result.first_difference
    assert place is not None
    return next(slot for slot in place.slots if slot.slot == name)


def test_nan_where_the_candidate_has_a_number_is_told_first(tmp_path: Path) -> None:
    """A-06."""
    a = torch.arange(10.0)
    b = a.clone()
    a[[2, 5, 7]], b[[2, 5, 7]] = math.nan, 1.0

    found = both(tmp_path, observed(a), observed(b))

    slot = slot_of(found.result)
    assert slot.difference_class is DifferenceClass.NON_FINITE_APPEARED
    assert slot.elements is not None
    assert (slot.elements.num_non_finite_apart, slot.elements.num_mismatches, slot.elements.max_absolute) == (3, 3, 0.0)
    (line,) = element_line(slot)
    assert line.strip().startswith("3 not finite on one side, first at [2]; 3 of 10 elements differ")
    assert found.result.verdict == "not_evaluated"


def test_all_nan_against_zeros_establishes_no_size(tmp_path: Path) -> None:
    """A-05."""
    found = both(
        tmp_path,
        observed(torch.full((3, 5), math.nan, dtype=torch.float16)),
        observed(torch.zeros(3, 5, dtype=torch.float16)),
    )
    figures = slot_of(found.result).elements
    assert figures is not None
    assert (figures.num_non_finite, figures.max_absolute, figures.cosine) == ((15, 0), None, None)


def test_figures_stand_in_the_document_the_rows_and_the_facts(tmp_path: Path) -> None:
    a = torch.linspace(1, 2, 300).reshape(3, 100)
    b = a.clone()
    b[1, 7] = 9.0

    found = both(tmp_path, observed(a), observed(b))

    slot = slot_of(found.result)
    figures = slot.elements
    assert slot.difference_class is DifferenceClass.SPARSE_OR_BELOW_SAMPLING
    assert figures is not None
    assert (figures.num_mismatches, figures.first, figures.max_absolute_at) == (1, (1, 7), (1, 7))
    assert figures.max_absolute == pytest.approx(9 - float(a[1, 7]))
    assert any(fact.startswith("ULP: more: 1") for fact in element_facts(figures))
    rows = [slot for row in found.rows for slot in row.slots if slot.figures is not None]
    assert len(rows) == 4, "input and output, on both sides"
    assert {row.figures for row in rows} == {figures}
    assert [places(finding.place) for finding in found.result.findings] == [[figures, figures]]


def places(place: Difference) -> list[object]:
    return [slot.elements for slot in place.slots]


def test_figures_are_columns_of_the_parquet_file(tmp_path: Path) -> None:
    a, b = torch.ones(4), torch.tensor([1.0, 1.0, math.inf, 3.0])
    found = both(tmp_path, observed(a), observed(b))
    path = tmp_path / "calls.parquet"
    with LOCAL.replacing(path) as sink:
        write_calls(iterate(found.rows), sink, schemes={})
    slots = [slot for row in pq.read_table(path).to_pylist() for slot in row["slots"]]
    assert {(s["elements_compared"], s["mismatches"], s["non_finite_apart"], s["max_absolute"]) for s in slots} == {
        (4, 2, 1, 2.0)
    }
    assert slots[0]["first_mismatch"] == [2]


def iterate(rows: object) -> Iterator[CallRow]:
    assert isinstance(rows, tuple)
    for row in rows:
        assert isinstance(row, CallRow)
        yield row


def test_a_mask_leaves_padding_out_and_is_recorded(tmp_path: Path) -> None:
    a = torch.zeros(2, 3, 4)
    b = a.clone()
    b[:, 2] = 5.0
    b[1, 1, 3] = 1.0
    save_file({"attention": torch.tensor([[1, 1, 0], [1, 1, 0]])}, tmp_path / "mask.safetensors")
    mask = f"*:tensor={tmp_path / 'mask.safetensors'}:attention"

    found = both(tmp_path, observed(a), observed(b), masks=(mask,))

    figures = slot_of(found.result).elements
    assert figures is not None
    assert (figures.num_masked, figures.num_mismatches, figures.first) == (8, 1, (1, 1, 3))
    other = slot_of(found.result, "out").elements
    assert other is not None
    assert other.num_masked == 0, "only slots that the mask names"
    assert "mask.safetensors:attention (" in found.result.settings["mask"]


def test_a_mask_that_does_not_fit_is_told_in_place_of_figures(tmp_path: Path) -> None:
    save_file({"m": torch.ones(7)}, tmp_path / "mask.safetensors")
    found = both(
        tmp_path, observed(torch.zeros(2)), observed(torch.ones(2)), masks=(f"*={tmp_path / 'mask.safetensors'}:m",)
    )
    slot = slot_of(found.result)
    assert slot.elements is None
    assert "bool or whole numbers" in slot.elements_why


@pytest.mark.parametrize("text", ["", "x", "x=y", "x=y.safetensors:", "=y:k", "x=:k"])
def test_what_is_no_mask_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        parse_mask(text)
    assert refused.value.code == "bad_mask"


def test_a_mask_that_is_not_there_is_refused(tmp_path: Path) -> None:
    save_file({"m": torch.ones(7)}, tmp_path / "mask.safetensors")
    for text, code in ((f"x={tmp_path}/none:m", "not_found"), (f"x={tmp_path}/mask.safetensors:k", "no_tensor")):
        with pytest.raises(ParitraceError) as refused:
            parse_mask(text)
        assert refused.value.code == code


def test_what_one_side_did_not_keep_is_said(tmp_path: Path) -> None:
    keep(tmp_path / "a", observed(torch.zeros(500)), dump=SEEN)
    keep(tmp_path / "b", observed(torch.ones(500)), dump=SEEN, dump_bytes=1000)
    slot = slot_of(again(tmp_path).result)
    assert slot.elements is None
    assert slot.elements_why.startswith("the candidate did not keep it: over_budget")


def test_a_file_that_changed_is_told_in_place_of_figures(tmp_path: Path) -> None:
    both(tmp_path, observed(torch.zeros(3)), observed(torch.ones(3)))
    (path,) = (tmp_path / "b" / "tensors").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    slot = slot_of(again(tmp_path).result)
    assert slot.elements is None
    assert "other bytes than its name says" in slot.elements_why


def test_other_shapes_have_no_figures_and_runs_without_tensors_are_as_before(tmp_path: Path) -> None:
    found = both(tmp_path, observed(torch.zeros(3)), observed(torch.zeros(1, 3)))
    slot = slot_of(found.result)
    assert (slot.difference_class, slot.elements) == (DifferenceClass.SHAPE, None)
    assert "shapes differ" in slot.elements_why
    keep(tmp_path / "plain", observed(torch.zeros(3)))
    with open_run(tmp_path / "a") as a, open_run(tmp_path / "plain") as plain:
        assert compare(a, plain).result.first_difference is None


def test_unlike_semantics_are_refused_though_both_are_kept(tmp_path: Path) -> None:
    """A-11: logits [1, 0] at T = 0.6, before and after the temperature."""
    raw, tempered = torch.tensor([-0.313, -1.313]), torch.tensor([-0.173, -1.840])
    found = both(tmp_path, observed(raw, "raw_logprobs"), observed(tempered, "after_temperature"))
    assert found.result.first_difference is None
    assert found.result.counts.incomparable == 1
    assert all(slot.figures is None for row in iterate(found.rows) for slot in row.slots)


def test_a_golden_call_counts_as_kept(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 3)
    for name in "ab":
        keep(tmp_path / name, lambda: model(torch.ones(1, 2)).sum().backward(), golden=("",))
        with torch.no_grad():
            model.bias.add_(1)
    found = again(tmp_path)
    figures = {slot.name: slot.figures for row in iterate(found.rows) for slot in row.slots if slot.figures}
    assert {name: of.num_mismatches for name, of in figures.items()} == {"bias": 3, "out": 3}
    assert np.isclose(figures["out"].max_absolute or 0, 1.0)
