"""Gradients and what guards them, in both libraries: rarer dtypes, versions, second derivatives."""

from __future__ import annotations

from typing import Any

import pytest
from libraries import both

import weft


@both
@pytest.mark.parametrize("dtype", ["int64", "bool", "float64"])
def test_gradients_that_are_given_in_another_dtype(lib: Any, dtype: str) -> None:
    x = lib.ones(3, requires_grad=True)
    start = lib.tensor([0, 1, 1]).to(getattr(lib, dtype))
    (x * 2).backward(start)
    assert x.grad.tolist() == [0, 2, 2] and x.grad.dtype == lib.float32
    if dtype == "int64":
        (rows,) = lib.autograd.grad(x * 2, x, lib.eye(3).long(), is_grads_batched=True)
        assert lib.equal(rows, 2 * lib.eye(3))
        with pytest.raises(RuntimeError):
            (x * 2j).backward(start)


@both
def test_real_bases_of_complex_powers(lib: Any) -> None:
    base = lib.tensor([-1.0, -2.5, 3.0], dtype=lib.float64, requires_grad=True)
    exponent = lib.tensor([0.5 + 1j, -1 - 0.5j, 2j], dtype=lib.complex128, requires_grad=True)
    assert lib.autograd.gradcheck(lib.pow, (base.detach(), exponent))
    assert lib.autograd.gradcheck(lambda x: lib.pow(x, exponent.detach()), (base,))


@both
@pytest.mark.parametrize(
    "write",
    [
        lambda lib, x: x.resize_(2),
        lambda lib, x: x.resize_as_(lib.ones(2)),
        lambda lib, x: lib.autograd.graph.increment_version(x),
        lambda lib, x: lib.autograd.graph.increment_version([lib.ones(()), x]),
    ],
)
def test_changes_of_saved_tensors_are_noticed(lib: Any, write: Any) -> None:
    x, saved = lib.ones(4, requires_grad=True), lib.ones(4)
    product, before = (x * saved).sum(), saved._version
    write(lib, saved)
    assert saved._version == before + 1
    with pytest.raises(RuntimeError):
        product.backward()


