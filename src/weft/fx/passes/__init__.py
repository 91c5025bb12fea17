"""Passes over graphs."""

from weft.fx.passes import shape_prop

__all__ = ["shape_prop"]
