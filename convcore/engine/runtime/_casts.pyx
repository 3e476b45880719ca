"""float32 from bfloat16 in memory and back, on all threads."""

from cython.parallel cimport prange

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

# Elements that a thread takes at a time.
cdef enum:
    CHUNK = 1 << 15


cdef convert(x, y, Py_ssize_t count, bint widens):
    cdef Buffers arrays = Buffers()
    cdef const char *x_ptr = <const char *>arrays.borrow(x, False)
    cdef char *y_ptr = <char *>arrays.borrow(y, True)
    cdef Py_ssize_t chunks = (count + CHUNK - 1) // CHUNK, i, size
    cdef int threads = thread_count(chunks, <double>count)
    # A thread owns whole chunks of y.
    for i in prange(chunks, schedule="static", num_threads=threads, nogil=True):
        size = min(CHUNK, count - i * CHUNK)
        if widens:
            layer_microkernels().narrow.widen(x_ptr + 2 * i * CHUNK, size, y_ptr + 4 * i * CHUNK)
        else:
            layer_microkernels().narrow.round(x_ptr + 4 * i * CHUNK, size, y_ptr + 2 * i * CHUNK)


def widen(x, y, Py_ssize_t count):
    """Write y, floats, from x, bfloat16; both contiguous, of `count` elements."""
    convert(x, y, count, True)


def round_to_nearest(x, y, Py_ssize_t count):
    """Write y, bfloat16, from x, floats, to nearest, ties to even; as `widen` otherwise."""
    convert(x, y, count, False)
