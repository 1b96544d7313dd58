"""Names of what engines keep in a session's directory: logs and stacks of ranks by generation (SE-16)."""

from pathlib import Path


def log_name(generation: int, rank: int, /) -> str:
    """The log of a rank, standard output and error together, within the session's directory."""
    return f"logs/generation-{generation}/rank-{rank}.log"


def stacks_name(generation: int, rank: int, /) -> str:
    """Where a rank writes its stacks when it is asked for them."""
    return f"logs/generation-{generation}/rank-{rank}.stacks"


def log_path(directory: str, generation: int, rank: int, /) -> Path:
    """The log of a rank."""
    return Path(directory, log_name(generation, rank))


def stacks_path(directory: str, generation: int, rank: int, /) -> Path:
    """The stacks of a rank."""
    return Path(directory, stacks_name(generation, rank))
