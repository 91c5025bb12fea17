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


def _unary(name: str, kind: str, prepare: Callable[..., Any] = floating, **attributes: int) -> None:
    @mapping(name)
    def run(g: Any, x: Symbol) -> Any:
        prepared = prepare(g, x)
        return x if prepared is None else g.op(kind, prepared[0], **attributes)


for _name, _kind in _FLOATING.items():
    _unary(_name, _kind)
for _name, _kind in _PLAIN.items():
    _unary(_name, _kind, lambda g, x: [x])


for _name, _kind in _WHOLE.items():
    _unary(_name, _kind, lambda g, x: [x] if x.is_floating_point() else None)


mapping("trunc")(
    lambda g, x: g.call("floor", g.op("Abs", x)) * g.op("Sign", x) if x.is_floating_point() else x
)
mapping("frac")(lambda g, x: x - g.call("trunc", x))


@mapping("round.decimals")
def _round_decimals(g: Any, x: Symbol, decimals: int) -> Any:
    scale = 10.0 ** abs(decimals)
    return g.op("Round", x * scale) / scale if decimals >= 0 else g.op("Round", x / scale) * scale


mapping("log2")(lambda g, x: g.call("log", x) * (1 / math.log(2)))
mapping("log10")(lambda g, x: g.call("log", x) * (1 / math.log(10)))
mapping("log1p")(lambda g, x: g.call("log", x + 1))
mapping("exp2")(lambda g, x: g.call("exp", x * math.log(2)))
mapping("expm1")(lambda g, x: g.call("exp", x) - 1)
mapping("erfc")(lambda g, x: 1 - g.call("erf", x))
mapping("rsqrt")(lambda g, x: g.op("Reciprocal", g.call("sqrt", x)))
mapping("deg2rad")(lambda g, x: x * (math.pi / 180))
mapping("rad2deg")(lambda g, x: x * (180 / math.pi))


_unary("isnan", "IsNaN")
_unary("isinf", "IsInf")
_unary("isposinf", "IsInf", detect_negative=0)
_unary("isneginf", "IsInf", detect_positive=0)
mapping("isfinite")(lambda g, x: g.op("Not", g.op("Or", g.call("isnan", x), g.call("isinf", x))))
mapping("signbit")(lambda g, x: g.call("lt", x, 0))


@mapping("_nan_to_num")
def _nan_to_num(g: Any, x: Symbol, nan: Any, posinf: Any, neginf: Any) -> Any:
    for test, value in (("isnan", nan), ("isposinf", posinf), ("isneginf", neginf)):
        x = _where(g, g.call(test, x), value, x)
    return x


# Two and three ------------------------------------------------------------------------------------


_OF_BOOLS = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}


