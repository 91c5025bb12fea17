"""The fixed table of what a pickle may name, and what the names stand for here.

`Globals` holds one load: the table's functions make tensors over the storages of that file.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from weft import _C
from weft._C import Size, Tensor
from weft._runtime import lazy
from weft.nn.parameter import Parameter
from weft.serialization.errors import LoadError, shown
from weft.serialization.safe_globals import allowed, is_allowed_object, own
from weft.serialization.unpickle import Allowed, Arguments, Callee, Inert, Own
from weft.sparse._construct import sparse_compressed_tensor, sparse_coo_tensor
from weft.storage import TypedStorage

nested = lazy.module("weft.serialization.nested")
numpy_values = lazy.module("weft.serialization.numpy_values")
plain_values = lazy.module("weft.serialization.plain_values")
_DTYPES = {
    repr(value).removeprefix("torch."): value
    for value in vars(_C).values()
    if isinstance(value, _C.dtype)
}
# Dtypes PyTorch has and weft has not: known by name so that the message can say it.
_FOREIGN_DTYPES = ("float8", "float4", "bits", "quint", "qint", "int", "uint")
STORAGE_DTYPES = {
    "Float": _C.float32,
    "Double": _C.float64,
    "Half": _C.float16,
    "BFloat16": _C.bfloat16,
    "Long": _C.int64,
    "Int": _C.int32,
    "Short": _C.int16,
    "Char": _C.int8,
    "Byte": _C.uint8,
    "Bool": _C.bool,
    "ComplexFloat": _C.complex64,
    "ComplexDouble": _C.complex128,
}
# Archives name storages of further dtypes, whose tensors checkpoints keep in bytes.
ARCHIVE_DTYPES = STORAGE_DTYPES | {
    "ComplexHalf": _C.complex32,
    "UInt16": _C.uint16,
    "UInt32": _C.uint32,
    "UInt64": _C.uint64,
    "Float8_e4m3fn": _C.float8_e4m3fn,
    "Float8_e5m2": _C.float8_e5m2,
    "Float8_e4m3fnuz": _C.float8_e4m3fnuz,
    "Float8_e5m2fnuz": _C.float8_e5m2fnuz,
}


class StorageType(Inert):
    """The class of a storage: its dtype, or None where it holds bytes."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class TensorType(Inert):
    """The class of a tensor, as an argument of a rebuilding function."""

    __slots__ = ("cls",)

    def __init__(self, cls: type) -> None:
        self.cls = cls


def find_global(module: str, name: str) -> Any:
    """What a pickle's global stands for. LoadError for all that is not in the table."""
    module = {"__builtin__": "builtins", "torch.cuda": "torch"}.get(module, module)
    if module in ("torch", "torch.storage"):
        found = _torch_name(name)
        if found is not None:
            return found
    if name in _NESTED and module.startswith("torch."):
        return nested.find(name, TensorType)
    callee = _CALLEES.get(f"{module}.{name}")
    if callee is not None:
        return callee
    value = allowed(module, name)
    if value is None:
        raise LoadError(
            "load: expected only tensors and plain containers, got the global "
            + shown(f"{module}.{name}")
            + "; weft.serialization.add_safe_globals allows it"
        )
    return Allowed(f"{module}.{name}", value)


def find_own_global(module: str, name: str) -> Any:
    """As find_global; layers of the library are allowed too, and values of NumPy and of Python's
    standard library, of which Python 2 and Python 3.13 have other names."""
    module = {"__builtin__": "builtins", "pathlib._local": "pathlib"}.get(module, module)
    found = None
    if allowed(module, name) is None and module.startswith("numpy"):
        found = numpy_values.find(module, name)
    elif allowed(module, name) is None and module in _STANDARD:
        found = plain_values.find(module, name)
    if found is not None:
        return found
    value = None if allowed(module, name) is not None else own(module, name)
    return find_global(module, name) if value is None else Own(f"{module}.{name}", value)


_NESTED = ("NestedTensor", "_DimRange", "_rebuild_nested_tensor", "_rebuild_njt")
_STANDARD = ("argparse", "builtins", "collections", "datetime", "decimal", "fractions", "pathlib",
             "types", "uuid")  # fmt: skip


def _torch_name(name: str) -> Any:
    if name in _DTYPES:
        return _DTYPES[name]
    if name == "UntypedStorage":
        return StorageType(None)
    if name.endswith("Storage"):
        dtype = ARCHIVE_DTYPES.get(name.removesuffix("Storage"))
        return None if dtype is None else StorageType(dtype)
    if name.startswith(_FOREIGN_DTYPES):
        raise LoadError(f"load: expected a dtype that weft has, got torch.{shown(name)}")
    return {"Tensor": TensorType(Tensor)}.get(name)


