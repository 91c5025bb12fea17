"""weft.array_api: the Array API standard 2025.12, function by function. NumPy's own namespace follows
the standard too: values, dtypes and shapes of the cases are compared with it."""

import array
import cmath
import inspect
import itertools
import math
import subprocess
import sys
import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.array_api import make_strategies_namespace

import weft
from weft import array_api

#: the functions and names of the standard
STANDARD = [
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "linalg.cholesky",
    "linalg.cross",
    "linalg.det",
    "linalg.diagonal",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.inv",
    "linalg.matmul",
    "linalg.matrix_norm",
    "linalg.matrix_power",
    "linalg.matrix_rank",
    "linalg.matrix_transpose",
    "linalg.outer",
    "linalg.pinv",
    "linalg.qr",
    "linalg.slogdet",
    "linalg.solve",
    "linalg.svd",
    "linalg.svdvals",
    "linalg.tensordot",
    "linalg.trace",
    "linalg.vecdot",
    "linalg.vector_norm",
    "fft.fft",
    "fft.ifft",
    "fft.fftn",
    "fft.ifftn",
    "fft.rfft",
    "fft.irfft",
    "fft.rfftn",
    "fft.irfftn",
    "fft.hfft",
    "fft.ihfft",
    "fft.fftfreq",
    "fft.rfftfreq",
    "fft.fftshift",
    "fft.ifftshift",
]


