"""What operands count as, beside PyTorch: numbers beside 16-bit floats, dtypes of `out`, bools in
subtractions, lists as indices, arrays of NumPy, numbers alone."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft

HALVES = ("float16", "bfloat16")


def bits(lib: Any, tensor: Any) -> list[Any]:
    return tensor.double().tolist()


# ---- numbers beside 16-bit floats ----


@both
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", ("number", "0-d"))
def test_numbers_are_rounded_to_16_bits_before_comparing(lib: Any, dtype: str, kind: str) -> None:
    x = lib.tensor([0.1, 0.3], dtype=getattr(lib, dtype))
    number = 0.1 if kind == "number" else lib.tensor(0.1)
    assert (x == number).tolist() == [True, False] and (x != number).tolist() == [False, True]
    assert (x < number).tolist() == [False, False] and (x >= number).tolist() == [True, True]
    if kind == "0-d":
        assert (number == x).tolist() == [True, False] and (number > x).tolist() == [False, False]


@both
@pytest.mark.parametrize("dtype", HALVES)
def test_products_take_the_number_on_the_right_as_it_is(lib: Any, dtype: str) -> None:
    kind = getattr(lib, dtype)
    x = lib.arange(1, 60).to(kind)
    for number in (0.3, lib.tensor(0.3)):
        exact = x.float() * 0.3, x.float() / 0.3
        assert (x * number).tolist() == exact[0].to(kind).tolist()
        assert (x / number).tolist() == exact[1].to(kind).tolist()
    rounded = float(lib.tensor(0.3, dtype=kind))
    for sum_ in (x + 0.3, x.clone().add_(0.3), lib.add(x, lib.tensor(0.3))):
        assert sum_.tolist() == (x.float() + rounded).to(kind).tolist()
    assert (x - 0.3).tolist() == (x.float() - rounded).to(kind).tolist()


def test_scripts_round_as_operators_do() -> None:
    def f(x: weft.Tensor) -> weft.Tensor:
        return weft.where(x + 0.3 > 0.7, x - 0.1, x * 0.3)

    x = weft.linspace(0, 1, 500).to(weft.float16)
    scripted = weft.jit.script(f)
    for _ in range(3):
        assert scripted(x).tolist() == f(x).tolist()


# ---- dtypes of out ----


@both
def test_sums_are_of_the_dtype_of_out(lib: Any) -> None:
    half = lib.tensor([60000.0, 60000.0], dtype=lib.float16)
    for name in ("sum", "cumsum", "nansum"):
        out = lib.empty(0)
        assert getattr(lib, name)(half, 0, out=out).reshape(-1)[-1].item() == 120000
    x = lib.tensor([0.6, 0.6, 1.7])
    assert lib.sum(x, 0, out=lib.empty(0, dtype=lib.int64)).item() == 1  # of whole numbers
    assert lib.prod(x, 0, out=lib.empty(0, dtype=lib.int8)).item() == 0
    assert lib.cumsum(x, 0, out=lib.empty(0, dtype=lib.uint8)).tolist() == [0, 0, 1]
    assert lib.mean(x, 0, out=lib.empty(0, dtype=lib.float64)).dtype == lib.float64
    for name in ("sum", "prod", "mean", "cumsum", "cumprod"):
        with pytest.raises(RuntimeError):
            getattr(lib, name)(x, 0, dtype=lib.float64, out=lib.empty(0))
    with pytest.raises(RuntimeError):
        lib.mean(x, 0, out=lib.empty(0, dtype=lib.int64))


# ---- bools in subtractions, numbers in fillings ----


@both
def test_subtractions_refuse_bools(lib: Any) -> None:
    mask, x = lib.tensor([True, False]), lib.tensor([1, 2])
    pairs = [(mask, mask), (mask, x), (x, mask), (mask, 1), (1, mask), (x, True), (True, x)]
    for one, other in [*pairs, (x.float(), mask), (x.half(), True), (x, lib.tensor(True))]:
        with pytest.raises(RuntimeError):
            operator.sub(one, other)
    for refused in (lambda: x.sub_(mask), lambda: lib.sub(x, True), lambda: lib.rsub(mask, 1)):
        with pytest.raises(RuntimeError):
            refused()
    assert (x - 1).tolist() == [0, 1]


@both
def test_masked_fill_cuts_numbers_off(lib: Any) -> None:
    x, mask = lib.arange(3), lib.tensor([True, False, True])
    assert x.masked_fill(mask, 2.7).tolist() == [2, 1, 2]
    assert x.masked_fill(mask, lib.tensor(-2.7)).tolist() == [-2, 1, -2]
    assert x.bool().masked_fill(mask, 2.5).tolist() == [True, True, True]
    for wrong in (1e30, 1 + 2j, lib.tensor(1 + 2j)):
        with pytest.raises(RuntimeError):
            x.masked_fill(mask, wrong)
    with pytest.raises(RuntimeError):
        x.to(lib.int8)[0] = 300


# ---- lists as indices ----


@both
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_lists_of_what_is_no_number_are_tuples(lib: Any) -> None:
    x = lib.arange(24).reshape(2, 3, 4)
    i, j = lib.tensor([0, 1]), lib.tensor([1, 0])
    cases = [
        ([i, j], (i, j)),
        ([[0, 1], [1, 2]], ([0, 1], [1, 2])),
        ([[0, 1]], ([0, 1],)),
        ([slice(0, 1), 0], (slice(0, 1), 0)),
        ([None, 0], (None, 0)),
        ([..., 0], (..., 0)),
        ([lib.tensor(0), 1], (lib.tensor(0), 1)),
        ([np.array([0, 1]), 1], (np.array([0, 1]), 1)),
    ]
    for listed, index in cases:
        assert lib.equal(x[listed], x[index]), listed
        one, other = x.clone(), x.clone()
        one[listed], other[index] = -1, -1
        assert lib.equal(one, other), listed
    assert x[[0, 1]].shape == (2, 3, 4) and x[[True, False]].shape == (1, 3, 4)


def test_traces_take_lists_as_indices() -> None:
    x = weft.arange(24.0).reshape(2, 3, 4)
    i, j = weft.tensor([0, 1]), weft.tensor([1, 0])
    traced = weft.jit.trace(lambda x, i, j: x[[i, j]], (x, i, j))
    assert weft.equal(traced(x, j, i), x[j, i])


# ---- arrays of NumPy, numbers alone ----


@both
@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept")
def test_arrays_on_the_right_give_numpys_dtypes(lib: Any) -> None:
    x = lib.tensor([1, 2], dtype=lib.uint8)
    got = x - np.array(2)
    assert isinstance(got, lib.Tensor) and got.tolist() == [-1, 0] and got.dtype == lib.int64
    assert (x / np.array([2, 2])).dtype == lib.float64
    assert (x.float() + np.array([1, 2])).dtype == lib.float64
    assert (x + np.uint8(3)).dtype == lib.uint8


@both
@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept")
def test_functions_of_numpy_give_tensors_of_0_dims(lib: Any) -> None:
    x = lib.tensor([3.0, 4.0])
    for made in (np.sqrt(lib.tensor(625.0)), x @ np.float32([3, 4]), np.matmul(x, x)):
        assert isinstance(made, lib.Tensor) and made.shape == () and made.item() == 25
        assert made.dtype is lib.float32


def test_arrays_beside_gradients() -> None:
    x = weft.ones(2, requires_grad=True)
    (x * np.array([2.0, 3.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 3]


@both
def test_numbers_alone_and_by_name(lib: Any) -> None:
    x = lib.tensor([1, 2])
    for name in ("add", "sub", "mul", "div", "floor_divide"):
        function = getattr(lib, name)
        for number in (3, 2.5):
            assert function(number, 2).item() == function(lib.tensor(number), 2).item()
            expected = function(lib.tensor(number), x)
            for got in (function(number, other=x), function(input=number, other=x)):
                assert got.tolist() == expected.tolist() and got.dtype == expected.dtype
    assert lib.add(True, 1).dtype == lib.int64 and lib.add(1, 2).shape == ()


# ---- logarithms of running sums ----


@both
def test_complex_logcumsumexp(lib: Any) -> None:
    x = lib.tensor([1 + 4j, 3 + 5j, 0.5j], dtype=lib.complex128)
    got = lib.logcumsumexp(x, 0)
    assert got[1].imag.item() > 3.2  # the angle goes on beyond pi
    assert lib.allclose(got.exp(), x.exp().cumsum(0))
    large = lib.logcumsumexp(x + 1000, 0) - 1000
    assert lib.allclose(large, got)
    y = x.clone().requires_grad_()
    assert lib.autograd.gradcheck(lambda t: lib.logcumsumexp(t, 0), y)
    for wrong in (lib.arange(3), lib.tensor([True])):
        with pytest.raises(NotImplementedError):
            lib.logcumsumexp(wrong, 0)


# ---- error classes and names that programs look at ----


@both
def test_classes_of_errors(lib: Any) -> None:
    x = lib.ones(2)
    for absent in (lambda: x.cuda(), lambda: lib.zeros(1, device="cuda"), lib.cuda.init):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            absent()
    with pytest.raises(NotImplementedError):
        lib.softmax(lib.arange(3), 0)
    for convert in (float, int, complex):
        with pytest.raises(ValueError):
            convert(x)
    with pytest.raises(RuntimeError):
        x.item()
    with pytest.raises(RuntimeError):
        lib.nn.functional.embedding(x, lib.ones(3, 2))
    assert lib.zeros(1, device="cpu:1").device == lib.device("cpu")
    assert lib.device("mps:0").type == "mps"


@both
def test_classes_of_nodes_have_the_operators_names(lib: Any) -> None:
    class Twice(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = lib.ones(2, requires_grad=True)
    names = [type(y.grad_fn).__name__ for y in (x + 1, (x + 1).exp(), Twice.apply(x))]
    assert names == ["AddBackward0", "ExpBackward0", "TwiceBackward"]
    assert (x + 1).grad_fn is not None and len({(x * 2).grad_fn, (x * 2).grad_fn}) == 2


@both
def test_instance_norms_are_no_batch_norms(lib: Any) -> None:
    kinds = lib.nn.modules.batchnorm
    layer = lib.nn.InstanceNorm2d(3)
    assert isinstance(layer, kinds._NormBase) and not isinstance(layer, kinds._BatchNorm)
    assert isinstance(lib.nn.SyncBatchNorm(3), kinds._BatchNorm)


# ---- numbers of NumPy ----


@both
def test_bools_of_numpy_are_floating_numbers(lib: Any) -> None:
    """Only Python's own bools are bools; tensors are made of them by their dtype."""
    x, yes = lib.tensor([1, 2]), np.bool_(True)
    for result in (x + yes, yes + x, x * yes, x / yes, x**yes, lib.where(x > 1, yes, x)):
        assert result.dtype == lib.float32
    assert lib.full((2,), yes).dtype == lib.float32
    assert lib.tensor(yes).dtype == lib.tensor([yes]).dtype == lib.bool
    assert (x == yes).tolist() == [True, False] and x.masked_fill(x > 1, yes).tolist() == [1, 1]
    with pytest.raises(NotImplementedError):
        (x > 1) & yes