# ---- tensors ----


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Tensor:
    """A tensor over a storage; the extension checks that it stays inside."""
    if type(storage) is not TypedStorage:
        raise LoadError(f"load: expected a storage for a tensor, got {type(storage).__name__}")
    dtype = storage.dtype if dtype is None else dtype
    if not isinstance(dtype, _C.dtype):
        raise LoadError("load: expected the dtype of a tensor, got something else")
    layout = (tuple(size), tuple(stride), offset)
    if len(layout[0]) > 64:
        raise LoadError(f"load: expected at most 64 dimensions, got {len(layout[0])}")
    try:
        return _C._from_storage(storage.untyped()._handle, dtype, *layout)
    except (RuntimeError, ValueError, TypeError, OverflowError, IndexError) as error:
        raise LoadError(f"load: expected a tensor inside its storage; {error}") from None


def _grad(tensor: Tensor, requires_grad: Any) -> Tensor:
    if requires_grad is True:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise LoadError(f"load: expected no gradient for {tensor.dtype}, got requires_grad")
        tensor.requires_grad_()
    elif requires_grad is not False:
        raise LoadError("load: expected requires_grad as True or False")
    return tensor


def _lazy_bits(tensor: Tensor, metadata: Any) -> Tensor:
    """PyTorch's lazy conjugation and negation, done: such a view gets memory of its own."""
    if metadata is None:
        return tensor
    if type(metadata) is not dict or not metadata.keys() <= {"conj", "neg"}:
        raise LoadError("load: expected metadata of a tensor, got something else")
    if metadata.get("conj"):
        tensor = tensor.conj_physical()
    return tensor.neg() if metadata.get("neg") else tensor


