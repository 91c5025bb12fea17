"""Operators of weft that PyTorch has not, or has by another name."""

from __future__ import annotations

from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node
from weft.library._operator import Operator

# What says the same in PyTorch.
RENAMED = {
    "aten::ndimension": "aten::dim",
    "prim::ndim": "aten::dim",
    "prim::shape": "aten::size",
    "aten::repr": "aten::str",
}
# Names that PyTorch has not. Those of one leading underscore are weft's own but for the following.
_ABSENT = frozenset(
    f"aten::{name}"
    for name in (
        "H", "cbrt", "comb", "format_spec", "fsum", "get_default_dtype", "isqrt", "mathdist",
        "mathexp2", "mathnextafter", "perf_counter", "perm", "time", "ulp",
        "removeprefix", "removesuffix",
    )
) | frozenset(
    f"prim::{name}"
    for name in (
        "autocast_now", "dtype_number", "imag", "layout_number", "numbered_dtype", "real",
        "retains_grad", "write",
    )
) | {"autograd::backward"}  # fmt: skip
_SHARED = frozenset(
    (
        "_adaptive_avg_pool2d_backward", "_dirichlet_grad", "_get_tracing_state", "_infer_size",
        "_int_mm", "_log_softmax_backward_data", "_prelu_kernel", "_sample_dirichlet", "_scaled_mm",
        "_set_item", "_softmax_backward_data", "_standard_gamma", "_standard_gamma_grad",
        "_to_copy", "_unique2", "_unwrap_optional", "_weight_int8pack_mm",
    )
)  # fmt: skip
# Overloads that PyTorch has not, nor another that takes their arguments for the same.
_ABSENT_OVERLOADS = frozenset(
    (
        "aten::round.digits", "aten::log2.Scalar", "aten::log2.int", "aten::trunc.Scalar",
        "aten::trunc.int", "aten::trunc.float", "aten::log2.float", "aten::hypot.float",
        "aten::hypot.int", "aten::hypot.int_float", "aten::hypot.float_int",
        "aten::hypot.Scalar_Scalar", "aten::isclose.float", "aten::lcm.int",
        "aten::bitwise_not.int", "aten::mul.str", "aten::__contains__.str_in",
        "aten::is_floating_point.dtype", "aten::is_complex.dtype", "aten::all.str",
        "aten::len.tuple", "aten::index.t", "aten::remove.t", "aten::count.t",
        "aten::lt.t", "aten::le.t", "aten::gt.t", "aten::ge.t", "aten::__contains__.t",
        "aten::__contains__.Tensor_list", "aten::_adaptive_avg_pool2d_backward.sizes",
    )
)  # fmt: skip
_OF_NODES = frozenset(
    ("prim::CallPython", "prim::EnterAutocast", "prim::ExitAutocast", "prim::EnterGradMode")
)


def is_absent(kind: str) -> bool:
    """Whether PyTorch has no operator of a kind."""
    name, _, overload = kind.partition(".")
    short = name.partition("::")[2]
    if short[:1] == "_" and short[:2] != "__" and short not in _SHARED:
        return True
    if overload in _OF_OTHER_KEYS or (short in ("eq", "ne") and overload.startswith("Dict_")):
        return True
    return name in _ABSENT or kind in _ABSENT_OVERLOADS


_OF_OTHER_KEYS = frozenset(("k", "Dict_k", "default_k", "Dict_default_k"))


def is_custom(node: Node) -> bool:
    """Whether a node calls an operator that a program defined, which PyTorch may have too."""
    if node.kind != "prim::CallPython":
        return False
    return isinstance(getattr(node.attrs["callable"], "__self__", None), Operator)


def is_foreign(node: Node) -> bool:
    """Whether PyTorch has no operator for a node."""
    if node.kind in ("aten::eq.t", "aten::ne.t"):
        return not all(isinstance(value.type, ty.EnumType) for value in node.inputs)
    if is_custom(node):
        return False
    return node.kind in _OF_NODES or is_absent(node.kind)


# PyTorch's dicts have keys of these types only.
KEYS = (ty.STR, ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.TENSOR)
