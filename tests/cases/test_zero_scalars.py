"""Scalars 0.0 and -0.0 of one run keep their own texts: as keys they are equal (CA-4)."""

from torch import zeros

from paritrace.capture.definitions import Definitions
from paritrace.capture.pytorch.scalars import ScalarTexts
from paritrace.evidence import calls


def test_zeros_of_either_sign_are_two_texts() -> None:
    written: list[object] = []
    scalars = ScalarTexts(Definitions(written.append))
    tensor = zeros(1)
    ids = [scalars.of((tensor, value), {}) for value in (0.0, -0.0, 0, False, float("nan"), 0.0)]
    texts = {item.id: item.values for item in written if isinstance(item, calls.Scalars)}
    assert [texts[found]["1"] for found in ids] == ["0.0", "-0.0", "0", "False", "nan", "0.0"]
