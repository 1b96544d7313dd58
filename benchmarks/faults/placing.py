"""Records of generated placements: a mechanism as data, a place drawn for it, and the pair that follows (CP-18)."""

import itertools
import random
from dataclasses import dataclass, field, replace
from enum import StrEnum

from benchmarks.faults.case import Edit, Expected, Fault, Launch, Variant

LAYERS = 4
PASSES = 2  # forward passes of every run: two steps, or two micro-batches of one step
SEEDS = (11, 23, 37)
DTYPES = ("float32", "bfloat16")
MATRICES = tuple(
    f"blocks.{{layer}}.{name}.weight"
    for name in (
        *(f"attention.{part}" for part in ("query", "key", "value", "output")),
        *(f"mlp.{part}" for part in ("gate", "up", "down")),
    )
)


class Passes(StrEnum):
    """What the passes of a run are."""

    STEPS = "steps"
    MICRO_BATCHES = "micro-batches"


class Mode(StrEnum):
    """What else the candidate differs in."""

    PLAIN = "plain"
    MASKED = "masked"  # a benign kernel change, so that bits differ from the first layer on


ARGUMENTS = {Passes.STEPS: ("--steps", "2"), Passes.MICRO_BATCHES: ("--steps", "1", "--accumulate", "2")}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One acceptable place, with `{…}` where the placement stands; `later` passes or steps after the planted one."""

    groups: tuple[str, ...]
    module: str = ""
    phase: str = ""
    file: str = ""
    at: str = ""
    names: tuple[str, ...] = ()
    function: str = ""
    later: int = 0
    beside: bool = False


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A mistake with the choices that its places are drawn from; texts hold `{layer}`, `{number}`, `{parameter}`.

    `beyond` is where a person would look who knows that bits differ for a benign reason: what `masked` is held against.
    """

    name: str
    mechanism: str
    edits: tuple[Edit, ...]
    answers: tuple[Answer, ...]
    beyond: tuple[Answer, ...]
    masks: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DTYPES
    passes: tuple[Passes, ...] = tuple(Passes)
    numbers: tuple[int, ...] = tuple(range(PASSES))
    layers: tuple[int, ...] = tuple(range(LAYERS))
    parameters: tuple[str, ...] = ("",)
    seeds: tuple[int, ...] = SEEDS
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A place: the layer, the forward pass from which on it holds, and in what run."""

    layer: int
    number: int
    dtype: str
    passes: Passes
    seed: int
    parameter: str
    mask: str = ""

    @property
    def step(self) -> int:
        return self.number if self.passes is Passes.STEPS else 0

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("--dtype", self.dtype, "--seed", str(self.seed), *ARGUMENTS[self.passes])

    @property
    def words(self) -> dict[str, str]:
        return {
            "{layer}": str(self.layer),
            "{number}": str(self.number),
            "{step}": str(self.step),
            "{parameter}": self.parameter.replace("{layer}", str(self.layer)),
            "{other}": self.parameter.replace("{layer}", str((self.layer + 1) % LAYERS)),
            "{owner}": self.parameter.replace("{layer}", str(self.layer)).rpartition(".")[0],
            "{when}": f"self.layer == {self.layer} and Now.number >= {self.number}",
        }


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A pair of the full suite: a mechanism at a place, plain or masked."""

    mechanism: Mechanism
    number: int
    mode: Mode
    placement: Placement
    fault: Fault = field(repr=False)

    @property
    def id(self) -> str:
        return f"{self.mechanism.name}/{self.number:02}/{self.mode.value}"


def filled(text: str, placement: Placement) -> str:
    for word, value in placement.words.items():
        text = text.replace(word, value)
    return text


def placements(mechanism: Mechanism, count: int, *, mode: Mode, seed: int) -> list[Placement]:
    """`count` different places, or all where there are fewer, drawn with a recorded seed; behind a mask, behind it."""
    draw = random.Random(f"{seed}/{mechanism.name}/{mode.value}")
    layers = [layer for layer in mechanism.layers if mode is Mode.PLAIN or layer > 0] or list(mechanism.layers)
    masks = mechanism.masks if mode is Mode.MASKED else ("",)
    every = [
        Placement(layer=layer, number=number, dtype=dtype, passes=passes, seed=of, parameter=parameter)
        for layer, number, dtype, passes, of, parameter in itertools.product(
            layers, mechanism.numbers, mechanism.dtypes, mechanism.passes, mechanism.seeds, mechanism.parameters
        )
    ]
    return [replace(place, mask=draw.choice(masks)) for place in draw.sample(every, min(count, len(every)))]


def placed(mechanism: Mechanism, placement: Placement, *, number: int, mode: Mode, mask: tuple[Edit, ...]) -> Placed:
    """The pair of runs that a placement makes, with the answer that follows from it."""
    edits = tuple(Edit(file=one.file, old=one.old, new=filled(one.new, placement)) for one in mechanism.edits)
    arguments = (*placement.arguments, *mechanism.arguments)
    answers = mechanism.answers if mode is Mode.PLAIN else mechanism.beyond
    return Placed(
        mechanism=mechanism,
        number=number,
        mode=mode,
        placement=placement,
        fault=Fault(
            name=f"{mechanism.name}/{number:02}/{mode.value}",
            mechanism=mechanism.mechanism,
            baseline=Variant(launch=Launch.PLACED, arguments=arguments),
            candidate=Variant(launch=Launch.PLACED, arguments=arguments, edits=(*edits, *mask)),
            expected=tuple(expected(answer, placement) for answer in answers),
            source=mechanism.source,
        ),
    )


def expected(answer: Answer, placement: Placement) -> Expected:
    later = placement.number + answer.later
    steps = placement.passes is Passes.STEPS
    whole_step = answer.phase not in ("forward", "backward") or answer.function == "gradient"  # summed over its passes
    return Expected(
        groups=answer.groups,
        step=later if steps else later // PASSES,
        microbatch=None if steps or whole_step else later % PASSES,
        phase=answer.phase,
        file=answer.file,
        at=answer.at,
        module=filled(answer.module, placement),
        function=answer.function,
        names=tuple(filled(name, placement) for name in answer.names),
        beside=answer.beside,
    )
