"""Muon, Adafactor, SparseAdam, and the hooks of optimizers."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft

#: an optimizer, its options, the shape of the parameter, and how close the libraries are
CASES: list[tuple[str, dict[str, Any], tuple[int, ...], float]] = [
    ("Adafactor", {}, (7, 5), 1e-5),
    ("Adafactor", {}, (7,), 1e-5),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "maximize": True}, (2, 3, 4), 1e-5),
    ("Adafactor", {"beta2_decay": -0.3, "eps": (1e-3, 0.5), "d": 2.0}, (5, 1), 1e-5),
    ("Adafactor", {"foreach": True}, (), 1e-5),
    # in bfloat16 the order of additions shows
    ("Muon", {}, (7, 5), 2e-2),
    ("Muon", {"lr": 0.1, "nesterov": False, "weight_decay": 0.0}, (4, 9), 2e-2),
    ("Muon", {"momentum": 0.5, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}, (3, 3), 2e-2),
    ("Muon", {"adjust_lr_fn": "original", "ns_coefficients": (2.0, -1.5, 0.5), "eps": 0.1}, (6, 2), 2e-2),
]  # fmt: skip
cases = pytest.mark.parametrize("number", range(len(CASES)))


def steps(lib: Any, number: int, dtype: str = "float32") -> tuple[Any, Any, Any]:
    """The way of a parameter in ten steps, and the optimizer's state."""
    name, options, shape, _ = CASES[number]
    rng = np.random.default_rng(number)
    p = lib.nn.Parameter(lib.tensor(rng.standard_normal(shape).astype(dtype)))
    unused = lib.nn.Parameter(lib.ones(1, 1))
    optimizer = getattr(lib.optim, name)([p, unused], **options)
    start = p.detach().numpy().copy()
    for step in range(10):
        p.grad = lib.tensor(rng.standard_normal(shape).astype(dtype))
        optimizer.step()
        if step == 5:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    return start, p.detach().numpy(), optimizer.state_dict()


@cases
def test_steps_move_the_parameter_alone(number: int) -> None:
    start, end, state = steps(weft, number)
    assert np.isfinite(end).all() and not np.allclose(start, end)
    assert list(state["state"]) == [0]


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@cases
def test_steps_beside_torch(number: int, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    (start, ours, state), (_, theirs, their_state) = (
        steps(lib, number, dtype) for lib in (weft, torch)
    )
    near = CASES[number][3]
    moved = np.abs(theirs - start).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=near * moved)
    assert state["param_groups"] == their_state["param_groups"]
    kept, their_kept = state["state"][0], their_state["state"][0]
    assert list(kept) == list(their_kept)
    for key, value in their_kept.items():
        np.testing.assert_allclose(kept[key].numpy(), value.numpy(), rtol=1e-4, atol=1e-6)


def test_muon_goes_along_an_orthogonal_matrix() -> None:
    p = weft.zeros(4, 6, requires_grad=True)
    p.grad = weft.randn(4, 6)
    weft.optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    values = weft.linalg.svdvals(p.detach())
    assert bool((values > 0.6).all() and (values < 1.3).all())


REFUSED: list[tuple[type[Exception], Callable[[Any, Any], Any]]] = [
    (ValueError, lambda optim, p: optim.Muon([p[0]])),
    (ValueError, lambda optim, p: optim.Muon([p], lr=-1.0)),
    (ValueError, lambda optim, p: optim.Muon([p], momentum=-1.0)),
    (ValueError, lambda optim, p: optim.Muon([p], weight_decay=-1.0)),
    (ValueError, lambda optim, p: optim.Muon([p], adjust_lr_fn="other")),
    (ValueError, lambda optim, p: optim.Muon([p], ns_steps=100).step()),
    (ValueError, lambda optim, p: optim.Muon([p], ns_coefficients=(1.0, 2.0)).step()),
    (ValueError, lambda optim, p: optim.Adafactor([p], lr=-1.0)),
    (ValueError, lambda optim, p: optim.Adafactor([p], beta2_decay=0.1)),
    (ValueError, lambda optim, p: optim.Adafactor([p], eps=(-1.0, 0.1))),
    (ValueError, lambda optim, p: optim.Adafactor([p], eps=(None, -0.1))),
    (ValueError, lambda optim, p: optim.Adafactor([p], d=0.5)),
    (ValueError, lambda optim, p: optim.Adafactor([p], weight_decay=-0.5)),
    (ValueError, lambda optim, p: optim.SparseAdam([p], lr=0.0)),
    (ValueError, lambda optim, p: optim.SparseAdam([p], eps=0.0)),
    (ValueError, lambda optim, p: optim.SparseAdam([p], betas=(1.0, 0.5))),
    (ValueError, lambda optim, p: optim.SparseAdam([p], betas=(0.5, -1.0))),
    (RuntimeError, lambda optim, p: optim.SparseAdam([p]).step()),
]


