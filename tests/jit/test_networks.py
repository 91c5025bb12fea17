"""What passes do to whole networks: those that only make programs faster fail without a word."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest
from bench.networks import networks

import weft
from weft import nn
from weft.jit.passes import conv_sum


def _mobile() -> nn.Module:
    """Depthwise convolutions, each before one of 1x1."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1, bias=False)]
    for inside, outside, stride in ((16, 24, 1), (24, 40, 2)):
        layers += [nn.BatchNorm2d(inside), nn.ReLU()]
        layers += [nn.Conv2d(inside, inside, 3, stride, 1, groups=inside, bias=False)]
        layers += [nn.BatchNorm2d(inside), nn.ReLU(), nn.Conv2d(inside, outside, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 5))


def _make(name: str) -> nn.Module:
    weft.manual_seed(0)
    return (_mobile() if name == "mobile" else networks(weft)[name].make()).eval()


# Size of the input, and how often these kinds of nodes stand in the graph that runs. "turned":
# weights by channels; those of 1x1 and of single channels lie both ways.
_RESNET = {"aten::batch_norm": 0, "aten::relu": 0, "aten::add.Tensor": 0, "aten::contiguous": 1}
_COUNTS: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "ResNet-18": (
        (1, 3, 32, 32),
        {**_RESNET, "aten::_conv2d_sum": 17, "aten::conv2d": 3, "turned": 17},
    ),
    "ResNet-50": (
        (1, 3, 32, 32),
        {**_RESNET, "aten::_conv2d_sum": 49, "aten::conv2d": 4, "turned": 17},
    ),
    "mobile": (
        (1, 3, 32, 32),
        {**_RESNET, "aten::_conv2d_sum": 4, "aten::conv2d": 1, "turned": 1},
    ),
    "MobileNet": (
        (1, 3, 64, 64),
        {
            **_RESNET,
            "aten::_conv2d_sum.high": 36,
            "aten::_conv2d_sum": 10,
            "aten::conv2d": 7,
            "turned": 1,
        },
    ),
    "U-Net, batch 4": (
        (1, 3, 16, 16),
        {**_RESNET, "aten::_conv2d_sum": 10, "aten::conv2d": 1, "turned": 10},
    ),
    "LSTM": ((2, 5, 256), {"aten::_recurrent_layer": 2}),
    "transformer encoder": ((1, 4, 384), {"aten::layer_norm": 12}),
}


def _form(net: nn.Module, form: str, x: weft.Tensor) -> Any:
    if form == "traced":
        return weft.jit.trace(net, x)
    program = weft.jit.script(net)
    if form == "archive":
        file = io.BytesIO()
        weft.jit.save(program, file)
        file.seek(0)
        program = weft.jit.load(file)
    return program


@pytest.mark.parametrize("form", ["scripted", "traced", "archive"])
@pytest.mark.parametrize("name", _COUNTS)
def test_what_runs(name: str, form: str) -> None:
    sizes, expected = _COUNTS[name]
    x = weft.randn(sizes)
    net = _make(name)
    frozen = weft.jit.freeze(_form(net, form, x))
    with weft.no_grad():
        for _ in range(2):
            assert weft.allclose(frozen(x), net(x), rtol=1e-3, atol=1e-4)
        nodes = list(frozen.graph_for(x).walk())
    counts = Counter(node.kind for node in nodes)
    layers = (node for node in nodes if node.name in ("aten::conv2d", "aten::_conv2d_sum"))
    counts["turned"] = sum(conv_sum._is_by_channels(layer) for layer in layers)
    if (name, form) == ("transformer encoder", "traced"):  # else branches have more
        expected = {**expected, "aten::_attention": 6, "aten::softmax.int": 0}
    assert {kind: counts[kind] for kind in expected} == expected


def _as_pytorch_has_it(torch: Any) -> Any:
    """Convolutions whose batch norm, sum and activation are in place, as in torchvision's models."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, activation: Any) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
            self.activation = activation

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.norm(self.conv(x))
            y += x
            return self.activation(y)

    activations = (nn.ReLU, nn.ReLU, nn.ReLU6, nn.ReLU6, nn.ReLU)
    return nn.Sequential(nn.Conv2d(3, 16, 3), *(Block(kind(inplace=True)) for kind in activations))


@pytest.mark.parity
@pytest.mark.parametrize("is_traced", [False, True], ids=["scripted", "traced"])
def test_passes_see_through_archives_of_pytorch(is_traced: bool) -> None:
    torch = pytest.importorskip("torch")
    module, file = _as_pytorch_has_it(torch).eval(), io.BytesIO()
    x = torch.randn(1, 3, 12, 12)
    torch.jit.save(torch.jit.trace(module, x) if is_traced else torch.jit.script(module), file)
    file.seek(0)
    frozen = weft.jit.freeze(weft.jit.load(file))
    images = weft.from_dlpack(x)
    with weft.no_grad():
        frozen(images)
        got = frozen(images)
        counts = Counter(node.name for node in frozen.graph_for(images).walk())
    assert torch.allclose(torch.from_dlpack(got), module(x), rtol=1e-3, atol=1e-4)
    assert (counts["aten::_conv2d_sum"], counts["aten::conv2d"]) == (5, 1)
    assert counts["aten::batch_norm"] == counts["aten::add_"] == counts["aten::relu_"] == 0
