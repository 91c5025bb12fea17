"""Memory that is really shared: one test for each thing the house promises about it.

Who owns the memory, which addresses agree, who goes first, who may write, what is refused, and that
reference counts return to their start.
"""

from __future__ import annotations

import array as stdlib_array
import ctypes
import gc
import mmap
import subprocess
import sys
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft
from weft import _C
from weft._ops.schema import MISSING, Arg, Schema, parse

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
# Every way in that shares an array.
ENTRIES = {
    "from_numpy": weft.from_numpy,
    "as_tensor": weft.as_tensor,
    "asarray": weft.asarray,
    "from_dlpack": weft.from_dlpack,
}
# Every way out that shares a tensor with NumPy.
EXITS = {
    "numpy": lambda x: x.numpy(),
    "__array__": np.asarray,
    "buffer": lambda x: np.asarray(memoryview(x)),
    "dlpack": np.from_dlpack,
}
entries = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
exits = pytest.mark.parametrize("leave", EXITS.values(), ids=EXITS)


def address(a: np.ndarray) -> int:
    return a.ctypes.data


def read_only(*values: float) -> np.ndarray:
    a = np.array(values, np.float64)
    a.flags.writeable = False
    return a


# ---- addresses, and writes in both directions ----


@entries
@pytest.mark.parametrize("name", DTYPES)
def test_entry_shares(entry: Callable[[Any], weft.Tensor], name: str) -> None:
    a = np.array([[0, 1, 1], [1, 0, 1]]).astype(name)
    x = entry(a)
    assert x.data_ptr() == address(a) and x.dtype is getattr(weft, name)
    assert (tuple(x.shape), x.tolist()) == (a.shape, a.tolist())
    a[0, 0] = 1
    assert x[0, 0].item() == a[0, 0]
    x[1, 1] = 1
    assert a[1, 1] == 1


@exits
@pytest.mark.parametrize("name", [n for n in DTYPES if "complex" not in n])
def test_exit_shares(leave: Callable[[Any], np.ndarray], name: str) -> None:
    x = weft.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(weft, name))
    a = leave(x)
    assert address(a) == x.data_ptr() and a.dtype == np.dtype(name)
    assert a.tolist() == x.tolist()
    x[0, 0] = 1
    assert a[0, 0] == 1
    if a.flags.writeable:  # NumPy makes arrays of older DLPack read-only
        a[1, 1] = 1
        assert x[1, 1].item() == 1


@entries
@exits
def test_there_and_back_is_the_same_memory(entry: Any, leave: Any) -> None:
    a = np.arange(6.0).reshape(2, 3)
    assert address(leave(entry(a))) == address(a)


def test_copies_are_copies() -> None:
    a = np.ones(3)
    for x in (
        weft.tensor(a),
        weft.asarray(a, copy=True),
        weft.from_dlpack(a, copy=True),
        weft.as_tensor(a, dtype=weft.float32),
    ):
        assert x.data_ptr() != address(a)
        x += 1
    x = weft.ones(3)
    for b in (np.array(x), x.__array__(copy=True), np.asarray(x, np.float64)):
        assert address(b) != x.data_ptr()
        b[:] = 5
    assert a.tolist() == x.tolist() == [1, 1, 1]


def test_asarray_that_must_not_copy() -> None:
    a = np.ones(3)
    assert weft.asarray(a, copy=False).data_ptr() == address(a)
    with pytest.raises(ValueError, match="asarray: expected data that can be shared, got list"):
        weft.asarray([1.0], copy=False)


def test_array_protocol_refuses_a_gradient() -> None:
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        np.asarray(weft.ones(2, requires_grad=True))
    assert np.asarray(weft.ones(2, requires_grad=True).detach()).tolist() == [1, 1]


# ---- strides ----

VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "reversed": lambda a: a[::-1],
    "reversed columns": lambda a: a[:, ::-2],
    "both reversed": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "block": lambda a: a[1:, 1:3],
    "every other": lambda a: a[::2, ::3],
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "one element": lambda a: a[1, 1, ...],
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, 3, 1),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@entries
@pytest.mark.parametrize("name", ["uint8", "int16", "float32", "float64", "complex128"])
def test_byte_strides_become_element_strides(view: Any, entry: Any, name: str) -> None:
    a = view(np.arange(24).astype(name).reshape(4, 6))
    if entry is weft.from_dlpack and not a.flags.writeable and NUMPY < (2, 1):
        with pytest.raises(BufferError, match="readonly"):  # such a NumPy exports none
            entry(a)
        return
    x = entry(a)
    assert x.data_ptr() == address(a) and x.tolist() == a.tolist()
    for size, mine, theirs in zip(a.shape, x.stride(), a.strides):
        assert size == 1 or mine * a.itemsize == theirs
    assert x.is_read_only() is not a.flags.writeable
    assert (x + 1).tolist() == (a + 1).tolist()


NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])


def test_negative_strides_write_through() -> None:
    a = np.arange(4.0)
    x = weft.from_numpy(a[::-1])
    x[0] = 30
    x[1:] *= 10
    assert a.tolist() == [0, 10, 20, 30]
    assert x.numpy().strides == (-8,) and address(x.numpy()) == address(a[::-1])


def test_no_consumer_meets_negative_strides() -> None:
    """PyTorch 2.13 ends the process on them."""
    x = weft.from_numpy(np.arange(4.0)[::-1])
    with pytest.raises(BufferError, match=r"expected strides of at least 0, got \(-1,\)"):
        x.__dlpack__(max_version=(1, 0))
    assert weft.from_dlpack(x.__dlpack__(copy=True)).tolist() == [3, 2, 1, 0]
    assert weft.from_dlpack(x).data_ptr() == x.data_ptr()


# ---- lifetime ----


@entries
def test_array_goes_first(entry: Any) -> None:
    a = np.arange(3.0)
    gone = weakref.ref(a)
    x = entry(a)[1:]
    del a
    gc.collect()
    assert x.tolist() == [1, 2] and gone() is not None
    del x
    gc.collect()
    assert gone() is None


@exits
def test_tensor_goes_first(leave: Any) -> None:
    before = weft.memory.stats()["bytes_in_use"]
    x = weft.arange(300_000.0)
    a = leave(x)[2:5]
    del x
    gc.collect()
    assert weft.memory.stats()["bytes_in_use"] >= before + 1_200_000
    assert a.tolist() == [2, 3, 4]
    del a
    gc.collect()
    assert weft.memory.stats()["bytes_in_use"] <= before + 1000


@entries
def test_reference_counts_return(entry: Any) -> None:
    a = np.arange(3.0)
    start = sys.getrefcount(a)
    for _ in range(3):
        x = entry(a)
        views = [x[1:], x.view(3, 1), x.numpy()]
        assert sys.getrefcount(a) > start
        del x, views
        gc.collect()
        assert sys.getrefcount(a) == start


@exits
def test_wrapper_counts_return(leave: Any) -> None:
    x = weft.ones(3)
    start, references = sys.getrefcount(x), x.untyped_storage().info().references
    a = leave(x)
    del a
    gc.collect()
    assert sys.getrefcount(x) == start
    assert x.untyped_storage().info().references == references


def drop_without_the_gil(capsule: Any) -> None:
    """Takes a DLPack capsule as a consumer would, and calls its deleter with the GIL released."""
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = api.PyCapsule_GetPointer(capsule, b"dltensor")
    used = b"used_dltensor"
    KEPT.append(used)  # a capsule does not copy its name
    api.PyCapsule_SetName(capsule, used)
    # DLManagedTensor: a DLTensor of 48 bytes, the context, the deleter. CFUNCTYPE releases the GIL.
    deleter = ctypes.cast(pointer + 56, ctypes.POINTER(ctypes.c_void_p))[0]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(pointer)


KEPT: list[bytes] = []


def test_last_reference_dropped_without_the_gil() -> None:
    a = np.arange(3.0)
    start = sys.getrefcount(a)
    capsule = weft.from_numpy(a).__dlpack__()  # now only the capsule holds the array
    assert sys.getrefcount(a) == start + 1
    thread = threading.Thread(target=drop_without_the_gil, args=(capsule,))
    thread.start()
    thread.join()
    assert sys.getrefcount(a) == start


def test_last_reference_dropped_by_backward() -> None:
    a = np.ones(3, np.float32)
    start = sys.getrefcount(a)
    weight = weft.ones(3, requires_grad=True)
    loss = (weight * weft.from_numpy(a)).sum()
    assert sys.getrefcount(a) == start + 1
    loss.backward()  # runs without the GIL and frees what it saved
    assert sys.getrefcount(a) == start


