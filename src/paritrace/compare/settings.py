"""Settings of one comparison: what is left out and what is read in another spelling (CP-6, CP-9)."""

from fnmatch import fnmatchcase

from msgspec import Struct

from paritrace.compare.folds_dims import Dims, Renaming


class Settings(Struct, frozen=True, kw_only=True):
    """`steps` is half-open; None compares all. `ignore` are shell patterns of modules, functions, files or names.

    `dims` and `renamings` are declared by the user for comparisons by fold (CP-12).
    """

    steps: tuple[int, int | None] | None = None
    ranks: tuple[int, ...] | None = None
    ignore: tuple[str, ...] = ()
    strip_prefix: tuple[str, ...] = ()
    dims: tuple[Dims, ...] = ()
    renamings: tuple[Renaming, ...] = ()

    def takes_step(self, step: int) -> bool:
        """Whether this step is compared."""
        if self.steps is None:
            return True
        first, end = self.steps
        return first <= step and (end is None or step < end)

    def ignores(self, *names: str) -> bool:
        """Whether a pattern leaves out something that bears these names."""
        return any(fnmatchcase(name, pattern) for pattern in self.ignore for name in names if name)

    def spelled(self, name: str) -> str:
        """The name of a module, parameter or buffer without the prefixes of wrappers."""
        for prefix in self.strip_prefix:
            name = "" if name + "." == prefix else name.removeprefix(prefix)
        return name

    def folded_name(self, name: str, *, side: str, rank: int) -> str:
        """The name under which a fold looks for its counterpart: stripped, then renamed by the first rule that fits."""
        stripped = self.spelled(name)
        named = (rule.renamed(stripped, side=side, rank=rank) for rule in self.renamings)
        return next((found for found in named if found is not None), stripped)

    def dims_of(self, name: str, *, side: str) -> Dims | None:
        """The first declared layout of a tensor."""
        return next((dims for dims in self.dims if dims.covers(name, side)), None)

    @property
    def declared(self) -> tuple[str, ...]:
        """`--dims` and `--map` as they were understood."""
        return tuple(f"--dims {dims}" for dims in self.dims) + tuple(f"--map {rule}" for rule in self.renamings)

    def as_used(self) -> dict[str, str]:
        """The settings as the result records them."""
        steps = "all" if self.steps is None else f"{self.steps[0]}:{'' if self.steps[1] is None else self.steps[1]}"
        ranks = "all" if self.ranks is None else ",".join(str(rank) for rank in self.ranks)
        used = {
            "steps": steps,
            "ranks": ranks,
            "ignore": " ".join(self.ignore),
            "strip_prefix": " ".join(self.strip_prefix),
        }
        declared = {
            "dims": " ".join(str(dims) for dims in self.dims),
            "map": " ".join(str(rule) for rule in self.renamings),
        }
        return used | {name: text for name, text in declared.items() if text}
