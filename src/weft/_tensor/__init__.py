"""Tensors in Python: the methods that are no operators, printing, dtypes, second names."""

from weft._C import Tensor as Tensor
