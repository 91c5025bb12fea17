"""weft.func: derivatives against each other, against loops, and beside PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft.utils._pytree import tree_leaves


def vector(lib: Any, count: int = 4, shift: float = 0.0) -> Any:
    return lib.arange(count, dtype=lib.float64) * 0.3 - 0.4 + shift


def matrix(lib: Any, rows: int, columns: int) -> Any:
    return vector(lib, rows * columns).reshape(rows, columns).cos()


def mixed(lib: Any, x: Any) -> Any:
    """From 4 elements to 3, each of them of all."""
    return matrix(lib, 3, 4) @ lib.sin(x) + x.prod() + (x.softmax(0) ** 2).sum()


def nested(x: Any) -> Any:
    return {"a": x["a"] * x["b"][0].sum(), "b": [x["b"][0].sin()]}


def tree(lib: Any) -> Any:
    return {"a": vector(lib, 3), "b": [vector(lib, 2, 1.0)]}


def forward_ad(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.autograd.forward_ad")


def linearized(lib: Any) -> Any:
    output, along = lib.func.linearize(lambda x: mixed(lib, x), vector(lib))
    return output, along(vector(lib, shift=0.2)), along(vector(lib, shift=0.5))


def pulled_back(lib: Any) -> Any:
    output, back = lib.func.vjp(nested, tree(lib))
    first = back({"a": vector(lib, 3, 0.1), "b": [vector(lib, 2, 0.2)]})
    return output, first, back({"a": vector(lib, 3), "b": [vector(lib, 2)]})


def module_gradients(lib: Any) -> Any:
    layer = lib.nn.Linear(4, 2, dtype=lib.float64)
    state = {"weight": matrix(lib, 2, 4), "bias": vector(lib, 2)}

    def loss(state: Any, x: Any) -> Any:
        return (lib.func.functional_call(layer, state, (x,)) ** 2).sum()

    return lib.func.grad(loss)(state, vector(lib))


def dual(lib: Any) -> Any:
    fw = forward_ad(lib)
    x, t = vector(lib), vector(lib, shift=0.5)
    layer = lib.nn.Linear(4, 3, dtype=lib.float64)
    del layer.weight
    del layer.bias
    with fw.dual_level():
        d = fw.make_dual(x, t)
        layer.weight = fw.make_dual(matrix(lib, 3, 4), matrix(lib, 3, 4).sin())
        layer.bias = vector(lib, 3)
        changed = d.clone().mul_(3)
        changed[0] = 7
        own = fw.make_dual(vector(lib), t.clone())
        before = own * 2
        own[1:] = own[:-1].clone().mul_(3)
        outputs = [mixed(lib, d), layer(d), changed, d, x, d.detach(), d.argmax()]
        leaf = vector(lib).requires_grad_()
        point = fw.make_dual(leaf, t)
        (gradient,) = lib.autograd.grad(mixed(lib, point).prod(), point, retain_graph=False)
        outputs += [own, own.sin(), before, gradient.cos()]
        found = [tuple(fw.unpack_dual(each)) for each in outputs]
    return [tuple(None if each is None else each.detach() for each in pair) for pair in found]


def written_to(transform: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Any]:
    """A transform of a function that writes to its argument, and the argument afterwards."""

    def program(lib: Any) -> Any:
        def f(x: Any) -> Any:
            made = x.new_zeros(4)
            made[1:] = x[:-1]  # not captured: the function made it
            x.mul_(2)
            x[0] = made.sum()
            return x * made.cos().add_(x)

        x = vector(lib)
        return transform(lib, f, x), x

    return program


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "in_place_other": lambda t: t.func.jacrev(lambda x, y: y.copy_(x.sin()))(
        vector(t), vector(t, shift=1.0)
    ),
    "in_place_keyword": lambda t: t.func.grad(lambda x, y: y.copy_(x.sin()).sum())(
        vector(t), y=vector(t, shift=1.0)
    ),
    "in_place_jvp": written_to(lambda t, f, x: t.func.jvp(f, (x,), (x.cos(),))),
    "in_place_jacfwd": written_to(lambda t, f, x: t.func.jacfwd(f)(x)),
    "in_place_vmap": written_to(
        lambda t, f, x: t.vmap(lambda x: t.func.jvp(f, (x,), (x.cos(),)))(x.expand(3, 4).clone())
    ),
    "grad": lambda t: t.func.grad(lambda x: mixed(t, x).sum())(vector(t)),
    "grad_argnums": lambda t: t.func.grad(lambda x, y: (x * y.sin()).sum(), argnums=(1, 0))(
        vector(t), vector(t, shift=1.0)
    ),
    "grad_negative_argnum": lambda t: t.func.grad(lambda x, y: (x * y**2).sum(), argnums=-1)(
        vector(t), vector(t, shift=1.0)
    ),
    "grad_aux": lambda t: t.func.grad(lambda x: ((x**2).sum(), {"y": x.sin()}), has_aux=True)(
        vector(t)
    ),
    "grad_and_value": lambda t: t.func.grad_and_value(lambda x: mixed(t, x).sum())(vector(t)),
    "grad_and_value_aux": lambda t: t.func.grad_and_value(
        lambda x: ((x**2).sum(), x + 1), has_aux=True
    )(vector(t)),
    "grad_of_tree": lambda t: t.func.grad(
        lambda x: sum(leaf.sum() for leaf in tree_leaves(nested(x)))
    )(tree(t)),
    "grad_of_grad": lambda t: t.func.grad(t.func.grad(t.func.grad(t.sin)))(vector(t)[1]),
    "grad_inside": lambda t: t.func.grad(lambda x: x * t.func.grad(lambda y: x + y * x)(x))(
        vector(t)[2]
    ),
    "grad_of_constant": lambda t: t.func.grad(lambda x: t.ones(()))(vector(t)),
    "grad_keeps_no_grad": lambda t: t.func.grad(lambda x: (x * x.detach()).sum())(vector(t)),
    "module": module_gradients,
    "vjp": pulled_back,
    "vjp_aux": lambda t: t.func.vjp(lambda x: (x.sin(), x), vector(t), has_aux=True)[::2],
    "jvp": lambda t: t.func.jvp(
        lambda x, y: {"z": mixed(t, x) * y}, (vector(t), vector(t)[1]), (vector(t), vector(t)[3])
    ),
    "jvp_aux": lambda t: t.func.jvp(
        lambda x: (x.sin(), x.cos()), (vector(t),), (vector(t),), has_aux=True
    ),
    "jvp_of_constant": lambda t: t.func.jvp(lambda x: x.detach(), (vector(t),), (vector(t),)),
    "jvp_of_grad": lambda t: t.func.jvp(
        t.func.grad(lambda x: mixed(t, x).sum()), (vector(t),), (vector(t, shift=1.0),)
    ),
    "grad_of_jvp": lambda t: t.func.grad(
        lambda x: t.func.jvp(lambda z: mixed(t, z), (x,), (x.cos(),))[1].sum()
    )(vector(t)),
    "linearize": linearized,
    "jacrev": lambda t: t.func.jacrev(lambda x: mixed(t, x))(vector(t)),
    "jacrev_tree": lambda t: t.func.jacrev(nested)(tree(t)),
    "jacrev_argnums": lambda t: t.func.jacrev(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(
        vector(t), vector(t, shift=1.0)
    ),
    "jacrev_aux": lambda t: t.func.jacrev(lambda x: (x.sin(), x), has_aux=True)(vector(t)),
    "jacfwd": lambda t: t.func.jacfwd(lambda x: mixed(t, x))(vector(t)),
    "jacfwd_tree": lambda t: t.func.jacfwd(nested)(tree(t)),
    "jacfwd_matrix": lambda t: t.func.jacfwd(lambda x: x @ x.T)(matrix(t, 2, 3)),
    "hessian": lambda t: t.func.hessian(lambda x: mixed(t, x))(vector(t)),
    "hessian_argnums": lambda t: t.func.hessian(lambda x, y: (x * y.exp()).sum(), argnums=(0, 1))(
        vector(t), vector(t)
    ),
    "third": lambda t: t.func.jacrev(t.func.jacfwd(t.func.jacrev(lambda x: mixed(t, x).sum())))(
        vector(t)
    ),
    "forward_ad": dual,
    "functionalize": lambda t: t.func.functionalize(lambda x: x.clone().mul_(2))(vector(t)),
}


def assert_same(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Nests of tensors of either library: the same structure, dtypes and, nearly, numbers."""
    assert type(ours).__name__ == type(theirs).__name__
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert_same(one, other, tolerance)
    elif hasattr(ours, "dtype"):
        assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
        assert ours.requires_grad == theirs.requires_grad
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), tolerance, tolerance
        )
    else:
        assert ours == theirs


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch_does(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # linearize of PyTorch warns of its own graph
        expected = PROGRAMS[name](torch)
    assert_same(PROGRAMS[name](weft), expected)


# Without PyTorch --------------------------------------------------------------------------------


def numeric(f: Callable[[Any], Any], x: Any, step: float = 1e-6) -> np.ndarray:
    """The Jacobian of f by differences."""
    columns = []
    for i in range(x.numel()):
        unit = weft.zeros_like(x)
        unit[i] = step
        columns.append(((f(x + unit) - f(x - unit)) / (2 * step)).detach().numpy())
    return np.stack(columns, -1)


def test_jacobians_are_those_of_differences() -> None:
    x = vector(weft)

    def f(x: Any) -> Any:
        return mixed(weft, x)

    expected = numeric(f, x)
    along = weft.func.linearize(f, x)[1]
    for made in (
        weft.func.jacrev(f)(x),
        weft.func.jacfwd(f)(x),
        weft.stack([along(row) for row in weft.eye(4, dtype=weft.float64)], -1),
        weft.stack([weft.func.vjp(f, x)[1](r)[0] for r in weft.eye(3, dtype=weft.float64)]),
    ):
        np.testing.assert_allclose(made.numpy(), expected, 1e-7, 1e-8)


def test_hessians_are_jacobians_of_jacobians() -> None:
    x = vector(weft)

    def f(x: Any) -> Any:
        return mixed(weft, x)

    rev, fwd = weft.func.jacrev, weft.func.jacfwd
    expected = numeric(lambda x: weft.func.jacrev(f)(x), x)
    for made in (weft.func.hessian(f), fwd(rev(f)), rev(fwd(f)), fwd(fwd(f))):
        np.testing.assert_allclose(made(x).numpy(), expected, 1e-6, 1e-7)


def test_results_belong_to_the_caller() -> None:
    """What depends on tensors of the caller that require grad does so as well, nothing else."""
    x, w = vector(weft), vector(weft).requires_grad_()
    assert not weft.func.grad(lambda x: (x**3).sum())(x).requires_grad
    mine = weft.func.grad(lambda x: (x * x * w).sum())(x)
    (back,) = weft.autograd.grad(mine.sum(), w)
    np.testing.assert_allclose(back.numpy(), (2 * x).numpy())
    own = weft.func.grad(lambda x: (x**3).sum())(w)
    (second,) = weft.autograd.grad(own.sum(), w)
    np.testing.assert_allclose(second.numpy(), (6 * w).detach().numpy())
    with weft.no_grad():
        assert not weft.func.grad(lambda x: (x * x * w).sum())(x).requires_grad
    inner = weft.func.grad(lambda v: weft.func.jvp(weft.sin, (x,), (v,))[1].sum())(x)
    assert not inner.requires_grad
    assert w.grad is None


Fails = tuple[Callable[[], Any], type[Exception], str]
ERRORS: dict[str, Fails] = {
    "vector": (
        lambda: weft.func.grad(weft.sin)(vector(weft)),
        RuntimeError, "grad: expected a function that returns a 0-d Tensor, got 1-d one",
    ),
    "number": (
        lambda: weft.func.grad(lambda x: 3.0)(vector(weft)),
        RuntimeError, "grad: expected a function that returns a 0-d Tensor, got float",
    ),
    "not_a_tensor": (
        lambda: weft.func.grad(lambda x: x)(3.0),
        ValueError, "grad: expected arguments as a Tensor, got float",
    ),
    "integers": (
        lambda: weft.func.grad(lambda x: x.sum())(weft.ones(2, dtype=weft.int64)),
        RuntimeError, "grad: expected arguments of a floating or complex dtype, got int64",
    ),
    "argnum": (
        lambda: weft.func.grad(weft.sin, argnums=2)(vector(weft)),
        RuntimeError, "grad: expected argnums within 1 positional arguments, got 2",
    ),
    "no_argnums": (
        lambda: weft.func.jacrev(weft.sin, argnums=())(vector(weft)),
        RuntimeError, r"jacrev: expected argnums as an int or a tuple of ints, got \(\)",
    ),
    "aux": (
        lambda: weft.func.grad(lambda x: x.sum(), has_aux=True)(vector(weft)),
        RuntimeError, r"grad: expected a function that returns \(output, aux\) for has_aux=True",
    ),
    "vjp_shape": (
        lambda: weft.func.vjp(weft.sin, vector(weft))[1](vector(weft, 2)),
        RuntimeError, r"vjp: expected a vector of shape \(4,\), got \(2,\)",
    ),
    "vjp_structure": (
        lambda: weft.func.vjp(weft.sin, vector(weft))[1]([vector(weft)]),
        RuntimeError, "vjp: expected vectors in the structure of the output",
    ),
    "vjp_output": (
        lambda: weft.func.vjp(lambda x: 3.0, vector(weft)),
        RuntimeError, "vjp: expected a function that returns tensors, got float",
    ),
    "jvp_shape": (
        lambda: weft.func.jvp(weft.sin, (vector(weft),), (vector(weft, 2),)),
        RuntimeError, r"jvp: expected a tangent of shape \(4,\), got \(2,\)",
    ),
    "jvp_tuple": (
        lambda: weft.func.jvp(weft.sin, vector(weft), vector(weft)),
        RuntimeError, "jvp: expected primals and tangents as tuples, got Tensor",
    ),
    "jvp_strict": (
        lambda: weft.func.jvp(lambda x: weft.ones(2), (vector(weft),), (vector(weft),), strict=True),
        RuntimeError, "jvp: expected outputs that depend on primals",
    ),
    "in_place": (
        lambda: weft.func.grad(lambda x: x.mul_(2).sum())(vector(weft)),
        RuntimeError, "mul_: expected a tensor that the function under a transform made",
    ),
    "in_place_nested": (
        lambda: weft.func.grad(
            lambda x: weft.func.jvp(lambda x: x.mul_(2).sum(), (x * 1,), (x,))[1]
        )(vector(weft)),
        RuntimeError, "func: expected arguments with gradients of the caller's that are not",
    ),
    "no_level": (
        lambda: forward_ad(weft).make_dual(vector(weft), vector(weft)),
        RuntimeError, "make_dual: expected a level under way",
    ),
    "jacobian_of_integers": (
        lambda: weft.func.jacrev(lambda x: x.argmax())(vector(weft)),
        RuntimeError, "jacrev: expected outputs of a floating or complex dtype, got int64",
    ),
    "argnums_in_a_list": (
        lambda: weft.func.grad(weft.sin, argnums=[0])(vector(weft)),
        RuntimeError, r"grad: expected argnums as an int or a tuple of ints, got \[0\]",
    ),
    "jvp_number": (
        lambda: weft.func.jvp(weft.sin, (1.0,), (1.0,)),
        RuntimeError, "jvp: expected ",
    ),
    "jvp_nothing": (
        lambda: weft.func.jvp(weft.sin, (), ()),
        RuntimeError, "jvp: expected at least one of primals, got none",
    ),
    "complex_output": (
        lambda: weft.func.grad(lambda x: (x * 1j).sum())(vector(weft)),
        RuntimeError, "grad: expected a real output, got complex128",
    ),
    **{
        f"{name}_of_complex_{what}": (
            lambda name=name, what=what: getattr(weft.func, name)(lambda x: x * 1j)(
                vector(weft) * 1j if what == "arguments" else vector(weft)
            ),
            RuntimeError, f"jac(rev|fwd): expected {what} of a real dtype, got complex128",
        )
        for name in ("jacrev", "jacfwd")
        for what in ("arguments", "outputs")
    },
    "stack_nothing": (
        lambda: weft.func.stack_module_state([]),
        RuntimeError, "stack_module_state: expected at least one module, got none",
    ),
    "stack_classes": (
        lambda: weft.func.stack_module_state([weft.nn.Linear(1, 1), weft.nn.ReLU()]),
        RuntimeError, r"stack_module_state: expected modules of one class, got \['Linear', 'ReLU'\]",
    ),
    "functionalize": (
        lambda: weft.func.functionalize(weft.sin, remove="views"),
        ValueError, "functionalize: expected remove as",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_what_they_got(name: str) -> None:
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda captured, x: captured.add_(x),
    "assignment": lambda captured, x: captured.__setitem__(0, x.sum()),
    "view": lambda captured, x: captured.view(2, 2).copy_(x.view(2, 2)),
}


@both
@pytest.mark.parametrize("name", WRITES)
def test_functions_write_to_nothing_captured(name: str, lib: Any) -> None:
    captured, x = vector(lib), vector(lib)

    def f(x: Any) -> Any:
        WRITES[name](captured, x)
        return x.sum()

    for transform in (lib.func.grad, lib.func.jacrev, lib.func.jacfwd, lib.func.hessian):
        with pytest.raises(RuntimeError, match=r"in.place"):
            transform(f)(x)
    for run in (lambda: lib.func.vjp(f, x), lambda: lib.func.jvp(f, (x,), (x,))):
        with pytest.raises(RuntimeError, match=r"in.place"):
            run()
    assert captured.tolist() == x.tolist() and not captured.requires_grad
    WRITES[name](captured, x)  # outside of transforms


def test_functions_write_to_running_statistics() -> None:
    x, mean, variance = matrix(weft, 5, 3), weft.zeros(3), weft.ones(3)
    mean, variance = mean.double(), variance.double()
    weft.func.grad(lambda x: weft.nn.functional.batch_norm(x, mean, variance, training=True).sum())(
        x
    )
    assert mean.count_nonzero() == 3 and not mean.requires_grad


def test_dual_levels() -> None:
    fw = forward_ad(weft)
    x = vector(weft)
    assert fw._current_level == -1
    with weft.no_grad(), fw.dual_level() as level:
        assert fw._current_level == level == 0
        d = fw.make_dual(x, x.cos())
        primal, tangent = fw.unpack_dual(d * 2)
        with pytest.raises(RuntimeError, match="enter_dual_level: expected no level under way"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match=r"make_dual: expected a tangent of shape \(4,\)"):
            fw.make_dual(x, x[:2])
        with pytest.raises(ValueError, match="make_dual: expected tensor of a floating or complex"):
            fw.make_dual(x.long(), x.long())
    assert weft.is_grad_enabled()
    assert not primal.requires_grad
    assert not tangent.requires_grad
    np.testing.assert_allclose(tangent.numpy(), 2 * x.cos().numpy())
    with pytest.raises(RuntimeError, match="exit_dual_level: expected a level under way"):
        fw.exit_dual_level()


def test_stacked_modules() -> None:
    layers = [weft.nn.BatchNorm1d(2) for _ in range(3)]
    layers[1].weight.data.fill_(5.0)
    parameters, buffers = weft.func.stack_module_state(layers)
    assert parameters["weight"].tolist() == [[1, 1], [5, 5], [1, 1]]
    assert parameters["weight"].requires_grad
    assert parameters["weight"].is_leaf
    assert buffers["num_batches_tracked"].shape == (3,)
    for layer in layers:
        layer.eval()
    model = weft.nn.Sequential(weft.nn.Linear(2, 2), layers[0])
    assert weft.func.replace_all_batch_norm_modules_(model) is model
    assert layers[0].running_mean is None
    assert layers[1].running_mean is not None


FLAGS: list[tuple[str, dict[str, Any], type[Exception] | None]] = [
    ("jacobian", {"strategy": "forward-mode"}, NotImplementedError),
    ("jacobian", {"strategy": "forward-mode", "vectorize": True}, None),
    ("jacobian", {"strategy": "forward-mode", "vectorize": True, "create_graph": True},
     NotImplementedError),
    ("jacobian", {"strict": True, "vectorize": True}, RuntimeError),
    ("hessian", {"outer_jacobian_strategy": "forward-mode"}, NotImplementedError),
    ("hessian", {"outer_jacobian_strategy": "forward-mode", "vectorize": True}, None),
    ("hessian", {"strict": True, "vectorize": True}, RuntimeError),
    ("hessian", {"vectorize": True}, None),
]  # fmt: skip


def with_flags(lib: Any, name: str, flags: dict[str, Any]) -> Any:
    x = vector(lib)
    return getattr(lib.autograd.functional, name)(lambda x: (x**3).prod(), x, **flags)


@pytest.mark.parametrize(("name", "flags", "error"), FLAGS)
def test_flags_of_autograd_functional(
    name: str, flags: dict[str, Any], error: type[Exception] | None
) -> None:
    if error is None:
        assert_same(with_flags(weft, name, flags), with_flags(weft, name, {}))
        return
    with pytest.raises(error, match=f"{name}: expected"):
        with_flags(weft, name, flags)


@pytest.mark.parity
@pytest.mark.parametrize(("name", "flags", "error"), FLAGS)
def test_flags_are_pytorchs(
    name: str, flags: dict[str, Any], error: type[Exception] | None
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    if error is None:
        expected = with_flags(torch, name, flags).detach()  # PyTorch's has a history left
        assert_same(with_flags(weft, name, flags), expected)
        return
    with pytest.raises(error):
        with_flags(torch, name, flags)


def test_products_that_no_graph_is_wanted_of() -> None:
    x = weft.tensor(3.0, requires_grad=True)
    output, back = weft.func.vjp(lambda x: x**2, x)
    with weft.no_grad():
        (found,) = back(weft.tensor(1.0))
    assert found.item() == 6 and not found.requires_grad and output.requires_grad
    (found,) = back(weft.tensor(1.0))
    assert weft.autograd.grad(found, x)[0].item() == 2