@both
def test_data_of_a_leaf_stays_differentiable(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        x.data = lib.ones(2, dtype=lib.int64)
    x.data = lib.ones(3, dtype=lib.float64)
    assert x.requires_grad and x.dtype == lib.float64


@both
def test_backward_hooks_are_not_for_second_derivatives(lib: Any) -> None:
    x, seen = lib.rand(1, requires_grad=True), []
    loss = lib.nn.MSELoss()
    loss.register_full_backward_hook(lambda *_: seen.append(1))
    (first,) = lib.autograd.grad(loss(x, lib.zeros(1)), x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert second.item() == 2 and seen == [1]


@both
def test_gradcheck_moves_inputs_that_are_reached_by_other_ways(lib: Any) -> None:
    layer, x = lib.nn.Linear(2, 2).double(), lib.rand(3, 2, dtype=lib.float64)
    before = layer.weight.detach().clone()
    assert lib.autograd.gradcheck(lambda *_: layer(x), tuple(layer.parameters()))
    assert lib.autograd.gradgradcheck(lambda *_: layer(x).exp(), tuple(layer.parameters()))
    assert lib.equal(layer.weight, before)


@both
def test_results_that_are_no_tensors_have_no_gradients(lib: Any) -> None:
    seen: list[Any] = []

    class Mixed(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3.0, x * 2, None, "a"

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.extend(grads)
            return grads[1] * 2

    x = lib.ones(2, requires_grad=True)
    Mixed.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [2, 2] and [grad is None for grad in seen] == [
        True,
        False,
        True,
        True,
    ]


@both
def test_settings_of_threads_and_memory(lib: Any) -> None:
    with lib.autograd.set_multithreading_enabled(False):
        x = lib.ones(1, requires_grad=True)
        (x * x).backward()
    assert x.grad.item() == 2


@both
def test_gradients_where_formulas_divide_by_zero(lib: Any) -> None:
    zeros = lib.zeros(2, requires_grad=True)
    for gradient in lib.autograd.grad(lib.atan2(zeros, zeros * -1).sum(), zeros):
        assert gradient.tolist() == [0, 0]
    x = lib.tensor([float("nan"), -2.0, 0.0], requires_grad=True)
    assert lib.autograd.grad(lib.angle(x).sum(), x)[0].tolist() == [0, 0, 0]
    x = lib.tensor([1.5, 0.5, -0.2], requires_grad=True)
    assert lib.autograd.grad(lib.logit(x).sum(), x)[0].isnan().tolist() == [True, False, True]
    x = lib.tensor([float("inf"), 1.0], requires_grad=True)
    assert lib.autograd.grad(lib.digamma(x).sum(), x)[0][0] == 0
    x = lib.tensor([[-float("inf")] * 2, [1.0, 2.0]], requires_grad=True)
    hidden, seen = lib.ops.aten._safe_softmax.default(x, 1).exp()
    assert lib.autograd.grad(hidden.sum() + seen[0], x)[0][0].tolist() == [0, 0]


@both
def test_second_derivatives_of_arguments(lib: Any) -> None:
    z = lib.tensor([1 + 2j, -3 + 0.5j, -1 - 1j], dtype=lib.complex128, requires_grad=True)
    assert lib.autograd.gradgradcheck(lib.angle, (z,))
    _, along = lib.func.jvp(lib.angle, (z.detach(),), (1j * z.detach(),))
    assert lib.allclose(along, lib.ones_like(along))


@both
def test_empty_vectors_in_cat_get_empty_gradients(lib: Any) -> None:
    empty, x = lib.zeros(0, requires_grad=True), lib.ones(2, 3, requires_grad=True)
    grads = lib.autograd.grad(lib.cat([empty, x, empty], 1).square().sum(), (empty, x))
    assert grads[0].shape == (0,) and (grads[1] == 2).all()


@both
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("include_self", [True, False])
def test_second_derivatives_of_products_with_zeros(lib: Any, include_self: bool) -> None:
    start = lib.tensor([[0.0, 2.0], [0.0, 3.0]], dtype=lib.float64, requires_grad=True)
    source = lib.tensor([[2.0, 0.0], [0.0, 5.0], [4.0, 2.0]], dtype=lib.float64, requires_grad=True)
    index = lib.tensor([0, 1, 0])

    def product(start: Any, source: Any) -> Any:
        return start.index_reduce(0, index, source, "prod", include_self=include_self)

    assert lib.autograd.gradcheck(product, (start, source))
    assert lib.autograd.gradgradcheck(product, (start, source))


WRITES = {
    "add_": lambda part: part.add_(1),
    "zero_": lambda part: part.zero_(),
    "copy_": lambda part: part.copy_(part + 1),
    "a part": lambda part: part[0].fill_(3),
    "assignment": lambda part: part.__setitem__(0, 3),
    "unsqueeze_": lambda part: part.unsqueeze_(0),
}


@both
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("leaf", [True, False])
def test_views_without_history_of_what_requires_grad(lib: Any, leaf: bool, write: str) -> None:
    x = lib.ones(2, 3, requires_grad=True)
    base = x if leaf else x * 1
    with lib.no_grad():
        part, whole_numbers = base[0], base.view(lib.int32)[0]
    assert part.requires_grad and part.is_leaf and not whole_numbers.requires_grad
    with pytest.raises(RuntimeError):
        WRITES[write](part)
    (part * 2).sum().backward()
    assert part.grad is None and x.grad is None
    WRITES[write](whole_numbers)
    with lib.no_grad():
        WRITES[write](base[1])


@pytest.mark.parametrize("name", ["unbind", "split", "chunk", "tensor_split", "iteration"])
def test_writes_into_one_of_several_views(name: str) -> None:
    """PyTorch refuses some of them: docs/differences.md."""
    parts = {
        "unbind": lambda x: x.unbind(),
        "split": lambda x: x.split([1, 2]),
        "chunk": lambda x: x.chunk(3),
        "tensor_split": lambda x: x.tensor_split(2),
        "iteration": list,
    }[name]

    def written(x: weft.Tensor, scale: weft.Tensor) -> weft.Tensor:
        whole = x * 1
        first, second, *_ = parts(whole)
        first.mul_(scale)
        whole[:, 0].mul_(x[0, 1])
        second.mul_(first.sum())
        return whole

    x = weft.arange(1.0, 7.0, dtype=weft.float64).reshape(3, 2).requires_grad_()
    scale = weft.tensor([2.0, 3.0], dtype=weft.float64, requires_grad=True)
    assert weft.autograd.gradcheck(written, (x, scale))
    assert weft.autograd.gradgradcheck(written, (x, scale))


@both
def test_second_derivatives_at_the_edge_of_entr(lib: Any) -> None:
    x = lib.tensor([0.0, 0.5, -1.0], dtype=lib.float64, requires_grad=True)
    (first,) = lib.autograd.grad(lib.special.entr(x).sum(), x, create_graph=True)
    assert first[0] == float("inf") and first[2].isnan()
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [-float("inf"), -2, 1]


@both
@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: x.heaviside(lib.ones(3)),
        lambda lib, x: lib.zeros(3).heaviside(x),
        lambda lib, x: (x * 1).heaviside_(lib.ones(3)),
        lambda lib, x: lib.special.zeta(x, lib.tensor(2.0)),
        lambda lib, x: x.unique(),
        lambda lib, x: x.unique(return_counts=True, dim=0)[0],
        lambda lib, x: x.unique_consecutive(),
        lambda lib, x: lib.bincount(lib.tensor([0, 1, 2]), x),
        lambda lib, x: lib.binomial(lib.ones(3), x),
        lambda lib, x: lib.bernoulli(x, 0.5),
        lambda lib, x: lib.geqrf(x.diag())[0],
        lambda lib, x: lib.geqrf(x.diag())[1],
        lambda lib, x: lib.linalg.ldl_factor(x.diag())[0],
        lambda lib, x: lib.linalg.ldl_solve(lib.eye(3), lib.tensor([1, 2, 3]).int(), x[:, None]),
    ],
)
def test_gradients_that_nobody_wrote(lib: Any, call: Any) -> None:
    result = call(lib, lib.tensor([0.25, 0.5, 0.75], requires_grad=True))
    assert result.requires_grad and not call(lib, lib.rand(3)).requires_grad
    with pytest.raises(RuntimeError):
        result.sum().backward()


@both
def test_gradients_of_what_is_drawn(lib: Any) -> None:
    x = lib.rand(3, requires_grad=True)
    for drawn in (lib.bernoulli(x), lib.rand(3).bernoulli_(x), (x * 1).normal_(), lib.poisson(x)):
        (gradient,) = lib.autograd.grad(drawn.sum(), x)
        assert gradient.tolist() == [0.0, 0.0, 0.0]


@both
def test_gradient_of_zeta(lib: Any) -> None:
    x = lib.rand(4, dtype=lib.float64).add(1).requires_grad_()
    assert lib.autograd.gradgradcheck(lambda x: lib.special.zeta(3.0, x), (x,))
