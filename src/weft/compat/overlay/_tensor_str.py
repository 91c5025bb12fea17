"""torch._tensor_str: how tensors print."""

from weft._tensor.repr import get_printoptions, printoptions, set_printoptions

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]