@both
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(lib: Any, number: int) -> None:
    p = lib.ones(2, 2, requires_grad=True)
    p.grad = lib.ones(2, 2)
    error, call = REFUSED[number]
    with pytest.raises(error):
        call(lib.optim, p)


@both
@pytest.mark.parametrize("name", ["Muon", "Adafactor", "SparseAdam"])
def test_complex_parameters_are_refused(lib: Any, name: str) -> None:
    p = lib.ones(2, 2, dtype=lib.complex64, requires_grad=True)
    p.grad = lib.ones_like(p)
    with pytest.raises((ValueError, RuntimeError)):
        getattr(lib.optim, name)([p]).step()


@pytest.mark.parity
def test_elements_of_sparse_adam_beside_torch() -> None:
    torch = pytest.importorskip("torch")
    options = {"lr": 0.1, "betas": (0.5, 0.9), "maximize": True}
    ours, theirs = weft.ones(5, 2, requires_grad=True), torch.ones(5, 2, requires_grad=True)
    optimizer, other = (
        weft.optim.SparseAdam([ours], **options),
        torch.optim.SparseAdam([theirs], **options),
    )
    rng = np.random.default_rng(0)
    for rows in ([0, 3], [3], [], [1, 2, 3, 4]):
        values = rng.standard_normal((len(rows), 2)).astype("float32")
        where = torch.tensor([rows], dtype=torch.int64)
        theirs.grad = torch.sparse_coo_tensor(
            where, torch.tensor(values), (5, 2), check_invariants=True
        )
        other.step()
        with weft.no_grad():
            indices = weft.tensor([rows], dtype=weft.int64)
            optimizer._update_elements(
                ours, indices, weft.tensor(values), optimizer.param_groups[0]
            )
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)
    for key, value in other.state[theirs].items():
        np.testing.assert_allclose(
            np.asarray(optimizer.state[ours][key]), np.asarray(value), rtol=1e-5
        )


# Hooks ------------------------------------------------------------------------------------------


def an_optimizer(lib: Any, cls: Any = None) -> Any:
    p = lib.nn.Parameter(lib.ones(1))
    p.grad = lib.ones(1)
    return (cls or lib.optim.SGD)([p], lr=0.5)


