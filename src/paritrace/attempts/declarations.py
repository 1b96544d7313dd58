"""What a person declared in a manifest, so that importing again keeps it (AT-14, AT-16): pure."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.manifest import Look, Manifest, Primary


class Declared(Struct, frozen=True):
    """The parts of a manifest that no tool writes: the primary analysis, ranges of scores, looks by hand."""

    primary: Primary | None = None
    score_ranges: dict[str, tuple[float, float]] = {}
    looks: tuple[Look, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the keys under which something was declared."""
        there = {"primary": self.primary, "score_ranges": self.score_ranges, "looks": self.looks}
        return tuple(name for name, value in there.items() if value)


def declared_in(data: bytes) -> Declared | None:
    """Return what the manifest in `data` declares, None where it is no manifest that can be read."""
    try:
        return msgspec.json.decode(data, type=Declared)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def with_declared(manifest: Manifest, declared: Declared) -> Manifest:
    """Return an imported manifest with what was declared before."""
    return replace(manifest, primary=declared.primary, score_ranges=declared.score_ranges, looks=declared.looks)
