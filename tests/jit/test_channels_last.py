"""Frozen programs keep images by channels between convolutions, and show it nowhere."""

from __future__ import annotations

import io

import pytest

import weft
from weft import nn
from weft.jit.passes import conv_sum
from weft.jit.passes.options import DEFAULT, INFERENCE


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inside: int, outside: int, inplace: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1)
        self.shortcut = nn.Conv2d(inside, outside, 1)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.second(self.relu(self.norm(self.first(x))))
        return self.relu(y + self.shortcut(x))


def _net(inplace: bool = False) -> nn.Module:
    weft.manual_seed(0)
    layers = [Block(3, 16, inplace), nn.MaxPool2d(2), Block(16, 32, inplace)]
    return nn.Sequential(*layers).eval()


def _kinds(program) -> list[str]:  # type: ignore[no-untyped-def]
    return [node.kind for node in program.graph.walk()]


def _close(a: weft.Tensor, b: weft.Tensor) -> bool:
    return weft.allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("inplace", [False, True])
def test_values_and_layout(inplace: bool, saved: bool) -> None:
    net, x = _net(inplace), weft.randn(2, 3, 12, 10)
    program = weft.jit.script(net)
    if saved:
        file = io.BytesIO()
        weft.jit.save(program, file)
        file.seek(0)
        program = weft.jit.load(file)
    frozen = weft.jit.freeze(program)
    assert "aten::batch_norm" not in _kinds(frozen)
    with weft.no_grad():
        expected = net(x)
        for _ in range(3):
            got = frozen(x)
            assert _close(got, expected) and got.is_contiguous()
    x.requires_grad_()
    got = frozen(x)
    assert got.is_contiguous()
    assert _close(weft.autograd.grad(got.sum(), x)[0], weft.autograd.grad(net(x).sum(), x)[0])


def test_a_classifier() -> None:
    """Its pool makes a list of sizes and appends to it, which writes to no image."""
    weft.manual_seed(0)
    end = nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(32, 5)
    net, x = nn.Sequential(_net(), *end).eval(), weft.randn(2, 3, 12, 10)
    frozen = weft.jit.freeze(weft.jit.script(net))
    weights = [n.inputs[1].constant for n in frozen.graph.walk() if n.kind == "aten::conv2d"]
    assert sum(not weight.is_contiguous() for weight in weights) == 4  # the others are 1x1
    with weft.no_grad():
        assert _close(frozen(x), net(x))


def test_copies_stand_where_the_layout_shows() -> None:
    frozen = weft.jit.freeze(weft.jit.script(_net()))
    assert _kinds(frozen).count("aten::contiguous") == 1

    class Viewed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.Sequential(*(nn.Conv2d(16, 16, 3, 1, 1) for _ in range(4)))

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.convs(x)
            return y.view(y.size(0), -1), y

    module = Viewed().eval()
    frozen = weft.jit.freeze(weft.jit.script(module))
    x = weft.randn(2, 16, 8, 8)
    for got, expected in zip(frozen(x), module(x)):
        assert _close(got, expected) and got.stride() == expected.stride()


def test_what_stays_as_it_is() -> None:
    """Weights that lie both ways, convolutions between which the layout changes, writes."""
    weft.manual_seed(0)
    depthwise = nn.Sequential(nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(16, 16, 1)).eval()
    alone = nn.Sequential(nn.Conv2d(16, 16, 3), nn.Flatten()).eval()

    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.Sequential(*(nn.Conv2d(16, 16, 3, 1, 1) for _ in range(4)))

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.convs(x)
            z = y.view(-1)
            z.add_(1)
            return y

    for module in (depthwise, alone, Writes().eval()):
        frozen = weft.jit.freeze(weft.jit.script(module))
        assert "aten::contiguous" not in _kinds(frozen)
        x = weft.randn(2, 16, 8, 8)
        assert _close(frozen(x), module(x))


def test_sums_join_convolutions() -> None:
    graph = weft.jit.freeze(weft.jit.script(_net())).graph.copy()
    assert not conv_sum.run(graph, DEFAULT)  # gradients need the steps
    assert conv_sum.run(graph, INFERENCE)
    kinds = [node.kind for node in graph.walk()]
    assert kinds.count("aten::_conv2d_sum") == 4 and kinds.count("aten::conv2d") == 2
    assert "aten::relu" not in kinds and "aten::add.Tensor" not in kinds
