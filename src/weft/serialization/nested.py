"""Nested tensors in files: the parts that PyTorch writes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.nested._construct import nested_tensor_from_jagged
from weft.nested._forms import Pieces
from weft.nested._tensor import NestedTensor, join, leaf, make, values_of
from weft.serialization.errors import LoadError
from weft.serialization.unpickle import Callee, ObjectType

if TYPE_CHECKING:
    from weft.serialization.pickle_writer import PickleWriter


def write(writer: PickleWriter, tensor: NestedTensor) -> None:
    """Writes the call that rebuilds a tensor: of a dict (jagged), or of the values, and sizes,
    strides and offsets of each tensor of the batch (strided)."""
    values, form = values_of(tensor).detach(), tensor._form
    if isinstance(form, Pieces):
        counts = [_C.Size(shape).numel() for shape in form.shapes]
        offsets = _C.tensor([0, *counts[:-1]]).cumsum(0)[: len(counts)]
        strides = [_C.empty(shape, device="meta").stride() for shape in form.shapes]
        sizes, steps = (_C.tensor(each, dtype=_C.int64) for each in (form.shapes, strides))
        parts = values.requires_grad_(tensor.requires_grad), sizes, steps, offsets
        writer._call("torch._utils _rebuild_nested_tensor", *parts)
        return writer.memoize(tensor)
    offsets, lengths, place = form.state()
    named: dict[str, Any] = {"values": values, "offsets": offsets, "lengths": lengths}
    named |= {"_ragged_idx": place, "_metadata_cache": {}}
    writer._global("torch._tensor _rebuild_from_type_v2")
    writer._out += b"("
    writer._global("torch.nested._internal.nested_tensor _rebuild_njt")
    writer._global("torch.nested._internal.nested_tensor NestedTensor")
    writer.save_tuple(({**named, "requires_grad": bool(tensor.requires_grad)},))
    writer.save_dict({})
    writer._out += b"tR"
    writer.memoize(tensor)


def find(name: str, tensor_type: Any) -> Any:
    """What stands for a name of PyTorch's; tensor_type makes it of a class. What its compiler notes
    of a dimension is nothing."""
    if name == "NestedTensor":
        return tensor_type(NestedTensor)
    return ObjectType(name, lambda: None) if name == "_DimRange" else Callee(name, read)


def read(*parts: Any) -> NestedTensor:
    """The tensor of what `write` wrote. LoadError for anything else."""
    try:
        if len(parts) == 1 and type(parts[0]) is dict:
            return _jagged(parts[0])
        if len(parts) == 4 and all(type(one) is Tensor for one in parts):
            return _strided(*parts)
        problem = "something else"
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
        problem = str(error)
    raise LoadError(f"load: expected the parts of a nested tensor, got {problem}")


def _jagged(given: dict[str, Any]) -> NestedTensor:
    values, offsets, lengths = given["values"], given["offsets"], given["lengths"]
    place, requires_grad = given["_ragged_idx"], given["requires_grad"]
    numbers = (offsets,) if lengths is None else (offsets, lengths)
    known = all(type(one) is Tensor for one in (values, *numbers))
    known = known and all(one.dtype in (_C.int32, _C.int64) for one in numbers)
    if not known or type(place) is not int or not 0 < place <= values.dim():
        raise ValueError("something else")
    made = nested_tensor_from_jagged(values.detach(), offsets, lengths, place)
    made.unbind()  # which fails where they do not fit
    return leaf(made, bool(requires_grad))


def _strided(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> NestedTensor:
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist())
    pieces = [buffer.detach().as_strided(*row) for row in rows]
    made = join(Pieces([]), pieces) if pieces else make(Pieces([]), buffer.detach())
    return leaf(made, buffer.requires_grad)
