"""Lazy modules and uninitialized parameters: programs that run in both libraries."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft

pytestmark = pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")

#: by layer: its arguments, and the shape of its input
LAYERS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("Linear", {"out_features": 3}, (2, 5)),
    ("Linear", {"out_features": 3, "bias": False}, (5,)),
    ("Conv1d", {"out_channels": 4, "kernel_size": 2}, (2, 3, 5)),
    ("Conv1d", {"out_channels": 4, "kernel_size": 3, "padding": 1, "padding_mode": "circular"}, (3, 5)),
    ("Conv2d", {"out_channels": 4, "kernel_size": (2, 3), "groups": 2, "bias": False}, (1, 6, 5, 5)),
    ("Conv3d", {"out_channels": 2, "kernel_size": 2, "stride": 2, "dilation": 2}, (1, 3, 4, 4, 4)),
    ("ConvTranspose1d", {"out_channels": 4, "kernel_size": 2, "stride": 2, "output_padding": 1}, (2, 3, 5)),
    ("ConvTranspose2d", {"out_channels": 4, "kernel_size": 2, "groups": 2}, (1, 6, 3, 3)),
    ("ConvTranspose3d", {"out_channels": 2, "kernel_size": 2, "bias": False}, (3, 2, 2, 2)),
    ("BatchNorm1d", {}, (4, 3)),
    ("BatchNorm1d", {"affine": False, "eps": 0.1}, (4, 3, 5)),
    ("BatchNorm2d", {"track_running_stats": False}, (2, 3, 4, 4)),
    ("BatchNorm2d", {"bias": False}, (2, 3, 4, 4)),
    ("BatchNorm3d", {"momentum": None}, (2, 3, 2, 2, 2)),
    ("InstanceNorm1d", {}, (2, 3, 4)),
    ("InstanceNorm2d", {"affine": False}, (2, 3, 4, 4)),
    ("InstanceNorm3d", {"momentum": 0.5}, (2, 3, 2, 2, 2)),
]  # fmt: skip
layers = pytest.mark.parametrize("number", range(len(LAYERS)))


def made(lib: Any, number: int, seed: int = 0) -> tuple[Any, Any]:
    """A lazy layer and an input for it."""
    name, options, shape = LAYERS[number]
    lib.manual_seed(seed)
    return getattr(lib.nn, f"Lazy{name}")(**options), lib.randn(shape)


def facts(lib: Any, number: int) -> tuple[list[Any], dict[str, Any]]:
    """What both libraries must agree about: texts and numbers."""
    layer, x = made(lib, number)
    lazy = lib.nn.parameter.is_lazy
    texts = [repr(layer), [(name, lazy(value)) for name, value in layer.state_dict().items()]]
    texts += [[repr(p) for p in layer.parameters()], [p.requires_grad for p in layer.parameters()]]
    kept = list(layer.parameters())
    out = layer(x)
    if kept:
        out.square().sum().backward()
    assert [id(p) for p in layer.parameters()] == [id(p) for p in kept]
    texts += [repr(layer), type(layer).__name__, [type(b).__name__ for b in layer.buffers()]]
    numbers = {name: value.numpy() for name, value in layer.state_dict().items()}
    numbers |= {f"grad of {name}": p.grad.numpy() for name, p in layer.named_parameters()}
    return texts, {**numbers, "result": out.detach().numpy()}


@layers
def test_the_first_call_makes_the_layer(number: int) -> None:
    texts, numbers = facts(weft, number)
    name = LAYERS[number][0]
    assert texts[0].startswith(f"Lazy{name}(") and texts[5] == name
    layer, x = made(weft, number)
    layer(x)
    plain = {name for name, kind in layer._kinds.items() if kind != "module"}
    assert type(layer).__mro__[0] is getattr(weft.nn, name) and not layer._hooked
    assert all(not weft.nn.parameter.is_lazy(getattr(layer, each)) for each in plain)
    assert np.isfinite(numbers["result"]).all()


@pytest.mark.parity
@layers
def test_the_first_call_beside_torch(number: int) -> None:
    torch = pytest.importorskip("torch")
    (texts, numbers), (their_texts, their_numbers) = facts(weft, number), facts(torch, number)
    assert texts == their_texts and list(numbers) == list(their_numbers)
    for name, value in numbers.items():
        np.testing.assert_allclose(value, their_numbers[name], rtol=1e-4, atol=1e-5, err_msg=name)


@layers
def test_state_dicts(number: int, lib: Any = weft) -> None:
    """An initialized state gives a lazy layer its shapes, an uninitialized one leaves them open.

    PyTorch leaves in_channels and num_features at 0 after it.
    """
    source, x = made(lib, number)
    target, _ = made(lib, number, seed=1)
    assert str(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    if source.state_dict():
        assert target.has_uninitialized_params()
    source(x)
    target.load_state_dict(source.state_dict())
    assert not target.has_uninitialized_params()
    for module in (source.eval(), target.eval()):
        module.result = module(x)
    assert lib.equal(source.result, target.result) and repr(source) == repr(target)
    if any(lib.nn.parameter.is_lazy(p) for p in made(lib, number)[0].parameters()):
        with pytest.raises(RuntimeError):
            source.load_state_dict(made(lib, number)[0].state_dict())


@layers
def test_copies_and_conversions(number: int, lib: Any = weft) -> None:
    """PyTorch cannot copy uninitialized buffers."""
    layer, x = made(lib, number)
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    layer.double().eval()
    assert repr(layer(x.double()).dtype) == "torch.float64"
    for each in copies:
        assert type(each) is type(made(lib, number)[0])
        lib.manual_seed(3)
        each(x)
    first, second = (each.state_dict() for each in copies)
    assert all(lib.equal(first[name], second[name]) for name in first)


@both
def test_within_models(lib: Any) -> None:
    nn = lib.nn
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    model.train().to("cpu")
    model(lib.ones(2, 1, 5, 5)).sum().backward()
    before = model[3].bias.detach().clone()
    optimizer.step()
    assert not lib.equal(model[3].bias, before)
    assert [type(each).__name__ for each in model] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]


@both
def test_keywords_and_own_classes(lib: Any) -> None:
    nn = lib.nn

    class Pair(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.scale = nn.UninitializedParameter(), nn.UninitializedBuffer()
            self.seen: list[Any] = []

        def initialize_parameters(self, x: Any, *, count: int = 1) -> None:
            self.seen.append(count)
            self.weight.materialize((count, *x.shape), dtype=lib.float64)
            self.scale.materialize(2)

        def forward(self, x: Any, count: int = 1) -> Any:
            return self.weight.shape

    pair = Pair()
    assert list(dict(pair.named_buffers())) == ["scale"] and pair.has_uninitialized_params()
    assert pair(lib.ones(3), count=2) == (2, 3) and pair(lib.ones(1)) == (2, 3)
    assert pair.seen == [2] and type(pair) is Pair and type(pair.scale) is lib.Tensor
    assert pair.weight.dtype == lib.float64 and isinstance(pair.weight, nn.Parameter)


REFUSED: list[tuple[type[Exception], Callable[[Any, Any], Any]]] = [
    (RuntimeError, lambda lib, m: m.weight.shape),
    (ValueError, lambda lib, m: m.weight + 1),
    (ValueError, lambda lib, m: m.weight.numel()),
    (ValueError, lambda lib, m: lib.add(m.weight, 1)),
    (RuntimeError, lambda lib, m: m.share_memory()),
    (RuntimeError, lambda lib, m: lib.nn.Linear(2, 3).load_state_dict(m.state_dict())),
    (RuntimeError, lambda lib, m: lib.jit.script(m)),
    (RuntimeError, lambda lib, m: lib.nn.LazyConv1d(4, 2)(lib.ones(3))),
    (ValueError, lambda lib, m: lib.nn.LazyConv1d(4, 2, groups=2)(lib.ones(1, 3, 3))),
    (ValueError, lambda lib, m: lib.nn.LazyBatchNorm2d()(lib.ones(2, 2))),
    (ValueError, lambda lib, m: lib.nn.utils.spectral_norm(m)),
    (ValueError, lambda lib, m: lib.nn.utils.weight_norm(m)),
    (RuntimeError, lambda lib, m: m._replicate_for_data_parallel()),
    (NotImplementedError, lambda lib, m: type("M", (lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module), {})()(1)),
    (RuntimeError, lambda lib, m: type(
        "M", (lib.nn.LazyLinear,), {"initialize_parameters": lambda self, x: None}
    )(2)(lib.ones(1, 2))),
]  # fmt: skip


@both
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(lib: Any, number: int) -> None:
    layer = lib.nn.LazyLinear(3)
    error, call = REFUSED[number]
    with pytest.raises(error):
        call(lib, layer)
    assert layer(lib.ones(1, 2)).shape == (1, 3)


def test_errors_say_what_to_do() -> None:
    layer = weft.nn.LazyLinear(3)
    text = r"add: expected an initialized tensor, which the first call of a lazy module makes, got"
    with pytest.raises(ValueError, match=text):
        layer.weight + 1
    with pytest.raises(RuntimeError, match=r"got weight, bias without a shape"):
        weft.jit.script(layer)


def test_unbatched_instance_norms_count_channels() -> None:
    """PyTorch takes the wrong size, and fails."""
    norm = weft.nn.LazyInstanceNorm1d()
    assert norm(weft.ones(3, 4)).shape == (3, 4) and norm.num_features == 3
    linear = weft.nn.LazyLinear(2)
    linear.load_state_dict(weft.nn.Linear(3, 2).state_dict())
    linear(weft.ones(1, 3))
    assert weft.jit.script(linear)(weft.ones(1, 3)).shape == (1, 2)
