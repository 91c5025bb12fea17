"""torch._higher_order_ops: operators that take functions, under the name from which programs import
them."""

from weft.compat.overlay._higher_order_ops.associative_scan import associative_scan
from weft.compat.overlay._higher_order_ops.cond import cond
from weft.compat.overlay._higher_order_ops.map import map
from weft.compat.overlay._higher_order_ops.scan import scan
from weft.compat.overlay._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
