"""Function transforms: grad, vjp, jvp, Jacobians, Hessians, vmap, and modules as functions.

Derivatives are taken by backward passes, and `vmap` is a loop over the batch: the numbers are those
of PyTorch's, the speed is that of the loop.
"""

from convcore import _misnamed
from convcore.func._derivatives import grad, grad_and_value, jvp, vjp
from convcore.func._jacobians import hessian, jacfwd, jacrev
from convcore.func._modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from convcore.func._vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

_misnamed.hint_keywords(__name__)

_misnamed.explain_names(__name__)
