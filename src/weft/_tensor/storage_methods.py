"""What tensors do with the storage under them."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy, settings, torch_function
from weft.storage import TypedStorage, UntypedStorage

_legacy_types = lazy.module("weft._tensor.legacy_types")


def _untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes under the tensor; views of it have the same."""
    return UntypedStorage._of(self)


def _storage(self: Tensor) -> TypedStorage:
    """The memory under the tensor, counted in its elements."""
    return TypedStorage(wrap_storage=UntypedStorage._of(self), dtype=self.dtype)


def _storage_type(self: Tensor) -> Any:
    """The class of old storages of the tensor's dtype: FloatStorage of float32."""
    return getattr(_legacy_types, _legacy_types.storage_name(self.dtype))


def _set(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Makes the tensor lie over the memory of a tensor or storage; without one, over none.

    Of a tensor it takes sizes, strides and offset, unless they are given. RuntimeError when they
    reach outside of the storage, or when a tensor has another dtype.
    """
    if source is None:
        source = _C.empty(0, dtype=self.dtype)
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"set_: expected a source of dtype {self.dtype}, got {source.dtype}; use view()"
            )
        if size is None:
            layout = (tuple(source.shape), source.stride(), source.storage_offset())
            return _C._set(self, source, *layout)
        handle = source
    elif isinstance(source, (UntypedStorage, TypedStorage)):
        if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
            raise RuntimeError(f"set_: expected a storage of {self.dtype}, got {source.dtype}")
        handle = source.untyped()._handle
    else:
        raise TypeError(f"set_: expected a Tensor or a storage, got {type(source).__name__}")
    if size is None:
        nbytes = _C._storage_info(handle)[1]
        size = (max(nbytes // self.element_size() - storage_offset, 0),)
    size = (size,) if isinstance(size, int) else tuple(size)
    return _C._set(self, handle, size, None if stride is None else tuple(stride), storage_offset)


def _resize(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Gives the tensor other sizes, row-major; the storage grows where it is too small.

    New elements are undefined. RuntimeError when the storage has to grow but may not: memory of
    somebody else, read-only memory, memory whose address is held outside; or when the tensor
    requires grad.
    """
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    fills = settings.fills_memory()
    before = self.untyped_storage().nbytes() if fills else 0
    _C._resize(self, size)
    if fills:
        _fill_behind(self, before)
    if memory_format is None or memory_format is _C.contiguous_format:
        return self
    like = _C._functions["empty"](size, memory_format=memory_format, device="meta")
    return _C._set(self, self, size, like.stride(), self.storage_offset())


def _fill_behind(self: Tensor, start: int) -> None:
    """Fills the elements of the storage behind so many bytes as new memory is filled."""
    storage, size = self.untyped_storage(), self.element_size()
    whole = _C.empty(0, dtype=self.dtype).set_(storage, 0, (storage.nbytes() // size,))
    new = whole[start // size :]
    new.copy_(_C.empty_like(new))


def _resize_as(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """resize_ to the sizes of another tensor."""
    if not isinstance(the_template, Tensor):
        raise TypeError(f"resize_as_: expected a Tensor, got {type(the_template).__name__}")
    if memory_format is _C.preserve_format:
        formats = (_C.contiguous_format, _C.channels_last, _C.channels_last_3d)
        fits = (f for f in formats if the_template.is_contiguous(memory_format=f))
        memory_format = next(fits, None)
    return _resize(input, *the_template.shape, memory_format=memory_format)


def _share_memory(self: Tensor) -> Tensor:
    """Moves the storage under the tensor to shared memory (`UntypedStorage.share_memory_`)."""
    UntypedStorage._of(self).share_memory_()
    return self


def _is_shared(self: Tensor) -> bool:
    """Whether the storage under the tensor is in memory shared by processes."""
    return _C._storage_info(self)[5]


METHODS = {
    "share_memory_": _share_memory,
    "is_shared": _is_shared,
    "untyped_storage": _untyped_storage,
    "storage": _storage,
    "storage_type": _storage_type,
    "set_": _set,
    "resize_": _resize,
    "resize_as_": _resize_as,
}
for _name, _method in METHODS.items():
    _method.__name__ = _name
    setattr(Tensor, _name, torch_function.overridable(_method))
resize_as_ = getattr(Tensor, "resize_as_")  # noqa: B009
