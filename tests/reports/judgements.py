"""Results of judge and isolate as records, for the tests of their screens."""

from msgspec.structs import replace

from paritrace.compare.isolating import apart_by_themselves
from paritrace.compare.judged_result import (
    ISOLATED_FORMAT,
    JUDGED_FORMAT,
    VERSION,
    Functions,
    Isolated,
    Judged,
    JudgedCall,
    JudgedTensor,
    Nearer,
)
from paritrace.compare.result import RunRef
from paritrace.compare.ulps import UlpErrors

BASE, CAND = RunRef("run-a", "a" * 64, "A"), RunRef("run-b", "b" * 64, "B")
NORM = "torch.nn.modules.normalization.LayerNorm"


def errors(largest: float, median: float) -> UlpErrors:
    return UlpErrors(512, largest, median, (300, 150, 40, 15, 7, 0, 0), 3e-8, 0)


def tensor(path: str, functions: Functions, nearer: Nearer, **changes: object) -> JudgedTensor:
    made = JudgedTensor(
        path,
        path != "out",
        "float32",
        "float32",
        (4, 128),
        functions,
        nearer,
        3.1e-8,
        1.2e-17,
        errors(3.5, 0.4),
        errors(9, 1),
    )
    return replace(made, **changes)


def call(functions: Functions, nearer: Nearer, *tensors: JudgedTensor, **changes: object) -> JudgedCall:
    made = JudgedCall("layers.0.norm", "layers.0.norm", NORM, NORM, 0, 2, 0, functions, nearer, tensors, True)
    return replace(made, **changes)


def judged(of: JudgedCall, *others: JudgedCall) -> Judged:
    return Judged(JUDGED_FORMAT, VERSION, BASE, CAND, "F1", f"the call of layers.0.norm ({NORM})", of, others, 4.2)


def same() -> Judged:
    kinds = (Functions.SAME, Nearer.BASELINE)
    return judged(
        call(
            *kinds, tensor("out", *kinds), tensor("args[0]", *kinds), tensor("weight", Functions.EQUAL, Nearer.NEITHER)
        )
    )


def different() -> Judged:
    kinds = (Functions.DIFFERENT, Nearer.NO_REFERENCE)
    out = tensor("out", *kinds, apart=2.8e-3, apart_float64=2.8e-3)
    return judged(call(*kinds, out, remarks=("the candidate's own: mask",)), call(*kinds, out, rank=1))


def other_backward() -> Judged:
    kinds = (Functions.EQUAL, Nearer.NEITHER)
    gradient = tensor("weight", Functions.DIFFERENT, Nearer.NO_REFERENCE, apart=0.5, apart_float64=0.5)
    return judged(call(*kinds, tensor("out", *kinds, apart=0.0, apart_float64=0.0), gradient))


def neither() -> Judged:
    kinds = (Functions.SAME, Nearer.NEITHER)
    return judged(call(*kinds, tensor("out", *kinds)))


def undetermined() -> Judged:
    kinds = (Functions.UNDETERMINED, Nearer.NO_REFERENCE)
    out = tensor("out", *kinds, apart_float64=None, baseline=None, candidate=None, why="no float64 kernel")
    return judged(call(*kinds, out, reproduces=False))


def equal() -> Judged:
    kinds = (Functions.EQUAL, Nearer.NEITHER)
    return judged(call(*kinds, tensor("out", *kinds, apart=0.0, apart_float64=0.0)))


def refused() -> Judged:
    return judged(call(Functions.UNDETERMINED, Nearer.NO_REFERENCE, refused="candidate: norm was not called"))


def isolated(*calls: JudgedCall, **changes: object) -> Isolated:
    made = Isolated(ISOLATED_FORMAT, VERSION, BASE, CAND, True, (0,), calls, apart_by_themselves(calls), {}, 12.0)
    return replace(made, **changes)


def two_mistakes() -> Isolated:
    different = (Functions.DIFFERENT, Nearer.NO_REFERENCE)
    same_function = (Functions.SAME, Nearer.NEITHER)
    named = {
        "layers.0.norm": call(*different, tensor("out", *different, apart=0.011, apart_float64=0.011)),
        "layers.0.attention": call(*same_function, tensor("out", *same_function)),
        "layers.0.mlp.down": call(*different, tensor("out", *different, apart=0.5, apart_float64=0.5)),
        "layers.0.mlp": call(*different, tensor("out", *different)),
        "layers.1.norm": call(Functions.EQUAL, Nearer.NEITHER, tensor("out", Functions.EQUAL, Nearer.NEITHER)),
    }
    calls = [replace(one, module_baseline=name, module_candidate=name) for name, one in named.items()]
    return isolated(*calls, left_out={"head, step 0, call 0": "args[1] was not kept (over budget)"})


def none_apart() -> Isolated:
    kinds = (Functions.EQUAL, Nearer.NEITHER)
    return isolated(call(*kinds, tensor("out", *kinds)), own_weights=False)
