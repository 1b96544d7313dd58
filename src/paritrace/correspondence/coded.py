"""A column of texts of which few are unlike and most are empty: a number for each record (CP-17)."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


class CodedTexts(Sequence[str]):
    """Texts as `codes`, the place of each in `texts`; `texts[0]` is ""."""

    def __init__(self, texts: Sequence[str], which: Numbers) -> None:
        self.texts = [""]
        self._known = {"": 0}
        self.codes: Numbers = np.array([self._code(text) for text in texts], np.int32)[which]
        self._single = self.codes.data

    def _code(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.texts)
            self.texts.append(text)
        return self._known[text]

    def __setitem__(self, i: int, text: str) -> None:
        self._single[i] = self._code(text)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self.texts[code] for code in self._single[i]]
        return self.texts[self._single[i]]

    def __len__(self) -> int:
        return len(self._single)
