"""Compiled kernels: private, called by convcore.engine alone.

conv/ and layers/ have a .pyx a kernel, and the microkernels that it calls in C headers, compiled
once an instruction set; runtime/_isa.pyx chooses among these at import.  runtime/ has threads,
memory, gemm and vectors.

Threads run in pranges, only in .pyx files, each prange one parallel region (runtime/team.h).  They
share items whose edges depend on shape alone: results never depend on their number.  The engine
allocates output and workspace before the region; inside, nothing allocates, raises or takes the
GIL.
"""

from importlib import import_module

try:
    import_module("convcore.kernels.runtime._threads")
except ModuleNotFoundError as error:
    # The usual cause is a clone: Python started there finds the source before what was installed.
    raise ImportError(
        f"convcore's kernels are not built in {__path__[0]}. If that is a source tree and convcore "
        "is installed, start Python in another folder; to build them in place, run "
        "'python setup.py build_ext --inplace'"
    ) from error

from convcore.kernels.runtime._scipy_blas import blas_alone

with blas_alone():
    import_module("convcore.kernels.runtime._gemm")
