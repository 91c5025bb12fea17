"""Storages: the bytes under tensors, with an owner, without dtype and shape.

`t.untyped_storage()` gives the bytes, `t.storage()` the same memory counted in elements of the
tensor's dtype. As long as one `UntypedStorage` of a storage lives, asking again gives the same one.
"""

from __future__ import annotations

import copy
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft._tensor.mapped import mapped_bytes

# Moves storages between processes. From its import on, all pickles send handles.
_sharing = lazy.module("weft.multiprocessing.sharing")


class Info(NamedTuple):
    """What a storage is at this moment."""

    address: int
    nbytes: int
    capacity: int  # bytes of the block; more than nbytes after shrinking
    allocator: str | None  # name of the allocator the block is from; None for wrapped memory
    read_only: bool
    shared: bool
    pinned: bool
    foreign: bool  # memory made by somebody else
    holds: int  # how often somebody outside holds the address: arrays, buffers, capsules
    references: int  # tensors and others that keep it alive
    version: int  # writes so far


_live: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


def _bytes_of(data: Any, name: str) -> Tensor:
    """A uint8 tensor of its own over a copy of bytes or of a sequence of ints."""
    if isinstance(data, (list, tuple)):
        return _C.tensor(list(data), dtype=_C.uint8)
    view = memoryview(data)
    if view.nbytes == 0:
        return _C.empty(0, dtype=_C.uint8)
    return _C.frombuffer(view.tobytes(), dtype=_C.uint8).clone()


_S = TypeVar("_S", bound="_Storage")


class _Storage:
    """What both kinds of storages do by their `_view`, a tensor over all elements."""

    __slots__ = ()
    _units: ClassVar[str] = "elements"

    def _view(self) -> Tensor:
        raise NotImplementedError

    def element_size(self) -> int:
        """Bytes of one element."""
        raise NotImplementedError

    def nbytes(self) -> int:
        """Number of bytes."""
        raise NotImplementedError

    def size(self) -> int:
        """Number of elements."""
        return self.nbytes() // self.element_size()

    def __len__(self) -> int:
        return self.size()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._view().tolist()

    def copy_(self: _S, source: _S, non_blocking: bool = False) -> _S:
        """Takes the elements of a storage of the same size, as its own dtype."""
        if len(source) != len(self):
            raise RuntimeError(f"copy_: expected {len(self)} {self._units}, got {len(source)}")
        self._view().copy_(source._view())
        return self

    def cpu(self: _S) -> _S:
        """Itself: it is on the CPU."""
        return self


