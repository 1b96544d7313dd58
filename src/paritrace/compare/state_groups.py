"""The groups of the state inventory that hold tensors, as `StateNames.group` spells them (CA-29)."""

PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE = "parameter", "buffer", "gradient", "optimizer_state"
WEIGHTS = frozenset({PARAMETER, BUFFER})
TENSORS = frozenset({PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE})
