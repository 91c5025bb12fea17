"""torch._higher_order_ops.associative_scan."""

from weft.func._scans import associative_scan as associative_scan
