"""The methods of Tensor that are written in Python: printing, copying, pickling.

Everything here is off the hot path; it is attached to the C type when weft is imported.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import weakref
from _pickle import PickleBuffer  # pickle itself takes long to import
from collections.abc import Callable
from typing import Any, TypeVar

from weft import _C, _exports
from weft._C import Tensor
from weft._runtime import default_device, lazy, pickled_functions, torch_function
from weft._tensor import storage_methods  # noqa: F401  (attaches them)
from weft.storage import TypedStorage, UntypedStorage

_legacy_types = lazy.module("weft._tensor.legacy_types")
_norms = lazy.module("weft._functions.norms")
_texts = lazy.module("weft._tensor.repr")

_F = TypeVar("_F", bound=Callable[..., Any])


def unrecorded(function: _F) -> _F:
    """What a trace does not record: it looks at tensors, or copies them as they are."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = _C._set_recorder(None)
        try:
            return function(*args, **kwargs)
        finally:
            _C._set_recorder(recorder)

    return call  # type: ignore[return-value]


# ---- printing ----


@unrecorded
def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The elements and what they are, as PyTorch prints them."""
    batch = self.__dict__.get("_batch")  # within weft.vmap: all samples, behind the first one
    if batch is not None:
        return f"Batched({_repr(batch[1])})"
    return _texts.text_of(self, tensor_contents)


@unrecorded
def _format(self: Tensor, spec: str) -> str:
    """A 0-d tensor formats as its number, any other as its repr."""
    unknown = self.is_meta and not spec
    if self.dim() == 0 and type(self) is Tensor and not unknown and "_batch" not in self.__dict__:
        return format(self.item(), spec)
    return object.__format__(self, spec)


# ---- copying and pickling ----
#
# A tensor is rebuilt from its storage, so tensors that share one in a pickle (or in a deepcopy)
# share one afterwards. `_Shared` stands for a storage: as long as one lives, the same storage gives
# the same one.


class _Shared:
    """A storage on its way through pickle or copy. `bytes` is a uint8 tensor over all of it."""

    __slots__ = ("__weakref__", "bytes")

    def __init__(self, bytes_: Tensor) -> None:
        self.bytes = bytes_

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self.bytes.is_meta:
            return _meta_storage, (self.bytes.numel(),)
        data: Any = PickleBuffer(self.bytes) if protocol >= 5 else _bytes(self.bytes)
        return _load_storage, (data if self.bytes.numel() else b"",)


_live: Any = None  # WeakValueDictionary: storage key -> _Shared


def _shared(tensor: Tensor) -> _Shared:
    global _live
    if _live is None:
        _live = weakref.WeakValueDictionary()
    key = tensor._storage_key()
    found = _live.get(key)
    if found is None:
        found = _live[key] = _Shared(_C._storage_view(tensor))
    return found


def _load_storage(data: Any) -> _Shared:
    """The storage of a pickle: our own memory, whatever the pickle's buffers are."""
    if memoryview(data).nbytes == 0:
        return _Shared(_C.empty(0, dtype=_C.uint8))
    return _Shared(_C.frombuffer(data, dtype=_C.uint8).clone())


def _meta_storage(nbytes: int) -> _Shared:
    """A storage on the device meta, of which a pickle has the size alone."""
    return _Shared(_C._functions["empty"](nbytes, dtype=_C.uint8, device="meta"))


def _rebuild(
    cls: type,
    storage: _Shared,
    dtype: Any,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    requires_grad: bool,
) -> Tensor:
    """A tensor over the storage. RuntimeError when the layout reaches outside of it."""
    tensor = _C._from_storage(storage.bytes, dtype, size, stride, offset)
    if cls is not Tensor:
        tensor = Tensor._make_subclass(cls, tensor, requires_grad)
    elif requires_grad:
        tensor.requires_grad_()
    return tensor


@unrecorded
def _reduce_ex(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    # A view of another dtype over the storage (real of a complex one) counts in its own elements.
    layout = (tuple(self.shape), self.stride(), self.storage_offset())
    args = (type(self), _shared(self), self.dtype, *layout, self.requires_grad)
    return _rebuild, args, self.__dict__ or None


def _setstate(self: Tensor, state: dict[str, Any] | None) -> None:
    if state:
        self.__dict__.update(state)


@unrecorded
def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with memory of its own; tensors that share memory inside one deepcopy still do."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: expected a leaf tensor, got one with history; use detach() first"
        )
    source = _shared(self)
    storage = memo.get(id(source))
    if storage is None:
        storage = memo[id(source)] = _Shared(source.bytes.clone())
        memo.setdefault(id(memo), []).append(source)  # keeps the id taken
    layout = (tuple(self.shape), self.stride(), self.storage_offset())
    result = _rebuild(type(self), storage, self.dtype, *layout, self.requires_grad)
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


# ---- small methods ----


def _bytes(self: Tensor) -> bytes:
    """The elements in row-major order, as memory has them."""
    return memoryview(self.contiguous()).tobytes()


def _reversed(self: Tensor) -> Tensor:
    """reversed(x): the rows in reverse order."""
    return self if self.dim() == 0 else self.flip(0)


def _rdiv(self: Tensor, other: Any) -> Tensor:
    """other / self, under Python 2's name."""
    return other / self


def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """tensor(data) of this tensor's dtype unless another is given."""
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=device,
        requires_grad=requires_grad,
    )


