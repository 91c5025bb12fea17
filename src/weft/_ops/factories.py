"""Operators that make tensors from sizes and numbers."""

from __future__ import annotations

from typing import Any

from weft._ops.table import op

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_FORMAT = "MemoryFormat? memory_format=None"


def _factory(schema: str, doc: str, *, out: str | bool | None = None, **rest: Any) -> None:
    schema = schema.replace("OPTIONS", _OPTIONS).replace("FORMAT", _FORMAT)
    tags = ("factory", "nondifferentiable", *rest.pop("tags", ()))
    op(f"{schema} -> Tensor", doc=doc, tags=tags, out=out, **rest)


_factory(
    "empty.memory_format(int[] size, *, OPTIONS, FORMAT)",
    "A tensor of undefined contents.",
    out="out",
    shape="size",
)
_factory(
    "empty_strided(int[] size, int[] stride, *, OPTIONS)",
    "A tensor of undefined contents with the given strides.",
)
_factory("zeros(int[] size, *, OPTIONS)", "A tensor of zeros.", out=True, shape="size")
_factory("ones(int[] size, *, OPTIONS)", "A tensor of ones.", out=True, shape="size")
_factory(
    "full(int[] size, Scalar fill_value, *, OPTIONS)",
    "A tensor filled with a number.",
    out=True,
    shape="size",
)
_factory(
    "arange(Scalar end, *, OPTIONS)",
    "0, 1, ... below end; int64 for integers, else the default.",
    native="arange(Scalar(0), end, Scalar(1), ...)",
    out=True,
    shape="counted(0, end, 1)",
    tags=("fills_out",),
    result="end",
)
_factory(
    "arange.start(Scalar start, Scalar end, *, OPTIONS)",
    "start, start + 1, ... below end.",
    native="arange(start, end, Scalar(1), ...)",
    shape="counted(start, end, 1)",
    result="end",
)
_factory(
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, OPTIONS)",
    "start, start + step, ... up to, without, end.",
    out="start_out",
    shape="counted(start, end, step)",
    tags=("fills_out",),
    result="end",
)
_factory(
    "linspace(Scalar start, Scalar end, int steps, *, OPTIONS)",
    "`steps` numbers at equal distances from start to end, both included.",
    out=True,
    shape="[steps]",
    tags=("fills_out",),
)
_factory(
    "eye(int n, *, OPTIONS)",
    "The identity matrix of n rows.",
    native="eye(n, n, ...)",
    out=True,
    shape="[n, n]",
)
_factory(
    "eye.m(int n, int m, *, OPTIONS)",
    "A matrix of n rows, m columns with ones on the diagonal.",
    out=True,
    shape="[n, m]",
)
_factory(
    "scalar_tensor(Scalar s, *, OPTIONS)",
    "A 0-d tensor holding a number.",
    native="full({}, s, dtype ? *dtype : weft::default_dtype(), layout, device, pin_memory)",
    shape="[]",
)
_AS_SELF = "dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin_memory"
for _name, _what in (("empty", "undefined contents"), ("zeros", "zeros"), ("ones", "ones")):
    _factory(
        f"{_name}_like(Tensor self, *, OPTIONS, FORMAT)",
        f"A tensor of {_what} with the shape, dtype and device of self.",
        variants="f",
        like="self",
    )
    _factory(
        f"new_{_name}(Tensor self, int[] size, *, OPTIONS)",
        f"A tensor of {_what} with the dtype and device of self.",
        native=f"{_name}(size, {_AS_SELF}{', {}' if _name == 'empty' else ''})",
        variants="m",
        shape="size",
        result="self",
    )
_factory(
    "full_like(Tensor self, Scalar fill_value, *, OPTIONS, FORMAT)",
    "A tensor filled with a number, with the shape, dtype and device of self.",
    variants="f",
    like="self",
)
_factory(
    "new_full(Tensor self, int[] size, Scalar fill_value, *, OPTIONS)",
    "A tensor filled with a number, with the dtype and device of self.",
    native=f"full(size, fill_value, {_AS_SELF})",
    variants="m",
    shape="size",
    result="self",
)
