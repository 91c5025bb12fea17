"""Settings and states of programs, in both libraries: new memory, steps that are differentiated,
complex layers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from libraries import both


@pytest.fixture
def deterministic(lib: Any) -> Iterator[Any]:
    lib.use_deterministic_algorithms(True)
    yield lib.utils.deterministic
    lib.utils.deterministic.fill_uninitialized_memory = True
    lib.use_deterministic_algorithms(False)


@both
def test_deterministic_algorithms_fill_new_memory(lib: Any, deterministic: Any) -> None:
    model = lib.ones(2, 3)
    for made in (
        lib.empty(3),
        lib.empty(2, dtype=lib.complex64),
        lib.empty(2, dtype=lib.bfloat16),
        lib.empty_like(model),
        lib.empty_like(model.t()),
        model.new_empty(2),
        lib.empty_strided((2, 2), (1, 2)),
        lib.Tensor(3),
    ):
        assert made.isnan().all()
    for dtype in (lib.uint8, lib.int8, lib.int16, lib.int32, lib.int64):
        assert lib.empty(2, dtype=dtype).tolist() == [lib.iinfo(dtype).max] * 2
    assert lib.empty(2, dtype=lib.bool).tolist() == [True, True]
    assert lib.empty(0).shape == (0,)
    grown = lib.ones(2).resize_(4)
    assert grown[:2].tolist() == [1, 1] and grown[2:].isnan().all()
    assert lib.zeros(2).tolist() == [0, 0] and not lib.nn.Linear(2, 2).weight.isnan().any()
    assert deterministic.fill_uninitialized_memory is True
    with pytest.raises(RuntimeError):
        deterministic.fill_uninitialized_memory = 3
    deterministic.fill_uninitialized_memory = False
    assert deterministic.fill_uninitialized_memory is False
    assert not lib.empty(1000).isnan().all()


@both
def test_new_memory_is_left_alone_otherwise(lib: Any) -> None:
    assert lib.utils.deterministic.fill_uninitialized_memory is True
    lib.ones(1000)
    assert not lib.empty(1000).isnan().all()


@both
def test_steps_of_nadam_are_differentiated(lib: Any) -> None:
    def numbers(*values: float) -> Any:
        return lib.tensor(values, dtype=lib.float64, requires_grad=True)

    def stepped(param: Any, grad: Any, mean: Any, square: Any, product: Any) -> Any:
        param = param.clone()
        param.grad = grad
        optimizer = lib.optim.NAdam([param], lr=0.1, differentiable=True, weight_decay=0.1)
        state = {"exp_avg": mean, "exp_avg_sq": square, "mu_product": product}
        state = {name: value.clone() for name, value in state.items()}
        optimizer.state[param].update(state, step=lib.tensor(5.0))
        optimizer.step()
        return param, *(optimizer.state[param][name] for name in state)

    given = (numbers(0.1, 0.2), numbers(1, 2), numbers(0.3, 0.4), numbers(0.5, 0.6), numbers(0.9))
    assert lib.autograd.gradcheck(stepped, given)


@both
def test_complex_layers_warn(lib: Any) -> None:
    layers = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2))
    for target in (lib.complex64, lib.ones(1, dtype=lib.complex128)):
        with pytest.warns(UserWarning, match="Complex modules are a new feature"):
            layers.to(target)
    assert layers[0].weight.dtype == lib.complex128
    assert layers[1].num_batches_tracked.dtype == lib.int64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layers.to("cpu")
        lib.nn.Linear(2, 2).type(lib.complex64)
        lib.nn.Linear(2, 2, dtype=lib.complex64)(lib.ones(2, dtype=lib.complex64))


@both
@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_embedding_renorms_what_is_asked_for(lib: Any, norm_type: float) -> None:
    rows = lib.nn.Embedding(4, 3, max_norm=1.0, norm_type=norm_type, padding_idx=2)
    values = lib.arange(12.0).view(4, 3)
    with lib.no_grad():
        rows.weight.copy_(values)
    before = rows.weight._version
    result = rows(lib.tensor([0, 2, 2, 1]))
    norms = rows.weight.detach().norm(norm_type, dim=1)
    assert lib.allclose(norms[:3], values[:3].norm(norm_type, dim=1).clamp(max=1), atol=1e-5)
    assert rows.weight[3].tolist() == [9, 10, 11] and rows.weight._version > before
    assert lib.equal(result[3], rows.weight[1]) and rows.weight.is_leaf
    result.sum().backward()
    assert rows.weight.grad.sum(1).tolist() == [3, 3, 0, 0]
    saved = (rows.weight * rows.weight).sum()
    with lib.no_grad():
        rows(lib.tensor([3]))
    assert rows.weight[3].norm(norm_type).item() == pytest.approx(1, abs=1e-5)
    with pytest.raises(RuntimeError):
        saved.backward()
