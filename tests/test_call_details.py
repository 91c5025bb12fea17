"""Calls at the edge of what an operator takes: what they give, write or raise."""

from __future__ import annotations

import copy
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft._runtime.annotations import annotations_in

X = weft.arange(6.0).reshape(2, 3)
NONE = weft.tensor([])


def same(got: Any, wanted: Any) -> bool:
    return got.dtype == wanted.dtype and got.shape == wanted.shape and weft.equal(got, wanted)


@pytest.mark.parametrize(
    ("function", "args", "wanted"),
    [
        (weft.linspace, (0, 3, 4), [0, 1, 2, 3]),
        (weft.logspace, (0, 3, 4, 2), [1, 2, 4, 8]),
        (weft.arange, (4,), [0, 1, 2, 3]),
        (weft.arange, (1, 9, 2), [1, 3, 5, 7]),
        pytest.param(
            weft.range, (0, 3), [0, 1, 2, 3], marks=pytest.mark.filterwarnings("ignore:range")
        ),
        (weft.fft.fftfreq, (4, 0.25), [0, 1, -2, -1]),
    ],
)
def test_a_series_fills_an_out_of_as_many_elements(function: Any, args: Any, wanted: Any) -> None:
    whole = weft.full((2, 3), -7.0)
    out = whole[:, 1:]
    assert function(*args, out=out) is out
    assert out.shape == (2, 2) and out.flatten().tolist() == wanted
    assert whole[:, 0].tolist() == [-7, -7]
    longer = weft.empty(0)
    function(*args, out=longer)
    assert longer.tolist() == wanted


@both
@pytest.mark.filterwarnings("ignore:Truncating")
def test_slices_clip_ints_of_any_size(lib: Any) -> None:
    x = lib.arange(6).reshape(2, 3)
    for index in (slice(2**64), slice(-(2**70), 1), (slice(None), slice(1, 2**100))):
        assert x[index].tolist() == x.numpy()[index].tolist()
    x[:, 2 : 2**64] = 7
    assert x.tolist() == [[0, 1, 7], [3, 4, 7]]


@both
def test_names_of_types_and_objects(lib: Any) -> None:
    given = [1, "a", [1], int, len, {}.get, 2.5, None, same, np.float32, math.sqrt]
    assert [lib.typename(one) for one in given] == [
        "int", "str", "list", "int", "len", "dict.get", "float", "NoneType", f"{__name__}.same",
        "numpy.float32", "math.sqrt",
    ]  # fmt: skip
    assert lib.typename(lib.ones(1)) == "torch.FloatTensor"


@pytest.mark.parametrize("dtype", [weft.float16, weft.bfloat16])
@pytest.mark.parametrize("count", [1, 40])
def test_a_wider_out_gets_what_the_dtype_of_the_result_holds(dtype: Any, count: int) -> None:
    x = weft.full((count,), 3e4, dtype=dtype)
    for made in (
        lambda **out: weft.add(x, x, alpha=2, **out),
        lambda **out: weft.exp(x / 3e4, **out),
    ):
        for wide in (weft.float32, weft.float64):
            out = weft.empty(0, dtype=wide)
            assert same(made(out=out), made().to(wide))
    widths = weft.frexp(x, out=(weft.empty(0, dtype=dtype), weft.empty(0, dtype=weft.int32)))
    assert weft.equal(widths[0], weft.frexp(x)[0])


def test_gradients_of_a_strided_view_of_memory_that_elements_share() -> None:
    base = weft.tensor([1.0, 2.0, 4.0, 8.0], dtype=weft.float64)

    def view(x: weft.Tensor) -> weft.Tensor:
        return x.as_strided((2, 2), (1, 1), 1)

    for shared in (base.expand(2, 4), base.as_strided((2, 2), (1, 1))):
        x = shared.detach().requires_grad_()
        weights = weft.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=weft.float64)
        (got,) = weft.autograd.grad((view(x) * weights).sum(), x)
        assert got.shape == x.shape
        # Whoever moves a place of the memory moves all elements that share it.
        moved = weft.tensor([0.0, 1.0, 0.0, 0.0], dtype=weft.float64)
        step = moved.as_strided(tuple(shared.shape), shared.stride())
        assert weft.allclose((got * step).sum(), (view(step) * weights).sum())


