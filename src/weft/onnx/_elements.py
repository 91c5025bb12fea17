"""Operators on elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft._runtime.public import weft
from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping

_FLOATS = (weft.float32, weft.float64, weft.float16, weft.bfloat16)


def common(g: Any, *args: Any) -> list[Symbol]:
    """All in the dtype of their arithmetic."""
    dtype = g.promote(*args)
    return [g.cast(each, dtype) for each in args]


def floating(g: Any, *args: Any) -> list[Symbol]:
    """All in the floating dtype of their arithmetic."""
    dtype = g.promote(*args)
    kept = dtype if dtype in _FLOATS else weft.get_default_dtype()
    return [g.cast(each, kept) for each in args]


def like(g: Any, x: Symbol, number: Any) -> Any:
    """A number in the dtype of a tensor."""
    return g.cast(number, x.dtype)


# One operand --------------------------------------------------------------------------------------

_FLOATING = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log",
    "reciprocal": "Reciprocal", "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt",
    "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_PLAIN = {"abs": "Abs", "neg": "Neg", "sign": "Sign", "sgn": "Sign"}
_WHOLE = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}  # of integers, nothing


def _unary(name: str, kind: str, prepare: Callable[..., Any]) -> None:
    @mapping(name)
    def run(g: Any, x: Symbol) -> Any:
        return g.op(kind, prepare(g, x)[0])


for _name, _kind in _FLOATING.items():
    _unary(_name, _kind, floating)
for _name, _kind in _PLAIN.items():
    _unary(_name, _kind, lambda g, x: [x])


def _rounding(name: str, kind: str) -> None:
    @mapping(name)
    def run(g: Any, x: Symbol) -> Any:
        return g.op(kind, x) if x.is_floating_point() else x


for _name, _kind in _WHOLE.items():
    _rounding(_name, _kind)


mapping("trunc")(
    lambda g, x: (
        x
        if not x.is_floating_point()
        else g.op("Mul", g.op("Floor", g.op("Abs", x)), g.op("Sign", x))
    )
)
mapping("frac")(lambda g, x: g.op("Sub", x, g.call("trunc", x)))


@mapping("round.decimals")
def _round_decimals(g: Any, x: Symbol, decimals: int) -> Any:
    scale = like(g, x, 10.0 ** abs(decimals))
    ops = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    return g.op(ops[1], g.op("Round", g.op(ops[0], x, scale)), scale)


def _scaled(name: str, kind: str, factor: float, before: bool) -> None:
    """kind(x) * factor, or kind(x * factor)."""

    @mapping(name)
    def run(g: Any, x: Symbol) -> Any:
        (x,) = floating(g, x)
        scale = like(g, x, factor)
        return g.op(kind, g.op("Mul", x, scale)) if before else g.op("Mul", g.op(kind, x), scale)


for _name, _kind, _factor, _before in (
    ("log2", "Log", 1 / math.log(2), False), ("log10", "Log", 1 / math.log(10), False),
    ("exp2", "Exp", math.log(2), True), ("deg2rad", "Identity", math.pi / 180, False),
    ("rad2deg", "Identity", 180 / math.pi, False),
):  # fmt: skip
    _scaled(_name, _kind, _factor, _before)


@mapping("log1p")
def _log1p(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    return g.op("Log", g.op("Add", x, like(g, x, 1)))


@mapping("expm1")
def _expm1(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    return g.op("Sub", g.op("Exp", x), like(g, x, 1))


@mapping("erfc")
def _erfc(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    return g.op("Sub", like(g, x, 1), g.op("Erf", x))


@mapping("rsqrt")
def _rsqrt(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    return g.op("Reciprocal", g.op("Sqrt", x))


@mapping("isnan")
def _isnan(g: Any, x: Symbol) -> Any:
    return g.op("IsNaN", floating(g, x)[0])


@mapping("isinf")
def _isinf(g: Any, x: Symbol) -> Any:
    return g.op("IsInf", floating(g, x)[0])


@mapping("isposinf")
def _isposinf(g: Any, x: Symbol) -> Any:
    return g.op("IsInf", floating(g, x)[0], detect_negative=0)


@mapping("isneginf")
def _isneginf(g: Any, x: Symbol) -> Any:
    return g.op("IsInf", floating(g, x)[0], detect_positive=0)


mapping("isfinite")(lambda g, x: g.op("Not", g.op("Or", _isnan(g, x), _isinf(g, x))))
mapping("signbit")(lambda g, x: g.op("Less", x, like(g, x, 0)))


@mapping("_nan_to_num")
def _nan_to_num(g: Any, x: Symbol, nan: Any, posinf: Any, neginf: Any) -> Any:
    made = g.op("Where", _isnan(g, x), like(g, x, nan), x)
    made = g.op("Where", _isposinf(g, x), like(g, x, posinf), made)
    return g.op("Where", _isneginf(g, x), like(g, x, neginf), made)


# Two and three ------------------------------------------------------------------------------------


def _binary(name: str, kind: str, scaled: bool = False, reverse: bool = False) -> None:
    @mapping(name)
    def run(g: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
        if scaled and alpha != 1:
            b = b * alpha if not isinstance(b, Symbol) else g.call("mul.Scalar", b, alpha)
            a = g.cast(a, g.promote(a, b)) if isinstance(a, Symbol) else a
        x, y = common(g, b, a) if reverse else common(g, a, b)
        if x.dtype == weft.bool and kind in ("Add", "Mul"):
            return g.op("Or" if kind == "Add" else "And", x, y)
        return g.op(kind, x, y)


_binary("add", "Add", scaled=True)
_binary("sub", "Sub", scaled=True)
_binary("mul", "Mul")


mapping("rsub")(
    lambda g, a, b, alpha=1: g.op(
        "Sub", *common(g, b, a if alpha == 1 else g.call("mul.Scalar", a, alpha))
    )
)


@mapping("div")
def _div(g: Any, a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return g.call("floor_divide", a, b)
    if rounding_mode == "trunc":
        x, y = common(g, a, b)
        return g.call("trunc", g.op("Div", x, y))
    return g.op("Div", *floating(g, a, b))


@mapping("floor_divide")
def _floor_divide(g: Any, a: Any, b: Any) -> Any:
    x, y = common(g, a, b)
    if x.is_floating_point():
        return g.op("Floor", g.op("Div", x, y))
    return g.op("Div", g.op("Sub", x, g.op("Mod", x, y)), y)


@mapping("_div_trunc")
def _div_trunc(g: Any, a: Any, b: Any) -> Any:
    return _div(g, a, b, "trunc")


@mapping("remainder")
def _remainder(g: Any, a: Any, b: Any) -> Any:
    x, y = common(g, a, b)
    if not x.is_floating_point():
        return g.op("Mod", x, y)
    return g.op("Sub", x, g.op("Mul", g.op("Floor", g.op("Div", x, y)), y))


mapping("fmod")(lambda g, a, b: g.op("Mod", *common(g, a, b), fmod=1))


@mapping("pow")
def _pow(g: Any, a: Any, b: Any) -> Any:
    dtype = g.promote(a, b)
    if not isinstance(b, Symbol) and b == 2 and isinstance(a, Symbol):
        return g.op("Mul", a, a)
    if not isinstance(b, Symbol) and b == 0.5 and dtype in _FLOATS:
        return g.op("Sqrt", g.cast(a, dtype))
    return g.op("Pow", g.cast(a, dtype), g.cast(b, dtype))


@mapping("atan2")
def _atan2(g: Any, a: Any, b: Any) -> Any:
    y, x = floating(g, a, b)
    plain = g.op("Atan", g.op("Div", y, x))
    zero, half = like(g, x, 0), like(g, x, math.pi)
    below = g.op("Where", g.op("Less", y, zero), g.op("Sub", plain, half), g.op("Add", plain, half))
    found = g.op("Where", g.op("Less", x, zero), below, plain)
    return g.op("Where", g.op("And", g.op("Equal", x, zero), g.op("Equal", y, zero)), zero, found)


@mapping("hypot")
def _hypot(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    return g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y)))


@mapping("_squared_difference")
def _squared_difference(g: Any, a: Symbol, b: Symbol) -> Any:
    gap = g.op("Sub", *common(g, a, b))
    return g.op("Mul", gap, gap)


@mapping("copysign")
def _copysign(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    size = g.op("Abs", x)
    below = g.op(
        "Less", g.op("Where", g.call("eq.Scalar", y, 0), g.op("Reciprocal", y), y), like(g, y, 0)
    )
    return g.op("Where", below, g.op("Neg", size), size)


@mapping("heaviside")
def _heaviside(g: Any, x: Symbol, values: Symbol) -> Any:
    x, values = common(g, x, values)
    step = g.cast(g.op("Greater", x, like(g, x, 0)), x.dtype)
    return g.op("Where", g.op("Equal", x, like(g, x, 0)), values, step)


@mapping("sinc")
def _sinc(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    turned = g.op("Mul", x, like(g, x, math.pi))
    return g.op(
        "Where", g.call("eq.Scalar", x, 0), like(g, x, 1), g.op("Div", g.op("Sin", turned), turned)
    )


mapping("float_power")(
    lambda g, a, b: g.op("Pow", g.cast(a, weft.float64), g.cast(b, weft.float64))
)


@mapping("_logit")
def _logit(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    return g.op("Log", g.op("Div", x, g.op("Sub", like(g, x, 1), x)))


@mapping("_scales")
def _scales(g: Any, a: Symbol, b: Symbol) -> bool:
    return a.is_floating_point() and not b.is_floating_point() and b.dtype != weft.bool


mapping("_scaled")(lambda g, a, b: g.op("Mul", a, g.op("Pow", like(g, a, 2), g.cast(b, a.dtype))))


@mapping("_greatest")
def _greatest(g: Any, dtype: Any) -> float:
    return float(weft.finfo(dtype).max)


@mapping("xlogy", "special_xlogy")
def _xlogy(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    return g.op(
        "Where", g.op("Equal", x, like(g, x, 0)), like(g, x, 0), g.op("Mul", x, g.op("Log", y))
    )


@mapping("special_xlog1py")
def _xlog1py(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    return _xlogy(g, x, g.op("Add", y, like(g, y, 1)))


@mapping("special_entr")
def _entr(g: Any, x: Symbol) -> Any:
    made = g.op("Neg", _xlogy(g, x, x))
    return g.op("Where", g.call("lt.Scalar", x, 0), like(g, made, -math.inf), made)


@mapping("logaddexp")
def _logaddexp(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    gap = g.op("Neg", g.op("Abs", g.op("Sub", x, y)))
    return g.op("Add", g.op("Max", x, y), g.call("log1p", g.op("Exp", gap)))


def _extremum(name: str, kind: str) -> None:
    @mapping(name)
    def run(g: Any, a: Any, b: Any) -> Any:
        x, y = common(g, a, b)
        if x.dtype == weft.bool:
            return g.op("Or" if kind == "Max" else "And", x, y)
        return g.op(kind, x, y)


for _name, _kind in {
    "maximum": "Max", "minimum": "Min", "clamp_min": "Max", "clamp_max": "Min", "fmax": "Max",
    "fmin": "Min", "max.other": "Max", "min.other": "Min",
}.items():  # fmt: skip
    _extremum(_name, _kind)


@mapping("clamp", "_clamp")
def _clamp(g: Any, x: Symbol, low: Any = None, high: Any = None) -> Any:
    dtype = g.promote(*(each for each in (x, low, high) if each is not None))
    made = g.cast(x, dtype)
    made = made if low is None else g.op("Max", made, g.cast(low, dtype))
    return made if high is None else g.op("Min", made, g.cast(high, dtype))


@mapping("lerp")
def _lerp(g: Any, a: Symbol, b: Symbol, weight: Any) -> Any:
    x, y, w = common(g, a, b, weight)
    return g.op("Add", x, g.op("Mul", w, g.op("Sub", y, x)))


mapping("addcmul")(
    lambda g, x, a, b, value=1: g.call(
        "add.Tensor", x, g.call("mul.Scalar", g.call("mul.Tensor", a, b), value), 1
    )
)
mapping("addcdiv")(
    lambda g, x, a, b, value=1: g.call(
        "add.Tensor", x, g.call("mul.Scalar", g.call("div.Tensor", a, b), value), 1
    )
)


# Comparison and logic -----------------------------------------------------------------------------


def _comparison(name: str, kind: str, negated: bool = False) -> None:
    @mapping(name)
    def run(g: Any, a: Any, b: Any) -> Any:
        x, y = common(g, a, b)
        if x.dtype == weft.bool and kind != "Equal":
            x, y = g.cast(x, weft.int32), g.cast(y, weft.int32)
        made = g.op(kind, x, y)
        return g.op("Not", made) if negated else made


for _name, _kind, _negated in (
    ("eq", "Equal", False), ("ne", "Equal", True), ("lt", "Less", False),
    ("le", "LessOrEqual", False), ("gt", "Greater", False), ("ge", "GreaterOrEqual", False),
):  # fmt: skip
    _comparison(_name, _kind, _negated)


def _logical(name: str, kind: str) -> None:
    @mapping(f"logical_{name}")
    def run(g: Any, a: Any, b: Any) -> Any:
        return g.op(kind, g.cast(a, weft.bool), g.cast(b, weft.bool))

    @mapping(f"bitwise_{name}", f"__{name}__.Tensor", f"__{name}__.Scalar")
    def run_bits(g: Any, a: Any, b: Any) -> Any:
        x, y = common(g, a, b)
        if x.dtype == weft.bool:
            return g.op(kind, x, y)
        if g.opset < 18:
            raise ValueError(f"bitwise_{name}: expected opset 18 for {x.dtype}, got {g.opset}")
        return g.op(f"Bitwise{kind}", x, y)


for _name, _kind in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _logical(_name, _kind)


mapping("logical_not")(lambda g, x: g.op("Not", g.cast(x, weft.bool)))


@mapping("bitwise_not")
def _bitwise_not(g: Any, x: Symbol) -> Any:
    if x.dtype == weft.bool:
        return g.op("Not", x)
    is_signed = x.dtype is not None and x.dtype.is_signed
    return g.op("Sub", like(g, x, -1), x) if is_signed else g.op("BitwiseNot", x)


@mapping("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(g: Any, condition: Symbol, a: Any, b: Any) -> Any:
    x, y = common(g, a, b)
    return g.op("Where", g.cast(condition, weft.bool), x, y)


mapping("masked_fill")(lambda g, x, mask, value: g.op("Where", mask, like(g, x, value), x))


# Activations --------------------------------------------------------------------------------------


mapping("relu")(
    lambda g, x: g.op("Relu", x) if x.is_floating_point() else g.op("Max", x, like(g, x, 0))
)


@mapping("threshold_backward", "_hits")
def _none(g: Any, *args: Any) -> Any:
    raise ValueError("export: expected a program without gradients, got one that computes them")


mapping("hardtanh")(lambda g, x, low=-1, high=1: _clamp(g, x, low, high))
mapping("leaky_relu")(lambda g, x, slope=0.01: g.op("LeakyRelu", x, alpha=slope))


@mapping("elu")
def _elu(g: Any, x: Symbol, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if input_scale != 1:
        grown = g.call("expm1", g.op("Mul", x, like(g, x, input_scale)))
        small = g.op("Mul", grown, like(g, x, alpha))
        made = g.op("Where", g.op("Greater", x, like(g, x, 0)), x, small)
    else:
        made = g.op("Elu", x, alpha=alpha)
    return made if scale == 1 else g.op("Mul", made, like(g, x, scale))


mapping("silu")(lambda g, x: g.op("Mul", x, g.op("Sigmoid", x)))


@mapping("_gelu_erf")
def _gelu_erf(g: Any, x: Symbol) -> Any:
    if g.opset >= 20:
        return g.op("Gelu", x)
    inner = g.op("Erf", g.op("Mul", x, like(g, x, math.sqrt(0.5))))
    half = g.op("Mul", x, like(g, x, 0.5))
    return g.op("Mul", half, g.op("Add", inner, like(g, x, 1)))


@mapping("_gelu_tanh")
def _gelu_tanh(g: Any, x: Symbol) -> Any:
    if g.opset >= 20:
        return g.op("Gelu", x, approximate="tanh")
    cube = g.op("Mul", g.op("Mul", x, g.op("Mul", x, x)), like(g, x, 0.044715))
    inner = g.op("Tanh", g.op("Mul", g.op("Add", x, cube), like(g, x, math.sqrt(2 / math.pi))))
    return g.op("Mul", g.op("Mul", x, like(g, x, 0.5)), g.op("Add", inner, like(g, x, 1)))


@mapping("softplus")
def _softplus(g: Any, x: Symbol, beta: Any = 1, threshold: Any = 20) -> Any:
    scale = like(g, x, beta)
    made = g.op("Div", g.op("Softplus", g.op("Mul", x, scale)), scale)
    return g.op("Where", g.op("Greater", g.op("Mul", x, scale), like(g, x, threshold)), x, made)


mapping("log_sigmoid")(lambda g, x: g.op("Neg", g.op("Softplus", g.op("Neg", x))))
mapping("softmax.int")(lambda g, x, dim, dtype=None: _along("Softmax", g, x, dim, dtype))
mapping("log_softmax.int")(lambda g, x, dim, dtype=None: _along("LogSoftmax", g, x, dim, dtype))


def _along(kind: str, g: Any, x: Symbol, dim: int, dtype: Any) -> Any:
    x = x if dtype is None else g.cast(x, dtype)
    if x.sizes == ():
        return g.squeeze(g.op(kind, g.unsqueeze(x, 0), axis=0), 0)
    return g.op(kind, x, axis=dim)


@mapping("dropout")
def _dropout(g: Any, x: Symbol, p: float, train: Any) -> Any:
    if not train:
        return x
    return g.op("Dropout", x, g.constant(float(p)), g.constant(True))


# dtypes -------------------------------------------------------------------------------------------


@mapping("to.dtype", "to.device", "to.dtype_layout", "_to_copy", "type_as", "to.other")
def _to(g: Any, x: Symbol, *args: Any) -> Any:
    wanted = next((a for a in args if isinstance(a, weft.dtype)), None)
    other = next((a for a in args if isinstance(a, Symbol)), None)
    wanted = other.dtype if other is not None else wanted
    return x if wanted is None else g.cast(x, wanted)


@mapping("_value_as")
def _value_as(g: Any, x: Symbol, dtype: Any) -> Any:
    return g.cast(x, dtype)


@mapping("angle")
def _angle(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    made = g.op("Where", g.call("lt.Scalar", x, 0), like(g, x, math.pi), like(g, x, 0))
    return g.op("Where", _isnan(g, x), x, made)


mapping("isreal")(lambda g, x: g.call("ones_like", x, weft.bool))
mapping(
    "clone",
    "contiguous",
    "conj_physical",
    "alias",
    "detach",
    "lift_fresh",
    "positive",
    "conj",
    "resolve_conj",
)(lambda g, x, *rest: x)
