"""Records of a replay: one module call of a program, computed on inputs that another run recorded (CP-26).

A replay is asked for by a `ReplayRequest` file, which the re-run program reads (`paritrace run --replay FILE`), and
answered by one `Replayed` document and one safetensors file for each task, in the folder that the request names.

Tensors of an answer, by key: `recorded/PATH` in the program's own dtypes, `float64/PATH` of the same call with inputs,
parameters and every operator in float64 (complex128), and the same two as `recorded_gradient/` and
`float64_gradient/`. Floating and complex values are stored as float64, which holds each of them exactly, complex ones
with a last dimension of two; integers and booleans as int64. With `trace`, `bits/PATH` are the recorded outputs in
their own dtype, `argument/N` what the traced program takes and `constant/NAME` what it holds.
"""

from msgspec import Struct

from paritrace.evidence.dumps import Golden, KeptTensor

REQUEST_FORMAT = "paritrace-replay-request"
ANSWER_FORMAT = "paritrace-replay-answer"
VERSION = "1.0"

RECORDED = "recorded"
WIDE = "float64"
GRADIENT = "_gradient"  # ends the two heads above for gradients
BITS = "bits"
ARGUMENT = "argument"
CONSTANT = "constant"
GENERATOR = "generator"


class ReplayTask(Struct, frozen=True):
    """One module call to replay in one rank.

    `key` names the files of the answer. `module` is the module's name in the program that replays. With `occasion`, it
    is replayed at that call: the step, and which call of the module in that step; else at the module's first call.
    `golden` and `gradients` are the recorded call, `tensors` the run directory that keeps its tensors. `own_weights`:
    the program's own parameters and buffers stay. `names` gives parameters that are called otherwise here: recorded
    name -> own name.
    """

    key: str
    rank: int
    module: str
    tensors: str
    golden: Golden
    gradients: dict[str, KeptTensor] = {}
    own_weights: bool = False
    occasion: tuple[int, int] | None = None
    names: dict[str, str] = {}


class ReplayRequest(Struct, frozen=True):
    """What one re-run program is to compute into the folder `output`; its process ends after the last task.

    Without tasks it ends after step `until_step`: what was recorded until then is all that was wanted.
    """

    format: str
    version: str
    output: str
    tasks: tuple[ReplayTask, ...]
    until_step: int
    gradients: bool = True
    trace: bool = False  # write the call down as a program of operators, for a capsule


class ReplayedTensor(Struct, frozen=True):
    """An output, or a gradient of an input or parameter; `path` such as `out`, `args[0]` or `weight`."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    gradient: bool = False


class Traced(Struct, frozen=True):
    """A call as Python source of a method `call`: what it takes, in order, by the name of each; what it gives back.

    `strides` are those of the arguments, then of the constants; the file holds them in logical order. `groups` and
    `reductions` are the process groups (their ranks) and reductions that it holds, by attribute. `settings` are those
    of torch that a result depends on, its version among them.
    """

    source: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...]
    settings: dict[str, str]
    groups: dict[str, tuple[int, ...]] = {}
    reductions: dict[str, str] = {}
    collectives: bool = False
    draws: bool = False  # random numbers


class Replayed(Struct, frozen=True):
    """The answer to one task. Where `refused` says why nothing was computed, nothing else is filled in."""

    format: str
    version: str
    key: str
    rank: int
    module: str
    cls: str = ""
    tensors: tuple[ReplayedTensor, ...] = ()
    refused: str = ""
    no_reference: str = ""  # why there is no float64 result; "" where there is one
    no_gradients: str = ""
    begun: tuple[str, ...] = ()  # outputs that a gradient reached from outside of the call
    drawn: tuple[str, ...] = ()  # those of them whose gradient was not recorded: the same random one in each replay
    not_forced: tuple[str, ...] = ()  # arguments and buffers that are the program's own
    narrow: tuple[str, ...] = ()  # operators that kept the reference from being float64 throughout
    random: int = 0  # operators that drew random numbers
    traced: Traced | None = None
    not_traced: str = ""


def answer_name(key: str) -> str:
    """The file of an answer's document."""
    return f"{key}.json"


def tensors_name(key: str) -> str:
    """The file of an answer's tensors."""
    return f"{key}.safetensors"
