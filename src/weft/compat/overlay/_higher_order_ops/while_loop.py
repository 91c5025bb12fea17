"""torch._higher_order_ops.while_loop."""

from weft._functions.branches import while_loop as while_loop
