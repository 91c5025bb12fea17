"""The engine as users see it: leaves, hooks, modes, errors word for word, views, threads."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft


def leaf(*values: float) -> weft.Tensor:
    return weft.tensor(list(values), dtype=weft.float64, requires_grad=True)


def resident() -> int:
    """Bytes of memory the process holds; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


@pytest.mark.parametrize("rows", [1, 16, 17])
@pytest.mark.parametrize("length", [500, 700, 1030, 2050])
def test_gradients_of_normalised_rows_of_every_length(length: int, rows: int) -> None:
    """Rows go through the kernels whole or in tiles, by their length."""
    x = weft.randn(rows, length, dtype=weft.float64, requires_grad=True)
    weights = weft.randn(rows, length, dtype=weft.float64)
    (found,) = weft.autograd.grad((weft.nn.functional.layer_norm(x, (length,)) * weights).sum(), x)
    centred = x - x.mean(1, keepdim=True)
    normal = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
    (expected,) = weft.autograd.grad((normal * weights).sum(), x)
    weft.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def scaled_rows(
    x: weft.Tensor, weight: weft.Tensor, bias: weft.Tensor, eps: float = 1e-5
) -> weft.Tensor:
    """layer_norm in operators."""
    over = list(range(-weight.dim(), 0))
    centred = x - x.mean(over, keepdim=True)
    return centred * (centred.square().mean(over, keepdim=True) + eps).rsqrt() * weight + bias


def affine_rows(x: weft.Tensor, weight: weft.Tensor, bias: weft.Tensor) -> weft.Tensor:
    return weft.nn.functional.layer_norm(x, weight.shape, weight, bias)


@pytest.mark.parametrize("dtype", [weft.float64, weft.float32, weft.bfloat16])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [((1, 700), 1), ((70, 700), 1), ((3, 30, 2, 200), 2), ((4000, 9), 1), ((5, 25000), 1)]
    + [((40,), 1), ((0, 4), 1), ((2, 0), 1)],
)
def test_gradients_of_scaled_normalised_rows(
    shape: tuple[int, ...], dims: int, dtype: weft.dtype
) -> None:
    """Those of weight and bias are sums over blocks of rows, then over the blocks."""
    weft.manual_seed(0)
    ends = shape[len(shape) - dims :]
    given = [weft.randn(*sizes, dtype=weft.float64).to(dtype) for sizes in (shape, ends, ends)]
    upstream = weft.randn(*shape, dtype=weft.float64).to(dtype)
    leaves = [each.clone().requires_grad_() for each in given]
    exact = [each.double().requires_grad_() for each in given]
    found = weft.autograd.grad(affine_rows(*leaves), leaves, upstream)
    wanted = weft.autograd.grad(scaled_rows(*exact), exact, upstream.double())
    for got, expected in zip(found, wanted, strict=True):
        assert got.dtype == dtype and got.shape == expected.shape
        if not got.numel():
            continue
        # A sum of n terms of about 1 that are rounded, and the sums that make each of the terms.
        terms = got.numel() and upstream.numel() / got.numel()
        bound = weft.finfo(dtype).eps * (8 + terms**0.5) * (1 + expected.abs().max().item())
        weft.testing.assert_close(got.double(), expected, rtol=0, atol=8 * bound)


def test_scaled_normalised_rows_have_second_and_third_derivatives() -> None:
    given = [
        weft.randn(*sizes, dtype=weft.float64, requires_grad=True) for sizes in ((3, 4), (4,), (4,))
    ]
    assert weft.autograd.gradcheck(affine_rows, given)
    assert weft.autograd.gradgradcheck(affine_rows, given)

    def second(x: weft.Tensor, weight: weft.Tensor, bias: weft.Tensor) -> Any:
        result = affine_rows(x, weight, bias).sin().sum()
        return weft.autograd.grad(result, (x, weight, bias), create_graph=True)

    assert weft.autograd.gradgradcheck(second, given)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_scaled_normalised_rows_with_some_gradients(wanted: tuple[int, ...]) -> None:
    given = [weft.randn(*sizes, dtype=weft.float64) for sizes in ((30, 7), (7,), (7,))]
    for i in wanted:
        given[i].requires_grad_()
    leaves = [given[i] for i in wanted]
    for mine, other in zip(
        weft.autograd.grad(affine_rows(*given).sin().sum(), leaves),
        weft.autograd.grad(scaled_rows(*given).sin().sum(), leaves),
        strict=True,
    ):
        weft.testing.assert_close(mine, other)


