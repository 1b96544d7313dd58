"""Where a run's folder keeps a whole tensor, by digest (CA-9). A capture reads this before its workload has NumPy."""

from pathlib import Path

from paritrace.errors import EvidenceError
from paritrace.evidence.digests import is_sha256
from paritrace.evidence.dumps import TENSOR_SUFFIX, TENSORS_FOLDER


def tensor_path(folder: Path, sha256: str) -> Path:
    """Where a run's folder keeps the tensor of a digest.

    Raises:
        EvidenceError: Refused, code `no_tensor`: no digest at all.
    """
    if not is_sha256(sha256):
        raise no_tensor(folder, sha256)
    return folder / TENSORS_FOLDER / f"{sha256}{TENSOR_SUFFIX}"


def no_tensor(folder: Path, sha256: str) -> EvidenceError:
    """The error for a digest that a run keeps no tensor of."""
    return EvidenceError(
        f"{folder} keeps no tensor {sha256[:64]!r}",
        code="no_tensor",
        fix="keep it: `paritrace run --dump PATTERN` or `--golden MODULE`",
    )