MASK = weft.tensor([True, False])
VALUES: list[tuple[str, Callable[[], Any], Any]] = [
    ("integrals of nothing", lambda: weft.cumulative_trapezoid(weft.ones(2, 0)), weft.ones(2, 0)),
    ("complex sums of infinities", lambda: weft.logaddexp(weft.tensor(complex(math.inf)), weft.tensor(complex(math.inf))), weft.tensor(complex(math.inf))),
    ("squares of full rank whatever rcond says", lambda: weft.linalg.lstsq(2 * weft.eye(2), weft.ones(2, 1), rcond=1.0, driver="gels")[0],
     weft.full((2, 1), 0.5)),
    ("squares by an rcond of 1", lambda: weft.linalg.lstsq(2 * weft.eye(1), weft.ones(1, 1), rcond=1.0, driver="gelsd")[0], weft.full((1, 1), 0.5)),
    ("condition by the least norm", lambda: weft.linalg.cond(weft.tensor([[4.0, 0], [0, 1], [0, 0]]), -2), weft.tensor(0.25)),
    ("eigenvalues by a small letter", lambda: weft.linalg.eigvalsh(weft.eye(2), UPLO="u"), weft.ones(2)),
    ("eigenvalues into a wider dtype", lambda: weft.linalg.eigvals(weft.eye(1), out=weft.empty(0, dtype=weft.complex128)),
     weft.ones(1, dtype=weft.complex128)),
    ("product of one matrix", lambda: weft.chain_matmul(X), X),
    ("bytes multiplied into an out", lambda: weft._int_mm(weft.ones(2, 2).char(), weft.ones(2, 2).char(), out=weft.empty(0, dtype=weft.int32)),
     weft.full((2, 2), 2, dtype=weft.int32)),
    ("how many are not 0", lambda: weft.linalg.vector_norm(weft.tensor([0.0, -0.0, math.nan, -3.0]), 0), weft.tensor(2.0)),
    ("a complex number as bool", lambda: weft.tensor([1j, 0j], dtype=weft.bool), MASK),
    ("any over no dims", lambda: weft.any(weft.tensor([1.0, 0.0]), dim=[]), MASK),
    ("all over no dims", lambda: weft.tensor([[5, 0]], dtype=weft.uint8).all(dim=(), keepdim=True), weft.tensor([[1, 0]], dtype=weft.uint8)),
    ("isclose without tolerance", lambda: weft.isclose(weft.tensor([2**53]), weft.tensor([2**53 + 1]), 0, 0), weft.tensor([False])),
    ("distances to nothing", lambda: weft.cdist(weft.ones(2, 5), weft.ones(0, 5)), weft.empty(2, 0)),
    ("slopes past infinity", lambda: weft.gradient(weft.tensor([0.0, math.inf, math.inf, 1.0, 3.0]))[0], weft.tensor([math.inf, math.inf, -math.inf, -math.inf, 2.0])),
    ("slopes by a complex spacing", lambda: weft.gradient(weft.tensor([0.0, 1.0, 4.0]), spacing=2j)[0], weft.tensor([-0.5j, -1j, -1.5j])),
    ("slopes of integers", lambda: weft.gradient(weft.tensor([1, 3, 7, 2]), spacing=2, edge_order=2)[0], weft.tensor([0.5, 1.5, -0.25, -4.75])),
    ("masked product over no dims", lambda: weft.masked.prod(weft.tensor([2, 3]), dim=[]), weft.tensor([2, 3])),
    ("hash over all dims", lambda: weft.hash_tensor(weft.tensor([3, 5]), dim=None), weft.tensor(6, dtype=weft.uint64)),
    ("new by its size", lambda: weft.ones(1, dtype=weft.int8).new(size=(2,)).zero_(), weft.zeros(2, dtype=weft.int8)),
    ("cat of nothing but empty vectors", lambda: weft.cat([NONE, NONE], dim=1), NONE),
    ("block_diag of nothing", weft.block_diag, weft.empty(1, 0)),
    ("fill of shared memory", lambda: weft.ones(1).expand(3).fill_(2), weft.full((3,), 2.0)),
    (
        "zeros in shared memory",
        lambda: weft.ones(4).as_strided((2, 2), (1, 1)).zero_(),
        weft.zeros(2, 2),
    ),
    ("adjoint of a number", lambda: weft.tensor(1 + 2j).adjoint(), weft.tensor(1 - 2j)),
    (
        "a large int as float",
        lambda: weft.tensor(2**70, dtype=weft.float64),
        weft.tensor(2.0**70, dtype=weft.float64),
    ),
    ("a large int as bool", lambda: weft.tensor([-(2**63) - 1, 0], dtype=weft.bool), MASK),
    ("large ints beside floats", lambda: weft.tensor([2**70, 1.5]), weft.tensor([2.0**70, 1.5])),
    ("a bool alpha of masks", lambda: weft.add(MASK, MASK, alpha=True), MASK),
    ("a capsule", lambda: weft.asarray(weft.ones(2).__dlpack__()), weft.ones(2)),
    (
        "a transposed sparse vector",
        lambda: weft.tensor([0.0, 3.0]).to_sparse().t().to_dense(),
        weft.tensor([0.0, 3.0]),
    ),
    (
        "a transposed sparse number",
        lambda: weft.tensor(3.0).to_sparse().t().to_dense(),
        weft.tensor(3.0),
    ),
    (
        "sparse times dense in place",
        lambda: weft.eye(2).to_sparse().mul_(weft.full((2, 2), 3.0)).to_dense(),
        3 * weft.eye(2),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "call", "wanted"), VALUES, ids=[case[0] for case in VALUES])
