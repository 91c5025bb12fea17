"""Twenty checks in two seconds: does the package stand at all?"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import weft


def test_repr() -> None:
    assert repr(weft.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"


def test_add() -> None:
    assert (weft.tensor([1, 2]) + weft.tensor([3, 4])).tolist() == [4, 6]


def test_add_number() -> None:
    assert (1 + weft.tensor([1.0])).tolist() == [2.0]


def test_promotion() -> None:
    assert (weft.tensor([1]) + weft.tensor([1.0])).dtype is weft.float32


def test_broadcast() -> None:
    assert (weft.ones(3, 1) + weft.ones(4)).shape == (3, 4)


def test_shape_error() -> None:
    with pytest.raises(RuntimeError):
        weft.ones(3) + weft.ones(4)


def test_type_error() -> None:
    with pytest.raises(TypeError):
        weft.add(weft.ones(3), "a")


def test_index() -> None:
    x = weft.arange(12).reshape(3, 4)
    assert x[1].tolist() == [4, 5, 6, 7]
    assert x[:, 1].tolist() == [1, 5, 9]
    assert x[x > 9].tolist() == [10, 11]


def test_assign() -> None:
    x = weft.zeros(3)
    x[1] = 5
    assert x.tolist() == [0, 5, 0]


def test_views_share() -> None:
    x = weft.zeros(2, 2)
    x.t()[0, 1] = 3
    assert x[1, 0].item() == 3


def test_negative_step() -> None:
    assert weft.arange(4)[::-1].tolist() == [3, 2, 1, 0]


def test_matmul() -> None:
    assert (weft.eye(2) @ weft.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[1, 2], [3, 4]]


def test_sum() -> None:
    assert weft.ones(2, 3).sum(dim=1, keepdim=True).shape == (2, 1)


def test_backward() -> None:
    x = weft.tensor([2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4.0, 6.0]


def test_no_grad() -> None:
    x = weft.ones(2, requires_grad=True)
    with weft.no_grad():
        assert not (x * 2).requires_grad


def test_numpy_both_ways() -> None:
    array = np.zeros(3, np.float32)
    tensor = weft.from_numpy(array)
    tensor += 1
    assert array.tolist() == [1, 1, 1]
    assert tensor.numpy().ctypes.data == array.ctypes.data


def test_pickle() -> None:
    x = weft.arange(6).reshape(2, 3)
    assert weft.equal(pickle.loads(pickle.dumps(x)), x)


def test_seed() -> None:
    weft.manual_seed(3)
    first = weft.rand(4)
    weft.manual_seed(3)
    assert weft.equal(first, weft.rand(4))


def test_module_trains() -> None:
    weft.manual_seed(0)
    layer = weft.nn.Linear(2, 1)
    optimizer = weft.optim.SGD(layer.parameters(), lr=0.1)
    x, y = weft.rand(8, 2), weft.ones(8, 1)
    losses = []
    for _ in range(20):
        loss = ((layer(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_identity() -> None:
    x = weft.ones(2, requires_grad=True)
    x.sum().backward()
    assert x.grad is x.grad
