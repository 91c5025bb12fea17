"""Pickling and copying: elements, layout, sharing, attributes, subclasses."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import weft
from weft.nn import Parameter


class Marked(weft.Tensor):
    pass


def through_pickle(x: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "dtype", [weft.bool, weft.uint8, weft.int64, weft.bfloat16, weft.float32, weft.complex128]
)
def test_round_trip(protocol: int, dtype: Any) -> None:
    x = weft.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    y = through_pickle(x, protocol)
    assert y.dtype is dtype and y.shape == x.shape and y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()


def test_layout_is_kept() -> None:
    x = weft.arange(6).reshape(2, 3).t()
    y = through_pickle(x)
    assert y.stride() == x.stride() == (1, 3)
    z = through_pickle(weft.arange(5)[::-2])
    assert z.stride() == (-2,) and z.tolist() == [4, 2, 0]


def test_empty_and_scalar() -> None:
    assert through_pickle(weft.empty(0, 3)).shape == (0, 3)
    assert through_pickle(weft.tensor(3.5)).item() == 3.5


def test_sharing_inside_one_pickle() -> None:
    x = weft.zeros(4)
    a, b, c = through_pickle((x, x[1:3], x))
    b += 1
    assert a.tolist() == [0, 1, 1, 0]
    assert a is c


def test_requires_grad_and_attributes() -> None:
    x = weft.ones(2, requires_grad=True)
    x.note = {"a": 1}  # type: ignore[attr-defined]
    y = through_pickle(x)
    assert y.requires_grad and y.is_leaf and y.note == {"a": 1}


def test_subclasses() -> None:
    y = through_pickle(weft.ones(2).as_subclass(Marked))
    assert type(y) is Marked
    p = through_pickle(Parameter(weft.ones(2), requires_grad=False))
    assert type(p) is Parameter and not p.requires_grad


def test_out_of_band_buffers() -> None:
    x = weft.arange(1000)
    buffers: list[Any] = []
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 1000 and len(buffers) == 1
    assert weft.equal(pickle.loads(data, buffers=buffers), x)


def test_layout_of_a_forged_pickle_is_checked() -> None:
    rebuild, args, _ = weft.ones(2).__reduce_ex__(2)
    forged = (*args[:3], (1000,), *args[4:])
    with pytest.raises(RuntimeError, match="view inside the storage"):
        rebuild(*forged)


def test_dtype_device_size_function() -> None:
    for thing in (weft.float32, weft.device("cpu"), weft.Size([2, 3]), weft.strided, weft.add):
        assert through_pickle(thing) == thing
    assert type(through_pickle(weft.Size([2]))) is weft.Size
    assert through_pickle(weft.float32) is weft.float32
    assert through_pickle(weft.Tensor.sum) is weft.Tensor.sum


def test_copy_shares_deepcopy_does_not() -> None:
    x = weft.zeros(2)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x += 1
    assert shallow.tolist() == [1, 1] and deep.tolist() == [0, 0]
    assert shallow is not x


def test_deepcopy_keeps_sharing_gradient_and_attributes() -> None:
    x = weft.zeros(4, requires_grad=True)
    (x * 3).sum().backward()
    x.note = [1]  # type: ignore[attr-defined]
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [3, 3, 3, 3] and y.grad is not x.grad
    assert y.note == [1] and y.note is not x.note  # type: ignore[attr-defined]
    base = weft.zeros(4)
    a, b = copy.deepcopy([base, base[:2]])
    b += 1
    assert a.tolist() == [1, 1, 0, 0] and base.tolist() == [0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="expected a leaf tensor"):
        copy.deepcopy(x * 2)


def test_deepcopy_of_parameter() -> None:
    p = Parameter(weft.ones(2))
    q = copy.deepcopy(p)
    assert type(q) is Parameter and q.requires_grad and q.data_ptr() != p.data_ptr()


def test_pickler_of_another_stream() -> None:
    stream = io.BytesIO()
    pickle.Pickler(stream).dump({"w": weft.ones(2)})
    stream.seek(0)
    assert pickle.Unpickler(stream).load()["w"].tolist() == [1, 1]


@pytest.mark.parametrize(
    "function",
    [weft.relu, weft.nn.functional.gelu, weft.nn.functional.linear, weft.linalg.inv, weft.cat],
)
def test_functions_of_operators_are_their_names(function: Any) -> None:
    assert through_pickle(function) is function
    assert copy.deepcopy(function) is function
    layer = weft.nn.TransformerEncoderLayer(4, 2, 8, activation=function)
    assert through_pickle(layer).activation is function