def test_values(what: str, call: Callable[[], Any], wanted: Any) -> None:
    assert same(call(), wanted)


ERRORS: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("floats over a list of integers", lambda: weft._foreach_clamp_max_([weft.tensor([1, 5])], 2.5), RuntimeError,
     "clamp_max: expected an output dtype that float32 can be cast to, got int64"),
    ("least of nothing", lambda: weft.linalg.vector_norm(weft.empty(0, 2), -math.inf, 0), RuntimeError,
     "vector_norm: expected elements for the order -inf, got none"),
    ("complex order", lambda: weft.linalg.vector_norm(X, 1j), RuntimeError, "vector_norm: expected a real order, got 1j"),
    ("einsum of nothing", lambda: weft.einsum("", []), ValueError, "einsum: expected at least one operand, got none"),
    ("alpha", lambda: weft.add(X, X, alpha=True), RuntimeError, "add: expected a bool alpha beside bools only, got dtypes float32 and float32"),
    ("alpha of sub_", lambda: X.clone().sub_(1, alpha=True), RuntimeError, "sub: expected a bool alpha beside bools only, got dtypes float32 and int64"),
    ("adjoint of a vector", lambda: X[0].adjoint(), RuntimeError, "adjoint: expected at least 2 dims, got shape (3,)"),
    ("coordinates of a tensor", lambda: weft.unravel_index(weft.tensor([1]), weft.tensor([2, 2])), TypeError,
     "unravel_index: expected shape as an int or ints, got tensor([2, 2])"),
    ("coordinates of floats", lambda: weft.unravel_index(weft.tensor([1]), (2, 2.0)), TypeError,
     "unravel_index: expected shape as an int or ints, got (2, 2.0)"),
    ("nonzero", lambda: weft.nonzero(X, as_tuple=True, out=weft.empty(0, dtype=weft.int64)), RuntimeError,
     "nonzero: expected no out with as_tuple=True, got one"),
    ("stream", lambda: X.__dlpack__(stream="a"), TypeError, "__dlpack__: expected stream as an int or None, got str"),
    ("complex of int", lambda: weft.int64.to_complex(), RuntimeError, "to_complex: expected a floating or complex dtype of 2 bytes or more, got int64"),
    ("number for a row", lambda: weft.tensor([[1, 2], 3]), TypeError, "tensor: expected a sequence of length 2 at dim 1, got int"),
    ("array of a number for a row", lambda: weft.tensor([np.ones(2), np.array(1.0)]), TypeError,
     "tensor: expected an item of shape (2,) at dim 1, got a number"),
    ("buffer", lambda: weft.frombuffer([1, 2], dtype=weft.int8), ValueError, "frombuffer: expected an object with a buffer, got list"),
    ("hstack of a tensor", lambda: weft.hstack(X), TypeError, "hstack: expected a list of tensors, got Tensor"),
    ("masked product over a dim that is not there", lambda: weft.masked.prod(X, dim=2), IndexError, "prod: expected dim in [-2, 1], got 2"),
    ("hash over a dim twice", lambda: weft.hash_tensor(X, dim=(0, -2)), RuntimeError, "hash_tensor: expected each dim at most once, got (0, -2)"),
    ("weights of another dtype", lambda: weft.histogram(X, 2, weight=X.double()), RuntimeError,
     "histogram: expected weights of torch.float32, got torch.float64"),
    ("storage of another dtype", lambda: weft.ones(2).set_(weft.ones(2, dtype=weft.float64).storage()), RuntimeError,
     "set_: expected a storage of torch.float32, got torch.float64"),
    ("deterministic", lambda: weft.use_deterministic_algorithms(1), TypeError, "use_deterministic_algorithms: expected mode of type bool, got int"),
    ("loss of a number", lambda: weft.nn.functional.nll_loss(weft.tensor(1.0), weft.tensor(1)), ValueError,
     "nll_loss: expected an input of at least 1 dim, got a 0-d tensor"),
    ("sparse floats into ints", lambda: weft.ones(2, dtype=weft.int64).add_(weft.ones(2).to_sparse()), RuntimeError,
     "add_: expected a dtype that torch.int64 can hold, got torch.float32 beside it"),
    ("sparse ints times floats", lambda: weft.ones(2, dtype=weft.int64).to_sparse().mul_(weft.ones(2)), RuntimeError,
     "mul_: expected a result that fits torch.int64, got torch.float32"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "call", "error", "text"), ERRORS, ids=[case[0] for case in ERRORS]
)
def test_errors(what: str, call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def _schedules(lib: Any) -> Any:
    optimizer = lib.optim.SGD([lib.ones(1)], lr=1.0)
    optimizer.step()
    return optimizer, lib.optim.lr_scheduler


#: calls that warn, and in PyTorch, too
WARNED: dict[str, Callable[[Any], Any]] = {
    "grid_sample": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 1, 1, 2)),
    "affine_grid": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2)),
    "chain_matmul": lambda t: t.chain_matmul(t.eye(2), t.eye(2)),
    "meshgrid": lambda t: t.meshgrid(t.ones(2), t.ones(3)),
    "kl_div": lambda t: t.nn.functional.kl_div(t.ones(2).log(), t.ones(2)),
    "KLDivLoss": lambda t: t.nn.KLDivLoss()(t.ones(2).log(), t.ones(2)),
    "T of three dimensions": lambda t: t.ones(2, 3, 4).T,
    "T of a vector": lambda t: t.ones(2).T,
    "a complex tensor to floats": lambda t: t.ones(2, dtype=t.complex64).float(),
    "a complex tensor to ints": lambda t: t.ones(2, dtype=t.complex64).to(t.int32),
    "a complex tensor into a real one": lambda t: t.ones(2).copy_(t.ones(2, dtype=t.complex64)),
    "a complex tensor in an assignment": lambda t: t.ones(2).__setitem__(
        0, t.ones((), dtype=t.complex64)
    ),
    "ReduceLROnPlateau.step": lambda t: (
        _schedules(t)[1].ReduceLROnPlateau(_schedules(t)[0]).step(1.0, 3)
    ),
    **{
        f"{name}.get_lr": lambda t, name=name, options=options: getattr(_schedules(t)[1], name)(
            _schedules(t)[0], **options
        ).get_lr()
        for name, options in {
            "StepLR": {"step_size": 2},
            "MultiStepLR": {"milestones": [1]},
            "ExponentialLR": {"gamma": 0.5},
            "CosineAnnealingLR": {"T_max": 5},
            "CosineAnnealingWarmRestarts": {"T_0": 5},
            "ConstantLR": {},
            "LinearLR": {},
            "PolynomialLR": {},
            "LambdaLR": {"lr_lambda": lambda epoch: 0.5},
            "MultiplicativeLR": {"lr_lambda": lambda epoch: 0.5},
            "CyclicLR": {"base_lr": 0.1, "max_lr": 1.0, "cycle_momentum": False},
            "OneCycleLR": {"max_lr": 1.0, "total_steps": 9, "cycle_momentum": False},
        }.items()
    },
}


