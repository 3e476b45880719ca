"""Functions of each element of large arrays, and their gradients, on all threads.

The arrays of one call lie alike in memory, without gaps, so that their elements are one run.
"""

from cython.parallel cimport parallel, prange

from convcore.kernels._buffers cimport Buffers
from convcore.kernels._isa cimport (
    CLAMP_BETWEEN,
    ELU,
    GELU,
    GELU_TANH,
    HARDSIGMOID,
    HARDSWISH,
    LEAKY_RELU,
    MAPS,
    PRODUCT,
    RELU,
    SIGMOID,
    SILU,
    SOFTPLUS,
    SUM,
    TANH,
    Map,
    layers,
)
from convcore.kernels._threads cimport team

# The functions' numbers, by the names under which engine/elementwise.py asks for them.
FUNCTIONS = {
    "relu": RELU,
    "clamp": CLAMP_BETWEEN,
    "leaky_relu": LEAKY_RELU,
    "hardsigmoid": HARDSIGMOID,
    "hardswish": HARDSWISH,
    "sigmoid": SIGMOID,
    "tanh": TANH,
    "silu": SILU,
    "elu": ELU,
    "softplus": SOFTPLUS,
    "gelu": GELU,
    "gelu_tanh": GELU_TANH,
    "sum": SUM,
    "product": PRODUCT,
}

cdef enum:
    CHUNK = 1 << 13      # elements of one item
    TERMS = 4            # constants of a function, at most


cdef void map_all(
    const Map *function, const char *x, const char *gy, char *out, Py_ssize_t size,
    Py_ssize_t count, const double *terms, int threads,
) noexcept nogil:
    """out[i] = f(x[i]), or the gradient of x where gy is given; size: bytes of an element."""
    cdef Py_ssize_t i, first, items = (count + CHUNK - 1) // CHUNK
    with parallel(num_threads=threads):
        # A thread owns whole chunks of out.
        for i in prange(items, schedule="static"):
            first = i * CHUNK * size
            if gy == NULL:
                function.forward(x + first, min(CHUNK, count - i * CHUNK), terms, out + first)
            else:
                function.gradient(
                    gy + first, x + first, min(CHUNK, count - i * CHUNK), terms, out + first
                )


def apply(int function, x, gy, out, double work, terms=()):
    """Write out = f(x), or, where gy is not None, gy * f'; all of one dtype and one layout.

    Parameters
    ----------
    function : one of FUNCTIONS' numbers
    x, gy, out : arrays of float32 or float64
    work : multiply-adds that an element takes as long as
    terms : up to four numbers
        The function's constants.
    """
    cdef Buffers arrays = Buffers()
    cdef char *x_ptr = <char *>arrays.borrow(x, False)
    cdef char *g_ptr = NULL if gy is None else <char *>arrays.borrow(gy, False)
    cdef char *o_ptr = <char *>arrays.borrow(out, True)
    cdef Py_ssize_t size = arrays.views[0].itemsize, count = arrays.views[0].len // size
    cdef double[TERMS] constants = [0, 0, 0, 0]
    cdef int i, threads = team((count + CHUNK - 1) // CHUNK, work * count)
    assert 0 <= function < MAPS and len(terms) <= TERMS
    for i in range(len(terms)):
        constants[i] = terms[i]
    with nogil:
        map_all(
            &layers().maps[function][size == 8], x_ptr, g_ptr, o_ptr, size, count, constants,
            threads,
        )
