"""Memory shared with others: NumPy, buffers, DLPack. Who owns it, who may write, what is refused."""

from __future__ import annotations

import array as stdlib_array
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import weft

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


# ---- from_numpy ----


@pytest.mark.parametrize("name", DTYPES)
def test_from_numpy_shares(name: str) -> None:
    a = np.array([[0, 1, 1], [1, 0, 1]]).astype(name)
    x = weft.from_numpy(a)
    assert x.dtype is getattr(weft, name) and x.shape == a.shape
    assert x.data_ptr() == a.ctypes.data and x.tolist() == a.tolist()
    a[0, 0] = 1
    assert x[0, 0].item() == a[0, 0]
    x[1, 1] = 1
    assert a[1, 1] == 1


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1],
        lambda a: a[:, ::-2],
        lambda a: a.T,
        lambda a: a[1:, 1:3],
        lambda a: a[None, 0],
        lambda a: np.broadcast_to(a, (2, *a.shape)),
        lambda a: a[:0],
        lambda a: a[1, 1, ...],
        lambda a: a[2:1:-1, 5:0:-3],
    ],
)
def test_from_numpy_strides(view: Any) -> None:
    a = view(np.arange(24.0).reshape(4, 6))
    x = weft.from_numpy(a)
    assert x.shape == a.shape and x.tolist() == a.tolist()
    if a.size > 1:
        assert x.data_ptr() == a.ctypes.data
        for size, mine, theirs in zip(a.shape, x.stride(), a.strides):
            assert size == 1 or mine == theirs // 8
    assert (x + 0).tolist() == a.tolist()


def test_read_only_array_gives_read_only_tensor() -> None:
    a = np.zeros(3)
    a.flags.writeable = False
    x = weft.from_numpy(a)
    assert x.is_read_only()
    with pytest.raises(RuntimeError, match="read-only"):
        x += 1
    with pytest.raises(RuntimeError, match="read-only"):
        x[1:][0] = 1
    assert a.tolist() == [0, 0, 0]
    assert not x.numpy().flags.writeable
    assert (x + 1).tolist() == [1, 1, 1]
    with pytest.raises(ValueError):
        x.numpy()[0] = 1


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: [1, 2], TypeError, "from_numpy: expected a numpy.ndarray, got list"),
        (
            lambda: np.array([None, 1]),
            TypeError,
            "from_numpy: expected numbers of a dtype weft has, got dtype object",
        ),
        (
            lambda: np.array(["a"]),
            TypeError,
            "from_numpy: expected numbers of a dtype weft has, got dtype <U1",
        ),
        (
            lambda: np.array(["2020"], "datetime64[D]"),
            TypeError,
            "from_numpy: expected numbers of a dtype weft has, got dtype datetime64[D]",
        ),
        (
            lambda: np.zeros(2, ">f4"),
            ValueError,
            "from_numpy: expected native byte order, got dtype >f4; "
            "convert with array.astype(array.dtype.newbyteorder('='))",
        ),
        (
            lambda: np.zeros(4, [("a", "i1"), ("b", "<f4")])["b"],
            ValueError,
            "from_numpy: expected strides that are multiples of the item size 4, got stride 5 at dim 0",
        ),
        (
            lambda: np.zeros(2, np.longdouble),
            TypeError,
            "from_numpy: expected numbers of a dtype weft has, got dtype float128",
        ),
    ],
)
def test_from_numpy_refuses(make: Any, error: type[BaseException], text: str) -> None:
    with pytest.raises(error) as caught:
        weft.from_numpy(make())
    assert str(caught.value) == text


def test_unaligned_memory_is_refused() -> None:
    a = np.zeros(17, np.uint8)[1:].view(np.float64)
    with pytest.raises(ValueError, match="aligned to 8 bytes"):
        weft.from_numpy(a)


def test_lifetime_in_both_orders() -> None:
    a = np.arange(3.0)
    start = sys.getrefcount(a)
    x = weft.from_numpy(a)
    assert sys.getrefcount(a) == start + 1
    del x
    assert sys.getrefcount(a) == start
    x = weft.from_numpy(a)
    view = x[1:]
    gone = weakref.ref(a)
    del a, x
    gc.collect()
    assert view.tolist() == [1, 2] and gone() is not None
    del view
    assert gone() is None


