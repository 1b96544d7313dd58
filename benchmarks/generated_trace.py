"""A trace of the torch profiler as large as is asked for: synthetic, its events spelled as Kineto spells them."""

import random
from collections.abc import Iterator
from pathlib import Path

KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>(int)"
)
HEAD = '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "generated, no device"}\n  ],\n'
COUNTS = "Record counts: Out-of-range = 0, Blocklisted runtime = 0, CUPTI stopped early? = 0"
TAIL = f'\n  ],\n  "INFO": ["INFO:generated] {COUNTS}"],\n  "baseTimeNanoseconds": 1712000000000000000\n}}\n'
LAUNCHES_IN_STEP = 500
_AT_ONCE = 500
HERE = '"pid": 2910249, "tid": 2910249'


def launches(number: int, *, draws: random.Random) -> Iterator[str]:
    """Yields the events of one launch: the operator, the call, the kernel, and the arrow between them."""
    start = 4_458_676_000_000 + 40 * number + draws.randrange(1000) / 1000
    kernel = start + 12 + draws.randrange(4000) / 1000
    took = draws.randrange(1000, 20_000) / 1000
    name = KERNEL.replace("add", ("add", "mul", "sub", "div")[number % 4])
    yield (
        f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "aten::add", {HERE},\n    "ts": {start:.3f}, '
        f'"dur": 9.125,\n    "args": {{\n      "External id": {number},"Record function id": 0, "Ev Idx": {number}, '
        f'"Input Dims": [[32, 1024], [32, 1024], []], "Input type": ["float", "float", "Scalar"]\n    }}\n  }}'
    )
    yield (
        f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {HERE},\n    '
        f'"ts": {start + 2:.3f}, "dur": 5.001,\n    "args": {{\n      "External id": {number}, "cbid": 211, '
        f'"correlation": {number + 1}\n    }}\n  }}'
    )
    yield (
        f'  {{\n    "ph": "s", "id": {number + 1}, {HERE}, "ts": {start + 2:.3f},\n    '
        f'"cat": "ac2g", "name": "ac2g"\n  }}'
    )
    yield (
        f'  {{\n    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7,\n    "ts": {kernel:.3f}, '
        f'"dur": {took:.3f},\n    "args": {{\n      "External id": {number}, "queued": 0, "device": 0, '
        f'"context": 1,\n      '
        f'"stream": 7, "correlation": {number + 1},\n      "registers per thread": 40, "shared memory": 400,\n      '
        f'"blocks per SM": 4.740741,\n      "warps per SM": 75.851852,\n      "grid": [512, 1, 1],\n      '
        f'"block": [512, 1, 1],\n      "est. achieved occupancy %": 75\n    }}\n  }}'
    )


def step(number: int) -> str:
    """Returns a step of the profiler around the launches that follow."""
    start = 4_458_676_000_000 + 40 * number * LAUNCHES_IN_STEP - 1
    return (
        f'  {{\n    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{number}", {HERE},\n    '
        f'"ts": {start:.3f}, "dur": {40 * LAUNCHES_IN_STEP + 0.5:.3f},\n    "args": {{}}\n  }}'
    )


def write(path: Path, *, num_bytes: int, seed: int = 0) -> int:
    """Writes a trace of at least so many bytes; returns how many kernels it holds."""
    draws, number, written = random.Random(seed), 0, len(HEAD)
    with path.open("w") as file:
        file.write(HEAD + '  "traceEvents": [\n')
        while written < num_bytes:
            events = [] if number % LAUNCHES_IN_STEP else [step(number // LAUNCHES_IN_STEP)]
            for place in range(number, number + _AT_ONCE):
                events += launches(place, draws=draws)
            text = (",\n" if number else "") + ",\n".join(events)
            file.write(text)
            number += _AT_ONCE
            written += len(text)
        file.write(TAIL)
    return number
