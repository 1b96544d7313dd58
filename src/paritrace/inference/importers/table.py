"""The readers of sources by kind and name: one line each (IN-10 to IN-15)."""

from paritrace.inference.importers import (
    client_aiperf,
    client_bench,
    client_inference_perf,
    client_sse,
    metrics,
    spans,
    vllm_log,
)
from paritrace.inference.importers.kineto import KINETO
from paritrace.inference.importers.nsys import NSYS
from paritrace.inference.importers.stormlog import STORMLOG
from paritrace.inference.importing import Reader

READERS: tuple[Reader, ...] = (
    KINETO,
    vllm_log.READER,
    metrics.READER,
    spans.READER,
    client_sse.READER,
    client_bench.READER,
    client_aiperf.READER,
    client_inference_perf.READER,
    NSYS,
    STORMLOG,
)
