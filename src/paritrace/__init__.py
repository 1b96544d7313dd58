"""paritrace: where two machine-learning runs first part, and what could not be checked."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paritrace.capture.api import context as context
    from paritrace.capture.api import observe as observe
    from paritrace.capture.api import rows as rows
    from paritrace.capture.api import step as step
    from paritrace.capture.api import trace as trace
    from paritrace.capture.api import trigger as trigger
    from paritrace.capture.callbacks import lightning_callback as lightning_callback
    from paritrace.capture.callbacks import trainer_callback as trainer_callback
    from paritrace.capture.token_rows import Rows as Rows
    from paritrace.evidence.fingerprints import fingerprint as fingerprint
    from paritrace.reports.opened import open as open  # noqa: A004  the public name (SU-14)
    from paritrace.runs.adapters import InvocationError as InvocationError
    from paritrace.runs.adapters import ProcessAdapter as ProcessAdapter
    from paritrace.runs.adapters import PythonAdapter as PythonAdapter
    from paritrace.runs.host import Host as Host
    from paritrace.runs.recorder import Recorder as Recorder
    from paritrace.session.api import Session as Session
    from paritrace.session.looping import steps as steps

__version__ = "0.1.0"

_PUBLIC = {
    "trace": "paritrace.capture.api",
    "step": "paritrace.capture.api",
    "steps": "paritrace.session.looping",
    "trigger": "paritrace.capture.api",
    "context": "paritrace.capture.api",
    "rows": "paritrace.capture.api",
    "observe": "paritrace.capture.api",
    "trainer_callback": "paritrace.capture.callbacks",
    "lightning_callback": "paritrace.capture.callbacks",
    "fingerprint": "paritrace.evidence.fingerprints",
    "Rows": "paritrace.capture.token_rows",
    "open": "paritrace.reports.opened",
    "Host": "paritrace.runs.host",
    "InvocationError": "paritrace.runs.adapters",
    "ProcessAdapter": "paritrace.runs.adapters",
    "PythonAdapter": "paritrace.runs.adapters",
    "Recorder": "paritrace.runs.recorder",
    "Session": "paritrace.session.api",
}
__all__ = [
    "Host",
    "InvocationError",
    "ProcessAdapter",
    "PythonAdapter",
    "Recorder",
    "Rows",
    "Session",
    "__version__",
    "context",
    "fingerprint",
    "lightning_callback",
    "observe",
    "open",
    "rows",
    "step",
    "steps",
    "trace",
    "trainer_callback",
    "trigger",
]


def __getattr__(name: str) -> object:
    """Public names are imported when they are first used, so that `import paritrace` costs nothing (PF-19)."""
    if name in _PUBLIC:
        return vars(import_module(_PUBLIC[name]))[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
