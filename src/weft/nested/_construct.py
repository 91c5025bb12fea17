"""Functions that make nested tensors, and dense ones of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.nested import _operators as _operators
from weft.nested._forms import Jagged, Pieces, Ragged
from weft.nested._tensor import NestedTensor, is_nested, join, leaf, make


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """A nested tensor with copies of tensors, or of lists of numbers, and without their history.

    Layout `weft.jagged`: they may differ in one dimension; `weft.strided`, the default: in any.
    RuntimeError for tensors of different dtypes or numbers of dimensions.

    >>> x = weft.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=weft.jagged)
    >>> [part.tolist() for part in x * 2]
    [[2.0, 4.0], [6.0]]
    """
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(f"nested_tensor: expected a list, got {type(tensor_list).__name__}")
    parts = [one if isinstance(one, Tensor) else weft.tensor(one) for one in tensor_list]
    with weft.no_grad():
        made = _of_list("nested_tensor", parts, layout)
        made = make(made._form, _C.clone(made.values()).to(device=device, dtype=dtype))
    return leaf(made, requires_grad)


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> NestedTensor:
    """A nested tensor of tensors, with their history: of a list, of the rows of a dense tensor, or
    a nested one itself.

    TypeError for anything else, RuntimeError for a tensor of less than two dimensions.

    >>> x = weft.ones(2, requires_grad=True)
    >>> weft.nested.as_nested_tensor([x, x[:1]]).to_padded_tensor(0).sum().backward()
    >>> x.grad
    tensor([2., 1.])
    """
    if is_nested(ts):
        if layout is not None and layout is not ts.layout:
            raise RuntimeError(f"as_nested_tensor: expected layout {ts.layout}, got {layout}")
        return cast(NestedTensor, ts.to(device=device, dtype=dtype))
    if isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(f"as_nested_tensor: expected 2 dims or more, got {ts.dim()}")
        ts = ts.to(device=device, dtype=dtype)
        if layout is _C.jagged:
            ragged = Ragged.of([ts.shape[1]] * ts.shape[0], ts.device)
            return make(Jagged(ragged), ts.contiguous().flatten(0, 1))
        return make(Pieces([ts.shape[1:]] * ts.shape[0]), ts.reshape(-1))
    if not isinstance(ts, (list, tuple)) or not all(isinstance(one, Tensor) for one in ts):
        raise TypeError(f"as_nested_tensor: expected tensors, got {type(ts).__name__}")
    made = _of_list("as_nested_tensor", list(ts), layout)
    return cast(NestedTensor, made.to(device=device, dtype=dtype))


def _of_list(name: str, parts: list[Tensor], layout: Any) -> NestedTensor:
    if layout not in (None, _C.strided, _C.jagged):
        raise RuntimeError(f"{name}: expected layout torch.strided or torch.jagged, got {layout}")
    for what in ("dtype", "device", "ndim"):
        found = {getattr(part, what) for part in parts}
        if len(found) > 1:
            raise RuntimeError(f"{name}: expected one {what}, got {sorted(map(str, found))}")
    if layout is not _C.jagged:
        return join(Pieces([]), parts)
    if not parts or parts[0].dim() == 0:
        raise RuntimeError(f"{name}: expected tensors of one dim or more, got {parts}")
    ragged = [dim for dim, sizes in enumerate(zip(*(p.shape for p in parts))) if len({*sizes}) > 1]
    if len(ragged) > 1:
        raise RuntimeError(f"{name}: expected one ragged dim for jagged, got {len(ragged)}")
    place = ragged[0] if ragged else 0
    sizes = Ragged.of([part.shape[place] for part in parts], parts[0].device)
    return join(Jagged(sizes, place + 1), parts)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A nested tensor over values of which one dimension is packed, without a copy.

    offsets: where each tensor begins and the last ends, [batch + 1]. lengths: how long each is,
    [batch]; with offsets, there may be holes between them. jagged_dim: the ragged dimension,
    counted with the batch, 1 by default. min_seqlen and max_seqlen have no effect. RuntimeError
    without offsets and lengths, ValueError for a jagged_dim below 1.

    >>> values = weft.arange(4.0)
    >>> x = weft.nested.nested_tensor_from_jagged(values, lengths=weft.tensor([1, 3]))
    >>> x.unbind()
    (tensor([0.]), tensor([1., 2., 3.]))
    """
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"nested_tensor_from_jagged: expected jagged_dim >= 1, got {jagged_dim}")
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged: expected offsets or lengths, got none")
        offsets, lengths = weft.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    if offsets.dim() != 1 or (lengths is not None and len(lengths) != len(offsets) - 1):
        raise RuntimeError(
            f"nested_tensor_from_jagged: expected offsets [batch + 1] and lengths [batch], got "
            f"{tuple(offsets.shape)} and {None if lengths is None else tuple(lengths.shape)}"
        )
    return make(Jagged(Ragged(offsets, lengths), jagged_dim or 1), values)


