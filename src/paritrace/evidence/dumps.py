"""Records of tensors that were kept whole: slots of calls (`Dumped`), and module calls that can be replayed (`Golden`).

They are lines of `calls.jsonl` since version 1.2. The bytes lie in `RUN/tensors/<sha256>.safetensors`, named by the
SHA-256 of the file, one tensor each under the key `TENSOR_KEY`, in logical contiguous order (CA-9). Arguments and
results of a module call are trees; docs/formats/calls.md describes them.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import CaptureGap, Gap

TENSORS_FOLDER = "tensors"
TENSOR_KEY = "tensor"  # of the one tensor in a file
TENSOR_SUFFIX = ".safetensors"

Kept = str | Gap[CaptureGap]
"""The SHA-256 of the file that holds a tensor, or why there is none."""


class KeptTensor(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One tensor of a golden call.

    `shape` and `strides` (in elements) are what the workload had; the file is in logical order, so that a replay makes
    an empty tensor of these strides and copies. Of a `DTensor` they are those of the part that this rank holds, and
    `whole` and `placements` say what it is a part of. Two leaves of one `number` are the same tensor object.
    """

    kept: Kept
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    number: int
    requires_grad: bool = False
    device: str = "cpu"
    tensor_class: str = "Tensor"
    whole: tuple[int, ...] | None = None
    placements: tuple[str, ...] = ()


class _Node(Struct, frozen=True, tag_field="node", omit_defaults=True, forbid_unknown_fields=True):
    """Base of what a tree of arguments consists of."""


class TensorLeaf(_Node, frozen=True, tag="tensor"):
    """A tensor; `path` is the name of its slot in the recorded call, such as `args[0]`, `kwargs.mask` or `out.loss`."""

    path: str
    tensor: KeptTensor


class PlainLeaf(_Node, frozen=True, tag="plain"):
    """A plain value: `kind` is none, bool, int, float, complex, str, dtype, device, layout or ellipsis.

    `text` is what its constructor takes: a float is `float.hex()` (or inf, -inf, nan), a complex two of them with a
    blank between, a dtype its name without `torch.`.
    """

    kind: str
    text: str = ""


class Missing(_Node, frozen=True, tag="missing"):
    """Something that cannot be kept; `gap` says what it is."""

    path: str
    gap: Gap[CaptureGap]


class Branch(_Node, frozen=True, tag="branch"):
    """A container: `kind` is list, tuple, size, slice, dict, named_tuple or dataclass.

    `cls` is `module:qualname` of a class other than Python's own. `keys` are those of a dict, or the field names of a
    named tuple or dataclass; empty for the others.
    """

    kind: str
    items: "tuple[Node, ...]" = ()
    keys: tuple[PlainLeaf, ...] = ()
    cls: str = ""


Node = TensorLeaf | PlainLeaf | Missing | Branch


class Member(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A parameter or buffer of the module or of one inside it; a tied one stands once, with all of its names."""

    names: tuple[str, ...]  # inside the module: "q_proj.weight"
    tensor: KeptTensor
    buffer: bool = False


class GeneratorState(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The state of a random generator before the call.

    `name` is python, numpy (its legacy one), torch_cpu or `cuda:N`. The words are kept as a tensor: python's 625 of
    `random.getstate()[1]`, NumPy's 624 key words (uint32), torch's state bytes (uint8). `rest` holds what is no word:
    python `version`, `gauss`; numpy `bit_generator`, `pos`, `has_gauss`, `cached_gaussian` (floats as `float.hex()`,
    an absent `gauss` as "").
    """

    name: str
    words: Kept
    rest: dict[str, str] = {}


class Autocast(Struct, frozen=True, forbid_unknown_fields=True):
    """The autocast state of one kind of device during the call."""

    device: str
    enabled: bool
    dtype: str
    cache: bool


class Dumped(Definition, frozen=True, tag="dumped"):
    """One slot of a recorded call, kept whole; `side` is "i" or "o", `slot` the index in that list, `name` its name.

    `dtype` and `shape` are those of the stored tensor: of a `DTensor` the part that this rank holds. The last line of a
    slot counts: a collective's output is a gap (`in_flight`) until it completes. Follows its call's line.
    """

    call: int
    side: str
    slot: int
    name: str
    tensor: Kept
    dtype: str
    shape: tuple[int, ...]


class Golden(Definition, frozen=True, tag="golden"):
    """One forward call of a module with all that a replay needs, written when the call has returned.

    `id` counts the goldens of a session. `call` is the id of the recorded call, -1 where none was recorded. `module` is
    the qualified name ("" is the root), `number` counts the forward calls under this name in this step from 0, over
    all micro-batches: a wrapper bears the name of its module and counts first. Recomputation in backward is not
    counted. `inputs` and `outputs` are trees as JSON text (`tree_of`): the inputs are one `tuple` of the positional
    arguments and one `dict` of the keyword arguments, as they were when the module was called, before its own hooks
    saw them. `outputs` is "" where the call raised.
    """

    id: int
    call: int
    module: str
    cls: str
    number: int
    step: int
    microbatch: int
    training: bool
    grad_enabled: bool
    inference: bool
    autocast: tuple[Autocast, ...]
    inputs: str
    outputs: str
    members: tuple[Member, ...]
    generators: tuple[GeneratorState, ...]
    raised: bool = False


class GoldenGradient(Definition, frozen=True, tag="golden_gradient"):
    """The gradient that reached one output of a golden call; `output` is the path of that output's leaf.

    Gradients of inputs and parameters are not kept: what autograd shows of them is summed over all of their uses, so
    they are not of this call alone. A replay makes them from these.
    """

    golden: int
    output: str
    tensor: KeptTensor


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Node] = msgspec.json.Decoder(Node)


def tree_text(node: Node) -> str:
    """A tree as JSON text."""
    return _encoder.encode(node).decode()


def tree_of(text: str) -> Node:
    """The tree of `Golden.inputs` or `Golden.outputs`.

    Raises:
        msgspec.DecodeError: not such a text.
    """
    return _decoder.decode(text)


def leaves(node: Node) -> Iterator[TensorLeaf | PlainLeaf | Missing]:
    """All leaves of a tree, in order."""
    if isinstance(node, Branch):
        for item in node.items:
            yield from leaves(item)
    else:
        yield node


def gaps_of(golden: Golden) -> tuple[tuple[str, Gap[CaptureGap]], ...]:
    """What a golden call lacks for a replay, as (name, why): arguments, members, generators."""
    found: list[tuple[str, Gap[CaptureGap]]] = []
    for leaf in leaves(tree_of(golden.inputs)):
        if isinstance(leaf, Missing):
            found.append((leaf.path, leaf.gap))
        elif isinstance(leaf, TensorLeaf) and isinstance(leaf.tensor.kept, Gap):
            found.append((leaf.path, leaf.tensor.kept))
    found += [(member.names[0], member.tensor.kept) for member in golden.members if isinstance(member.tensor.kept, Gap)]
    found += [(state.name, state.words) for state in golden.generators if isinstance(state.words, Gap)]
    return tuple(found)
