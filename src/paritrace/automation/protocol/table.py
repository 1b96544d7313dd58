"""The one table of actions: a module of an action is imported when the action is asked for."""

from importlib import import_module

from paritrace.automation.protocol.records import Action

_PACKAGE = "paritrace.automation.protocol.actions"
ACTIONS = {  # name on the command line: module whose ACTION it is
    "capabilities": f"{_PACKAGE}.capabilities",
    "discover": f"{_PACKAGE}.discover",
    "prepare": f"{_PACKAGE}.prepare",
    "trace": f"{_PACKAGE}.trace",
    "compare": f"{_PACKAGE}.compare",
    "align": f"{_PACKAGE}.align",
    "check": f"{_PACKAGE}.check",
    "verify": f"{_PACKAGE}.verify",
    "explain": f"{_PACKAGE}.explain",
    "why-not": f"{_PACKAGE}.why_not",
    "narrow": f"{_PACKAGE}.narrow",
    "attempts-import": f"{_PACKAGE}.attempts_import",
    "attempts-summarize": f"{_PACKAGE}.attempts_summarize",
    "attempts-compare": f"{_PACKAGE}.attempts_compare",
    "attempts-explain": f"{_PACKAGE}.attempts_explain",
    "infer-show": f"{_PACKAGE}.infer_show",
    "infer-account": f"{_PACKAGE}.infer_account",
    "infer-compare": f"{_PACKAGE}.infer_compare",
    "session-status": f"{_PACKAGE}.session_status",
    "session-command": f"{_PACKAGE}.session_command",
}


def load_action(name: str) -> Action:
    """Import one action of the table."""
    action: Action = vars(import_module(ACTIONS[name]))["ACTION"]
    return action


def all_actions() -> tuple[Action, ...]:
    """Import every action, in the order of the table."""
    return tuple(load_action(name) for name in ACTIONS)