PARTS: dict[str, Any] = {
    "select": lambda y: [y[i] for i in range(3)] + [y[:, 1], y[1]],
    "slice": lambda y: [y[::2], y[:, 1:3], y[1:, :-1]],
    "narrow": lambda y: [y.narrow(1, 1, 2), y.narrow(-1, -2, 2), y.narrow(0, 0, 3)],
    "split": lambda y: [*y.split(2), *y.chunk(2, 1), *y.unbind(1)],
    "diagonal": lambda y: [y.diagonal(), y.diagonal(1), y.t().diagonal(-2)],
    "and the whole": lambda y: [y[0], y * 2, y[1], y.t(), y[2]],
    "of a part": lambda y: [y[1:][0], y[1:][1:], y[0]],
    "turned": lambda y: [*y.t().unbind(0), y.t()[1:3]],
    "expanded": lambda y: [y[:, :1].expand(3, 5), y[:1] + y, y[0]],
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("hooked", [False, True])
def test_gradients_of_parts_are_added_to_what_has_come(name: str, hooked: bool) -> None:
    x = weft.randn(3, 4, dtype=weft.float64, requires_grad=True)
    seen = []

    def through(x: weft.Tensor) -> weft.Tensor:
        y = x * 2
        if hooked:
            y.register_hook(lambda grad: seen.append(grad) or grad * 1)
            y.retain_grad()
        parts = PARTS[name](y)
        if hooked:
            parts[0].register_hook(lambda grad: grad * 1)
            parts[-1].retain_grad()
        return sum((part**2).sin().sum() * (i + 1) for i, part in enumerate(parts))

    assert weft.autograd.gradcheck(through, x)
    result = through(x)
    first = weft.autograd.grad(result, x, retain_graph=True)[0].clone()
    assert weft.equal(weft.autograd.grad(result, x, retain_graph=True)[0], first)
    (again,) = weft.autograd.grad(result, x, create_graph=True)
    weft.testing.assert_close(again, first)
    assert weft.autograd.gradgradcheck(through, x)


def test_gradients_of_parts_leave_those_that_are_held() -> None:
    """A gradient that came first may be somebody's: it is not written to."""
    x = weft.ones(3, 2, requires_grad=True)
    y = x * 1
    upstream = weft.ones(3, 2)
    (first,) = weft.autograd.grad([y, y[0]], [x], [upstream, weft.ones(2)])
    assert first.tolist() == [[2, 2], [1, 1], [1, 1]] and upstream.tolist() == [[1, 1]] * 3
    kept = []
    z = x * 1
    z.register_hook(kept.append)
    weft.autograd.backward([z, z[1], z[2]], [upstream, weft.ones(2), weft.ones(2)])
    assert x.grad.tolist() == [[1, 1], [2, 2], [2, 2]] == kept[0].tolist()
    assert upstream.tolist() == [[1, 1]] * 3


class TestLeaves:
    def test_gradient_accumulates(self) -> None:
        x, b = leaf(1, 2), weft.tensor([3.0, 4.0], dtype=weft.float64)
        (x * b).sum().backward()
        assert x.grad.tolist() == [3, 4]
        (x * b).sum().backward()
        assert x.grad.tolist() == [6, 8]
        assert b.grad is None and x.is_leaf and x.grad_fn is None

    def test_gradient_is_added_in_place(self) -> None:
        x = leaf(1, 2)
        (x * 2).sum().backward()
        first = x.grad
        (x * 2).sum().backward()
        assert x.grad is first
        assert first.tolist() == [4, 4]

    def test_gradient_does_not_alias_the_given_one(self) -> None:
        x, given = leaf(1, 2), weft.ones(2, dtype=weft.float64)
        (x + 0.0).backward(given)
        x.grad.mul_(5)
        assert given.tolist() == [1, 1]

    def test_two_leaves_get_their_own(self) -> None:
        x, y = leaf(1), leaf(2)
        (x + y).sum().backward()
        x.grad.mul_(3)
        assert y.grad.tolist() == [1]

    def test_broadcast_and_dtype(self) -> None:
        x = weft.ones(2, 3, requires_grad=True)
        b = weft.ones(3, dtype=weft.float64, requires_grad=True)
        c = weft.ones((), requires_grad=True)
        (x * b + c).sum().backward()
        assert x.grad.dtype == weft.float32 and x.grad.shape == (2, 3)
        assert b.grad.dtype == weft.float64 and b.grad.tolist() == [2, 2, 2]
        assert c.grad.shape == () and c.grad.item() == 6

    def test_requires_grad(self) -> None:
        x = leaf(1)
        assert (x * 2).requires_grad and not (x * 2).detach().requires_grad
        with pytest.raises(RuntimeError) as error:
            (x * x).requires_grad_(False)
        assert str(error.value) == (
            "requires_grad_: expected a leaf to turn gradients off, got a result of "
            "MulBackward0; use detach()"
        )
        with pytest.raises(RuntimeError) as error:
            weft.tensor([1]).requires_grad_()
        assert "expected a floating or complex dtype, got" in str(error.value)

    def test_set_grad(self) -> None:
        x = leaf(1, 2)
        with pytest.raises(RuntimeError) as error:
            x.grad = weft.ones(3, dtype=weft.float64)
        assert str(error.value) == "grad: expected a gradient of shape (2,), got (3,)"
        x.grad = weft.ones(2, dtype=weft.float64)
        assert x.grad.tolist() == [1, 1]
        x.grad = None
        assert x.grad is None


class TestErrors:
    def test_non_scalar_root(self) -> None:
        x = weft.ones(2, 3, requires_grad=True)
        with pytest.raises(RuntimeError) as error:
            (x * 2).backward()
        assert str(error.value) == (
            "backward: expected a gradient for a non-scalar root, got None for shape (2, 3)"
        )
        with pytest.raises(RuntimeError) as error:
            (x * 2).backward(weft.ones(4))
        assert str(error.value) == "backward: expected a gradient of shape (2, 3), got (4,)"

    @pytest.mark.parametrize(("roots", "gradients"), [(1, 2), (2, 1), (2, 3)])
    def test_other_gradients_than_roots(self, roots: int, gradients: int) -> None:
        x, one = leaf(1), weft.ones((), dtype=weft.float64)
        ys = [(x * i).sum() for i in range(roots)]
        expected = f"expected one gradient per root, got {gradients} for {roots}"
        with pytest.raises(RuntimeError, match=f"^backward: {expected}$"):
            weft.autograd.backward(ys, [one] * gradients)
        with pytest.raises(RuntimeError, match=f"^grad: {expected}$"):
            weft.autograd.grad(ys, x, [one] * gradients)

    def test_root_without_grad(self) -> None:
        with pytest.raises(RuntimeError) as error:
            weft.ones(()).backward()
        assert str(error.value) == (
            "backward: expected roots that require grad, got root 0 that does not require grad "
            "and has no grad_fn"
        )

    def test_second_backward(self) -> None:
        x = leaf(3)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [12]
        with pytest.raises(RuntimeError) as error:
            y.backward()
        assert str(error.value) == (
            "MulBackward0: expected saved tensors, got freed ones (backward through the graph a "
            "second time); use retain_graph=True the first time"
        )

    def test_second_backward_of_lists(self) -> None:
        """Lists of saved tensors were empty once they were freed, and what came next chose the
        error, or gave a value."""
        x, places = leaf(1, 2, 3), weft.tensor([0, 1])
        for y in (x[places], x.index_put((places,), x[:2] * 1)):
            y.sum().backward()
            with pytest.raises(RuntimeError, match=r"expected saved tensors, got freed ones"):
                y.sum().backward()

    def test_saved_tensor_changed(self) -> None:
        x, b = leaf(2), weft.tensor([3.0], dtype=weft.float64)
        y = (x * b).sum()
        b.add_(1)
        with pytest.raises(RuntimeError) as error:
            y.backward()
        assert str(error.value) == (
            "MulBackward0: expected saved tensor 'other' at version 0, got version 1; it was "
            "changed in place after being saved"
        )

    def test_saved_result_changed(self) -> None:
        x = leaf(2)
        y = x.exp()
        y.mul_(2)
        with pytest.raises(RuntimeError) as error:
            y.sum().backward()
        assert str(error.value) == (
            "ExpBackward0: expected saved tensor 'result' at version 0, got version 1; it was "
            "changed in place after being saved"
        )

    def test_failure_leaves_the_graph_usable(self) -> None:
        x = leaf(2)
        y = x * x
        handle = x.register_hook(lambda grad: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.sum().backward(retain_graph=True)
        handle.remove()
        y.sum().backward()
        assert x.grad.tolist() == [4]
        assert weft.is_grad_enabled()


class TestGrad:
    def test_values_and_none(self) -> None:
        x, w, unused = leaf(3), leaf(5), leaf(1)
        h = x * w
        y = (h * h).sum()
        grads = weft.autograd.grad(y, (h, x), retain_graph=True)
        assert [g.tolist() for g in grads] == [[30], [150]]
        assert x.grad is None
        with pytest.raises(RuntimeError) as error:
            weft.autograd.grad(y, [x, unused], retain_graph=True)
        assert str(error.value) == (
            "grad: expected inputs that the roots depend on, got input 1 that is not part of "
            "their graph; use allow_unused=True"
        )
        grads = weft.autograd.grad(y, (unused, x), allow_unused=True, retain_graph=True)
        assert grads[0] is None and grads[1].tolist() == [150]
        grads = weft.autograd.grad(y, (unused,), materialize_grads=True)
        assert grads[0].tolist() == [0]

    def test_tensors_in_any_order_of_things(self) -> None:
        def given(*tensors: weft.Tensor) -> Iterator[weft.Tensor]:
            yield from tensors

        x, w = leaf(3), leaf(5)
        grad = weft.autograd.grad
        for inputs in (given(x, w), {"a": x, "b": w}.values(), iter([x, w])):
            found = grad(given((x * w).sum()), inputs)
            assert [one.tolist() for one in found] == [[5], [3]]
        assert grad(given(x * w), given(x), given(weft.tensor([2.0])))[0].tolist() == [10]
        layer = weft.nn.Linear(2, 1)
        assert len(grad(layer(weft.ones(2)), layer.parameters())) == 2
        batch = grad(given(x * w), given(x), given(weft.ones(2, 1)), is_grads_batched=True)
        assert batch[0].tolist() == [[5], [5]]
        weft.autograd.backward(given(x.sum(), w.sum()), inputs=given(x))
        (x * w).sum().backward(inputs=given(x))
        assert x.grad.tolist() == [6] and w.grad is None

        def fails() -> Iterator[weft.Tensor]:
            yield x
            raise ArithmeticError

        for call in ((x * w).backward, lambda inputs: grad(x * w, inputs)):
            with pytest.raises(ArithmeticError):
                call(inputs=fails())
        with pytest.raises(TypeError, match="'inputs' of type Tensor or tuple of Tensors, got int"):
            (x * w).backward(inputs=3)

    def test_only_inputs_has_its_place_and_no_effect(self) -> None:
        x = leaf(3)
        grad = weft.autograd.grad
        assert grad(x * 2, x, None, None, False, True)[0].tolist() == [2]
        assert grad(x * 2, [x, leaf(1)], None, None, False, True, True)[1] is None
        with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
            assert grad(x * 2, x, only_inputs=False)[0].tolist() == [2]

    def test_wrong_arguments(self) -> None:
        x = leaf(1)
        with pytest.raises(RuntimeError):
            weft.autograd.grad(x.sum(), x, is_grads_batched=True)
        with pytest.raises(TypeError) as error:
            weft.autograd.grad(3, x)
        assert str(error.value) == (
            "grad: expected outputs as a Tensor or a sequence of them, got int"
        )
        with pytest.raises(TypeError) as error:
            weft.autograd.grad(x.sum(), [x, 3])
        assert str(error.value) == "grad: expected inputs of type Tensor or None, got int"

    def test_backward_into_inputs(self) -> None:
        x, w = leaf(3), leaf(5)
        weft.autograd.backward((x * w).sum(), inputs=[x])
        assert x.grad.tolist() == [5] and w.grad is None

    def test_higher_derivatives(self) -> None:
        x = leaf(2)
        y = (x * x * x).sum()
        (first,) = weft.autograd.grad(y, x, create_graph=True)
        (second,) = weft.autograd.grad(first.sum(), x, create_graph=True)
        (third,) = weft.autograd.grad(second.sum(), x)
        assert (first.tolist(), second.tolist(), third.tolist()) == ([12], [12], [6])

    def test_backward_with_create_graph(self) -> None:
        x = leaf(2)
        (x * x).sum().backward(create_graph=True)
        assert x.grad.requires_grad
        (second,) = weft.autograd.grad(x.grad.sum(), x)
        assert second.tolist() == [2]
        x.grad = None


class TestModes:
    def test_contexts(self) -> None:
        x = leaf(1)
        with weft.no_grad():
            assert not weft.is_grad_enabled() and not (x * 2).requires_grad
            with weft.enable_grad():
                assert (x * 2).requires_grad
            with weft.set_grad_enabled(True):
                assert weft.is_grad_enabled()
        assert weft.is_grad_enabled()
        with weft.inference_mode():
            assert not (x * 2).requires_grad
            assert weft.is_inference_mode_enabled()
        assert not weft.is_inference_mode_enabled()

    def test_decorators(self) -> None:
        x = leaf(1)

        @weft.no_grad()
        def with_parentheses() -> weft.Tensor:
            """Doc."""
            return x * 2

        @weft.no_grad
        def without() -> weft.Tensor:
            return x * 2

        @weft.set_grad_enabled(False)
        def setting() -> weft.Tensor:
            return x * 2

        assert weft.is_grad_enabled()
        assert with_parentheses.__doc__ == "Doc."
        for function in (with_parentheses, without, setting, weft.inference_mode()(without)):
            assert not function().requires_grad
        assert weft.is_grad_enabled()

    def test_exception_restores(self) -> None:
        with pytest.raises(KeyError), weft.no_grad():
            raise KeyError
        assert weft.is_grad_enabled()

    def test_setting_at_once(self) -> None:
        weft.set_grad_enabled(False)
        assert not weft.is_grad_enabled()
        weft.set_grad_enabled(True)
        assert weft.is_grad_enabled()


class TestHooks:
    def test_tensor_hooks(self) -> None:
        x = leaf(3)
        h = x * x
        h.retain_grad()
        h.register_hook(lambda grad: grad * 10)
        seen: list[float] = []
        handle = x.register_hook(lambda grad: seen.append(grad.item()))
        assert isinstance(handle, weft.utils.hooks.RemovableHandle)
        h.sum().backward(retain_graph=True)
        assert h.grad.tolist() == [10] and x.grad.tolist() == [60] and seen == [60]
        handle.remove()
        h.sum().backward()
        assert seen == [60]

    def test_hook_errors(self) -> None:
        x = leaf(1)
        with pytest.raises(RuntimeError):
            weft.ones(1).register_hook(print)
        with pytest.raises(TypeError):
            x.register_hook(3)
        x.register_hook(lambda grad: "no")
        with pytest.raises(TypeError) as error:
            (x * 2).sum().backward()
        assert str(error.value) == (
            "register_hook: expected a result of type Tensor or None, got str"
        )

    def test_hook_of_wrong_shape(self) -> None:
        x = leaf(1, 2)
        x.register_hook(lambda grad: grad.sum())
        with pytest.raises(RuntimeError) as error:
            (x * 2).sum().backward()
        assert str(error.value) == ("AccumulateGrad: expected a hook to return shape (2,), got ()")

    def test_post_accumulate(self) -> None:
        x = leaf(1)
        seen: list[weft.Tensor] = []
        x.register_post_accumulate_grad_hook(seen.append)
        (x * 4).sum().backward()
        assert seen[0] is x and x.grad.tolist() == [4]
        returned: Any = x  # as methods in place return it
        handle = x.register_post_accumulate_grad_hook(lambda _: returned)
        x.sum().backward()
        for returned, error in ((x.grad, RuntimeError), (5, TypeError)):
            got = type(returned).__name__
            with pytest.raises(error, match=f"expected a hook that returns None, got {got}"):
                x.sum().backward()
        assert repr(handle).startswith("<weft.autograd.graph.HookHandle object")

    def test_node_hooks(self) -> None:
        x = leaf(3)
        y = (x * weft.full((1,), 2.0, dtype=weft.float64)).sum()
        node = y.grad_fn.next_functions[0][0]
        assert node.name() == "MulBackward0" and node is y.grad_fn.next_functions[0][0]
        node.register_prehook(lambda grads: (grads[0] * 2,))
        node.register_hook(lambda inputs, outputs: tuple(g and g * 5 for g in inputs))
        y.backward()
        assert x.grad.tolist() == [20]

    def test_the_node_of_a_leaf_knows_it(self) -> None:
        x = leaf(3)
        node = (x * 2).grad_fn.next_functions[0][0]
        assert node.variable is x and not hasattr((x * 2).grad_fn, "variable")
        x.data = weft.zeros(2, dtype=weft.float64)
        assert node.variable is x
        x.note = "kept"
        gone = weakref.ref(x)
        del x
        assert gone() is None and node.variable is None
        made = [weft.nn.Parameter(weft.ones(1)) for _ in range(100)]
        nodes = [(each + 1).grad_fn.next_functions[0][0] for each in made]
        assert all(one.variable is each for one, each in zip(nodes, made))

    @pytest.mark.parametrize("removed", range(3))
    @pytest.mark.parametrize("kind", ["tensor", "before", "behind"])
    def test_removing_a_hook_leaves_the_others(self, kind: str, removed: int) -> None:
        y = leaf(1) * 2
        register = {
            "tensor": y.register_hook,
            "before": y.grad_fn.register_prehook,
            "behind": y.grad_fn.register_hook,
        }[kind]
        seen: list[int] = []
        handles = [register(lambda *_, i=i: seen.append(i)) for i in range(3)]
        handles[removed].remove()
        y.sum().backward()
        assert seen == [i for i in range(3) if i != removed]

    @pytest.mark.parametrize("kind", ["tensor", "before a node", "after a node", "accumulated"])
    def test_a_hook_that_returns_none_does_not_end_the_list(self, kind: str) -> None:
        x = leaf(1)
        y = x * 2
        register = {
            "tensor": y.register_hook,
            "before a node": y.grad_fn.register_prehook,
            "after a node": y.grad_fn.register_hook,
            "accumulated": x.register_post_accumulate_grad_hook,
        }[kind]
        seen: list[int] = []
        for i in range(3):
            register(lambda *_, i=i: seen.append(i))
        y.sum().backward()
        assert seen == [0, 1, 2] and x.grad.tolist() == [2]

    def test_repr(self) -> None:
        node = (leaf(1) * leaf(2)).grad_fn
        assert repr(node).startswith("<MulBackward0 object at 0x")


class TestViews:
    def test_leaf_in_place(self) -> None:
        x = leaf(1, 2)
        with pytest.raises(RuntimeError) as error:
            x.add_(1)
        assert str(error.value) == (
            "add_: expected a tensor that may be changed in place, got a leaf that requires grad; "
            "use no_grad() or detach()"
        )
        with pytest.raises(RuntimeError) as error:
            x[0].add_(1)
        assert str(error.value) == (
            "add_: expected a tensor that may be changed in place, got a view of a leaf that "
            "requires grad; use no_grad() or detach()"
        )
        with weft.no_grad():
            x.add_(1)
        assert x.tolist() == [2, 3] and x.is_leaf

    def test_a_view_keeps_its_history_when_the_base_is_detached(self) -> None:
        x = leaf(1, 2)
        base = x * 2
        view = base[:1]
        base.detach_().requires_grad_()
        view.sum().backward()
        assert x.grad.tolist() == [2, 0] and base.grad is None

    def test_write_into_a_view(self) -> None:
        x, w = leaf(1, 2, 3), leaf(5)
        y = x * 1
        other = y[1:]
        y[:2].mul_(w)
        assert y.grad_fn.name() == "CopySlices"
        assert other.grad_fn.name() == "AsStridedBackward0"
        (y * weft.tensor([1.0, 10, 100], dtype=weft.float64)).sum().backward(retain_graph=True)
        assert x.grad.tolist() == [5, 50, 100] and w.grad.tolist() == [21]
        x.grad = w.grad = None
        other.sum().backward()
        assert x.grad.tolist() == [0, 5, 1] and w.grad.tolist() == [2]

    def test_assignment_of_a_constant(self) -> None:
        x = leaf(1, 2, 3)
        y = x * 2
        y[1] = 7.0
        y.sum().backward()
        assert x.grad.tolist() == [2, 0, 2]

    def test_overwritten_values_get_zeros(self) -> None:
        x = leaf(1, 2)
        y = x * 1
        y.zero_()
        y.sum().backward()
        assert x.grad.tolist() == [0, 0]
        y = x * 1
        y.copy_(weft.ones(2))
        (y * float("inf")).sum().backward()
        assert x.grad.tolist() == [0, 0]

    def test_copy_into_plain_base(self) -> None:
        base, x = weft.zeros(3, dtype=weft.float64), leaf(5, 6)
        base[1:].copy_(x)
        assert base.requires_grad and not base.is_leaf
        (base * base).sum().backward()
        assert x.grad.tolist() == [10, 12]

    def test_second_derivative_through_a_view(self) -> None:
        def f(x: weft.Tensor) -> weft.Tensor:
            y = x * x
            y[0:1].mul_(x[1:2])
            return y.sum()

        inputs = weft.tensor([1.5, -0.5, 2.0], dtype=weft.float64, requires_grad=True)
        assert weft.autograd.gradcheck(f, inputs)
        assert weft.autograd.gradgradcheck(f, inputs)

    def test_in_place_chain(self) -> None:
        x = leaf(0.5, 1.5)
        y = x * 1
        y.mul_(3).add_(1).exp_()
        y.sum().backward()
        expected = (3 * (3 * x.detach() + 1).exp()).tolist()
        assert x.grad.tolist() == pytest.approx(expected)

    @pytest.mark.parametrize(
        "name", ["mode", "median", "nanmedian", "max", "min", "sort", "cummax", "cummin"]
    )
    @pytest.mark.parametrize("dim", [0, 1])
    def test_chosen_elements_in_place(self, name: str, dim: int) -> None:
        """Results that point to elements are tensors of their own, no views."""
        x = weft.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=True)
        values = getattr(x * 1, name)(dim)[0]
        values[:] -= 0.5
        values.mul_(2)
        values.sum().backward()
        assert x.grad is not None and x.grad.sum() == 2 * values.numel()


class TestMemory:
    def test_nothing_grows(self) -> None:
        x, b = leaf(1, 2), weft.ones(2, dtype=weft.float64)

        def step() -> None:
            (x * b).sum().backward()
            y = x * 1
            y[0].mul_(y[1])

        refs = []
        for i in range(10_000):
            step()
            if i % 1000 == 0:
                y = (x * b).exp()
                refs.append(weakref.ref(y))
                y.sum().backward()
                del y
            if i == 1000:
                before = resident()
        gc.collect()
        assert all(ref() is None for ref in refs)
        assert resident() - before < 8 << 20

    def test_in_place_operands_make_no_cycle(self) -> None:
        y = leaf(1, 2) * 1
        y.mul_(y)
        y[0].add_(y[1])
        ref = weakref.ref(y)
        del y
        gc.collect()
        assert ref() is None

    def test_million_nodes(self) -> None:
        x = leaf(1)
        y = x
        for _ in range(1_000_000):
            y = y + 0.0
        y.sum().backward()
        assert x.grad.tolist() == [1]
        del y

    def test_attributes_survive_in_the_graph(self) -> None:
        x = leaf(1)
        x.note = "mine"
        y = x * x
        del x
        gc.collect()
        node = y.grad_fn.next_functions[0][0]
        assert node.name() == "torch::autograd::AccumulateGrad"
        y.sum().backward()


class TestThreads:
    def test_shared_leaf_and_graph(self) -> None:
        x = leaf(1)
        shared = x * 2
        failures: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(100):
                    (shared * 2).sum().backward(retain_graph=True)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert x.grad.tolist() == [1600]

    def test_hooks_of_several_threads(self) -> None:
        x = leaf(1)
        seen: list[float] = []
        x.register_hook(lambda grad: seen.append(grad.item()))

        def work() -> None:
            for _ in range(50):
                (x * 3).sum().backward()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [3.0] * 200 and x.grad.tolist() == [600]

    def test_modes_are_per_thread(self) -> None:
        seen: list[bool] = []
        with weft.no_grad():
            thread = threading.Thread(target=lambda: seen.append(weft.is_grad_enabled()))
            thread.start()
            thread.join()
        assert seen == [True]


def test_many_pieces_are_views_of_one_tensor() -> None:
    x = weft.arange(77.0, dtype=weft.float64).view(7, 11).repeat(1, 7).requires_grad_()

    def through(x: weft.Tensor) -> weft.Tensor:
        y = x * 1
        pieces = y.unbind(1)
        pieces[70].mul_(2)
        pieces[2].add_(pieces[70])
        return (y**2).sum() + sum((piece**3).sum() for piece in pieces)

    assert weft.autograd.gradcheck(through, (x / 77,))
    pieces = x.detach().unbind(1)
    assert all(piece._base is pieces[0]._base for piece in pieces)
    assert weft.equal(weft.stack(pieces, 1), x)
