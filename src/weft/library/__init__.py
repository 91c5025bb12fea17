"""Operators that programs define: functions that traces, programs, graphs and transforms call
without looking inside.

`custom_op` makes one of a Python function; `define` and `impl`, or a `Library`, of a schema and
functions for devices. What autograd, vmap and autocast do with it is registered for it, or follows.
All of them, and weft's own, are in `weft.ops`.
"""

from weft.library._custom import (
    CustomOpDef,
    custom_op,
    get_ctx,
    get_kernel,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
    triton_op,
    wrap_triton,
)
from weft.library._infer import infer_schema
from weft.library._library import Library, fallthrough_kernel, impl
from weft.library._library import _define as define
from weft.library._opcheck import opcheck
from weft.library._overloads import OpOverload, OpOverloadPacket

impl_abstract = register_fake

__all__ = [
    "CustomOpDef",
    "Library",
    "OpOverload",
    "OpOverloadPacket",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]