def test_many_threads_share_and_drop() -> None:
    a = np.ones(4)
    start = sys.getrefcount(a)

    def work() -> None:
        for _ in range(500):
            weft.from_dlpack(weft.from_numpy(a)[1:]).numpy()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrefcount(a) == start


# ---- read-only memory ----


def overloads(name: str) -> tuple[str, ...]:
    return getattr(getattr(_C._aten, name, None), "overloads", ())


# t_ and the like: they change the layout, not the memory.
IN_PLACE_VIEWS = frozenset(
    name
    for name in dir(_C._aten)
    if name.endswith("_") and any("(Tensor(a) self" in text for text in overloads(name[:-1]))
)


def mutating() -> Iterator[tuple[str, Schema, Arg]]:
    """Every schema of the table that writes into an argument: in-place forms and `out=`."""
    for name in sorted(dir(_C._aten)):
        if name in IN_PLACE_VIEWS:
            continue
        for text in overloads(name):
            schema = parse(text)
            for arg in schema.args:
                if arg.alias.endswith("!"):
                    yield text, schema, arg


MUTATING = list(mutating())
SHAPES = ((2, 2), (4,), (2,), (), (2, 2, 2), (1, 1), (3,))
OUT_SHAPES = (*SHAPES, (4, 2), (1, 2, 2))

RANKS = {"mat": 2, "vec1": 1, "vec2": 1, "batch1": 3, "batch2": 3}  # whatever the others have


def value_for(arg: Arg, dtype: Any, shape: tuple[int, ...]) -> Any:
    if arg.type.startswith("Tensor"):
        kind = {"index": weft.int64, "indices": weft.int64, "mask": weft.bool}
        kind["condition"] = weft.bool
        if arg.type.endswith("[]"):
            made = weft.zeros(shape, dtype=kind.get(arg.name, dtype))
            return (made[:1] if arg.name == "indices" and shape else made,)
        scalar = arg.name == "value" or (arg.name == "weight" and not shape)
        if scalar or arg.name == "vec":
            shape = shape[: 0 if scalar else 1]
        if arg.name in RANKS:
            shape = shape[:1] * RANKS[arg.name]
        make = weft.zeros if arg.name == "index" else weft.ones
        return make(shape, dtype=kind.get(arg.name, dtype))
    values = {"Scalar": 1, "float": 0.5, "int": 0, "str": "none", "bool": False, "ScalarType": None}
    special = {"rounding_mode": "floor", "to": 5, "dim": 0, "from": 0, "std": 1.0, "lambd": 1.0}
    special |= {
        "reduce": "add",
        "min": 0,
        "max": 2,
        "high": 5,
        "num_samples": 1,
        "k": 1,
        "p": 1 if arg.type == "int" else 0.5,
        "size": 1,
        "step": 1,
    }
    if arg.type.startswith("int["):
        return (0,)
    if arg.type == "ScalarType":
        return dtype
    return special.get(arg.name, values.get(arg.type.rstrip("?")))


