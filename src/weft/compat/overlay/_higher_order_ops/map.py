"""torch._higher_order_ops.map."""

from weft.compat.functorch import map as map