def _new(self: Tensor, *args: Any, size: Any = None, device: Any = None) -> Tensor:
    """A tensor of this one's dtype: new memory of the sizes given, or a copy of a sequence.

    A storage, or a tensor of the same dtype, is memory that it lies over.
    """
    args = args if size is None else tuple(size)
    place = self.device if device is None else device
    return _legacy_types.constructed("new", self.dtype, args, place)


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What NumPy's functions make of a tensor is a tensor again, of 0 dims too: np.exp(x)."""
    return _C.from_numpy(array)


def _cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """RuntimeError: this build has no GPU."""
    return self.to("cuda")


def _dir(self: Tensor) -> list[str]:
    return sorted({*dir(type(self)), *self.__dict__})


def _function_as_method(name: str) -> Any:
    """The method that calls the function of that name, which is imported at the first call."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return lazy.value(_exports.MODULE_OF[name], name)(self, *args, **kwargs)

    method.__doc__ = f"weft.{name} of this tensor."
    return method


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Raises RuntimeError: there is no device that memory could be pinned for."""
    raise RuntimeError("pin_memory: expected a device to pin memory for, got a build for the CPU")


def _record_stream(self: Tensor, stream: Any) -> None:
    """Raises RuntimeError: there are no streams."""
    raise RuntimeError("record_stream: expected a tensor on a GPU, got one on cpu")


def _apply(self: Tensor, callable: Any) -> Tensor:
    """Replaces each element x by callable(x), a Python number; slow. Returns self.

    RuntimeError where a gradient is asked for.
    """
    return _replace(self, "apply_", [callable(x) for x in self.reshape(-1).tolist()])


def _map(self: Tensor, other: Tensor, callable: Any) -> Tensor:
    """Replaces each element x by callable(x, y), y of `other`, broadcast; slow. Returns self.

    RuntimeError where a gradient is asked for.
    """
    pairs = zip(self.reshape(-1).tolist(), _numbers(self, "map_", other))
    return _replace(self, "map_", [callable(*each) for each in pairs])


def _map2(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replaces each element s by callable(s, a, b), of `x` and `y`, broadcast; slow. Returns self.

    RuntimeError where a gradient is asked for.
    """
    numbers = (_numbers(self, "map2_", each) for each in (x, y))
    triples = zip(self.reshape(-1).tolist(), *numbers)
    return _replace(self, "map2_", [callable(*each) for each in triples])


def _numbers(self: Tensor, name: str, tensor: Any) -> list[Any]:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(tensor).__name__}")
    return tensor.expand(self.shape).reshape(-1).tolist()


def _replace(self: Tensor, name: str, values: list[Any]) -> Tensor:
    if self.requires_grad:
        raise RuntimeError(f"{name}: expected a tensor without gradient, got one with it")
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def _xpu(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Raises AssertionError: there is no such device."""
    raise AssertionError("xpu: expected a device of Intel's, got a build for the CPU alone")


def _norm(
    self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """weft.norm of this tensor."""
    return _norms.norm(self, p, dim, keepdim, dtype=dtype)


def _module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a parameter or buffer becomes when a state dict has `other` for it: `other` detached,
    or self with its elements. Classes of tensors may say it otherwise."""
    return other.detach() if assign else self.copy_(other).detach()


def _is_distributed(self: Tensor) -> bool:
    """False."""
    return False


_METHODS = {
    "xpu": _xpu,
    "is_distributed": _is_distributed,
    "module_load": _module_load,
    "pin_memory": _pin_memory,
    "record_stream": _record_stream,
    "apply_": _apply,
    "map_": _map,
    "map2_": _map2,
    "__repr__": _repr,
    "__format__": _format,
    "__reduce_ex__": _reduce_ex,
    "__setstate__": _setstate,
    "__deepcopy__": _deepcopy,
    "__rdiv__": _rdiv,
    "__reversed__": _reversed,
    "__bytes__": _bytes,
    "__dir__": _dir,
    "new_tensor": _new_tensor,
    "new": _new,
    "__array_wrap__": _array_wrap,
    "cuda": _cuda,
    **{name: _function_as_method(name) for name in _exports.METHODS},
    "norm": _norm,
}
for _name, _method in _METHODS.items():
    _method.__name__ = _name
    _method.__qualname__ = f"Tensor.{_name}"
    setattr(Tensor, _name, torch_function.overridable(_method))
torch_function.install()
default_device.install()
Tensor.__module__ = "weft"
copyreg.pickle(_C._OpFunction, pickled_functions.reduced)


setattr(Tensor, "name", property(lambda self: None, doc="None: tensors have no names."))  # noqa: B010
setattr(Tensor, "is_nested", property(lambda self: False, doc="False: tensors are dense."))  # noqa: B010
for _name in ("ipu", "maia", "mkldnn", "mps", "mtia", "vulkan", "xla", "xpu"):
    _absent = property(lambda self: False, doc="False: weft has no such device.")
    setattr(Tensor, f"is_{_name}", _absent)
setattr(Tensor, "is_sparse_csr", property(lambda self: False, doc="False but of that layout."))  # noqa: B010


# ---- functions about tensors ----

get_rng_state = _C.get_rng_state


def is_tensor(obj: Any) -> bool:
    """Whether the object is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether the object is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return input.is_complex()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made under inference_mode."""
    return input.is_inference()


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0. RuntimeError unless there is exactly one."""
    return bool(input)


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


def typename(obj: Any) -> str:
    """The dotted name of a function, class or object's class; "torch.FloatTensor" for tensors."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"


torch_function.declare(
    globals(), names=("is_complex", "is_floating_point", "is_inference", "is_nonzero", "numel")
)
