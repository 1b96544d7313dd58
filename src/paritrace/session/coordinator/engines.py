"""Engines by their names: a module is imported when its engine is asked for (SE-16)."""

from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType

from paritrace.errors import RequestError
from paritrace.session.engines.seam import Engine

ENGINES = MappingProxyType(
    {
        "local": "paritrace.session.engines.local:LocalEngine",
        "attach": "paritrace.session.engines.attach:AttachEngine",
        "ray": "paritrace.session.engines.ray:RayEngine",
    }
)


def engine_of(name: str, /) -> Callable[[], Engine]:
    """Return what makes an engine.

    Raises:
        RequestError: Refused, `no_such_engine`.
    """
    if name not in ENGINES:
        raise RequestError(
            f"{name!r} is no engine", code="no_such_engine", fix=f"choose one of {', '.join(sorted(ENGINES))}"
        )
    module, _, attribute = ENGINES[name].partition(":")
    made: Callable[[], Engine] = vars(import_module(module))[attribute]
    return made
