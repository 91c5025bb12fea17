"""Which modules FullyShardedDataParallel wraps, by PyTorch's policies and ours."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

from weft.distributed.fsdp.wrap import wrap_below

POLICIES = {
    "always": lambda wrap, nn: wrap.always_wrap_policy,
    "lambda": lambda wrap, nn: functools.partial(
        wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.LayerNorm)
    ),
    "layers": lambda wrap, nn: functools.partial(
        wrap.transformer_auto_wrap_policy, transformer_layer_cls={nn.TransformerEncoderLayer}
    ),
    "classes": lambda wrap, nn: wrap.ModuleWrapPolicy({nn.Linear, nn.TransformerEncoderLayer}),
    "either": lambda wrap, nn: functools.partial(
        wrap._or_policy,
        policies=[
            wrap.ModuleWrapPolicy({nn.LayerNorm}),
            functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=120),
        ],
    ),
    **{
        f"from {size}": lambda wrap, nn, size=size: functools.partial(
            wrap.size_based_auto_wrap_policy, min_num_params=size
        )
        for size in (1, 40, 100, 300, 10_000)
    },
    "sizes of leaves": lambda wrap, nn: functools.partial(
        wrap.size_based_auto_wrap_policy,
        min_num_params=20,
        force_leaf_modules={nn.TransformerEncoderLayer},
        exclude_wrap_modules={nn.Linear},
    ),
}


def made(nn: Any) -> Any:
    layers = nn.ModuleList(nn.TransformerEncoderLayer(4, 2, 12) for _ in range(2))
    return nn.ModuleDict({"body": layers, "head": nn.Sequential(nn.Linear(4, 9), nn.LayerNorm(9))})


def wrapped_by(lib: str, name: str) -> list[str]:
    nn = importlib.import_module(f"{lib}.nn")
    wrap = importlib.import_module(f"{lib}.distributed.fsdp.wrap")

    class Wrapper(nn.Module):
        def __init__(self, module: Any, **_: Any) -> None:
            super().__init__()
            self.module = module

    model, policy = made(nn), POLICIES[name](wrap, nn)
    if lib == "torch":
        wrap._recursive_wrap(model, policy, Wrapper, set(), set(), only_wrap_children=True)
    elif policy(
        module=model, recurse=True, nonwrapped_numel=sum(p.numel() for p in model.parameters())
    ):
        wrap_below(model, policy, Wrapper)
    found = [at for at, each in model.named_modules() if isinstance(each, Wrapper)]
    return [at.replace("module.", "") for at in found]


@pytest.mark.parity
@pytest.mark.parametrize("name", POLICIES)
def test_policies_wrap_the_same(name: str) -> None:
    pytest.importorskip("torch")
    assert wrapped_by("weft", name) == wrapped_by("torch", name)


@pytest.mark.parametrize("lib", ["weft", pytest.param("torch", marks=pytest.mark.parity)])
def test_wrap(lib: str) -> None:
    pytest.importorskip(lib)
    wrap = importlib.import_module(f"{lib}.distributed.fsdp.wrap")
    layer = importlib.import_module(f"{lib}.nn").Identity()
    assert wrap.wrap(layer) is layer
    with wrap.enable_wrap(wrapper_cls=lambda module, **kwargs: (module, kwargs), one=1, two=2):
        assert wrap.wrap(layer, two=3) == (layer, {"one": 1, "two": 3})
    assert wrap.wrap(layer) is layer