def attempt(schema: Schema, target: Arg, dtype: Any, shape: Any, memory: Any) -> str:
    """Calls the operator with read-only memory as the argument it writes; the error's text."""
    memory.flags.writeable = False
    weft_dtype = getattr(weft, dtype)
    args, kwargs, skipped = [], {}, False
    for arg in schema.args:
        if arg is target:
            value: Any = weft.from_numpy(memory)
        elif arg.kwarg_only and arg.alias.endswith("!"):
            value = weft.empty(0, dtype=value_for(arg, weft_dtype, shape).dtype)
        elif arg.default is not MISSING and arg.name not in ("min", "max"):
            skipped = True
            continue
        elif arg.name == "reduce" and schema.name.startswith("scatter_reduce"):
            value = "sum"
        else:
            value = shape if arg.type == "int[]" and arg.name == "size" else None
            value = value_for(arg, weft_dtype, shape) if value is None else value
        if arg.kwarg_only or skipped:
            kwargs[arg.name] = value
        else:
            args.append(value)
    outs = [arg.name for arg in schema.args if arg.kwarg_only and arg.alias.endswith("!")]
    if len(outs) > 1:
        kwargs["out"] = tuple(kwargs.pop(name) for name in outs)
    try:
        getattr(_C._aten, schema.name)(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        assert (memory == 1).all(), f"{schema.name} wrote before it refused"
        return str(error)
    pytest.fail(f"{schema.name} wrote into read-only memory")


@pytest.mark.parametrize(
    ("schema", "target"), [row[1:] for row in MUTATING], ids=[row[0] for row in MUTATING]
)
def test_every_writer_refuses_read_only_memory(schema: Schema, target: Arg) -> None:
    in_place = target.name == "self"
    seen = []
    for dtype in ("float64", "int64", "bool", "complex128", "int8"):
        for shape in SHAPES:
            for out_shape in (shape,) if in_place else OUT_SHAPES:
                # Results that are answers, indices or exponents have dtypes of their own.
                for written in (dtype,) if in_place else (dtype, "bool", "int64", "int32"):
                    text = attempt(schema, target, dtype, shape, np.ones(out_shape, written))
                    if "read-only" in text:
                        return
                    seen.append(text)
    pytest.fail(f"no call got as far as writing: {sorted(set(seen))}")


@pytest.mark.parametrize("name", sorted(IN_PLACE_VIEWS))
def test_in_place_views_leave_read_only_memory_alone(name: str) -> None:
    args = {"squeeze_": (), "unsqueeze_": (0,), "t_": (), "transpose_": (0, 1)}
    a = read_only(1, 2, 3, 4)
    x = weft.from_numpy(a.reshape(2, 2))
    if name in args:
        getattr(x, name)(*args[name])
    assert x.data_ptr() == address(a) and x.is_read_only() and a.tolist() == [1, 2, 3, 4]


def test_the_table_has_writers() -> None:
    assert len(MUTATING) > 200


HAND_WRITTEN: dict[str, Callable[[weft.Tensor], Any]] = {
    "item assignment": lambda x: x.__setitem__(0, 5),
    "slice assignment": lambda x: x.__setitem__(slice(1, None), 5),
    "mask assignment": lambda x: x.__setitem__(x > 0, 5),
    "index assignment": lambda x: x.__setitem__([0, 1], 5),
    "tensor assignment": lambda x: x.__setitem__(..., weft.zeros(3)),
    "+=": lambda x: x.__iadd__(1),
    "-=": lambda x: x.__isub__(1),
    "*=": lambda x: x.__imul__(2),
    "/=": lambda x: x.__itruediv__(2),
    "//=": lambda x: x.__ifloordiv__(2),
    "%=": lambda x: x.__imod__(2),
    "**=": lambda x: x.__ipow__(2),
    "view": lambda x: x.view(3, 1).add_(1),
    "narrowed": lambda x: x[1:].mul_(2),
    "reversed": lambda x: x[::2].zero_(),
    "detached": lambda x: x.detach().zero_(),
    "data": lambda x: x.data.zero_(),
    "other dtype": lambda x: x.view(weft.uint8).zero_(),
    "iteration": lambda x: next(iter(x)).add_(1),
    "unbind": lambda x: x.unbind()[0].add_(1),
    "split": lambda x: x.split(1)[0].add_(1),
    "set_": lambda x: weft.zeros(3, dtype=weft.float64).set_(x).add_(1),
    "again from array": lambda x: weft.from_numpy(x.numpy()).add_(1),
    "again from buffer": lambda x: weft.frombuffer(x, dtype=weft.float64).add_(1),
    "again from DLPack": lambda x: weft.from_dlpack(x.__dlpack__(max_version=(1, 0))).add_(1),
    "storage byte": lambda x: x.untyped_storage().__setitem__(0, 5),
    "storage fill_": lambda x: x.untyped_storage().fill_(0),
    "storage copy_": lambda x: x.untyped_storage().copy_(weft.UntypedStorage(24)),
    "storage element": lambda x: x.storage().__setitem__(0, 5.0),
    "init": lambda x: weft.nn.init.zeros_(x),
    "optimizer": lambda x: step(x),
    "resize_": lambda x: x.resize_(100).zero_(),
}


def step(x: weft.Tensor) -> None:
    x.requires_grad_()
    x.grad = weft.ones_like(x)
    weft.optim.SGD([x], lr=1.0).step()


@pytest.mark.parametrize("write", HAND_WRITTEN.values(), ids=HAND_WRITTEN)
def test_every_other_way_refuses_read_only_memory(write: Any) -> None:
    a = read_only(1, 2, 3)
    with pytest.raises(RuntimeError, match=r"read-only|memory of somebody else"):
        write(weft.from_numpy(a))
    assert a.tolist() == [1, 2, 3]


def test_read_only_memory_leaves_read_only() -> None:
    x = weft.from_numpy(read_only(1, 2, 3))
    assert not x.numpy().flags.writeable and not np.asarray(x).flags.writeable
    assert memoryview(x).readonly
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()  # the legacy capsule cannot say so
    with pytest.raises((BufferError, TypeError), match=r"read-only|not writable"):
        (ctypes.c_char * 8).from_buffer(x)


def test_read_only_sources() -> None:
    assert weft.frombuffer(b"1234", dtype=weft.uint8).is_read_only()
    assert weft.asarray(memoryview(b"12345678"), dtype=weft.int32).is_read_only()
    with mmap.mmap(-1, 4096, access=mmap.ACCESS_READ) as pages:
        x = weft.frombuffer(pages, dtype=weft.int64)
        assert x.is_read_only() and x.shape == (512,)
        del x
    if NUMPY >= (2, 1):
        assert weft.from_dlpack(read_only(1)).is_read_only()


def test_fault_of_pytorch_writable_alias_of_a_read_only_array() -> None:
    """PyTorch 2.13 hands out a writable tensor over such an array, with a warning at most."""
    a = read_only(1, 2, 3)
    for entry in (weft.from_numpy, weft.as_tensor, weft.asarray):
        x = entry(a)
        with pytest.raises(RuntimeError, match="read-only"):
            x[0] = 5
    if NUMPY >= (2, 1):
        with pytest.raises(RuntimeError, match="read-only"):
            weft.from_dlpack(a)[0] = 5
    assert a.tolist() == [1, 2, 3]


def test_fault_of_pytorch_abort_on_negative_strides() -> None:
    """`from_dlpack(np.arange(4.)[::-1])` ends PyTorch 2.13's process. In one of its own, to be sure."""
    program = (
        "import numpy as np, weft; x = weft.from_dlpack(np.arange(4.)[::-1]); print(x.tolist()); "
        "x[0] = 9; print(x.numpy()[::-1].tolist(), x.stride())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[3.0, 2.0, 1.0, 0.0]\n[0.0, 1.0, 2.0, 9.0] (-1,)\n", done.stderr


# ---- what is refused ----

REFUSED: dict[str, tuple[Callable[[], np.ndarray], str]] = {
    "byte order": (lambda: np.zeros(2, "<f4" if sys.byteorder == "big" else ">f4"), "byte order"),
    "odd strides": (lambda: np.zeros(4, [("a", "i1"), ("b", "<f4")])["b"], "multiples of the item"),
    "objects": (lambda: np.array([None, 1]), "dtype object"),
    "strings": (lambda: np.array(["a"]), "dtype <U1"),
    "records": (lambda: np.zeros(2, [("a", "i4")]), "dtype"),
    "dates": (lambda: np.array(["2020"], "datetime64[D]"), "dtype datetime64"),
    "long double": (lambda: np.zeros(2, np.longdouble), "dtype"),
    "unaligned": (lambda: np.zeros(17, np.uint8)[1:].view(np.float64), "aligned to 8 bytes"),
}


@pytest.mark.parametrize(("make", "text"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("name", ["from_numpy", "as_tensor", "asarray"])
def test_refused_arrays(make: Any, text: str, name: str) -> None:
    a = make()
    start = sys.getrefcount(a)
    with pytest.raises((TypeError, ValueError), match=text) as caught:
        getattr(weft, name)(a)
    assert str(caught.value).startswith(f"{name}: expected ")
    del caught
    gc.collect()
    assert sys.getrefcount(a) == start


@pytest.mark.parametrize("case", ["byte order", "objects", "odd strides"])
def test_refused_through_dlpack(case: str) -> None:
    with pytest.raises((BufferError, TypeError, ValueError)):
        weft.from_dlpack(REFUSED[case][0]())


# ---- buffers ----


def test_frombuffer_holds_and_lets_go() -> None:
    data = bytearray(16)
    x = weft.frombuffer(data, dtype=weft.int32, offset=4)
    x[0] = 1
    assert data[4] == 1 and x.shape == (3,)
    with pytest.raises(BufferError):
        data.append(1)
    del x
    gc.collect()
    data.append(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(8),
        lambda: memoryview(bytearray(8)),
        lambda: stdlib_array.array("b", [0] * 8),
        lambda: (ctypes.c_char * 8)(),
        lambda: weft.zeros(8, dtype=weft.uint8),
        lambda: np.zeros(8, np.uint8),
    ],
)
def test_frombuffer_of_every_exporter(make: Any) -> None:
    data = make()
    x = weft.frombuffer(data, dtype=weft.int32)
    x[1] = 0x01020304
    assert bytes(memoryview(data))[4:] == (0x01020304).to_bytes(4, sys.byteorder)


def test_buffer_orders() -> None:
    x = weft.arange(6, dtype=weft.int32).reshape(2, 3)
    assert memoryview(x.t()).f_contiguous and memoryview(x).c_contiguous
    with pytest.raises(BufferError, match="contiguous"):
        zlib.crc32(x.t())
    assert np.asarray(memoryview(x[:, ::2])).tolist() == [[0, 2], [3, 5]]


# ---- capsules ----

VERSIONS = {"legacy": {}, "versioned": {"max_version": (1, 0)}, "newer": {"max_version": (2, 5)}}
versions = pytest.mark.parametrize("options", VERSIONS.values(), ids=VERSIONS)


@versions
def test_capsule_name_and_single_use(options: Any) -> None:
    x = weft.ones(3)
    capsule = x.__dlpack__(**options)
    assert ("dltensor_versioned" in repr(capsule)) is bool(options)
    y = weft.from_dlpack(capsule)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="unused DLPack capsule"):
        weft.from_dlpack(capsule)
    del capsule
    assert y.tolist() == [1, 1, 1]


@versions
def test_unconsumed_capsule_frees(options: Any) -> None:
    a = np.ones(3)
    start = sys.getrefcount(a)
    capsule = weft.from_numpy(a).__dlpack__(**options)
    assert sys.getrefcount(a) == start + 1
    del capsule
    assert sys.getrefcount(a) == start


@versions
def test_consumed_capsule_frees_once(options: Any) -> None:
    a = np.ones(3)
    start = sys.getrefcount(a)
    capsule = weft.from_numpy(a).__dlpack__(**options)
    x = weft.from_dlpack(capsule)
    del capsule
    assert sys.getrefcount(a) == start + 1
    del x
    assert sys.getrefcount(a) == start


def test_dlpack_arguments() -> None:
    x = weft.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    assert "versioned" not in repr(x.__dlpack__(max_version=(0, 8)))
    assert weft.from_dlpack(x.__dlpack__(dl_device=(1, 0))).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="dl_device"):
        x.__dlpack__(dl_device=(2, 0))
    assert weft.from_dlpack(x.__dlpack__(copy=False)).data_ptr() == x.data_ptr()
    assert weft.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    for copy in (None, False):
        assert weft.from_dlpack(x, copy=copy).data_ptr() == x.data_ptr()
    assert weft.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert weft.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    with pytest.raises(AssertionError, match="cuda"):
        weft.from_dlpack(x, device="cuda")
    with pytest.raises(TypeError, match="max_version"):
        x.__dlpack__(max_version=1)


def test_producers_of_before_version_1() -> None:
    class Old:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __dlpack__(self, stream: Any = None) -> Any:
            return self.x.__dlpack__()

    x = weft.ones(3)
    assert weft.from_dlpack(Old(x)).data_ptr() == x.data_ptr()
    assert weft.from_dlpack(Old(x), copy=True).data_ptr() != x.data_ptr()


# ---- PyTorch ----


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in DTYPES if n != "bool"] + ["bfloat16"])
def test_torch_round_trips(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = weft.zeros(2, 3, dtype=getattr(weft, name))
    for view in (x, x.t(), x[1:, ::2], x[0, 0], x.expand(2, 2, 3)):
        t = torch.from_dlpack(view)
        assert t.data_ptr() == view.data_ptr() and t.stride() == view.stride()
        if 0 not in t.stride():
            t.fill_(1)
            assert view.tolist() == t.tolist()
        back = weft.from_dlpack(t)
        assert back.data_ptr() == view.data_ptr() and back.tolist() == view.tolist()
        assert back.dtype is x.dtype


@pytest.mark.parity
def test_torch_lifetimes() -> None:
    torch = pytest.importorskip("torch")
    t = torch.from_dlpack(weft.arange(3.0))  # the tensor is gone
    gc.collect()
    assert t.tolist() == [0, 1, 2]
    x = weft.from_dlpack(torch.arange(3.0))
    gc.collect()
    assert x.tolist() == [0, 1, 2]
    del t
    assert weft.from_numpy(torch.arange(3.0).numpy()).tolist() == [0, 1, 2]
