"""PickleWriter: pickles tensors, containers and objects as PyTorch does, in protocol 2.

Tensors and plain containers are what `load` and `torch.load(weights_only=True)` accept as they are.
Objects of other classes name them, and whoever loads them has to allow these names.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from struct import pack
from types import FunctionType
from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft.nn.parameter import Buffer, Parameter
from weft.serialization.globals import STORAGE_DTYPES
from weft.serialization.names import global_name
from weft.serialization.reduced import reduce
from weft.storage import TypedStorage, UntypedStorage

nested = lazy.module("weft.serialization.nested")
_MOST_BITS = 8 * 255 - 1  # of an integer that readers take
_Pickler: Any = pickle._Pickler  # stubs do not have the methods that write the kinds of values


class PickleWriter(_Pickler):
    """One pickle. After `dump`, `storages` has the uint8 tensors its persistent ids number."""

    #: the names of storages by their dtypes; those of others are bytes
    storage_names: ClassVar[dict[Any, str]] = {
        dtype: f"{name}Storage" for name, dtype in STORAGE_DTYPES.items()
    }

    def __init__(self) -> None:
        self.storages: list[Tensor] = []
        self._keys: dict[int, int] = {}  # storage -> its place in storages
        self._dtypes: list[Any] = []  # of each storage; None for bytes
        super().__init__(io.BytesIO(), 2)
        self._out = bytearray(b"\x80\x02")
        self.write = self._out.extend  # protocol 2 has no frames

    def dump(self, value: Any) -> bytes:
        """The pickle of a value. TypeError names what cannot be saved."""
        try:
            self.save(value)
        except RecursionError:
            raise ValueError("save: expected containers nested less deeply") from None
        return bytes(self._out + b".")

    def save(self, value: Any, save_persistent_id: bool = True) -> None:
        """Writes a value, or where it was written before."""
        if id(value) in self.memo:
            return self._get(id(value))
        writer = _WRITERS.get(type(value), PickleWriter._reduced)
        if isinstance(value, Tensor) and (value.is_nested or value.layout is not _C.strided):
            writer = PickleWriter._parts
        writer(self, value)

    # ---- the memo: by the ids of objects, and the texts of globals ----

    def _get(self, key: Any) -> None:
        place = self.memo[key][0]
        self._out += b"h%c" % place if place < 256 else b"j" + pack("<L", place)

    def _put(self, key: Any, value: Any = None) -> None:
        place = len(self.memo)
        self.memo[key] = place, value
        self._out += b"q%c" % place if place < 256 else b"r" + pack("<L", place)

    def memoize(self, value: Any) -> None:
        """Remembers a value, which keeps its id taken."""
        self._put(id(value), value)

    # ---- plain values that protocol 2 has otherwise, or not ----

    def _int(self, value: int) -> None:
        if value.bit_length() > _MOST_BITS:
            size = value.bit_length() // 8 + 1
            raise ValueError(f"save: expected integers of at most 255 bytes, got {size}")
        self.save_long(value)

    def _bytes(self, value: bytes) -> None:
        self._call("_codecs encode", value.decode("latin-1"), "latin1")
        self.memoize(value)

    def _bytearray(self, value: bytearray) -> None:
        self._call("__builtin__ bytearray", value.decode("latin-1"), "latin-1")
        self.memoize(value)

    # ---- what has a name ----

    def _global(self, name: str) -> None:
        if name in self.memo:
            self._get(name)
        else:
            self._out += b"c" + name.replace(" ", "\n").encode() + b"\n"
            self._put(name)

    def _call(self, name: str, *arguments: Any) -> None:
        self._global(name)
        self.save_tuple(arguments)
        self._out += b"R"

    def _reduced(self, value: Any) -> None:
        parts = reduce(value)
        if parts is None:
            self._named(value)
        else:
            self.save_reduce(*parts, obj=value)

    def _named(self, value: Any) -> None:
        """A class or function, by its name."""
        module, name = global_name(value)
        self._global(f"{'__builtin__' if module == 'builtins' else module} {name}")

    def _dtype(self, value: Any) -> None:
        self._global(repr(value).replace(".", " "))

    def _device(self, value: Any) -> None:
        index = () if value.index is None else (value.index,)
        self._call("torch device", value.type, *index)

    def _layout(self, value: Any) -> None:
        self._call("torch.serialization _get_layout", repr(value))

    def _size(self, value: Any) -> None:
        self._call("torch Size", tuple(value))
        self.memoize(value)

    # ---- tensors ----

    def _tensor(self, value: Tensor) -> None:
        state = dict(vars(value))
        if state:
            self._global("torch._tensor _rebuild_from_type_v2")
            self._out += b"("
            name, arguments = self._rebuilding(value)
            self._global(name)
            self._global("torch Tensor")
            arguments()
            self.save_dict(state)
            self._out += b"tR"
        else:
            name, arguments = self._rebuilding(value)
            self._global(name)
            arguments()
            self._out += b"R"
        self.memoize(value)

    def _parameter(self, value: Parameter) -> None:
        state = dict(vars(value))
        self._global("torch._utils _rebuild_parameter" + ("_with_state" if state else ""))
        self._out += b"("
        self.save(value.data)
        self.save_bool(value.requires_grad)
        self._call("collections OrderedDict")
        if state:
            self.save_dict(state)
        self._out += b"tR"
        self.memoize(value)

    def _buffer(self, value: Buffer) -> None:
        self.save(value.data)  # what keeps it says that it is a buffer

    def _parts(self, value: Any) -> None:
        if value.is_nested:
            return nested.write(self, value)
        parts = [part for _, part in value._pattern.parts()]
        order = (value.is_coalesced(),) if value.is_sparse else ()
        arguments = (*parts, value._values(), value.shape, *order)
        self._call("torch._utils _rebuild_sparse_tensor", value.layout, arguments)
        self.memoize(value)

    def _rebuilding(self, value: Tensor) -> tuple[str, Callable[[], None]]:
        """The function that rebuilds a tensor, and what writes its tuple of arguments."""
        if value.is_meta:
            layout = (value.dtype, tuple(value.shape), value.stride(), value.requires_grad)
            name = "torch._utils _rebuild_meta_tensor_no_storage"
            return name, lambda: self.save_tuple(layout)
        if value.device.type != "cpu":
            raise TypeError(f"save: expected a tensor on the CPU, got one on {value.device}")
        # PyTorch has no negative strides.
        if min(value.stride(), default=0) < 0:
            value = value.detach().clone(memory_format=_C.contiguous_format)
        key = self._storage_key(value)
        named = self._dtypes[key] == value.dtype
        name = "torch._utils _rebuild_tensor_v" + ("2" if named else "3")

        def arguments() -> None:
            self._out += b"("
            self._storage(key, value.dtype if named else None)
            self._int(value.storage_offset())
            self.save_tuple(tuple(value.shape))
            self.save_tuple(value.stride())
            self.save_bool(value.requires_grad)
            self._call("collections OrderedDict")
            if not named:
                self._dtype(value.dtype)
            self._out += b"t"

        return name, arguments

    def _storage_key(self, tensor: Tensor) -> int:
        """The number of a tensor's storage.

        PyTorch gives a storage one dtype, the first it is named with; tensors of other dtypes over
        it carry their own. Bytes that are no whole elements, and dtypes without a name, stay bytes.
        """
        identity = tensor._storage_key()
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = len(self.storages)
            whole = _C._storage_view(tensor)
            named = tensor.dtype in self.storage_names and whole.numel() % tensor.itemsize == 0
            self.storages.append(whole)
            self._dtypes.append(tensor.dtype if named else None)
        return key

    def _bare(self, storage: TypedStorage | UntypedStorage) -> None:
        """A storage itself. PyTorch reads it with the dtype that its key has first."""
        if storage.device.type != "cpu":
            raise TypeError(f"save: expected a storage on the CPU, got one on {storage.device}")
        dtype = storage.dtype if isinstance(storage, TypedStorage) else _C.uint8
        key = self._storage_key(storage._view())
        if self._dtypes[key] != dtype:
            raise RuntimeError(
                "save: expected a storage and the tensors over it with one dtype, got "
                f"{self._dtypes[key]} and {dtype}"
            )
        self._storage(key, dtype if isinstance(storage, TypedStorage) else None)

    def _storage(self, key: int, dtype: Any) -> None:
        """The persistent id of a storage, as one of elements or (None) of bytes."""
        size = self.storages[key].numel()
        self._out += b"("
        self.save("storage")
        if dtype is None:
            self._global("torch.storage UntypedStorage")
        else:
            self._global(f"torch {self.storage_names[dtype]}")
        self.save(str(key))
        self.save("cpu")
        self._int(size if dtype is None else size // dtype.itemsize)
        self._out += b"tQ"


_WRITERS: dict[type, Callable[[PickleWriter, Any], None]] = {
    **_Pickler.dispatch,
    type: PickleWriter._reduced,
    FunctionType: PickleWriter._reduced,
    int: PickleWriter._int,
    bytes: PickleWriter._bytes,
    bytearray: PickleWriter._bytearray,
    _C.dtype: PickleWriter._dtype,
    _C.device: PickleWriter._device,
    _C.layout: PickleWriter._layout,
    _C.Size: PickleWriter._size,
    Tensor: PickleWriter._tensor,
    Parameter: PickleWriter._parameter,
    Buffer: PickleWriter._buffer,
    TypedStorage: PickleWriter._bare,
    UntypedStorage: PickleWriter._bare,
}