@both
@pytest.mark.parametrize("name", WARNED)
def test_calls_that_are_rarely_meant_warn(lib: Any, name: str) -> None:
    lib.set_warn_always(True)  # what PyTorch says from C++ it says once otherwise
    try:
        with pytest.warns(UserWarning) as found:
            WARNED[name](lib)
    finally:
        lib.set_warn_always(False)
    assert len(found) == 1
    if lib is weft:
        assert "expected" in str(found[0].message) or "deprecated" in str(found[0].message)


def test_masks_of_bytes_warn() -> None:
    mask = weft.tensor([1, 0], dtype=weft.uint8)
    with pytest.warns(UserWarning, match="masks of dtype uint8 are deprecated"):
        assert X[mask].tolist() == [[0, 1, 2]]


def test_limits_are_equal_where_they_tell_the_same() -> None:
    assert weft.finfo(weft.float16) == weft.finfo(weft.float16) != weft.finfo(weft.bfloat16)
    assert weft.iinfo(weft.int8) == weft.iinfo(weft.int8) != weft.iinfo(weft.int16)


def test_storages_of_numpy_sizes() -> None:
    assert weft.UntypedStorage(np.int16(3)).nbytes() == 3
    assert len(weft.FloatStorage(np.int64(3))) == 3


@pytest.mark.parametrize("like", [weft.contiguous_format, weft.channels_last])
def test_resize_as_keeps_a_format(like: Any) -> None:
    model = weft.ones(2, 3, 4, 5).contiguous(memory_format=like)
    x = weft.ones(2).resize_as_(model, memory_format=weft.preserve_format)
    assert x.stride() == model.stride()


