"""The tensor as Python sees it: attributes, construction, indexing, operators, errors."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft._tensor import legacy_types as _typed


def strings(error: type[BaseException], text: str) -> Any:
    """`raises` for exactly this message."""
    import re

    return pytest.raises(error, match=f"^{re.escape(text)}$")


# ---- attributes ----


def test_attributes() -> None:
    x = weft.ones(2, 3)
    assert x.shape == (2, 3) and type(x.shape) is weft.Size
    assert x.size() == x.shape and x.size(-1) == 3
    assert x.stride() == (3, 1) and x.stride(0) == 3
    assert x.ndim == x.dim() == 2 and len(x) == 2 and x.numel() == 6
    assert x.dtype is weft.float32 and x.itemsize == x.element_size() == 4 and x.nbytes == 24
    assert x.device == weft.device("cpu") and x.layout is weft.strided
    assert not x.is_cuda and x.is_cpu and x.is_leaf and not x.requires_grad
    assert x.grad is None and x.grad_fn is None
    assert x.is_contiguous() and not x.t().is_contiguous()
    assert x[1:].storage_offset() == 3
    assert x[1:].data_ptr() == x.data_ptr() + 12
    empty = [x[1:1], x[2:], x[9:], x[:, 2:1], x.narrow(0, 1, 0), x[1:].resize_(0)]
    assert [part.storage_offset() for part in empty] == [3, 6, 6, 2, 3, 3]


def test_views_by_attribute() -> None:
    x = weft.arange(24).reshape(2, 3, 4)
    with pytest.warns(UserWarning, match="expected a matrix"):
        assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x[0].T.tolist() == np.arange(12).reshape(3, 4).T.tolist()
    assert x[0].H.shape == (4, 3)
    assert x.real is x
    with strings(RuntimeError, "mT: expected a tensor with at least 2 dims, got shape (2,)"):
        weft.ones(2).mT  # noqa: B018


def test_real_and_imag_are_assigned() -> None:
    x = weft.tensor([1 + 2j, 3 + 4j])
    view = x.real
    x.real = weft.tensor([5.0, 6.0])
    x.imag = 7
    x.imag[0] = 8
    x.real *= 2
    x.imag += weft.ones(2)
    assert x.tolist() == [10 + 9j, 12 + 8j] and view.tolist() == [10, 12]
    leaf = weft.tensor([3 + 4j], requires_grad=True)
    y = leaf * 1
    y.real = weft.tensor([0.0])
    weft.view_as_real(y).sum().backward()
    assert leaf.grad.tolist() == [1j]  # type: ignore[union-attr]
    plain = weft.zeros(2)
    plain.real = weft.tensor([3.0, 4.0])
    assert plain.tolist() == [3, 4]
    with strings(RuntimeError, "imag: expected a complex tensor, got float32"):
        plain.imag = 1
    with strings(TypeError, "real: expected a value to set, got del"):
        del x.real
    traced = weft.jit.trace(_set_real, (x,))
    assert traced(weft.tensor([1 + 1j])).tolist() == [3 + 1j]


def _set_real(x: weft.Tensor) -> weft.Tensor:
    y = x.clone()
    y.real = y.imag + 2
    return y


def test_attribute_errors() -> None:
    x = weft.ones(2)
    with strings(TypeError, "grad: expected a Tensor or None, got int"):
        x.grad = 3  # type: ignore[assignment]
    with strings(TypeError, "requires_grad: expected a bool, got int"):
        x.requires_grad = 1  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        x.shape = (2,)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        x.no_such_thing  # type: ignore[attr-defined] # noqa: B018


def test_data_swaps_contents() -> None:
    x = weft.ones(2, requires_grad=True)
    x.data = weft.zeros(3)
    assert x.shape == (3,) and x.requires_grad and x.is_leaf
    x.data[0] = 4
    assert x.tolist() == [4, 0, 0]
    assert not x.data.requires_grad


def test_any_attribute() -> None:
    x = weft.ones(2)
    x.note = 1  # type: ignore[attr-defined]
    assert x.note == 1 and x.__dict__ == {"note": 1}  # type: ignore[attr-defined]
    del x.note  # type: ignore[attr-defined]
    assert not hasattr(x, "note")


# ---- small objects ----


def test_dtype_objects() -> None:
    assert repr(weft.float32) == str(weft.float32) == "torch.float32"
    assert weft.float is weft.float32 and weft.long is weft.int64 and weft.half is weft.float16
    assert weft.float32.is_floating_point and not weft.int8.is_floating_point
    assert weft.complex64.is_complex and weft.complex64.itemsize == 8
    assert weft.int8.is_signed and not weft.uint8.is_signed
    assert weft.complex64.to_real() is weft.float32
    assert {weft.float32: 1}[weft.float] == 1
    assert weft.finfo(weft.float32).eps == 2.0**-23 and weft.iinfo(weft.int8).min == -128
    assert weft.zeros(2, dtype=float).dtype is weft.float64
    assert weft.zeros(2, dtype=int).dtype is weft.int64


def test_device_objects() -> None:
    assert repr(weft.device("cpu")) == "device(type='cpu')"
    assert repr(weft.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert str(weft.device("cuda:1")) == "cuda:1" and weft.device("cuda:1").index == 1
    assert weft.device("cpu") == weft.device(type="cpu") != weft.device("cuda")
    assert len({weft.device("cpu"), weft.device("cpu")}) == 1
    for other in (None, "cpu", 0, weft.float32):
        assert weft.device("cpu") != other and other not in [weft.device("cpu")]
    node = weft.ones(1, requires_grad=True).exp().grad_fn
    assert node != None and node == node  # noqa: E711
    with pytest.raises(RuntimeError):
        weft.device("nonsense")
    with pytest.raises(AssertionError):
        weft.zeros(2, device="cuda")
    assert not weft.cuda.is_available()


def test_size() -> None:
    size = weft.Size([2, 3])
    assert repr(size) == "torch.Size([2, 3])" and size.numel() == 6 and size == (2, 3)
    assert type(size[:1]) is weft.Size and type(size.__add__((1,))) is weft.Size and size[0] == 2
    assert type(size * 2) is weft.Size and isinstance(size, tuple)
    with strings(TypeError, "Size: expected ints, got str"):
        weft.Size(["a"])
    x = weft.ones(2, 3)
    for made in (size, x.shape, x.size(), x[None].shape[1:], x.max(0).values.shape + (3,)):
        known = (2, 3) if len(made) == 2 and made[0] == 2 else (3, 3)
        # a key beside plain tuples, asked for twice: Python 3.14 keeps the hashes of tuples
        assert {known: 1}[made] == {made: 1}[known] == 1 and hash(made) == hash(known)


def test_generator() -> None:
    g = weft.Generator()
    assert g.manual_seed(7) is g and g.initial_seed() == 7
    state = g.get_state()
    assert state.dtype is weft.uint8 and state.shape == (5056,)
    a = weft.rand(5, generator=g)
    g.set_state(state)
    assert weft.equal(a, weft.rand(5, generator=g))
    assert weft.manual_seed(3) is weft.default_generator
    assert weft.initial_seed() == 3
    with pytest.raises(ValueError):
        g.manual_seed(2**64)
    with strings(TypeError, "manual_seed: expected an int, got str"):
        g.manual_seed("a")


def test_settings() -> None:
    threads = weft.get_num_threads()
    weft.set_num_threads(1)
    assert weft.get_num_threads() == 1
    weft.set_num_threads(threads)
    with pytest.raises(RuntimeError):
        weft.set_num_threads(0)
    weft.set_default_dtype(weft.float64)
    try:
        assert weft.tensor([1.0]).dtype is weft.float64
    finally:
        weft.set_default_dtype(weft.float32)
    assert weft.promote_types(weft.int8, weft.uint8) is weft.int16


def test_memory_limit_leaves_everything_usable() -> None:
    weft.empty_cache()
    weft.set_memory_limit(weft.memory_stats()["bytes_in_use"] + (1 << 20))
    try:
        with pytest.raises(weft.OutOfMemoryError):
            weft.empty(1 << 24)
        assert weft.ones(4).sum().item() == 4
    finally:
        weft.set_memory_limit(0)
    assert issubclass(weft.OutOfMemoryError, RuntimeError)
    assert weft.empty(1 << 20).shape == (1 << 20,)
    with pytest.raises(RuntimeError):
        weft.empty(1 << 62)


# ---- construction ----


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, weft.int64, ()),
        (3.5, weft.float32, ()),
        (True, weft.bool, ()),
        (1j, weft.complex64, ()),
        ([], weft.float32, (0,)),
        ([[]], weft.float32, (1, 0)),
        ([1, 2.5, True], weft.float32, (3,)),
        ([True, 2], weft.int64, (2,)),
        ([[1, 2], [3, 4]], weft.int64, (2, 2)),
        (((1.0,), (2.0,)), weft.float32, (2, 1)),
        (range(3), weft.int64, (3,)),
        (np.float64(1), weft.float64, ()),
        ([np.float32(1)], weft.float32, (1,)),
        ([np.int32(1), np.int32(2)], weft.int32, (2,)),
        (np.bool_(True), weft.bool, ()),
        (np.ones((2, 2), np.int16), weft.int16, (2, 2)),
        ([np.ones(2), np.zeros(2)], weft.float64, (2, 2)),
    ],
)
def test_tensor_infers(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x = weft.tensor(data)
    assert x.dtype is dtype and x.shape == shape
    expected = np.array(data)
    assert np.array_equal(x.numpy(), expected.astype(x.numpy().dtype))


def test_tensor_of_tensors() -> None:
    x = weft.tensor([weft.tensor(1), weft.tensor(2.5)])
    assert x.tolist() == [1.0, 2.5]
    y = weft.tensor([[1.0, 1.0], weft.zeros(2)])
    assert y.tolist() == [[1, 1], [0, 0]]


def test_tensors_in_lists_are_numbers() -> None:
    x = weft.tensor([weft.ones(1), weft.zeros(1, 1), 2])
    assert x.tolist() == [1, 0, 2] and x.dtype is weft.float32
    assert weft.tensor([[weft.ones(1)], [weft.zeros(1)]]).shape == (2, 1)
    for data in ([weft.ones(2), weft.zeros(2)], [weft.ones(0)], [weft.ones(2), [1.0, 2.0]]):
        with pytest.raises(ValueError, match="expected"):
            weft.tensor(data)


def test_ravel_is_contiguous() -> None:
    x = weft.arange(12.0).reshape(3, 4)
    assert x.ravel().data_ptr() == x.data_ptr()
    for view in (x[:, 1], x[:1, ::2], x.t(), x[:, :1].expand(3, 5)):
        flat = view.ravel()
        assert flat.is_contiguous() and flat.tolist() == view.flatten().tolist()
        assert flat.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_tensor_copies_and_converts() -> None:
    array = np.ones(2)
    x = weft.tensor(array)
    array[0] = 5
    assert x.tolist() == [1, 1]
    assert weft.tensor([1, 2], dtype=weft.float64).tolist() == [1.0, 2.0]
    assert weft.tensor([0, 2], dtype=weft.bool).tolist() == [False, True]
    assert weft.tensor([1.9], dtype=weft.int32).tolist() == [1]
    assert weft.tensor([2**64 - 1], dtype=weft.uint64).tolist() == [2**64 - 1]
    assert weft.tensor([1.0], requires_grad=True).requires_grad
    with pytest.warns(UserWarning, match="tensor: expected numbers, got a tensor, which is copied"):
        copied = weft.tensor(weft.arange(6).reshape(2, 3).t())
    assert copied.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("data", "dtype", "error", "text"),
    [
        (
            [[1, 2], [3]],
            None,
            ValueError,
            "tensor: expected a sequence of length 2 at dim 1, got 1",
        ),
        ([[1], 2], None, TypeError, "tensor: expected a sequence of length 1 at dim 1, got int"),
        ([1, [2]], None, ValueError, "tensor: expected a number at dim 1, got a sequence"),
        ("a", None, TypeError, "tensor: expected numbers or sequences of numbers, got str"),
        (["a"], None, TypeError, "tensor: expected numbers or sequences of numbers, got str"),
        (None, None, TypeError, "tensor: expected numbers or sequences of numbers, got NoneType"),
        ({}, None, TypeError, "tensor: expected numbers or sequences of numbers, got dict"),
        ([300], weft.uint8, RuntimeError, "tensor: expected a number that fits uint8, got 300"),
        ([-1], weft.uint8, RuntimeError, "tensor: expected a number that fits uint8, got -1"),
        (2**63, None, ValueError, f"tensor: expected a number that fits int64, got {2**63}"),
        ([1e20], weft.int32, RuntimeError, "tensor: expected a number that fits int32, got 1e+20"),
        (
            [float("nan")],
            weft.int64,
            ValueError,
            "tensor: expected a number that fits int64, got nan",
        ),
        (
            [1j],
            weft.float32,
            TypeError,
            "tensor: expected real numbers for float32, got a complex one",
        ),
    ],
)
def test_tensor_refuses(data: Any, dtype: Any, error: type[BaseException], text: str) -> None:
    with strings(error, text):
        weft.tensor(data, dtype=dtype)


def test_self_containing_list() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(ValueError):
        weft.tensor(data)


def test_old_constructor() -> None:
    assert weft.Tensor(2, 3).shape == (2, 3) and weft.Tensor().shape == (0,)
    assert weft.Tensor([1, 2]).dtype is weft.float32
    assert weft.Tensor(weft.Size([2])).shape == (2,)


def test_factories_take_sizes_in_every_way() -> None:
    for x in (weft.zeros(2, 3), weft.zeros((2, 3)), weft.zeros([2, 3]), weft.zeros(size=(2, 3))):
        assert x.shape == (2, 3)
    assert weft.zeros(()).shape == () and weft.zeros(0).shape == (0,)
    assert weft.ones(np.int64(2), weft.tensor(3)).shape == (2, 3)
    assert weft.zeros(weft.ones(2, 3).shape).shape == (2, 3)
    assert weft.ones(2, requires_grad=True).requires_grad
    assert weft.full((2,), 3).dtype is weft.int64
    x = weft.ones(2, dtype=weft.float64)
    assert x.new_zeros(3).dtype is weft.float64 and x.new_tensor([1]).dtype is weft.float64


def test_as_tensor_and_asarray() -> None:
    x = weft.ones(2)
    assert weft.as_tensor(x) is x and weft.asarray(x) is x
    array = np.ones(2, np.float32)
    assert weft.as_tensor(array).data_ptr() == array.ctypes.data
    assert weft.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert weft.as_tensor(array, dtype=weft.float64).dtype is weft.float64
    assert weft.as_tensor([1, 2]).tolist() == [1, 2]


# ---- conversion ----


def test_to() -> None:
    x = weft.ones(2)
    assert x.to(weft.float32) is x and x.to("cpu") is x and x.cpu() is x
    assert x.to(weft.float64).dtype is weft.float64
    assert x.to("cpu", weft.int8).dtype is weft.int8
    assert x.to(device="cpu", dtype=weft.int8).dtype is weft.int8
    assert x.to(weft.ones(1, dtype=weft.int16)).dtype is weft.int16
    assert x.to(weft.float32, copy=True) is not x
    assert x.long().dtype is weft.int64 and x.double().dtype is weft.float64
    assert x.type() == "torch.FloatTensor" and x.type(weft.int32).dtype is weft.int32
    assert x.type_as(weft.tensor(1)).dtype is weft.int64
    for name, dtype in _typed.TYPES.items():
        assert x.type(getattr(weft, name)).dtype is getattr(weft, dtype)
        made = getattr(weft, dtype)
        if made.is_floating_point:
            assert weft.nn.Linear(1, 1).type(f"torch.{name}").bias.dtype is made
        else:
            with pytest.raises(RuntimeError, match="data: expected a floating or complex dtype"):
                weft.nn.Linear(1, 1).type(f"torch.{name}")
    assert x.type(weft.FloatTensor) is x and x.double().type(weft.Tensor).dtype is weft.float32
    assert x.type(dtype=weft.LongTensor, non_blocking=True).dtype is weft.int64
    with strings(ValueError, "type: expected a dtype or a tensor type, got int"):
        x.type(int)
    with pytest.raises(AssertionError):
        x.to("cuda")
    with strings(TypeError, "to: expected argument 'device' of type device, got int"):
        x.to(3)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "first", [(weft.float64,), ("cpu",), ("cpu", weft.float64), (weft.zeros(3).double(),)], ids=str
)
def test_to_by_position(first: tuple[Any, ...]) -> None:
    """non_blocking and copy come after the dtype, the device, both, or the other tensor."""
    x = weft.ones(2, dtype=weft.float64)
    for rest in ((), (True,), (False, False), (True, None)):
        assert x.to(*first, *rest) is x
    copy = x.to(*first, False, True)
    assert copy is not x and copy.data_ptr() != x.data_ptr() and weft.equal(copy, x)
    assert x.to(*first, non_blocking=True) is x and x.to(*first, copy=True) is not x
    assert x.to(*first, False, copy=True) is not x
    count = len(first) + 2
    with strings(TypeError, f"to: expected at most {count} positional arguments, got {count + 1}"):
        x.to(*first, False, False, False)
    with strings(TypeError, "to: expected argument 'non_blocking' once, got it twice"):
        x.to(*first, False, non_blocking=False)


def test_python_numbers() -> None:
    assert float(weft.tensor(2)) == 2.0 and int(weft.tensor(2.7)) == 2
    assert complex(weft.tensor(2)) == 2 + 0j
    assert bool(weft.tensor([1])) and not weft.tensor(0.0)
    assert [1, 2, 3][weft.tensor(1)] == 2
    assert weft.tensor(2.5).item() == 2.5 and weft.tensor(2.5).tolist() == 2.5
    assert f"{weft.tensor(2.5):.2f}" == "2.50"
    assert hash(weft.ones(1)) != hash(weft.ones(1)) or True
    with strings(RuntimeError, "bool: expected a tensor of one element, got shape (2,)"):
        bool(weft.ones(2))
    with strings(RuntimeError, "item: expected a tensor of one element, got shape (2,)"):
        weft.ones(2).item()
    with pytest.raises(TypeError):
        [1, 2][weft.tensor(1.0)]


def test_sequence_protocol() -> None:
    x = weft.arange(4).reshape(2, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3]]
    assert 3 in x and 7 not in x and weft.tensor(1) in x
    assert [r.tolist() for r in reversed(x)] == [[2, 3], [0, 1]]
    _, b = x
    assert b.tolist() == [2, 3]
    with strings(TypeError, "len: expected a tensor with dims, got a 0-d tensor"):
        len(weft.tensor(1))
    with strings(TypeError, "iter: expected a tensor with dims, got a 0-d tensor"):
        iter(weft.tensor(1))


# ---- operators ----

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
OPERATORS += [operator.mod, operator.pow, operator.lt, operator.le, operator.gt, operator.ge]
OPERATORS += [operator.eq, operator.ne]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", [2, 2.5, True, np.float32(1.5), np.int64(3), np.float64(0.5)])
def test_operators_with_numbers(function: Any, other: Any) -> None:
    a = np.array([1.0, 2.0, 3.5], np.float32)
    x = weft.from_numpy(a)
    if other is True and function is operator.sub:
        with pytest.raises(RuntimeError, match="sub: expected numbers, got bool"):
            function(x, other)
        return
    number = other.item() if isinstance(other, np.generic) else other
    for mine, theirs in [
        (function(x, other), function(a, number)),
        (function(other, x), function(number, a)),
    ]:
        assert isinstance(mine, weft.Tensor)
        assert mine.dtype in (weft.float32, weft.bool)
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-6)


def test_operators_between_tensors() -> None:
    a, b = np.array([5, 7, -3]), np.array([2, -2, 2])
    x, y = weft.from_numpy(a), weft.from_numpy(b)
    assert (x // y).tolist() == (a // b).tolist() and (x % y).tolist() == (a % b).tolist()
    assert (x & y).tolist() == (a & b).tolist() and (x | y).tolist() == (a | b).tolist()
    assert (x ^ y).tolist() == (a ^ b).tolist() and (~x).tolist() == (~a).tolist()
    assert (-x).tolist() == (-a).tolist() and abs(x).tolist() == [5, 7, 3] and +x is x
    assert (x & 1).tolist() == (a & 1).tolist() and (1 | x).tolist() == (1 | a).tolist()
    assert (x / y).dtype is weft.float32
    assert (x == None) is False and (x == "a") is False  # noqa: E711
    assert x != "a"


def test_in_place_operators() -> None:
    x = original = weft.ones(2)
    x += 1
    x *= weft.tensor([2.0, 3.0])
    x -= 1
    x /= 2
    assert x is original and x.tolist() == [1.5, 2.5]
    x //= 2
    x **= weft.tensor([2.0, 3.0])
    x %= 2
    assert x is original and x.tolist() == [0.0, 1.0]
    y = z = weft.tensor([6, 3])
    y &= 2
    y |= weft.tensor([8, 1])
    y ^= 1
    assert y is z and y.tolist() == [11, 2]


def test_operators_with_strangers() -> None:
    x = weft.ones(2)
    with pytest.raises(TypeError):
        x + "a"  # type: ignore[operator]
    with pytest.raises(TypeError):
        x @ 2  # type: ignore[operator]
    with pytest.raises(TypeError):
        x < None  # type: ignore[operator] # noqa: B015
    with pytest.raises(TypeError):
        x += []  # type: ignore[arg-type]

    class Other:
        def __radd__(self, other: Any) -> str:
            return "mine"

    assert x + Other() == "mine"


# ---- binding of arguments ----


def test_argument_forms() -> None:
    x = weft.arange(6).reshape(2, 3)
    assert x.sum(0).tolist() == x.sum(dim=0).tolist() == x.sum((0,)).tolist() == [3, 5, 7]
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    for name in ("input", "self", "a", "x", "x1"):
        assert weft.sum(**{name: x}, dim=1).tolist() == [3, 12]
    assert weft.add(x1=x, x2=x).tolist() == x.add(x2=x).tolist() == (x * 2).tolist()
    for sizes, count in (([1, 2], 2), (1, 3)):
        assert len(weft.split(tensor=x, split_size_or_sections=sizes, dim=1)) == count
        assert len(x.split(split_size=sizes, axis=1)) == count
    assert x.view(3, 2).shape == x.view((3, 2)).shape == x.view(weft.Size([3, 2])).shape == (3, 2)
    assert x.view(-1).shape == (6,) and x.permute(1, 0).shape == (3, 2)
    assert x.expand(4, 2, 3).shape == (4, 2, 3)
    assert weft.add(x, 2, alpha=3)[0, 0].item() == 6
    assert weft.add(x, weft.tensor(2), alpha=weft.tensor(3))[0, 0].item() == 6
    out = weft.empty(2, 3, dtype=weft.int64)
    assert weft.add(x, x, out=out) is out and out.tolist() == (2 * x).tolist()
    assert weft.add(x, x, out=None).tolist() == out.tolist()
    assert x.to(weft.float32).mean(dim=np.int64(0)).shape == (3,)


class Marked(weft.Tensor):
    pass


SOURCE = weft.ones(2, 3, 4, 5)
LEAF, OTHER = (weft.tensor(value, requires_grad=True) for value in (2.0, 5.0))
DTYPE_METHODS = ("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float",
                 "double", "cfloat", "cdouble", "chalf")  # fmt: skip


def gradients(**named: Any) -> Any:
    """What backward leaves: gradients, and whether it may be called again."""
    LEAF.grad = OTHER.grad = None
    root = LEAF * LEAF * OTHER
    root.backward(**named)
    first = LEAF.grad.item(), LEAF.grad.requires_grad, OTHER.grad is None
    with contextlib.suppress(RuntimeError):
        root.backward()
    again = LEAF.grad.item()
    LEAF.grad = OTHER.grad = None
    return *first, again


def parts(result: Any) -> Any:
    """What arguments can change of a result."""
    if isinstance(result, weft.Tensor):
        shared = result is SOURCE, result.data_ptr() == SOURCE.data_ptr()
        layout = result.shape, result.stride(), result.tolist()
        return type(result), result.dtype, result.requires_grad, *shared, *layout
    if isinstance(result, np.ndarray):
        return result.dtype, result.shape, result.ctypes.data == SOURCE.data_ptr()
    return str(result).partition(" at 0x")[0]


#: functions written by hand, names that change what they give, and names that do not
NAMED: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]] = {
    "tensor": (weft.tensor, {"data": [1], "dtype": weft.float64, "requires_grad": True},
               {"device": "cpu", "pin_memory": False}),
    "as_tensor": (weft.as_tensor, {"data": [1], "dtype": weft.float64}, {"device": "cpu"}),
    "asarray": (weft.asarray, {"obj": SOURCE.numpy(), "copy": True, "requires_grad": True},
                {"device": "cpu", "dtype": weft.float32}),
    "asarray of bytes": (weft.asarray, {"obj": bytearray(8), "dtype": weft.int16}, {}),
    "frombuffer": (weft.frombuffer, {"buffer": bytearray(range(32)), "dtype": weft.float16,
                                     "count": 3, "offset": 8, "requires_grad": True}, {}),
    "from_dlpack": (weft.from_dlpack, {"ext_tensor": SOURCE.numpy(), "copy": True},
                    {"device": "cpu"}),
    "__dlpack__": (weft.from_numpy(np.arange(3)[::-1]).__dlpack__,
                   {"copy": True, "max_version": (1, 0)}, {"dl_device": (1, 0), "stream": None}),
    "numpy": (LEAF.numpy, {"force": True}, {}),
    "__array__ dtype": (SOURCE.__array__, {"dtype": np.float64}, {}),
    "__array__ copy": (SOURCE.__array__, {"copy": True}, {}),
    "_make_subclass": (weft.Tensor._make_subclass,
                       {"cls": Marked, "data": SOURCE, "require_grad": True}, {}),
    "size": (SOURCE.size, {"dim": 1}, {}),
    "stride": (SOURCE.stride, {"dim": 1}, {}),
    "is_contiguous": (SOURCE.is_contiguous, {"memory_format": weft.channels_last}, {}),
    "type": (SOURCE.type, {"dtype": weft.float64}, {"non_blocking": True}),
    "to dtype": (SOURCE.to, {"dtype": weft.float64}, {"device": "cpu", "non_blocking": True}),
    "to other": (SOURCE.to, {"other": weft.tensor(1)}, {"copy": True}),
    "to copy": (SOURCE.to, {"copy": True}, {"memory_format": weft.preserve_format}),
    "to memory_format": (SOURCE.to, {"memory_format": weft.channels_last}, {"dtype": weft.float32}),
    **{name: (getattr(SOURCE, name), {"memory_format": weft.channels_last}, {})
       for name in DTYPE_METHODS},
    "requires_grad_": (lambda **names: weft.ones(1).requires_grad_(**names),
                       {"requires_grad": False}, {}),
    "backward": (gradients, {"gradient": weft.tensor(3.0), "create_graph": True,
                             "retain_graph": False, "inputs": [LEAF]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_arguments_by_name(name: str) -> None:
    function, named, idle = NAMED[name]
    result = parts(function(**named))
    assert parts(function(**named, **idle)) == result
    for left_out in named:
        rest = {key: value for key, value in named.items() if key != left_out}
        with contextlib.suppress(TypeError, RuntimeError, BufferError):
            assert parts(function(**rest)) != result, left_out
    with pytest.raises(TypeError, match=r": expected known argument names, got 'foo'"):
        function(**named, foo=1)


def test_named_results() -> None:
    x = weft.tensor([[1.0, 3.0], [4.0, 2.0]])
    result = x.max(dim=1)
    assert result.values.tolist() == [3, 4] and result.indices.tolist() == [1, 0]
    values, indices = result
    assert values is result.values and indices is result[1] and isinstance(result, tuple)
    text = "torch.return_types.max(\nvalues=tensor([3., 4.]),\nindices=tensor([1, 0]))"
    assert repr(result) == text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: weft.add(x, "a"),
            "add: expected argument 'other' of type Tensor or Number, got str",
        ),
        (
            lambda x: weft.add(x),
            "add: expected argument 'other' of type Tensor or Number, got nothing",
        ),
        (lambda x: weft.mm(x, 3), "mm: expected argument 'mat2' of type Tensor, got int"),
        (lambda x: weft.mm(3, x), "mm: expected argument 'input' of type Tensor, got int"),
        (lambda x: x.mv(x, x), "mv: expected fewer positional arguments, got 3"),
        (lambda x: x.mm(x, foo=1), "mm: expected known argument names, got 'foo'"),
        (lambda x: x.mm(x, mat2=x), "mm: expected argument 'mat2' once, got it twice"),
        (lambda x: x.view("a"), "view: expected argument 'size' of type tuple of ints, got str"),
        (
            lambda x: x.permute([0, 1.5]),
            "permute: expected argument 'dims' of type tuple of ints, got list with float",
        ),
        (
            lambda x: weft.stack([x, 1]),
            "stack: expected argument 'tensors' of type tuple of Tensors, got list with int",
        ),
        (
            lambda x: weft.zeros(2, dtype=3),
            "zeros: expected argument 'dtype' of type dtype or None, got int",
        ),
        (lambda x: weft.Tensor.mm(3, x), "mm: expected argument 'input' of type Tensor, got int"),
    ],
)
def test_binding_errors(call: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(weft.ones(2, 2))
    message, _, hint = str(caught.value).partition("; accepted: ")
    assert message == text
    assert text.split(":")[0] + "(" in hint


def test_function_objects() -> None:
    assert weft.add.__name__ == "add" and weft.add.__module__ == "weft"
    assert "add(Tensor input, Tensor other" in weft.add.__doc__
    assert any(schema.startswith("add.Tensor(") for schema in weft.add.overloads)

    class Holder:
        activation = weft.relu

    assert Holder().activation(weft.tensor([-1.0])).tolist() == [0.0]
    bound = weft.ones(2).sum
    assert bound().item() == 2


# ---- indexing ----

INDICES = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(-1, 0, -2),
    None, ..., True, False, (0, 1), (slice(None), 2), (..., 0), (0, ...), (None, 0, None),
    (slice(1, 3), slice(None, None, -1)), (1, slice(0, 2), -1), [0, 2], ([0, 2], [1, 0]),
    (slice(None), [0, 2]), ([0, 1], slice(None), [0, 1]), ([[0, 1], [1, 0]],), (0, [1, 2]),
    (slice(None), None, [1, 0]), [True, False, True], (slice(None), [True, False, True, False]),
    (slice(100), slice(-100, 100)), [], (), (0, 1, 2), (..., None), (True, 0),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_index_is_numpys(index: Any) -> None:
    a = np.arange(60).reshape(3, 4, 5)
    x = weft.from_numpy(a)
    expected = a[np.array([], int)] if index == [] else a[index]
    assert x[index].tolist() == expected.tolist()
    assert x[index].shape == expected.shape


@pytest.mark.parametrize("index", [i for i in INDICES if i != []], ids=repr)
def test_assignment_is_numpys(index: Any) -> None:
    a = np.zeros((3, 4, 5))
    x = weft.zeros(3, 4, 5, dtype=weft.float64)
    a[index] = 7
    x[index] = 7
    assert x.tolist() == a.tolist()
    value = np.arange(a[index].size).reshape(a[index].shape)
    a[index] = value
    x[index] = weft.tensor(value)
    assert x.tolist() == a.tolist()


def test_tensor_indices() -> None:
    a = np.arange(12).reshape(3, 4)
    x = weft.from_numpy(a)
    assert x[x > 5].tolist() == a[a > 5].tolist()
    assert x[weft.tensor([2, 0])].tolist() == a[[2, 0]].tolist()
    assert x[np.array([2, 0])].tolist() == a[[2, 0]].tolist()
    assert x[weft.tensor(1)].tolist() == a[1].tolist()
    assert x[weft.tensor(1) : weft.tensor(3)].tolist() == a[1:3].tolist()
    cube = weft.arange(60).reshape(3, 4, 5)
    mask = cube[..., 0] > 20
    assert weft.equal(cube[mask, 1:3], weft.tensor(cube.numpy()[mask.numpy(), 1:3]))
    x[x > 5] = 0
    assert x.max().item() == 5


def test_views_and_copies() -> None:
    x = weft.zeros(4)
    x[1:3][0] = 1
    x[::-1][0] = 2
    assert x.tolist() == [0, 1, 0, 2]
    assert x[...] is not x and x[...].data_ptr() == x.data_ptr()
    assert x[[0]].data_ptr() != x.data_ptr()
    x[0] = weft.tensor([[3.0]])
    assert x[0].item() == 3


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (5, IndexError, "index: expected index in [-3, 2] for dim 0, got 5"),
        ((0, -5), IndexError, "index: expected index in [-4, 3] for dim 1, got -5"),
        ((0, 0, 0), IndexError, "index: expected at most 2 indices, got 3"),
        (
            1.0,
            IndexError,
            "index: expected int, slice, None, Ellipsis, bool, tensor or list, got float",
        ),
        (
            "a",
            TypeError,
            "index: expected int, slice, None, Ellipsis, bool, tensor or list, got str",
        ),
        (slice(0.5, 1), TypeError, "slice: expected int or None, got float"),
        (slice(None, None, 0), ValueError, "slice: expected a step other than 0, got 0"),
    ],
)
def test_index_errors(index: Any, error: type[BaseException], text: str) -> None:
    with strings(error, text):
        weft.ones(3, 4)[index]


def test_more_index_errors() -> None:
    x = weft.ones(3, 4)
    with strings(IndexError, "index: expected an integer or bool tensor as index, got float32"):
        x[weft.tensor([1.0])]
    with pytest.raises(IndexError, match="mask"):
        x[weft.tensor([True, False])]
    with pytest.raises(IndexError):
        x[weft.tensor([3])]
    with pytest.raises(IndexError, match="0-d tensor"):
        weft.tensor(1)[0]
    with strings(TypeError, "index: expected a Tensor or Number to assign, got list"):
        x[0] = [1, 2]  # type: ignore[assignment]
    with pytest.raises(RuntimeError):
        x[0] = weft.ones(7)
    with strings(TypeError, "index: expected an assignment, got del; tensors keep their elements"):
        del x[0]  # type: ignore[attr-defined]


def test_gradient_through_index() -> None:
    x = weft.arange(6.0, requires_grad=True)
    (x[::-1][:2] * weft.tensor([1.0, 2.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 0, 0, 2, 1]
    y = weft.zeros(3)
    z = weft.ones(2, requires_grad=True)
    y[1:] = z * 3
    y.sum().backward()
    assert z.grad is not None and z.grad.tolist() == [3, 3]


# ---- subclasses ----


def test_subclass() -> None:
    class Mine(weft.Tensor):
        def __new__(cls, data: Any) -> Mine:
            return weft.Tensor._make_subclass(cls, weft.tensor(data))

        def double(self) -> weft.Tensor:
            return self * 2

    x = Mine([1.0, 2.0])
    assert type(x) is Mine and x.double().tolist() == [2.0, 4.0]
    assert isinstance(x, weft.Tensor) and repr(x) == "Mine([1., 2.])"
    assert (x + x).tolist() == [2.0, 4.0]
    assert type(weft.ones(2).as_subclass(Mine)) is Mine
    with pytest.raises(TypeError):
        weft.ones(2).as_subclass(int)  # type: ignore[arg-type]


def test_new_takes_every_number_of_its_dtype() -> None:
    x = weft.zeros(2, dtype=weft.int64)
    assert x.new([2**60 + 1]).tolist() == [2**60 + 1] and x.new(2, 3).shape == (2, 3)
    assert x.new().shape == (0,) and x.new(x).data_ptr() == x.data_ptr()
    assert x.to(weft.complex64).new([1j]).tolist() == [1j]


@pytest.mark.parametrize(
    ("index", "sizes"),
    [
        (lambda: weft.tensor([[True, False, True], [False, True, True]]), (1, 1, 4)),
        (lambda: weft.tensor([0, 1]), (1, 1, 1, 3, 4)),
        (lambda: (slice(None), weft.tensor([0, 1]), 1), (1, 1, 1, 2)),
        (lambda: weft.zeros(2, 3, dtype=weft.bool), (1, 1, 4)),
        (lambda: ([0, 1], [1, 2]), (1, 1, 1, 1)),
    ],
)
def test_assigned_values_may_have_leading_ones(index: Any, sizes: tuple[int, ...]) -> None:
    """Dimensions of size 1 before those of the places do not count, as in x[0] = value."""
    x = weft.zeros(2, 3, 4)
    value = weft.arange(1.0, math.prod(sizes) + 1).reshape(sizes).requires_grad_()
    x[index()] = value
    plain = weft.zeros(2, 3, 4)
    plain[index()] = value.reshape([size for size in sizes if size != 1]).detach()
    assert x.tolist() == plain.tolist()
    x.sum().backward()
    assert value.grad is not None and value.grad.shape == sizes


def test_other_dimensions_of_assigned_values_count() -> None:
    x = weft.zeros(2, 3)
    x[False] = weft.ones(5)  # of no elements, whatever the shapes
    assert not x.any()
    with pytest.raises(RuntimeError, match=r"expected values that broadcast to \(2, 3\)"):
        x[weft.tensor([0, 1])] = weft.ones(2, 1, 3)
    with pytest.raises(RuntimeError, match=r"expected values that broadcast to \(2, 3\)"):
        x.index_put_((weft.tensor([0, 1]),), weft.ones(1, 1, 2, 3))


MADE = {
    "ones": lambda: weft.ones(2), "full": lambda: weft.full((2,), 3.0), "zeros": lambda: weft.zeros(2),
    "rand": lambda: weft.rand(2), "randn": lambda: weft.randn(2), "randint": lambda: weft.randint(3, (2,)),
    "normal": lambda: weft.normal(0.0, 1.0, (2,)), "arange": lambda: weft.arange(2), "eye": lambda: weft.eye(2),
    "ones_like": lambda: weft.ones_like(weft.zeros(2)), "new_full": lambda: weft.zeros(1).new_full((2,), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_what_a_factory_made_was_not_written_to(name):
    made = MADE[name]()
    assert made._version == 0
    assert made.zero_()._version == 1
    out = weft.empty(2)
    assert weft.ones(2, out=out)._version > 0


SIZED: dict[str, Any] = {
    "rand": lambda t, n: t.rand(n, 2),
    "zeros": lambda t, n: t.zeros(size=(n,)),
    "randint": lambda t, n: t.randint(0, 5, (n, 2)),
    "expand": lambda t, n: t.ones(1, 1).expand(2, n),
    "repeat": lambda t, n: t.ones(1).repeat(n),
    "reshape": lambda t, n: t.ones(4).reshape([2, n]),
    "new_zeros": lambda t, n: t.ones(1).new_zeros((n, n)),
    "mean": lambda t, n: t.ones(1, 1, 3).mean([n]),
    "topk": lambda t, n: t.arange(9.0).topk(n)[0],
    "as_strided": lambda t, n: t.ones(9).as_strided((n,), (1,)),
    "tensor_split": lambda t, n: t.arange(9.0).tensor_split(n)[0],
    "repeat_interleave": lambda t, n: t.ones(3).repeat_interleave(n),
    "Tensor": lambda t, n: t.Tensor(n, 3),
    "Tensor of one": lambda t, n: t.Tensor(n),
    "FloatTensor": lambda t, n: t.FloatTensor(3, n),
    "FloatTensor of one": lambda t, n: t.FloatTensor(n),
    "new": lambda t, n: t.ones(1).new(n, 2),
    "index": lambda t, n: t.arange(9.0)[n],
}


@pytest.mark.parity
@pytest.mark.parametrize("form", ["0-d", "1-d", "numpy", "numpy 0-d", "float", "two"])
@pytest.mark.parametrize("name", SIZED)
def test_sizes_that_are_no_ints_of_python(name: str, form: str) -> None:
    """Tensors of one integer and NumPy's integers are sizes; alone, in the old constructors, a tensor is data."""

    def outcome(t: Any) -> Any:
        n = {
            "0-d": lambda: t.tensor(2), "1-d": lambda: t.tensor([2]), "float": lambda: t.tensor([2.0]),
            "two": lambda: t.tensor([2, 2]), "numpy": lambda: np.int64(2), "numpy 0-d": lambda: np.array(2),
        }[form]()  # fmt: skip
        try:
            return tuple(SIZED[name](t, n).shape)
        except (RuntimeError, TypeError, IndexError) as error:
            return type(error)

    assert outcome(weft) == outcome(pytest.importorskip("torch"))
