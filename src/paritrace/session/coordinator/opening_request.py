"""What `session start` asks for: everything a coordinator needs to know before it begins."""

from typing import Any

from msgspec import Struct, field


class Opening(Struct, frozen=True, forbid_unknown_fields=True):
    """One start of a session. `start_from`: a checkpoint's name, or `latest` (SE-37)."""

    directory: str  # absolute
    workload: str  # module:Class; empty where a launcher starts the ranks
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    ranks: int = 1
    engine: str = "local"
    bounds: dict[str, float] = field(default_factory=dict[str, float])
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    start_from: str | None = None
    autosave_every: int = 1000
    port: int = 0  # 0: any free one
    listen: str = ""  # attach: HOST:PORT where ranks of other machines dial in; empty: 127.0.0.1 alone
