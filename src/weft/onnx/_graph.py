"""The ONNX graph while it is written. `Graph.op` is the one way in which nodes are made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
import onnx
from onnx import AttributeProto, NodeProto, helper, shape_inference

from weft._C import Tensor, dtype
from weft._runtime.public import weft
from weft.onnx._symbols import Size, Symbol, Unsupported, element, parts_of, proto_of, type_of
from weft.onnx._table import run

_SUFFIX = re.compile(r"_[ifst]$")
_SMALL = 1024  # elements of a constant whose values shape inference may look at
_Kind = AttributeProto.AttributeType


class Block:
    """Nodes that are being written: of the graph, or of a branch or loop within it."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.sizes: dict[tuple[str, int], Symbol] = {}  # symbols of sizes that were asked for


class Graph:
    """The graph, with the blocks that are open, innermost last.

    `opset` is the version of ONNX's operators. `initializers` are constants by name, `call` runs an
    operator of the table by its key ("add.Tensor"). `folds`: constants are computed with now.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.blocks = [Block()]
        self.initializers: dict[str, Tensor] = {}
        self.domains: set[str] = set()
        self._names: set[str] = set()
        self._constants: dict[tuple[Any, ...], Symbol] = {}
        self.folds = True

    # Nodes ----------------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """One node. `kind`: "Add", or "domain::Name" of an operator outside of ONNX. Inputs are
        symbols, tensors, numbers, lists of whole numbers, or None for one that is left out.
        Attributes may have PyTorch's suffixes (`axis_i=1`). Gives a Symbol, or a tuple of them.
        """
        domain, _, name = kind.rpartition("::")
        given = [self.symbol(each) for each in inputs]
        while given and given[-1] is None:
            given.pop()
        if any(isinstance(each, Unsupported) for each in given):
            return Unsupported() if outputs == 1 else tuple(Unsupported() for _ in range(outputs))
        names = [self.unique(name.lower()) for _ in range(outputs)]
        schema = None if domain else onnx.defs.get_schema(name, self.opset)
        node = helper.make_node(
            name, ["" if e is None else e.name for e in given], names, domain=domain
        )
        for key, value in attributes.items():
            if value is not None:
                node.attribute.append(_attribute(key, value, schema))
        self.domains.add(domain)
        self.blocks[-1].nodes.append(node)
        types = self._infer(schema, node, [each for each in given if each is not None])
        made = tuple(Symbol(self, n, d, s, is_sequence=q) for n, (d, s, q) in zip(names, types))
        return made[0] if outputs == 1 else made

    def _infer(self, schema: Any, node: NodeProto, given: Sequence[Symbol]) -> list[Any]:
        """(dtype, sizes, is_sequence) of each output."""
        unknown = [(None, None, False)] * len(node.output)
        types = {each.name: type_of(each) for each in given}
        if schema is None or node.op_type in ("If", "Loop") or None in types.values():
            return unknown
        values = {
            each.name: proto_of(each.value, each.name)
            for each in given
            if each.value is not None and each.value.numel() <= _SMALL
        }
        imports = [helper.make_opsetid("", self.opset)]
        try:
            found = shape_inference.infer_node_outputs(
                schema, node, types, values, opset_imports=imports
            )
        except shape_inference.InferenceError as error:
            shown = ", ".join(map(str, given))
            text = str(error).splitlines()[0]
            raise ValueError(
                f"{node.op_type}: expected other operands, got {shown}: {text}"
            ) from None
        return [parts_of(found[n]) if n in found else (None, None, False) for n in node.output]

    @contextmanager
    def block(self) -> Iterator[Block]:
        """Within, nodes go to a new block, which a node may then have as an attribute."""
        made = Block()
        self.blocks.append(made)
        try:
            yield made
        finally:
            self.blocks.pop()

    def unique(self, wanted: str) -> str:
        """A name that nothing in the graph has yet."""
        name, count = wanted, 0
        while name in self._names:
            count += 1
            name = f"{wanted}_{count}"
        self._names.add(name)
        return name

    def call(self, key: str, *args: Any) -> Any:
        """What the operator `key` of weft gives, by its mapping."""
        return run(self, key, args)

    # Constants ------------------------------------------------------------------------------------

    def symbol(self, value: Any) -> Any:
        """A value as an input of a node; None stays None."""
        if value is None or isinstance(value, Unsupported):
            return value
        if isinstance(value, (list, tuple)):
            return self.ints(value)
        made = value if isinstance(value, Symbol) else self.constant(value)
        if made.value is not None:
            self.initializers.setdefault(made.name, made.value)
        return made

    def constant(self, value: Any, dtype: dtype | None = None, name: str = "constant") -> Symbol:
        """A constant: a tensor, a number, or a list of whole numbers."""
        is_number = not isinstance(value, (Tensor, list, tuple))
        key = (type(value), repr(value), dtype) if not isinstance(value, Tensor) else None
        if key in self._constants:
            return self._constants[key]
        tensor = value if isinstance(value, Tensor) else _tensor(value, dtype)
        if dtype is not None:
            tensor = tensor.to(dtype)
        made = Symbol(self, self.unique(name), tensor.dtype, tensor.shape, value=tensor.detach())
        made.is_number = is_number
        if key is not None:
            self._constants[key] = made
        return made

    def ints(self, items: Sequence[Any]) -> Symbol:
        """Whole numbers, some known only when the model runs, as a tensor of one dimension."""
        if not any(isinstance(each, Symbol) for each in items):
            return self.symbol(self.constant(weft.tensor(list(items), dtype=weft.int64)))
        parts: list[Any] = []
        for each in items:
            if isinstance(each, Symbol):
                parts.append(self.op("Reshape", self.cast(each, weft.int64), self.ints([1])))
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(each)
            else:
                parts.append([each])
        if len(parts) == 1:
            return self.symbol(parts[0])
        return self.op("Concat", *parts, axis=0)

    # Sizes and shapes -----------------------------------------------------------------------------

    def size(self, x: Symbol, dim: int) -> Any:
        """A size: a number, or the symbol of one that is known when the model runs."""
        dim = self.dim(x, dim)
        size = x.sizes[dim] if x.sizes is not None else None
        if isinstance(size, int):
            return size
        if x.value is not None:
            return x.value.shape[dim]
        for block in self.blocks:
            if (x.name, dim) in block.sizes:
                return block.sizes[x.name, dim]
        taken = self.op("Gather", self.op("Shape", x), self.constant(dim), axis=0)
        taken.is_number, taken.size_name = True, size
        self.blocks[-1].sizes[x.name, dim] = taken
        return taken

    def dim(self, x: Symbol, dim: int) -> int:
        """A dimension counted from the front; IndexError for one that x has not."""
        if dim >= 0 and x.sizes is None:
            return dim
        rank = max(x.rank, 1)
        if not -rank <= dim < rank:
            raise IndexError(f"export: expected a dimension of {x}, got {dim}")
        return dim % rank

    def dims(self, x: Symbol, dims: Any) -> list[int]:
        """Several dimensions from the front; all of them for None and for none."""
        if dims is None or (isinstance(dims, (list, tuple)) and not dims):
            return list(range(x.rank))
        return [self.dim(x, d) for d in (dims if isinstance(dims, (list, tuple)) else [dims])]

    def sized(self, x: Any, sizes: Sequence[Any] | None) -> Any:
        """The same symbol, with what is known of its sizes: numbers, and symbols of numbers."""
        if isinstance(x, Symbol) and sizes is not None:
            known = x.sizes if x.sizes is not None and len(x.sizes) == len(sizes) else None
            wanted = [_size_of(each) for each in sizes]
            x.sizes = tuple(
                was if size is None and known is not None else size
                for size, was in zip(wanted, known or wanted)
            )
        return x

    def reshape(self, x: Symbol, sizes: Sequence[Any]) -> Symbol:
        """x in other sizes, of which one may be -1."""
        if x.sizes is not None and list(x.sizes) == list(sizes):
            return x
        sizes = list(sizes)
        unknown = [i for i, each in enumerate(sizes) if isinstance(each, Symbol)]
        if len(unknown) == 1 and -1 not in [e for e in sizes if isinstance(e, int)]:
            known = [*sizes]
            if 0 not in known:
                sizes[unknown[0]] = -1  # a constant shape, which other programs like better
                return self.sized(self.op("Reshape", x, sizes), known)
        named = [None if isinstance(e, int) and e == -1 else e for e in sizes]
        has_zero = any(isinstance(each, int) and each == 0 for each in sizes)
        flag = 1 if has_zero or unknown else None
        return self.sized(self.op("Reshape", x, sizes, allowzero=flag), named)

    def flat(self, x: Symbol) -> Symbol:
        """x in one dimension."""
        return self.op("Reshape", x, [-1])

    def unsqueeze(self, x: Symbol, *dims: int) -> Symbol:
        """x with dimensions of size 1 at these places of the result."""
        return self.op("Unsqueeze", x, list(dims)) if dims else x

    def squeeze(self, x: Symbol, *dims: int) -> Symbol:
        """x without these dimensions, which have size 1."""
        return self.op("Squeeze", x, list(dims)) if dims else x

    def expand(self, x: Symbol, sizes: Sequence[Any]) -> Symbol:
        """x broadcast to these sizes."""
        if x.sizes is not None and list(x.sizes) == list(sizes):
            return x
        return self.sized(self.op("Expand", x, list(sizes)), sizes)

    # dtypes ---------------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: dtype) -> Symbol:
        """x, or the constant of a number, in a dtype."""
        if isinstance(x, Unsupported):
            return x  # type: ignore[return-value]
        if not isinstance(x, Symbol):
            return self.constant(x, dtype)
        if x.dtype == dtype:
            return x
        if x.value is not None and self.folds:
            return self.constant(x.value.to(dtype), name=f"{x.name}_cast")
        made = self.op("Cast", x, to=element(dtype))
        made.dtype, made.sizes, made.is_number = dtype, x.sizes, x.is_number
        return made

    def promote(self, *args: Any) -> dtype:
        """The dtype of arithmetic on symbols and numbers, as weft.result_type has it."""
        ranked: dict[int, Any] = {}
        for each in args:
            dummy = _dummy(each)
            rank = 0 if not isinstance(dummy, Tensor) else 1 + (dummy.dim() > 0)
            held = ranked.get(rank)
            ranked[rank] = dummy if held is None else _both(held, dummy)
        found = [ranked[rank] for rank in sorted(ranked, reverse=True)]
        kept = found[0]
        for each in found[1:]:
            kept = weft.empty((1,) * _rank(kept), dtype=weft.result_type(kept, each))
        return kept.dtype if isinstance(kept, Tensor) else weft.tensor(kept).dtype

    def number(self, name: str, *args: Any) -> Any:
        """Arithmetic of Python numbers, at least one of them known only when the model runs."""
        return self.call(f"number::{name}", *args)


def _rank(value: Any) -> int:
    return value.dim() if isinstance(value, Tensor) else 0


def _dummy(value: Any) -> Any:
    """A number or tensor of the same dtype and, as far as promotion asks for it, rank."""
    if not isinstance(value, Symbol):
        return value
    if value.is_number:
        return value.python_type()
    return weft.empty((1,) * (0 if value.sizes == () else 1), dtype=value.dtype)


def _both(first: Any, second: Any) -> Any:
    dtype = weft.result_type(first, second)
    if isinstance(first, Tensor):
        return weft.empty((1,) * first.dim(), dtype=dtype)
    return {weft.bool: False, weft.int64: 0}.get(dtype, 0.0)


def _tensor(value: Any, dtype: Any) -> Tensor:
    if dtype is None and isinstance(value, float):
        dtype = weft.float32
    if isinstance(value, (list, tuple)):
        return weft.tensor(list(value), dtype=dtype or weft.int64)
    return weft.tensor(value, dtype=dtype)


def _size_of(value: Any) -> Size:
    if isinstance(value, Symbol):
        return value.size_name
    return value if value is None or isinstance(value, str) or value >= 0 else None


def _attribute(key: str, value: Any, schema: Any) -> AttributeProto:
    """An attribute of the type that the schema says; of custom operators, that its suffix says."""
    name = key
    if schema is None or key not in schema.attributes:
        name = _SUFFIX.sub("", key)
    if schema is not None and name not in schema.attributes:
        known = ", ".join(sorted(schema.attributes))
        raise ValueError(f"{schema.name}: expected an attribute among {known}, got {key!r}")
    kind = int(schema.attributes[name].type.value) if schema is not None else 0
    floats = kind in (_Kind.FLOAT, _Kind.FLOATS) or (not kind and key.endswith("_f"))
    if floats:
        value = [float(v) for v in value] if isinstance(value, (list, tuple)) else float(value)
    elif isinstance(value, bool):
        value = int(value)
    if isinstance(value, Tensor):
        value = proto_of(value, "")
    if isinstance(value, numpy.generic):
        value = value.item()
    return helper.make_attribute(name, value, attr_type=kind or None)
