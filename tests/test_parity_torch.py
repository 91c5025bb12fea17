"""The same samples through PyTorch's operator of the same name: values, dtypes, shapes, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case, calling
from op_cases.realise import Constant, realise, to_library, to_numpy
from op_cases.spec import S

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytestmark = pytest.mark.parity

RTOL = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-11}


def has_twin(key: str) -> bool:
    name, _, overload = key.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and (overload or "default") in packet.overloads()


def comparable() -> list[Any]:
    return [
        pytest.param(case, dtype, id=f"{case.name}-{dtype}")
        for case in CASES.values()
        if case.parity and case.samples and case.ref and has_twin(case.name)
        for dtype in case.dtypes
    ]


def flat(value: Any) -> list[Any]:
    return (
        [v for item in value for v in flat(item)] if isinstance(value, (tuple, list)) else [value]
    )


def assert_same(ours: Any, theirs: Any, rtol: float) -> None:
    for one, other in zip(flat(ours), flat(theirs), strict=True):
        if isinstance(other, torch.Tensor):
            assert str(one.dtype) == str(other.dtype)
            assert tuple(one.shape) == tuple(other.shape)
        np.testing.assert_allclose(to_numpy(one), to_numpy(other), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("case", "dtype"), comparable())
def test_forward_agrees(case: Case, dtype: str) -> None:
    rtol = RTOL.get(dtype, 1e-5) * case.tolerance
    for index, sample in enumerate(case.samples):
        arrays = realise(sample, case, dtype, index)
        ours = calling.call(case.name, to_library(arrays, weft, dtype))
        theirs = calling.call_torch(case.name, to_library(arrays, torch, dtype))
        assert_same(ours, theirs, rtol)


def gradients(
    library: Any, call: Any, case: Case, arrays: S, weights_seed: int
) -> list[np.ndarray]:
    """d(sum of weighted results)/d(each floating input)."""
    sample = to_library(arrays, library, "float32")
    inputs = [
        tensor
        for tensor, array in zip(flat(list(sample.args)), flat(list(arrays.args)))
        if isinstance(array, np.ndarray)
        and array.dtype.kind == "f"
        and not isinstance(array, Constant)
    ]
    for tensor in inputs:
        tensor.requires_grad_()
    rng = np.random.default_rng(weights_seed)
    total = None
    for result in flat(call(case.name, sample)):
        if isinstance(result, library.Tensor) and result.requires_grad:
            weights = rng.normal(size=tuple(result.shape)).astype("float32")
            term = (result * library.from_numpy(np.asarray(weights))).sum()
            if term.is_complex():
                term = term.real + 2 * term.imag
            total = term if total is None else total + term
    if total is None:
        return []
    total.backward()
    # PyTorch may answer with a ZeroTensor, which has no memory to share
    return [to_numpy(t.grad + 0) for t in inputs if t.grad is not None]


#: PyTorch refuses their gradient; ours is zero, and test_grad.py checks it
NO_GRADIENT_THERE = {"floor_divide", "floor_divide.Scalar"}


def differentiable() -> list[Any]:
    return [
        pytest.param(case, id=case.name)
        for case in CASES.values()
        if case.parity and case.grad and case.samples and case.ref and "float32" in case.dtypes
        if "nondifferentiable" not in calling.ROWS[case.name].tags and has_twin(case.name)
        if case.name not in NO_GRADIENT_THERE
    ]


@pytest.mark.parametrize("case", differentiable())
def test_gradients_agree(case: Case) -> None:
    for index, sample in enumerate(case.samples):
        arrays = realise(sample, case, "float32", index)
        ours = gradients(weft, calling.call, case, arrays, index)
        theirs = gradients(torch, calling.call_torch, case, arrays, index)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                one, other, rtol=2e-4 * case.tolerance, atol=2e-5 * case.tolerance
            )


def _dense(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _conv2d(lib: Any, image: Any, weight: Any) -> Any:
    return lib.nn.functional.conv2d(image, weight, padding=1)


#: A float32 kernel, its operands, and how many times PyTorch's error it may have at most.
DENSE: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], float]] = {
    **{
        f"linear of {m} rows": (lambda lib, *x: lib.nn.functional.linear(*x), [(m, k), (n, k), (n,)], 2)
        for m, k, n in ((1, 256, 1024), (2, 1000, 70), (4, 256, 1024), (7, 300, 33), (16, 512, 128))
    },
    **{
        f"mm of {m} rows": (lambda lib, a, b: a @ b.t().contiguous(), [(m, k), (n, k)], 2)
        for m, k, n in ((1, 256, 1024), (3, 1000, 70), (6, 512, 130))
    },
    "conv2d 3x3 by Winograd": (_conv2d, [(1, 64, 14, 14), (48, 64, 3, 3)], 4),
    "conv2d 3x3 of a small image": (_conv2d, [(1, 96, 7, 7), (48, 96, 3, 3)], 2),
    "avg_pool2d": (lambda lib, x: lib.nn.functional.avg_pool2d(x, 5, 2, 2), [(2, 3, 40, 41)], 2),
    "adaptive_avg_pool2d": (lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, (3, 7)), [(2, 3, 50, 61)], 2),
}  # fmt: skip


def _loop_error(x: np.ndarray, *weight: np.ndarray) -> float:
    """The greatest error of a loop that adds one product after another in float32; 0 for what has no weight."""
    if not weight:
        return 0.0
    if x.ndim == 4:  # a convolution is a product with the windows of the image
        x = torch.nn.functional.unfold(torch.from_numpy(x), 3, padding=1)[0].t().numpy()
    columns = weight[0].reshape(len(weight[0]), -1)
    looped = np.cumsum(x[:, None] * columns, -1)[..., -1]
    return np.abs(looped - x.astype(np.float64) @ columns.astype(np.float64).T).max()


@pytest.mark.parametrize("name", DENSE)
def test_dense_kernels_are_as_exact_as_torch(name: str) -> None:
    """The greatest error against float64, beside PyTorch's on the same data or that of a loop: how many sums
    PyTorch's kernels keep depends on the processor."""
    call, shapes, factor = DENSE[name]
    arrays = [_dense(shape, seed) for seed, shape in enumerate(shapes)]
    exact = call(torch, *(torch.from_numpy(a).double() for a in arrays)).numpy()
    ours, theirs = (
        np.abs(call(lib, *map(lib.from_numpy, arrays)).numpy() - exact).max()
        for lib in (weft, torch)
    )
    limit = max(factor * theirs, _loop_error(*arrays))
    assert ours <= limit, f"{name}: expected at most {limit}, got {ours}"
