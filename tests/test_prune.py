"""nn.utils.prune: programs that run in both libraries, with the same numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft


@pytest.fixture
def lib(request: pytest.FixtureRequest) -> Any:
    return weft if request.param == "weft" else imported_torch()


def imported_torch() -> Any:
    pytest.importorskip("torch.nn.utils.prune")  # which PyTorch does not import by itself
    return pytest.importorskip("torch")


#: what is done to the weight [6, 4] of a layer, and how many of its elements are left
METHODS: dict[str, tuple[Callable[[Any, Any, Any], Any], int]] = {
    "identity": (lambda lib, p, m: p.identity(m, "weight"), 24),
    "l1, a number": (lambda lib, p, m: p.l1_unstructured(m, "weight", 5), 19),
    "l1, a share": (lambda lib, p, m: p.l1_unstructured(m, "weight", 0.3), 17),
    "l1, none": (lambda lib, p, m: p.l1_unstructured(m, "weight", 0), 24),
    "l1, all": (lambda lib, p, m: p.l1_unstructured(m, "weight", 1.0), 0),
    "l1, by scores": (
        lambda lib, p, m: p.l1_unstructured(m, "weight", 5, lib.arange(24.0).reshape(6, 4)), 19
    ),
    "random": (lambda lib, p, m: p.random_unstructured(m, "weight", 0.5), 12),
    "random slices": (lambda lib, p, m: p.random_structured(m, "weight", 2, dim=0), 16),
    "random columns": (lambda lib, p, m: p.random_structured(m, "weight", 0.5, dim=-1), 12),
    "no slices": (lambda lib, p, m: p.random_structured(m, "weight", 0, dim=0), 24),
    "norm 1": (lambda lib, p, m: p.ln_structured(m, "weight", 2, n=1, dim=0), 16),
    "norm inf": (lambda lib, p, m: p.ln_structured(m, "weight", 0.25, n=float("inf"), dim=1), 18),
    "norm -inf": (lambda lib, p, m: p.ln_structured(m, "weight", 0.5, n=-float("inf"), dim=0), 12),
    "mask": (lambda lib, p, m: p.custom_from_mask(m, "weight", lib.arange(24).reshape(6, 4) > 9), 14),
    "l1 twice": (
        lambda lib, p, m: p.l1_unstructured(p.l1_unstructured(m, "weight", 5), "weight", 0.5), 9
    ),
    "slices, then elements": (
        lambda lib, p, m: p.l1_unstructured(
            p.ln_structured(m, "weight", 2, n=2, dim=0), "weight", 4
        ), 12,
    ),
    "elements, then slices": (
        lambda lib, p, m: p.ln_structured(
            p.custom_from_mask(m, "weight", lib.arange(24).reshape(6, 4) > 7), "weight", 2, n=2, dim=0
        ), 8,
    ),
    "three methods": (
        lambda lib, p, m: p.custom_from_mask(
            p.random_unstructured(p.identity(m, "weight"), "weight", 3), "weight", lib.ones(6, 4)
        ), 21,
    ),
}  # fmt: skip


def pruned(lib: Any, name: str) -> Any:
    lib.manual_seed(0)
    layer = lib.nn.Linear(4, 6)
    assert METHODS[name][0](lib, lib.nn.utils.prune, layer) is layer
    return layer


def facts(lib: Any, layer: Any) -> dict[str, Any]:
    """What pruning made of a layer: its state, results, gradients, and what is left afterwards."""
    prune = lib.nn.utils.prune
    out = layer(lib.ones(2, 4))
    out.sum().backward()
    found = {name: value.numpy().copy() for name, value in layer.state_dict().items()}
    found["result"] = out.detach().numpy()
    found["gradient"] = layer.weight_orig.grad.numpy()
    assert prune.is_pruned(layer) and prune.is_pruned(lib.nn.Sequential(layer))
    original = layer.weight_orig
    assert prune.remove(layer, "weight") is layer and layer.weight is original
    assert not prune.is_pruned(layer) and list(layer.state_dict()) == ["bias", "weight"]
    found["left"] = layer.weight.detach().numpy()
    return found


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    layer = pruned(weft, name)
    assert int(layer.weight_mask.sum()) == METHODS[name][1]
    found = facts(weft, layer)
    np.testing.assert_array_equal(found["left"] != 0, found["weight_mask"] != 0)
    np.testing.assert_array_equal(found["gradient"] != 0, found["weight_mask"] != 0)


@pytest.mark.parity
@pytest.mark.parametrize("name", METHODS)
def test_methods_beside_torch(name: str) -> None:
    torch = imported_torch()
    ours, theirs = (facts(lib, pruned(lib, name)) for lib in (weft, torch))
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        np.testing.assert_allclose(value, theirs[key], rtol=1e-5, atol=1e-6, err_msg=key)


def whole_model(lib: Any) -> Any:
    lib.manual_seed(1)
    prune, nn = lib.nn.utils.prune, lib.nn
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3))
    pairs = [(model[0], "weight"), (model[2], "weight"), (model[2], "bias")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.4)
    scores = {pairs[1]: lib.arange(24.0).reshape(3, 8)}
    prune.global_unstructured(
        iter(pairs) if lib is weft else pairs, prune.L1Unstructured, scores, amount=6
    )
    with lib.no_grad():
        model(lib.ones(1, 1, 4, 4))  # a weight with a history cannot be copied
    other = copy.deepcopy(model)
    other.load_state_dict(model.state_dict())
    hooks = model[2]._forward_pre_hooks.values()
    (container,) = [hook for hook in hooks if hook._tensor_name == "bias"]
    kinds = [type(each).__name__ for each in container]
    return [kinds, len(container), type(container[0]).__name__], [
        value.numpy() for value in other.state_dict().values()
    ]


def test_whole_models() -> None:
    kinds, state = whole_model(weft)
    assert kinds == [["CustomFromMask", "CustomFromMask"], 2, "CustomFromMask"]
    assert len(state) == 7


@pytest.mark.parity
def test_whole_models_beside_torch() -> None:
    torch = imported_torch()
    (kinds, state), (their_kinds, their_state) = whole_model(weft), whole_model(torch)
    assert kinds == their_kinds
    for mine, other in zip(state, their_state, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def _of_kind(lib: Any, kind: str, **members: Any) -> Any:
    class Method(lib.nn.utils.prune.BasePruningMethod):
        PRUNING_TYPE = kind

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            return default_mask

    for name, value in members.items():
        setattr(Method, name, value)
    return Method


REFUSED: list[tuple[type[Exception], Callable[[Any, Any, Any], Any]]] = [
    (TypeError, lambda lib, p, m: p.l1_unstructured(m, "weight", "half")),
    (ValueError, lambda lib, p, m: p.l1_unstructured(m, "weight", -1)),
    (ValueError, lambda lib, p, m: p.l1_unstructured(m, "weight", 1.5)),
    (ValueError, lambda lib, p, m: p.l1_unstructured(m, "weight", 25)),
    (ValueError, lambda lib, p, m: p.random_unstructured(m, "weight", 25)),
    (ValueError, lambda lib, p, m: p.ln_structured(m, "weight", 7, n=2, dim=0)),
    (ValueError, lambda lib, p, m: p.ln_structured(m, "bias", 1, n=2, dim=0)),
    (IndexError, lambda lib, p, m: p.random_structured(m, "weight", 1, dim=2)),
    (AttributeError, lambda lib, p, m: p.l1_unstructured(m, "nothing", 1)),
    (AssertionError, lambda lib, p, m: p.l1_unstructured(m, "weight", 1, lib.ones(2))),
    (AssertionError, lambda lib, p, m: p.custom_from_mask(m, "weight", lib.ones(2))),
    (AssertionError, lambda lib, p, m: p.L1Unstructured(1).prune(lib.ones(3), importance_scores=lib.ones(2))),
    (ValueError, lambda lib, p, m: p.remove(m, "weight")),
    (TypeError, lambda lib, p, m: p.global_unstructured(3, p.L1Unstructured, amount=1)),
    (TypeError, lambda lib, p, m: p.global_unstructured([(m, "weight")], p.L1Unstructured, [1], amount=1)),
    (TypeError, lambda lib, p, m: p.global_unstructured([(m, "weight")], p.LnStructured, amount=1, n=1)),
    (TypeError, lambda lib, p, m: p.BasePruningMethod()),
    (ValueError, lambda lib, p, m: _of_kind(lib, "other").apply(p.identity(m, "bias"), "bias")),
    (AttributeError, lambda lib, p, m: _of_kind(lib, "structured").apply(p.identity(m, "bias"), "bias")),
    (IndexError, lambda lib, p, m: _of_kind(lib, "structured", dim=-3).apply(p.identity(m, "bias"), "bias")),
]  # fmt: skip


@both
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(lib: Any, number: int) -> None:
    """What is refused leaves the weight as it was."""
    layer = lib.nn.Linear(4, 6)
    error, call = REFUSED[number]
    with pytest.raises(error):
        call(lib, lib.nn.utils.prune, layer)
    assert layer(lib.ones(1, 4)).shape == (1, 6) and "weight" in layer.state_dict()


@both
def test_containers(lib: Any) -> None:
    prune = lib.nn.utils.prune
    first, second = prune.Identity(), prune.L1Unstructured(1)
    first._tensor_name, second._tensor_name = "weight", "bias"
    container = prune.PruningContainer(first)
    with pytest.raises(TypeError):
        container.add_pruning_method(3)
    with pytest.raises(ValueError):
        container.add_pruning_method(second)
    second._tensor_name = "weight"
    container.add_pruning_method(second)
    assert list(container) == [first, second] and container[1] is second and len(container) == 2
    mask = container.compute_mask(lib.tensor([3.0, 1.0, 2.0]), lib.tensor([1.0, 0.0, 1.0]))
    assert mask.tolist() == [1, 0, 0]
