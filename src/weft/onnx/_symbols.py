"""Tensors of an ONNX graph that is being written: what operators of the table take and give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import TensorProto, TypeProto, helper

from weft._C import Tensor, dtype
from weft._runtime.public import weft
from weft.func._operators import CannotEvaluate

ELEMENTS: dict[dtype, int] = {
    weft.float32: TensorProto.FLOAT,
    weft.float64: TensorProto.DOUBLE,
    weft.float16: TensorProto.FLOAT16,
    weft.bfloat16: TensorProto.BFLOAT16,
    weft.uint8: TensorProto.UINT8,
    weft.int8: TensorProto.INT8,
    weft.int16: TensorProto.INT16,
    weft.int32: TensorProto.INT32,
    weft.int64: TensorProto.INT64,
    weft.uint16: TensorProto.UINT16,
    weft.uint32: TensorProto.UINT32,
    weft.uint64: TensorProto.UINT64,
    weft.bool: TensorProto.BOOL,
    weft.complex64: TensorProto.COMPLEX64,
    weft.complex128: TensorProto.COMPLEX128,
}
DTYPES = {number: dtype for dtype, number in ELEMENTS.items()}

# A size of a dimension: a number, a name that stands for one, or None where nothing is known.
Size = int | str | None


def element(dtype: dtype) -> int:
    """ONNX's number of a dtype; TypeError for one that it has not."""
    if dtype not in ELEMENTS:
        raise TypeError(f"export: expected a dtype that ONNX has, got {dtype}")
    return ELEMENTS[dtype]


class Symbol:
    """A tensor of the graph. `dtype` is None where ONNX cannot tell, `sizes` None where the rank is
    not known. `is_number`: a Python number of the program, of no dimension. `value`: what it is, of
    constants. `items`: of a sequence of tensors, the dtype of these.

    Numbers have arithmetic, so that sizes known when the model runs are computed like others.
    """

    def __init__(
        self,
        graph: Any,
        name: str,
        dtype: dtype | None,
        sizes: Sequence[Size] | None,
        *,
        is_number: bool = False,
        value: Tensor | None = None,
        is_sequence: bool = False,
    ) -> None:
        self.graph = graph
        self.name = name
        self.dtype = dtype
        self.sizes = None if sizes is None else tuple(sizes)
        self.is_number = is_number
        self.value = value
        self.is_sequence = is_sequence
        self.size_name: str | None = None  # of a number that is the size of this name

    def __repr__(self) -> str:
        return f"%{self.name} : {self.dtype}{list(self.sizes) if self.sizes is not None else '?'}"

    @property
    def python_type(self) -> type:
        """Of a number, the Python type."""
        whole = int if self.dtype == weft.int64 else float
        return bool if self.dtype == weft.bool else whole

    # What composed operators ask of their arguments ---------------------------------------------

    @property
    def rank(self) -> int:
        """How many dimensions it has; ValueError where nobody can tell."""
        if self.sizes is None:
            raise ValueError(
                f"export: expected a tensor whose number of dimensions is known, got {self}"
            )
        return len(self.sizes)

    def dim(self) -> int:
        """How many dimensions it has."""
        return self.rank

    @property
    def shape(self) -> list[Any]:
        """Its sizes: numbers, and symbols of those that the model knows when it runs."""
        return [self.graph.size(self, i) for i in range(self.rank)]

    def size(self, dim: int) -> Any:
        """One of its sizes."""
        return self.graph.size(self, dim)

    def numel(self) -> Any:
        """How many elements it has."""
        count: Any = 1
        for each in self.shape:
            count = count * each
        return count

    @property
    def device(self) -> Any:
        """The CPU: ONNX knows no device."""
        return weft.device("cpu")

    def is_floating_point(self) -> bool:
        """Whether its dtype is floating."""
        return bool(self.dtype is not None and self.dtype.is_floating_point)

    def is_complex(self) -> bool:
        """Whether its dtype is complex."""
        return bool(self.dtype is not None and self.dtype.is_complex)

    # PyTorch's names, for operators of programs ---------------------------------------------------

    def type(self) -> Symbol:
        """Itself, as something that has its dtype and sizes."""
        return self

    def setType(self, other: Symbol) -> Symbol:
        """Takes the dtype and sizes of another: the type of a custom operator's result."""
        self.dtype, self.sizes = other.dtype, other.sizes
        return self

    # Arithmetic of numbers ------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise CannotEvaluate(f"{self} is known when the model runs")

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        return self.graph.number("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.graph.number("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.graph.number("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.graph.number("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.graph.number("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.graph.number("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.graph.number("floordiv", self, other)

    def __truediv__(self, other: Any) -> Any:
        return self.graph.number("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.graph.number("div", other, self)

    def __mod__(self, other: Any) -> Any:
        return self.graph.number("remainder", self, other)

    def __neg__(self) -> Any:
        return self.graph.number("neg", self)


class Unsupported:
    """The result of an operator that has no mapping, and of all that is computed from it."""

    sizes = dtype = None


def type_of(symbol: Symbol) -> TypeProto | None:
    """The ONNX type; None where the dtype is not known."""
    if symbol.dtype is None:
        return None
    tensor = helper.make_tensor_type_proto(element(symbol.dtype), symbol.sizes)
    return helper.make_sequence_type_proto(tensor) if symbol.is_sequence else tensor


def parts_of(proto: TypeProto) -> tuple[dtype | None, tuple[Size, ...] | None, bool]:
    """dtype, sizes, and whether it is a sequence, of an ONNX type."""
    is_sequence = proto.HasField("sequence_type")
    tensor = (proto.sequence_type.elem_type if is_sequence else proto).tensor_type
    sizes = None
    if tensor.HasField("shape"):
        sizes = tuple(map(_size, tensor.shape.dim))
    return DTYPES.get(tensor.elem_type), sizes, is_sequence


def _size(dim: Any) -> Size:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.HasField("dim_param") and dim.dim_param else None


def proto_of(tensor: Tensor, name: str) -> TensorProto:
    """A tensor's elements as ONNX keeps them."""
    held = tensor.detach().contiguous()
    flat: Any = held.reshape(-1)
    raw = bytes(flat.view(weft.uint8).numpy()) if held.numel() else b""
    return helper.make_tensor(name, element(held.dtype), list(held.shape), raw, raw=True)


Handler = Callable[..., Any]
