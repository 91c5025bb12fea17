"""Optimizers and schedules: behaviour, errors, and equality with PyTorch's."""

from __future__ import annotations

import copy
import math
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft.optim import SGD, Adam, AdamW, lr_scheduler


def parameter(*values: float) -> weft.nn.Parameter:
    return weft.nn.Parameter(weft.tensor(list(values)))


def test_sgd_follows_its_formula() -> None:
    p = parameter(1.0, 2.0)
    optimizer = SGD([p], lr=0.5, momentum=0.9)
    for expected in ([0.5, 1.5], [-0.45, 0.55]):
        p.grad = weft.ones(2)
        optimizer.step()
        np.testing.assert_allclose(p.tolist(), expected, rtol=1e-6)
    assert list(optimizer.state[p]) == ["momentum_buffer"]


@pytest.mark.parametrize("make", [lambda p: SGD(p, lr=0.1), lambda p: Adam(p, lr=0.1), AdamW])
def test_a_step_goes_downhill_and_keeps_the_tensor(make: Any) -> None:
    p = parameter(3.0)
    optimizer, pointer = make([p]), p.data_ptr()

    def closure() -> weft.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert p.data_ptr() == pointer and p.requires_grad and p.is_leaf


EVERY = {
    "sgd": lambda p: SGD(p, lr=0.1),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "ascent": lambda p: SGD(p, lr=0.1, momentum=0.9, maximize=True),
    **{
        name: lambda p, name=name: getattr(weft.optim, name)(p)
        for name in sorted(vars(weft.optim))
        if isinstance(getattr(weft.optim, name), type)
        and issubclass(getattr(weft.optim, name), weft.optim.Optimizer)
        and name not in ("Optimizer", "SGD", "LBFGS", "Muon", "SparseAdam")
    },
}


@pytest.mark.parametrize("name", EVERY)
def test_what_an_optimizer_keeps_is_its_own(name: str) -> None:
    """Gradients may be written after a step, and parameters before one: its state does not change."""
    p = parameter(1.0, -2.0, 3.0)
    optimizer = EVERY[name]([p])
    p.grad = weft.tensor([0.5, -1.0, 2.0])
    optimizer.step()
    kept = [one for one in optimizer.state[p].values() if isinstance(one, weft.Tensor)]
    places = [one.data_ptr() for one in (p, p.grad, *kept) if one.dim()]
    assert len(set(places)) == len(places)
    before = [one.clone() for one in kept]
    p.grad.fill_(77.0)
    assert all(weft.equal(one, old) for one, old in zip(kept, before))


