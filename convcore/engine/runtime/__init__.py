"""Threads, memory, instruction sets, BLAS, and checks of arguments, for the whole engine.

_isa.pyx chooses the microkernels at import.  Threads run in pranges, only in .pyx files, each
prange one parallel region (team.h).  They share items whose edges depend on shape alone: results
never depend on their number.  The caller allocates output and workspace before the region; inside,
nothing allocates, raises or takes the GIL.
"""

from importlib import import_module
from pathlib import Path

try:
    import_module("convcore.engine.runtime._threads")
except ModuleNotFoundError as error:
    # The usual cause is a clone: Python started there finds the source before what was installed.
    raise ImportError(
        f"convcore's kernels are not built in {Path(__file__).parents[1]}. If that is a source "
        "tree and convcore is installed, start Python in another folder; to build them in place, "
        "run 'python setup.py build_ext --inplace'"
    ) from error

from convcore.engine.runtime._scipy_blas import blas_alone

with blas_alone():
    import_module("convcore.engine.runtime._gemm")
