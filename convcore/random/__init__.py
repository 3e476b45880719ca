"""Random numbers: those that PyTorch draws on a CPU after the same `manual_seed`.

generator.py has the Mersenne Twister, its state and its raw draws; fill.py distributions written
into arrays, which all else is made of; tensors.py new random tensors; sampling.py permutations,
multinomial and Bernoulli draws; rejection.py gamma and Poisson numbers.

PyTorch is followed draw by draw.  Words, integers, permutations and uniform numbers are equal;
normal numbers are equal up to the last digits of log, cos and sin.  Bernoulli trials with one
probability, and so dropout, follow PyTorch where it does not use Intel's MKL for them, as on AMD
and ARM.
"""

from typing import TYPE_CHECKING

from convcore._tensor import complete as _complete
from convcore.random import generator, rejection, sampling, tensors
from convcore.random.fill import count_of as count_of
from convcore.random.fill import fill_bernoulli as fill_bernoulli
from convcore.random.fill import fill_normal as fill_normal
from convcore.random.fill import fill_random as fill_random
from convcore.random.fill import fill_uniform as fill_uniform
from convcore.random.generator import *
from convcore.random.generator import DEFAULT_SEED as DEFAULT_SEED
from convcore.random.generator import _generator_of as _generator_of  # pickles name it here
from convcore.random.generator import fork_rng as fork_rng
from convcore.random.generator import use_own_generator as use_own_generator
from convcore.random.rejection import *
from convcore.random.sampling import *
from convcore.random.tensors import *

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    __all__ = sorted([*generator.__all__, *rejection.__all__, *sampling.__all__, *tensors.__all__])

# Last, for functions draw random numbers: `from convcore.random import randn` may be a program's
# only import.
_complete()