@pytest.mark.parametrize("name", EVERY)
def test_gradients_may_be_zeroed_or_dropped(name: str) -> None:
    """Both ways of zero_grad give the same steps."""
    runs = []
    for set_to_none in (True, False):
        p = parameter(1.0, -2.0, 3.0)
        optimizer = EVERY[name]([p])
        for scale in (1.0, 0.5, -2.0):
            optimizer.zero_grad(set_to_none=set_to_none)
            (p * p * scale).sum().backward()
            optimizer.step()
        runs.append(p.tolist())
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", [*(name for name in EVERY if name != "Adafactor"), "LBFGS"])
def test_a_complex_parameter_moves_as_its_two_parts_do(name: str) -> None:
    paths, start = [], weft.tensor([[1.0, 2.0], [-2.0, -1.0], [3.0, 0.0]])
    for twice in (False, True):
        p = weft.nn.Parameter(weft.view_as_complex(start) if twice else start.clone())
        still = weft.nn.Parameter(weft.ones(1, dtype=weft.complex64))
        optimizer = EVERY.get(name, weft.optim.LBFGS)([p, still])

        def closure(p: Any = p, twice: bool = twice, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            parts = weft.view_as_real(p) if twice else p
            loss = ((parts - 1) ** 2 * weft.tensor([[1.0, 2.0], [3.0, 0.5], [1.0, 0.2]])).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        state = optimizer.state.get(p, {})
        paths.append([weft.view_as_real(p).tolist() if twice else p.tolist()])
        for value in state.values():
            if isinstance(value, weft.Tensor) and value.shape == p.shape:
                paths[-1].append(weft.view_as_real(value).tolist() if twice else value.tolist())
        assert twice or name == "LBFGS" or still not in optimizer.state or name == "Adagrad"
    assert paths[0] == paths[1] and len(set(map(str, optimizer.state))) <= 2


def test_rprop_keeps_the_digits_of_its_factors() -> None:
    p = weft.nn.Parameter(weft.ones(1, dtype=weft.float64))
    optimizer = weft.optim.Rprop([p], lr=0.1, etas=(0.3, 1.7))
    for grad in (1.0, 1.0, -1.0):
        p.grad = weft.full_like(p.detach(), grad)
        optimizer.step()
    assert optimizer.state[p]["step_size"].item() == 0.1 * 1.7 * 0.3
    assert p.item() == 1.0 - 0.1 - 0.1 * 1.7


def test_parameters_without_gradient_stay() -> None:
    p, q = parameter(1.0), parameter(1.0)
    q.grad = weft.ones(1)
    optimizer = Adam([p, q], lr=0.1)
    optimizer.step()
    assert p.item() == 1.0 and q.item() != 1.0 and p not in optimizer.state
    optimizer.zero_grad(set_to_none=False)
    assert q.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert q.grad is None


def test_groups_have_their_own_options() -> None:
    p, q = parameter(1.0), parameter(1.0)
    optimizer = SGD([{"params": [p]}, {"params": q, "lr": 1.0}], lr=0.1)
    p.grad = q.grad = weft.ones(1)
    optimizer.step()
    np.testing.assert_allclose([p.item(), q.item()], [0.9, 0.0], atol=1e-7)
    optimizer.add_param_group({"params": [parameter(1.0)]})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 1.0, 0.1]


def test_state_dict_resumes_exactly() -> None:
    def run(steps: int, p: Any, optimizer: Any) -> list[float]:
        for _ in range(steps):
            p.grad = p.detach() * 2
            optimizer.step()
        return p.tolist()

    p = parameter(1.0, -2.0)
    optimizer = Adam([p], lr=0.1, amsgrad=True)
    run(3, p, optimizer)
    state = copy.deepcopy(optimizer.state_dict())
    q = weft.nn.Parameter(p.detach().clone())
    resumed = Adam([q], lr=9.0)
    resumed.load_state_dict(state)
    assert resumed.param_groups[0]["lr"] == 0.1
    assert run(3, p, optimizer) == run(3, q, resumed)
    assert list(state["state"]) == [0] and state["param_groups"][0]["params"] == [0]


