"""Lists of tensors in groups of one device and dtype, which optimizers of libraries ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft._C import Tensor, device, dtype

Indices = list[int]
TensorListList = list[list[Tensor | None]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Types of devices, beside the CPU, on which operators take lists of tensors."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Types of devices for which an optimizer may be asked for with fused=True."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: device) -> bool:
    """Whether operators take lists of tensors on the device."""
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: Sequence[Tensor | None], device: device) -> bool:
    """The same of tensors, which may be missing but have no class of their own."""
    plain = all(tensor is None or type(tensor) is Tensor for tensor in tensors)
    return plain and _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[list[list[Any]], Indices]]:
    """Lists of one length, cut alike into groups in which the first list's tensors have one device
    and dtype; beside each group the places its items had, or [] without with_indices."""
    groups: dict[Any, tuple[list[list[Any]], Indices]] = {}
    for place, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(f"expected a tensor in the first list, got None at {place}")
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for source, target in zip(tensorlistlist, lists):
            if source:
                target.append(source[place])
        if with_indices:
            indices.append(place)
    return groups
