"""The options that PyTorch's own tests give its optimizers: parameters, states and groups equal after eight steps."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
optimizers = pytest.importorskip("torch.testing._internal.common_optimizers", exc_type=ImportError)
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

INFOS = {info.optim_cls.__name__: info for info in optimizers.optim_db}
#: SparseAdam takes sparse gradients: tests/test_optim_more.py
DENSE = [name for name, info in INFOS.items() if not info.only_supports_sparse_grads]
DTYPES = ["float32", "float64", "complex64"]
SHAPES = [(3, 4), (4,), (2, 3, 2)]
WAYS: list[dict[str, bool]] = [{}, {"foreach": True}, {"foreach": False}, {"fused": True}]
STEPS = 8


def arrays(seed: int, dtype: str, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal((2, *shape)) for shape in SHAPES[:count]]
    parts = [a[0] + 1j * a[1] if dtype.startswith("complex") else a[0] for a in drawn]
    return [np.asarray(a, dtype=dtype) for a in parts]


def own(lib: Any, value: Any) -> Any:
    """Tensors among options as those of the library."""
    if isinstance(value, tuple):
        return tuple(own(lib, v) for v in value)
    return lib.tensor(value.numpy()) if isinstance(value, torch.Tensor) else value


def trained(lib: Any, name: str, dtype: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    count = 1 if name == "Muon" else len(SHAPES)  # Muon takes matrices
    params = [lib.nn.Parameter(lib.tensor(a)) for a in arrays(0, dtype, count)]
    given = {key: own(lib, value) for key, value in options.items()}
    optimizer = getattr(lib.optim, name)(params, **copy.deepcopy(given))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum((p.abs() ** 2).sum() * (i + 1) for i, p in enumerate(params))
        loss = loss + sum((p - 1).abs().pow(4).sum() for p in params)
        loss.backward()
        return loss

    for step in range(1, STEPS + 1):
        for p, grad in zip(params, arrays(step, dtype, count)):
            p.grad = lib.tensor(grad)
        optimizer.step(closure) if name == "LBFGS" else optimizer.step()
    return [p.detach().numpy() for p in params], optimizer.state_dict()


def close(ours: Any, theirs: Any, dtype: str) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    # eight steps of about ten roundings each; ASGD by lists and Muon compute a factor in fewer bits
    near = 1e-6 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(ours, theirs, rtol=near, atol=near)


def samples(name: str) -> list[dict[str, Any]]:
    inputs = INFOS[name].optim_inputs_func(device="cpu")
    found = [
        {**i.kwargs, **way} for i in inputs for way in WAYS if not way.keys() & i.kwargs.keys()
    ]
    return found if "foreach" in INFOS[name].supported_impls else [i.kwargs for i in inputs]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DENSE)
def test_steps_beside_torch(name: str, dtype: str) -> None:
    if name == "LBFGS" and dtype != "float64":
        dtype = "complex128"  # the search ends by comparisons, which fewer bits decide otherwise
    for options in samples(name):
        try:
            expected = trained(torch, name, dtype, options)
        except (RuntimeError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                trained(weft, name, dtype, options)
            continue
        params, state = trained(weft, name, dtype, options)
        for ours, theirs in zip(params, expected[0], strict=True):
            close(ours, theirs, dtype)
        same_state(state, expected[1], dtype)


def same_state(ours: dict[str, Any], theirs: dict[str, Any], dtype: str) -> None:
    for group, expected in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        assert str(group) == str(expected)
    assert ours["state"].keys() == theirs["state"].keys()
    for index, expected in theirs["state"].items():
        kept = ours["state"][index]
        assert set(kept) == set(expected)
        for key, value in expected.items():
            if isinstance(value, torch.Tensor) and key != "t":  # a number here
                close(kept[key].numpy(), value.numpy(), dtype)


@pytest.mark.parametrize("name", INFOS)
def test_refusals_beside_torch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors = INFOS[name].optim_error_inputs_func(device="cpu", dtype=torch.float32)
    for error in errors:
        params, options = error.optimizer_error_input.params, error.optimizer_error_input.kwargs
        if params is not None and not isinstance(params, torch.Tensor):
            continue  # tests/test_optim.py has those of groups
        tensors = weft.tensor(params.detach().numpy()) if params is not None else weft.ones(2, 2)
        with pytest.raises(error.error_type):
            given = tensors if params is not None else [weft.nn.Parameter(tensors)]
            getattr(weft.optim, name)(given, **{k: own(weft, v) for k, v in options.items()})
