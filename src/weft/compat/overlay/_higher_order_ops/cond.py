"""torch._higher_order_ops.cond."""

from weft._functions.branches import cond as cond