def test_drawn_complex_tensors_are_no_views() -> None:
    assert not weft.testing.make_tensor((2, 3), dtype=weft.complex64)._is_view()


def test_types_of_c_have_no_annotations() -> None:
    for kind in (types.FunctionType, type, int):
        assert annotations_in(kind) == {}


def test_copies_of_storages_share_memory_with_copies_of_tensors() -> None:
    x = weft.zeros(3)
    mine, typed, bytes_ = copy.deepcopy([x, x.storage(), x.untyped_storage()])
    mine.add_(1)
    assert typed.tolist() == [1, 1, 1] and bytes_.data_ptr() == mine.data_ptr() != x.data_ptr()
    assert copy.deepcopy(x.untyped_storage()) != x.untyped_storage()


def test_a_number_on_meta_formats_as_its_text() -> None:
    assert f"{weft.tensor(1.0, device='meta')}" == "tensor(..., device='meta', size=())"


def test_sparse_tensors_are_close_where_places_are_equal_and_values_close() -> None:
    x = weft.tensor([[0.0, 2.0], [3.0, 0.0]])
    twice = weft.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 1.0, 3.0], (2, 2))
    weft.testing.assert_close(x.to_sparse(), twice)
    for layout in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
        mine, near, far = (getattr(each, layout)() for each in (x, x * (1 + 1e-7), x * 2))
        weft.testing.assert_close(mine, near)
        for wrong in (far, getattr(x.T.contiguous() + weft.eye(2), layout)()):
            with pytest.raises(AssertionError):
                weft.testing.assert_close(mine, wrong)
        with pytest.raises(AssertionError, match="attribute 'layout'"):
            weft.testing.assert_close(mine, x)
        weft.testing.assert_close(mine, x, check_layout=False)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: weft.linalg.vector_norm(x, 0),
        lambda x: weft.cdist(x, x, p=0),
        lambda x: weft.linalg.matrix_power(x, 0),
    ],
)
def test_constants_of_a_tensor_have_the_gradient_0(function: Any) -> None:
    x = weft.tensor([[1.0, 0.0], [math.inf, 2.0]], requires_grad=True)
    function(x).sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("order", [0, 1])
