"""Functions for layouts, segments, hashes, low ranks and symbolic numbers: NumPy's values, PyTorch's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*range is deprecated", "ignore:.*norm is deprecated"
)
Form = Callable[[Any], Any]


def x_of(t: Any) -> Any:
    return t.arange(12.0).sub(5).reshape(3, 4)


X = np.arange(12.0).reshape(3, 4) - 5

#: a call, and what it gives in NumPy
FORMS: dict[str, tuple[Form, Any]] = {
    "range": (lambda t: t.range(1, 2.9), np.array([1.0, 2.0])),
    "range: of fractions": (lambda t: t.range(0, -1, -0.3), np.array([0, -0.3, -0.6, -0.9])),
    "range: a dtype": (lambda t: t.range(1, 3, dtype=t.int64), np.array([1, 2, 3])),
    "range: out": (lambda t: t.range(1, 3, out=t.ones(0)), np.array([1.0, 2.0, 3.0])),
    "empty_permuted": (lambda t: t.empty_permuted((2, 3, 4), (1, 0, 2)).stride(), (4, 8, 1)),
    "new_empty_strided": (lambda t: t.ones(2).new_empty_strided((2, 3), (1, 2)).stride(), (1, 2)),
    "dim_order": (lambda t: x_of(t).t().dim_order(), (1, 0)),
    "dim_order: a format": (
        lambda t: t.ones(2, 3, 4, 5).to(memory_format=t.channels_last).dim_order(
            ambiguity_check=[t.contiguous_format, t.channels_last]
        ),
        (0, 2, 3, 1),
    ),
    "as_strided_": (lambda t: x_of(t).as_strided_((2, 2), (1, 2), 1), np.array([[-4.0, -2], [-3, -1]])),
    "detach_": (lambda t: t.detach_(t.ones(2, requires_grad=True) * 2), np.array([2.0, 2.0])),
    "is_same_size": (lambda t: [t.is_same_size(x_of(t), x_of(t).t()), x_of(t).is_same_size(x_of(t))], [False, True]),
    "is_signed": (lambda t: [t.is_signed(t.ones(1)), t.is_signed(t.ones(1, dtype=t.uint8))], [True, False]),
    "is_nonzero": (lambda t: [t.ones(1).is_nonzero(), t.zeros(1).is_nonzero()], [True, False]),
    "get_device": (lambda t: t.get_device(t.ones(1)), -1),
    "unsafe_split_with_sizes": (lambda t: t.unsafe_split_with_sizes(x_of(t), [1, 2])[1], X[1:]),
    "view_as_real_copy": (lambda t: t.view_as_real_copy(t.tensor([1 + 2j])), np.array([[1.0, 2.0]])),
    "view_as_complex_copy": (lambda t: t.view_as_complex_copy(t.tensor([[1.0, 2.0]])), np.array([1 + 2j])),
    "swapdims": (lambda t: t.swapdims(x_of(t), 0, 1), X.T),
    "swapdims_": (lambda t: x_of(t).swapdims_(0, 1), X.T),
    "hash_tensor": (lambda t: t.hash_tensor(t.tensor([3, 5, 9])).item(), 3 ^ 5 ^ 9),
    "hash_tensor: rows": (lambda t: t.hash_tensor(t.tensor([[3, 5], [1, 1]]), dim=1).tolist(), [6, 0]),
    "hash_tensor: floats": (lambda t: t.hash_tensor(t.tensor([1.0])).item(), 0x3FF0000000000000),
    "segment_reduce": (
        lambda t: t.segment_reduce(t.arange(6.0), "sum", lengths=t.tensor([2, 0, 4])),
        np.array([1.0, 0.0, 14.0]),
    ),
    "segment_reduce: means": (
        lambda t: t.segment_reduce(t.arange(6.0), "mean", lengths=t.tensor([2, 0, 4]), initial=1),
        np.array([1.0, 1.0, 3.75]),
    ),
    "segment_reduce: empty means": (
        lambda t: t.segment_reduce(t.arange(6.0), "mean", lengths=t.tensor([2, 0, 4])),
        np.array([0.5, np.nan, 3.5]),
    ),
    "segment_reduce: least": (
        lambda t: t.segment_reduce(t.arange(6.0), "min", lengths=t.tensor([2, 0, 4]), initial=3),
        np.array([0.0, 3.0, 2.0]),
    ),
    "segment_reduce: offsets": (
        lambda t: t.segment_reduce(t.arange(6.0), "prod", offsets=t.tensor([0, 2, 6])),
        np.array([0.0, 120.0]),
    ),
    "segment_reduce: along rows": (
        lambda t: t.segment_reduce(x_of(t), "max", lengths=t.tensor([[1, 3], [2, 2], [0, 4]]), axis=1),
        np.array([[-5, -2], [0, 2], [-np.inf, 6]]),
    ),
    "segment_reduce: some entries": (
        lambda t: t.segment_reduce(x_of(t), "sum", lengths=t.tensor([1, 1]), unsafe=True),
        X[:2],
    ),
    "frobenius_norm": (lambda t: t.frobenius_norm(x_of(t), dim=1), np.linalg.norm(X, axis=1)),
    "nuclear_norm": (lambda t: t.nuclear_norm(x_of(t), keepdim=True), np.full((1, 1), np.linalg.norm(X, "nuc"))),
    "igamma_": (lambda t: t.ones(1).igamma_(t.full((1,), 2.0)), np.array([1 - np.exp(-2)])),
    "igammac_": (lambda t: t.ones(1).igammac_(t.full((1,), 2.0)), np.array([np.exp(-2)])),
    "zeta of infinity": (
        lambda t: t.special.zeta(np.inf, t.tensor([0.5, 1, -1, 0, -0.5])),
        np.array([np.inf, 1, np.inf, np.inf, np.inf]),
    ),
    "mvlgamma_": (lambda t: t.full((1,), 2.0).mvlgamma_(1), np.array([0.0])),
    "cumsum_": (lambda t: x_of(t).cumsum_(1), X.cumsum(1)),
    "cumsum_: int32": (lambda t: x_of(t).int().cumsum_(dim=0), X.astype(np.int32).cumsum(0)),
    "cumprod_": (lambda t: x_of(t).cumprod_(0), X.cumprod(0)),
    "i0_": (lambda t: t.i0_(t.ones(1)), np.array([1.2660658])),
    "digamma_": (lambda t: t.ones(1).digamma_(), np.array([-0.57721566])),
    "polygamma_": (lambda t: t.ones(1).polygamma_(1), np.array([np.pi**2 / 6])),
    "float_power_": (lambda t: x_of(t).double().float_power_(2), X**2),
    "float_power_: a tensor": (lambda t: x_of(t).double().float_power_(t.tensor([2, 1, 2, 1])), X ** [2, 1, 2, 1]),
    "swapaxes_": (lambda t: x_of(t).swapaxes_(axis0=0, axis1=1), X.T),
    "hardshrink": (lambda t: x_of(t)[1].hardshrink(1.5), np.array([0.0, 0, 0, 2])),
    "prelu": (lambda t: x_of(t)[0].prelu(t.tensor([0.5])), X[0] * 0.5),
    "symbolic": (
        lambda t: [t.sym_max(3, 2.0), t.sym_min(3, 2), t.sym_int(2.7), t.sym_float(2), t.sym_not(True),
                   t.sym_sum([1, 2]), t.sym_ite(False, 1, 2), t.sym_sqrt(9), t.sym_constrain_range(3, max=4)],
        [3.0, 2, 2, 2.0, False, 3, 2, 3.0, None],
    ),
    "settings": (
        lambda t: [t.set_warn_always(False), t.is_warn_always_enabled(), t.set_flush_denormal(False),
                   t.get_device_module("cpu") is t.cpu, t.get_num_interop_threads() > 0],
        [None, False, True, True, True],
    ),
}  # fmt: skip


def _check(got: Any, expected: Any) -> None:
    if not isinstance(expected, np.ndarray):
        assert got == expected and type(got) is type(expected)
        return
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", FORMS)
def test_values(name: str) -> None:
    _check(FORMS[name][0](weft), FORMS[name][1])


@pytest.mark.parity
@pytest.mark.parametrize("name", FORMS)
def test_values_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    _check(FORMS[name][0](torch), FORMS[name][1])
    if isinstance(FORMS[name][1], np.ndarray):
        ours, theirs = FORMS[name][0](weft), FORMS[name][0](torch)
        assert str(ours.dtype) == str(theirs.dtype) and ours.stride() == theirs.stride()


REFUSED: dict[str, tuple[Form, type[Exception]]] = {
    "range: a step of 0": (lambda t: t.range(1, 1, 0), RuntimeError),
    "range: away": (lambda t: t.range(4, 1), RuntimeError),
    "range: one number": (lambda t: t.range(4), TypeError),
    "empty_permuted": (lambda t: t.empty_permuted((2, 3), (0, 0)), RuntimeError),
    "dim_order": (lambda t: t.ones(1, 1).dim_order(ambiguity_check=True), RuntimeError),
    "segment_reduce: a name": (
        lambda t: t.segment_reduce(t.ones(2), "bad", lengths=t.tensor([2])), RuntimeError,
    ),
    "segment_reduce: no lengths": (lambda t: t.segment_reduce(t.ones(2), "sum"), RuntimeError),
    "segment_reduce: a sum": (
        lambda t: t.segment_reduce(t.ones(2), "sum", lengths=t.tensor([1])), RuntimeError,
    ),
    "segment_reduce: an axis": (
        lambda t: t.segment_reduce(x_of(t), "sum", lengths=t.tensor([1, 2]), axis=1), RuntimeError,
    ),
    "segment_reduce: integers": (
        lambda t: t.segment_reduce(t.arange(2), "sum", lengths=t.tensor([2])), NotImplementedError,
    ),
    "nuclear_norm": (lambda t: t.nuclear_norm(t.ones(2)), RuntimeError),
    "igamma_": (lambda t: t.ones(1, dtype=t.int64).igamma_(t.ones(1)), RuntimeError),
    "i0_": (lambda t: t.ones(1, dtype=t.int64).i0_(), RuntimeError),
    "cumsum_": (lambda t: t.ones(2).cumsum_(0, dtype=t.float64), RuntimeError),
    "float_power_": (lambda t: t.ones(2).float_power_(2), RuntimeError),
    "float_power_: complex": (lambda t: t.ones(2).double().float_power_(2j), RuntimeError),
    "sym_ite": (lambda t: t.sym_ite(1, 2, 3), AssertionError),
    "sym_constrain_range": (lambda t: t.sym_constrain_range(3, min=1, max=2), RuntimeError),
    "get_device_module": (lambda t: t.get_device_module("foo"), RuntimeError),
    "pca_lowrank": (lambda t: t.pca_lowrank(x_of(t), 9), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, error = REFUSED[name]
    with pytest.raises(error, match=": expected"):
        call(weft)


@pytest.mark.parity
@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses(name: str) -> None:
    torch = pytest.importorskip("torch")
    call, error = REFUSED[name]
    with pytest.raises(error):
        call(torch)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (2, 5, 4)])
def test_low_rank_approximations(shape: tuple[int, ...]) -> None:
    weft.manual_seed(0)
    a = weft.randn(*shape, dtype=weft.float64)
    rank = min(shape[-2:])
    for made, of in ((weft.svd_lowrank(a, rank), a), (weft.pca_lowrank(a, rank), a - a.mean(-2, True)),
                     (weft.svd_lowrank(a, rank, M=a * 0.5), a * 0.5)):  # fmt: skip
        u, s, v = made
        np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mT).numpy(), of.numpy(), atol=1e-10)


@pytest.mark.parity
def test_low_rank_approximations_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made = []
    for t in (weft, torch):
        t.manual_seed(3)
        made.append([each.abs().tolist() for each in t.svd_lowrank(x_of(t).sin(), 2)])
        t.manual_seed(3)
        made[-1] += [each.abs().tolist() for each in t.pca_lowrank(x_of(t).sin().t(), 2)]
    for one, other in zip(*made):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_gradients_in_place() -> None:
    x = weft.rand(2, 3, dtype=weft.float64, requires_grad=True)
    for name, args in (("cumsum_", (1,)), ("cumprod_", (0,)), ("i0_", ()), ("digamma_", ()),
                       ("polygamma_", (1,)), ("float_power_", (3,)), ("mvlgamma_", (1,))):  # fmt: skip
        assert weft.autograd.gradcheck(
            lambda x, n=name, a=args: getattr((x + 1) * 1, n)(*a).sin(), [x]
        )
    y = x * 1
    assert y.cumprod_(0) is y


def test_gradients_of_segments() -> None:
    data = weft.randn(6, 2, dtype=weft.float64, requires_grad=True)
    lengths = weft.tensor([2, 1, 3])
    for reduce in ("sum", "mean", "prod", "max", "min"):
        assert weft.autograd.gradcheck(
            lambda x, r=reduce: weft.segment_reduce(x, r, lengths=lengths), [data]
        )


def test_exports_of_modules():
    from weft._runtime.exports import list_own, take_own

    def made(name: str, module: str) -> type:
        return type(name, (), {"__module__": module})

    names = {
        "__name__": "pack", "Any": Any, "sys": sys, "Own": made("Own", "pack.part"), "_Own": made("_Own", "pack"),
        "Other": made("Other", "package"), "LIMIT": 3, "T": TypeVar("T"),
    }  # fmt: skip
    list_own(names, "LIMIT")
    assert names["__all__"] == ["LIMIT", "Own"] and "Other" in names
    take_own(names)
    assert names["__all__"] == ["Own"] and {"Other", "sys", "Any", "LIMIT"}.isdisjoint(names)
