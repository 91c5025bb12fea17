"""torch._higher_order_ops.scan."""

from weft.func._scans import scan as scan