def found(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


@pytest.mark.parametrize("name", STANDARD)
def test_is_there(name):
    assert found(array_api, name) is not None or name == "newaxis"
    assert name.partition(".")[0] in array_api.__all__


def check(call):
    """The call gives NumPy's values, dtypes and shapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            theirs = call(np)
    compare(call(array_api), theirs)


def compare(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            compare(one, other)
        return
    if not isinstance(ours, weft.Tensor):
        assert ours == theirs
        return
    theirs = np.asarray(theirs)
    assert str(ours.dtype) == f"torch.{theirs.dtype}"
    assert tuple(ours.shape) == theirs.shape
    if theirs.dtype.kind in "fc":
        tolerance = (
            2e-5 if theirs.dtype.itemsize // (1 + theirs.dtype.kind.count("c")) < 8 else 1e-12
        )
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(ours.numpy(), theirs)


# ---- functions of elements ----

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
REAL, NUMERIC = INTEGERS + FLOATS, INTEGERS + FLOATS + COMPLEX
EVERY, INEXACT = ["bool", *NUMERIC], FLOATS + COMPLEX

UNARY = {
    "abs": NUMERIC, "acos": INEXACT, "acosh": INEXACT, "asin": INEXACT, "asinh": INEXACT,
    "atan": INEXACT, "atanh": INEXACT, "bitwise_invert": ["bool", *INTEGERS], "ceil": REAL,
    "conj": NUMERIC, "cos": INEXACT, "cosh": INEXACT, "exp": INEXACT, "expm1": INEXACT,
    "floor": REAL, "imag": COMPLEX, "isfinite": NUMERIC, "isinf": NUMERIC, "isnan": NUMERIC,
    "log": INEXACT, "log10": INEXACT, "log1p": INEXACT, "log2": INEXACT, "logical_not": ["bool"],
    "negative": NUMERIC, "positive": NUMERIC, "real": NUMERIC, "reciprocal": INEXACT,
    "round": NUMERIC, "sign": NUMERIC, "signbit": FLOATS, "sin": INEXACT, "sinh": INEXACT,
    "sqrt": INEXACT, "square": NUMERIC, "tan": INEXACT, "tanh": INEXACT, "trunc": REAL,
}  # fmt: skip
BINARY = {
    "add": NUMERIC, "atan2": FLOATS, "bitwise_and": ["bool", *INTEGERS],
    "bitwise_left_shift": INTEGERS, "bitwise_or": ["bool", *INTEGERS],
    "bitwise_right_shift": INTEGERS, "bitwise_xor": ["bool", *INTEGERS], "copysign": FLOATS,
    "divide": INEXACT, "equal": EVERY, "floor_divide": REAL, "greater": REAL,
    "greater_equal": REAL, "hypot": FLOATS, "less": REAL, "less_equal": REAL, "logaddexp": FLOATS,
    "logical_and": ["bool"], "logical_or": ["bool"], "logical_xor": ["bool"], "maximum": REAL,
    "minimum": REAL, "multiply": NUMERIC, "nextafter": FLOATS, "not_equal": EVERY, "pow": NUMERIC,
    "remainder": REAL, "subtract": NUMERIC,
}  # fmt: skip
VALUES = np.array([[0.25, 2.0, 1.5], [3.0, 0.5, 0.75]])


def data(dtype, flip=False):
    values = VALUES[:, ::-1] if flip else VALUES
    if dtype.startswith("complex"):
        values = values + 1j * values.T.reshape(2, 3)
    return np.ceil(values).astype(dtype) if dtype in ["bool", *INTEGERS] else values.astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in UNARY for d in UNARY[n]])
def test_unary(name, dtype):
    check(lambda xp: getattr(xp, name)(xp.asarray(data(dtype))))
    check(lambda xp: getattr(xp, name)(xp.asarray(data(dtype)[:0])))


def _pairs(dtypes):
    """Pairs of dtypes that the standard promotes: of one kind, integers of both signs too."""
    for one, other in itertools.product(dtypes, dtypes):
        both = {one, other}
        kinds = {d.rstrip("0123456789").removeprefix("u") for d in both}
        mixed = "uint64" in both and bool(both & {"int8", "int16", "int32", "int64"})
        if (len(kinds) == 1 or kinds == {"float", "complex"}) and not mixed:
            yield one, other


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    for one, other in _pairs(BINARY[name]):
        check(lambda xp: getattr(xp, name)(xp.asarray(data(one)), xp.asarray(data(other, True))))  # noqa: B023
        first, second = (
            data(one)[0, 1:2].reshape(()),
            data(other, True),
        )  # an array without axes takes part
        check(lambda xp: getattr(xp, name)(xp.asarray(first), xp.asarray(second)))  # noqa: B023


@pytest.mark.parametrize("name", BINARY)
def test_binary_with_a_number(name):
    for dtype in BINARY[name]:
        number = True if dtype == "bool" else 2 if dtype in INTEGERS else 2.0
        check(lambda xp: getattr(xp, name)(xp.asarray(data(dtype)), number))  # noqa: B023
        check(lambda xp: getattr(xp, name)(number, xp.asarray(data(dtype))))  # noqa: B023


# ---- all others ----

F, C, N, U = (
    VALUES,
    VALUES + 2j,
    np.array([[3, 1, 2], [2, 1, 3]]),
    np.array([3, 1, 1], dtype="uint8"),
)
V, S = np.array([3.0, 1.0, 2.0]), np.array([[4.0, 1.0], [1.0, 3.0]])
B, EMPTY = np.array([[True, False, True], [True, True, True]]), np.zeros((0, 3))
CUBE = np.arange(24.0).reshape(2, 3, 4)


# NumPy before 2.3, the last for Python 3.10, has no default for it.
LAST_AXIS = {} if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else {"axis": -1}


def case(name, *args, **kwargs):
    def call(xp):
        def made(value):
            if isinstance(value, np.ndarray):
                return xp.asarray(value)
            if isinstance(value, list):
                return [made(item) for item in value]
            if isinstance(value, str) and value.startswith("dtype:"):
                return getattr(xp, value[6:])
            return value

        given = {key: made(value) for key, value in kwargs.items()}
        return found(xp, name)(*map(made, args), **given)

    return name, call


CASES = [
    *[case(n, x, **k) for n in ("sum", "prod", "max", "min", "mean", "std", "var", "all", "any",
      "count_nonzero") for x in (F, N if n not in ("mean", "std", "var") else F) for k in
      ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": -1, "keepdims": True})],
    *[case(n, U) for n in ("sum", "prod", "cumulative_sum", "cumulative_prod")],
    *[case(n, N.astype("int8")) for n in ("sum", "prod")],
    *[case(n, V[0:1].reshape(())) for n in ("sum", "prod", "max", "mean", "var", "all", "any")],
    *[case(n, F > 1, axis=()) for n in ("all", "any", "count_nonzero", "prod", "sum")],
    case("sum", F.astype("float32"), dtype="dtype:float64"), case("sum", EMPTY, axis=0),
    case("prod", EMPTY), case("all", EMPTY), case("any", EMPTY), case("sum", C), case("mean", C),
    case("var", np.array([1.0, np.inf]), axis=()), case("var", V, axis=(), correction=1),
    case("var", V, correction=1), case("std", CUBE, axis=(0, 2), correction=1.0),
    case("argmax", N), case("argmax", N, axis=1), case("argmin", N, axis=0, keepdims=True),
    case("argmin", N, keepdims=True),
    case("cumulative_sum", N, axis=1, include_initial=True), case("cumulative_sum", V),
    case("cumulative_prod", N, axis=0, include_initial=True),
    case("diff", N), case("diff", CUBE, axis=1, n=2), case("diff", V, prepend=V[:1], append=V[:2]),
    case("sort", N, axis=0), case("sort", N), case("argsort", N, axis=0), case("argsort", V),
    case("searchsorted", np.sort(V), V, side="right"), case("searchsorted", V, F, sorter=np.argsort(V)),
    case("unique_counts", N), case("unique_inverse", N),
    case("unique_all", N),
    case("nonzero", B), case("where", B, F, F * 2), case("where", B, F.astype("float32"), F),
    case("where", B, N, 0), case("isin", N, np.array([1, 2])), case("isin", N, np.array([1]), invert=True),
    case("clip", F, 0.5, 1.0), case("clip", N, min=2), case("clip", F, max=V), case("clip", N, 2, 2),
    case("take", V, np.array([2, -1])), case("take", N, np.array([1, 0]), axis=1),
    case("take_along_axis", N, np.array([[0, -1], [1, 2]]), **LAST_AXIS),
    case("take_along_axis", N, np.array([[0, 1, 0]]), axis=0),
    case("concat", [F, F.astype("float32")]), case("concat", [N, N], axis=1),
    case("concat", [N, V.astype("int64")], axis=None), case("stack", [V, V], axis=1),
    case("unstack", CUBE, axis=1), case("expand_dims", V, axis=-1),
    case("expand_dims", F, axis=(0, -1)), case("squeeze", V[None, :, None], axis=(0, -1)),
    case("squeeze", V[None], axis=0), case("flip", CUBE), case("flip", CUBE, axis=(0, -1)),
    case("moveaxis", CUBE, 0, -1), case("moveaxis", CUBE, (0, 1), (2, 0)),
    case("permute_dims", CUBE, (2, 0, 1)), case("repeat", V, 2), case("repeat", F, np.array([1, 0, 2]), axis=1),
    case("reshape", CUBE, (4, -1)), case("reshape", CUBE, (6, 4), copy=True),
    case("repeat", V, np.array([2, 0, 1], dtype="uint8")), case("repeat", F, np.array([2], dtype="int16")),
    case("roll", F, 1, axis=(0, 1)), case("roll", F, 1), case("roll", F, (1, -1), axis=(0, 1)), case("tile", F, (2, 1, 2)),
    case("tile", CUBE, (2,)), case("broadcast_to", V, (2, 3)), case("broadcast_arrays", V, F),
    case("broadcast_shapes", (3, 1), (1, 2), (2,)),
    case("arange", 5), case("arange", 1, 5, 2), case("arange", 2.0), case("arange", 5, 1),
    case("arange", 5, 1, -2), case("arange", 0, 3, dtype="dtype:float32"),
    case("asarray", [1, 2]), case("asarray", [[1.5], [2.5]], dtype="dtype:float32"), case("asarray", True),
    case("astype", F, "dtype:int32"), case("astype", N, "dtype:bool"),
    case("empty", (0, 2), dtype="dtype:int8"), case("empty_like", EMPTY), case("eye", 3), case("eye", 2, 4, k=1),
    case("eye", 2, k=5), case("full", (2,), 3), case("full", 2, 1.5, dtype="dtype:float32"), case("full", (), True),
    case("full_like", N, 7), case("linspace", 0.0, 1.0, 5), case("linspace", 1.0, 0.0, 4, endpoint=False),
    case("linspace", 0, 5, 0), case("linspace", 0, 1, 1), case("meshgrid", V, V[:2]),
    case("meshgrid", V, V[:2], indexing="ij"), case("ones", 3), case("ones_like", N), case("zeros", (2, 0)),
    case("zeros_like", F, dtype="dtype:complex64"), case("tril", F, k=-1), case("triu", CUBE, k=1),
    case("matmul", F, F.T), case("matmul", F, V), case("matmul", N.astype("int8"), N.T),
    case("matrix_transpose", CUBE), case("tensordot", CUBE, CUBE, axes=((0, 2), (0, 2))),
    case("tensordot", F, V, axes=1), case("vecdot", F, V), case("vecdot", C, C, axis=0),
    case("isdtype", "dtype:int8", ("bool", "integral")), case("isdtype", "dtype:float32", "complex floating"),
    case("isdtype", "dtype:uint8", "unsigned integer"), case("isdtype", "dtype:bool", "numeric"),
    case("can_cast", "dtype:int8", "dtype:int16"), case("can_cast", "dtype:float64", "dtype:float32"),
    case("linalg.cholesky", S), case("linalg.cholesky", S, upper=True), case("linalg.cross", F, V),
    case("linalg.det", S), case("linalg.diagonal", CUBE, offset=1), case("linalg.eigvalsh", S),
    case("linalg.inv", S), case("linalg.matrix_norm", CUBE, ord=1), case("linalg.matrix_norm", CUBE, keepdims=True),
    case("linalg.matrix_norm", S, ord="nuc"), case("linalg.matrix_power", S, -2), case("linalg.matrix_rank", S),
    case("linalg.matrix_rank", F, rtol=10.0), case("linalg.outer", V, V[:2]), case("linalg.pinv", F),
    case("linalg.slogdet", S), case("linalg.solve", S, S[0]), case("linalg.solve", S, S),
    case("linalg.svdvals", F), case("linalg.trace", CUBE, offset=1), case("linalg.trace", N.astype("uint8")),
    case("linalg.vector_norm", CUBE), case("linalg.vector_norm", CUBE, axis=(0, 2), ord=1, keepdims=True),
    case("linalg.vector_norm", V, ord=float("inf")), case("linalg.matmul", S, S),
    case("linalg.matrix_transpose", S), case("linalg.tensordot", S, S), case("linalg.vecdot", S, S),
    *[case(f"fft.{n}", x) for n, x in (("fft", V), ("ifft", C), ("rfft", F), ("irfft", C), ("hfft", C), ("ihfft", V),
      ("fftn", CUBE), ("ifftn", C), ("rfftn", CUBE), ("irfftn", C), ("fftshift", CUBE), ("ifftshift", V))],
    case("fft.fft", F, n=4, axis=0, norm="ortho"), case("fft.fftn", CUBE, axes=(0, 1), s=(2, 2)),
    case("fft.fftshift", F, axes=0), case("fft.fftshift", F, axes=()),
    case("roll", F, 1, axis=()), case("fft.fftfreq", 5, d=0.5), case("fft.rfftfreq", 6),
]  # fmt: skip


@pytest.fixture
def float64_by_default():
    weft.set_default_dtype(weft.float64)  # as NumPy's
    yield
    weft.set_default_dtype(weft.float32)


@pytest.mark.usefixtures("float64_by_default")
@pytest.mark.parametrize(
    ("name", "call"), CASES, ids=[f"{i}-{name}" for i, (name, _) in enumerate(CASES)]
)
def test_case(name, call):
    if name == "broadcast_shapes" or not name.startswith("linalg.") or hasattr(np.linalg, name[7:]):
        check(call)


FACTORS = {
    "eigh": (lambda f: f.eigenvectors * f.eigenvalues @ f.eigenvectors.mT, S),
    "qr": (lambda f: f.Q @ f.R, F),
    "svd": (lambda f: f.U[..., :2] * f.S @ f.Vh[..., :2, :], F),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors(name):
    product, matrix = FACTORS[name]
    factors = getattr(array_api.linalg, name)(weft.asarray(matrix))
    np.testing.assert_allclose(product(factors).numpy(), matrix, rtol=1e-12)
    compare(
        tuple(factors)[1 if name == "svd" else 0].abs(),
        np.abs(getattr(np.linalg, name)(matrix)[name == "svd"]),
    )


OTHERS = {
    "from_dlpack",
    "unique_values",
    "finfo",
    "iinfo",
    "result_type",
    "sign",
    *(f"linalg.{n}" for n in FACTORS),
}


def test_every_function_has_a_case():
    covered = {name for name, _ in CASES} | set(UNARY) | set(BINARY) | OTHERS
    functions = {name for name in STANDARD if callable(found(array_api, name))}
    assert functions - covered == {"__array_namespace_info__"}


def test_eigenvalues_of_a_rotation():
    x = weft.asarray(np.array([[0.0, -2.0], [2.0, 0.0]]))
    values, vectors = array_api.linalg.eig(x)
    np.testing.assert_allclose((x + 0j) @ vectors, vectors * values, atol=1e-12)
    found = sorted(array_api.linalg.eigvals(x).tolist(), key=lambda value: value.imag)
    np.testing.assert_allclose(found, [-2j, 2j], atol=1e-12)


def test_unique_values():
    assert array_api.unique_values(weft.asarray([3, 1, 3])).tolist() == [1, 3]


def test_descending_order_is_stable():
    x = weft.asarray([1, 3, 1, 3])
    assert array_api.argsort(x, descending=True).tolist() == [1, 3, 0, 2]
    assert array_api.sort(x, descending=True).tolist() == [3, 3, 1, 1]


PROMOTED = {
    ("int8", "uint8"): "int16", ("uint16", "uint32"): "uint32", ("int64", "uint32"): "int64",
    ("float32", "float64"): "float64", ("float64", "complex64"): "complex128", ("bool", "bool"): "bool",
}  # fmt: skip


@pytest.mark.parametrize("dtypes", PROMOTED)
def test_result_type(dtypes):
    one, other = (getattr(weft, name) for name in dtypes)
    wanted = getattr(weft, PROMOTED[dtypes])
    assert array_api.result_type(one, other) == array_api.result_type(other, one) == wanted
    assert array_api.result_type(weft.ones((), dtype=one), weft.ones(2, dtype=other)) == wanted


def test_shifts_of_a_number():
    x = weft.ones(())
    assert x.tolist() == array_api.fft.fftshift(x).tolist() == array_api.fft.ifftshift(x).tolist()


def test_length_of_arange_is_that_of_its_numbers():
    assert array_api.arange(0, 10, 2.75, dtype=weft.int64).shape == (4,)


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
def test_full_of_large_numbers(number):
    x = array_api.full((2, 1), number, dtype=weft.uint64)
    assert x.tolist() == [[number], [number]] == array_api.full_like(x, number).tolist()


def test_full_of_numbers_beyond_the_dtype():
    """As arrays that are made of them: infinite, where PyTorch's full refuses."""
    assert array_api.full(2, 1e300, dtype=weft.float32).tolist() == [float("inf")] * 2
    found = array_api.full((1,), complex(2, -1e300), dtype=weft.complex64).tolist()
    assert found == [complex(2, -float("inf"))]


@pytest.mark.parametrize("dtype", COMPLEX)
def test_expm1_of_zeros_has_a_positive_real_part(dtype):
    zeros = [complex(real, imag) for real in (0.0, -0.0) for imag in (0.0, -0.0)]
    found = array_api.expm1(array_api.asarray(zeros, dtype=getattr(weft, dtype)))
    assert [str(each) for each in found.tolist()] == ["0j", "-0j", "0j", "-0j"]
    assert array_api.expm1(weft.tensor([-0.0])).signbit().tolist() == [True]


def test_limits():
    assert array_api.finfo(weft.complex64) == (32, *array_api.finfo(weft.ones(1))[1:])
    assert array_api.finfo(weft.float64).eps == np.finfo("float64").eps
    assert array_api.iinfo(weft.uint8) == (8, 255, 0, weft.uint8)


def test_dlpack():
    array = np.arange(3)
    shared = array_api.from_dlpack(array)
    array[0] = 7
    assert shared[0] == 7
    assert array_api.from_dlpack(shared, copy=True).data_ptr() != shared.data_ptr()


def test_arrays_tell_their_namespace():
    x = weft.ones(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2025.12") is array_api
    info = weft.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == weft.float32
    assert info.dtypes(kind=("bool", "real floating")) == {
        "bool": weft.bool, "float32": weft.float32, "float64": weft.float64,
    }  # fmt: skip
    assert info.devices() == (info.default_device(),) == (x.device,)
    assert info.capabilities()["boolean indexing"] is True
    assert x.to_device("cpu") is x


# ---- signatures ----


#: what other functions take by name only is given to these by position
GIVEN = {"astype": ("dtype",), "isdtype": ("dtype",)}


@pytest.mark.parametrize("name", [n for n in STANDARD if inspect.isfunction(found(array_api, n))])
def test_signature(name):
    """Python can tell it; arrays are given by position only, options by name only."""
    parameters = inspect.signature(found(array_api, name)).parameters
    kinds = [each.kind for each in parameters.values()]
    if name in UNARY or name in BINARY:
        assert kinds == [inspect.Parameter.POSITIONAL_ONLY] * (1 + (name in BINARY))
    options = [key for key, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    assert not set(options) & {"x", "x1", "x2", "shape"}
    assert set(parameters) & {"dtype", "device", "keepdims", "copy", "ord"} <= {
        *options,
        *GIVEN.get(name, ()),
    }


def test_signatures_of_methods():
    x = weft.ones(2)
    assert list(inspect.signature(x.to_device).parameters) == ["device", "stream"]
    assert list(inspect.signature(x.__array_namespace__).parameters) == ["api_version"]


# ---- the text's special cases ----

NUMBERS = st.floats(allow_subnormal=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, -2.5])


@given(NUMBERS, NUMBERS.filter(bool))
def test_remainder_is_python_s(one, other):
    wanted = one % other if math.isfinite(one) else math.nan
    got = array_api.remainder(weft.asarray(one, dtype=weft.float64), other)
    assert repr(got.item()) == repr(wanted)


def test_remainder_has_a_gradient():
    x = weft.tensor([0.0, 4.0, -0.5], requires_grad=True)
    array_api.remainder(x, weft.tensor([-2.0, 2.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_sign_of_special_numbers(dtype):
    x = weft.tensor([-0.0, 0.0, -math.inf, math.inf, math.nan], dtype=getattr(weft, dtype))
    assert str(array_api.sign(x).tolist()) == "[0.0, 0.0, -1.0, 1.0, nan]"


PARTS = st.sampled_from([0.0, -0.0, 1.5, 2.5, -0.5, math.inf, -math.inf, math.nan])


@given(st.lists(st.builds(complex, PARTS, PARTS), max_size=8))
def test_round_keeps_the_parts_of_complex_numbers_apart(values):
    rounded = array_api.round(weft.asarray(np.array(values, dtype="complex128")))
    for got, value in zip(rounded.tolist(), values):
        for part, of in ((got.real, value.real), (got.imag, value.imag)):
            assert repr(part) == repr(float(np.round(of)))


# ---- sets ----


@given(st.lists(st.builds(complex, PARTS, PARTS), max_size=10), st.booleans())
def test_unique_of_complex_numbers(values, matrix):
    x = weft.asarray(np.array(values * 2, dtype="complex64"))
    x = x.reshape(2, -1) if matrix and values else x
    every = array_api.unique_all(x)
    flat, of = x.reshape(-1).tolist(), every.values.tolist()
    for value, first, count in zip(of, every.indices.tolist(), every.counts.tolist()):
        alike = [at for at, each in enumerate(flat) if each == value]  # NaN is like no other
        assert (first, count) == ((alike[0], len(alike)) if alike else (first, 1))
        assert repr(flat[first]) == repr(value)
    assert sum(every.counts.tolist()) == len(flat) and every.inverse_indices.shape == x.shape
    for at, place in enumerate(every.inverse_indices.reshape(-1).tolist()):
        assert of[place] == flat[at] or (cmath.isnan(of[place]) and cmath.isnan(flat[at]))
    for part in (array_api.unique_counts(x), array_api.unique_inverse(x)):
        for name, array_ in part._asdict().items():
            assert repr(array_.tolist()) == repr(getattr(every, name).tolist())
    assert repr(array_api.unique_values(x).tolist()) == repr(of)


# ---- buffers ----

NUMERIC_CODES = "bBhHiIlLqQfd"


@pytest.mark.parametrize("code", NUMERIC_CODES)
def test_asarray_of_a_buffer(code):
    buffer = array.array(code, [1, 2, 3])
    shared = array_api.asarray(memoryview(buffer))
    assert str(shared.dtype) == f"torch.{np.asarray(buffer).dtype}"
    copied = array_api.asarray(buffer, copy=True)
    buffer[0] = 7
    assert shared.tolist() == [7, 2, 3] and copied.tolist() == [1, 2, 3]
    assert array_api.asarray(buffer, copy=False).tolist() == [7, 2, 3]
    assert array_api.asarray(buffer, dtype=weft.float64).tolist() == [7, 2, 3]
    assert array_api.asarray(memoryview(buffer)[::-1]).tolist() == [3, 2, 7]
    assert array_api.asarray(array.array(code)).shape == (0,)
    with pytest.raises(ValueError, match="copy=False"):
        array_api.asarray(buffer, copy=False, dtype=weft.complex64)


def test_asarray_of_a_buffer_with_axes():
    view = memoryview(bytes(range(6))).cast("B", (2, 3))
    assert array_api.asarray(view).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("source", [weft.ones(2), np.ones(2)])
def test_asarray_without_a_copy(source):
    assert array_api.asarray(source, copy=False).tolist() == [1, 1]
    with pytest.raises(ValueError, match="copy=False"):
        array_api.asarray(source, copy=False, dtype=weft.int8)


# ---- axes that an array has not ----

REDUCTIONS = ("sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "count_nonzero")


@pytest.mark.parametrize("rank", range(3))
@pytest.mark.parametrize("name", [*REDUCTIONS, "flip", "linalg.vector_norm"])
def test_refuses_axes(name, rank):
    function, x = found(array_api, name), weft.ones((2,) * rank)
    for axis in (rank, -rank - 1, (rank,)):
        with pytest.raises(IndexError, match=": expected axes of"):
            function(x, axis=axis)
    if rank:
        with pytest.raises(ValueError, match=": expected different axes"):
            function(x, axis=(0, -rank))


# ---- Hypothesis' own strategies for the standard ----

xps = make_strategies_namespace(array_api)


@given(xps.arrays(xps.scalar_dtypes(), xps.array_shapes(min_dims=0, min_side=0)), st.data())
def test_strategies_of_hypothesis(x, data):
    assert array_api.isdtype(x.dtype, ("bool", "numeric"))
    part = x[data.draw(xps.indices(tuple(x.shape)))]
    np.testing.assert_array_equal(array_api.asarray(part, copy=True).numpy(), part.numpy())


CHARACTERS = "u" if sys.version_info < (3, 13) else "w"  # the type of characters in arrays
REFUSED = {
    "2019.12": (lambda: weft.ones(1).__array_namespace__(api_version="2019.12"), ValueError),
    "stream": (lambda: weft.ones(1).to_device("cpu", stream=1), ValueError),
    "uint64 and int64": (lambda: array_api.result_type(weft.uint64, weft.int8), TypeError),
    "numbers": (lambda: array_api.result_type(1, 2.0), ValueError),
    "complex to real": (lambda: array_api.astype(weft.ones(1) * 1j, weft.float32), TypeError),
    "squeeze": (lambda: array_api.squeeze(weft.ones(2), 0), ValueError),
    "expand_dims": (lambda: array_api.expand_dims(weft.ones(2), axis=3), IndexError),
    "expand_dims twice": (lambda: array_api.expand_dims(weft.ones(2), axis=(0, 0)), ValueError),
    "nonzero": (lambda: array_api.nonzero(weft.ones(())), ValueError),
    "cumulative_sum": (lambda: array_api.cumulative_sum(weft.ones(2, 2)), ValueError),
    "take": (lambda: array_api.take(weft.ones(2), weft.tensor([5])), IndexError),
    "kind": (lambda: array_api.isdtype(weft.int8, "odd"), ValueError),
    "vecdot": (lambda: array_api.vecdot(weft.ones(2), weft.ones(3)), ValueError),
    "matrix_transpose": (lambda: array_api.matrix_transpose(weft.ones(2)), ValueError),
    "cross": (lambda: array_api.linalg.cross(weft.ones(3), weft.ones(4, 3), axis=1), IndexError),
    "expand_dims without an axis": (lambda: array_api.expand_dims(weft.ones(2)), TypeError),
    "from_dlpack": (lambda: array_api.from_dlpack([1]), AttributeError),
    "searchsorted": (lambda: array_api.searchsorted(weft.ones(2), 1.0, side="both"), ValueError),
    "characters": (lambda: array_api.asarray(array.array(CHARACTERS, "ab")), TypeError),
    "abs by name": (lambda: array_api.abs(x=weft.ones(2)), TypeError),
    "reshape": (lambda: array_api.reshape(weft.ones(2, 3).T, (6,), copy=False), ValueError),
    "broadcast_shapes": (lambda: array_api.broadcast_shapes((2,), (3,)), ValueError),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    call, error = REFUSED[what]
    with pytest.raises(error):
        call()


# ---- other libraries ----

SCIENCE = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np, sklearn, weft
from scipy import differentiate, fft, integrate, signal, special, stats
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.preprocessing import MinMaxScaler, StandardScaler

x = np.linspace(-2, 2.5, 12)
many = np.sin(np.arange(40.0)).reshape(10, 4)
told = (many[:, 0] > 0).astype("int64")
CALLS = {
    "logsumexp": lambda a, *_: special.logsumexp(a),
    "softmax": lambda a, *_: special.softmax(a),
    "zscore": lambda a, *_: stats.zscore(a),
    "skew": lambda a, *_: stats.skew(a),
    "pearsonr": lambda a, *_: stats.pearsonr(a, a * a + a).statistic,
    "ttest": lambda a, *_: stats.ttest_1samp(a, 0.1).pvalue,
    "detrend": lambda a, *_: signal.detrend(a * a),
    "rfft": lambda a, *_: fft.rfft(a),
    "derivative": lambda a, *_: differentiate.derivative(lambda v: v**3, a).df,
    "integral": lambda a, *_: integrate.tanhsinh(lambda v: v**2, a[0], a[-1]).integral,
    "scaler": lambda a, m, t: StandardScaler().fit_transform(m),
    "minmax": lambda a, m, t: MinMaxScaler().fit_transform(m),
    "pca": lambda a, m, t: PCA(2, svd_solver="full").fit_transform(m),
    "ridge": lambda a, m, t: Ridge(solver="svd").fit(m, m[:, 0] * 2).coef_,
    "lda": lambda a, m, t: LinearDiscriminantAnalysis().fit(m, t).predict(m),
    "mse": lambda a, m, t: mean_squared_error(m[:, 0], m[:, 1]),
}
given = [x, many, told]
ours = [weft.from_numpy(each.copy()) for each in given]
for name, call in CALLS.items():
    wanted = call(*given)
    with sklearn.config_context(array_api_dispatch=True):
        got = call(*ours)
    assert isinstance(got, weft.Tensor) or isinstance(got, float), (name, type(got))
    assert np.allclose(np.asarray(got), wanted, atol=1e-8), (name, got, wanted)
    print(name)
"""


def test_scipy_and_scikit_learn_compute_with_tensors():
    pytest.importorskip("scipy", minversion="1.16")
    pytest.importorskip("sklearn")
    command = [sys.executable, "-W", "ignore", "-c", SCIENCE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 16