def test_dropped_in_a_thread() -> None:
    a = np.arange(3.0)
    start = sys.getrefcount(a)
    box = [weft.from_numpy(a)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert sys.getrefcount(a) == start


def test_dropped_by_the_engine_without_the_gil() -> None:
    a = np.ones(3, np.float32)
    start = sys.getrefcount(a)
    weight = weft.ones(3, requires_grad=True)
    loss = (weight * weft.from_numpy(a)).sum()  # the graph holds the last reference
    assert sys.getrefcount(a) == start + 1
    loss.backward()
    del loss
    assert sys.getrefcount(a) == start


# ---- numpy() ----


def test_numpy_shares() -> None:
    x = weft.arange(6).reshape(2, 3)
    a = x.numpy()
    assert a.dtype == np.int64 and a.ctypes.data == x.data_ptr()
    x.add_(1)
    assert a[0, 0] == 1
    a[1, 1] = 70
    assert x[1, 1].item() == 70
    del x
    gc.collect()
    assert a.sum() == 1 + 2 + 3 + 4 + 70 + 6


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_dtypes(name: str) -> None:
    x = weft.zeros(2, dtype=getattr(weft, name))
    assert x.numpy().dtype == np.dtype(name)
    assert weft.from_numpy(x.numpy()).dtype is x.dtype


def test_numpy_of_views() -> None:
    x = weft.arange(24).reshape(4, 6)
    for view in (x.t(), x[1:, ::2], x[::-1], x[0, 0], x[:0], x.expand(2, 4, 6), x[3:1:-1, ::-3]):
        a = view.numpy()
        assert a.shape == view.shape and a.tolist() == view.tolist()
        if view.numel():
            assert a.ctypes.data == view.data_ptr()


def test_numpy_refusals() -> None:
    x = weft.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        x.numpy()
    assert "does not require grad" in str(caught.value) and "detach().numpy()" in str(caught.value)
    assert x.numpy(force=True).tolist() == [1, 1]
    with weft.no_grad():
        assert x.numpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="bfloat16"):
        weft.ones(2, dtype=weft.bfloat16).numpy()


def test_numpy_functions_take_tensors() -> None:
    x = weft.arange(4.0)
    assert np.asarray(x).ctypes.data == x.data_ptr()
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x).ctypes.data != x.data_ptr()
    assert np.sum(x.numpy()) == 6 and np.add(np.ones(4), x.numpy()).tolist() == [1, 2, 3, 4]
    assert x.__array__(np.float64).dtype == np.float64
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        np.asarray(weft.ones(2, requires_grad=True))


def test_numpy_scalars_as_operands() -> None:
    x = weft.ones(2)
    for number in (np.float32(2), np.float64(2), np.int64(2)):
        for result in (x + number, number + x, x * number, number * x):
            assert isinstance(result, weft.Tensor) and result.dtype is weft.float32
    assert weft.add(x, np.float32(2)).tolist() == [3, 3]
    assert weft.full((2,), np.float32(2)).tolist() == [2, 2]


def test_arrays_as_operands() -> None:
    x, a = weft.tensor([1.0, 2.0]), np.array([3.0, 4.0])
    for result in (x + a, a + x, x * a, np.add(a, x)):
        assert isinstance(result, weft.Tensor) and result.dtype is weft.float64
    assert (a - x).tolist() == [2, 2] and (x == np.array([1.0, 0.0])).tolist() == [True, False]
    assert isinstance(np.exp(x), weft.Tensor)
    before = x
    x += a  # NumPy's answer, as in PyTorch: another tensor
    assert x.tolist() == [4, 6] and x.dtype is weft.float64 and before.tolist() == [1, 2]


# ---- buffers ----


def test_memoryview_of_tensor() -> None:
    x = weft.arange(6, dtype=weft.int32).reshape(2, 3)
    view = memoryview(x)
    assert view.shape == (2, 3) and view.format == "i" and view.tolist() == x.tolist()
    view[0, 0] = 9
    assert x[0, 0].item() == 9
    del x
    assert view[1, 2] == 5
    assert memoryview(weft.arange(4)[::-1]).tolist() == [3, 2, 1, 0]


def test_bytes_of_tensor() -> None:
    assert bytes(weft.tensor([1, 2], dtype=weft.int16)) == b"\x01\x00\x02\x00"
    with pytest.raises(BufferError):
        bytes(weft.ones(2, requires_grad=True))
    with pytest.raises(BufferError):
        memoryview(weft.ones(2, dtype=weft.bfloat16))


