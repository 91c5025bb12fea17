"""ShapeProp: runs a graph and notes the shape and dtype of every value."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft import _C
from weft._C import Size, Tensor
from weft.fx.interpreter import Interpreter
from weft.fx.node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: Size
    dtype: _C.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: _C.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    formats = (_C.contiguous_format, _C.channels_last, _C.channels_last_3d)
    held = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    held = held if include_contiguity else None
    return TensorMetadata(
        *(result.shape, result.dtype, result.requires_grad, result.stride(), held, False, {})
    )


class ShapeProp(Interpreter):
    """Runs the graph; afterwards meta["tensor_meta"] of each node has the metadata of its value,
    in the value's structure, and meta["type"] its type.

    >>> traced = weft.fx.symbolic_trace(lambda x: weft.relu(x))
    >>> y = weft.fx.passes.shape_prop.ShapeProp(traced).propagate(weft.ones(2, 3))
    >>> [tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes]
    [(2, 3), (2, 3), (2, 3)]
    """

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose metadata is noted."""
        result = super().run_node(n)
        found = False

        def describe(each: Any) -> Any:
            nonlocal found
            if not isinstance(each, Tensor):
                return each
            found = True
            return _extract_tensor_metadata(each)

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The result of the graph for these arguments."""
        return super().run(*args)


__all__ = ["ShapeProp", "TensorMetadata"]
