"""Medians of draws, and of those that are left when one is left out, at many places at once: pure."""

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]
"""Places x draws x figures; of medians places x figures."""


def left_out(table: Table) -> Table:
    """The medians of the draws without each of them in turn: draws x places x figures.

    Sorted once: leaving one out moves the middle by at most one place, whichever it is.
    """
    num_draws = table.shape[1]
    order = np.sort(table, axis=1)
    ranks = np.argsort(np.argsort(table, axis=1, kind="stable"), axis=1, kind="stable")
    middle = [(num_draws - 2) // 2, (num_draws - 1) // 2]  # the two middle places of those that are left
    pairs = [np.where(ranks <= at, order[:, at + 1, None, :], order[:, at, None, :]) for at in middle]
    found: Table = (0.5 * (pairs[0] + pairs[1])).transpose(1, 0, 2)
    return found
