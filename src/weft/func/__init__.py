"""Functions of functions: gradients, Jacobians, products with them, and modules as functions."""

from weft.func._forward import hessian, jacfwd, jvp, linearize
from weft.func._functional_call import functional_call
from weft.func._modules import (
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from weft.func._reverse import grad, grad_and_value, jacrev, vjp
from weft.func._vmap import vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