# ---- rows without elements ----


@both
def test_an_index_into_nothing_is_an_index_error(lib: Any) -> None:
    empty, rows = lib.empty(0), lib.empty(0, 3)
    calls: list[Any] = [
        *(lambda f=f: getattr(lib, f)(empty) for f in ("argmax", "argmin", "mode")),
        *(lambda f=f: getattr(lib, f)(rows, 0) for f in ("argmax", "mode", "median", "nanmedian")),
        lambda: lib.kthvalue(empty, 1),
        lambda: lib.max(rows, 0),
        lambda: lib.amax(rows, 0),
    ]
    for call in calls:
        with pytest.raises(IndexError):
            call()
    for call in (
        lambda: lib.max(empty),
        lambda: lib.amax(empty),
        lambda: lib.kthvalue(lib.ones(3), 5),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert lib.argmax(rows, 1).tolist() == [] and lib.mode(rows, 1)[0].tolist() == []


@both
def test_complex_logaddexp(lib: Any) -> None:
    a = lib.tensor([1 + 2j, 100 + 3j, -lib.inf, 3j], requires_grad=True)
    b = lib.tensor([3 - 1j, -100 + 1j, 1 + 1j, 3j], requires_grad=True)
    result = lib.logaddexp(a, b)
    expected = [2.85639477 - 0.97795033j, 100 + 3j, 1 + 1j, 0.69314718 + 3j]
    np.testing.assert_allclose(result.tolist(), expected, rtol=1e-6)
    (result[0] + result[3]).real.backward()
    share = np.exp(1 + 2j) / (np.exp(1 + 2j) + np.exp(3 - 1j))
    np.testing.assert_allclose(a.grad[[0, 3]].tolist(), [np.conj(share), 0.5], rtol=1e-6)


# ---- norms of 16-bit floats ----


@both
@pytest.mark.parametrize("dtype", HALVES)
def test_norms_of_halves_compute_in_float32(lib: Any, dtype: str) -> None:
    kind, rng = getattr(lib, dtype), np.random.default_rng(0)
    functional = lib.nn.functional
    small = lib.full((4,), 0.01).to(kind)  # its square is below the epsilon of 16 bits
    assert functional.rms_norm(small, (4,)).float().min().item() > 0.99
    x, weight, bias = (lib.tensor(rng.normal(size=s)).to(kind) for s in ((4, 6, 10), (6,), (6,)))
    got = functional.group_norm(x, 3, weight, bias)
    assert got.dtype == kind
    exact = functional.group_norm(x.float(), 3, weight.float(), bias.float())
    # one rounding: half a unit in the last place of numbers below 8
    assert (got.float() - exact).abs().max().item() <= 4 * lib.finfo(kind).eps
    wide = functional.group_norm(x, 3, weight.float(), bias.float())
    assert (
        wide.dtype == kind and (wide.float() - exact).abs().max().item() <= 4 * lib.finfo(kind).eps
    )


@both
def test_local_response_norm_of_integers(lib: Any) -> None:
    x = lib.tensor([1, 2, 3, 7]).reshape(1, 4, 1)
    got = lib.nn.functional.local_response_norm(x, 2, alpha=1.0, beta=1.0)
    np.testing.assert_allclose(got.flatten().tolist(), [1, 2 / 3, 3 / 7, 7 / 30], rtol=1e-6)


# ---- small things of the operator samples ----


@both
def test_sums_of_small_integers_in_einsum(lib: Any) -> None:
    a = lib.tensor([[[1, 2, 3], [4, 5, 6]]], dtype=lib.int8)
    found = lib.einsum("abc,c->b", a, lib.tensor([1, 0, 2], dtype=lib.int8))
    assert found.tolist() == [7, 16]
    assert lib.einsum("abc,d->b", a, lib.tensor([1, 2], dtype=lib.int8)).tolist() == [18, 45]


@both
def test_histograms_of_nothing_and_of_edges_that_fall(lib: Any) -> None:
    assert lib.histogram(lib.empty(0), 2).bin_edges.tolist() == [0, 0.5, 1]
    edges = lib.tensor([0.0, 3.0, 1.0])
    assert lib.histogramdd(lib.tensor([[2.0], [0.5]]), [edges]).hist.sum().item() == 1


@both
def test_out_shares_no_memory_with_what_is_selected(lib: Any) -> None:
    x, rows = lib.rand(4, 4), lib.tensor([0, 1, 2, 3])
    calls = {
        "gather": lambda out: lib.gather(x, 0, rows.expand(4, 4), out=out),
        "index_select": lambda out: lib.index_select(x, 0, rows, out=out),
        "take": lambda out: lib.take(x, rows.expand(4, 4), out=out),
    }
    for call in calls.values():
        with pytest.raises(RuntimeError):
            call(x)
        call(lib.empty(4, 4))
    with pytest.raises(RuntimeError):
        lib.index_select(x, 0, rows, out=lib.rand(1).expand(4, 4))


# ---- memory of results ----

#: functions that may have nothing to do, which still give memory of their own
FRESH: dict[str, Any] = {
    "diff": lambda t, x: t.diff(x, n=0),
    "chain_matmul": lambda t, x: t.chain_matmul(x),
    "histogram": lambda t, x: t.histogram(t.ones(3), x[0])[1],
    "pixel_shuffle": lambda t, x: t.pixel_shuffle(x.view(1, 4, 2, 2), 1),
    "pixel_shuffle: one place": lambda t, x: t.pixel_shuffle(x.view(16, 1, 1), 4),
    "pixel_unshuffle": lambda t, x: t.pixel_unshuffle(x.view(1, 4, 2, 2), 1),
    "pixel_unshuffle: one place": lambda t, x: t.pixel_unshuffle(x.view(1, 4, 4), 4),
    "channel_shuffle": lambda t, x: t.channel_shuffle(x.view(1, 4, 2, 2), 1),
    "ormqr": lambda t, x: t.ormqr(x, x[0, :0], x) if t is weft else x.clone(),
}


@both
@pytest.mark.parametrize("name", FRESH)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_results_have_memory_of_their_own(lib: Any, name: str) -> None:
    x = lib.arange(16.0).view(4, 4)
    result = FRESH[name](lib, x)
    before = x.clone()
    result.fill_(-1.0)
    assert lib.equal(x, before)


#: what a view shows, in memory of its own
COPIES: dict[str, Any] = {
    "alias_copy": lambda t, x: t.alias_copy(x),
    "detach_copy": lambda t, x: t.detach_copy(x),
    "permute_copy": lambda t, x: t.permute_copy(x, (2, 0, 1)),
    "transpose_copy": lambda t, x: t.transpose_copy(x, 0, 2),
    "slice_copy": lambda t, x: t.slice_copy(x, 0, 0, 1),
    "select_copy": lambda t, x: t.select_copy(x, 2, 0),
    "expand_copy": lambda t, x: t.expand_copy(x, (2, *x.shape)),
    "view_copy": lambda t, x: t.view_copy(x, x.dtype),
    "unsqueeze_copy": lambda t, x: t.unsqueeze_copy(x, 0),
    "squeeze_copy": lambda t, x: t.squeeze_copy(x),
    "t_copy": lambda t, x: t.t_copy(x[0]),
    "diagonal_copy": lambda t, x: t.diagonal_copy(x),
    "unfold_copy": lambda t, x: t.unfold_copy(x, 0, 2, 1),
    "as_strided_copy": lambda t, x: t.as_strided_copy(x, (2, 3), (1, 2)),
    "split_copy": lambda t, x: t.split_copy(x, 2)[0],
    "split_with_sizes_copy": lambda t, x: t.split_with_sizes_copy(x, [1, 3])[1],
    "unbind_copy": lambda t, x: t.unbind_copy(x)[0],
    "view_as_real_copy": lambda t, x: t.view_as_real_copy(x + 0j),
    "view_as_complex_copy": lambda t, x: t.view_as_complex_copy(x.reshape(3, 4, 2).transpose(0, 1)),
}


@both
@pytest.mark.parametrize("name", COPIES)
def test_copies_of_views_lie_row_by_row(lib: Any, name: str) -> None:
    assert COPIES[name](lib, lib.arange(24.0).view(2, 3, 4).permute(2, 1, 0)[:, :3]).is_contiguous()


@both
@pytest.mark.parametrize(
    ("shape", "sizes", "strides"),
    (
        ((3,), (1, 3), (3, 1)),
        ((3, 2), (1, 1, 3, 2), (6, 6, 2, 1)),
        ((3, 2), (2, 1, 3, 2), (0, 6, 2, 1)),
        ((3, 2), (1, 2, 3, 2), (0, 0, 2, 1)),
        ((1, 3), (1, 4, 3), (0, 0, 1)),
        ((), (1, 1), (0, 0)),
    ),
)
def test_new_dims_of_size_1_span_those_behind_them(
    lib: Any, shape: Any, sizes: Any, strides: Any
) -> None:
    assert lib.ones(shape).expand(sizes).stride() == strides
    assert lib.broadcast_to(lib.ones(shape), sizes).stride() == strides


@both
def test_a_copy_in_other_sizes_is_detached_in_place(lib: Any) -> None:
    x = lib.ones(2, 3, requires_grad=True)
    rows = (x * 2).T.reshape(-1)
    rows.detach_()
    assert rows.is_leaf and not rows.requires_grad
    base = x * 2
    with pytest.raises(RuntimeError):
        base.view(-1).detach_()


# ---- which dtype three operands have ----


@both
@pytest.mark.parametrize(
    ("kinds", "sizes", "wanted"),
    (
        (("bool", "uint8", "int32"), (1, 0, 0), "int32"),
        (("int64", "float64", "float32"), (1, 0, 1), "float32"),
        (("float64", "float16", "float32"), (0, 1, 0), "float16"),
        (("int32", "float64", "float16"), (0, 1, 1), "float64"),
        (("uint8", "int32", "int16"), (0, 1, 0), "int32"),
        (("float16", "float64", "float32"), (1, 1, 0), "float64"),
    ),
)
def test_clamp_promotes_all_operands_at_once(lib: Any, kinds: Any, sizes: Any, wanted: str) -> None:
    x, low, high = (
        lib.ones((2,) * size, dtype=getattr(lib, kind))
        for kind, size in zip(kinds, sizes, strict=True)
    )
    assert lib.clamp(x, low, high).dtype == getattr(lib, wanted)


# ---- segments and infinities ----


@both
@pytest.mark.parametrize("reduce", ("max", "min"))
@pytest.mark.parametrize("initial", (None, 2.0, float("nan"), float("-inf"), float("inf")))
def test_extremes_of_segments_share_their_gradient(lib: Any, reduce: str, initial: Any) -> None:
    nan, inf = float("nan"), float("inf")
    x = lib.tensor([2.0, 2, 1, nan, nan, 3, inf, inf, 5], requires_grad=True)
    reduced = lib.segment_reduce(x, reduce, lengths=lib.tensor([3, 3, 0, 3]), initial=initial)
    reduced.backward(lib.tensor([6.0, 6, 6, 6]))
    for segment, entries in ((0, slice(0, 3)), (1, slice(3, 6)), (3, slice(6, 9))):
        chosen = x[entries].isnan() | (x[entries] == reduced[segment])
        assert lib.equal(x.grad[entries], chosen * 6.0 / chosen.sum().clamp(min=1))


@both
def test_complex_logcumsumexp_of_infinities(lib: Any) -> None:
    inf = float("inf")
    low, high = complex(-inf, inf), complex(inf, -inf)
    assert lib.logcumsumexp(lib.tensor([low, 1j]), 0)[1].item() == 1j
    assert lib.logcumsumexp(lib.tensor([high, 1j]), 0)[1].item() == high


@both
@pytest.mark.parametrize("p", (None, "fro", "nuc", 1, -1, 2, -2, float("inf")))
def test_condition_numbers_of_matrices_without_elements(lib: Any, p: Any) -> None:
    for lead in ((), (2, 5)):
        found = lib.linalg.cond(lib.ones(*lead, 0, 0, dtype=lib.complex64), p)
        assert found.dtype == lib.float32 and lib.equal(found, lib.zeros(lead))
    assert lib.linalg.cond(lib.ones(0, 3, 3), p).shape == (0,)
