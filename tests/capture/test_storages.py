"""The write log: what may be reused, what is void, what was never written (CA-27, CA-32, CA-35)."""

import gc
from collections.abc import Callable, Iterator

import pytest
import torch
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.storages import UNINITIALISED, WriteLog
from paritrace.evidence.calls import How
from paritrace.evidence.gaps import Gap

UNKNOWN = 99


class Watched:
    """A write log with its kinds, spoken to as the dispatch mode does."""

    def __init__(self, *, check_reuse: bool = True) -> None:
        self.kinds = Kinds(lambda _: None)
        self.log = WriteLog(unknown=UNKNOWN, check_reuse=check_reuse)

    def read(self, tensor: torch.Tensor) -> tuple[object, How, object]:
        return self.log.read(tensor, self.kinds.of(tensor))

    def wrote(self, tensor: torch.Tensor, *, partly: bool = False) -> None:
        self.log.written(tensor, self.kinds.of(tensor), partly=partly)

    def made(
        self, tensor: torch.Tensor, by: int, *, wrote: bool = False, uninitialised: bool = False
    ) -> tuple[object, How]:
        kind = self.kinds.of(tensor)
        return self.log.produced(tensor, kind, by=(by, 0), wrote=wrote, uninitialised=uninitialised)

    def in_place(self, tensor: torch.Tensor, by: int, *, partly: bool = False) -> tuple[object, How]:
        self.wrote(tensor, partly=partly)
        return self.made(tensor, by, wrote=True)


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.log.forget()


def bits(tensor: torch.Tensor) -> str:
    return xxhash.xxh3_64_hexdigest(tensor.contiguous().numpy().tobytes())


def test_the_second_look_is_inherited(watched: Watched) -> None:
    tensor = torch.arange(6.0)
    assert watched.read(tensor) == (bits(tensor), How.READ, UNKNOWN)
    assert watched.read(tensor) == (bits(tensor), How.INHERITED, UNKNOWN)
    assert (watched.log.reused, watched.log.stale) == (1, 0)


def test_a_write_voids_what_was_known(watched: Watched) -> None:
    tensor = torch.arange(6.0)
    watched.read(tensor)
    tensor.add_(1)
    assert watched.in_place(tensor, 5) == (bits(tensor), How.READ)
    assert watched.read(tensor) == (bits(tensor), How.INHERITED, (5, 0))
    assert watched.log.stale == 0


def test_a_write_through_a_view_voids_every_view_of_the_storage(watched: Watched) -> None:
    tensor = torch.arange(6.0)
    half = tensor[3:]
    watched.read(tensor)
    watched.read(half)
    tensor[:2].zero_()
    watched.in_place(tensor[:2], 4)
    assert watched.read(tensor)[1] is How.READ
    assert watched.read(half)[1] is How.READ
    assert watched.read(tensor) == (bits(tensor), How.INHERITED, (4, 0))


def test_a_write_that_nobody_reported_is_found_by_the_check(watched: Watched) -> None:
    tensor = torch.arange(6.0)
    watched.read(tensor)
    tensor.add_(1)
    watched.read(tensor)
    assert (watched.log.reused, watched.log.stale) == (1, 1)


def test_a_view_with_the_same_bytes_inherits_and_another_does_not(watched: Watched) -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    watched.read(tensor)
    assert watched.read(tensor.view(6))[1] is How.INHERITED
    assert watched.read(tensor.t())[:2] == (bits(tensor), How.INHERITED)  # the same bytes in the same order of memory
    assert watched.read(tensor[:, :2])[1] is How.READ
    assert watched.read(tensor[1:])[1] is How.READ
    assert watched.log.stale == 0


def test_a_producer_is_known_until_something_writes(watched: Watched) -> None:
    tensor = torch.arange(4.0)
    watched.made(tensor, 1)
    view = tensor.view(2, 2)
    watched.made(view, 2)
    assert watched.read(view)[2] == (2, 0)
    assert watched.read(tensor)[2] == (1, 0)
    view.zero_()
    watched.in_place(view, 3)
    assert watched.read(tensor)[2] == watched.read(view)[2] == (3, 0)


def test_a_named_tensor_has_its_name_as_source_until_it_is_written(watched: Watched) -> None:
    weight = torch.arange(4.0)
    watched.log.name(weight, watched.kinds.of(weight), 12)
    assert watched.read(weight)[2] == 12
    assert watched.log.source(weight, watched.kinds.of(weight)) == 12
    watched.in_place(weight, 3)
    assert watched.read(weight)[2] == (3, 0)
    watched.log.forget()
    assert watched.read(weight) == (bits(weight), How.READ, UNKNOWN)


def test_a_buffer_that_nothing_wrote_is_uninitialised(watched: Watched) -> None:
    buffer = torch.zeros(8)
    assert watched.made(buffer, 1, uninitialised=True) == (UNINITIALISED, How.READ)
    assert watched.read(buffer)[0] == UNINITIALISED
    assert watched.read(buffer[2:4])[0] == UNINITIALISED


