"""`out=`: what is written, what is resized, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import linalg
from weft.nn import functional as F

X = weft.tensor([[3.0, 1.0], [1.0, 2.0]])
V = weft.tensor([3.0, 1.0, 2.0])
BYTES = weft.tensor([2, 0, 1])
LU = weft.linalg.cholesky(X)
PIVOTS = weft.tensor([1, 2], dtype=weft.int32)

#: calls that take `out=` as well: factories, draws, several results, and functions written in Python
CALLS: dict[str, Callable[..., Any]] = {
    "zeros": lambda **out: weft.zeros(2, 3, **out),
    "ones": lambda **out: weft.ones((2, 3), **out),
    "full": lambda **out: weft.full((2,), 1.5, **out),
    "eye": lambda **out: weft.eye(2, 3, **out),
    "arange": lambda **out: weft.arange(1, 4, **out),
    "linspace": lambda **out: weft.linspace(0, 1, 5, **out),
    "logspace": lambda **out: weft.logspace(0, 1, 5, **out),
    "fftfreq": lambda **out: weft.fft.fftfreq(5, **out),
    "rand": lambda **out: weft.rand(3, **out),
    "randn": lambda **out: weft.randn(20, generator=None, **out),
    "randint": lambda **out: weft.randint(2, 9, (4,), **out),
    "randperm": lambda **out: weft.randperm(5, **out),
    "normal": lambda **out: weft.normal(V, 2.0, **out),
    "normal of numbers": lambda **out: weft.normal(1.0, 2.0, (3,), **out),
    "bernoulli": lambda **out: weft.bernoulli(V / 4, **out),
    "multinomial": lambda **out: weft.multinomial(V, 2, **out),
    "sort": lambda **out: weft.sort(V, **out),
    "sort stable": lambda **out: weft.sort(V, stable=True, descending=True, **out),
    "topk": lambda **out: weft.topk(V, 2, **out),
    "max": lambda **out: weft.max(X, 0, **out),
    "min": lambda **out: weft.min(X, 1, True, **out),
    "median": lambda **out: weft.median(X, 0, **out),
    "aminmax": lambda **out: weft.aminmax(V, **out),
    "svd": lambda **out: linalg.svd(X, **out),
    "eigh": lambda **out: linalg.eigh(X, **out),
    "qr": lambda **out: linalg.qr(X, **out),
    "slogdet": lambda **out: linalg.slogdet(X, **out),
    "pinv": lambda **out: linalg.pinv(X, **out),
    "multi_dot": lambda **out: linalg.multi_dot([X, X, X], **out),
    "norm": lambda **out: linalg.norm(X, **out),
    "vector_norm": lambda **out: linalg.vector_norm(X, 1, **out),
    "matrix_norm": lambda **out: linalg.matrix_norm(X, **out),
    "matrix_rank": lambda **out: linalg.matrix_rank(X, **out),
    "lu_solve": lambda **out: linalg.lu_solve(LU, PIVOTS, X, **out),
    "triangular_solve": lambda **out: weft.triangular_solve(X, LU, upper=False, **out),
    "weft.norm": lambda **out: weft.norm(X, **out),
    "tensordot": lambda **out: weft.tensordot(X, X, 1, **out),
    "fft": lambda **out: weft.fft.fft(V, **out),
    "irfft": lambda **out: weft.fft.irfft(V, **out),
    "quantile": lambda **out: weft.quantile(V, 0.3, **out),
    "histogram": lambda **out: weft.histogram(V, 4, **out),
    "complex": lambda **out: weft.complex(V, V, **out),
    "unbind_copy": lambda **out: weft.unbind_copy(X, **out),
    "index_reduce": lambda **out: weft.index_reduce(V, 0, BYTES, V, "prod", **out),
    "bessel_j0": lambda **out: weft.special.bessel_j0(V, **out),
    "zeta": lambda **out: weft.special.zeta(V, 2.0, **out),
    "hardshrink": lambda **out: F.hardshrink(V, **out),
    "avg_pool2d": lambda **out: F.avg_pool2d(X[None, None], 2, **out),
    "normalize": lambda **out: F.normalize(X, **out),
}  # fmt: skip
DRAWS = ("rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal")


def parts(value: Any) -> list[weft.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


def given_for(result: Any, shape: tuple[int, ...] | None) -> Any:
    """Tensors for `out=`, of one shape or of those of the result."""
    made = [weft.zeros(t.shape if shape is None else shape, dtype=t.dtype) for t in parts(result)]
    return tuple(made) if isinstance(result, tuple) else made[0]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_written_to_out(name: str) -> None:
    weft.manual_seed(4)
    plain = CALLS[name]()
    for shape in (None, (0,)):
        out = given_for(plain, shape)
        weft.manual_seed(4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            returned = CALLS[name](out=out)
        for got, given, wanted in zip(parts(returned), parts(out), parts(plain), strict=True):
            assert got is given
            assert weft.equal(given, wanted)


@pytest.mark.parametrize("name", [*CALLS, "add", "sum", "matmul"])
def test_elements_that_are_lost_are_warned_of(name: str) -> None:
    more = {
        "add": lambda **out: weft.add(V, 1, **out),
        "sum": lambda **out: weft.sum(X, 0, **out),
        "matmul": lambda **out: X.matmul(X) if not out else weft.matmul(X, X, **out),
    }
    call = (CALLS | more)[name]
    weft.manual_seed(4)
    plain = call()
    out = given_for(plain, (7, 1))
    weft.manual_seed(4)
    with pytest.warns(
        UserWarning, match=r"expected out of shape .*, got \(7, 1\), which is resized"
    ):
        call(out=out)
    for given, wanted in zip(parts(out), parts(plain), strict=True):
        assert weft.equal(given, wanted)


def test_a_warning_made_an_error_leaves_out_as_it_was() -> None:
    out = weft.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="add: expected out of shape"):
            weft.add(X, 1, out=out)
        with pytest.raises(UserWarning, match="sort: expected out of shape"):
            weft.sort(X, out=(out, weft.zeros(3, dtype=weft.int64)))
    assert out.tolist() == [1, 1, 1]


def test_factories_take_the_dtype_of_out() -> None:
    numbers = weft.empty(0, dtype=weft.float64)
    assert weft.arange(3, out=numbers).dtype == weft.float64
    assert weft.randint(5, (3,), out=numbers).dtype == weft.float64
    weft.manual_seed(1)
    drawn = weft.randn(3, dtype=weft.float64)
    weft.manual_seed(1)
    assert weft.equal(weft.randn(3, out=numbers), drawn)
    steps = weft.fft.fftfreq(7, out=weft.empty(0, dtype=weft.float64))
    assert weft.equal(steps, weft.fft.fftfreq(7, dtype=weft.float64))
    with pytest.raises(
        RuntimeError, match="zeros: expected dtype float64, which is that of out, got int32"
    ):
        weft.zeros(3, dtype=weft.int32, out=numbers)
    assert weft.zeros(3, out=numbers, requires_grad=True).requires_grad


def test_a_resized_view_grows_the_memory_of_its_base() -> None:
    base = weft.arange(4.0)
    part = base[1:1]
    assert weft.add(V, 1, out=part) is part
    assert base.tolist() == [0, 4, 2, 3]
    weft.add(weft.ones(9), 1, out=part[:0])
    assert base.tolist() == [0, 2, 2, 2]


def test_out_keeps_its_strides_where_it_fits() -> None:
    out = weft.zeros(3, 2).t()
    weft.sort(
        weft.tensor([[2.0, 3.0, 1.0], [5.0, 4.0, 6.0]]), out=(out, weft.empty(0, dtype=weft.int64))
    )
    assert out.stride() == (1, 2)
    assert out.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_an_operand_is_not_resized() -> None:
    with pytest.raises(
        RuntimeError, match=r"add: expected an output of shape \(2, 2\), got \(2,\)"
    ):
        row = X[0].clone()
        weft.add(row, X, out=row)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: weft.sort(V, out=V.clone()), TypeError, "argument 'out' of type tuple of Tensors"),
        (lambda: weft.sort(V, out=(V.clone(),)), TypeError, "argument 'out' of type tuple of Tensors"),
        (lambda: weft.histogram(V, 2, out=V.clone()), TypeError, "expected out as a tuple of 2 tensors"),
        (lambda: linalg.norm(V, out=3), TypeError, "norm: expected argument 'out' of type Tensor"),
        (lambda: linalg.svdvals(X, out=BYTES[:0]), RuntimeError, "expected out of dtype float32, got int64"),
        (lambda: weft.fft.fft(V, out=V[:0]), RuntimeError, "expected out of dtype complex64, got float32"),
        (lambda: weft.add(V, 1, out=BYTES[:0]), RuntimeError, "an output dtype that float32 can be cast to"),
    ],
)  # fmt: skip
def test_what_out_cannot_be(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["add", "sort", "linalg_svd", "norm"])
def test_out_is_without_gradient(name: str) -> None:
    leaf = X.clone().requires_grad_()
    calls: dict[str, Callable[[Any], Any]] = {
        "add": lambda x: weft.add(x, 1, out=weft.empty(0)),
        "sort": lambda x: weft.sort(x, out=(weft.empty(0), weft.empty(0, dtype=weft.int64))),
        "linalg_svd": lambda x: linalg.svd(x, out=tuple(weft.empty(0) for _ in range(3))),
        "norm": lambda x: linalg.norm(x, out=weft.empty(0)),
    }
    with pytest.raises(RuntimeError, match=f"{name}: expected operands without gradient for out="):
        calls[name](leaf)
    with weft.no_grad():
        calls[name](leaf)


def test_memory_that_may_not_grow() -> None:
    base = weft.zeros(2)
    held = base.numpy()
    with pytest.raises(RuntimeError, match="expected memory that only tensors use"):
        weft.add(V, 1, out=base[:0])
    assert held.tolist() == [0, 0]
    array = np.zeros(2, np.float32)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="expected a writable tensor, got a read-only one"):
        weft.add(V, 1, out=weft.from_numpy(array))


def test_results_have_the_names_of_pytorch() -> None:
    result = weft.topk(V, 1, out=(weft.empty(0), weft.empty(0, dtype=weft.int64)))
    assert repr(type(result)) == "<class 'torch.return_types.topk_out'>"
    assert (result.values.tolist(), result.indices.tolist()) == ([3], [0])
    assert weft.topk(V, 1, out=None).values.tolist() == [3]


def test_out_in_programs_and_traces() -> None:
    def function(x: weft.Tensor) -> weft.Tensor:
        out = weft.empty(0)
        weft.zeros(3, out=out)
        weft.add(x, 1, out=out[:0])
        return weft.mul(out, x, out=weft.empty(0))

    for compiled in (weft.jit.script(function), weft.jit.trace(function, (V,))):
        for _ in range(3):
            assert compiled(V).tolist() == function(V).tolist() == [12, 2, 6]


def test_several_outs_in_a_trace() -> None:
    def function(x: weft.Tensor) -> Any:
        values, places = weft.empty(0), weft.empty(0, dtype=weft.int64)
        weft.sort(x, out=(values, places))
        size = linalg.vector_norm(x, out=weft.empty(0))
        return values * size, places

    traced = weft.jit.trace(function, (V,))
    for x in (V, -V):
        for got, wanted in zip(traced(x), function(x), strict=True):
            assert weft.equal(got, wanted)


#: an operator of each kind that converts to `out=`, and dtypes that it converts to
CONVERT: dict[str, tuple[Callable[..., Any], Any]] = {
    "add": (lambda **out: weft.add(V, 1, **out), weft.float64),
    "exp": (lambda **out: weft.exp(V, **out), weft.complex64),
    "eq": (lambda **out: weft.eq(V, V, **out), weft.int64),
    "sum": (lambda **out: weft.sum(X, 0, **out), weft.float16),
    "var": (lambda **out: weft.var(X, 0, **out), weft.float64),
    "cat": (lambda **out: weft.cat([V, V], **out), weft.float16),
    "pinv": (lambda **out: linalg.pinv(X, **out), weft.float64),
    "all": (lambda **out: weft.all(X, 0, **out), weft.uint8),
}
#: and of each kind that does not
EXACT: dict[str, Callable[..., Any]] = {
    "all": lambda **out: weft.all(X, 0, **out),
    "amax": lambda **out: weft.amax(X, 0, **out),
    "argmax": lambda **out: weft.argmax(X, 0, **out),
    "softmax": lambda **out: weft.softmax(X, 0, **out),
    "norm": lambda **out: weft.norm(X, **out),
    "floor": lambda **out: weft.floor(X, **out),
    "where": lambda **out: weft.where(X > 1, X, X, **out),
    "matmul": lambda **out: weft.matmul(X, X, **out),
    "gather": lambda **out: weft.gather(X, 0, X.long() % 2, **out),
    "inv": lambda **out: linalg.inv(X, **out),
    "quantile": lambda **out: weft.quantile(V, 0.5, **out),
}


@pytest.mark.parametrize("name", CONVERT)
def test_results_are_converted_to_out(name: str) -> None:
    call, dtype = CONVERT[name]
    out = weft.empty(0, dtype=dtype)
    assert call(out=out) is out
    # a reduction computes in the dtype of out, which may have more digits or fewer
    weft.testing.assert_close(out, call().to(dtype), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", EXACT)
def test_out_of_another_dtype_is_refused(name: str) -> None:
    call = EXACT[name]
    dtype = str(call().dtype).removeprefix("torch.")
    for other in (weft.float64, weft.float16, weft.complex64, weft.int32):
        out = weft.zeros((2, 2), dtype=other)
        with pytest.raises(RuntimeError, match=f"expected out of dtype {dtype}, got"):
            call(out=out)
        assert not out.any()


def test_a_trace_casts_to_out() -> None:
    def function(x: weft.Tensor) -> weft.Tensor:
        return linalg.pinv(x, out=weft.empty(0, dtype=weft.float64))

    traced = weft.jit.trace(function, (X,))
    assert weft.equal(traced(X), function(X)) and traced(X).dtype == weft.float64
