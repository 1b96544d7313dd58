"""The words a person reads for the closed vocabularies of a comparison, and how numbers and places are spelled."""

from collections.abc import Sequence

from paritrace.compare.result import Difference, DifferenceClass, Group, SlotDifference, Unpaired

OPERATORS = ("aten.", "prims.", "profiler.", "c10d.", "_c10d_functional.", "quantized.", "torchvision.")
OVERLOADS = frozenset({"Tensor", "Scalar", "Tensor_Scalar", "Scalar_Tensor", "Dimname", "List", "Int", "Float"})
MAIN = "<main>"  # how a key spells the main script (CP-19)
NUM_SAMPLES = 64  # CA-28: no slot has more

# Every member has its words (a test proves it); a table, since there are too many members for a match to read well.

CLASSES: dict[DifferenceClass, str] = {
    DifferenceClass.SHAPE: "another shape",
    DifferenceClass.DTYPE: "another dtype",
    DifferenceClass.NON_FINITE_APPEARED: "NaN or infinity on one side",
    DifferenceClass.SAME_ELEMENTS_OTHER_ORDER: "same elements, other order",
    DifferenceClass.SAME_VALUES_OTHER_BITS: "same values, other bits",
    DifferenceClass.SIGNS_ONLY: "only signs differ",
    DifferenceClass.CONSTANT_SCALE: "scaled by a constant",
    DifferenceClass.NARROWER_DTYPE: "one side fits a narrower dtype",
    DifferenceClass.DISCRETE_CHOICE: "another discrete choice",
    DifferenceClass.SPARSE_OR_BELOW_SAMPLING: "sparse, or below what samples show",
    DifferenceClass.VALUES: "values differ",
    DifferenceClass.BITS_ONLY: "bits differ",
    DifferenceClass.SCALARS: "other scalar arguments",
}


GROUPS: dict[Group, str] = {
    Group.ORIGINATES: "all captured input tensors agree",
    Group.PROPAGATES: "comes with an input from an earlier differing call",
    Group.OUTSIDE: "comes from outside the calls",
    Group.REWIRED: "reads another producer than its counterpart",
    Group.AFTER_UNALIGNED: "follows calls without a counterpart",
    Group.UNDETERMINED: "nothing recorded tells where it comes from",
    Group.CONTAINS: "contains a call that starts it",
    Group.EXCEEDS: "leaves the envelope; what came in is inside",
    Group.CHOOSES: "another discrete choice; sizes behind it are not judged",
    Group.WITHIN: "other code, no more error than the envelope explains",
}


REASONS: dict[Unpaired, str] = {
    Unpaired.UNEQUAL_BETWEEN_ANCHORS: "the calls between two sure pairs are not the same on both sides",
    Unpaired.NO_ANCHOR: "nothing on this stretch is unique on both sides",
    Unpaired.ANCHOR_CROSSED: "its order contradicts other sure pairs",
    Unpaired.SCOPE_UNPAIRED: "its module has no counterpart",
    Unpaired.STREAM_MISSING: "the other side has no such step, micro-batch, phase or thread",
    Unpaired.RANK_MISSING: "the other side has no such rank",
    Unpaired.NOT_RECORDED: "the other side did not capture this level or step",
    Unpaired.DROPPED: "the other side dropped records here",
    Unpaired.FORWARD_UNPAIRED: "its forward call is not paired",
    Unpaired.LINK_AMBIGUOUS: "its forward call could not be told",
    Unpaired.NOT_OBSERVABLE_COMPILED: "inside compiled code, which was not observed",
    Unpaired.NO_RECORDED_FLOW: "no recorded dataflow tells it from others like it",
    Unpaired.REVIEW: "a person's review leaves it without one",
}


def count(number: int, /, noun: str, *, plural: str = "") -> str:
    """Returns "1 call", "2,048 calls"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def figure(value: float, /) -> str:
    """Returns a magnitude with two significant digits, in the notation engineers compare errors in."""
    return f"{value:.1e}"


def listed(names: Sequence[str], /, *, most: int) -> str:
    """Returns the first `most` names and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def source_place(difference: Difference, /) -> str:
    """Returns FILE:LINE of a difference, or why there is none."""
    file = shown_file(difference)
    if not file:
        return "no source line recorded"
    return f"{file}:{difference.line}" if difference.line > 0 else file


def shown_file(difference: Difference, /) -> str:
    """Returns the file as a person knows it: the main script by the name in its site, not `<main>`."""
    file, _, _ = (difference.baseline_site or difference.candidate_site).rpartition(":")
    return file if difference.file == MAIN and file else difference.file


def module_or_root(module: str, /) -> str:
    return module or "the root module"


def short_function(name: str, /) -> str:
    """Returns the class of a module call (`torch.nn.modules.linear.Linear` is `Linear`); an operator as it is.

    Operators are NAMESPACE.NAME.OVERLOAD, and an overload may be spelled as a class is (`aten.mul.Tensor`).
    """
    last = name.rpartition(".")[2]
    is_operator = name.startswith(OPERATORS) or last in OVERLOADS
    return last if last[:1].isupper() and not is_operator else name


def _samples(differing: int) -> str:
    """A slot of few elements has fewer samples than 64, and the result does not say how many."""
    if not differing:
        return "no sampled element differs"
    return f"all {NUM_SAMPLES} samples" if differing == NUM_SAMPLES else f"{differing} of at most {NUM_SAMPLES} samples"


def size_in_words(slot: SlotDifference, /) -> str:
    """Returns the size estimate of a slot's difference, or that there is none (P1)."""
    parts: list[str] = []
    if slot.relative_error is not None:
        parts.append(f"about {figure(slot.relative_error)} relative")
    if slot.bias is not None:
        parts.append(f"bias {slot.bias:+.1e}")
    if slot.max_ulp is not None:
        parts.append(f"up to {slot.max_ulp:,} ULP")
    if slot.num_samples_differing is not None:
        parts.append(_samples(slot.num_samples_differing))
    return ", ".join(parts) if parts else _without_size(slot)


def _without_size(slot: SlotDifference) -> str:
    """Says why there is no size, and what there is instead."""
    match slot.difference_class:
        case DifferenceClass.SHAPE | DifferenceClass.NON_FINITE_APPEARED if slot.baseline or slot.candidate:
            return f"{slot.baseline} -> {slot.candidate}; no size between them"
        case _:
            return "size not estimable: no samples"
