"""Which module call a recorded call belongs to: the innermost one around it, and which of its step it is (CP-26)."""

from msgspec import Struct

from paritrace.compare.load import Recorded
from paritrace.evidence.calls import Call, Flag, Level, Phase


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


def enclosing(recorded: Recorded, record_id: int, /) -> Enclosing | None:
    """Returns the innermost module call around a call; None where no module was entered, or there is no such call.

    A call of the backward belongs to the module whose forward made its autograd node.
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
    return Enclosing(
        module=scope.module,
        cls=scope.cls,
        step=recorded.contexts[call.context].step,
        number=_number(recorded, forward),
        itself=function.level is Level.MODULE and function.name == scope.cls,
        function=function.name,
    )


def _number(recorded: Recorded, wanted: Call) -> int:
    """Counts the entries of the module before this one in the step, whatever level they were recorded at."""
    module = recorded.scopes[wanted.scope].module
    step = recorded.contexts[wanted.context].step
    entered: dict[int, None] = {}
    for call in recorded.calls:
        context = recorded.contexts[call.context]
        if context.step != step or context.phase is not Phase.FORWARD or call.flags & Flag.RECOMPUTE:
            continue
        found = _entry(recorded, call.scope, module)
        if found is not None:
            entered.setdefault(found)
    return list(entered).index(wanted.scope) if wanted.scope in entered else 0


def _entry(recorded: Recorded, scope: int, module: str) -> int | None:
    """The scope that is the entry of `module` around this one."""
    while scope:
        found = recorded.scopes[scope]
        if found.module == module:
            return scope
        scope = found.parent
    return None
