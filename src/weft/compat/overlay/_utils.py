"""Names that programs written for PyTorch import from torch._utils."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import weft
from weft import Tensor
from weft.serialization import globals as _globals


def _get_available_device_type() -> str | None:
    """None: no device beside the CPU is ever there."""
    return None


def _get_device_module(device_type: str) -> Any:
    """The module for a type of device: weft.cpu, weft.cuda. RuntimeError where there is none."""
    module = getattr(weft, device_type, None)
    if module is None:
        raise RuntimeError(f"_get_device_module: expected a type of device, got {device_type!r}")
    return module


def _element_size(dtype: Any) -> int:
    """The bytes of an element. RuntimeError for what is no dtype."""
    if not isinstance(dtype, weft.dtype):
        raise RuntimeError(f"_element_size: expected a dtype, got {dtype!r}")
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other."""
    return weft.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` in the shapes of the tensors: the inverse of _flatten_dense_tensors."""
    listed = list(tensors)
    parts = flat.split([tensor.numel() for tensor in listed])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, listed))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one type, of `size_limit` bytes at most, or of one tensor."""
    groups: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        group = groups.setdefault(str(tensor.type()), [])
        if group and sum(each.nbytes for each in [*group, tensor]) > size_limit:
            yield group
            group = groups[str(tensor.type())] = []
        group.append(tensor)
    yield from filter(None, groups.values())


# What Python's pickles name: as in files of save, and in modules that are weft's own.

_rebuild_tensor, _rebuild_tensor_v2 = _globals._rebuild, _globals._rebuild_v2
_rebuild_tensor_v3, _rebuild_meta_tensor_no_storage = _globals._rebuild_v3, _globals._rebuild_meta
_rebuild_parameter = _rebuild_parameter_with_state = _globals._parameter
_rebuild_sparse_tensor = _globals._sparse


def _load_from_bytes(data: bytes) -> Any:
    """torch.storage._load_from_bytes: a storage, which is a file of its own in a pickle."""
    return weft.load(io.BytesIO(data))


def _rebuild_from_type_v2(function: Any, cls: Any, arguments: Any, state: dict[str, Any]) -> Tensor:
    """torch._tensor._rebuild_from_type_v2: a tensor with attributes, or of a derived class."""
    made = function(*arguments)
    made = made if type(made) is cls else made.as_subclass(cls)
    vars(made).update(state)
    return made


def _get_layout(name: str) -> Any:
    """torch.serialization._get_layout: the layout that prints so; KeyError for none."""
    return {str(each): each for each in vars(weft).values() if isinstance(each, weft.layout)}[name]
