"""The pickles of an archive: objects of the classes of its code, and typed lists and dicts."""

from __future__ import annotations

from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft.jit import memo
from weft.jit.archive.collect import attributes_of
from weft.jit.archive.constants import plain
from weft.jit.archive.naming import Names
from weft.jit.archive.state import has_state, state_of
from weft.jit.frontend.types.annotations import type_of_value
from weft.jit.ir import types as ty
from weft.serialization.globals import ARCHIVE_DTYPES
from weft.serialization.pickle_writer import PickleWriter

_REBUILD = "torch._utils _rebuild_tensor_v2"


class ArchivePickler(PickleWriter):
    """One pickle of values whose types are known."""

    storage_names: ClassVar[dict[Any, str]] = {
        dtype: f"{name}Storage" for name, dtype in ARCHIVE_DTYPES.items()
    }

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names
        self._texts: dict[str, str] = {}
        self._kept: list[Any] = []  # so that ids stay taken

    def save(self, value: Any, save_persistent_id: bool = True) -> None:
        """Equal texts are one object, so that bytes do not depend on where they come from."""
        super().save(self._texts.setdefault(value, value) if type(value) is str else value)

    def dump_typed(self, value: Any, type: ty.Type) -> bytes:
        """The pickle of a value of a type."""
        self._typed(value, type)
        return bytes(self._out + b".")

    def _typed(self, value: Any, type: ty.Type) -> None:
        if value is None:
            self.save_none(None)
        elif isinstance(value, Tensor):
            self._shared(value)
        elif isinstance(type, ty.OptionalType | ty.UnionType) or type in (ty.ANY, ty.NUMBER):
            self._typed(value, _member(value, type))
        elif isinstance(type, ty.ListType | ty.DictType):
            self._container(value, type)
        elif isinstance(type, ty.TupleType):
            self._tuple_of(value, type)
        elif isinstance(type, ty.EnumType):
            self._reduce(type, plain(value.value))
        elif isinstance(type, ty.ClassType | ty.InterfaceType):
            self._object(value, type)
        elif type is ty.FLOAT:
            self.save_float(float(value))
        elif type is ty.COMPLEX:  # not as checkpoints name it
            self._call("builtins complex", value.real, value.imag)
        else:
            self.save(plain(value))

    def _shared(self, value: Any) -> None:
        """A tensor, where it stands first; what was written where it stands again."""
        if id(value) in self.memo:
            return self._get(id(value))
        name, arguments = self._rebuilding(value)
        if name != _REBUILD:  # another dtype over the storage, which archives cannot say
            own = value.detach().clone().requires_grad_(value.requires_grad)
            name, arguments = self._rebuilding(own)
        self._global(name)
        arguments()
        self._out += b"R"
        self.memoize(value)

    def _storage(self, key: int, dtype: Any) -> None:
        """A storage is one object: PyTorch shares it where the pickle does."""
        if ("storage", key) in self.memo:
            return self._get(("storage", key))
        super()._storage(key, dtype)
        self._put(("storage", key))

    def _object(self, value: Any, type: ty.Type) -> None:
        obj = getattr(value, "_jit_object", value)
        key = obj if isinstance(obj, _C.JitObject) else id(obj)  # equal by identity
        if key in self.memo:
            return self._get(key)
        held = type_of_object(value, type)
        self._global(_split(self._names.of(held)))
        self._out += b")\x81"
        if has_state(held):
            state, declared = state_of(value, held)
            self._kept.append(state)
            self._typed(state, declared)
        else:
            self._attributes(value, held)
        self._out += b"b"
        self._put(key, obj)

    def _attributes(self, value: Any, held: ty.ClassType) -> None:
        self._out += b"}("
        for name, declared in attributes_of(held):
            self.save(name)
            self._typed(getattr(value, name), declared)
        self._out += b"u"

    def _container(self, value: Any, type: ty.ListType | ty.DictType) -> None:
        self._global("torch.jit._pickle restore_type_tag")
        if isinstance(type, ty.ListType):
            self._out += b"]("
            for item in value:
                self._typed(item, type.elem)
            self._out += b"e"
        else:
            self._out += b"}("
            for key, item in value.items():
                self._typed(key, type.key)
                self._typed(item, type.value)
            self._out += b"u"
        self.save(self._names.type(type))
        self._out += b"\x86R"

    def _tuple_of(self, value: Any, type: ty.TupleType) -> None:
        """One with names too, which readers give it by the type of what holds it."""
        self._out += b"("
        for item, elem in zip(value, type.elems):
            self._typed(item, elem)
        self._out += b"t"

    def _reduce(self, type: ty.EnumType, value: Any) -> None:
        self._global(_split(self._names.of(type)))
        self.save(value)  # not as a tuple
        self._out += b"R"


def type_of_object(value: Any, type: ty.Type) -> ty.ClassType:
    """The class of an object, which may stand behind an interface."""
    info = getattr(value, "_jit_info", None) or memo.known(value.__class__)
    held = type if info is None else info.type
    if not isinstance(held, ty.ClassType):
        raise TypeError(f"save: expected an object of a compiled class, got {value!r}")
    return held


def _member(value: Any, type: ty.Type) -> ty.Type:
    """The type among those of a union that a value has."""
    if isinstance(type, ty.OptionalType):
        return type.elem
    found = type_of_value(value)
    if found is None or isinstance(found, ty.OptionalType | ty.UnionType) or found is ty.ANY:
        raise TypeError(f"save: expected a value of {type}, got {value!r}")
    members = ty.members_of(type) if isinstance(type, ty.UnionType) else ()
    return next((each for each in members if ty.is_subtype(found, each)), found)


def _split(name: str) -> str:
    """A qualified name as a pickle has it: the module, a blank, the name."""
    module, _, short = name.rpartition(".")
    return f"{module} {short}"
