"""When hooks are called, with what, in which order, and edges of the graph: in both libraries."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from typing import Any

import pytest
from libraries import both

import weft


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor([float(value) for value in values], requires_grad=True)


def listed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(listed, value))
    return value.tolist() if hasattr(value, "tolist") else value


class Log(list):
    def of(self, name: str) -> Any:
        return lambda *gradients: self.append((name, *listed(gradients)))

    def taken(self) -> list[Any]:
        found = list(self)
        self.clear()
        return found


@both
def test_the_order_of_hooks_of_a_leaf(lib: Any) -> None:
    x, log = leaf(lib, 1, 2), Log()
    node = lib.autograd.graph.get_gradient_edge(x).node
    node.register_prehook(log.of("pre"))
    node.register_hook(log.of("post"))
    x.register_hook(log.of("tensor"))
    x.register_post_accumulate_grad_hook(lambda tensor: log.append(("stored", listed(tensor.grad))))
    x.register_hook(lambda grad: grad * 2)
    x.register_hook(log.of("second"))
    first = [("tensor", [3.0, 3.0]), ("second", [6.0, 6.0])]
    rest = [("pre", ([6.0, 6.0],)), ("stored", [6.0, 6.0]), ("post", (), ([6.0, 6.0],))]
    (x * 3).sum().backward()
    assert log.taken() == first + rest
    (grad,) = lib.autograd.grad((x * 3).sum(), x)
    assert grad.tolist() == [6.0, 6.0] and log.taken() == first
    (x * 3).sum().backward(inputs=[x])
    assert log.taken() == [*first, rest[0], ("stored", [12.0, 12.0]), rest[2]]


@both
def test_the_order_of_hooks_of_a_result(lib: Any) -> None:
    x, log = leaf(lib, 0, 0), Log()
    y = x.sin()
    y.retain_grad()
    y.grad_fn.register_hook(log.of("post"))
    y.grad_fn.register_hook(lambda inputs, grads: (inputs[0] * 7,))
    y.grad_fn.register_prehook(log.of("pre"))
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    y.register_hook(log.of("tensor"))
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    assert log == [
        ("tensor", [1.0, 1.0]),
        ("pre", ([2.0, 2.0],)),
        ("post", ([10.0, 10.0],), ([10.0, 10.0],)),
    ]
    assert y.grad.tolist() == [2.0, 2.0] and x.grad.tolist() == [70.0, 70.0]


@both
def test_hooks_of_nodes_see_the_gradients_of_the_inputs(lib: Any) -> None:
    x, log = leaf(lib, 1, 2), Log()
    y = x * lib.ones(3, 2)
    y.grad_fn.register_hook(log.of("post"))
    y.sum().backward()
    assert log == [("post", ([3.0, 3.0], None), ([[1.0, 1.0]] * 3,))]


@both
def test_what_is_asked_for_is_caught_before_the_hooks_where_it_goes_on(lib: Any) -> None:
    x = leaf(lib, 1, 2)
    y = x * 2
    x.register_hook(lambda grad: grad * 10)
    y.register_hook(lambda grad: grad * 3)
    product = (y * x).sum()
    both_ = lib.autograd.grad(product, [x, y], retain_graph=True)
    assert listed(both_) == ([80.0, 160.0], [1.0, 2.0])
    assert listed(lib.autograd.grad(product, [y], retain_graph=True)) == ([3.0, 6.0],)
    assert listed(lib.autograd.grad(product, x)) == ([80.0, 160.0],)


@both
def test_results_that_backward_is_asked_for(lib: Any) -> None:
    x, log = leaf(lib, 0, 0), Log()
    y = x.sin()
    y.retain_grad()  # its gradient was added twice
    y.grad_fn.register_prehook(log.of("pre"))
    z = y * 3
    z.sum().backward(inputs=[y, x], retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0] and x.grad.tolist() == [3.0, 3.0]
    z.sum().backward(inputs=y, retain_graph=True)
    assert y.grad.tolist() == [6.0, 6.0] and x.grad.tolist() == [3.0, 3.0]
    assert log == [("pre", ([3.0, 3.0],))] * 2
    z.sum().backward(inputs=[y, y])
    assert y.grad.tolist() == [9.0, 9.0] and y.retains_grad
    with pytest.raises(RuntimeError):
        y.sum().backward()  # its node ran


@both
def test_hooks_without_a_gradient(lib: Any) -> None:
    log = Log()
    q, r = lib.linalg.qr((lib.eye(2) * 2).requires_grad_())
    q.register_hook(log.of("q"))
    r.register_hook(log.of("r"))
    q.grad_fn.register_prehook(lambda grads: log.append([grad is None for grad in grads]))
    r.sum().backward()
    assert log.taken() == [("q", None), ("r", [[1.0, 1.0], [1.0, 1.0]]), [True, False]]

    class Nothing(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    x = leaf(lib, 1, 2)
    y = x.sin()
    y.register_hook(log.of("y"))
    y.grad_fn.register_prehook(log.of("pre"))
    y.grad_fn.register_hook(log.of("post"))
    x.register_hook(log.of("x"))
    x.register_post_accumulate_grad_hook(lambda x: log.append(("stored", x.grad)))
    Nothing.apply(y).sum().backward()
    nothing = [("y", None), ("pre", (None,)), ("post", (None,), (None,)), ("x", None)]
    assert log.taken() == [*nothing, ("stored", None)] and x.grad is None


@both
@pytest.mark.parametrize("where", ["tensor", "pre", "post"])
def test_what_hooks_may_return(lib: Any, where: str) -> None:
    def result_of(change: Any) -> Any:
        x = leaf(lib, 0, 0)
        y = x.sin()
        if where == "tensor":
            y.register_hook(change)
        elif where == "pre":
            y.grad_fn.register_prehook(lambda grads: (change(grads[0]),))
        else:
            y.grad_fn.register_hook(lambda inputs, grads: (change(inputs[0]),))
        y.sum().backward()
        return listed(x.grad)

    assert result_of(lambda grad: grad * 2) == [2.0, 2.0]
    assert result_of(lambda grad: None) == ([1.0, 1.0] if where == "tensor" else None)
    for wrong in (lambda grad: grad.double(), lambda grad: grad[:1], lambda grad: grad.sum()):
        with pytest.raises(RuntimeError):
            result_of(wrong)
    with pytest.raises(TypeError):
        result_of(lambda grad: 3)


@both
def test_post_accumulate_hooks_return_nothing(lib: Any) -> None:
    x = leaf(lib, 1, 2)
    x.register_post_accumulate_grad_hook(lambda tensor: 3)
    with pytest.raises(TypeError):
        (x * 2).sum().backward()


@both
def test_edges_stand_for_tensors(lib: Any) -> None:
    edge_of, grad = lib.autograd.graph.get_gradient_edge, lib.autograd.grad
    x = leaf(lib, 1, 2)
    y = x**2
    z, edge, end = y * 3, edge_of(y), edge_of(x)
    total = z.sum()
    assert edge._fields == ("node", "output_nr", "ownership_token") and edge.node is y.grad_fn
    assert listed(grad(total, inputs=[edge], retain_graph=True)) == ([3.0, 3.0],)
    asked = [x, edge, y, end]
    found = listed(grad(total, asked, retain_graph=True))
    assert found == ([6.0, 12.0], [3.0, 3.0], [3.0, 3.0], [6.0, 12.0])
    assert grad(total, end, create_graph=True)[0].requires_grad
    del y, asked
    assert listed(grad(edge_of(total), edge, retain_graph=True)) == ([3.0, 3.0],)
    ones = lib.ones(2)
    assert listed(grad(edge_of(z), end, ones, retain_graph=True)) == ([6.0, 12.0],)
    assert listed(grad(edge, edge, ones)) == ([1.0, 1.0],)
    rows = grad(edge_of(z), edge, lib.eye(2), is_grads_batched=True, retain_graph=True)
    assert listed(rows) == ([[3.0, 0.0], [0.0, 3.0]],)
    for wrong in (
        lambda: grad(edge_of(z), end),
        lambda: grad(edge_of(z), end, lib.ones(3)),
        lambda: grad(total, edge_of(leaf(lib, 1))),
        lambda: grad(total, edge_of(leaf(lib, 1)), materialize_grads=True),
        lambda: edge_of(lib.ones(2)),
    ):
        with pytest.raises(RuntimeError):
            wrong()


@both
def test_backward_to_and_from_edges(lib: Any) -> None:
    edge_of = lib.autograd.graph.get_gradient_edge
    x, w, log = leaf(lib, 1, 2), leaf(lib, 3, 4), Log()
    y = x**2
    total = (w * y).sum()
    total.backward(inputs=[edge_of(x)], retain_graph=True)
    assert x.grad.tolist() == [6.0, 16.0] and w.grad is None
    y.register_hook(log.of("hook"))
    total.backward(inputs=edge_of(y), retain_graph=True)
    assert log == [("hook", [3.0, 4.0])] and not y.retains_grad
    assert x.grad.tolist() == [6.0, 16.0] and w.grad is None
    lib.autograd.backward([edge_of(total), y], [None, lib.ones(2)])
    assert x.grad.tolist() == [14.0, 36.0] and w.grad.tolist() == [1.0, 4.0]


@both
def test_what_is_no_edge_is_refused(lib: Any) -> None:
    x = leaf(lib, 1, 2)
    for wrong in ("a", 3, None, (None,), (3, 0)):
        with pytest.raises((TypeError, RuntimeError, AssertionError)):
            lib.autograd.grad(x.sum(), wrong)
        with pytest.raises((TypeError, RuntimeError, AssertionError)):
            lib.autograd.grad(wrong, x)


@both
def test_metadata_of_nodes(lib: Any) -> None:
    x = leaf(lib, 1, 2)
    y = x.sin()
    y.grad_fn.metadata["a"] = 3
    gc.collect()
    assert y.grad_fn.metadata == {"a": 3}
    assert lib.autograd.graph.get_gradient_edge(x).node.metadata == {}
    with pytest.warns(UserWarning), lib.autograd.detect_anomaly(check_nan=False):
        z = x.sin()
        assert "test_metadata_of_nodes" in "".join(z.grad_fn.metadata["traceback_"])
    for name in ("metadata", "other"):
        with pytest.raises(AttributeError):
            setattr(y.grad_fn, name, {})


@both
def test_attributes_of_the_node_of_a_function_are_its_contexts(lib: Any) -> None:
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor

    x = leaf(lib, 1, 2)
    y = Twice.apply(x)
    y.grad_fn.factor = 5
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@both
def test_a_dict_of_hooks(lib: Any) -> None:
    x = leaf(lib, 1, 2)
    y = x * 2
    assert y._backward_hooks is None
    y._backward_hooks = OrderedDict()
    y.grad_fn._register_hook_dict(y)
    y._backward_hooks[0] = lambda grad: grad * 10
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]


@both
def test_multi_grad_hooks(lib: Any) -> None:
    register = lib.autograd.graph.register_multi_grad_hook
    a, b, log = leaf(lib, 1, 2), leaf(lib, 3, 4), Log()
    register((a, lib.ones(2)), log.of("any"), mode="any")
    with pytest.raises((RuntimeError, AssertionError)):
        register((a, lib.ones(2)), log.of("all"))
    q, r = lib.linalg.qr((lib.eye(2) * 2).requires_grad_())
    register((q, r), lambda grads: log.append([grad is None for grad in grads]))
    (a * b).sum().backward()
    r.sum().backward()
    assert log == [("any", [3.0, 4.0]), [True, False]]


@both
def test_hooks_of_saved_tensors_are_called(lib: Any) -> None:
    graph = lib.autograd.graph
    with pytest.raises(TypeError), graph.saved_tensors_hooks(3, 4):
        pass
    x = leaf(lib, 1, 2)
    assert (x * x).sum().backward() is None  # nothing is left of them
    with (
        pytest.raises(RuntimeError, match="none here"),
        graph.disable_saved_tensors_hooks("none here"),
        graph.allow_mutation_on_saved_tensors(),
    ):
        pass
    with graph.allow_mutation_on_saved_tensors():  # the block before was none
        pass


@both
def test_versions_that_are_raised(lib: Any) -> None:
    with lib.inference_mode():
        made = lib.ones(2)
    lib.autograd.graph.increment_version(made)
    for wrong in (3, [3]):
        with pytest.raises((TypeError, RuntimeError)):
            lib.autograd.graph.increment_version(wrong)


class Kept:
    """What a hook holds on to."""


def holds(*things: Any) -> None:
    """What hooks do, so that they refer to things."""


def node_of_result(lib: Any, kept: Any) -> None:
    node = leaf(lib, 1).sin().grad_fn
    node.register_hook(lambda inputs, grads: holds(node, kept))


def node_and_result(lib: Any, kept: Any) -> None:
    x = leaf(lib, 1)
    y = x.sin()
    node = y.grad_fn
    node.register_prehook(lambda grads: holds(node, kept))


def node_of_leaf(lib: Any, kept: Any) -> None:
    node = lib.autograd.graph.get_gradient_edge(leaf(lib, 1)).node
    node.register_hook(lambda inputs, grads: holds(node, kept))


def tensor_of_leaf(lib: Any, kept: Any) -> None:
    x = leaf(lib, 1)
    x.register_hook(lambda grad: holds(x, kept))


def edge_of_result(lib: Any, kept: Any) -> None:
    edge = lib.autograd.graph.get_gradient_edge(leaf(lib, 1).sin())
    edge.node.register_hook(lambda inputs, grads: holds(edge, kept))


def attribute_of_context(lib: Any, kept: Any) -> None:
    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = kept
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Same.apply(leaf(lib, 1))
    y.grad_fn.result = y


CYCLES = [
    node_of_result,
    node_and_result,
    node_of_leaf,
    tensor_of_leaf,
    edge_of_result,
    attribute_of_context,
]


def hook_of_result(lib: Any, kept: Any) -> None:
    y = leaf(lib, 1).sin()
    y.register_hook(lambda grad: holds(y, kept))


def hook_behind_backward(lib: Any, kept: Any) -> None:
    y = leaf(lib, 1).sin()
    y.register_hook(lambda grad: holds(y, kept))
    y.backward()


def hook_of_stored_gradient(lib: Any, kept: Any) -> None:
    x = leaf(lib, 1)
    x.register_post_accumulate_grad_hook(lambda tensor: holds(x, kept))


def hook_of_node(lib: Any, kept: Any) -> None:
    y = leaf(lib, 1).sin()
    y.grad_fn.register_hook(lambda inputs, grads: holds(y, kept))


def hooks_of_two(lib: Any, kept: Any) -> None:
    x = leaf(lib, 1)
    y, z = x.sin(), x.cos()
    y.register_hook(lambda grad: holds(z, kept))
    z.grad_fn.register_prehook(lambda grads: holds(y, kept))


def metadata_of_node(lib: Any, kept: Any) -> None:
    y = leaf(lib, 1).sin()
    y.grad_fn.metadata["kept"] = (kept, y, y.grad_fn)


# PyTorch keeps these for ever.
OTHER_CYCLES = [
    hook_of_result,
    hook_behind_backward,
    hook_of_stored_gradient,
    hook_of_node,
    hooks_of_two,
    metadata_of_node,
]


def is_collected(lib: Any, make: Any) -> bool:
    kept = Kept()
    gone = weakref.ref(kept)
    make(lib, kept)
    del kept
    gc.collect()
    return gone() is None


@both
@pytest.mark.parametrize("make", CYCLES, ids=lambda make: make.__name__)
def test_cycles_of_hooks_are_collected(lib: Any, make: Any) -> None:
    assert is_collected(lib, make)


@pytest.mark.parametrize("make", OTHER_CYCLES, ids=lambda make: make.__name__)
def test_cycles_of_hooks_that_pytorch_keeps(make: Any) -> None:
    assert is_collected(weft, make)


def with_hooks(lib: Any, log: Any) -> Any:
    y = leaf(lib, 1).sin()
    y.register_hook(lambda grad: log.append(y is not None))
    y.grad_fn.register_hook(lambda inputs, grads: log.append(y is not None))
    y.grad_fn.metadata["y"] = y
    return y


@both
def test_hooks_of_what_lives_are_kept(lib: Any) -> None:
    log = Log()
    result, node, below = with_hooks(lib, log), with_hooks(lib, log).grad_fn, with_hooks(lib, log)
    below = below * 2
    gc.collect()
    assert node.metadata["y"].grad_fn is node
    for end in (result, node.metadata["y"], below):
        end.backward()
        assert log.taken() == [True, True]
