"""Constructors by type: weft.FloatTensor(2, 3), weft.LongTensor([1, 2]), weft.FloatStorage(2)."""

from __future__ import annotations

import functools
import operator
from typing import Any

from weft import _C
from weft._C import Size, Tensor
from weft.storage import TypedStorage, UntypedStorage

# PyTorch's names of the dtypes' types
TYPES = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16", "ByteTensor": "uint8", "CharTensor": "int8",
    "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64", "BoolTensor": "bool",
}  # fmt: skip
# PyTorch has storages of these, and no types of tensors.
COMPLEX_STORAGES = {"ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128"}


class _Typed(type):
    """isinstance(x, weft.FloatTensor) asks for the dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """`constructed` of the type's dtype."""
        return constructed(cls.__name__, cls.dtype, args, device)


def constructed(name: str, dtype: Any, args: tuple[Any, ...], device: Any) -> Tensor:
    """Uninitialised memory of the sizes given, or a copy of a sequence or an array.

    A tensor must have the dtype; it is returned as another tensor over its memory, as is a storage.
    """
    if not args:
        return _C.empty(0, dtype=dtype, device=device)
    first = args[0]
    sizes = first if isinstance(first, Size) else _sizes(args)
    if sizes is not None:
        return _C.empty(sizes, dtype=dtype, device=device)
    if len(args) > 1:
        raise TypeError(f"{name}: expected sizes or one sequence, got {len(args)} arguments")
    if isinstance(first, Tensor):
        if first.dtype != dtype:
            raise TypeError(f"{name}: expected a tensor of {dtype}, got {first.dtype}")
        return first.detach()
    if isinstance(first, (TypedStorage, UntypedStorage)):
        return _C.empty(0, dtype=dtype).set_(_storage_of(name, dtype, first))
    if not hasattr(first, "__len__"):
        raise TypeError(f"{name}: expected sizes or a sequence, got {type(first).__name__}")
    return _C.tensor(first, dtype=dtype, device=device)


def _sizes(args: tuple[Any, ...]) -> list[int] | None:
    """The integers among which a tensor counts unless it is alone; None for other arguments."""
    if isinstance(args[0], (bool, Tensor) if len(args) == 1 else bool):
        return None
    try:
        return [operator.index(size) for size in args]
    except TypeError:
        return None


def _storage_of(name: str, dtype: Any, storage: Any) -> Any:
    if isinstance(storage, TypedStorage) and storage.dtype is not dtype:
        raise RuntimeError(f"{name}: expected a storage of {dtype}, got one of {storage.dtype}")
    return storage


class _StorageType(type):
    """isinstance(s, weft.FloatStorage) asks for the dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, device: Any = None, wrap_storage: Any = None) -> TypedStorage:
        """A TypedStorage of the dtype, of the arguments that this takes."""
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype, device=device)

    def _new_shared(cls, size: int, *, device: Any = None) -> TypedStorage:
        return cls()._new_shared(size)


class _TypedOfGpu(type):
    """isinstance(x, weft.cuda.FloatTensor) says False; TypeError when it is called."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        raise TypeError(
            f"cuda.{cls.__name__}: expected a device of the type, got a build for the CPU"
        )


@functools.cache
def of_gpu(name: str) -> type:
    """The type of that name on GPUs, of which there are none."""
    members = {"__doc__": f"Tensors of {TYPES[name]} on GPUs.", "__module__": "weft.cuda"}
    return _TypedOfGpu(name, (), members)


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype by a type of floating point or its name.

    TypeError for other types.

    >>> weft.set_default_tensor_type("torch.DoubleTensor")
    >>> weft.get_default_dtype()
    torch.float64
    >>> weft.set_default_tensor_type(weft.FloatTensor)
    """
    name = t if isinstance(t, str) else getattr(t, "__name__", repr(t))
    dtype = getattr(_C, TYPES.get(name.removeprefix("torch."), ""), None)
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type: expected a type such as torch.FloatTensor, got {t!r}"
        )
    _C.set_default_dtype(dtype)


def _dtype_named(name: str) -> str | None:
    """The dtype of a type of tensors or storages."""
    tensors = f"{name.removesuffix('Storage')}Tensor" if name.endswith("Storage") else name
    return TYPES.get(tensors) or COMPLEX_STORAGES.get(name)


def storage_name(dtype: Any) -> str:
    """The name of the type of storages of a dtype; TypeError where there is none."""
    for kind, found in {**TYPES, **COMPLEX_STORAGES}.items():
        if getattr(_C, found) is dtype:
            return kind.removesuffix("Tensor").removesuffix("Storage") + "Storage"
    raise TypeError(f"storage_type: expected a dtype that has one, got {dtype}")


def __getattr__(name: str) -> Any:
    if name == "Storage":  # PyTorch's short name
        return globals().get("FloatStorage") or __getattr__("FloatStorage")
    dtype = _dtype_named(name)
    if dtype is None:
        raise AttributeError(f"module 'weft._tensor.legacy_types' has no attribute {name!r}")
    kind, made = (_StorageType, "storages") if name.endswith("Storage") else (_Typed, "tensors")
    members = {
        "dtype": getattr(_C, dtype),
        "__doc__": f"Makes {made} of {dtype}: of given sizes, or from a sequence.",
        "__module__": Tensor.__module__,
    }
    found = globals()[name] = kind(name, (), members)
    return found
