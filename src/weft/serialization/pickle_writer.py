"""PickleWriter: pickles tensors, containers and objects as PyTorch does, in protocol 2.

Tensors and plain containers are what `load` and `torch.load(weights_only=True)` accept as they are.
Objects of other classes name them, and whoever loads them has to allow these names.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft.nn.parameter import Buffer, Parameter
from weft.serialization.globals import STORAGE_DTYPES
from weft.serialization.names import global_name
from weft.serialization.reduced import reduce
from weft.storage import TypedStorage, UntypedStorage

_BATCH = 1000  # items between a mark and their APPENDS or SETITEMS


class PickleWriter:
    """One pickle. After `dump`, `storages` has the uint8 tensors its persistent ids number."""

    #: the names of storages by their dtypes; those of others are bytes
    storage_names: ClassVar[dict[Any, str]] = {
        dtype: f"{name}Storage" for name, dtype in STORAGE_DTYPES.items()
    }

    def __init__(self) -> None:
        self.storages: list[Tensor] = []
        self._keys: dict[int, int] = {}  # storage -> its place in storages
        self._dtypes: list[Any] = []  # of each storage; None for bytes
        self._out = bytearray(b"\x80\x02")
        self._memo: dict[Any, int] = {}  # id of an object, or the text of a global
        self._kept: list[Any] = []  # so that ids stay taken

    def dump(self, value: Any) -> bytes:
        """The pickle of a value. TypeError names what cannot be saved."""
        try:
            self._write(value)
        except RecursionError:
            raise ValueError("save: expected containers nested less deeply") from None
        return bytes(self._out + b".")

    def _write(self, value: Any) -> None:
        writer = _WRITERS.get(type(value), PickleWriter._reduced)
        if isinstance(value, Tensor) and (value.is_nested or value.layout is not _C.strided):
            writer = PickleWriter._parts
        place = self._memo.get(id(value))
        if place is not None:
            self._get(place)
        else:
            writer(self, value)

    # ---- the memo ----

    def _get(self, place: int) -> None:
        self._out += b"h%c" % place if place < 256 else b"j" + struct.pack("<L", place)

    def _put(self, key: Any) -> None:
        place = self._memo[key] = len(self._memo)
        self._out += b"q%c" % place if place < 256 else b"r" + struct.pack("<L", place)

    def _remember(self, value: Any) -> None:
        self._kept.append(value)
        self._put(id(value))

    # ---- plain values ----

    def _constant(self, value: bool | None) -> None:
        self._out += b"N" if value is None else b"\x88" if value else b"\x89"

    def _int(self, value: int) -> None:
        if 0 <= value < 1 << 8:
            self._out += b"K%c" % value
        elif 0 <= value < 1 << 16:
            self._out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self._out += b"J" + struct.pack("<l", value)
        else:
            size = value.bit_length() // 8 + 1
            if size > 255:
                raise ValueError(f"save: expected integers of at most 255 bytes, got {size}")
            self._out += b"\x8a%c" % size + value.to_bytes(size, "little", signed=True)

    def _float(self, value: float) -> None:
        self._out += b"G" + struct.pack(">d", value)

    def _str(self, value: str) -> None:
        raw = value.encode("utf-8", "surrogatepass")
        self._out += b"X" + struct.pack("<L", len(raw)) + raw
        self._remember(value)

    def _bytes(self, value: bytes) -> None:
        self._call("_codecs encode", value.decode("latin-1"), "latin1")
        self._remember(value)

    def _bytearray(self, value: bytearray) -> None:
        self._call("__builtin__ bytearray", value.decode("latin-1"), "latin-1")
        self._remember(value)

    def _complex(self, value: complex) -> None:
        self._call("__builtin__ complex", value.real, value.imag)
        self._remember(value)

    # ---- containers ----

    def _tuple(self, value: tuple[Any, ...]) -> None:
        if not value:
            self._out += b")"
            return
        if len(value) > 3:
            self._out += b"("
        for item in value:
            self._write(item)
        self._out += (b"\x85", b"\x86", b"\x87", b"t")[min(len(value), 4) - 1]
        self._remember(value)

    def _list(self, value: list[Any]) -> None:
        self._out += b"]"
        self._remember(value)
        self._appended(value)

    def _appended(self, items: list[Any]) -> None:
        for start in range(0, len(items), _BATCH):
            self._out += b"("
            for item in items[start : start + _BATCH]:
                self._write(item)
            self._out += b"e"

    def _dict(self, value: dict[Any, Any]) -> None:
        self._out += b"}"
        self._remember(value)
        self._items(value.items())

    def _items(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        items = list(pairs)
        for start in range(0, len(items), _BATCH):
            self._out += b"("
            for key, item in items[start : start + _BATCH]:
                self._write(key)
                self._write(item)
            self._out += b"u"

    def _ordered_dict(self, value: OrderedDict[Any, Any]) -> None:
        self._call("collections OrderedDict")
        self._remember(value)
        self._items(value.items())
        self._state(vars(value))

    def _counter(self, value: Counter[Any]) -> None:
        self._call("collections Counter", dict(value))
        self._remember(value)

    def _set(self, value: set[Any]) -> None:
        self._call("__builtin__ set", list(value))
        self._remember(value)

    # ---- what has a name ----

    def _global(self, name: str) -> None:
        place = self._memo.get(name)
        if place is not None:
            self._get(place)
        else:
            self._out += b"c" + name.replace(" ", "\n").encode() + b"\n"
            self._put(name)

    def _call(self, name: str, *arguments: Any) -> None:
        self._global(name)
        self._tuple(arguments)
        self._out += b"R"

    def _state(self, state: dict[str, Any]) -> None:
        if state:
            self._dict(dict(state))
            self._out += b"b"

    def _reduced(self, value: Any) -> None:
        parts = reduce(value)
        if parts is None:
            return self._named(value)
        function, arguments = parts.function, parts.arguments
        if parts.is_new_object:
            function, arguments = arguments[0], arguments[1:]
        self._named(function)
        self._tuple(arguments)
        self._out += b"\x81" if parts.is_new_object else b"R"
        self._remember(value)
        self._appended(list(parts.items or ()))
        self._items(parts.pairs or ())
        if parts.state is not None:
            self._write(parts.state)
            self._out += b"b"

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
        self._remember(value)

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
            self._dict(state)
            self._out += b"tR"
        else:
            name, arguments = self._rebuilding(value)
            self._global(name)
            arguments()
            self._out += b"R"
        self._remember(value)

    def _parameter(self, value: Parameter) -> None:
        state = dict(vars(value))
        self._global("torch._utils _rebuild_parameter" + ("_with_state" if state else ""))
        self._out += b"("
        self._write(value.data)
        self._constant(value.requires_grad)
        self._call("collections OrderedDict")
        if state:
            self._dict(state)
        self._out += b"tR"
        self._remember(value)

    def _buffer(self, value: Buffer) -> None:
        self._write(value.data)  # what keeps it says that it is a buffer

    def _parts(self, value: Any) -> None:
        if value.is_nested:
            return lazy.value("weft.serialization.nested", "write")(self, value)
        parts = [part for _, part in value._pattern.parts()]
        order = (value.is_coalesced(),) if value.is_sparse else ()
        arguments = (*parts, value._values(), value.shape, *order)
        self._call("torch._utils _rebuild_sparse_tensor", value.layout, arguments)
        self._remember(value)

    def _rebuilding(self, value: Tensor) -> tuple[str, Callable[[], None]]:
        """The function that rebuilds a tensor, and what writes its tuple of arguments."""
        if value.is_meta:
            layout = (value.dtype, tuple(value.shape), value.stride(), value.requires_grad)
            name = "torch._utils _rebuild_meta_tensor_no_storage"
            return name, lambda: self._tuple(layout)
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
            self._tuple(tuple(value.shape))
            self._tuple(value.stride())
            self._constant(value.requires_grad)
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
        self._write("storage")
        if dtype is None:
            self._global("torch.storage UntypedStorage")
        else:
            self._global(f"torch {self.storage_names[dtype]}")
        self._write(str(key))
        self._write("cpu")
        self._int(size if dtype is None else size // dtype.itemsize)
        self._out += b"tQ"


_WRITERS: dict[type, Callable[[PickleWriter, Any], None]] = {
    type(None): PickleWriter._constant,
    bool: PickleWriter._constant,
    int: PickleWriter._int,
    float: PickleWriter._float,
    complex: PickleWriter._complex,
    str: PickleWriter._str,
    bytes: PickleWriter._bytes,
    bytearray: PickleWriter._bytearray,
    tuple: PickleWriter._tuple,
    list: PickleWriter._list,
    dict: PickleWriter._dict,
    OrderedDict: PickleWriter._ordered_dict,
    Counter: PickleWriter._counter,
    set: PickleWriter._set,
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
