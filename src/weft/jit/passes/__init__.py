"""Passes: graph to graph. One file each, in the order of weft.jit.pipeline."""
