"""Passes over graphs."""

from weft.fx.passes import graph_drawer, infra, shape_prop, split_module

__all__ = ["graph_drawer", "infra", "shape_prop", "split_module"]
