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


def _arithmetic(graph: Any, name: str, *args: Any) -> Any:
    """Of Python numbers where all are such; otherwise of tensors."""
    numbers = all(not isinstance(each, Symbol) or each.is_number for each in args)
    of_tensors = "floor_divide" if name == "floordiv" else name
    return graph.number(name, *args) if numbers else graph.call(of_tensors, *args)


def _both_ways(name: str) -> tuple[Any, Any]:
    """The methods for self <op> other and other <op> self."""
    return (
        lambda self, other: _arithmetic(self.graph, name, self, other),
        lambda self, other: _arithmetic(self.graph, name, other, self),
    )


class Symbol:
    """A tensor of the graph. `dtype` is None where ONNX cannot tell, `sizes` None where the rank is
    not known. `is_number`: a Python number of the program, of no dimension. `value`: what it is, of
    constants. `items`: of a sequence of tensors, the dtype of these.

    It has arithmetic, so that sizes known when the model runs are computed like others, and
    mappings are written as formulas.
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

    def takes(self, other: Symbol, sizes: Any = ...) -> Symbol:
        """Itself, of which is known what is known of another; `sizes` where those differ."""
        self.dtype, self.sizes = other.dtype, other.sizes if sizes is ... else sizes
        self.is_number, self.is_sequence = other.is_number, other.is_sequence
        return self

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

    # Arithmetic -----------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise CannotEvaluate(f"{self} is known when the model runs")

    __hash__ = object.__hash__

    __add__, __radd__ = _both_ways("add")
    __sub__, __rsub__ = _both_ways("sub")
    __mul__, __rmul__ = _both_ways("mul")
    __truediv__, __rtruediv__ = _both_ways("div")
    __floordiv__, __rfloordiv__ = _both_ways("floordiv")
    __mod__, __rmod__ = _both_ways("remainder")

    def __neg__(self) -> Any:
        return _arithmetic(self.graph, "neg", self)


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