def test_errors() -> None:
    p = parameter(1.0)
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        SGD([])
    with pytest.raises(TypeError, match="expected an iterable of tensors or dicts, got one Tensor"):
        SGD(p)
    with pytest.raises(TypeError, match="optimizer: expected Tensors, got int"):
        SGD([1])
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        SGD([p * 2])
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        SGD([{"params": [p]}, {"params": [p]}])
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        Adam([p], lr=-1)
    with pytest.raises(ValueError, match=r"Invalid beta parameter at index 1: 1\.0"):
        Adam([p], betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum"):
        SGD([p], nesterov=True)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        SGD([p]).load_state_dict({"state": {}, "param_groups": []})


def test_repr_lists_the_options() -> None:
    text = repr(SGD([parameter(1.0)], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.1\n" in text and text.endswith("\n)")
    groups = [{"params": [parameter(1.0)]}, {"params": [parameter(1.0)], "lr": 0.2}]
    assert "    weight_decay: 0\n\nParameter Group 1\n" in repr(SGD(groups, lr=0.1))


@pytest.mark.parametrize("make", [SGD, Adam, AdamW, weft.optim.Rprop, weft.optim.LBFGS])
def test_a_rate_is_one_number(make: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a number or a tensor of one element, got .*2"):
        make([parameter(1.0)], lr=weft.ones(2))


@pytest.mark.parametrize("make", [Adam, AdamW])
def test_betas_are_numbers_or_tensors(make: Any) -> None:
    with pytest.raises(ValueError, match="betas: expected two numbers or two tensors"):
        make([parameter(1.0)], betas=(0.9, weft.tensor(0.99)))


@pytest.mark.parametrize(
    "params",
    [
        [{"params": [("a", parameter(1.0))]}, {"params": [parameter(1.0)]}],
        [{"params": [parameter(1.0)]}, {"params": [("a", parameter(1.0))]}],
        [("a", parameter(1.0)), parameter(1.0)],
        [parameter(1.0), ("a", parameter(1.0))],
    ],
)
def test_names_are_of_all_parameters_or_of_none(params: Any) -> None:
    with pytest.raises(ValueError, match=r"add_param_group: expected names .*, got some"):
        SGD(params)


# Parity -------------------------------------------------------------------------------------------

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.003, "alpha": 0.9, "momentum": 0.5, "centered": True, "maximize": True}),
    ("RMSprop", {"weight_decay": 0.1, "centered": True, "eps": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.01, "betas": (0.5, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.01, "betas": (0.9, 0.9), "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.2), "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 10, "weight_decay": 0.1, "maximize": True}),
]


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_fifty_steps_equal_torch(name: str, options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start = rng.standard_normal((7, 5)).astype(dtype)
    grads = rng.standard_normal((50, 7, 5)).astype(dtype)
    if dtype == "complex64":
        start, grads = start * (1 + 2j), grads * (2 - 1j) + 0.1j * grads[::-1].real
    exact = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 3e-6, "atol": 3e-7}
    states = []
    for lib in (weft, torch):
        p = lib.nn.Parameter(lib.tensor(start))
        optimizer = getattr(lib.optim, name)([p], **options)
        for grad in grads:
            p.grad = lib.tensor(grad)
            optimizer.step()
        states.append((p.detach().numpy(), optimizer.state_dict()))
    (ours, our_state), (theirs, their_state) = states
    # Each step may differ in the last bit (a product and sum rounded once or twice).
    np.testing.assert_allclose(ours, theirs, **exact)
    assert set(our_state["param_groups"][0]) == set(their_state["param_groups"][0])
    kept, theirs_kept = (state["state"].get(0, {}) for state in (our_state, their_state))
    given = {key: value for key, value in theirs_kept.items() if value is not None}
    assert set(kept) == set(given)
    for key, value in given.items():
        np.testing.assert_allclose(kept[key].numpy(), value.numpy(), **exact)


def as_other(lib: Any, value: Any) -> Any:
    """A state dict with its tensors as those of the other library."""
    if isinstance(value, dict):
        return {key: as_other(lib, item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_other(lib, item) for item in value]
    return lib.tensor(value.detach().numpy()) if hasattr(value, "detach") else value


@pytest.mark.parity
@pytest.mark.parametrize(
    "name", sorted({name for name, _ in OPTIMIZERS if name != "SGD"} | {"LBFGS"})
)
def test_training_goes_on_in_the_other_library(name: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    start, target = rng.standard_normal((2, 3, 2), dtype=np.float32)

    def train(lib: Any, values: Any, state: Any) -> tuple[Any, Any]:
        p = lib.nn.Parameter(lib.tensor(values))
        goal = lib.tensor(target)
        optimizer = getattr(lib.optim, name)([p])
        if state is not None:
            optimizer.load_state_dict(as_other(lib, state))

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((p - goal) ** 4).mean()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return p.detach().numpy().copy(), optimizer.state_dict()

    paths = []
    for first, second in ((weft, weft), (weft, torch), (torch, weft), (torch, torch)):
        paths.append(train(second, *train(first, start, None))[0])
    for path in paths[1:]:
        np.testing.assert_allclose(path, paths[0], rtol=1e-4, atol=1e-6)


def test_a_line_search_is_bounded_by_the_evaluations_of_a_step() -> None:
    p = weft.tensor([4.0], requires_grad=True)
    optimizer = weft.optim.LBFGS([p], lr=1e-6, max_eval=3, line_search_fn="strong_wolfe")
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        losses.append((p**2).sum())
        losses[-1].backward()
        return losses[-1]

    optimizer.step(closure)
    assert len(losses) == 4  # the first point, and the search's first one and two more


@pytest.mark.parity
@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 6},
        {"max_iter": 6, "lr": 0.5, "history_size": 2},
        {"line_search_fn": "strong_wolfe", "max_iter": 8},
        {"line_search_fn": "strong_wolfe", "lr": 40.0, "max_iter": 4, "max_eval": 9},
        {"line_search_fn": "strong_wolfe", "lr": 1e-4, "history_size": 3},
        {"line_search_fn": "strong_wolfe", "lr": 1e-6, "max_eval": 3},
        {"line_search_fn": "strong_wolfe", "lr": 100.0, "max_iter": 1},
    ],
)
def test_lbfgs_equals_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (weft, torch):
        p = lib.nn.Parameter(lib.tensor([-1.2, 1.0, 0.3, 2.0], dtype=lib.float64))
        optimizer = lib.optim.LBFGS([p], **options)
        losses = []

        def closure(p: Any = p, optimizer: Any = optimizer, losses: Any = losses) -> Any:
            optimizer.zero_grad()
            loss = (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()
            loss.backward()
            losses.append(loss.item())
            return loss

        for _ in range(3):
            optimizer.step(closure)
        results.append((losses, p.tolist(), optimizer.state_dict()["state"][0]))
    (ours, our_p, our_state), (theirs, their_p, their_state) = results
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(our_p, their_p, rtol=1e-6)
    assert set(our_state) == set(their_state)
    assert our_state["func_evals"] == their_state["func_evals"]


SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.1}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("LinearLR", {"total_iters": 4}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 3}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - epoch / 20}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "step_size_down": 2}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 2, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 2, "mode": "exp_range",
                  "gamma": 0.9, "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 2,
                  "scale_fn": lambda x: 1 / (5 * x)}),
    ("swa_utils.SWALR", {"swa_lr": 0.05, "anneal_epochs": 4}),
    ("swa_utils.SWALR", {"swa_lr": 0.05, "anneal_epochs": 3, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12}),
    ("OneCycleLR", {"max_lr": 1.0, "epochs": 3, "steps_per_epoch": 4, "anneal_strategy": "linear",
                    "three_phase": True}),
]  # fmt: skip


