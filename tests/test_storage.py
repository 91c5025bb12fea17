"""Storages: the bytes under tensors, who shares them, and when they may change their size."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import weft


def test_one_storage_under_all_views() -> None:
    x = weft.arange(12.0).reshape(3, 4)
    s = x.untyped_storage()
    assert len(s) == s.nbytes() == s.size() == 48 and s.element_size() == 1
    assert s.data_ptr() == x.data_ptr() and s.device == weft.device("cpu")
    for view in (x.view(12), x.t(), x[1:], x[:, ::2], x.detach(), x.view(weft.uint8)):
        assert view.untyped_storage() is s  # as long as `s` lives
        assert view.storage().data_ptr() == x.storage().data_ptr()
        assert view.storage()._cdata == x.untyped_storage()._cdata
    assert x.clone().untyped_storage() != s
    assert weft.is_storage(s) and weft.is_storage(x.storage()) and not weft.is_storage(x)


def test_storage_outlives_its_tensor() -> None:
    x = weft.ones(3)
    s = x.untyped_storage()
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and bytes(s) == weft.ones(3).numpy().tobytes()
    gone_too = weakref.ref(s)
    del s
    assert gone_too() is None


def test_bytes() -> None:
    x = weft.tensor([1, 258], dtype=weft.int16)
    s = x.untyped_storage()
    assert s.tolist() == list(s) == [1, 0, 2, 1] and s[2] == 2 and s[-1] == 1
    s[0] = 7
    s[2:] = b"\x00\x00"
    assert x.tolist() == [7, 0]
    part = s[0:2]
    assert part.tolist() == [7, 0] and part.data_ptr() != s.data_ptr()
    s.fill_(1)
    assert x.tolist() == [257, 257]
    other = s.clone().fill_(0)
    assert s.tolist() == [1] * 4
    s.copy_(other)
    assert x.tolist() == [0, 0] and x._version > 0
    assert repr(part) == " 7\n 0\n[torch.storage.UntypedStorage(device=cpu) of size 2]"


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda s: s[4], IndexError, "expected an index in [-4, 3], got 4"),
        (lambda s: s["a"], TypeError, "expected an index of type int or slice, got str"),
        (lambda s: s[::2], ValueError, "expected a slice of step 1, got 2"),
        (lambda s: s.__setitem__(0, 256), ValueError, "expected a byte in [0, 255], got 256"),
        (lambda s: s.copy_(weft.UntypedStorage(3)), RuntimeError, "expected 4 bytes, got 3"),
        (lambda s: s.resize_(-1), RuntimeError, "resize_: expected at least 0 bytes, got -1"),
        (lambda s: s.resize_(1 << 62), weft.OutOfMemoryError, ""),
    ],
)
def test_errors(act: Any, error: type[Exception], text: str) -> None:
    s = weft.UntypedStorage([1, 2, 3, 4])
    with pytest.raises(error) as caught:
        act(s)
    assert text in str(caught.value)
    assert s.tolist() == [1, 2, 3, 4]


def test_made_by_hand() -> None:
    assert weft.UntypedStorage(5).nbytes() == 5
    assert weft.UntypedStorage(b"ab").tolist() == [97, 98]
    assert weft.UntypedStorage().data_ptr() == 0 and weft.UntypedStorage().tolist() == []
    s = weft.UntypedStorage(range(0, 8).__len__()).fill_(0)
    assert weft.tensor([], dtype=weft.float32).set_(s).tolist() == [0, 0]


def test_typed_face() -> None:
    x = weft.arange(4.0)
    s = x[1:].storage()
    assert (len(s), s.nbytes(), s.element_size(), s.dtype) == (4, 16, 4, weft.float32)
    assert s.tolist() == list(s) == [0, 1, 2, 3] and s[1] == 1.0 and s[1:3].tolist() == [1, 2]
    s[0] = 9
    assert x[0].item() == 9 and s == x.storage() and s.untyped() is x.untyped_storage()
    assert s.clone().fill_(2).tolist() == [2] * 4 and x[0].item() == 9
    assert "dtype=torch.float32" in repr(s)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("ComplexFloatStorage", weft.complex64), ("ComplexDoubleStorage", weft.complex128)],
)
def test_storages_of_complex_numbers(name: str, dtype: Any) -> None:
    kind = getattr(weft, name)
    s = kind([1 + 2j, 3])
    assert s.tolist() == [1 + 2j, 3] and s.dtype is kind.dtype is dtype and isinstance(s, kind)
    assert not hasattr(weft, name.replace("Storage", "Tensor"))  # as in PyTorch


def test_the_short_name_of_storages() -> None:
    assert weft.Storage is weft.FloatStorage and weft.Storage is weft.Storage


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("FloatStorage", weft.float32), ("LongStorage", weft.int64), ("BoolStorage", weft.bool)],
)
def test_storages_by_their_types(name: str, dtype: Any) -> None:
    kind = getattr(weft, name)
    s = kind([0, 1, 1])
    assert s.tolist() == [0, 1, 1] and s.dtype is kind.dtype is dtype and len(kind(2)) == 2
    assert isinstance(s, kind) and isinstance(s, weft.TypedStorage)
    assert not isinstance(weft.DoubleStorage(1), kind) and s.double().dtype is weft.float64
    x = getattr(weft, name.replace("Storage", "Tensor"))(s)
    assert x.dtype is dtype and x.storage() == s and kind(wrap_storage=s.untyped()) == s
    shared = s._new_shared(4, device="cpu")
    assert shared.is_shared() and x.new(shared).resize_(2, 2).tolist() == [[0, 0], [0, 0]]
    assert x.new(s.untyped()).shape == (3,)
    assert kind(3).copy_(weft.FloatStorage([1, 0, 1])).tolist() == [1, 0, 1]
    for arguments, error, text in (
        (("abc",), TypeError, "expected a size or a sequence, got str"),
        ((1, 2), RuntimeError, r"expected a size or a sequence, got \(1, 2\)"),
        ((-1,), RuntimeError, r"got \(-1,\)"),
    ):
        with pytest.raises(error, match=text):
            kind(*arguments)
    with pytest.raises(RuntimeError, match="copy_: expected 3 elements, got 2"):
        s.copy_(kind(2))
    with pytest.raises(
        RuntimeError, match=r"new: expected a storage of .*, got one of torch\.float64"
    ):
        x.new(weft.DoubleStorage(1))


def test_copies_and_pickles() -> None:
    s = weft.UntypedStorage(b"abc")
    for twin in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert bytes(twin) == b"abc" and twin != s


# ---- resizing ----


def test_views_follow_growth() -> None:
    x = weft.arange(3.0)
    view, s = x[1:], x.untyped_storage()
    s.resize_(1 << 20)
    assert x.data_ptr() == s.data_ptr() and view.data_ptr() == s.data_ptr() + 4
    assert view.tolist() == [1, 2]
    view[0] = 10
    assert x.tolist() == [0, 10, 2] and len(s) == 1 << 20


def test_shrinking_never_leaves_a_tensor_without_memory() -> None:
    x = weft.arange(100_000.0)
    s = x.untyped_storage()
    s.resize_(0)
    assert len(s) == 0 and s.info().capacity == 400_000
    assert x.sum().item() == pytest.approx(4999950000, rel=1e-6)  # its memory is still there
    with pytest.raises(RuntimeError, match="inside the storage of 0 elements"):
        x.as_strided((2,), (1,))
    s.resize_(8)
    assert x.as_strided((2,), (1,)).tolist() == [0, 1]
    del x
    gc.collect()
    s.resize_(4)  # nobody else is left: now it gives the block back
    assert s.info().capacity == 4


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: weft.from_numpy(np.zeros(4)), "memory of somebody else"),
        (lambda: weft.frombuffer(bytearray(8), dtype=weft.int32), "memory of somebody else"),
        (lambda: weft.from_dlpack(np.zeros(4)), "memory of somebody else"),
    ],
)
def test_foreign_memory_keeps_its_size(make: Any, text: str) -> None:
    x = make()
    assert not x.untyped_storage().resizable()
    for resize in (lambda: x.untyped_storage().resize_(1 << 20), lambda: x.resize_(1000)):
        with pytest.raises(RuntimeError, match=text):
            resize()
    x.resize_(1)  # fits
    assert x.shape == (1,)


@pytest.mark.parametrize(
    "export",
    [
        lambda x: x.numpy(),
        memoryview,
        lambda x: x.__dlpack__(max_version=(1, 0)),
        lambda x: x.__dlpack__(),
        np.from_dlpack,
        lambda x: weft.frombuffer(x, dtype=weft.float32),
    ],
)
def test_memory_that_is_held_outside_does_not_move(export: Any) -> None:
    x = weft.zeros(4)
    held = export(x)
    assert x.untyped_storage().info().holds >= 1
    with pytest.raises(RuntimeError, match="address is held outside"):
        x.resize_(1 << 20)
    del held
    gc.collect()
    assert x.untyped_storage().info().holds == 0 and x.untyped_storage().resizable()
    x.resize_(1 << 20)


def test_resize() -> None:
    x = weft.arange(6.0)
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_((3,)).tolist() == [0, 1, 2]
    assert x.untyped_storage().nbytes() == 24  # never smaller
    assert x.resize_(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    y = weft.arange(6.0)[2:]
    y.resize_(8)
    assert y.storage_offset() == 2 and y[:4].tolist() == [2, 3, 4, 5]
    assert weft.zeros(2).resize_as_(weft.ones(3, 4)).shape == (3, 4)
    nhwc = weft.empty(0).resize_(2, 3, 4, 5, memory_format=weft.channels_last)
    assert nhwc.is_contiguous(memory_format=weft.channels_last)
    assert weft.zeros(3).resize_(0).tolist() == []
    with pytest.raises(RuntimeError, match="does not require grad"):
        weft.zeros(3, requires_grad=True).resize_(4)
    with pytest.raises(RuntimeError):
        weft.zeros(3).resize_(-1)
    with pytest.raises(RuntimeError):
        weft.zeros(3).resize_(1 << 40, 1 << 40)


def test_a_saved_value_that_was_resized_is_noticed() -> None:
    x, w = weft.ones(3), weft.ones(3, requires_grad=True)
    y = (x * w).sum()
    x.untyped_storage().resize_(1000)
    with pytest.raises(RuntimeError, match=r"in place|in-place|version"):
        y.backward()


# ---- set_, as_strided, view(dtype) ----


def test_set() -> None:
    x, y = weft.arange(6.0).reshape(2, 3), weft.empty(0)
    assert y.set_(x.t()) is y and y.data_ptr() == x.data_ptr() and y.stride() == (1, 3)
    y.set_(x.untyped_storage())
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    y.set_(x.storage(), 1, (2, 2), (3, 1))
    assert y.tolist() == [[1, 2], [4, 5]]
    y[0, 0] = 10
    assert x[0, 1].item() == 10
    assert y.set_(x.untyped_storage(), storage_offset=4).tolist() == [4, 5]
    assert y.set_().shape == (0,)


@pytest.mark.parametrize(
    "act",
    [
        lambda y, s: y.set_(s, 0, (7,)),
        lambda y, s: y.set_(s, -1, (2,)),
        lambda y, s: y.set_(s, 6, (1,)),
        lambda y, s: y.set_(s, 0, (2, 2), (4, 4)),
        lambda y, s: y.set_(s, 0, (2,), (1 << 62,)),
        lambda y, s: y.set_(s, 0, (2,), (1, 1)),
        lambda y, s: y.set_(weft.zeros(3, dtype=weft.int64)),
        lambda y, s: weft.zeros(3, requires_grad=True).set_(s),
    ],
)
def test_set_stays_inside(act: Any) -> None:
    x, y = weft.arange(6.0), weft.zeros(2)
    with pytest.raises(RuntimeError):
        act(y, x.untyped_storage())
    assert y.tolist() == [0, 0]


def test_misaligned_memory_is_refused_for_wide_dtypes() -> None:
    odd = weft.from_numpy(np.zeros(17, np.uint8)[1:])
    with pytest.raises(RuntimeError, match="aligned to 8 bytes"):
        weft.empty(0, dtype=weft.float64).set_(odd.untyped_storage())
    with pytest.raises(RuntimeError, match="aligned to 4 bytes"):
        odd.view(weft.float32)


def test_as_strided_stays_inside() -> None:
    x = weft.arange(6.0)
    assert x.as_strided((2, 2), (1, 2), 1).tolist() == [[1, 3], [2, 4]]
    for layout in (((7,), (1,), 0), ((2,), (-1,), 0), ((2,), (1 << 62,), 0), ((1,), (1,), -1)):
        with pytest.raises(RuntimeError):
            x.as_strided(*layout)


def test_element_addresses_equal_numpy_for_random_layouts() -> None:
    rng = np.random.default_rng(0)
    base = np.arange(200.0)
    x = weft.from_numpy(base)
    for _ in range(200):
        shape = tuple(int(n) for n in rng.integers(0, 4, rng.integers(0, 4)))
        strides = tuple(int(n) for n in rng.integers(0, 12, len(shape)))
        offset = int(rng.integers(0, 60))
        theirs = np.lib.stride_tricks.as_strided(
            base[offset:], shape, tuple(8 * step for step in strides)
        )
        mine = x.as_strided(shape, strides, offset)
        assert mine.tolist() == theirs.tolist()
        if theirs.size:
            assert mine.data_ptr() == theirs.ctypes.data


def test_view_of_another_dtype() -> None:
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0]])
    bits = x.view(weft.int32)
    assert bits.tolist() == x.numpy().view(np.int32).tolist()
    assert bits.data_ptr() == x.data_ptr() and bits.dtype is weft.int32
    assert x.view(weft.uint8).shape == (2, 8) and x.view(weft.float64).shape == (2, 1)
    assert x.view(weft.uint8).view(weft.float32).tolist() == x.tolist()
    assert x[:, 1:].view(weft.int16).tolist() == x[:, 1:].numpy().view(np.int16).tolist()
    assert weft.tensor(1.0).view(weft.int32).item() == 0x3F800000
    assert x.view(weft.float32).tolist() == x.tolist() and x.view(dtype=weft.int32).shape == (2, 2)
    assert x.view(4).shape == (4,) and x.view(size=(4, 1)).shape == (4, 1)
    assert x.view(1, 1, 1, 1, 1, 1, 1, 2, 2).dim() == 9
    for bad in (
        lambda: weft.tensor(1.0).view(weft.int16),
        lambda: x.t().view(weft.int16),
        lambda: weft.zeros(3).view(weft.float64),
        lambda: weft.zeros(4)[1:3].view(weft.float64),
        lambda: weft.zeros(2, 3)[:, :2].view(weft.float64),
    ):
        with pytest.raises(RuntimeError, match=r"^view: expected "):
            bad()


# ---- in files ----


def written(library, zipped):
    """Storages of every kind in a file of a library."""
    halves = library.tensor([1.0, -2.0], dtype=library.float16)
    shared = library.arange(4)
    values = [halves.storage(), shared.storage(), shared, library.FloatStorage(), 3]
    if zipped:  # PyTorch cannot read bytes in the old format
        values.append(library.ones(2).untyped_storage())
    file = io.BytesIO()
    library.save(values, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def read(library, data, zipped):
    halves, longs, tensor, empty, *rest = library.load(io.BytesIO(data))
    assert [type(s) for s in (halves, longs, empty)] == [library.storage.TypedStorage] * 3
    assert halves.dtype == library.float16 and halves.tolist() == [1.0, -2.0]
    longs[0] = 7
    assert tensor.tolist() == [7, 1, 2, 3] and len(empty) == 0
    if zipped:
        assert rest[1].dtype == library.uint8 and rest[1].tolist() == [0, 0, 128, 63] * 2


@pytest.mark.parametrize("zipped", [True, False])
def test_storages_in_files(zipped):
    read(weft, written(weft, zipped), zipped)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("zipped", [True, False])
def test_storages_in_files_are_pytorchs(zipped):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    read(torch, written(weft, zipped), zipped)
    read(weft, written(torch, zipped), zipped)


def test_a_storage_in_a_file_has_one_dtype():
    x = weft.ones(3)
    with pytest.raises(RuntimeError, match="save: expected a storage and the tensors over it"):
        weft.save([x, x.untyped_storage()], io.BytesIO())
    with pytest.raises(TypeError, match="save: expected a storage on the CPU, got one on meta"):
        weft.save(weft.ones(2, device="meta").untyped_storage(), io.BytesIO())


@pytest.mark.parity
def test_tensors_of_storages_beside_pytorch() -> None:
    """Constructors take a storage as memory, not as a sequence of numbers: bytes in any dtype, elements in theirs."""
    torch = pytest.importorskip("torch")

    def outcome(lib: Any, make: Any) -> Any:
        x = lib.arange(6.0)
        try:
            made = make(lib, x, x.untyped_storage())
        except Exception as error:
            return type(error).__name__
        shares = made.data_ptr() == x.data_ptr()
        return str(made.dtype), made.tolist(), shares, made.requires_grad

    for make in (
        lambda lib, x, s: lib.tensor(s),
        lambda lib, x, s: lib.tensor(s, dtype=lib.float32),
        lambda lib, x, s: lib.tensor(s, dtype=lib.float64, requires_grad=True),
        lambda lib, x, s: lib.tensor(
            x.view(lib.uint8)[:7].clone().untyped_storage(), dtype=lib.int16
        ),
        lambda lib, x, s: lib.tensor(x.storage()),
        lambda lib, x, s: lib.tensor(x.storage(), dtype=lib.float32),
        lambda lib, x, s: lib.tensor(x.storage(), dtype=lib.float64),
        lambda lib, x, s: lib.tensor([s], dtype=lib.uint8),
        lambda lib, x, s: lib.as_tensor(s, dtype=lib.int32),
        lambda lib, x, s: lib.as_tensor(x.storage()),
        lambda lib, x, s: lib.asarray(s, dtype=lib.uint8),
        lambda lib, x, s: x.new_tensor(s),
        lambda lib, x, s: lib.Tensor(s),
        lambda lib, x, s: lib.Tensor(x[1:3].double().storage()),
        lambda lib, x, s: lib.IntTensor(s),
        lambda lib, x, s: x.new(s),
    ):
        assert outcome(weft, make) == outcome(torch, make)
