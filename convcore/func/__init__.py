"""Function transforms: grad, vmap, and modules as functions.

Derivatives are taken by backward passes, and `vmap` is a loop over the batch: the numbers are those
of PyTorch's, the speed is that of the loop.
"""

from convcore._errors import calls as _calls
from convcore._errors import names as _names
from convcore.func._derivatives import grad, grad_and_value
from convcore.func._modules import functional_call, stack_module_state
from convcore.func._vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "stack_module_state", "vmap"]

_calls.hint_keywords(__name__)

_names.explain_names(__name__)
