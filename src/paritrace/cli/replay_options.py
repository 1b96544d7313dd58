"""What `judge`, `isolate` and `capsule` have in common: their options, the finding meant, and where re-runs go."""

import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from paritrace.cli.options import A_YEAR_SECONDS, FiniteRange
from paritrace.compare.result import Comparison, Finding
from paritrace.errors import RequestError
from paritrace.files import LOCAL, TEMPORARY_PREFIX

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

MODE = 0o755  # of a capsule: a folder to hand on
DEADLINE_SECONDS = 600.0  # of each re-run: start of a program and a step; a training of hours has to be asked for


def replay_options(decorated: Decorated) -> Decorated:
    """`--deadline`, `--parameter` and `--keep`."""
    options = (
        click.option(
            "--deadline",
            type=FiniteRange(min=1, max=A_YEAR_SECONDS),
            default=DEADLINE_SECONDS,
            show_default=True,
            metavar="SECONDS",
            help="End a re-run that takes longer.",
        ),
        click.option(
            "--parameter",
            "parameters",
            multiple=True,
            metavar="BASE=CAND",
            help="What the candidate's module calls a parameter of the baseline's, repeatable.",
        ),
        click.option(
            "--keep",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Keep the re-runs, what they printed and all tensors in this new folder.",
        ),
    )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def parameter_names(pairs: tuple[str, ...]) -> dict[str, str]:
    """The declared names of parameters; raises as `pairs_of` does."""
    return pairs_of(pairs, option="--parameter", example="qkv.weight=in_proj_weight")


def pairs_of(pairs: tuple[str, ...], *, option: str, example: str) -> dict[str, str]:
    """The names on both sides of each `A=B`.

    Raises:
        RequestError: Refused, `bad_pair`.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not equals or not ours or not theirs:
            raise RequestError(
                f"{option} {pair!r} is not A=B",
                code="bad_pair",
                fix=f"give for example {option} {example}",
            )
        found[ours] = theirs
    return found


def finding_of(comparison: Comparison, identity: str) -> Finding:
    """The finding that is meant.

    Raises:
        RequestError: Refused, `no_such_finding`.
    """
    for finding in comparison.findings:
        if finding.id == identity:
            return finding
    known = ", ".join(finding.id for finding in comparison.findings[:8]) or "none"
    raise RequestError(
        f"the comparison has no finding {identity!r}; it has {known}",
        code="no_such_finding",
        fix="name one that `paritrace compare` printed",
    )


@contextmanager
def new_folder(path: Path) -> Generator[Path]:
    """A hidden folder beside `path` that takes its name when the block is through; nothing is left when it raises.

    Raises:
        RequestError: Refused, `place_taken`: the folder exists.
    """
    _require_free(path)
    LOCAL.mkdir(path.absolute().parent)
    staged = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=path.absolute().parent))
    try:
        yield staged
        _require_free(path)
        staged.chmod(MODE)
        LOCAL.rename_folder(staged, path)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _require_free(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise RequestError(f"{path} exists already", code="place_taken", fix="name a folder that does not exist")


@contextmanager
def work_folder(keep: Path | None) -> Generator[Path]:
    """A new folder for re-runs: the one to keep, or a temporary one that is removed at the end.

    Raises:
        RequestError: Refused, `place_taken`: the folder to keep exists.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="paritrace-replay-") as folder:
            yield Path(folder)
        return
    _require_free(keep)
    LOCAL.mkdir(keep)
    yield keep.resolve()
