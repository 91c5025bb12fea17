"""Functions of functions: gradients, Jacobians, products with them, and modules as functions."""

from weft._runtime.exports import list_exports as _list_exports
from weft.func._forward import hessian as hessian
from weft.func._forward import jacfwd as jacfwd
from weft.func._forward import jvp as jvp
from weft.func._forward import linearize as linearize
from weft.func._modules import functional_call as functional_call
from weft.func._modules import functionalize as functionalize
from weft.func._modules import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from weft.func._modules import stack_module_state as stack_module_state
from weft.func._reverse import grad as grad
from weft.func._reverse import grad_and_value as grad_and_value
from weft.func._reverse import jacrev as jacrev
from weft.func._reverse import vjp as vjp
from weft.func._vmap import vmap as vmap

_list_exports(vars())
