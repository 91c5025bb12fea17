"""Operators that programs define: functions that traces, programs, graphs and transforms call
without looking inside.

`custom_op` makes one of a Python function; `define` and `impl`, or a `Library`, of a schema and
functions for devices. What autograd, vmap and autocast do with it is registered for it, or follows.
All of them, and weft's own, are in `weft.ops`.
"""

from weft._runtime.exports import list_exports as _list_exports
from weft.library._custom import CustomOpDef as CustomOpDef
from weft.library._custom import custom_op as custom_op
from weft.library._custom import get_ctx as get_ctx
from weft.library._custom import get_kernel as get_kernel
from weft.library._custom import register_autocast as register_autocast
from weft.library._custom import register_autograd as register_autograd
from weft.library._custom import register_fake as register_fake
from weft.library._custom import register_kernel as register_kernel
from weft.library._custom import register_torch_dispatch as register_torch_dispatch
from weft.library._custom import register_vmap as register_vmap
from weft.library._custom import triton_op as triton_op
from weft.library._custom import wrap_triton as wrap_triton
from weft.library._infer import infer_schema as infer_schema
from weft.library._library import Library as Library
from weft.library._library import _define
from weft.library._library import fallthrough_kernel as fallthrough_kernel
from weft.library._library import impl as impl
from weft.library._opcheck import opcheck as opcheck
from weft.library._overloads import OpOverload as OpOverload
from weft.library._overloads import OpOverloadPacket as OpOverloadPacket

define = _define
impl_abstract = register_fake

_list_exports(vars())
