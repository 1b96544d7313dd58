"""When a figure of a training step is an outlier: a rule of the figures before it, alike on every machine (CA-36)."""

from __future__ import annotations

from collections import deque
from statistics import median

WINDOW = 50  # steps: of fewer, the deviation is itself so uncertain that outliers are found where there are none
FEWEST = 20  # below that a median absolute deviation says little, and nothing is called an outlier
FACTOR = 10.0  # deviations; gradient norms have heavy tails, and a ring that is written too often keeps nothing
NORMAL = 1.4826  # turns a median absolute deviation into a standard deviation, for normal figures
LEAST_SHARE = 0.01  # of the median: figures that hardly vary would else have outliers in their last digits
RULES = (
    f"above median + {FACTOR:g} x max({NORMAL} x MAD, {LEAST_SHARE:g} x |median|) of the last {WINDOW} finite figures, "
    f"at least {FEWEST} of them"
)


class Outliers:
    """Judges the figures of one name, step by step. Only large ones: a loss that falls is what training is for."""

    def __init__(self) -> None:
        self._before: deque[float] = deque(maxlen=WINDOW)

    def judge(self, value: float) -> float | None:
        """Take the next finite figure; the threshold if it lies above, else None. Outliers join the window, too."""
        threshold = self._threshold()
        self._before.append(value)
        return threshold if threshold is not None and value > threshold else None

    def _threshold(self) -> float | None:
        if len(self._before) < FEWEST:
            return None
        middle = median(self._before)
        deviation = NORMAL * median(abs(value - middle) for value in self._before)
        return middle + FACTOR * max(deviation, LEAST_SHARE * abs(middle))