@both
def test_hooks_of_steps(lib: Any) -> None:
    seen: list[Any] = []
    optimizer = an_optimizer(lib)
    before = optimizer.register_step_pre_hook(
        lambda self, args, kwargs: seen.append(("before", self is args[0], len(args), kwargs))
    )
    optimizer.register_step_post_hook(
        lambda self, args, kwargs: seen.append(("after", self.param_groups[0]["params"][0].item()))
    )
    assert optimizer.step(lambda: 3) == 3
    assert seen == [("before", True, 2, {}), ("after", 0.5)]
    before.remove()
    optimizer.step(closure=None)
    assert seen[2:] == [("after", 0.0)]
    optimizer.register_step_pre_hook(lambda self, args, kwargs: ((self, lambda: 7), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda self, args, kwargs: 3)
    with pytest.raises(RuntimeError):
        optimizer.step()


@both
def test_hooks_of_an_optimizer_that_wraps_another(lib: Any) -> None:
    seen: list[str] = []

    class Wrapper(lib.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self._optimizer_step_pre_hooks = OrderedDict()
            self._optimizer_step_post_hooks = OrderedDict()
            self._patch_step_function()
            self.inner = inner

        def step(self, closure: Any = None) -> Any:
            seen.append("step")
            return self.inner.step(closure)

    optimizer = Wrapper(an_optimizer(lib))
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    assert optimizer.step(lambda: 3) == 3
    assert seen == ["before", "step", "after"]


@both
def test_hooks_of_all_optimizers(lib: Any) -> None:
    seen: list[str] = []

    class Own(lib.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            seen.append("step")
            return super().step(closure)

    module = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    optimizer = an_optimizer(lib, Own)
    optimizer.register_step_pre_hook(lambda *_: seen.append("own before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("own after"))
    handles = [
        module.register_optimizer_step_pre_hook(lambda *_: seen.append("before")),
        module.register_optimizer_step_post_hook(lambda *_: seen.append("after")),
    ]
    optimizer.step()
    for handle in handles:
        handle.remove()
    expected = ["before", "own before", "step", "own after", "after"]
    if lib is weft:  # PyTorch runs them twice where a plain SGD was made before
        assert seen == expected
    seen.clear()
    an_optimizer(lib).step()
    assert seen == []


@both
def test_hooks_of_states(lib: Any) -> None:
    seen: list[Any] = []
    optimizer = an_optimizer(lib)
    optimizer.register_state_dict_pre_hook(lambda self: seen.append("saving"))
    optimizer.register_state_dict_pre_hook(lambda self: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda self, state: {**state, "more": 1})
    optimizer.register_state_dict_post_hook(lambda self, state: seen.append(sorted(state)))
    optimizer.register_load_state_dict_pre_hook(
        lambda self, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 2.0}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda self: seen.append("loaded"))
    state = optimizer.state_dict()
    assert seen == ["first", "saving", ["more", "param_groups", "state"]] and state["more"] == 1
    optimizer.load_state_dict(state)
    assert seen[3:] == ["loaded"] and optimizer.param_groups[0]["lr"] == 2.0
    assert state["param_groups"][0]["lr"] == 0.5
    again = pickle.loads(pickle.dumps(optimizer))
    assert again.param_groups[0]["lr"] == 2.0 and again.step() is None
    assert copy.deepcopy(optimizer).state_dict().keys() == {"state", "param_groups"}


@both
def test_a_class_that_takes_old_states(lib: Any) -> None:
    class Own(lib.optim.SGD):
        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("new_option", 3)

    optimizer = an_optimizer(lib, Own)
    optimizer.load_state_dict(an_optimizer(lib).state_dict())
    assert optimizer.param_groups[0]["new_option"] == 3
    assert {"state", "param_groups", "defaults"} <= set(vars(optimizer))


def test_annotations() -> None:
    assert {"state", "param_groups", "defaults"} <= set(weft.optim.Optimizer.__annotations__)


@both
def test_loading_leaves_nothing_that_was_noted_in_the_groups(lib: Any) -> None:
    """A search for a learning rate makes a schedule, loads the state from before, makes another."""
    weight = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.Adam([{"params": [weight], "name": "all"}], lr=0.1)
    before, group = copy.deepcopy(optimizer.state_dict()), optimizer.param_groups[0]
    lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    group["lr"], group["tried"] = 0.3, True
    assert group["initial_lr"] == 0.1
    optimizer.load_state_dict(before)
    loaded = optimizer.param_groups[0]
    assert loaded is not group and group["lr"] == 0.3
    assert loaded["lr"] == 0.1 and loaded["name"] == "all" and loaded["params"][0] is weight
    assert "initial_lr" not in loaded and "tried" not in loaded


@both
def test_an_older_state_lacks_options(lib: Any) -> None:
    optimizer = lib.optim.Adam([lib.nn.Parameter(lib.ones(2))], lr=0.1, maximize=False)
    older = copy.deepcopy(optimizer.state_dict())
    for name in ("amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused"):
        del older["param_groups"][0][name]
    optimizer.load_state_dict(older)
    assert optimizer.param_groups[0]["amsgrad"] is False
    optimizer.param_groups[0]["params"][0].grad = lib.ones(2)
    optimizer.step()


OPTIONS = {
    "Adam": "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
    "decoupled_weight_decay",
    "RMSprop": "lr momentum alpha eps centered weight_decay capturable foreach maximize "
    "differentiable",
    "Adagrad": "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
    "differentiable fused",
    "Adadelta": "lr rho eps weight_decay maximize capturable foreach differentiable",
    "NAdam": "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
    "capturable differentiable",
    "RAdam": "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
    "differentiable",
    "Rprop": "lr etas step_sizes foreach maximize differentiable capturable",
    "SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
}
OPTIONS["AdamW"] = OPTIONS["Adam"]


@both
@pytest.mark.parametrize("name", OPTIONS)
def test_order_of_options(lib: Any, name: str) -> None:
    optimizer = getattr(lib.optim, name)([lib.ones(1, requires_grad=True)], lr=0.5)
    assert list(optimizer.defaults) == OPTIONS[name].split()
    assert list(optimizer.param_groups[0]) == ["params", *optimizer.defaults]


def test_libraries_search_along_a_line() -> None:
    from weft.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    def loss(x: weft.Tensor, at: float, d: weft.Tensor) -> tuple[float, weft.Tensor]:
        place = x + at * d
        return float((place**2).sum()), 2 * place

    x, d = weft.tensor([1.0, 2.0]), weft.tensor([-2.0, -4.0])
    f, g = loss(x, 0.0, d)
    value, grad, at, count = _strong_wolfe(loss, x, 1.0, d, f, g, float(g.dot(d)))
    assert (value, grad.tolist(), at, count) == (0.0, [0.0, 0.0], 0.5, 2)
    assert _cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0) == pytest.approx(1.0)