def _binary(name: str, kind: str) -> None:
    @mapping(name)
    def run(g: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
        x, y = common(g, a, b if alpha == 1 else b * alpha)
        return g.op(_OF_BOOLS.get(kind, kind) if x.dtype == weft.bool else kind, x, y)


for _name, _kind in {
    "add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min",
    "clamp_min": "Max", "clamp_max": "Min", "fmax": "Max", "fmin": "Min", "max.other": "Max",
    "min.other": "Min",
}.items():  # fmt: skip
    _binary(_name, _kind)
mapping("rsub")(lambda g, a, b, alpha=1: g.call("sub", b, a, alpha))


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
    return g.op("Div", x - g.op("Mod", x, y), y)


mapping("_div_trunc")(lambda g, a, b: _div(g, a, b, "trunc"))


@mapping("remainder")
def _remainder(g: Any, a: Any, b: Any) -> Any:
    x, y = common(g, a, b)
    if not x.is_floating_point():
        return g.op("Mod", x, y)
    return x - g.op("Floor", x / y) * y


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
    plain = g.op("Atan", y / x)
    turned = _where(g, g.call("lt", y, 0), plain - math.pi, plain + math.pi)
    found = _where(g, g.call("lt", x, 0), turned, plain)
    return _where(g, g.op("And", g.call("eq", x, 0), g.call("eq", y, 0)), 0, found)


mapping("hypot")(lambda g, a, b: g.call("sqrt", a * a + b * b))
mapping("_squared_difference")(lambda g, a, b: g.call("mul", *[a - b] * 2))


@mapping("_smooth_distance")
def _smooth_distance(g: Any, a: Any, b: Any, beta: float, divisor: float, factor: float) -> Any:
    distance = g.op("Abs", a - b)
    square, line = distance * distance * 0.5 / divisor, (distance - 0.5 * beta) * factor
    return _where(g, g.call("lt", distance, beta), square, line)


@mapping("copysign")
def _copysign(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    size, sign = g.op("Abs", x), _where(g, g.call("eq", y, 0), g.op("Reciprocal", y), y)
    return _where(g, g.call("lt", sign, 0), -size, size)


@mapping("heaviside")
def _heaviside(g: Any, x: Symbol, values: Symbol) -> Any:
    x, values = common(g, x, values)
    return _where(g, g.call("eq", x, 0), values, g.cast(g.call("gt", x, 0), x.dtype))


@mapping("sinc")
def _sinc(g: Any, x: Symbol) -> Any:
    turned = x * math.pi
    return _where(g, g.call("eq", x, 0), 1, g.op("Sin", turned) / turned)


mapping("float_power")(
    lambda g, a, b: g.op("Pow", g.cast(a, weft.float64), g.cast(b, weft.float64))
)
mapping("_logit")(lambda g, x: g.call("log", x / (1 - x)))


@mapping("_scales")
def _scales(g: Any, a: Symbol, b: Symbol) -> bool:
    return a.is_floating_point() and not b.is_floating_point() and b.dtype != weft.bool


mapping("_scaled")(lambda g, a, b: g.op("Mul", a, g.op("Pow", like(g, a, 2), g.cast(b, a.dtype))))


mapping("_greatest")(lambda g, dtype: float(weft.finfo(dtype).max))


@mapping("xlogy", "special_xlogy")
def _xlogy(g: Any, a: Any, b: Any) -> Any:
    x, y = floating(g, a, b)
    return _where(g, g.call("eq", x, 0), 0, x * g.op("Log", y))


mapping("special_xlog1py")(lambda g, a, b: _xlogy(g, a, b + 1))
mapping("special_entr")(lambda g, x: _where(g, g.call("lt", x, 0), -math.inf, -_xlogy(g, x, x)))
mapping("logaddexp")(
    lambda g, a, b: g.call("maximum", a, b) + g.call("log1p", g.call("exp", -g.call("abs", a - b)))
)


@mapping("_cross_entropy_of_chances")
def _chances(g: Any, x: Symbol, target: Symbol) -> Any:
    no, yes = (g.call("clamp_min", g.call("log", each), -100) for each in (1 - x, x))
    return (target - 1) * no - target * yes


@mapping("_clamp", "hardtanh")
def _clamp(g: Any, x: Symbol, low: Any = -1, high: Any = 1) -> Any:
    x, low, high = common(g, x, low, high)
    return g.op("Min", g.op("Max", x, low), high)


mapping("lerp")(lambda g, a, b, weight: a + (b - a) * weight)
mapping("addcmul")(lambda g, x, a, b, value=1: x + a * b * value)
mapping("addcdiv")(lambda g, x, a, b, value=1: x + a / b * value)


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


mapping("relu6")(lambda g, x: g.call("hardtanh", x, 0, 6))
mapping("hardsigmoid")(lambda g, x: g.op("HardSigmoid", x, alpha=1 / 6))
mapping("hardswish")(lambda g, x: x * g.op("HardSigmoid", x, alpha=1 / 6))
mapping("_prelu_kernel")(
    lambda g, x, weight: g.op("Where", g.op("Greater", x, like(g, x, 0)), x, x * weight)
)
mapping("_shrink")(
    lambda g, x, lambd, step: g.op("Shrink", x, lambd=float(lambd), bias=float(step))
)
mapping("leaky_relu")(lambda g, x, slope=0.01: g.op("LeakyRelu", x, alpha=slope))


@mapping("elu")
def _elu(g: Any, x: Symbol, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if input_scale == 1:
        made = g.op("Elu", x, alpha=alpha)
    else:
        made = _where(g, g.call("gt", x, 0), x, g.call("expm1", x * input_scale) * alpha)
    return made if scale == 1 else made * scale


mapping("silu")(lambda g, x: x * g.op("Sigmoid", x))


@mapping("_gelu_erf")
def _gelu_erf(g: Any, x: Symbol) -> Any:
    if g.opset >= 20:
        return g.op("Gelu", x)
    return x * 0.5 * (g.op("Erf", x * math.sqrt(0.5)) + 1)


@mapping("_gelu_tanh")
def _gelu_tanh(g: Any, x: Symbol) -> Any:
    if g.opset >= 20:
        return g.op("Gelu", x, approximate="tanh")
    inner = g.op("Tanh", (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))
    return x * 0.5 * (inner + 1)


@mapping("softplus")
def _softplus(g: Any, x: Symbol, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x * beta
    return _where(g, g.call("gt", scaled, threshold), x, g.op("Softplus", scaled) / beta)


mapping("log_sigmoid")(lambda g, x: -g.op("Softplus", -x))
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


mapping("_to_copy")(lambda g, x, dtype=None, *rest: x if dtype is None else g.cast(x, dtype))
mapping("_value_as")(lambda g, x, dtype: g.cast(x, dtype))


@mapping("angle")
def _angle(g: Any, x: Symbol) -> Any:
    (x,) = floating(g, x)
    made = _where(g, g.call("lt", x, 0), like(g, x, math.pi), 0)
    return _where(g, g.call("isnan", x), x, made)


mapping("isreal")(lambda g, x: g.call("ones_like", x, weft.bool))
mapping(
    "clone", "contiguous", "conj_physical", "alias", "detach", "lift_fresh", "positive", "conj",
    "resolve_conj",
)(lambda g, x, *rest: x)  # fmt: skip
