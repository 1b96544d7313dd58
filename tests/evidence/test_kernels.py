"""The compiled kernels give NumPy's numbers, bit for bit, and never stand in the way (CA-12, P6)."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from paritrace.evidence import kernels, mixing, statistics
from paritrace.evidence.dtypes import Component
from paritrace.evidence.statistics import FLOATS, LANES
from paritrace.evidence.summaries import elements_and_squares, summarise

Bytes = npt.NDArray[np.uint8]
SIZES = (1, LANES - 1, LANES, 4 * LANES, 4 * LANES + 1, 1000, 4095, 4096, 4097, 50_001)

needs_numba = pytest.mark.skipif(not kernels.available(), reason="numba, the extra `fast`, is not installed")


@pytest.fixture
def paid_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if NumPy had already handled enough."""
    monkeypatch.setattr(kernels, "_ledger", kernels._Ledger(handled=kernels.PAYS_OFF_AFTER))
    yield
    assert not kernels._ledger.broken


def samples_of(component: Component, size: int) -> Iterator[Bytes]:
    """Random bits (with NaN, infinities and subnormals), ordinary numbers with zeros, and one infinity among them."""
    layout = FLOATS[component]
    random = np.random.default_rng(size)
    yield random.integers(0, 256, size * layout.itemsize, dtype=np.uint8)
    numbers = random.standard_normal(size) * 10.0 ** random.integers(-3, 3)
    numbers[random.random(size) < 0.1] = 0
    if component is Component.BFLOAT16:
        bits = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        bits = numbers.astype(layout.bits.replace("u", "f")).view(layout.bits)
    yield bits.view(np.uint8)
    bits[size // 2] = layout.infinity
    yield bits.view(np.uint8)


def assert_same(data: Bytes, component: Component) -> None:
    fused = kernels.summary(data, component)
    state = kernels.state(data, component)
    assert fused is not None
    assert state is not None
    with np.errstate(all="ignore"):
        expected = statistics.gather(data, component)
    expected_sum = mixing.sum_of_mixes(data, FLOATS[component].itemsize)
    assert fused[0] == state[0] == kernels.element_sum(data, FLOATS[component].itemsize) == expected_sum
    assert statistics.finished(fused[1]) == statistics.finished(expected)
    assert np.array_equal(fused[1].lanes, expected.lanes)
    squares = statistics.sum_of_squares(data, dtype="", component=component)
    assert np.array_equal(statistics.exact_sum(state[1]), squares, equal_nan=True)


@needs_numba
@pytest.mark.slow
@pytest.mark.usefixtures("paid_off")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("component", FLOATS)
def test_kernels_equal_numpy(component: Component, size: int) -> None:
    for data in samples_of(component, size):
        assert_same(data, component)


@needs_numba
@pytest.mark.slow
@pytest.mark.usefixtures("paid_off")
@pytest.mark.parametrize("component", [Component.BFLOAT16, Component.FLOAT16])
def test_kernels_equal_numpy_for_every_number_of_16_bits(component: Component) -> None:
    assert_same(np.arange(65536, dtype=np.uint16).view(np.uint8), component)


@needs_numba
@pytest.mark.slow
@pytest.mark.usefixtures("paid_off")
def test_a_summary_is_the_same_with_and_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(9).standard_normal(5000, dtype=np.float32).view(np.uint8)
    compiled = summarise(data, dtype="float32", num_elements=5000, regions=4), elements_and_squares(data, "float32")
    monkeypatch.setattr(kernels, "_ledger", kernels._Ledger(handled=-(1 << 40)))
    plain = summarise(data, dtype="float32", num_elements=5000, regions=4), elements_and_squares(data, "float32")
    assert compiled == plain


def test_numpy_works_until_the_kernels_pay_off(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = kernels._Ledger()
    monkeypatch.setattr(kernels, "_ledger", ledger)
    data = np.zeros(4000, dtype=np.uint8)
    assert kernels.summary(data, Component.FLOAT32) is None
    assert kernels.element_sum(data, 8) is None
    assert ledger.handled == 2 * kernels.CALL_WORTH + 1000 + 500


def test_other_dtypes_and_memory_stay_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_ledger", kernels._Ledger(handled=kernels.PAYS_OFF_AFTER))
    data = np.zeros(400, dtype=np.uint8)
    assert kernels.summary(data, Component.INT64) is None
    assert kernels.element_sum(data, 16) is None
    unaligned = np.zeros(401, dtype=np.uint8)[1:]
    assert kernels.state(unaligned, Component.FLOAT32) is None
    data.setflags(write=False)
    assert kernels.summary(data, Component.FLOAT32) is None


def test_kernels_that_fail_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: whatever goes wrong in the compiler, the capture goes on with the same numbers."""
    ledger = kernels._Ledger(handled=kernels.PAYS_OFF_AFTER)
    monkeypatch.setattr(kernels, "_ledger", ledger)
    monkeypatch.setattr(kernels, "_tables", dict)
    data = np.random.default_rng(0).standard_normal(100).view(np.uint8)
    summary = summarise(data, dtype="float64", num_elements=100, regions=4)
    assert ledger.broken
    assert summary.elements == f"{mixing.sum_of_mixes(data, 8):016x}"


def test_neither_fingerprints_nor_small_tensors_load_numba() -> None:
    program = (
        "import sys; from paritrace.evidence.summaries import summarise;"
        "summarise(bytes(4000), dtype='float32', num_elements=1000, regions=4);"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