def test_scaled_bessel_functions_of_large_numbers_follow_their_series(order: int) -> None:
    x = weft.tensor([1e2, 150.0, 300.0, 7e2, 1e4, 1e10, 1e300], dtype=weft.float64)
    z, wanted, term = 8 * x, weft.ones_like(x), weft.ones_like(x)
    for k in range(1, 12):  # DLMF 10.40.2
        term = term * (4 * order**2 - (2 * k - 1) ** 2) / (k * z)
        wanted = wanted + term
    wanted = wanted * (math.pi / (2 * x)).sqrt()
    got = getattr(weft.special, f"scaled_modified_bessel_k{order}")(x)
    weft.testing.assert_close(got, wanted, rtol=1e-14, atol=0)
    plain = getattr(weft.special, f"modified_bessel_k{order}")(x[:4])
    weft.testing.assert_close(plain, wanted[:4] * (-x[:4]).exp(), rtol=1e-13, atol=0)
    assert getattr(weft.special, f"scaled_modified_bessel_k{order}")(weft.tensor(math.inf)) == 0


@pytest.mark.parametrize("lost", [complex(math.nan, 0), complex(1, math.nan)])
@pytest.mark.parametrize("other", [complex(-math.inf, 0), complex(math.inf, 0), 1 + 2j])
def test_complex_logaddexp_keeps_nan(lost: complex, other: complex) -> None:
    for pair in ((lost, other), (other, lost)):
        assert weft.logaddexp(*map(weft.tensor, pair)).isnan()


def test_tensors_are_drawn_over_the_whole_range_of_a_dtype() -> None:
    limits = weft.finfo(weft.float32)
    x = weft.testing.make_tensor(1000, dtype=weft.float32, low=limits.min, high=limits.max)
    assert x.isfinite().all() and x.min() < limits.min / 2 and x.max() > limits.max / 2


def test_bytes_viewed_as_bools_count_as_true() -> None:
    x = weft.tensor([0, 2, 1, 0, 255, 3, 0, 1], dtype=weft.uint8).view(weft.bool)
    plain = weft.tensor([False, True, True, False, True, True, False, True])
    for call in (
        lambda x: weft.sort(x, stable=True),
        lambda x: weft.unique(x, return_inverse=True, return_counts=True),
        lambda x: weft.unique_consecutive(x, return_inverse=True, return_counts=True),
        lambda x: weft.unique(x.reshape(4, 2), dim=0, return_counts=True),
        lambda x: weft.cummax(x, 0),
        lambda x: weft.cummin(x, 0),
        lambda x: weft.mode(x),
    ):
        assert all(map(same, call(x), call(plain)))
    assert weft.equal(x, plain)


@pytest.mark.parametrize("reduce", ["amax", "amin", "mean", "prod"])
def test_gradients_of_reductions_in_place(reduce: str) -> None:
    index, source = weft.tensor([1, 1]), weft.tensor([3.0, 5.0], requires_grad=True)
    x = weft.tensor([1.0, 2.0], requires_grad=True)
    wanted = weft.autograd.grad(x.index_reduce(0, index, source, reduce).sum(), (x, source))
    got = weft.autograd.grad(x.clone().index_reduce_(0, index, source, reduce).sum(), (x, source))
    assert all(map(same, got, wanted))
    y = x.clone().nextafter_(source)
    assert weft.autograd.grad(y.sum(), x)[0].tolist() == [1, 1]
