"""nn.utils.parametrize, parametrizations, spectral_norm and weight_norm: programs that run in both
libraries, with the same numbers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft


def symmetric(lib: Any) -> Any:
    class Symmetric(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    return Symmetric()


def two_parts(lib: Any) -> Any:
    class TwoParts(lib.nn.Module):
        def forward(self, low: Any, high: Any) -> Any:
            return low + high

        def right_inverse(self, x: Any) -> Any:
            return x.clamp(max=0), x.clamp(min=0)

    return TwoParts()


def values(module: Any) -> dict[str, Any]:
    """State and gradients of a module, as arrays, in the order of its state_dict."""
    found = {name: value.detach().numpy().copy() for name, value in module.state_dict().items()}
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            found[f"grad of {name}"] = parameter.grad.numpy().copy()
    return found


# Programs: each gives what the libraries must agree about ---------------------------------------


def one(lib: Any, nn: Any, P: Any) -> Any:
    layer = nn.Linear(3, 3)
    assert P.register_parametrization(layer, "weight", symmetric(lib)) is layer
    assert P.is_parametrized(layer) and P.is_parametrized(layer, "weight")
    assert not P.is_parametrized(layer, "bias")
    assert lib.equal(layer.weight, layer.weight.T) and not isinstance(layer.weight, nn.Parameter)
    out = layer(lib.ones(1, 3))
    out.sum().backward()
    return repr(layer), type(layer).__name__, values(layer), out.detach().numpy()


def assigned(lib: Any, nn: Any, P: Any) -> Any:
    layer = P.register_parametrization(nn.Linear(3, 3), "weight", symmetric(lib))
    layer.weight = lib.arange(9.0).reshape(3, 3)
    assert layer.weight.tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]
    return values(layer)


def chained(lib: Any, nn: Any, P: Any) -> Any:
    layer = P.register_parametrization(nn.Linear(3, 3), "weight", symmetric(lib))
    P.register_parametrization(layer, "weight", nn.Tanh())
    P.register_parametrization(layer, "bias", nn.Softplus(), unsafe=True)
    assert layer.weight.abs().max() < 1 and len(layer.parametrizations.weight) == 2
    return (
        repr(layer),
        values(layer),
        layer.weight.detach().numpy(),
        layer.parametrizations.bias.unsafe,
    )


def several(lib: Any, nn: Any, P: Any) -> Any:
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    P.register_parametrization(layer, "weight", two_parts(lib))
    assert lib.equal(layer.weight, before) and layer.parametrizations.weight.ntensors == 2
    layer.weight = -before
    layer(lib.ones(1, 2)).sum().backward()
    return values(layer), [type(p).__name__ for p in layer.parameters()]


def of_buffers(lib: Any, nn: Any, P: Any) -> Any:
    layer = nn.Module()
    layer.register_buffer("b", lib.ones(2))
    P.register_parametrization(layer, "b", nn.Softplus())
    assert not list(layer.parameters()) and list(dict(layer.named_buffers())) == [
        "parametrizations.b.original"
    ]
    P.remove_parametrizations(layer, "b")
    return values(layer), list(dict(layer.named_buffers()))


def removed(lib: Any, nn: Any, P: Any) -> Any:
    seen = []
    for keep in (True, False):
        layer = nn.Linear(3, 3)
        weight = layer.weight
        P.register_parametrization(layer, "weight", symmetric(lib))
        P.register_parametrization(layer, "bias", nn.Tanh())
        P.remove_parametrizations(layer, "weight", leave_parametrized=keep)
        assert layer.weight is weight and P.is_parametrized(layer, "bias")
        P.remove_parametrizations(layer, "bias")
        assert type(layer) is nn.Linear and not hasattr(layer, "parametrizations")
        layer(lib.ones(1, 3)).sum().backward()
        seen += [repr(layer), values(layer)]
    return seen


def removed_parts(lib: Any, nn: Any, P: Any) -> Any:
    layer = P.register_parametrization(nn.Linear(2, 2), "weight", two_parts(lib))
    with pytest.raises(ValueError):
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
    P.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter)
    return values(layer)


def copies(lib: Any, nn: Any, P: Any) -> Any:
    layer = P.register_parametrization(nn.Linear(3, 3), "weight", symmetric(lib))
    other = copy.deepcopy(layer)
    other.weight = lib.zeros(3, 3)
    assert layer.weight.abs().sum() > 0 and other.weight.abs().sum() == 0
    with pytest.raises(RuntimeError):
        pickle.dumps(layer)
    state = layer.state_dict()
    other.load_state_dict(state)
    assert lib.equal(other.weight, layer.weight)
    return values(other), repr(other), layer.double().weight.dtype == lib.float64


def in_cache(lib: Any, nn: Any, P: Any) -> Any:
    calls = []

    class Counted(nn.Module):
        def forward(self, x: Any) -> Any:
            calls.append(1)
            return x * 2

    layer = P.register_parametrization(nn.Linear(2, 2), "weight", Counted())
    calls.clear()
    with P.cached():
        with P.cached():
            assert layer.weight is layer.weight
        assert layer(lib.ones(1, 2)).shape == (1, 2)
        with pytest.raises(RuntimeError):
            lib.jit.trace(layer, lib.ones(1, 2))
    assert len(calls) == 1
    assert layer.weight is not layer.weight
    return len(calls)


def transferred(lib: Any, nn: Any, P: Any) -> Any:
    source = P.register_parametrization(nn.Linear(3, 3), "weight", symmetric(lib))
    P.register_parametrization(source, "bias", two_parts(lib))
    target = nn.Linear(3, 3)
    assert P.transfer_parametrizations_and_params(source, target) is target
    assert lib.equal(source.weight, target.weight) and lib.equal(source.bias, target.bias)
    assert P.type_before_parametrizations(target) is nn.Linear
    assert P.type_before_parametrizations(nn.ReLU()) is nn.ReLU
    bare = nn.Module()
    bare.parametrizations = nn.ModuleDict()
    P.transfer_parametrizations_and_params(source, bare, "weight")
    return repr(target), values(target), values(bare)


def by_weight_norm(lib: Any, nn: Any, P: Any) -> Any:
    seen = []
    for dim in (0, 1, None, -1):
        layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 3, 2), dim=dim)
        out = layer(lib.ones(1, 2, 4))
        out.sum().backward()
        seen += [out.detach().numpy(), values(layer), repr(layer)]
        P.remove_parametrizations(layer, "weight")
        seen.append(values(layer))
    old = nn.utils.weight_norm(nn.Linear(2, 3))
    new = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    new.load_state_dict(old.state_dict())
    assert lib.allclose(old(lib.ones(1, 2)), new(lib.ones(1, 2)))
    return seen


def by_spectral_norm(lib: Any, nn: Any, P: Any) -> Any:
    seen = []
    for make, shape in (
        (lambda: nn.Linear(4, 3), (1, 4)),
        (lambda: nn.ConvTranspose1d(2, 3, 2), (1, 2, 4)),
    ):
        layer = nn.utils.parametrizations.spectral_norm(make(), n_power_iterations=2)
        for _ in range(3):
            out = layer(lib.ones(shape))
        out.sum().backward()
        seen += [out.detach().numpy(), values(layer), repr(layer)]
        layer.eval()
        before = values(layer)
        layer(lib.ones(shape))
        assert all(np.array_equal(value, before[name]) for name, value in values(layer).items())
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), "bias")
    assert lib.allclose(layer.bias.norm(), lib.tensor(1.0))
    return seen, values(layer)


def by_old_spectral_norm(lib: Any, nn: Any, P: Any) -> Any:
    layer = nn.utils.spectral_norm(nn.Conv2d(2, 3, 2), n_power_iterations=3)
    for _ in range(20):
        out = layer(lib.ones(1, 2, 3, 3))
    out.sum().backward()
    norm = lib.linalg.matrix_norm(layer.weight.detach().flatten(1), 2)
    assert abs(float(norm) - 1) < 1e-4
    seen = [out.detach().numpy(), values(layer), layer.state_dict()._metadata[""]]
    with lib.no_grad():
        layer(lib.ones(1, 2, 3, 3))
    other = copy.deepcopy(layer).eval()
    state = {k: v.clone() for k, v in layer.state_dict().items()}
    state["weight"] = state["weight_orig"] / 2.0
    del state["weight_v"]
    other.load_state_dict(state)
    x = lib.ones(1, 2, 3, 3)
    assert lib.allclose(
        other(x) - other.bias.reshape(-1, 1, 1),
        lib.nn.functional.conv2d(x, state["weight"]),
        atol=1e-4,
    )
    with pytest.raises(RuntimeError):
        nn.utils.spectral_norm(layer)
    assert nn.utils.remove_spectral_norm(layer) is layer and not layer._state_dict_hooks
    with pytest.raises(ValueError):
        nn.utils.remove_spectral_norm(layer)
    if lib is weft:  # PyTorch forgets to take back one of its hooks
        layer.load_state_dict(layer.state_dict())
    return [*seen, values(layer), repr(layer)]


def orthogonals(lib: Any, nn: Any, P: Any) -> Any:
    seen = []
    for shape in ((3, 3), (5, 3), (3, 5)):
        for kind in ("matrix_exp", "cayley", "householder", None):
            layer = nn.Linear(shape[1], shape[0]).double()
            nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind)
            weight = layer.weight
            q = weight if shape[0] >= shape[1] else weight.mT
            assert lib.allclose(q.mT @ q, lib.eye(min(shape), dtype=lib.float64))
            layer(lib.ones(1, shape[1], dtype=lib.float64)).sum().backward()
            seen += [weight.detach().numpy(), values(layer)]
            with lib.no_grad():
                layer.parametrizations.weight.original.add_(0.1)
            seen.append(layer.weight.detach().numpy())
            goal = lib.linalg.qr(
                lib.arange(25.0, dtype=lib.float64).square().reshape(5, 5).cos()
            ).Q[: shape[0], : shape[1]]
            if shape == (3, 3):
                goal = lib.linalg.qr(goal).Q
            layer.weight = goal
            if shape == (3, 3):
                assert lib.allclose(layer.weight, goal)
            seen.append(layer.weight.detach().numpy())
    return seen


def orthogonals_without_base(lib: Any, nn: Any, P: Any) -> Any:
    seen = []
    for shape in ((3, 3), (5, 3), (3, 5), (2, 4, 3)):
        module = nn.Module()
        lib.manual_seed(1)
        module.w = nn.Parameter(lib.randn(shape, dtype=lib.float64))
        nn.utils.parametrizations.orthogonal(module, "w", "householder", use_trivialization=False)
        seen += [module.w.detach().numpy(), values(module)]
        goal = module.w.detach().clone()
        module.w = goal
        assert lib.allclose(module.w, goal)
        seen.append(values(module))
    module.c = nn.Parameter(lib.randn(3, 3, dtype=lib.complex128))
    nn.utils.parametrizations.orthogonal(module, "c", "cayley", use_trivialization=False)
    assert lib.allclose(module.c.mH @ module.c, lib.eye(3, dtype=lib.complex128))
    with pytest.raises(NotImplementedError):
        module.c = lib.eye(3, dtype=lib.complex128)
    return [*seen, module.c.detach().numpy()]


PROGRAMS: list[Callable[..., Any]] = [
    one, assigned, chained, several, of_buffers, removed, removed_parts, copies, in_cache, transferred,
    by_weight_norm, by_spectral_norm, by_old_spectral_norm, orthogonals, orthogonals_without_base,
]  # fmt: skip


def run(program: Callable[..., Any], lib: Any) -> Any:
    lib.manual_seed(0)
    return program(lib, lib.nn, lib.nn.utils.parametrize)


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            assert_same(mine, other)
    elif isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    else:
        assert ours == theirs


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_programs(program: Callable[..., Any]) -> None:
    run(program, weft)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_beside_torch(program: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    assert_same(run(program, weft), run(program, torch))


def _inverse_to(lib: Any, result: Any) -> Any:
    class To(lib.nn.Identity):
        def right_inverse(self, x: Any) -> Any:
            return result

    return To()


def _to(lib: Any, result: Any) -> Any:
    class To(lib.nn.Module):
        def forward(self, *x: Any) -> Any:
            return result

    return To()


REFUSED: list[tuple[type[Exception], Callable[..., Any]]] = [
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "nothing", lib.nn.Identity())),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "bias", _to(lib, 3))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "bias", _to(lib, lib.ones(3)))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "bias", _to(lib, lib.ones(2).double()))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "bias", _inverse_to(lib, 3))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "bias", _inverse_to(lib, [3]))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "bias", _inverse_to(lib, lib.ones(2).double()))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "weight", _to(lib, 3))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "weight", _to(lib, lib.ones(2)))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "weight", _inverse_to(lib, 3))),
    (ValueError, lambda lib, m, P: P.register_parametrization(m, "weight", _inverse_to(lib, lib.ones(2)))),
    (ValueError, lambda lib, m, P: P.remove_parametrizations(m, "bias")),
    (ValueError, lambda lib, m, P: P.ParametrizationList([], m.bias)),
    (RuntimeError, lambda lib, m, P: setattr(m, "weight", lib.ones(2, 2))),
    (KeyError, lambda lib, m, P: setattr(m, "weight", lib.nn.Parameter(lib.ones(2, 2)))),
    (ValueError, lambda lib, m, P: lib.nn.utils.parametrizations.orthogonal(m, "bias")),
    (ValueError, lambda lib, m, P: lib.nn.utils.parametrizations.orthogonal(m, orthogonal_map="qr")),
    (ValueError, lambda lib, m, P: lib.nn.utils.parametrizations.orthogonal(m, "nothing")),
    (ValueError, lambda lib, m, P: lib.nn.utils.parametrizations.spectral_norm(m, "nothing")),
    (ValueError, lambda lib, m, P: lib.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=0)),
    (IndexError, lambda lib, m, P: lib.nn.utils.parametrizations.spectral_norm(m, dim=2)),
    (ValueError, lambda lib, m, P: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0)),
    (ValueError, lambda lib, m, P: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2, bias=False), "bias")),
]  # fmt: skip


@both
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(lib: Any, number: int) -> None:
    """What is refused leaves the module as it was."""
    P = lib.nn.utils.parametrize
    module = P.register_parametrization(lib.nn.Linear(2, 2), "weight", lib.nn.Softplus())
    before = repr(module), values(module)
    error, call = REFUSED[number]
    with pytest.raises(error):
        call(lib, module, P)
    if lib is weft:
        assert_same((repr(module), values(module)), before)


@both
def test_wrong_values_of_several_originals(lib: Any) -> None:
    module = lib.nn.utils.parametrize.register_parametrization(
        lib.nn.Linear(2, 2), "bias", two_parts(lib)
    )
    for wrong in ([lib.ones(2)], 3, [lib.ones(2), 3], [lib.ones(2), lib.ones(2).double()]):
        module.parametrizations.bias[0].right_inverse = lambda x, wrong=wrong: wrong
        with pytest.raises(ValueError):
            module.bias = lib.ones(2)


def test_copies_keep_what_one_of_them_removes() -> None:
    P = weft.nn.utils.parametrize
    layer = P.register_parametrization(weft.nn.Linear(2, 2), "weight", weft.nn.Softplus())
    other = copy.deepcopy(layer)
    P.remove_parametrizations(layer, "weight")
    assert type(layer) is weft.nn.Linear and bool((other.weight > 0).all())


def test_parametrized_modules_are_traced_and_refused_by_script() -> None:
    P = weft.nn.utils.parametrize
    layer = P.register_parametrization(weft.nn.Linear(2, 2), "weight", weft.nn.Softplus())
    x = weft.ones(1, 2)
    assert weft.equal(weft.jit.trace(layer, x)(x), layer(x))
    with pytest.raises(
        RuntimeError, match="without parametrizations, got some of weight; trace it"
    ):
        weft.jit.script(layer)


@both
def test_spectral_norms_of_the_first_format(lib: Any) -> None:
    """Files of it have the normalised weight in the place of v."""
    lib.manual_seed(0)
    layer = lib.nn.utils.spectral_norm(lib.nn.Linear(3, 2)).eval()
    state = dict(layer.state_dict())
    state["weight"] = state["weight_orig"] / 2.5
    del state["weight_v"]
    prefixed = {f"0.{name}": value.clone() for name, value in state.items()}
    lib.nn.Sequential(layer).load_state_dict(prefixed)
    sigma = layer.weight_u @ layer.weight_orig @ layer.weight_v
    assert abs(sigma.item() - 2.5) < 1e-5
    with pytest.raises(RuntimeError, match="weight_u"):
        lib.nn.Sequential(layer).load_state_dict({"0.weight_orig": state["weight_orig"]})
