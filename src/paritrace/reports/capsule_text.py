"""Writes the texts of a capsule: `run.py`, which needs torch and safetensors alone, and its README (CP-26)."""

from collections.abc import Mapping
from importlib.resources import files as package_files

from msgspec import Struct

from paritrace.evidence.replays import Traced

TEMPLATE = "capsule_run.py.txt"
SIDES = ("baseline", "candidate")


class ProgramFacts(Struct, frozen=True):
    """What `run.py` has to know of one side's call on one rank, besides its source."""

    file: str
    sha256: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...]
    groups: dict[str, tuple[int, ...]]
    reductions: dict[str, str]
    module: str
    cls: str


class CapsuleFacts(Struct, frozen=True):
    """`capsule.json`: what a capsule is of, and what it was recorded with. `programs` by `SIDE-rankN`."""

    format: str
    version: str
    title: str
    finding: str
    step: int
    ranks: tuple[int, ...]
    collectives: bool
    settings: dict[str, str]
    programs: dict[str, ProgramFacts]
    remarks: tuple[str, ...]


def program_text(facts: CapsuleFacts, traced: Mapping[str, Traced], /) -> str:
    """Returns `run.py`; `traced` has the programs under the keys of `facts.programs`."""
    template = package_files("paritrace.reports").joinpath(TEMPLATE).read_text(encoding="utf-8")
    classes = "\n\n".join(_class(key, program) for key, program in traced.items())
    sides = ", ".join(f"({_side(key)!r}, {_rank(key)}): {_class_name(key)}" for key in traced)
    return template.replace("@TITLE@", _plain(facts.title)).replace("@PROGRAMS@", classes).replace("@SIDES@", sides)


def readme_text(facts: CapsuleFacts, verdict: str, /) -> str:
    """Returns README.md: what the capsule shows, how to run it, what it was recorded with."""
    names = {key: f"`{program.module or '(root)'}` ({program.cls})" for key, program in facts.programs.items()}
    sides = "\n".join(f"- {key}: {name}" for key, name in names.items())
    settings = "\n".join(f"- {name}: {value}" for name, value in facts.settings.items())
    remarks = "\n".join(f"- {remark}" for remark in facts.remarks)
    return README.format(
        title=facts.title, verdict=verdict, sides=sides, settings=settings, remarks=f"\n{remarks}\n" if remarks else ""
    )


README = """# {title}

{verdict}

    pip install torch safetensors numpy
    python run.py

computes both sides again and compares them with what was recorded: status 0 where every output is the recorded one, bit
for bit (`--ulp N`: to within N units in the last place), else 1. Nothing of the training is needed, and nothing is
written.

{sides}

`run.py` holds each call as the operators that ran on these inputs. Where the module decides by values, the decision is
the recorded one.
{remarks}
Recorded with

{settings}
"""


def _class(key: str, program: Traced) -> str:
    body = "\n".join(f"    {line}" if line.strip() else "" for line in program.source.splitlines())
    return f"class {_class_name(key)}(Program):\n{body}\n"


def _class_name(key: str) -> str:
    return f"{_side(key).title()}Rank{_rank(key)}"


def _side(key: str) -> str:
    return key.partition("-")[0]


def _rank(key: str) -> int:
    return int(key.rpartition("rank")[2])


def _plain(text: str) -> str:
    """Fit for a docstring, whatever a module is called."""
    return text.replace("\\", "/").replace('"""', "'''")
