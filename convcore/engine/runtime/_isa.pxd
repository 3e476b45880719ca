"""The microkernels of the instruction set that was chosen at import, and the structs they take.

setup.py writes the Cython view of the C headers, with names without their
prefix: convcore_few_channels is FewChannels, CONVCORE_CLAMP is CLAMP.
"""

from convcore.engine.runtime._microkernels cimport *

cdef const Microkernels *microkernels() noexcept nogil
cdef const Bfloat16 *bfloat16() noexcept nogil
cdef const LayerMicrokernels *layer_microkernels() noexcept nogil
cdef Filters filters(dict fields)