def made(lib: Any, name: str, options: dict[str, Any], lr: Any) -> tuple[Any, Any]:
    """An optimizer and its schedule."""
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=lr, momentum=0.9)
    home = lib.optim.swa_utils if "." in name else lib.optim.lr_scheduler
    return optimizer, getattr(home, name.split(".")[-1])(optimizer, **options)


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_a_rate_in_a_tensor_goes_as_a_number_does(name: str, options: dict[str, Any]) -> None:
    """It stays the same tensor, and nothing that a schedule keeps or tells is a view of it."""
    rates = weft.tensor(0.5, dtype=weft.float64)
    (plain, by_number), (optimizer, schedule) = (
        made(weft, name, options, lr) for lr in (0.5, rates)
    )
    for _ in range(8):
        (group,) = optimizer.param_groups
        assert group["lr"] is rates and schedule.get_last_lr()[0] is not rates
        kept = [*schedule.base_lrs, *schedule.get_last_lr(), group["initial_lr"]]
        assert all(one is not rates for one in kept)
        assert rates.item() == pytest.approx(plain.param_groups[0]["lr"], rel=1e-12)
        assert float(schedule.get_last_lr()[0]) == rates.item()
        for part in (plain, by_number, optimizer, schedule):
            part.step()


def test_a_rate_in_a_tensor_stays_in_other_schedules_and_out_of_checkpoints() -> None:
    rate = weft.tensor(1.0)
    optimizer = SGD([parameter(1.0)], lr=rate)
    parts = [lr_scheduler.ConstantLR(optimizer, 0.5, 2), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    both = lr_scheduler.SequentialLR(optimizer, parts, [1])
    assert rate.item() == 0.5 and [float(lr) for lr in both.get_last_lr()] == [0.5]
    optimizer.step()
    for expected in (1.0, 0.5):
        both.step()
        assert optimizer.param_groups[0]["lr"] is rate and rate.item() == expected
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for loss in (1.0, 2.0):
        plateau.step(loss)
    assert rate.item() == pytest.approx(0.05)
    saved = optimizer.state_dict()
    twin = SGD([parameter(1.0)], lr=1.0)
    twin.load_state_dict(saved)
    twin.step()
    lr_scheduler.ExponentialLR(twin, 0.5).step()
    assert saved["param_groups"][0]["lr"].item() == pytest.approx(0.05)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedules_equal_torch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    histories, groups = [], []
    for lib in (weft, torch):
        optimizer, schedule = made(lib, name, options, 0.5)
        history = [(schedule.get_last_lr()[0], optimizer.param_groups[0]["momentum"])]
        for _ in range(11):
            optimizer.step()
            schedule.step()
            history.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
        histories.append(history)
        items = optimizer.param_groups[0].items()
        groups.append({key: value for key, value in items if isinstance(value, float)})
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9, atol=1e-12)
    assert groups[0] == pytest.approx(groups[1], rel=1e-9)


