"""What the categories of a profiler's trace mean; the closed lists, and what stands outside them (IN-10)."""

from enum import Enum

from paritrace.inference.vocabulary import ActivityKind


class Group(Enum):
    """What is done with events of a category."""

    DEVICE = "device"  # work on a GPU
    LAUNCH = "launch"  # calls of the runtime or driver, by whose ids device work is known
    RANGE = "range"  # what somebody named
    DEVICE_RANGE = "device_range"  # the same, as the device saw it
    HOST = "host"  # other work of host threads
    BESIDE = "beside"  # of the profiler itself, or counters
    OTHER_DEVICE = "other_device"  # work of accelerators that is not read: counted, never zero
    UNKNOWN = "unknown"


DEVICE_KINDS = {
    "kernel": ActivityKind.KERNEL,
    "gpu_memcpy": ActivityKind.MEMCPY,
    "gpu_memset": ActivityKind.MEMSET,
    "memcpy": ActivityKind.MEMCPY,
    "memset": ActivityKind.MEMSET,
    "graph_trace": ActivityKind.GRAPH_LEVEL,
    "gpu_graph_trace": ActivityKind.GRAPH_LEVEL,
    "device_graph_trace": ActivityKind.GRAPH_LEVEL,
}
OPERATORS = frozenset({"cpu_op", "operator"})
LAUNCH_KINDS = {
    "cuda_runtime": ActivityKind.RUNTIME,
    "runtime": ActivityKind.RUNTIME,  # of older profilers
    "hip_runtime": ActivityKind.RUNTIME,
    "cuda_driver": ActivityKind.DRIVER,
    "driver": ActivityKind.DRIVER,
}
_GROUPS = {
    **dict.fromkeys(DEVICE_KINDS, Group.DEVICE),
    **dict.fromkeys(LAUNCH_KINDS, Group.LAUNCH),
    "user_annotation": Group.RANGE,
    "gpu_user_annotation": Group.DEVICE_RANGE,
    **dict.fromkeys((*OPERATORS, "python_function"), Group.HOST),
    **dict.fromkeys(
        (
            "",
            "ac2g",
            "async_cpu_to_gpu",
            "async_gpu",
            "collective_comm",
            "cpu_instant_event",
            "cuda_event",
            "cuda_profiler_range",
            "cuda_sync",
            "external_correlation",
            "fwdbwd",
            "fwd_bwd",
            "gpu_pm_counter",
            "overhead",
            "trace",
        ),
        Group.BESIDE,
    ),
}
_ACCELERATORS = ("glow", "hpu", "mtia", "npu", "musa", "privateuse", "tpu", "xla", "xpu")


def group_of(category: str, /) -> Group:
    """Return what is done with events of a category, whatever the case it is spelled in."""
    plain = category.lower()
    found = _GROUPS.get(plain)
    if found is not None:
        return found
    return Group.OTHER_DEVICE if plain.startswith(_ACCELERATORS) else Group.UNKNOWN
