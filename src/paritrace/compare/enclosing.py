"""Which module call a recorded call belongs to: the innermost one around it, and which of its step it is (CP-26)."""

from msgspec import Struct

from paritrace.compare.load import Recorded
from paritrace.evidence.calls import Flag, Level, Phase, Scope


class Enclosing(Struct, frozen=True):
    """`number` counts the forward calls of the module in the step from 0, as golden calls are counted (CA-9).

    `itself`: the recorded call is the module's own.
    """

    module: str
    cls: str
    step: int
    number: int
    itself: bool
    function: str


def enclosing(recorded: Recorded, record_id: int, /, *, outer: bool = False) -> Enclosing | None:
    """Returns the innermost module call around a call; None where no module was entered, or there is no such call.

    A call of the backward belongs to the module whose forward made its autograd node. With `outer`, a module's own call
    belongs to the module around it, where there is one.
    """
    by_id = {call.id: call for call in recorded.calls}
    call = by_id.get(record_id)
    if call is None:
        return None
    forward = by_id.get(call.link, call) if call.link >= 0 else call
    scope = recorded.scopes.get(forward.scope)
    if scope is None:
        return None
    function = recorded.functions[call.function]
    itself = function.level is Level.MODULE and function.name == scope.cls
    if outer and itself and scope.parent in recorded.scopes:
        scope, itself = recorded.scopes[scope.parent], False
    return Enclosing(
        module=scope.module,
        cls=scope.cls,
        step=recorded.contexts[call.context].step,
        number=_number(recorded, scope, step=recorded.contexts[forward.context].step),
        itself=itself,
        function=function.name,
    )


def _number(recorded: Recorded, wanted: Scope, *, step: int) -> int:
    """Counts the entries of the module before this one in the step, whatever level they were recorded at."""
    entered: dict[int, None] = {}
    for call in recorded.calls:
        context = recorded.contexts[call.context]
        if context.step != step or context.phase is not Phase.FORWARD or call.flags & Flag.RECOMPUTE:
            continue
        found = _entry(recorded, call.scope, wanted.module)
        if found is not None:
            entered.setdefault(found)
    return list(entered).index(wanted.id) if wanted.id in entered else 0


def _entry(recorded: Recorded, scope: int, module: str) -> int | None:
    """The scope that is the entry of `module` around this one."""
    while scope:
        found = recorded.scopes[scope]
        if found.module == module:
            return scope
        scope = found.parent
    return None
