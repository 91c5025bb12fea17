"""What stands in archives for operators that PyTorch has not: functions of the same signature,
which the frontend compiles and the archive has among its code."""

from __future__ import annotations

import inspect

from weft import _C, fft, linalg, special
from weft._C import Tensor
from weft._functions import factorizations, lu
from weft._runtime.rules import Rules
from weft.amp import get_autocast_dtype
from weft.amp.autocast_mode import is_autocast_cpu_enabled
from weft.jit.frontend.language.functions import compile_function
from weft.jit.ir import Function, Graph
from weft.nn._operators import losses
from weft.nn._operators import recurrent as rnn
from weft.nn.functional import scaled_dot_product_attention

_FUNCTIONS = Rules()


def substitute_of(kind: str) -> Function | None:
    """The function that does what an operator of a kind does; None where there is none."""
    function = _FUNCTIONS.get(kind)
    return None if function is None else compile_function(function).function


# Numbers ------------------------------------------------------------------------------------------


@_FUNCTIONS("aten::pow.int_to_int")
def int_power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueError("pow: expected an exponent of at least 0, got one below")
    result = 1
    for _ in range(exponent):
        result = result * base
    return result


@_FUNCTIONS("aten::bitwise_not.int")
def bitwise_not(a: int) -> int:
    return -a - 1


@_FUNCTIONS("aten::trunc.float")
def trunc(a: float) -> int:
    return int(a)


@_FUNCTIONS("aten::log2.float")
def log2(a: float) -> float:
    return float(_C.log2(_C.tensor(a, dtype=_C.float64)))


@_FUNCTIONS("aten::hypot.float")
def hypot(a: float, b: float) -> float:
    first, second = _C.tensor(a, dtype=_C.float64), _C.tensor(b, dtype=_C.float64)
    return float(_C.hypot(first, second))


@_FUNCTIONS("aten::isclose.float")
def isclose(a: float, b: float, rel_tol: float, abs_tol: float) -> bool:
    near = abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)
    return a == b or (near and abs(a) != float("inf") and abs(b) != float("inf"))


