"""Memory by the order of its dimensions, tensors in another layout, copies of
views."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime import lazy
from weft._runtime.torch_function import declare as _declare


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """Memory that nobody wrote, whose dimensions lie in the order physical_layout: its last one is
    contiguous.

    options: those of weft.empty. Raises RuntimeError unless each dimension is named once.

    >>> empty_permuted((2, 3, 4), (1, 0, 2)).stride()
    (4, 8, 1)
    """
    order = [int(d) for d in physical_layout]
    if sorted(order) != list(range(len(size))):
        raise RuntimeError(
            f"empty_permuted: expected each of {len(size)} dims once in physical_layout, got "
            f"{order}"
        )
    made = _C.empty([size[d] for d in order], **options)
    return made.permute([order.index(d) for d in range(len(order))])


def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Memory that nobody wrote, of a tensor's dtype unless another is given.

    Raises RuntimeError for a negative stride and for lengths that differ.

    >>> new_empty_strided(weft.ones(2), (2, 3), (1, 2)).stride()
    (1, 2)
    """
    kind = self.dtype if dtype is None else dtype
    return _C.empty_strided(size, stride, dtype=kind, device=device or self.device)


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the smallest.

    ambiguity_check: True raises RuntimeError where several orders fit; a list of memory formats,
    where none of them fits.

    >>> dim_order(weft.ones(2, 3).t())
    (1, 0)
    """
    if isinstance(ambiguity_check, (list, tuple)):
        return _order_of_format(self, ambiguity_check)
    strides = self.stride()
    if ambiguity_check and len(set(strides)) != len(strides):
        raise RuntimeError(f"dim_order: expected strides that differ, got {strides}")
    return tuple(sorted(range(self.dim()), key=lambda d: -strides[d]))


def _order_of_format(x: Tensor, formats: Sequence[Any]) -> tuple[int, ...]:
    orders = {
        _C.contiguous_format: tuple(range(x.dim())),
        _C.channels_last: (0, 2, 3, 1),
        _C.channels_last_3d: (0, 2, 3, 4, 1),
    }
    for each in formats:
        if each not in orders:
            raise TypeError(f"dim_order: expected memory formats, got {each!r}")
        if x.is_contiguous(memory_format=each):
            return orders[each]
    raise RuntimeError(f"dim_order: expected one of {list(formats)}, got strides {x.stride()}")


def as_strided_(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Gives a tensor another layout over its memory; returns it.

    Raises RuntimeError for a layout that reaches outside of the memory, and where a gradient is
    recorded.

    >>> as_strided_(weft.arange(6), (2, 2), (1, 3))
    tensor([[0, 3],
            [1, 4]])
    """
    if input.requires_grad:
        raise RuntimeError("as_strided_: expected a tensor without gradient, got one with it")
    offset = input.storage_offset() if storage_offset is None else storage_offset
    return input.set_(input.untyped_storage(), offset, size, stride)


def detach_(input: Tensor) -> Tensor:
    """Takes a tensor out of the graph of gradients; returns it.

    >>> x = weft.ones(2, requires_grad=True) * 2
    >>> detach_(x).requires_grad
    False
    """
    return input.detach_()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape. TypeError for other objects.

    >>> is_same_size(weft.ones(2, 3), weft.ones(3, 2))
    False
    """
    for name, each in (("input", input), ("other", other)):
        if not isinstance(each, Tensor):
            got = type(each).__name__
            raise TypeError(f"is_same_size: expected argument {name!r} of type Tensor, got {got}")
    return input.shape == other.shape


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> is_signed(weft.ones(2, dtype=weft.uint8))
    False
    """
    return input.dtype.is_signed


def get_device(input: Tensor) -> int:
    """The number of the device; -1 for the CPU.

    >>> get_device(weft.ones(2))
    -1
    """
    return input.get_device()


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device: weft.cpu of "cpu", which is meant where none is given.

    RuntimeError for devices without a module.

    >>> weft.get_device_module().__name__
    'weft.cpu'
    """
    kind = "cpu" if device is None else _C.device(device).type
    if kind not in ("cpu", "cuda", "mps", "xpu"):
        raise RuntimeError(f"get_device_module: expected cpu, cuda, mps or xpu, got {kind}")
    return lazy.find("weft", kind, f"weft.{kind}")


def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Views of parts of given sizes along `dim`.

    Raises RuntimeError unless the sizes add up.

    >>> unsafe_split_with_sizes(weft.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return _C.split_with_sizes(input, split_sizes, dim)


def view_as_real_copy(input: Tensor) -> Tensor:
    """A copy of view_as_real.

    >>> view_as_real_copy(weft.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return _C.view_as_real(input).clone(memory_format=_C.contiguous_format)


def view_as_complex_copy(input: Tensor) -> Tensor:
    """A copy of view_as_complex.

    >>> view_as_complex_copy(weft.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    return _C.view_as_complex(input).clone(memory_format=_C.contiguous_format)


_declare(globals(), ("get_device_module",))
