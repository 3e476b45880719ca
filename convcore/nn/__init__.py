"""Neural networks: modules, parameters, initialisation and the functions that layers compute.

``modules`` has Module, layers, losses and containers (its docstring says which file holds what);
``functional`` the functions that they call; ``parameter`` Parameter and Buffer; ``init`` initial
weights; ``utils`` gradient clipping and parameters as one vector; ``grad`` the gradients of
convolutions as functions.
"""

from typing import TYPE_CHECKING

from convcore import _tensor  # noqa: F401

# Imported first: if NumPy and SciPy are imported from deeper inside this package, the interpreter
# may map and unmap a piece of its stack ten thousand times, which takes longer than importing all
# of our modules: `strace -c -e trace=munmap python -c "import convcore.nn"`.
from convcore._errors import names as _names
from convcore.nn import attention as attention
from convcore.nn import functional as functional
from convcore.nn import grad as grad
from convcore.nn import init as init
from convcore.nn import modules as modules
from convcore.nn import parallel as parallel
from convcore.nn import utils as utils
from convcore.nn.modules import *  # noqa: F403
from convcore.nn.parallel import DataParallel as DataParallel
from convcore.nn.parameter import Buffer as Buffer
from convcore.nn.parameter import Parameter as Parameter
from convcore.nn.parameter import UninitializedBuffer as UninitializedBuffer
from convcore.nn.parameter import UninitializedParameter as UninitializedParameter

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    __all__ = [
        *("Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter"),
        *("functional", "grad", "init", "parallel", "utils"),
        *modules.__all__,
    ]

_names.explain_names(__name__)
