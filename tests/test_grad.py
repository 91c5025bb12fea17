"""First and second derivatives of every differentiable row, by finite differences in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case, calling
from op_cases.realise import Constant, map_arrays, realise
from op_cases.spec import S

import weft
from weft.autograd import gradcheck, gradgradcheck


def differentiable(second: bool) -> list[Any]:
    return [
        pytest.param(case, layout, id=f"{case.name}-{layout}")
        for case in CASES.values()
        if case.grad and case.samples and (case.gradgrad or not second)
        if "nondifferentiable" not in calling.ROWS[case.name].tags
        for layout in (("contiguous", "transposed") if case.layouts else ("contiguous",))
    ]


def split_inputs(
    case: Case, sample: S, index: int, layout: str, suffix: str = ""
) -> tuple[Any, list[weft.Tensor]]:
    """A function of the floating tensors alone, and those tensors. The in-place form (suffix "_") writes
    to a copy."""
    inputs: list[weft.Tensor] = []

    def place(array: np.ndarray) -> Any:
        tensor = weft.from_numpy(array)
        if array.dtype.kind != "f" or isinstance(array, Constant):
            return tensor
        tensor = tensor.clone() if layout == "contiguous" else tensor
        inputs.append(tensor.requires_grad_())
        return inputs[-1]

    arrays = map_arrays(realise(sample, case, "float64", index, layout), place)

    def function(*tensors: weft.Tensor) -> Any:
        queue = iter(tensors)

        def swap(value: Any) -> Any:
            if isinstance(value, weft.Tensor):
                return next(queue) if value.requires_grad else value
            if isinstance(value, list):
                return [swap(v) for v in value]
            return value

        args = [swap(a) for a in arrays.args]
        kwargs = {k: swap(v) for k, v in arrays.kwargs.items()}
        if suffix:
            args[0] = args[0].clone()
        return calling.call(case.name, S(*args, **kwargs), suffix)

    return function, inputs


@pytest.mark.parametrize(("case", "layout"), differentiable(second=False))
def test_gradient(case: Case, layout: str) -> None:
    for index, sample in enumerate(case.samples):
        function, inputs = split_inputs(case, sample, index, layout)
        assert gradcheck(function, inputs)


@pytest.mark.parametrize(("case", "layout"), differentiable(second=True))
def test_second_gradient(case: Case, layout: str) -> None:
    for index, sample in enumerate(case.samples):
        function, inputs = split_inputs(case, sample, index, layout)
        assert gradgradcheck(function, inputs)


def writes_in_place() -> list[Any]:
    return [
        pytest.param(case, id=case.name)
        for case in CASES.values()
        if case.grad and case.forms and case.samples
        if calling.ROWS[case.name].inplace is not None
        if "nondifferentiable" not in calling.ROWS[case.name].tags
    ]


def derivatives(function: Any, inputs: list[weft.Tensor]) -> list[weft.Tensor | None]:
    """The result with its first and second derivatives, each along one direction."""

    def direction(like: weft.Tensor) -> weft.Tensor:
        return weft.linspace(0.5, 1.5, like.numel(), dtype=weft.float64).reshape(like.shape)

    result = function(*inputs)
    seed = direction(result).requires_grad_()
    first = weft.autograd.grad(result, inputs, seed, create_graph=True, allow_unused=True)
    curved = [each for each in first if each is not None and each.requires_grad]
    directions = [direction(each) for each in curved]
    second = (
        weft.autograd.grad(curved, [*inputs, seed], directions, allow_unused=True) if curved else ()
    )
    return [result, *first, *second]


@pytest.mark.parametrize("case", writes_in_place())
def test_in_place_form_has_the_derivatives_of_the_plain_form(case: Case) -> None:
    for index, sample in enumerate(case.samples):
        plain, inputs = split_inputs(case, sample, index, "contiguous")
        if not inputs or plain(*inputs).shape != inputs[0].shape:
            continue
        in_place, _ = split_inputs(case, sample, index, "contiguous", "_")
        for one, other in zip(
            derivatives(in_place, inputs), derivatives(plain, inputs), strict=True
        ):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("n", [2, 16, 63, 64, 300, 512])
@pytest.mark.parametrize("rows", [(1,), (70,), (9, 40)])
def test_gradient_of_layer_norm_has_the_bits_of_its_formula(n, rows, dtype):
    """Rows of one tile: one walk, which repeats means and scales row by row, gives what operators
    give one by one; also where rows lie apart."""
    weft.manual_seed(n)
    for wide in (n, 2 * n):
        x, grad = (weft.randn(*rows, wide, dtype=dtype)[..., :n] for _ in range(2))
        x.requires_grad_()
        weft.nn.functional.layer_norm(x, [n]).backward(grad)
        with weft.no_grad():
            centred = x - x.sum(-1, True) / n
            scale = weft.rsqrt((centred * centred).sum(-1, True) / n + 1e-5)
            normal = centred * scale
            level = grad.sum(-1, True) / n
            slope = (grad * normal).sum(-1, True) / n
            wanted = (grad - level - normal * slope) * scale
        assert weft.equal(x.grad, wanted)


NAN = float("nan")
HALF = [0.0, 0.5, 0.5]
#: what of [1, NaN, NaN] has the gradient of a result that is NaN
OF_NANS = {
    "max": HALF,
    "min": HALF,
    "median": HALF,
    "quantile": [0.0, 0.0, 1.0],
    "amax": [NAN] * 3,
    "amin": [NAN] * 3,
}


@pytest.mark.parametrize("name", OF_NANS)
def test_gradients_of_nan(name: str) -> None:
    x = weft.tensor([1.0, NAN, NAN], requires_grad=True)
    options = {"q": 0.3} if name == "quantile" else {}
    getattr(weft, name)(x, **options).backward()
    np.testing.assert_array_equal(x.grad.numpy(), OF_NANS[name])


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "cummax", "cummin"])
def test_indices_of_nan_are_the_first(name: str) -> None:
    x = weft.tensor([[1.0, NAN, NAN], [NAN, NAN, NAN]], requires_grad=True)
    values, indices = getattr(weft, name)(x, 1)
    if name in ("cummax", "cummin"):  # there the last
        assert indices.tolist() == [[0, 1, 2], [0, 1, 2]]
    else:
        assert indices.tolist() == [0 if name == "nanmedian" else 1, 0]
        values.sum().backward()
        assert x.grad.nonzero().tolist() == [[0, indices[0].item()], [1, 0]]


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("dim", [None, 1])
def test_gradients_of_quantiles_of_nan(how: str, dim: int | None) -> None:
    """Of each row with a NaN the last NaN has them, whatever lies between."""
    x = weft.tensor([[3.0, NAN, NAN, 2.0], [1.0, 2.0, 3.0, 4.0]][: 1 if dim is None else 2])
    x.requires_grad_()
    result = weft.quantile(x, weft.tensor([0.2, 0.9]), dim, interpolation=how)
    assert result.reshape(2, -1)[:, 0].isnan().all()
    result.sum().backward()
    assert x.grad[0].tolist() == [0, 0, 2, 0]
    assert x.grad.sum(1).tolist() == pytest.approx([2] * len(x))


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_gradients_of_scattered_nan(reduce: str) -> None:
    x = weft.tensor([1.0, NAN, 2.0], requires_grad=True)
    weft.zeros(2).scatter_reduce(0, weft.tensor([0, 0, 1]), x, reduce).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [NAN, NAN, 1.0 if reduce == "amax" else 0.0])


@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss", "l1_loss"])
def test_gradients_of_infinite_distances(name: str) -> None:
    x = weft.tensor([float("inf"), -float("inf"), 1.0, 0.25], requires_grad=True)
    getattr(weft.nn.functional, name)(x, weft.zeros(4), reduction="sum").backward()
    assert x.grad.tolist() == [1, -1, 1, 1 if name == "l1_loss" else 0.25]


def test_shrinking_has_no_gradient_at_its_limits() -> None:
    for function in (weft.nn.functional.softshrink, weft.nn.functional.hardshrink):
        x = weft.tensor([-0.75, -0.5, 0.0, 0.5, 0.75], requires_grad=True)
        function(x).sum().backward()
        assert x.grad.tolist() == [1, 0, 0, 0, 1]
