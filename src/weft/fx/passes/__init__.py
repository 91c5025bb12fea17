"""Passes over graphs."""

from weft.fx.passes import infra, shape_prop, split_module

__all__ = ["infra", "shape_prop", "split_module"]
