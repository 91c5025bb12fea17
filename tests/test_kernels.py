"""The kernel language and its compiler: arithmetic of every dtype, conversions, row programs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_driver import Machine
from kernel_support import NUMPY, Compiled, apply, pointwise, slots, supported_isas, trace

from weft._kernels import convert, lang, target
from weft._kernels.lang import Unsupported, exp, is_bool, log, rsqrt, where
from weft._kernels.types import (
    BOOL,
    C32,
    C64,
    C128,
    COMPUTE_DTYPES,
    DTYPES,
    F16,
    F32,
    F64,
    I8,
    I32,
    dtype,
)

INTEGERS = [d for d in COMPUTE_DTYPES if d.is_integer]
ORDERED = tuple(d.name for d in COMPUTE_DTYPES if d.kind != "complex")
BEST = supported_isas()[-1]


@pytest.fixture(scope="module", params=supported_isas())
def isa(request: pytest.FixtureRequest) -> str:
    return request.param


def samples(d: Any, n: int = 91, seed: int = 0) -> np.ndarray:
    """Numbers of all sizes, the extreme ones among them. An odd count leaves every tail."""
    rng = np.random.default_rng(seed)
    kind = NUMPY[d.name]
    if d == BOOL:
        return rng.integers(0, 2, n).astype(bool)
    if d.is_integer:
        info = np.iinfo(kind)
        wide = rng.integers(info.min, info.max, n, dtype=kind, endpoint=True)
        small = rng.integers(max(info.min, -5), 6, n).astype(kind)
        x = np.where(rng.random(n) < 0.5, wide, small)
        x[:4] = info.min, info.max, 0, 1
        return rng.permutation(x)
    x = rng.normal(0, 10, n) + (1j * rng.normal(0, 10, n) if d.kind == "complex" else 0)
    return x.astype(kind)


# --- arithmetic ---


@pytest.mark.parametrize("d", COMPUTE_DTYPES, ids=str)
def test_ring_operators(isa: str, d: Any) -> None:
    bodies = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "eq": lambda a, b: a == b}
    if d != BOOL:
        bodies["sub"] = lambda a, b: a - b
    if d.kind != "complex":
        bodies |= {"lt": lambda a, b: a < b, "max": lang.maximum}
    compiled = Compiled({n: pointwise(f, [d, d]) for n, f in bodies.items()}, isa)
    reference = {
        "add": np.add,
        "mul": np.multiply,
        "eq": np.equal,
        "sub": np.subtract,
        "lt": np.less,
        "max": np.maximum,
    }
    x, y = samples(d), samples(d, seed=1)
    y[::7] = x[::7]
    for name in bodies:
        with np.errstate(all="ignore"):
            wanted = reference[name](x, y)
        np.testing.assert_allclose(
            apply(compiled, name, x, y), wanted, rtol=1e-6 if d.kind == "complex" else 0
        )


@pytest.mark.parametrize("d", INTEGERS, ids=str)
def test_integer_division_never_traps(isa: str, d: Any) -> None:
    bodies = {
        "floor": lambda a, b: a // b, "rem": lambda a, b: a % b,
        "trunc": lang.trunc_divide, "fmod": lang.fmod,
    }  # fmt: skip
    compiled = Compiled({n: pointwise(f, [d, d]) for n, f in bodies.items()}, isa)
    x, y = samples(d), samples(d, seed=1)
    info = np.iinfo(x.dtype)
    x[:3], y[:3] = (info.min, info.min, 7), (info.max, 0, 0)
    if d.kind == "int":
        y[0] = -1
    got = {n: apply(compiled, n, x, y) for n in bodies}
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist())):
        if b == 0:
            assert all(v[i] == 0 for v in got.values())
            continue
        exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        wanted = {"floor": a // b, "rem": a % b, "trunc": exact, "fmod": a - exact * b}
        for name, value in wanted.items():
            wrapped = np.array([value & ((1 << d.bits) - 1)], np.uint64).astype(x.dtype)[0]
            assert got[name][i] == wrapped, (name, a, b)


@pytest.mark.parametrize("d", INTEGERS, ids=str)
def test_shifts_are_guarded(isa: str, d: Any) -> None:
    compiled = Compiled(
        {"l": pointwise(lambda a, b: a << b, [d, d]), "r": pointwise(lambda a, b: a >> b, [d, d])},
        isa,
    )
    x = samples(d)
    y = np.arange(x.size).astype(x.dtype) % (d.bits + 9) - (2 if d.kind == "int" else 0)
    y = y.astype(x.dtype)
    left, right = apply(compiled, "l", x, y), apply(compiled, "r", x, y)
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist())):
        valid = 0 <= b < d.bits
        wanted = (a << b) & ((1 << d.bits) - 1) if valid else 0
        assert left[i] == np.array([wanted], np.uint64).astype(x.dtype)[0]
        assert right[i] == (a >> (b if valid else d.bits))


@pytest.mark.parametrize("d", INTEGERS, ids=str)
def test_integer_power_wraps(d: Any) -> None:
    compiled = Compiled({"pow": pointwise(lambda a, b: a**b, [d, d])}, BEST)
    x, y = samples(d), (np.arange(91) % 70).astype(NUMPY[d.name])
    wanted = [pow(a, b, 1 << d.bits) for a, b in zip(x.tolist(), y.tolist())]
    np.testing.assert_array_equal(
        apply(compiled, "pow", x, y), np.array(wanted, np.uint64).astype(x.dtype)
    )


def test_power_by_attribute_takes_the_short_way() -> None:
    """The exponent of the whole call: 2, 3, 0.5 and -1 have loops of their own."""
    compiled = Compiled({"pow": pointwise(lambda a, n: a**n, [F32], [F32])}, BEST)
    x = np.abs(samples(F32))
    for n, wanted in ((2.0, x * x), (0.5, np.sqrt(x)), (-1.0, 1 / x), (3.0, x * (x * x))):
        np.testing.assert_array_equal(
            apply(compiled, "pow", x, scalars=slots(np.float32(n))), wanted
        )
    got = apply(compiled, "pow", x, scalars=slots(np.float32(1.7)))
    np.testing.assert_allclose(got, x.astype(np.float64) ** np.float32(1.7), rtol=1e-7)


def test_bool_is_logic() -> None:
    with pytest.raises(Unsupported):
        pointwise(lambda a, b: a - b, [BOOL, BOOL])
    with pytest.raises(Unsupported):
        pointwise(lambda a: exp(a), [I32])
    assert pointwise(lambda a: a if is_bool(a) else -a, [BOOL]).outputs[0].dtype == BOOL


def test_memory_bools_of_any_value() -> None:
    """Any byte but 0 is true; results are 0 and 1."""
    compiled = Compiled({"and": pointwise(lambda a, b: a & b, [BOOL, BOOL])}, BEST)
    x = np.arange(256, dtype=np.uint8)
    got = apply(compiled, "and", x, np.full(256, 2, np.uint8)).view(np.uint8)
    np.testing.assert_array_equal(got, (x != 0).astype(np.uint8))


def test_numbers_adapt_to_the_operand() -> None:
    assert pointwise(lambda x: where(x > 0, 1, 0), [I8]).outputs[0].dtype == I8
    assert pointwise(lambda x: x * 2 + 1, [F32]).outputs[0].dtype == F32
    with pytest.raises(Unsupported):
        pointwise(lambda x: x * 0.5, [I32])
    with pytest.raises(TypeError, match="where"):
        pointwise(lambda x: 1 if x > 0 else x, [F32])


def test_in_place_and_short_calls(isa: str) -> None:
    """Output and input may be one memory; nothing beyond n elements is touched."""
    compiled = Compiled({"f": pointwise(lambda a, b: a * 2 + b, [F32, F32])}, isa)
    for n in range(40):
        x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
        wanted = np.where(np.arange(64) < n, x * 2 + 1, x)
        compiled.run("f", [x, x, y], n)
        np.testing.assert_array_equal(x, wanted)


def test_unaligned_operands(isa: str) -> None:
    compiled = Compiled({"f": pointwise(lambda a: a + 1, [F32])}, isa)
    memory = np.zeros(1000, np.uint8)
    x = memory[4 : 4 + 4 * 99].view(np.float32)
    compiled.run("f", [x, x], 99)
    np.testing.assert_array_equal(x, np.ones(99, np.float32))


# --- complex ---


@pytest.mark.parametrize("d", [C64, C128], ids=str)
def test_complex_functions(isa: str, d: Any) -> None:
    x, y = samples(d) / 4, samples(d, seed=1) / 4
    cases: dict[str, tuple[Any, Any]] = {
        "div": (lambda a, b: a / b, x / y), "exp": (lambda a, b: exp(a), np.exp(x)),
        "log": (lambda a, b: log(a), np.log(x)), "sqrt": (lambda a, b: lang.sqrt(a), np.sqrt(x)),
        "abs": (lambda a, b: lang.abs(a), np.abs(x)),
        "conj": (lambda a, b: lang.conj(a), np.conj(x)),
        "tanh": (lambda a, b: lang.tanh(a), np.tanh(x)),
        "sin": (lambda a, b: lang.sin(a), np.sin(x)),
        "cos": (lambda a, b: lang.cos(a), np.cos(x)), "square": (lambda a, b: a**2, x * x),
        "imag": (lambda a, b: a.imag, x.imag), "ne": (lambda a, b: a != b, x != y),
        "sinh": (lambda a, b: lang.sinh(a), np.sinh(x)),
        "cosh": (lambda a, b: lang.cosh(a), np.cosh(x)),
        "sigmoid": (lambda a, b: lang.sigmoid(a), 1 / (1 + np.exp(-x))),
        "pow": (lambda a, b: a ** (b / 9), x ** (y / 9)),
    }  # fmt: skip
    compiled = Compiled({n: pointwise(f, [d, d]) for n, (f, _) in cases.items()}, isa)
    for name, (_, wanted) in cases.items():
        rtol = 5e-6 if d == C64 else 1e-13
        np.testing.assert_allclose(apply(compiled, name, x, y), wanted, rtol=rtol, err_msg=name)


# --- conversions ---


def _bits(x: np.ndarray, d: Any) -> np.ndarray:
    """x as elements of `d` in memory: what is too small to compute in by its bits."""
    if d.name == "C32":
        z = x.astype(np.complex64)
        return np.stack([z.real, z.imag], -1).astype(np.float16).view(np.uint32)[..., 0]
    if d.name == "F16":
        return x.astype(np.float16).view(np.uint16)
    if d.name == "BF16":
        raw = x.astype(np.float32).view(np.uint32)
        return ((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16).astype(np.uint16)
    if d.float8 is not None:
        return np.searchsorted(_float8_values(d), x.real.astype(np.float64)).astype(np.uint8)
    return x.astype(NUMPY[d.name])


def _numbers(x: np.ndarray, d: Any) -> np.ndarray:
    if d.name == "C32":
        return x.view(np.float16).astype(np.float32).view(np.complex64)
    if d.name == "F16":
        return x.view(np.float16)
    if d.float8 is not None:
        return _float8_values(d)[x]
    return (x.astype(np.uint32) << 16).view(np.float32) if d.name == "BF16" else x


def _float8_values(d: Any) -> np.ndarray:
    """The finite values from 0 on: a byte is the index."""
    steps = 1 << d.float8.mantissa
    bits = np.arange(d.float8.largest + 1)
    exponent, mantissa = bits // steps, bits % steps
    return (mantissa / steps + (exponent > 0)) * 2.0 ** (np.maximum(exponent, 1) - d.float8.bias)


@pytest.mark.parametrize("to", DTYPES, ids=str)
def test_conversions(isa: str, to: Any) -> None:
    """From every dtype, on numbers that all of them hold."""
    compiled = Compiled({d.name: convert.kernel(to, d) for d in DTYPES}, isa)
    numbers = np.array([0, 1, 2, 3, 5, 96, 112, 0, 64] * 9)
    for old in DTYPES:
        x = _bits(numbers.astype(bool) if old == BOOL else numbers, old)
        held = _numbers(x, old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            wanted = held != 0 if to == BOOL else _numbers(_bits(held, to), to)
        np.testing.assert_array_equal(
            _numbers(apply(compiled, old.name, x), to), wanted, err_msg=str(old)
        )


def test_float_to_integer_is_defined(isa: str) -> None:
    """Truncates; saturates at int32 (int64 for u32, i64 and u64), then wraps; NaN gives 0."""
    x = np.array(
        [1.9, -1.9, np.nan, 1e30, -1e30, np.inf, -np.inf, 300.0, -1.0, 3e9, 2**62, 2.0**63]
    )
    low32, high32, low64, high64 = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
    wide = [1, -1, 0, high64, low64, high64, low64, 300, -1, 3 * 10**9, 2**62, high64]
    narrow = [min(max(v, low32), high32) for v in wide]
    for d in (F32, F64):
        compiled = Compiled({t.name: convert.kernel(t, d) for t in INTEGERS}, isa)
        for to in INTEGERS:
            exact = narrow if to.bits < 32 or to == I32 else wide
            wanted = [v & ((1 << to.bits) - 1) for v in exact]
            got = apply(compiled, to.name, np.tile(x.astype(NUMPY[d.name]), 3))
            if to.name == "U64":  # 2^63 and above are in range here
                wanted, got = wanted[:3] + wanted[7:11] + [2**63], np.delete(got[:12], [3, 4, 5, 6])
            np.testing.assert_array_equal(
                got[: len(wanted)],
                np.array(wanted, np.uint64).astype(NUMPY[to.name]),
                err_msg=f"{d} {to}",
            )


def test_half_rounds_to_nearest_even(isa: str) -> None:
    """All 65536 halves widen exactly, and floats around them round as NumPy rounds them."""
    compiled = Compiled({"to": convert.kernel(F16, F32), "from": convert.kernel(F32, F16)}, isa)
    bits = np.arange(65536, dtype=np.uint16)
    wide = apply(compiled, "from", bits)
    np.testing.assert_array_equal(wide, bits.view(np.float16).astype(np.float32))
    finite = wide[np.isfinite(wide)]
    with np.errstate(over="ignore"):
        around = np.concatenate([np.nextafter(finite, np.float32(s)) for s in (-np.inf, np.inf)])
        middle = (finite.astype(np.float64) + np.roll(finite, 1)).astype(np.float32) / 2
        x = np.concatenate([wide, around, middle, np.float32([65519, 65520, 1e9, 1e-9, -0.0])])
        wanted = x.astype(np.float16)
    got = apply(compiled, "to", x).view(np.float16)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_complex_half_keeps_both_parts(isa: str) -> None:
    compiled = Compiled({"to": convert.kernel(C32, C64), "from": convert.kernel(C64, C32)}, isa)
    bits = np.arange(65536, dtype=np.uint16)
    parts = np.stack([bits, bits[::-1]], -1)
    wide = apply(compiled, "from", parts.view(np.uint32)[:, 0])
    np.testing.assert_array_equal(
        wide.view(np.float32).reshape(-1, 2), parts.view(np.float16).astype(np.float32)
    )
    back = apply(compiled, "to", wide).view(np.float16).reshape(-1, 2)
    np.testing.assert_array_equal(back, parts.view(np.float16))


def test_bfloat16_rounds_to_nearest_even(isa: str) -> None:
    bf16 = dtype("bfloat16")
    compiled = Compiled({"to": convert.kernel(bf16, F32), "from": convert.kernel(F32, bf16)}, isa)
    x = np.float32(
        [1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38, np.inf, -np.inf, 1e-40, -0.0]
    )
    wanted = [1, 1, 1 + 2**-6, 1 + 2**-7, np.inf, np.inf, -np.inf]
    got = apply(compiled, "from", apply(compiled, "to", x))
    np.testing.assert_array_equal(got[:7], np.float32(wanted))
    assert np.isnan(
        apply(compiled, "from", apply(compiled, "to", np.float32([np.nan, -np.nan])))
    ).all()


# --- row programs ---


@dataclass
class Argument:
    name: str
    type: str


@dataclass
class FakeSchema:
    args: list[Argument]


@dataclass
class FakeRow:
    """What the compiler asks of a row of the operator table."""

    id: str
    body: Any
    operands: tuple[str, ...] = ("self",)
    attributes: tuple[str, ...] = ()
    kind: str = "rowwise"
    promotion: str = "common"
    result: tuple[str, ...] = ("compute",)
    dtypes: tuple[str, ...] = ()
    bool_inputs: tuple[str, ...] = ()
    int_inputs: tuple[str, ...] = ()
    attribute_type: str = "float"
    schema: FakeSchema = field(init=False)

    def __post_init__(self) -> None:
        tensors = [Argument(n, "Tensor") for n in self.operands]
        self.schema = FakeSchema(
            tensors + [Argument(n, self.attribute_type) for n in self.attributes]
        )


def softmax(row: Any, self: Any) -> Any:
    m = row.max(self)
    e = row.keep(exp(self - m))
    return e / row.sum(e)


def layer_norm(row: Any, self: Any, weight: Any, bias: Any, eps: Any) -> Any:
    mean = row.sum(self) / row.length
    centred = row.keep(self - mean)
    scale = rsqrt(row.sum(centred * centred) / row.length + eps)
    return centred * scale * weight + bias, mean, scale


def variance(row: Any, self: Any, correction: Any) -> Any:
    mean = row.sum(self) / row.length
    return row.sum((self - mean) ** 2) / (row.length - correction)


FLOATS = ("float32", "float64")
SOFTMAX = FakeRow("softmax", softmax, dtypes=FLOATS)
LAYER_NORM = FakeRow(
    "layer_norm",
    layer_norm,
    ("self", "weight", "bias"),
    ("eps",),
    result=("compute",) * 3,
    dtypes=FLOATS,
)
VAR = FakeRow(
    "var", variance, attributes=("correction",), kind="reduce", dtypes=FLOATS, attribute_type="int"
)


@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize("d", [F32, F64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 64), (5, 300)])
def test_normalisations(isa: str, shape: tuple[int, int], d: Any, vertical: bool) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(0, 3, shape).astype(NUMPY[d.name]) for _ in range(3))
    rtol = 2e-5 if d == F32 else 1e-12
    (got,) = Machine(trace(SOFTMAX), d, isa).run([x], vertical=vertical)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=rtol)
    machine = Machine(trace(LAYER_NORM), d, isa)
    got, mean, scale = machine.run([x, w, b], (NUMPY[d.name](1e-5),), vertical)
    centred = x - x.mean(1, keepdims=True)
    wanted = 1 / np.sqrt((centred**2).mean(1) + 1e-5)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(scale, wanted, rtol=rtol)
    np.testing.assert_allclose(got, centred * wanted[:, None] * w + b, rtol=1e-3, atol=1e-4)
    if shape[1] > 1:
        (got,) = Machine(trace(VAR), d, isa).run([x], (np.int64(1),), vertical)
        np.testing.assert_allclose(got, x.var(1, ddof=1), rtol=rtol)


def test_shape_of_softmax() -> None:
    """Three passes; e is kept between the second and the third; the result is a tile."""
    program = trace(SOFTMAX)
    assert program.first.passes == [(0, 1), (1, 2), (3, 1)]
    kinds = [(s.kind, s.kept, s.per_row) for s in program.first.slots]
    assert kinds == [
        ("Input", False, False), ("Output", False, False), ("Row", False, False),
        ("Row", False, False), ("Tile", True, False),
    ]  # fmt: skip
    assert program.slot_types == ["Compute"] * 5
    assert not program.first.needs_elements


@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize("d", COMPUTE_DTYPES, ids=str)
def test_reductions(d: Any, vertical: bool) -> None:
    x = samples(d, 3 * 201).reshape(3, 201)
    x[:, 20] = x[:, 150] = x[:, 7]
    cases: dict[str, tuple[Any, Any]] = {"any": ("bool", np.any), "all": ("bool", np.all)}
    if d != BOOL:
        cases["sum"] = ("compute", lambda v, axis: v.sum(axis, dtype=v.dtype))
    if d.kind != "complex":
        cases |= {"max": ("compute", np.max), "min": ("compute", np.min)}
        cases |= {"argmax": ("int64", np.argmax), "argmin": ("int64", np.argmin)}
    for name, (result, reference) in cases.items():
        body = lambda row, self, name=name: getattr(row, name)(self)  # noqa: E731
        promotion = "sum" if name == "sum" else "common"
        ordered = name in ("max", "min", "argmax", "argmin")
        row = FakeRow(name, body, kind="reduce", result=(result,), promotion=promotion)
        row.dtypes = ORDERED if ordered else ()
        program = trace(row)
        assert program.uses_position == name.startswith("arg")
        assert program.first.needs_elements == (name in ("max", "min", "argmax", "argmin"))
        (got,) = Machine(program, d, BEST).run([x], vertical=vertical)
        with np.errstate(over="ignore"):
            wanted = reference(x, axis=1)
        np.testing.assert_allclose(
            got, wanted, rtol=1e-4, atol=1e-4 if d.kind in ("float", "complex") else 0
        )


@pytest.mark.parametrize("vertical", [False, True])
def test_extremes_of_nan_and_ties(isa: str, vertical: bool) -> None:
    nan, inf = np.nan, np.inf
    x = np.tile(
        np.float32([[1, 5, 5, 2], [nan, 1, nan, 2], [-inf] * 4, [3, nan, 9, 9], [inf] * 4]), (1, 23)
    )
    x[0] = np.arange(x.shape[1]) % 40 // 39 + x[0]
    row = FakeRow(
        "max",
        lambda row, self: row.max_with_index(self),
        kind="reduce",
        result=("compute", "int64"),
        dtypes=FLOATS,
    )
    value, index = Machine(trace(row), F32, isa).run([x], vertical=vertical)
    np.testing.assert_array_equal(value, x.max(1))
    np.testing.assert_array_equal(index, np.argmax(x, 1))


def test_long_sums_keep_their_digits() -> None:
    """Many accumulators: 64K floats of one sign to better than 1e-6."""
    program = trace(FakeRow("sum", lambda row, self: row.sum(self), kind="reduce", promotion="sum"))
    x = np.random.default_rng(0).random((1, 65536)).astype(np.float32)
    (got,) = Machine(program, F32, BEST).run([x], tile=512)
    np.testing.assert_allclose(got, x.astype(np.float64).sum(1), rtol=1e-6)


def test_position_and_length() -> None:
    def body(row: Any, self: Any) -> Any:
        last = row.position == row.length - 1
        return row.sum(where(last, self, 0)), self + row.position

    row = FakeRow("last", body, result=("compute", "compute"), dtypes=("int32", "float64"))
    x = samples(I32, 2 * 77).reshape(2, 77)
    for vertical in (False, True):
        last, shifted = Machine(trace(row), I32, BEST).run([x], vertical=vertical)
        np.testing.assert_array_equal(last, x[:, -1])
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(shifted, x + np.arange(77, dtype=np.int32))


def test_row_values_are_computed_once_a_row() -> None:
    """sum / length is a row slot: no kernel of a tile divides."""
    program = trace(LAYER_NORM)
    per_row = [s for s in program.first.steps if "horizontal" not in s.kernels]
    assert len(per_row) == 2 and all(set(s.kernels) == {"vertical"} for s in per_row)


@pytest.mark.parametrize("vertical", [False, True])
def test_operands_of_one_value_a_row(vertical: bool) -> None:
    def body(row: Any, self: Any, weight: Any) -> Any:
        scale = row.value(weight)
        first, second = row.sum(self * scale), row.sum(self * (scale * scale))
        return self * (second * scale), first, scale + 1

    made = FakeRow("scaled", body, ("self", "weight"), result=("compute",) * 3, dtypes=("int32",))
    program = trace(made)
    rng = np.random.default_rng(0)
    x, w = rng.integers(-9, 9, (5, 77), np.int32), rng.integers(-9, 9, 5, np.int32)
    got, first, more = Machine(program, I32, BEST).run([x, w], vertical=vertical)
    np.testing.assert_array_equal(got, x * (x.sum(1) * w**3)[:, None])
    np.testing.assert_array_equal(first, x.sum(1) * w)
    np.testing.assert_array_equal(more, w + 1)


def test_a_body_without_any_dtype_is_an_error() -> None:
    with pytest.raises(ValueError, match="broken"):
        trace(FakeRow("broken", lambda self: exp(self), kind="pointwise", dtypes=("int32",)))


def test_a_dtype_that_a_row_admits_and_its_body_does_not_is_an_error() -> None:
    def body(row: Any, self: Any) -> Any:
        return row.max(self)

    text = r"gap: expected a body defined for every dtype the row admits .*, got \['C64: .*'C128: "
    with pytest.raises(ValueError, match=text):
        trace(FakeRow("gap", body, kind="reduce"))
    trace(FakeRow("no_gap", body, kind="reduce", dtypes=ORDERED))


def test_targets() -> None:
    names = [t.name for t in target.targets(["v2", "v3", "v4"])]
    assert names == (["v2", "v3", "v4"] if target.is_x86() else ["neon"])


# --- the table ---


def test_every_row_of_the_table_makes_a_program() -> None:
    """Also the limits of csrc/ops/tile.h hold: operands of a step, and one text for each symbol."""
    from weft import _ops
    from weft._kernels import aot
    from weft._kernels.program import MAX_OPERANDS

    work = aot.job(_ops.load())
    assert len(work.conversions) == len(DTYPES) ** 2
    assert len(work.programs) == sum(row.is_program for row in _ops.load())
    for program in work.programs:
        for step in program.first.steps:
            reads = 0 if step.states else len(step.row_reads)
            assert len(step.operands) + reads <= MAX_OPERANDS, program.row.id
    text = work.source(["v2"])
    for program in work.programs:
        assert f"const Program {program.row.id}{{" in text


def test_only_objects_whose_text_changed_are_compiled(tmp_path: Path) -> None:
    from weft._kernels import aot

    def update(*rows: FakeRow) -> list[str]:
        work = aot.Job()
        for row in rows:
            work.add(row)
        return aot.update_objects(work, tmp_path, ["v3"], 1)

    (level,) = target.targets(["v3"])
    other = FakeRow("other", lambda self: self + self, kind="pointwise")
    before = FakeRow("changing", lambda self: self * self, kind="pointwise")
    after = FakeRow("changing", lambda self: self * self * self, kind="pointwise")
    assert aot.shard_of(before) != aot.shard_of(other)
    assert sorted(update(other, before)) == sorted(aot.object_names(["v3"]))
    assert update(other, before) == []
    assert update(other, after) == [aot.object_name(aot.shard_of(after), level)]
    (tmp_path / aot.object_name(aot.shard_of(other), level)).unlink()
    (tmp_path / aot.FOLDER / "of_old.o").touch()
    assert update(other, after) == [aot.object_name(aot.shard_of(other), level)]
    assert not (tmp_path / aot.FOLDER / "of_old.o").exists()
