"""Which GPU an ordinal of an Nsight Systems export is, as far as the export says it (IN-11)."""

from paritrace.inference.importers.nsys_tables import Export

_PROCESS_DEVICES, _GPUS = "TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_GPU"


class Devices:
    """UUIDs of devices by process and ordinal: a process may see GPUs under numbers of its own.

    An export without these tables or columns names none; then device work has an ordinal and no UUID.
    """

    def __init__(self, export: Export, /) -> None:
        gpus = export.find(_GPUS, needs=("id", "uuid"))
        of_gpu = {gpu: _uuid(uuid) for gpu, uuid in export.rows(gpus, ("id", "uuid"))}
        devices = export.find(_PROCESS_DEVICES, needs=("gpuId", "cudaId", "pid"))
        self._found: dict[tuple[object, object], str] = {}
        disputed: set[tuple[object, object]] = set()
        for gpu, ordinal, pid, uuid in export.rows(devices, ("gpuId", "cudaId", "pid", "uuid")):
            named = _uuid(uuid) or of_gpu.get(gpu)
            if named is not None and self._found.setdefault((pid, ordinal), named) != named:
                disputed.add((pid, ordinal))
        for key in disputed:  # one row for each of two GPUs: it names neither
            del self._found[key]

    def uuid(self, pid: int | None, ordinal: int | None, /) -> str | None:
        """Return the UUID of a device as a process numbers it; None where the export does not say it."""
        return self._found.get((pid, ordinal))


def _uuid(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
