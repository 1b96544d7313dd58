"""Settings of one comparison: what is left out and what is read in another spelling (CP-5, CP-6, CP-9)."""

from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from paritrace.compare.folds_dims import Dims
from paritrace.compare.masks import Mask
from paritrace.compare.policy import LoadedPolicy, Policy
from paritrace.compare.renamings import Of, Renaming, rule_for
from paritrace.compare.resume_result import ResumePlan

COMPILED = "_orig_mod."  # what `torch.compile` puts before the names of a model or module that it wraps


class Settings(Struct, frozen=True, kw_only=True):
    """`steps` is half-open; None compares all. `ignore` are shell patterns of modules, functions, files or names.

    `dims`, `renamings` and `masks` are declared by the user (CP-5, CP-11, CP-12). `side` and `rank` say whose names are
    read; without a side, names are read without declared maps. Of `strip_prefix` those that begin with an underscore,
    as torch names the inside of its wrappers, are left out wherever they stand in a name, the others at its begin.
    """

    steps: tuple[int, int | None] | None = None
    ranks: tuple[int, ...] | None = None
    ignore: tuple[str, ...] = ()
    strip_prefix: tuple[str, ...] = ()
    dims: tuple[Dims, ...] = ()
    renamings: tuple[Renaming, ...] = ()
    policy: LoadedPolicy | None = None
    masks: tuple[Mask, ...] = ()
    resume: ResumePlan | None = None
    side: str = ""
    rank: int = -1

    def seen_from(self, side: str, rank: int) -> "Settings":
        """The same settings for reading the names of one rank of one side."""
        return replace(self, side=side, rank=rank) if self.renamings else self

    def takes_step(self, step: int) -> bool:
        """Whether this step is compared."""
        if self.steps is None:
            return True
        first, end = self.steps
        return first <= step and (end is None or step < end)

    def shift_of(self, run_id: str, session_id: str) -> int:
        """What is added to the steps of a session, so that they are those of the run it continues (CP-28)."""
        shifts = () if self.resume is None else self.resume.shifts
        return next((number for run, name, number in shifts if (run, name) == (run_id, session_id)), 0)

    def ignores(self, *names: str) -> bool:
        """Whether a pattern leaves out something that bears these names."""
        return any(fnmatchcase(name, pattern) for pattern in self.ignore for name in names if name)

    def spelled(self, name: str) -> str:
        """The name of a module, parameter or buffer as both sides read it: without wrappers, then by declared map."""
        name = self.without_prefixes(name)
        return self.read_as(name, of=Of.MODULE) if self.side else name

    def without_prefixes(self, name: str) -> str:
        """A name without the prefixes of wrappers; one that begins as no attribute of a model does is gone anywhere."""
        for prefix in self.strip_prefix:
            name = "" if name + "." == prefix else name.removeprefix(prefix)
            if prefix.startswith("_") and prefix.endswith("."):
                name = f"{name}.".replace(f".{prefix}", ".")[:-1]
        return name

    def read_as(self, name: str, *, of: Of) -> str:
        """A name of this side as a declared map reads it."""
        found = rule_for(name, self.renamings, of=of, side=self.side, rank=self.rank) if self.renamings else None
        return name if found is None else found[1]

    def is_declared(self, name: str, *, of: Of) -> bool:
        """Whether a declared map reads this name of this side otherwise."""
        name = self.without_prefixes(name) if of is Of.MODULE else name
        return bool(self.renamings and self.side) and self.read_as(name, of=of) != name

    def dims_of(self, name: str, *, side: str) -> Dims | None:
        """The first declared layout of a tensor."""
        return next((dims for dims in self.dims if dims.covers(name, side)), None)

    @property
    def rules(self) -> Policy | None:
        """The rules of the user's policy, None without one."""
        return None if self.policy is None else self.policy.policy

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
            "mask": " ".join(str(mask) for mask in self.masks),
            "policy": "" if self.policy is None else self.policy.sha256,
        }
        if self.resume is not None:
            used["resume"] = f"{self.resume.step}: {self.resume.assumed}"
        return used | {name: text for name, text in declared.items() if text}
