"""Engines by their names: a module is imported when its engine is asked for (SE-16)."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import MappingProxyType

from paritrace.errors import RequestError
from paritrace.session.engines.addresses import address_of
from paritrace.session.engines.seam import Engine

ATTACH = "attach"
ENGINES = MappingProxyType(
    {
        "local": "paritrace.session.engines.local:LocalEngine",
        ATTACH: "paritrace.session.engines.attach:AttachEngine",
        "ray": "paritrace.session.engines.ray:RayEngine",
    }
)


def engine_of(name: str, /, *, listen: str = "") -> Callable[[], Engine]:
    """Return what makes an engine. `listen`: where ranks of other machines dial in, with `attach` alone.

    Raises:
        RequestError: Refused, `no_such_engine`, `bad_listen`.
    """
    if name not in ENGINES:
        raise RequestError(
            f"{name!r} is no engine", code="no_such_engine", fix=f"choose one of {', '.join(sorted(ENGINES))}"
        )
    module, _, attribute = ENGINES[name].partition(":")
    made: Callable[..., Engine] = vars(import_module(module))[attribute]
    if not listen:
        return made
    if name != ATTACH:
        raise RequestError(
            "--listen is for ranks that a launcher starts",
            code="bad_listen",
            fix="leave it out, or add --engine attach",
        )
    return partial(made, address=address_of(listen))