def narrow(
    tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = _C.strided
) -> NestedTensor:
    """From each row of a dense tensor, `length` elements of a dimension from `start` on.

    Layout `weft.jagged`: a view; dim is 1, start and length may be tensors, one number for each
    row. `weft.strided`: copies; numbers only. RuntimeError otherwise.

    >>> x = weft.arange(6.0).view(2, 3)
    >>> weft.nested.narrow(x, 1, 0, weft.tensor([1, 2]), layout=weft.jagged).unbind()
    (tensor([0.]), tensor([3., 4.]))
    """
    if layout is not _C.jagged:
        if isinstance(start, Tensor) or isinstance(length, Tensor) or layout is not _C.strided:
            raise RuntimeError(f"narrow: expected numbers for strided, got {start} and {length}")
        return as_nested_tensor(list(tensor.narrow(dim, start, length)), layout=layout)
    if dim != 1 or tensor.dim() < 2:
        raise RuntimeError(f"narrow: expected dim 1 of 2 or more, got {dim} of {tensor.dim()}")
    batch, width = tensor.shape[:2]
    starts, lengths = (
        _C.as_tensor(one, dtype=_C.int64).expand(batch).contiguous() for one in (start, length)
    )
    if batch and (int(starts.min()) < 0 or int((starts + lengths).max()) > width):
        raise RuntimeError(f"narrow: expected elements within {width}, got {start} and {length}")
    begins = starts + _C.arange(batch) * width
    offsets = _C.cat([begins, begins[-1:] + lengths[-1:]])
    values = tensor.view(-1, *tensor.shape[2:])
    if bool((offsets.diff() == lengths).all()):
        return make(Jagged(Ragged(offsets - offsets[0])), values[offsets[0] : offsets[-1]])
    return make(Jagged(Ragged(offsets, lengths)), values)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """What a mask keeps of each row along the last dimension, with layout jagged.

    >>> x = weft.tensor([[1, 2], [3, 4]])
    >>> weft.nested.masked_select(x, x > 1).unbind()
    (tensor([2]), tensor([3, 4]))
    """
    for one in (tensor, mask):
        if one.layout is not _C.strided:
            raise RuntimeError(f"masked_select: expected layout torch.strided, got {one.layout}")
    lengths = mask.expand(tensor.shape).sum(-1).view(-1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=lengths)


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Any = None, out: Tensor | None = None
) -> Tensor:
    """The tensors of a nested one in a dense tensor, with `padding` behind those that are shorter.

    output_size: the sizes of the result, by default the largest there are; RuntimeError for
    smaller ones, NotImplementedError for a dense input.

    >>> x = weft.nested.nested_tensor([weft.ones(1), weft.ones(2)])
    >>> weft.nested.to_padded_tensor(x, -1.0)
    tensor([[ 1., -1.],
            [ 1.,  1.]])
    """
    if not is_nested(input):
        raise NotImplementedError("to_padded_tensor: expected a nested tensor, got a dense one")
    return _operators.pad(None, input, padding, output_size, out)