class Decay:
    """A function of the epoch that has a state."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, epoch: float) -> float:
        return self.rate**epoch


def combined(lib: Any, kind: str, name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """An optimizer and the schedule `name`: by itself, resumed, or as a part of others."""
    rates = lib.optim.lr_scheduler
    home = lib.optim.swa_utils if "." in name else rates
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1, momentum=0.9)
    make = partial(getattr(home, name.split(".")[-1]), optimizer, **options)
    if "resumed" in kind:
        optimizer.param_groups[0].update(initial_lr=0.2, max_lr=1.0, min_lr=0.01, swa_lr=0.05)
        optimizer.param_groups[0].update(base_momentum=0.85, max_momentum=0.95)
        return optimizer, make(last_epoch=2 if kind == "resumed" else 5)
    parts = [make(), rates.ConstantLR(optimizer, 0.5, 2)]
    if kind == "second":
        return optimizer, rates.SequentialLR(optimizer, parts[::-1], [2])
    if kind == "nested":
        parts = [rates.SequentialLR(optimizer, parts, [2]), rates.ExponentialLR(optimizer, 0.5)]
    elif kind == "chained":
        parts = [rates.ChainedScheduler(parts), rates.ExponentialLR(optimizer, 0.5)]
    return optimizer, rates.SequentialLR(optimizer, parts, [4])


PLAIN_SCHEDULES = [
    *(row for row in SCHEDULES if row[0] not in ("CyclicLR", "OneCycleLR")),
    ("LambdaLR", {"lr_lambda": Decay(0.9)}),
]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["resumed", "resumed late", "first", "second", "nested", "chained"]
)
@pytest.mark.parametrize(("name", "options"), PLAIN_SCHEDULES)
def test_combined_schedules_equal_torch(kind: str, name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    histories = []
    for lib in (weft, torch):
        optimizer, schedule = combined(lib, kind, name, options)
        history = [schedule.get_last_lr()[0]]
        for _ in range(7):
            optimizer.step()
            schedule.step()
            history.append(optimizer.param_groups[0]["lr"])
        histories.append(history)
    np.testing.assert_allclose(*histories, rtol=1e-9, atol=1e-12)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *PLAIN_SCHEDULES,
        *(row for row in SCHEDULES if row[0] in ("CyclicLR", "OneCycleLR")),
        ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "scale_fn": Decay(0.9)}),
    ],
)
def test_checkpoints_of_schedules_have_torchs_names(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    states, groups = [], []
    for lib in (weft, torch):
        optimizer, schedule = made(lib, name, options, 0.5)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        state = schedule.state_dict()
        states.append([(key, value) for key, value in state.items() if key != "_last_lr"])
        groups.append(list(optimizer.param_groups[0]))
    assert groups[0] == groups[1]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    "combine",
    [
        lambda a, b: lr_scheduler.SequentialLR(a.optimizer, [a, b], [1]),
        lambda a, b: lr_scheduler.ChainedScheduler([a, b]),
    ],
)
def test_schedules_of_two_optimizers_are_refused(combine: Any) -> None:
    first, second = (lr_scheduler.ExponentialLR(SGD([parameter(1.0)], 0.1), 0.5) for _ in range(2))
    with pytest.raises(ValueError, match="expected schedules of one optimizer, got two"):
        combine(first, second)


def test_a_schedule_of_schedules_goes_on_from_its_checkpoint() -> None:
    """The parts keep their own optimizer: nothing of the saved one comes along."""

    def parts(optimizer: SGD) -> list[Any]:
        return [
            lr_scheduler.ConstantLR(optimizer, 0.5, 2),
            lr_scheduler.ExponentialLR(optimizer, 0.5),
        ]

    def sequential(optimizer: SGD) -> Any:
        return lr_scheduler.SequentialLR(optimizer, parts(optimizer), [2])

    def chained(optimizer: SGD) -> Any:
        return lr_scheduler.ChainedScheduler(parts(optimizer))

    for make in (sequential, chained):
        optimizer, twin = (SGD([parameter(1.0)], lr=1.0) for _ in range(2))
        schedule = make(optimizer)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        resumed = make(twin)
        twin.load_state_dict(optimizer.state_dict())
        resumed.load_state_dict(schedule.state_dict())
        for _ in range(3):
            schedule.step()
            resumed.step()
            assert resumed.get_last_lr() == schedule.get_last_lr()
            assert twin.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
        with pytest.raises(ValueError, match=r"expected states of 2 schedules, got 0"):
            resumed.load_state_dict({**schedule.state_dict(), "_schedulers": []})


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (partial(lr_scheduler.ExponentialLR, gamma=0.5), [0.1, 0.05]),
        (partial(lr_scheduler.LinearLR, start_factor=0.5, total_iters=4), [0.1, 0.1 * 8 / 7]),
        (partial(lr_scheduler.PolynomialLR, total_iters=5), [0.1, 0.05]),
        (partial(lr_scheduler.MultiplicativeLR, lr_lambda=lambda epoch: 0.5), [0.1, 0.05]),
    ],
)
def test_a_schedule_that_is_resumed_begins_with_the_rate_there_is(make: Any, expected: Any) -> None:
    optimizer = SGD([parameter(1.0)], lr=0.1)
    optimizer.param_groups[0]["initial_lr"] = 0.2
    schedule = make(optimizer, last_epoch=2)
    rates = schedule.get_last_lr()
    optimizer.step()
    schedule.step()
    assert [*rates, *schedule.get_last_lr()] == pytest.approx(expected)


@pytest.mark.parametrize("total", range(8))
def test_a_line_stays_where_it_ends(total: int) -> None:
    optimizer = SGD([parameter(1.0)], lr=0.3)
    schedule = lr_scheduler.LinearLR(optimizer, total_iters=total)
    rates = []
    for _ in range(total + 2):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    if total:
        assert rates == sorted(rates) and rates[-1] == pytest.approx(0.3, rel=1e-15)
        assert rates[total - 1 :] == [rates[-1]] * 3
    else:
        assert rates == [0.3 / 3] * 2


def test_objects_that_compute_rates_are_saved_with_their_attributes() -> None:
    schedules = [
        partial(lr_scheduler.LambdaLR, lr_lambda=Decay(0.5)),
        partial(lr_scheduler.MultiplicativeLR, lr_lambda=Decay(0.5)),
        partial(lr_scheduler.CyclicLR, base_lr=0.1, max_lr=1.0, scale_fn=Decay(0.5)),
    ]
    for make in schedules:
        schedule = make(SGD([parameter(1.0)], lr=1.0, momentum=0.9))
        state = schedule.state_dict()
        (name,) = {"lr_lambdas", "_scale_fn_custom"} & set(state)
        assert state[name] in ({"rate": 0.5}, [{"rate": 0.5}])
        other = {"rate": 0.25}
        schedule.load_state_dict({**state, name: [other] if name == "lr_lambdas" else other})
        assert schedule.state_dict()[name] in (other, [other])


def test_plateau_has_a_least_rate_for_each_group() -> None:
    groups = [{"params": [parameter(1.0)]}, {"params": [parameter(1.0)], "lr": 0.2}]
    optimizer = SGD(groups, lr=0.1)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.05, 0.15])
    assert isinstance(plateau, lr_scheduler.LRScheduler)
    for loss in (1.0, 2.0):
        plateau.step(loss)
    assert plateau.get_last_lr() == [0.05, 0.15]
    with pytest.raises(ValueError, match=r"ReduceLROnPlateau: expected 2 values, got 1"):
        lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0.1])
    optimizer.add_param_group({"params": [parameter(1.0)]})
    with pytest.raises(RuntimeError, match=r"expected a min_lr .* got none for group 2"):
        plateau.step(3.0)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.09)
    optimizer.add_param_group({"params": [parameter(1.0)]})
    for loss in (1.0, 2.0):
        plateau.step(loss)
    assert plateau.get_last_lr()[-1] == 0.09


@pytest.mark.parity
def test_plateau_and_sequential_schedules_equal_torch() -> None:
    torch = pytest.importorskip("torch")
    histories = []
    for lib in (weft, torch):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=1.0)
        plateau = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, cooldown=1)
        history = []
        for loss in (5.0, 4.0, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0, 3.0, 3.0, math.nan):
            plateau.step(loss)
            history.append(optimizer.param_groups[0]["lr"])
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=1.0)
        first = lib.optim.lr_scheduler.LinearLR(optimizer, total_iters=3)
        second = lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        both = lib.optim.lr_scheduler.SequentialLR(optimizer, [first, second], [3])
        for _ in range(6):
            history.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            both.step()
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=1.0)
        rates = lib.optim.lr_scheduler
        parts = [rates.ConstantLR(optimizer, 0.5, 2), rates.ExponentialLR(optimizer, 0.9)]
        chain = rates.ChainedScheduler(parts, optimizer)
        restarts = rates.CosineAnnealingWarmRestarts(optimizer, 2, 2)
        for place in (0.5, 1.75, 2.25, 6.5):
            optimizer.step()
            chain.step()
            history += [optimizer.param_groups[0]["lr"], *chain.get_last_lr()]
            restarts.step(place)
            history += restarts.get_last_lr()
        histories.append(history)
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9)


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"use_buffers": True}, {"ema": 0.75}])
def test_averaged_models_equal_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    batches = np.random.default_rng(0).standard_normal((3, 4, 2), dtype=np.float32)
    results = []
    for lib in (weft, torch):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
        swa, kept = lib.optim.swa_utils, dict(options)
        if "ema" in kept:
            kept = {"multi_avg_fn": swa.get_ema_multi_avg_fn(kept["ema"])}
        averaged = swa.AveragedModel(model, **kept)
        for batch in batches:
            loss = (model(lib.tensor(batch)) ** 3).sum()
            model.zero_grad()
            loss.backward()
            lib.optim.SGD(model.parameters(), lr=0.1).step()
            averaged.update_parameters(model)
        states = [{k: v.numpy().copy() for k, v in averaged.state_dict().items()}]
        averaged.train()
        swa.update_bn([(lib.tensor(batch), None) for batch in batches], averaged)
        states.append({k: v.numpy() for k, v in averaged.state_dict().items()})
        results.append(states)
    for ours, theirs in zip(*results):
        assert list(ours) == list(theirs)
        for key in ours:
            # PyTorch averages counts of batches too, rounded down; here the last count is kept.
            if not (options.get("use_buffers") and key.endswith("num_batches_tracked")):
                np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-4, atol=1e-5)


def nearly(words: tuple[str, ...]) -> set[str]:
    """Words that look like one of those given."""
    made = {near for w in words for near in (w[:-1], w[1:], w + "s", w.upper(), f" {w}")}
    return {"", *made, *(a + b for a in words for b in words)} - {*words}


@pytest.mark.parametrize(
    ("make", "option", "words"),
    [
        (partial(lr_scheduler.OneCycleLR, max_lr=1.0, total_steps=9), "anneal_strategy",
         ("cos", "linear")),
        (partial(weft.optim.swa_utils.SWALR, swa_lr=1.0), "anneal_strategy", ("cos", "linear")),
        (partial(lr_scheduler.CyclicLR, base_lr=0.1, max_lr=1.0), "mode",
         ("triangular", "triangular2", "exp_range")),
        (lr_scheduler.ReduceLROnPlateau, "mode", ("min", "max")),
        (lr_scheduler.ReduceLROnPlateau, "threshold_mode", ("rel", "abs")),
        (lambda o, **word: weft.optim.LBFGS(o.param_groups, **word), "line_search_fn",
         ("strong_wolfe",)),
    ],
)  # fmt: skip
def test_options_that_are_words_take_those_alone(
    make: Any, option: str, words: tuple[str, ...]
) -> None:
    optimizer = SGD([parameter(1.0)], lr=1.0, momentum=0.9)
    for word in words:
        make(optimizer, **{option: word})
    for word in nearly(words):
        with pytest.raises((ValueError, RuntimeError), match=f"expected .*{option} .*{word!r}"):
            make(optimizer, **{option: word})


@pytest.mark.parametrize("make", [partial(SGD, momentum=0.5), Adam])
@pytest.mark.parametrize(
    "schedule",
    [
        partial(lr_scheduler.CyclicLR, base_lr=0.1, max_lr=1.0, step_size_up=2),
        partial(lr_scheduler.OneCycleLR, max_lr=1.0, total_steps=10),
    ],
    ids=["CyclicLR", "OneCycleLR"],
)
def test_momentum_goes_between_the_limits_that_its_group_keeps(make: Any, schedule: Any) -> None:
    optimizer = make([parameter(1.0)])
    steps = schedule(optimizer, base_momentum=0.6, max_momentum=0.7)
    group, seen = optimizer.param_groups[0], []
    for _ in range(9):
        seen.append(group["betas"][0] if "betas" in group else group["momentum"])
        optimizer.step()
        steps.step()
    assert (min(seen), max(seen)) == pytest.approx((0.6, 0.7))
    assert (group["base_momentum"], group["max_momentum"]) == (0.6, 0.7)


@both
@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("is_stepped", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda t, o: t.optim.lr_scheduler.StepLR(o, 1),
        lambda t, o: t.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=9),
        lambda t, o: t.optim.lr_scheduler.ChainedScheduler(
            [t.optim.lr_scheduler.ExponentialLR(o, 0.5)]
        ),
        lambda t, o: t.optim.swa_utils.SWALR(o, 0.1),
    ],
)
def test_a_rate_that_no_step_used_warns(lib: Any, make: Any, is_stepped: bool) -> None:
    optimizer = lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=0.1, momentum=0.5)
    schedule = make(lib, optimizer)
    if is_stepped:
        optimizer.step()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(3):
            schedule.step()
    assert len([w for w in found if "optimizer.step()" in str(w.message)]) == (not is_stepped)


def test_a_schedule_can_be_saved() -> None:
    optimizer = SGD([parameter(1.0)], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    schedule.step()
    twin = lr_scheduler.StepLR(SGD([parameter(1.0)], lr=1.0), 1)
    twin.load_state_dict(schedule.state_dict())
    assert twin.last_epoch == 1 and twin.get_last_lr() == [0.1]