class UntypedStorage(_Storage):
    """Bytes with an owner. `UntypedStorage(n)` is n new bytes, `UntypedStorage(data)` a copy."""

    __slots__ = ("__weakref__", "_handle")
    _units = "bytes"
    _handle: Tensor  # any tensor over the storage

    def __new__(cls, data: Any = 0, *, device: Any = "cpu") -> UntypedStorage:
        if hasattr(data, "__index__") and not isinstance(data, Tensor):
            handle = _C.empty(operator.index(data), dtype=_C.uint8, device=device)
        else:
            handle = _bytes_of(data, "UntypedStorage")
        return cls._of(handle)

    @classmethod
    def _of(cls, tensor: Tensor) -> UntypedStorage:
        key = tensor._storage_key()
        found = _live.get(key)
        if found is None:
            found = object.__new__(cls)
            found._handle = _C._storage_view(tensor)
            _live[key] = found
        return found

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, as `weft.from_file` maps them."""
        return cls._of(mapped_bytes("from_file", filename, shared, nbytes))

    # ---- what it is ----

    @property
    def filename(self) -> str | None:
        """The file that writes reach; None for other memory than `from_file(shared=True)`."""
        path = _C._mapped_path(self._handle)
        return None if path is None else os.fsdecode(path)

    def info(self) -> Info:
        """Address, sizes, flags and counts in one tuple."""
        return Info(*_C._storage_info(self._handle))

    def data_ptr(self) -> int:
        """Address of the first byte; 0 without bytes."""
        self._handle.data_ptr()  # who knows the address may write
        return self.info().address if self.nbytes() else 0

    def nbytes(self) -> int:
        """Number of bytes."""
        return self.info().nbytes

    def element_size(self) -> int:
        """1: elements are bytes."""
        return 1

    @property
    def device(self) -> Any:
        """Where the bytes are."""
        return self._handle.device

    def is_shared(self) -> bool:
        """Whether the bytes are in memory shared by processes."""
        return self.info().shared

    def share_memory_(self) -> UntypedStorage:
        """Moves the bytes to memory that other processes can map; returns itself.

        Tensors over the storage follow: they keep their elements and change their address. From
        then on sending them through `weft.multiprocessing` sends a handle, and they cannot be
        resized. RuntimeError while somebody outside holds the address, or when memory, space for
        shared memory or descriptors run out.
        """
        _sharing.share(self._handle)
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the bytes are pinned."""
        return self.info().pinned

    def is_read_only(self) -> bool:
        """Whether writing raises. Beyond PyTorch."""
        return self.info().read_only

    def resizable(self) -> bool:
        """Whether `resize_` may succeed: our own memory whose address nobody outside holds."""
        info = self.info()
        return not (info.foreign or info.read_only or info.shared or info.holds)

    def _tensor_of(self, dtype: Any) -> Tensor:
        """A tensor over all elements; for None of int64. What `weft.tensor` gives for a storage."""
        return TypedStorage(wrap_storage=self, dtype=dtype or _C.int64)._view()

    # ---- shared memory, as programs pass it on by themselves ----

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """`size` bytes of zeros in shared memory."""
        return cls._of(_sharing.new_shared(size))

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Moves the bytes to shared memory; its descriptor, which stays the storage's, and size.

        RuntimeError where the storage has no descriptor of its own.
        """
        _C._share(self._handle, False)
        place = _C._shared_place(self._handle)
        if place is None or place[0] < 0:
            raise RuntimeError(
                "_share_fd_cpu_: expected a storage with a descriptor of its own, got one without"
            )
        return place[0], self.nbytes()

    @classmethod
    def _new_shared_fd_cpu(cls, fd: int, size: int) -> UntypedStorage:
        """The storage of a descriptor, which stays the caller's."""
        return cls._of(_C._adopt_descriptor(os.dup(fd), size, False))

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        """Moves the bytes to shared memory with a name; by whom it is found, the name, and size.

        The name is good while a process has the storage, and `_shared_incref` makes it outlive
        this one's until it was used. RuntimeError where the storage has a descriptor instead.
        """
        _C._share(self._handle, True)
        manager, name = _C._shared_name(self._handle)
        return manager.encode(), name.encode(), self.nbytes()

    @classmethod
    def _new_shared_filename_cpu(cls, manager: bytes, name: bytes, size: int) -> UntypedStorage:
        """The storage of a name, in any process of the same user."""
        return cls._of(_C._adopt_name(manager.decode(), name.decode(), size, False))

    def _shared_incref(self) -> UntypedStorage:
        """Keeps a named storage alive until somebody has opened it by name once more."""
        _C._shared_incref(self._handle)
        return self

    def _shared_decref(self) -> UntypedStorage:
        """Takes back a `_shared_incref` whose name nobody will use."""
        _C._shared_decref(self._handle)
        return self

    # ---- the bytes ----

    def _view(self) -> Tensor:
        return _C._storage_view(self._handle)

    def _at(self, index: Any) -> Any:
        if isinstance(index, int):
            length = len(self)
            if not -length <= index < length:
                raise IndexError(
                    f"UntypedStorage: expected an index in [{-length}, {length - 1}], got {index}"
                )
            return index % length
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError(f"UntypedStorage: expected a slice of step 1, got {index.step}")
            return index
        raise TypeError(
            f"UntypedStorage: expected an index of type int or slice, got {type(index).__name__}"
        )

    def __getitem__(self, index: int | slice) -> Any:
        part = self._view()[self._at(index)]
        if isinstance(index, int):
            return part.item()
        return UntypedStorage._of(part.clone())

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(value, UntypedStorage):
            value = value._view()
        elif not isinstance(value, int):
            value = _bytes_of(value, "UntypedStorage")
        elif not 0 <= value <= 255:
            raise ValueError(f"UntypedStorage: expected a byte in [0, 255], got {value}")
        self._view()[self._at(index)] = value

    def __bytes__(self) -> bytes:
        return bytes(self._view()) if self.nbytes() else b""

    def fill_(self, value: int) -> UntypedStorage:
        """Every byte becomes `value`."""
        self[:] = value
        return self

    def clone(self) -> UntypedStorage:
        """The same bytes in memory of its own."""
        return UntypedStorage._of(self._view().clone())

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Changes the size; the common bytes stay, tensors over it follow.

        RuntimeError for memory of somebody else, read-only memory, and memory whose address an
        array, a buffer or a DLPack capsule holds. After shrinking the block stays for tensors that
        reach beyond; it is given back when no tensor is left.
        """
        _C._storage_resize(self._handle, nbytes)
        return self

    # ---- as an object ----

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._key() == other._key()

    def _key(self) -> int:
        return self._handle._storage_key()

    _cdata = property(_key)

    def __hash__(self) -> int:
        return hash(self._key())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:  # tensors over it, in the same deepcopy, share the copy
            memo[id(self)] = UntypedStorage._of(copy.deepcopy(self._handle, memo))
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        return UntypedStorage, (bytes(self),)

    def __repr__(self) -> str:
        lines = "\n".join(f" {byte}" for byte in self.tolist())
        return f"{lines}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


class TypedStorage(_Storage):
    """A storage counted in elements of a dtype: PyTorch's older interface to the same memory.

    `TypedStorage(n)` is n new elements, `TypedStorage(sequence)` a copy, both of the default dtype
    unless dtype is given; `wrap_storage` is memory that there is. RuntimeError for more arguments
    and a negative size, TypeError for what is neither a size nor a sequence.

    >>> weft.TypedStorage([1, 2], dtype=weft.int16).nbytes()
    4
    """

    __slots__ = ("_untyped_storage", "dtype")

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: Any = None,
        device: Any = None,
    ) -> None:
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            wrap_storage = UntypedStorage._of(self._elements(args, device))
        self._untyped_storage = wrap_storage

    def _elements(self, args: tuple[Any, ...], device: Any) -> Tensor:
        if len(args) > 1:
            raise RuntimeError(f"TypedStorage: expected a size or a sequence, got {args}")
        given = args[0] if args else 0
        if hasattr(given, "__index__") and not isinstance(given, Tensor):
            return _C.empty(operator.index(given), dtype=self.dtype, device=device)
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise TypeError(
                f"TypedStorage: expected a size or a sequence, got {type(given).__name__}"
            )
        return _C.tensor(list(given), dtype=self.dtype, device=device)

    def _tensor_of(self, dtype: Any) -> Tensor:
        """A tensor over the elements; RuntimeError for another dtype."""
        if dtype not in (None, self.dtype):
            raise RuntimeError(f"tensor: expected a storage of {dtype}, got one of {self.dtype}")
        return self._view()

    def _view(self) -> Tensor:
        size = self.nbytes() // self.element_size()
        return _C._from_storage(self._untyped_storage._handle, self.dtype, (size,), (1,), 0)

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._key()

    @property
    def device(self) -> Any:
        """Where the elements are."""
        return self._untyped_storage.device

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Number of bytes."""
        return self._untyped_storage.nbytes()

    def data_ptr(self) -> int:
        """Address of the first byte; 0 without bytes."""
        return self._untyped_storage.data_ptr()

    def is_shared(self) -> bool:
        """Whether the memory is shared by processes."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """`UntypedStorage.share_memory_`."""
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """`size` elements of zeros in shared memory."""
        untyped = UntypedStorage._new_shared(size * self.element_size())
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def __getitem__(self, index: int | slice) -> Any:
        part = self._view()[self._untyped_storage._at(index) if isinstance(index, slice) else index]
        return part.item() if part.dim() == 0 else part.clone().storage()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._view()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Every element becomes `value`."""
        self._view().fill_(value)
        return self

    def clone(self) -> TypedStorage:
        """The same elements in memory of its own."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def resize_(self, size: int) -> TypedStorage:
        """Changes the number of elements, as `UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.element_size())
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TypedStorage)
            and self.dtype is other.dtype
            and self._untyped_storage == other._untyped_storage
        )

    def __hash__(self) -> int:
        return hash((self._untyped_storage, self.dtype))

    def __repr__(self) -> str:
        lines = "\n".join(f" {value}" for value in self.tolist())
        kind = f"dtype={self.dtype}, device={self.device}"
        return f"{lines}\n[torch.storage.TypedStorage({kind}) of size {len(self)}]"


def _conversion(name: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return getattr(self._view(), name)().storage()

    convert.__name__ = name
    convert.__doc__ = f"The elements as `Tensor.{name}` converts them; itself of that dtype."
    return convert


for _name in (
    *("bfloat16", "bool", "byte", "char", "double"),
    *("float", "half", "int", "long", "short"),
):
    setattr(TypedStorage, _name, _conversion(_name))
