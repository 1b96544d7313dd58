"""What a comparison of inference runs needs beside the core."""

from importlib.util import find_spec

from paritrace.errors import HostError


def require_scipy() -> None:
    """Raises HostError (Refused), `missing_extra`, where SciPy is not installed."""
    if find_spec("scipy") is None:
        raise HostError(
            "intervals over runs need SciPy, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[infer]'",
        )
