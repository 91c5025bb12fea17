"""What is thrown at a row of the operator table, thrown at PyTorch's operator of that name too.

Either both raise or both agree on values, shape and dtype, apart from what the tables below name.
WEFT_EXAMPLES says how many calls a row, as in test_fuzzed_calls.py.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from op_cases import CASES, Case, calling
from op_cases.fuzzed import Call, calls
from test_fuzzed_calls import (
    ERRORS,
    ILL_POSED,
    OF_MEMORY,
    RANDOM,
    SETTINGS,
    UNINITIALISED,
    outcome,
    same,
    tolerance,
)

import weft

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

#: PyTorch has no kernel for the dtype, or asks for one dtype where weft promotes
THEIR_DTYPES = re.compile(
    r"not implemented for|expected (scalar type|dtype) \w|mixed dtype|does not support|[Uu]nsupported|"
    r"not supported|only supports? |floating[- ]point|different dtypes|same dtype|should be either|"
    r"expected .*(dtype|type)|must have the same|Expected a value of type|can't be cast|"
    r"[Ee]xpected self.dtype|should be the same|view size is not compatible"
)
#: weft says so: a dtype (or pinned memory) that it does not have there
OUR_DTYPES = re.compile(
    r"expected (an? )?(floating|real|dtype|tensors of one dtype|pin_memory|number that converts|output dtype)|"
    r"expected .*(dtype|kernel)"
)
#: weft answers where PyTorch raises
WIDER = {
    "flipud": "a number has no rows to turn: itself",
    "batch_norm": "a batch of nothing",
    "scatter_reduce.two": "checked where there is something to scatter",
    "scatter_reduce_.two": "checked where there is something to scatter",
    "unique_dim": "nothing along the other dims", "unique_consecutive": "of a number",
    "max_pool2d": "no channels", "max_pool2d_with_indices": "no channels", "avg_pool2d": "no channels",
    "addcdiv": "integers beside floats",
    "cdist": "a compute mode of another number",
    "adaptive_avg_pool2d": "one size for both sides",
    "linear": "a weight of one dim with a bias",
    "slice.Tensor": "a negative step", "slice_copy.Tensor": "a negative step", "addr": "a bool for beta", "norm.Scalar": "a negative norm of nothing",
    "conv1d.padding": "no stride: 1",
    "conv1d": "no output channels: an empty result",
    "conv2d": "no output channels: an empty result",
    "add.Scalar": "a bool for alpha", "add.Tensor": "a bool for alpha", "rsub.Tensor": "a bool for alpha",
    "sub.Tensor": "a bool for alpha", "sub.Scalar": "a bool for alpha", "rsub.Scalar": "a bool for alpha",
    "mse_loss": "a reduction of another number is none, as in l1_loss",
    "dist": "a negative norm of nothing",
    "diff": "what is put before and after broadcasts",
    "repeat_interleave.Tensor": "repeats of several dims are read in order",
    "repeat_interleave.self_Tensor": "repeats of several dims are read in order",
    "index_add": "shapes that broadcast", "index_add_": "shapes that broadcast",
    "rot90": "no turn in a plane of one dim", "take_along_dim": "a number along its dim 0",
    "linalg_cross": "sizes of 1 broadcast", "cross": "sizes of 1 broadcast",
    "cholesky_inverse": "an empty matrix",
    "linalg_svd": "driver is for other devices", "linalg_svdvals": "driver is for other devices",
    "logsumexp": "PyTorch takes no empty dims with keepdim",
    "binary_cross_entropy_with_logits": "an input that broadcasts to its target",
    "norm.ScalarOpt_dtype": "a dtype that is narrower", "norm.ScalarOpt_dim_dtype": "a dtype that is narrower",
    "_standard_gamma_grad": "two dtypes", "_dirichlet_grad": "two dtypes",
}  # fmt: skip
#: weft raises where PyTorch answers
NARROWER = {
    "repeat_interleave.Tensor": "an output_size that is wrong",
    "repeat_interleave.self_Tensor": "an output_size that is wrong",
    "repeat_interleave.self_int": "an output_size that is wrong",
    "index_fill.int_Scalar": "an index into nothing", "index_fill.int_Tensor": "an index into nothing",
    "index_fill_.int_Scalar": "an index into nothing", "index_fill_.int_Tensor": "an index into nothing",
    "index.Tensor": "an index out of bounds into rows of nothing",
    "topk": "none of a number", "diff": "no differences along a dim it lacks",
    "conv_transpose2d.input": "an empty result",
    "adjoint": "of a number", "block_diag": "of nothing", "repeat": "less than no times beside no times", "tile": "less than no times beside no times", "cholesky": "of an empty vector",
    "cat": "an empty vector beside tensors of more dims",
    "contiguous": "preserve_format",
    "floor_divide.Scalar": "an empty tensor by 0",
    "cummax": "of an empty tensor, along a dim it lacks", "cummin": "of an empty tensor, along a dim it lacks",
    "index_put": "no index at all", "index_put_": "no index at all",
    "index_add": "negative indices", "index_add_": "negative indices",
    "nll_loss_nd": "one target in a vector", "nll_loss": "a reduction of another number", "nll_loss_forward": "a reduction of another number",
    "cross_entropy_loss": "a reduction of another number",
    "remainder.Scalar": "an empty tensor by 0", "fmod.Scalar": "an empty tensor by 0",
    "expand": "-1 for a size that is not there", "broadcast_to": "-1 for a size that is not there",
    "roll": "of nothing, along a dim it lacks",
    "adaptive_avg_pool2d": "of an empty picture", "batch_norm": "of nothing", "tensordot": "sizes of 1 that broadcast",
    "median": "of no integers", "nanmedian": "of no integers",
    "take_along_dim": "indices outside of the size, which PyTorch takes by their remainder",
}  # fmt: skip
#: both answer, differently
_UINT8 = "of uint8 PyTorch's answer is uint8"
_TIES = "the index of equals"
DIFFERENT = {
    "any": _UINT8, "any.dim": _UINT8, "any.dims": _UINT8, "all": _UINT8, "all.dim": _UINT8, "all.dims": _UINT8,
    "unique_dim": "PyTorch gives the inverse and the counts unasked",
    "arange.start": "negative numbers as uint8",
    "div.Scalar": "a complex number by 0", "div.Scalar_mode": "a complex number by 0", "div_.Scalar_mode": "a complex number by 0",
    "logit": "eps over a half", "logit_": "eps over a half",
    "index_put": "two values at one index", "index_put_": "two values at one index",
    "put": "two values at one index", "put_": "two values at one index",
    "unique_consecutive": "PyTorch gives the inverse unasked",
    "block_diag": "the dtype where those of the arguments differ",
    "i0": "near its greatest value PyTorch's overflows", "special_i1": "near its greatest value PyTorch's overflows",
    "mode": _TIES, "median.dim": _TIES, "nanmedian.dim": _TIES, "kthvalue": _TIES, "topk": _TIES, "sort": _TIES, "sort.stable": _TIES,
    "argsort": _TIES, "argsort.stable": _TIES,
    "pixel_unshuffle": "no elements: PyTorch's has the shape of the input",
    "binary_cross_entropy_with_logits": "the dtype where those of the arguments differ",
    "square": "of bool",
    "_standard_gamma_grad": "of numbers that are no samples", "_dirichlet_grad": "of numbers that are no samples",
}  # fmt: skip


def function_of(case: Case) -> Any:
    name, _, overload = case.name.partition(".")
    with contextlib.suppress(AttributeError):
        return getattr(getattr(torch.ops.aten, name), overload or "default")
    return None


def their_outcome(function: Any, call: Call) -> tuple[Any, str]:
    args, kwargs = call.build(torch, plain=False)
    try:
        return function(*args, **kwargs), ""
    except ERRORS as error:
        return None, f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    """Tuples as lists; PyTorch's lazy conjugates made real."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.resolve_conj() if isinstance(value, torch.Tensor) else value