def test_a_buffer_that_is_filled_part_by_part(watched: Watched) -> None:
    buffer = torch.zeros(4, 4)
    watched.made(buffer, 1, uninitialised=True)
    for row in range(3):
        watched.in_place(buffer[row], 2 + row)
        assert watched.read(buffer[row])[0] == bits(buffer[row])
        assert watched.read(buffer)[0] == UNINITIALISED
        assert watched.read(buffer[: row + 1])[0] == bits(buffer[: row + 1])
    watched.in_place(buffer[3], 9)
    assert watched.read(buffer)[0] == bits(buffer)


def test_columns_are_parts_too(watched: Watched) -> None:
    buffer = torch.zeros(3, 4)
    watched.made(buffer, 1, uninitialised=True)
    watched.in_place(buffer[:, 1], 2)
    assert watched.read(buffer[:, 1])[0] == bits(buffer[:, 1])
    assert watched.read(buffer[:, :2])[0] == UNINITIALISED
    assert watched.read(buffer[1])[0] == UNINITIALISED
    watched.in_place(buffer[:, ::2], 3)
    assert isinstance(watched.read(buffer[:, :3])[0], str)
    assert isinstance(watched.read(buffer)[0], Gap)


def test_what_a_partial_write_leaves_out_stays_uninitialised(watched: Watched) -> None:
    """`index_put_` into an empty buffer: the other elements are whatever lay there."""
    buffer = torch.zeros(8)
    watched.made(buffer, 1, uninitialised=True)
    assert watched.in_place(buffer, 2, partly=True)[0] == UNINITIALISED
    assert watched.in_place(buffer, 3)[0] == bits(buffer)
    assert watched.in_place(buffer, 4, partly=True)[0] == bits(buffer), "it holds values of its own by now"


def test_an_empty_buffer_of_no_elements_is_no_gap(watched: Watched) -> None:
    assert isinstance(watched.made(torch.empty(0, 3), 1, uninitialised=True)[0], str)


def test_a_freed_storages_address_never_speaks_for_another(watched: Watched) -> None:
    """Allocators hand an address out again at once: the log must not take the new tensor for the old one."""
    addresses = set[int]()
    for number in range(200):
        tensor = torch.full((1024,), float(number))
        addresses.add(tensor.data_ptr())
        expected = bits(tensor)
        assert watched.read(tensor) == (expected, How.READ, UNKNOWN), number
        del tensor
    assert len(addresses) < 200, "the case needs an address that is handed out twice"
    assert watched.log.reused == 0


def test_no_tensor_is_kept_alive(watched: Watched) -> None:
    import weakref

    tensor = torch.zeros(1 << 20)
    alive = weakref.ref(tensor)
    storage = tensor.untyped_storage()
    watched.made(tensor, 1)
    watched.read(tensor)
    data = weakref.ref(storage)
    del tensor, storage
    gc.collect()
    assert alive() is None
    assert data() is None


def test_a_resized_storage_is_still_what_it_was(watched: Watched) -> None:
    tensor = torch.ones(4)
    watched.read(tensor)
    tensor.untyped_storage().resize_(0)
    other = torch.ones(4)
    assert watched.read(other)[1] is How.READ


def test_a_tensor_that_was_resizable_stays_so(watched: Watched) -> None:
    tensor = torch.ones(4)
    watched.made(tensor, 1)
    watched.read(tensor)
    watched.in_place(tensor, 2)
    assert tensor.untyped_storage().resizable()


Act = Callable[[torch.Tensor], torch.Tensor]
VIEWS: dict[str, Act] = {
    "whole": lambda t: t,
    "rows": lambda t: t[1:3],
    "row": lambda t: t[2],
    "column": lambda t: t[:, 1],
    "columns": lambda t: t[:, ::2],
    "transposed": lambda t: t.t(),
    "flat": lambda t: t.view(-1),
    "expanded": lambda t: t[:1].expand(4, 4),
    "element": lambda t: t[3, 3],
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(VIEWS)), st.booleans(), st.integers(1, 5)), max_size=25), st.booleans())
def test_whatever_is_read_and_written_no_reuse_is_stale(acts: list[tuple[str, bool, int]], empty: bool) -> None:
    """Against a plain model: the bytes of a view now, and which elements were ever written."""
    watched = Watched()
    tensor = torch.zeros(4, 4)
    written = torch.full((4, 4), not empty)
    watched.made(tensor, 0, uninitialised=empty)
    for number, (name, write, value) in enumerate(acts, 1):
        view, known = VIEWS[name](tensor), VIEWS[name](written)
        if write and name != "expanded":
            view.fill_(value)
            known.fill_(True)
            watched.in_place(view, number)
        found, _, source = watched.read(view)
        if bool(known.all()):
            assert isinstance(found, str)
            assert source != UNKNOWN
        else:
            assert found == UNINITIALISED
    assert watched.log.stale == 0
    watched.log.forget()
