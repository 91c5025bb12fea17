"""Arguments of a PyTorch call as arguments of the same weft call, and results back.

A tensor is rebuilt from the bytes of its storage, so strides, offsets and dtypes without a NumPy
twin (bfloat16) arrive as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import weft
from weft import nn

#: dtypes both libraries have, in the order they are run
DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.complex32,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
#: dtypes of integers for which both have few operators
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
_NAMES = frozenset(str(dtype).rpartition(".")[2] for dtype in DTYPES + WIDE_UNSIGNED)
_NAMED = (torch.dtype, torch.memory_format, torch.layout)


class Unconvertible(Exception):
    """An argument that has no twin in weft: a function, a module, a sparse tensor."""


def name_of(value: Any) -> str:
    """ "float32" for torch.float32, "channels_last" for torch.channels_last."""
    return str(value).rpartition(".")[2]


def tensor_to_weft(
    tensor: torch.Tensor, copies: dict[int, weft.Tensor] | None = None
) -> weft.Tensor:
    """The same elements, strides and requires_grad in a copy of the storage. `copies` keeps those:
    tensors over one storage have one copy."""
    if tensor.layout != torch.strided or name_of(tensor.dtype) not in _NAMES:
        raise Unconvertible(f"a tensor of {tensor.layout}, {tensor.dtype}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    dtype = getattr(weft, name_of(plain.dtype))
    storage = plain.untyped_storage()
    raw = torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes()
    if not raw:
        result = weft.empty(tuple(plain.shape), dtype=dtype)
    else:
        flat = (copies or {}).get(storage.data_ptr())
        if flat is None:
            flat = weft.frombuffer(bytearray(raw), dtype=weft.uint8)
        if copies is not None:
            copies[storage.data_ptr()] = flat
        size = plain.element_size()
        flat = flat[: flat.numel() // size * size].view(dtype)
        result = flat.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
    return result.requires_grad_() if tensor.requires_grad else result


def tensor_to_torch(tensor: weft.Tensor) -> torch.Tensor:
    """A contiguous copy."""
    if tensor.numel() == 0:
        return torch.empty(tuple(tensor.shape), dtype=getattr(torch, name_of(tensor.dtype)))
    return torch.from_dlpack(tensor.detach().clone().contiguous()).clone()


def map_tensors(value: Any, function: Callable[[Any], Any], kind: type = torch.Tensor) -> Any:
    """`value` with every tensor inside its lists, tuples, dicts and slices replaced."""
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        items = [map_tensors(item, function, kind) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: map_tensors(item, function, kind) for key, item in value.items()}
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(map_tensors(part, function, kind) for part in parts))
    return value


def to_weft(value: Any, copies: dict[int, weft.Tensor] | None = None) -> Any:
    """`value` with everything of PyTorch inside it replaced by weft's. Raises Unconvertible."""
    if isinstance(value, torch.Tensor):
        return tensor_to_weft(value, copies)
    if isinstance(value, _NAMED):
        return _twin(name_of(value))
    if isinstance(value, torch.device):
        return weft.device(str(value))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        items = [to_weft(item, copies) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: to_weft(item, copies) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(to_weft(value.start), to_weft(value.stop), to_weft(value.step))
    if isinstance(value, torch.nn.Module) and not value.state_dict():
        return getattr(nn, type(value).__name__)()  # without parameters: its twin
    if type(value).__name__ == "builtin_function_or_method":
        return getattr(nn.functional, value.__name__)
    if callable(value) and value not in (bool, int, float, complex):
        raise Unconvertible(f"{value!r} as an argument")
    return value


def _twin(name: str) -> Any:
    found = getattr(weft, name, None)
    if found is None:
        raise Unconvertible(f"torch.{name} as an argument")
    return found


def flat(value: Any) -> list[Any]:
    """The leaves of nested tuples and lists; a Size is a leaf."""
    if isinstance(value, (tuple, list)) and not isinstance(value, (torch.Size, weft.Size)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def tensors_in(value: Any, kind: type) -> list[Any]:
    """The tensors of a call's arguments, in order."""
    found: list[Any] = []
    map_tensors(value, found.append, kind)
    return found
