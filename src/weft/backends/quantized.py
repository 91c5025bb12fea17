"""Engines of operators on quantised tensors, of which there are none."""

engine, supported_engines = "none", ["none"]
