"""float32 from bfloat16 in memory, on all threads."""

from cython.parallel cimport prange

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport layer_microkernels
from convcore.kernels.runtime._threads cimport thread_count

# Elements that a thread takes at a time.
cdef enum:
    CHUNK = 1 << 15


def widen(x, y, Py_ssize_t count):
    """Write y, floats, from x; both contiguous, of `count` elements."""
    cdef Buffers arrays = Buffers()
    cdef const char *x_ptr = <const char *>arrays.borrow(x, False)
    cdef char *y_ptr = <char *>arrays.borrow(y, True)
    cdef Py_ssize_t chunks = (count + CHUNK - 1) // CHUNK, i
    cdef int threads = thread_count(chunks, <double>count)
    # A thread owns whole chunks of y.
    for i in prange(chunks, schedule="static", num_threads=threads, nogil=True):
        layer_microkernels().narrow.widen(
            x_ptr + 2 * i * CHUNK, min(CHUNK, count - i * CHUNK), y_ptr + 4 * i * CHUNK
        )
