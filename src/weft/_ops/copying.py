"""Copies, fills, conversions."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, body_of, op, ops

op(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    doc="Writes src, broadcast and converted, into self.",
    grad={"self": "zeros_like(grad)", "src": "grad"},
)
for _number in ("int", "float"):
    op(
        f"copy_.{_number}(Tensor(a!) self, {_number} other) -> Tensor(a!)",
        doc="Writes a number everywhere.",
        compose="self.fill_(other)",
    )
op(
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    doc=("Writes a number everywhere.", "Writes the element of a 0-d tensor everywhere."),
    grad={"self": "zeros_like(grad)", "value": "grad.sum()"},
    variants="fm",
)
op(
    "zero_(Tensor(a!) self) -> Tensor(a!)",
    doc="Writes 0 everywhere.",
    grad={"self": "zeros_like(grad)"},
    variants="fm",
)
op(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    doc="A copy with memory of its own; gradients flow through.",
    grad={"self": "grad"},
    like="self",
)
op(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
    doc="self if its elements lie in order without gaps, else a copy for which they do.",
    tags=("composite", "checks_format"),
    variants="m",
    like="self",
)
op(
    "item(Tensor self) -> Scalar",
    doc="The one element as a Python number.",
    tags=("nondifferentiable",),
    variants="m",
)


@backward_of("_no_gradient(Tensor[] results, str name, str argument) -> Tensor")
def _no_gradient(results: Any, name: Any, argument: Any) -> Any:
    """The gradient that nobody wrote: raises. `results`: gradients of what the operator gave."""
    ops.check_implemented(
        False, name, ": expected ", argument,
        " without gradient, got one that requires grad; detach it",
    )  # fmt: skip
    return results[0]


# ---- conversions ----

op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    doc="A copy in another dtype or on another device.",
    grad={"self": "grad"},
    shape="self",
)


@body_of(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    variants="m",
    like="self",
)
def _to_dtype_layout(
    self: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    non_blocking: Any,
    copy: Any,
    memory_format: Any,
) -> Any:
    """self in another dtype or on another device; self itself where nothing changes."""
    same = (dtype is None or dtype == self.dtype) and (device is None or device == self.device)
    if same and not copy and memory_format is None:
        return self
    return ops._to_copy(
        self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
        non_blocking=non_blocking, memory_format=memory_format,
    )  # fmt: skip


op(
    "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, "
    "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    doc="self on a device in a dtype; self itself where nothing changes.",
    compose="to(self, dtype=dtype, layout=None, device=device, non_blocking=non_blocking, "
    "copy=copy, memory_format=memory_format)",
    variants="m",
    like="self",
)
op(
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    doc="self in another dtype; self itself where nothing changes.",
    compose="to(self, dtype=dtype, layout=None, non_blocking=non_blocking, copy=copy, "
    "memory_format=memory_format)",
    variants="m",
    like="self",
)
op(
    "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    doc="self in the dtype and on the device of other.",
    compose="to(self, dtype=other.dtype, layout=None, device=other.device, "
    "non_blocking=non_blocking, copy=copy, memory_format=memory_format)",
    variants="m",
    shape="self",
    result="other",
)
op(
    "type_as(Tensor self, Tensor other) -> Tensor",
    doc="self in the dtype of other.",
    compose="to(self, other)",
    variants="m",
    tags=("may_give_input",),
    shape="self",
    result="other",
)
