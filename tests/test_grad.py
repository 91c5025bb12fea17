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
