"""Second names, constructors by type, operators over lists, and the functions written in Python."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

import weft
from weft._functions import foreach as _foreach
from weft._tensor import aliases as _aliases
from weft._tensor import legacy_types as _typed
from weft.autograd import gradcheck


@pytest.mark.parametrize("alias", sorted(_aliases.ALIASES))
def test_a_second_name_is_the_first_ones_operator(alias: str) -> None:
    name = _aliases.ALIASES[alias]
    assert getattr(weft, alias) is getattr(weft, name)
    assert getattr(weft.Tensor, alias) is getattr(weft.Tensor, name)
    if hasattr(weft.Tensor, f"{name}_"):
        assert getattr(weft.Tensor, f"{alias}_") is getattr(weft.Tensor, f"{name}_")


@pytest.mark.parametrize("name", sorted(_typed.TYPES))
def test_constructors_by_type(name: str) -> None:
    make, dtype = getattr(weft, name), getattr(weft, _typed.TYPES[name])
    assert make(2, 3).dtype == make([0, 1]).dtype == make().dtype == dtype
    assert tuple(make(2, 3).shape) == tuple(make(weft.Size([2, 3])).shape) == (2, 3)
    assert make([[1, 0]]).tolist() == [[1, 0]]
    assert make(np.array([1, 0])).tolist() == [1, 0]
    assert tuple(make().shape) == (0,)
    x = weft.ones(2, dtype=dtype)
    assert isinstance(x, make)
    assert not isinstance(weft.ones(2, dtype=weft.complex64), make)
    assert make(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match=f"{name}: expected a tensor of"):
        make(weft.ones(1, dtype=weft.complex64))
    with pytest.raises(TypeError, match=f"{name}: expected sizes or one sequence, got 2"):
        make([1], [2])


@pytest.mark.parametrize("name", sorted(_typed.TYPES))
def test_types_of_gpus_are_of_no_tensor(name: str) -> None:
    kind = getattr(weft.cuda, name)
    assert kind is getattr(weft.cuda, name) and kind.__name__ == name
    assert not isinstance(weft.ones(2, dtype=getattr(weft, _typed.TYPES[name])), kind)
    with pytest.raises(TypeError, match=f"cuda.{name}: expected a device of the type, got a build"):
        kind(2)


def test_operators_over_lists() -> None:
    first = [weft.tensor([1.0, 2.0]), weft.tensor([[3.0]])]
    second = [weft.tensor([4.0, 5.0]), weft.tensor([[6.0]])]

    def values(tensors: list[weft.Tensor]) -> list[object]:
        return [t.tolist() for t in tensors]

    assert values(weft._foreach_add(first, second, alpha=2)) == [[9, 12], [[15]]]
    assert values(weft._foreach_mul(first, 2)) == [[2, 4], [[6]]]
    assert values(weft._foreach_mul(first, [2, 3])) == [[2, 4], [[9]]]
    assert values(weft._foreach_sqrt([t * t for t in first])) == values(first)
    assert values(weft._foreach_addcmul(first, second, second, value=1)) == [[17, 27], [[39]]]
    assert values(weft._foreach_addcdiv(first, second, second, [2, 3])) == [[3, 4], [[6]]]
    assert values(weft._foreach_lerp(first, second, 0.5)) == [[2.5, 3.5], [[4.5]]]
    assert values(weft._foreach_maximum(first, 2.5)) == [[2.5, 2.5], [[3]]]
    assert values(weft._foreach_minimum(first, [weft.tensor(1.5), weft.tensor(9.0)])) == [
        [1, 1.5],
        [[3]],
    ]
    assert values(weft._foreach_pow(2, first)) == [[2, 4], [[8]]]
    norms = weft._foreach_norm(second)
    assert [n.item() for n in norms] == pytest.approx([math.sqrt(41), 6])
    assert weft._foreach_norm(second, math.inf)[0].item() == 5
    targets = [t.clone() for t in first]
    for name, args in (("add_", (second,)), ("mul_", (2,)), ("sub_", (second,)), ("neg_", ())):
        assert getattr(weft, f"_foreach_{name}")(targets, *args) is targets
    assert values(targets) == [[-6, -9], [[-12]]]
    weft._foreach_addcdiv_(targets, second, second, -1)
    weft._foreach_clamp_min_(targets, -8)
    assert values(targets) == [[-7, -8], [[-8]]]
    weft._foreach_copy_(targets, first)
    assert values(targets) == values(first)
    weft._foreach_zero_(targets)
    assert values(targets) == [[0, 0], [[0]]]
    with pytest.raises(TypeError, match="_foreach_add: expected lists of tensors before numbers"):
        weft._foreach_add(first, 2, second)  # no place for alpha, unlike add(x, 2, y)
    with pytest.raises(RuntimeError, match="_foreach_add: expected lists of 2, got one of 1"):
        weft._foreach_add(first, second[:1])
    with pytest.raises(RuntimeError, match="_foreach_mul: expected a list of at least one tensor"):
        weft._foreach_mul([], 2)
    with pytest.raises(AttributeError, match="_foreach_sort"):
        weft._foreach_sort  # noqa: B018


NAMED_LISTS: list[tuple[str, dict[str, Any]]] = [
    ("abs", {"self": [-1.0, 2.0]}),
    ("add", {"self": [1.0, 2.0], "other": [3.0, 4.0], "alpha": 2}),
    ("add", {"self": [1.0, 2.0], "scalar": 3}),
    ("sub_", {"self": [1.0, 2.0], "scalars": [3, 4.5]}),
    ("mul", {"self": [1.0, 2.0], "other": 3.0}),
    ("div_", {"self": [1.0, 2.0], "scalars": [4.0, 8.0]}),
    ("pow", {"self": [1.0, 2.0], "exponent": [2.0, 3.0]}),
    ("pow", {"self": 2, "exponent": [1.0, 3.0]}),
    ("maximum", {"self": [1.0, 2.0], "scalars": [1.5, 0.5]}),
    ("clamp_min_", {"self": [1.0, 2.0], "scalar": 1.5}),
    ("clamp_max", {"self": [1.0, 2.0], "other": [0.5, 3.0]}),
    ("addcmul", {"self": [1.0, 2.0], "tensor1": [3.0, 4.0], "tensor2": [5.0, 6.0], "value": 0.5}),
    ("addcdiv_", {"self": [1.0, 2.0], "tensor1": [3.0, 4.0], "tensor2": [5.0, 6.0]}),
    ("addcmul_", {"self": [1.0, 2.0], "tensor1": [3.0, 4.0], "tensor2": [5.0, 6.0],
                  "scalars": [0.5, 2.0]}),
    ("lerp", {"self": [1.0, 2.0], "tensors1": [3.0, 4.0], "weight": 0.5}),
    ("lerp_", {"self": [1.0, 2.0], "tensors1": [3.0, 4.0], "weights": [0.5, 0.25]}),
    ("norm", {"self": [-1.0, 2.0], "ord": 1}),
    ("copy_", {"self": [1.0, 2.0], "src": [3.0, 4.0], "non_blocking": True}),
    ("zero_", {"self": [1.0, 2.0]}),
]  # fmt: skip


def of_lists(lib: Any, name: str, named: dict[str, Any]) -> list[float]:
    given = {}
    for key, value in named.items():
        tensors = isinstance(value, list) and key != "scalars"
        single = key == "other" and isinstance(value, float)
        given[key] = [lib.full((2,), v) for v in value] if tensors else value
        given[key] = lib.tensor(value) if single else given[key]
    result = getattr(lib, f"_foreach_{name}")(**given)
    if name.endswith("_"):
        assert result is given["self"] or lib is not weft
        result = given["self"]
    return [tensor.reshape(-1)[0].item() for tensor in result]


@pytest.mark.parametrize(("name", "named"), NAMED_LISTS)
def test_lists_by_name(name: str, named: dict[str, Any]) -> None:
    by_place = dict(named)
    kept = {key: by_place.pop(key) for key in ("alpha",) if key in by_place}
    values = [
        [weft.full((2,), v) for v in value]
        if isinstance(value, list) and key != "scalars"
        else value
        for key, value in by_place.items()
    ]
    result = getattr(weft, f"_foreach_{name}")(*values, **kept)
    assert of_lists(weft, name, named) == [each.reshape(-1)[0].item() for each in result]
    with pytest.raises(TypeError):
        of_lists(weft, name, {**named, "nonsense": 1})


@pytest.mark.parity
@pytest.mark.parametrize(("name", "named"), NAMED_LISTS)
def test_lists_by_name_equal_torch(name: str, named: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    assert of_lists(weft, name, named) == pytest.approx(of_lists(torch, name, named), rel=1e-6)


def test_numbers_for_lists_in_a_vector() -> None:
    lists = [[weft.ones(2), weft.ones(2)] for _ in range(3)]
    result = weft._foreach_addcmul(*lists, weft.tensor([0.5, 2.0]))
    assert isinstance(result, tuple) and [each.tolist() for each in result] == [[1.5] * 2, [3] * 2]
    norms = weft._foreach_norm(lists[0], ord=1, dtype=weft.float64)
    assert [n.dtype for n in norms] == [weft.float64] * 2


@pytest.mark.parametrize("name", sorted(_foreach.NAMES))
def test_every_list_operator_runs(name: str) -> None:
    lists = [[weft.full((2,), 0.5)], [weft.full((2,), 0.25)], [weft.full((2,), 0.75)]]
    base = name.rstrip("_")
    count = 3 if base in ("addcmul", "addcdiv") else 2 if base in _foreach._BINARY.split() else 1
    count = 3 if base == "lerp" else 2 if base == "copy" else count
    got = getattr(weft, f"_foreach_{name}")(*lists[:count])
    result = lists[0][0] if name.endswith("_") else got[0]
    one = getattr(weft.Tensor, base + "_" if base in ("copy", "zero") else base, None)
    expected = one(*(weft.full((2,), v) for v in (0.5, 0.25, 0.75)[:count])) if one else None
    assert expected is not None
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)


NUMPY_CALLS = [
    ("quantile", {"q": 0.5}, "axis keepdims"), ("nanquantile", {"q": 0.5}, "axis keepdims"),
    ("trapezoid", {}, "axis"), ("cumulative_trapezoid", {}, "axis"), ("gradient", {}, "axis"),
    ("cosine_similarity", {"x2": weft.ones(2, 3)}, "axis"),
    *((f"linalg.{name}", {}, "axis keepdims") for name in ("norm", "vector_norm")),
    ("linalg.vecdot", {"y": weft.ones(2, 3)}, "axis"),
    *((f"fft.{name}", {}, "axis") for name in ("fft", "irfft", "fftn", "hfftn", "fftshift")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rest", "names"), NUMPY_CALLS)
def test_functions_take_numpys_names(name: str, rest: dict[str, Any], names: str) -> None:
    x = weft.rand(2, 3)
    function = operator.attrgetter(name)(weft)
    along = (0,) if name.endswith("n") and "fft" in name else 0
    flags = {"keepdims": True} if "keepdims" in names else {}
    plain = function(x, **rest, dim=along, **({"keepdim": True} if flags else {}))
    for got, expected in zip(function(x, **rest, axis=along, **flags), plain):
        assert weft.equal(got, expected)
    with pytest.raises(TypeError, match="expected dim or axis, got both"):
        function(x, **rest, dim=0, axis=0)


def _norm_along(x: weft.Tensor) -> weft.Tensor:
    return weft.linalg.norm(x, dim=1) + weft.fft.fft(x, dim=0).abs().sum(1)


def test_programs_and_traces_call_them_by_pytorchs_names() -> None:
    x = weft.rand(2, 3)
    expected = _norm_along(x)
    for made in (weft.jit.script(_norm_along), weft.jit.trace(_norm_along, x)):
        np.testing.assert_allclose(made(x).numpy(), expected.numpy(), rtol=1e-6)


# ---- functions written in Python ----


def test_splits() -> None:
    x = weft.arange(24).reshape(2, 4, 3)
    array = x.numpy()
    for ours, theirs, where in (
        (weft.hsplit, np.hsplit, 2),
        (weft.vsplit, np.vsplit, [1]),
        (weft.dsplit, np.dsplit, [1, 2]),
    ):
        for part, other in zip(ours(x, where), theirs(array, where)):
            np.testing.assert_array_equal(part.numpy(), other)
    assert [p.tolist() for p in weft.hsplit(weft.arange(4), 2)] == [[0, 1], [2, 3]]
    assert [p.tolist() for p in x[0].vsplit(2)] == [x[0, :2].tolist(), x[0, 2:].tolist()]
    copies = weft.unbind_copy(x, 1)
    assert copies[0].tolist() == x[:, 0].tolist() and copies[0].data_ptr() != x.data_ptr()
    assert [p.size(1) for p in weft.split_with_sizes_copy(x, [1, 3], 1)] == [1, 3]
    with pytest.raises(
        RuntimeError, match="hsplit: expected sections that divide the size 4, got 3"
    ):
        weft.hsplit(x, 3)
    with pytest.raises(RuntimeError, match="dsplit: expected at least 3 dims"):
        weft.dsplit(x[0], 1)


def test_integrals_and_slopes() -> None:
    y, x = np.random.default_rng(2).normal(size=(3, 5)), np.array([0.0, 0.5, 2.0, 2.5, 4.0])
    places = weft.from_numpy(x)
    t = weft.from_numpy(y).requires_grad_()
    np.testing.assert_allclose(
        weft.trapezoid(t, places).detach().numpy(),
        np.trapezoid(y, x) if hasattr(np, "trapezoid") else np.trapz(y, x),
    )
    np.testing.assert_allclose(weft.trapz(t, dx=2).detach().numpy(), (y[:, 1:] + y[:, :-1]).sum(1))
    running = weft.cumulative_trapezoid(t, places)
    np.testing.assert_allclose(
        running[:, -1].detach().numpy(), weft.trapezoid(t, places).detach().numpy()
    )
    assert gradcheck(lambda v: weft.cumulative_trapezoid(v, places, dim=1), [t])
    for order in (1, 2):
        for got, expected in zip(
            weft.gradient(t, edge_order=order), np.gradient(y, edge_order=order)
        ):
            np.testing.assert_allclose(got.detach().numpy(), expected)
        (slope,) = weft.gradient(t, spacing=(places,), dim=1, edge_order=order)
        np.testing.assert_allclose(
            slope.detach().numpy(), np.gradient(y, x, axis=1, edge_order=order)
        )
    with pytest.raises(
        RuntimeError, match="gradient: expected at least 2 entries along dim 0, got 1"
    ):
        weft.gradient(weft.ones(1))


def test_ladders_and_places() -> None:
    np.testing.assert_allclose(weft.logspace(0, 3, 4).numpy(), [1, 10, 100, 1000], rtol=1e-6)
    np.testing.assert_allclose(weft.logspace(0, 3, 4, base=2).numpy(), [1, 2, 4, 8])
    index = weft.tensor([0, 5, 11])
    assert [t.tolist() for t in weft.unravel_index(index, (3, 4))] == [[0, 1, 2], [0, 1, 3]]
    with pytest.raises(ValueError, match=r"unravel_index: expected indices in \[0, 11\]"):
        weft.unravel_index(weft.tensor([12]), (3, 4))
    x = weft.tensor([3.0, 4.5], dtype=weft.float64)
    expected = math.log(math.pi) / 2 + np.array(
        [math.lgamma(v) + math.lgamma(v - 0.5) for v in (3.0, 4.5)]
    )
    np.testing.assert_allclose(x.mvlgamma(2).numpy(), expected)
    np.testing.assert_allclose(weft.special.multigammaln(x, 2).numpy(), expected)
    wide = weft.ones(2, 3, 4)
    assert wide.sum_to_size(3, 1).tolist() == [[8], [8], [8]]
    assert wide.sum_to_size((1, 1, 4)).tolist() == [[[6, 6, 6, 6]]]
    with pytest.raises(RuntimeError, match="sum_to_size: expected sizes that expand to"):
        wide.sum_to_size(2, 4)
    z = weft.tensor([1 + 2j])
    assert weft.imag(z).tolist() == [2]
    with pytest.raises(RuntimeError, match="imag: expected a complex tensor"):
        weft.imag(weft.ones(1))
    assert weft.special.xlog1py(0.0, weft.tensor([1.0])).tolist() == [0]
    assert weft.special.zeta(weft.tensor([2.0]), 1.0).item() == pytest.approx(math.pi**2 / 6)
    assert weft.special.zeta(math.inf, weft.tensor([2.0])).item() == 0
    exponential_integrals = [1.8229239584193906, 0.5597735947761608, 0.21938393439552029]
    small = weft.full((3,), 1e-17, dtype=weft.float64)
    above = weft.special.gammaincc(small, weft.tensor([0.1, 0.5, 1.0], dtype=weft.float64)) / small
    assert above.tolist() == pytest.approx(exponential_integrals, rel=1e-12)


def test_powers_of_vectors() -> None:
    for x in (np.array([1.5, -2, 3]), np.array([2, 3]), np.array([1j, 2]), np.zeros(0)):
        for count in (None, 0, 1, 4):
            for increasing in (True, False):
                got = weft.vander(weft.tensor(x), count, increasing)
                np.testing.assert_allclose(got.numpy(), np.vander(x, count, increasing))
    assert weft.vander(weft.tensor([True, False])).dtype == weft.int64
    assert gradcheck(weft.vander, (weft.randn(3, dtype=weft.float64, requires_grad=True),))
    for arguments in ((weft.ones(()),), (weft.ones(2, 2),), (weft.ones(2), -1)):
        with pytest.raises(RuntimeError, match="vander: expected a vector and N of at least 0"):
            weft.vander(*arguments)


def test_a_given_number_of_places() -> None:
    x = weft.tensor([[1, 0], [3, 2]])
    assert x.nonzero_static(size=2).tolist() == [[0, 0], [1, 0]]
    filled = weft.nonzero_static(x, size=5, fill_value=9)
    assert filled.tolist() == [[0, 0], [1, 0], [1, 1], [9, 9], [9, 9]]
    assert tuple(weft.nonzero_static(weft.tensor(1), size=3).shape) == (3, 0)
    with pytest.raises(RuntimeError, match="nonzero_static: expected a size of at least 0, got -1"):
        x.nonzero_static(size=-1)


def test_nothing_is_put_off() -> None:
    x = weft.tensor([1j]).conj()
    assert (weft.is_conj(x), x.is_conj(), weft.is_neg(x.imag), x.is_neg()) == (False,) * 4
    assert x.tolist() == [-1j]


def _events(x):
    return weft.poisson(x) + 1


def test_numbers_of_events() -> None:
    means = weft.tensor([0.0, 0.4, 9.5, 10.0, 70.0, 1e5], dtype=weft.float64, requires_grad=True)
    weft.manual_seed(0)
    drawn = weft.poisson(means.expand(2000, 6))
    deviation = means.detach().sqrt() + 1e-12
    assert ((drawn.mean(0) - means).abs() < 5 * deviation / 2000**0.5).all()
    assert ((drawn.std(0) / deviation)[1:] - 1).abs().max() < 0.1
    assert drawn.equal(drawn.round())
    drawn.sum().backward()
    assert means.grad.tolist() == [0] * 6
    traced = weft.jit.trace(_events, weft.ones(2), check_trace=False)
    for program in (weft.jit.script(_events), traced):
        results = []
        for draw in (program, _events):
            weft.manual_seed(1)
            results.append(draw(weft.full((3,), 40.0)))
        assert results[0].equal(results[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_of_events_have_the_dtype_of_their_rates(dtype: str) -> None:
    rates = weft.tensor([[0.0, 3.0], [40.0, 0.5]], dtype=getattr(weft, dtype))
    drawn = [weft.poisson(x, weft.Generator().manual_seed(3)) for x in (rates, rates.double())]
    assert drawn[0].dtype == rates.dtype and drawn[0].double().equal(drawn[1])
    turned = weft.poisson(rates.t(), generator=weft.Generator().manual_seed(3))
    assert turned.is_contiguous() and not turned.equal(drawn[0].t())
    assert weft.poisson(rates[:0]).shape == (0, 2) and weft.poisson(rates[0, 0]).item() == 0


def test_rates_of_events_are_checked_before_a_number_is_drawn() -> None:
    state = weft.get_rng_state()
    for wrong in (-1.0, -math.inf, math.nan, math.inf):
        with pytest.raises(RuntimeError, match="poisson: expected finite rates >= 0, got"):
            weft.poisson(weft.tensor([1.0, wrong]))
    for dtype in (weft.int64, weft.bool, weft.complex64):
        with pytest.raises(RuntimeError, match="poisson: expected a floating dtype"):
            weft.poisson(weft.ones(1, dtype=dtype))
    assert weft.get_rng_state().equal(state)