def test_frombuffer() -> None:
    data = bytearray(b"\x01\x00\x02\x00\x03\x00")
    x = weft.frombuffer(data, dtype=weft.int16)
    assert x.tolist() == [1, 2, 3]
    data[0] = 5
    assert x[0].item() == 5
    assert weft.frombuffer(data, dtype=weft.int16, offset=2, count=1).tolist() == [2]
    with pytest.raises(BufferError):
        data.append(1)  # the tensor holds it
    del x
    gc.collect()
    data.append(1)
    y = weft.frombuffer(b"\x01\x02", dtype=weft.uint8)
    assert y.is_read_only()
    assert weft.frombuffer(stdlib_array.array("d", [1.5]), dtype=weft.float64).tolist() == [1.5]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"offset": 9}, "frombuffer: expected offset in [0, 5], got 9"),
        ({"offset": -1}, "frombuffer: expected offset in [0, 5], got -1"),
        ({"count": 7}, "frombuffer: expected count in [1, 3], got 7"),
        ({"offset": 1}, "frombuffer: expected a multiple of 2 bytes after the offset, got 5"),
        ({"count": 0}, "frombuffer: expected at least one element, got count 0"),
    ],
)
def test_frombuffer_refuses(options: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        weft.frombuffer(bytearray(6), dtype=weft.int16, **options)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [np.float64(2.5), np.int8(3), np.bool_(True), np.complex64(1j)])
def test_asarray_of_numbers_of_numpy(value: Any) -> None:
    for made in (weft.asarray(value), weft.asarray(value, copy=True)):
        assert made.shape == () and made.item() == value
        assert str(made.dtype).rpartition(".")[2] == str(value.dtype)


def test_asarray_of_buffer() -> None:
    data = bytearray(np.arange(3, dtype=np.float32).tobytes())
    assert weft.asarray(data).tolist() == [0, 1, 2]
    assert weft.asarray(data, dtype=weft.uint8).shape == (12,)


class OnlyDLPack:
    """An array that other libraries see through DLPack alone."""

    def __init__(self) -> None:
        self.data = np.arange(2.0)
        self.__dlpack__ = self.data.__dlpack__
        self.__dlpack_device__ = self.data.__dlpack_device__


@pytest.mark.parametrize(
    "make", [OnlyDLPack, lambda: np.arange(2.0), lambda: weft.arange(2.0, dtype=weft.float64)]
)
def test_asarray_copies_as_it_is_told(make: Any) -> None:
    source = make()
    memory = weft.asarray(source, copy=False).data_ptr()
    assert weft.asarray(source).data_ptr() == memory
    assert weft.asarray(source, copy=True).data_ptr() != memory
    for options in ({"dtype": weft.float32}, {"device": "meta"}):
        with pytest.raises(ValueError, match="with copy=False, got"):
            weft.asarray(source, copy=False, **options)


# ---- DLPack ----


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_with_numpy(name: str) -> None:
    x = weft.zeros(2, 3, dtype=getattr(weft, name))
    a = np.from_dlpack(x)
    assert a.dtype == np.dtype(name) and a.shape == (2, 3) and a.ctypes.data == x.data_ptr()
    back = weft.from_dlpack(a.copy())
    assert back.dtype is x.dtype and back.tolist() == x.tolist()


def test_dlpack_views_and_lifetime() -> None:
    x = weft.arange(24).reshape(4, 6)
    for view in (x.t(), x[1:, ::2], x[::-1], x[0, 0], x[:0]):
        again = weft.from_dlpack(view)
        assert again.tolist() == view.tolist()
    a = np.arange(3.0)
    y = weft.from_dlpack(a[::-1])
    gone = weakref.ref(a)
    del a
    assert y.tolist() == [2, 1, 0]
    del y
    gc.collect()
    assert gone() is None


def test_dlpack_bfloat16() -> None:
    x = weft.ones(2, dtype=weft.bfloat16)
    assert weft.from_dlpack(x).dtype is weft.bfloat16


def test_dlpack_read_only() -> None:
    a = np.zeros(3)
    a.flags.writeable = False
    x = weft.from_numpy(a)
    assert weft.from_dlpack(x).is_read_only()
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert weft.from_dlpack(a).is_read_only()


def test_dlpack_capsules() -> None:
    x = weft.ones(3)
    for options in ({}, {"max_version": (1, 0)}):
        capsule = x.__dlpack__(**options)
        y = weft.from_dlpack(capsule)
        assert y.data_ptr() == x.data_ptr()
        with pytest.raises(ValueError, match="unused DLPack capsule"):
            weft.from_dlpack(capsule)
        x.__dlpack__(**options)  # dropped unused
    assert x.__dlpack_device__() == (1, 0)
    copied = weft.from_dlpack(x.__dlpack__(copy=True))
    assert copied.data_ptr() != x.data_ptr()


def test_dlpack_refusals() -> None:
    with pytest.raises(BufferError, match="require grad"):
        weft.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError):
        weft.ones(2).__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="expected an object with __dlpack__, got list"):
        weft.from_dlpack([1])


@pytest.mark.parity
def test_dlpack_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x = weft.arange(6.0).reshape(2, 3)
    t = torch.from_dlpack(x)
    assert t.tolist() == x.tolist() and t.data_ptr() == x.data_ptr()
    back = weft.from_dlpack(t.t())
    assert back.tolist() == x.t().tolist() and back.data_ptr() == x.data_ptr()
    t = torch.ones(3, dtype=torch.bfloat16)
    assert weft.from_dlpack(t).dtype is weft.bfloat16
