"""Workers of this machine: results in order, errors as they were raised, a lost worker named, nobody left behind."""

import math
import os
from functools import partial

import pytest

from paritrace.errors import HostError, InternalError, Outcome, RequestError
from paritrace.evidence.ids import checked_id
from paritrace.process.pool import LocalPool, OwnProcess

MINE = 0  # a process asks for its own group; each worker leads one


def test_results_come_in_the_order_of_the_pieces() -> None:
    wanted = [math.factorial(number) for number in range(12)]
    assert list(LocalPool(2).results(math.factorial, range(12))) == wanted
    assert list(OwnProcess().results(math.factorial, range(12))) == wanted


def test_no_pieces_need_no_workers() -> None:
    assert list(LocalPool(2).results(math.factorial, [])) == []


def test_a_worker_that_dies_is_named() -> None:
    with pytest.raises(HostError, match=r"piece 1, exit status 3") as caught:
        list(LocalPool(1).results(os._exit, [3]))
    assert (caught.value.code, caught.value.outcome) == ("worker_died", Outcome.FAILED)


def test_an_error_of_ours_comes_as_it_was_raised() -> None:
    with pytest.raises(RequestError) as caught:
        list(LocalPool(1).results(partial(checked_id, what="name"), ["fine", "../not"]))
    assert (caught.value.code, caught.value.outcome) == ("bad_id", Outcome.REFUSED)


def test_any_other_error_comes_with_its_traceback() -> None:
    with pytest.raises(InternalError, match=r"(?s)Traceback.*ValueError: invalid literal"):
        list(LocalPool(1).results(int, ["no number"]))


def test_who_leaves_early_leaves_no_worker_behind() -> None:
    """An interrupt of whoever reads the results leaves the iteration just so."""
    groups = LocalPool(2).results(os.getpgid, [MINE] * 8)
    workers = {next(groups), next(groups)}
    assert os.getpgid(MINE) not in workers
    groups.close()  # type: ignore[attr-defined]  # a generator, and promised as an iterator
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