def tensors(value: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(value, list):
        return [tensor for each in value for tensor in tensors(each)]
    return [value] if isinstance(value, torch.Tensor) else []


def compare(case: Case, call: Call, function: Any) -> None:
    ours, error = outcome(calling.function_of(case.name), call, plain=False)
    theirs, their_error = their_outcome(function, call)
    if error and their_error:
        return
    if their_error:
        assert case.name in WIDER or THEIR_DTYPES.search(their_error), f"PyTorch: {their_error}"
    elif error:
        assert case.name in NARROWER or OUR_DTYPES.search(error), error
    elif case.name not in DIFFERENT and (case.name not in ILL_POSED or call.faithful):
        same(
            plain(ours[0]),
            plain(theirs),
            tolerance(call) * (case.tolerance if call.faithful else 1),
        )


COMPARED = [
    c for c in CASES.values() if function_of(c) and c.name not in RANDOM | UNINITIALISED | OF_MEMORY
]


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_both_raise_or_both_agree(case: Case) -> None:
    function = function_of(case)

    @SETTINGS
    @given(calls(case))
    def run(call: Call) -> None:
        compare(case, call, function)
        for operand in call.operands():
            operand.held.clear()

    run()


# Found by drawing, tried always ------------------------------------------------------------------

EMPTY = {
    "read": lambda lib, x, places: x[places],
    "of_two_rows": lambda lib, x, places: lib.zeros(2, 3)[places],
    "write": lambda lib, x, places: lib.index_put(x, places, lib.tensor(1.0)),
    "add": lambda lib, x, places: lib.index_put(x, places, lib.tensor(1.0), accumulate=True),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_indices_that_broadcast_to_nothing_are_not_checked(name: str) -> None:
    def call(lib: Any) -> Any:
        places = (lib.tensor([[-1, 7, -1]]), lib.zeros((0, 3), dtype=lib.int64))
        return EMPTY[name](lib, lib.zeros(0, 3), places)

    same(plain(call(weft)), plain(call(torch)), 0)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_the_variance_of_nothing_is_nan(name: str, dim: Any, dtype: str) -> None:
    for shape, correction in itertools.product([(0, 3), (2, 0), (2, 3)], [-1.5, 0, 1, 4]):
        ours, theirs = (
            getattr(lib, name)(
                lib.ones(shape, dtype=getattr(lib, dtype)), dim=dim, correction=correction
            )
            for lib in (weft, torch)
        )
        same(plain(ours), plain(theirs), 1e-6)
