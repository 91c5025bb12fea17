"""Functions of functions: functional_call."""

from weft.func._functional_call import functional_call

__all__ = ["functional_call"]