def _rebuild(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    return _tensor(storage, offset, size, stride)


def _rebuild_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    return _grad(_lazy_bits(_tensor(storage, offset, size, stride), metadata), requires_grad)


def _rebuild_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    tensor = _lazy_bits(_tensor(storage, offset, size, stride, dtype), metadata)
    return _grad(tensor, requires_grad)


def _rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor on the device meta, which has no storage in the file."""
    if not isinstance(dtype, _C.dtype) or len(tuple(size)) > 64:
        raise LoadError("load: expected dtype and sizes of a tensor on meta, got something else")
    try:
        made = _C.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    except (RuntimeError, ValueError, TypeError, OverflowError, IndexError) as error:
        raise LoadError(f"load: expected the layout of a tensor on meta; {error}") from None
    return _grad(made, requires_grad)


def _parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Parameter:
    if type(data) is not Tensor or data.requires_grad:
        raise LoadError(f"load: expected the data of a Parameter, got {type(data).__name__}")
    made = Parameter(data, False)
    _grad(made, requires_grad)
    set_state(made, state)
    return made


def _from_type(function: Any, cls: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor with attributes."""
    kinds = (type(function), type(cls), type(arguments))
    known = kinds == (Callee, TensorType, tuple) and not function.checks
    tensor = function.value(*arguments) if known else None
    if not isinstance(tensor, Tensor) or type(tensor) is not cls.cls:
        raise LoadError("load: expected a tensor with attributes, got something else")
    set_state(tensor, state)
    return tensor


def set_state(target: Any, state: Any) -> Any:
    """Gives an OrderedDict or a tensor its attributes; none may hide what its class has. A value
    of NumPy that stands in the target's place is the result."""
    if state is None or target is None or getattr(target, "is_nested", False):
        return None
    if is_allowed_object(target):
        return _set_allowed_state(target, state)
    if type(target).__module__.startswith("numpy"):
        return numpy_values.set_state(target, state)
    kind = f"{type(target).__module__}.{type(target).__name__}"
    if kind == "uuid.UUID":
        return plain_values.set_number(target, state)
    known = type(target) in (OrderedDict, Tensor, Parameter, SimpleNamespace)
    if not (known or kind == "argparse.Namespace") or type(state) is not dict:
        raise LoadError(f"load: expected no state for {type(target).__name__}, got one")
    for name, value in state.items():
        if type(name) is not str or hasattr(type(target), name) or isinstance(value, Inert):
            raise LoadError(f"load: expected a plain attribute, got {shown(str(name))}")
    target.__dict__.update(state)
    return None


def _set_allowed_state(target: Any, state: Any) -> None:
    """As pickle does: __setstate__, or members; a pair has those of slots too."""
    if hasattr(type(target), "__setstate__"):
        target.__setstate__(state)
        return
    members = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for name, value in ((members[0] or {}) | (members[1] or {})).items():
        object.__setattr__(target, name, value)


# ---- the rest ----


Check = Callable[[Any], None]


def _ordered_dict(check_key: Check, pairs: Any = ()) -> OrderedDict[Any, Any]:
    """Empty, to be filled; or, as Python 2 wrote it, of a list of pairs."""
    made: OrderedDict[Any, Any] = OrderedDict()
    for key, value in pairs:
        check_key(key)
        if isinstance(value, Inert):
            raise LoadError(f"load: expected a plain value, got {value.describe()}")
        made[key] = value
    return made


class Factory(Inert):
    """A class of Python, as the factory of a defaultdict."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind


def _default_dict(factory: Any = None) -> defaultdict[Any, Any]:
    """Empty, to be filled; its factory makes empty containers or zeros."""
    if factory is None:
        return defaultdict(None)
    if type(factory) is Callee and factory.name == "builtins.set":
        return defaultdict(set)
    if type(factory) is not Factory:
        raise LoadError("load: expected a class of Python as the factory of a defaultdict")
    return defaultdict(factory.kind)


def _counter(*counts: Any) -> Counter[Any]:
    """A Counter, of a dict that is there already: its keys have been checked."""
    if counts and (len(counts) > 1 or type(counts[0]) is not dict):
        raise LoadError("load: expected the counts of a Counter as a dict")
    return Counter(*counts)


def _encode(text: Any, encoding: Any) -> bytes:
    """Protocol 2 has no bytes: it encodes text."""
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise LoadError("load: expected bytes as Latin-1 text, got something else")
    return text.encode("latin-1")


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    """A bytearray of bytes; never of a length, which could be any."""
    if type(data) is not bytes:
        data = _encode(data, encoding)
    return bytearray(data)


def _complex(real: Any, imaginary: Any) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise LoadError("load: expected the two floats of a complex number")
    return complex(real, imaginary)


def _set(check_key: Check, elements: Any) -> set[Any]:
    if type(elements) is not list:
        raise LoadError(f"load: expected the elements of a set, got {type(elements).__name__}")
    for element in elements:
        check_key(element)
    return set(elements)


def _size(sizes: Any = ()) -> Any:
    if type(sizes) is not tuple or any(type(size) is not int for size in sizes):
        raise LoadError("load: expected the sizes of a Size as ints")
    return Size(sizes)


def _device(kind: Any, index: Any = None) -> Any:
    if type(kind) is not str or (index is not None and type(index) is not int):
        raise LoadError("load: expected the name of a device")
    try:
        return _C.device(kind) if index is None else _C.device(kind, index)
    except (RuntimeError, ValueError) as error:
        raise LoadError(f"load: expected a known device; {error}") from None


_SPARSE = (_C.sparse_coo, _C.sparse_csr, _C.sparse_csc)
_LAYOUTS = {repr(one): one for one in (_C.strided, *_SPARSE)}


def _layout(name: Any) -> Any:
    if type(name) is not str or name not in _LAYOUTS:
        known = ", ".join(_LAYOUTS)
        raise LoadError(f"load: expected a layout among {known}, got {shown(str(name))}")
    return _LAYOUTS[name]


def _sparse(layout: Any, parts: Any) -> Tensor:
    """A sparse tensor; its constructor checks every index."""
    count = 2 if layout is _C.sparse_coo else 3
    known = type(parts) is Arguments or type(parts) is tuple
    if layout not in _SPARSE or not known:
        raise LoadError("load: expected a sparse layout and its parts, got something else")
    tensors, rest = parts[:count], parts[count:]
    coalesced = rest[1:] if layout is _C.sparse_coo else ()
    plain = all(type(one) is Tensor for one in tensors) and type(rest[:1] and rest[0]) is Size
    if not plain or len(coalesced) > 1 or any(type(one) is not bool for one in coalesced):
        raise LoadError("load: expected the parts of a sparse tensor, got something else")
    try:
        if layout is _C.sparse_coo:
            ordered = any(coalesced)
            return sparse_coo_tensor(
                tensors[0], tensors[1], rest[0], is_coalesced=ordered, check_invariants=ordered
            )
        return sparse_compressed_tensor(tensors[0], tensors[1], tensors[2], rest[0], layout=layout)
    except (RuntimeError, NotImplementedError) as error:
        raise LoadError(f"load: expected the parts of a sparse tensor; {error}") from None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _rebuild,
    "torch._utils._rebuild_tensor_v2": _rebuild_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _layout,
    "collections.Counter": _counter,
    "collections.defaultdict": _default_dict,
    "_codecs.encode": _encode,
    "builtins.bytes": lambda: b"",
    "builtins.bytearray": _bytearray,
    "builtins.complex": _complex,
}
_HASHING: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered_dict,
    "builtins.set": _set,
}
_CALLEES: dict[str, Any] = {
    **{name: Callee(name, call) for name, call in _FUNCTIONS.items()},
    **{name: Callee(name, call, checks=True) for name, call in _HASHING.items()},
}
_FACTORIES = (dict, list, int, float, str)
_CALLEES |= {f"builtins.{kind.__name__}": Factory(kind) for kind in _FACTORIES}
_CALLEES["torch.nn.parameter.Parameter"] = TensorType(Parameter)
