"""Modules of torch.* that are not weft's modules of the same name."""
