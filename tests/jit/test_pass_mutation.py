"""Freezing: writes to tensors that nothing else reads give new tensors, and only those."""

from __future__ import annotations

import io
from typing import Any

import pytest

import weft
from weft import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)


class Own(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        return self.layer(x).relu_().mul_(2).add_(self.layer(other)).clamp_min_(0.1)


class Residual(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        y = nn.functional.relu(self.layer(x))
        return nn.functional.relu(self.layer(y).add_(y), inplace=True)


class OfAnotherDtype(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        return self.layer(x).add_(other.double())


class OfUnknownDtypes(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        return x.neg().add_(other.double())


class Argument(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        return self.layer(other.relu_())


class ReadLater(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        y = self.layer(x)
        z = y.relu_()
        return z + y


class Viewed(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        y = self.layer(x)
        first = y[0]
        y.neg_()
        return first


class OfAView(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        y = self.layer(x)
        y[0].neg_()
        return y


class InABranch(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        y = self.layer(x)
        if bool(other.sum() > 0):
            y.neg_()
        return y


class Twice(Net):
    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        y = self.layer(x)
        return y.mul_(y)


class Whole(Net):
    """Nothing says the dtype before it runs."""

    def forward(self, x: weft.Tensor, other: weft.Tensor) -> weft.Tensor:
        return (other > 0).long().add_(1).mul_(2)


#: how many writes are left
NETS: dict[type[Net], int] = {
    Own: 0,
    Residual: 0,
    OfAnotherDtype: 1,
    OfUnknownDtypes: 1,
    Argument: 1,
    ReadLater: 1,
    Viewed: 1,
    OfAView: 1,
    InABranch: 1,
    Twice: 1,
    Whole: 2,
}


def _loaded(module: Any) -> Any:
    file = io.BytesIO()
    weft.jit.save(module, file)
    file.seek(0)
    return weft.jit.load(file)


@pytest.mark.parametrize("make", NETS, ids=lambda make: make.__name__)
def test_values_stay(make: type[Net]) -> None:
    weft.manual_seed(0)
    net = make().eval()
    x, other = weft.randn(3, 4), weft.randn(3, 4)
    program = weft.jit.script(net)
    for module in (program, _loaded(program)):
        frozen = weft.jit.freeze(module)
        kept, given = other.clone(), other.clone()
        with weft.no_grad():
            expected = net(x, kept)
            got = frozen(x, given)
        assert weft.allclose(got, expected) and got.dtype == expected.dtype
        assert weft.equal(given, kept)
        writes = [node for node in frozen.graph.walk() if node.name.endswith("_")]
        assert len(writes) == NETS[make]