@_FUNCTIONS("aten::lcm.int")
def lcm(a: int, b: int) -> int:
    return 0 if a == 0 or b == 0 else abs(a // _gcd(a, b) * b)


def _gcd(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


@_FUNCTIONS("aten::isqrt.int")
def isqrt(a: int) -> int:
    if a < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = int(float(a) ** 0.5)
    while root * root > a:
        root -= 1
    while (root + 1) * (root + 1) <= a:
        root += 1
    return root


@_FUNCTIONS("prim::real.complex")
def real(a: complex) -> float:
    return float(_C.view_as_real(_C.tensor(a, dtype=_C.complex128))[0])


@_FUNCTIONS("prim::imag.complex")
def imag(a: complex) -> float:
    return float(_C.view_as_real(_C.tensor(a, dtype=_C.complex128))[1])


# Matrices -----------------------------------------------------------------------------------------


@_FUNCTIONS("aten::_lu_factor")
def lu_factor(A: Tensor, check_errors: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    LU, pivots, info = lu.linalg_lu_factor_ex(A, check_errors=check_errors)
    P = lu.lu_unpack(LU, pivots, unpack_data=False)[0]
    return LU, pivots, P.abs().argmax(-1), info


@_FUNCTIONS("aten::_ldl_factor")
def ldl_factor(self: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    LD, pivots, info = factorizations.ldl_factor_ex(self, hermitian=hermitian)
    return LD, pivots, info


@_FUNCTIONS("aten::_ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    return factorizations.ldl_solve(LD, pivots, B, hermitian=hermitian)


@_FUNCTIONS("aten::_pinv")
def pinv(A: Tensor, inverse: Tensor) -> Tensor:
    """The trace of a matrix and its pseudo-inverse is the number of singular values that count."""
    values = linalg.svdvals(A.detach())
    count = (inverse @ A.detach()).abs().diagonal(0, -2, -1).sum(-1, keepdim=True).round().long()
    above = _C.cat([values[..., :1] * 2 + 1, values], -1).gather(-1, count)
    below = _C.cat([values, _C.zeros_like(values[..., :1])], -1).gather(-1, count)
    return linalg.pinv(A, atol=((above + below) / 2).squeeze(-1))


@_FUNCTIONS("aten::H")
def transposed(self: Tensor) -> Tensor:
    return self.mH if self.dim() > 0 else self


SPECIAL = ("aten::_special_bessel", "aten::_special_polynomial")


def special_function(name: str) -> Function:
    """The function that one of SPECIAL is by what its last argument names. PyTorch has it as an
    operator, so only its name is written."""
    function = getattr(special, name)
    made = f"__torch__.{function.__module__}.{function.__qualname__}"
    return Function(made, Graph(), list(inspect.signature(function).parameters))


# Layers -------------------------------------------------------------------------------------------


@_FUNCTIONS("aten::_lstm_cell")
def lstm_cell(
    entry: Tensor, forget: Tensor, cell: Tensor, output: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor]:
    after = forget.sigmoid() * memory + entry.sigmoid() * cell.tanh()
    return output.sigmoid() * after.tanh(), after


@_FUNCTIONS("aten::_attention")
def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    return scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, scale)


@_FUNCTIONS("aten::_recurrent_layer")
def recurrent_layer(
    input: Tensor, batch_sizes: Tensor | None, hidden: Tensor, memory: Tensor | None,
    weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None, bias_hh: Tensor | None,
    projection: Tensor | None, mode: str, backwards: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """PyTorch has no layer that runs backwards alone: of one in both directions the other half."""
    params = [weight_ih, weight_hh]
    if bias_ih is not None and bias_hh is not None:
        params = params + [bias_ih, bias_hh]
    biased = len(params) == 4
    if projection is not None:
        params = params + [projection]
    start = hidden.unsqueeze(0)
    if backwards:
        params, start = params + params, _C.cat([start, start])
    if mode == "LSTM":
        assert memory is not None
        second = memory.unsqueeze(0)
        if backwards:
            second = _C.cat([second, second])
        if batch_sizes is not None:
            output, last, after = rnn.lstm_packed(
                input, batch_sizes, [start, second], params, biased, 1, 0.0, True, backwards
            )
        else:
            output, last, after = rnn.lstm_padded(
                input, [start, second], params, biased, 1, 0.0, True, backwards, False
            )
        memory = after[-1]
    else:
        memory = hidden.new_zeros([0])
        if batch_sizes is not None:
            if mode == "GRU":
                output, last = rnn.gru_packed(
                    input, batch_sizes, start, params, biased, 1, 0.0, True, backwards
                )
            elif mode == "RNN_TANH":
                output, last = rnn.rnn_tanh_packed(
                    input, batch_sizes, start, params, biased, 1, 0.0, True, backwards
                )
            else:
                output, last = rnn.rnn_relu_packed(
                    input, batch_sizes, start, params, biased, 1, 0.0, True, backwards
                )
        elif mode == "GRU":
            output, last = rnn.gru_padded(
                input, start, params, biased, 1, 0.0, True, backwards, False
            )
        elif mode == "RNN_TANH":
            output, last = rnn.rnn_tanh_padded(
                input, start, params, biased, 1, 0.0, True, backwards, False
            )
        else:
            output, last = rnn.rnn_relu_padded(
                input, start, params, biased, 1, 0.0, True, backwards, False
            )
    if backwards:
        output = output.narrow(-1, last.size(-1), last.size(-1))
    return output, last[-1], memory


@_FUNCTIONS("aten::_bag_sum")
def bag_sum(
    weight: Tensor, indices: Tensor, offsets: Tensor, per_sample_weights: Tensor | None,
    mean: bool, scale_grad_by_freq: bool,
) -> Tensor:  # fmt: skip
    rows = weight.index_select(0, indices)
    if weight.dtype != _C.float64:
        rows = rows.float()
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    bags = _C.searchsorted(offsets, _C.arange(indices.size(0)), right=True) - 1
    result = rows.new_zeros([offsets.size(0), rows.size(1)]).index_add(0, bags, rows)
    if mean:
        sizes = _C.bincount(bags, minlength=offsets.size(0)).clamp_min(1)
        result = result / sizes.unsqueeze(1)
    return result.to(weight.dtype)


@_FUNCTIONS("aten::_cross_entropy_of_chances")
def cross_entropy_of_chances(input: Tensor, target: Tensor) -> Tensor:
    return losses.binary_cross_entropy(input, target, None, 0)


@_FUNCTIONS("aten::_smooth_distance")
def smooth_distance(
    input: Tensor, target: Tensor, beta: float, divisor: float, factor: float
) -> Tensor:
    distance = (input - target).abs()
    near = distance.clamp_max(beta)  # of an infinite one the square would have the slope NaN
    square = near * near * 0.5 / divisor
    return _C.where(distance < beta, square, (distance - beta * 0.5) * factor)


# Transforms ---------------------------------------------------------------------------------------


@_FUNCTIONS("aten::_fft")
def transform(input: Tensor, dim: list[int], sign: int, scale: float) -> Tensor:
    if sign < 0:
        return fft.fftn(input, None, dim) * scale
    return fft.ifftn(input, None, dim, "forward") * scale


@_FUNCTIONS("aten::_fft_half")
def half_transform(input: Tensor, dim: int, scale: float) -> Tensor:
    return fft.rfft(input, None, dim) * scale


@_FUNCTIONS("aten::_fft_real")
def real_transform(input: Tensor, dim: int, n: int, scale: float) -> Tensor:
    return fft.irfft(input, n, dim, "forward") * scale


# Strings ------------------------------------------------------------------------------------------


@_FUNCTIONS("aten::repr.str")
def quoted(text: str) -> str:
    mark = '"' if text.find("'") >= 0 and text.find('"') < 0 else "'"
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    text = text.replace("\r", "\\r")
    return mark + (text if mark == '"' else text.replace("'", "\\'")) + mark


@_FUNCTIONS("aten::mul.str")
def repeated(text: str, count: int) -> str:
    return "".join([text for _ in range(count)])


@_FUNCTIONS("aten::__contains__.str_in")
def contains(text: str, part: str) -> bool:
    return text.find(part) >= 0


@_FUNCTIONS("aten::removeprefix")
def removeprefix(text: str, part: str) -> str:
    return text[len(part) :] if text.startswith(part) else text


@_FUNCTIONS("aten::removesuffix")
def removesuffix(text: str, part: str) -> str:
    ends = len(part) > 0 and text.endswith(part)
    return text[: len(text) - len(part)] if ends else text


# Dtypes and tensors -------------------------------------------------------------------------------


@_FUNCTIONS("aten::is_floating_point.dtype")
def is_floating_point(dtype: _C.dtype) -> bool:
    return (
        dtype == _C.float32 or dtype == _C.float64
        or dtype == _C.float16 or dtype == _C.bfloat16
    )  # fmt: skip


@_FUNCTIONS("aten::is_complex.dtype")
def is_complex(dtype: _C.dtype) -> bool:
    return dtype == _C.complex64 or dtype == _C.complex128


@_FUNCTIONS("aten::get_default_dtype")
def default_dtype() -> _C.dtype:
    return _C.zeros([0]).dtype


@_FUNCTIONS("prim::autocast_now")
def autocast_now() -> _C.dtype | None:
    return get_autocast_dtype("cpu") if is_autocast_cpu_enabled() else None


@_FUNCTIONS("aten::_resample")
def resample(input: Tensor, dim: int, index: Tensor, weight: Tensor) -> Tensor:
    """Sums of entries along a dimension, of those that a row of `index` names."""
    shape = [1 for _ in range(input.dim())]
    shape[dim] = index.size(0)
    result = input.index_select(dim, index.select(1, 0)) * weight.select(1, 0).reshape(shape)
    for tap in range(1, index.size(1)):
        part = input.index_select(dim, index.select(1, tap))
        result = result + part * weight.select(1, tap).reshape(shape)
    return result
