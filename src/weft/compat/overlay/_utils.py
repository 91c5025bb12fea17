"""Names that programs written for PyTorch import from torch._utils."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import weft
from weft import Tensor


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


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage. RuntimeError where it reaches outside of it."""
    made = weft.empty(0, dtype=storage.dtype)
    return made.set_(storage, storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
    backward_hooks: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """_rebuild_tensor, with requires_grad. metadata: whether the elements are conjugates or
    negated, which they become here. Hooks of old files are left out."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    made = made.conj_physical() if (metadata or {}).get("conj") else made
    made = -made if (metadata or {}).get("neg") else made
    return made.requires_grad_(requires_grad) if requires_grad else made


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """A Parameter over the data."""
    return weft.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Tensor:
    """_rebuild_parameter, with attributes."""
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    vars(made).update(state)
    return made


def _rebuild_sparse_tensor(layout: Any, data: tuple[Any, ...]) -> Tensor:
    """A sparse tensor of its parts. NotImplementedError for a layout that weft lacks."""
    if layout is weft.sparse_coo:
        indices, values, size, *coalesced = data
        return weft.sparse_coo_tensor(
            indices, values, size, is_coalesced=coalesced and coalesced[0]
        )
    return weft.sparse_compressed_tensor(*data, layout=layout)


# What Python's pickles name in modules that are weft's own.


def _load_from_bytes(data: bytes) -> Any:
    """torch.storage._load_from_bytes: a storage, which is a file of its own in a pickle."""
    return weft.load(io.BytesIO(data))


def _get_layout(name: str) -> Any:
    """torch.serialization._get_layout: the layout that prints so; KeyError for none."""
    return {str(each): each for each in vars(weft).values() if isinstance(each, weft.layout)}[name]
