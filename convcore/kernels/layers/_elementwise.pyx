"""Functions of each element, and their gradients, on all threads.

The arrays of one call lie alike in memory, without gaps, so that their elements are one run; or one
of two has a number for each channel alone.
"""

from cython.parallel cimport parallel, prange
from libc.string cimport memcpy

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport (
    CLAMP_BETWEEN,
    ELU,
    GELU,
    GELU_TANH,
    HARDSIGMOID,
    HARDSWISH,
    HUBER,
    HUBER_SLOPE,
    LEAKY_RELU,
    LOGSIGMOID,
    MAPS,
    MISH,
    PRELU,
    PRELU_SLOPE,
    PRODUCT,
    RELU,
    SIGMOID,
    SILU,
    SOFTPLUS,
    SUM,
    TANH,
    Map,
    layer_microkernels,
)
from convcore.kernels.runtime._threads cimport thread_count

# The functions' numbers, by the names under which engine/layers/elementwise.py asks for them.
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
    "logsigmoid": LOGSIGMOID,
    "mish": MISH,
    "sum": SUM,
    "product": PRODUCT,
    "prelu": PRELU,
    "prelu_slope": PRELU_SLOPE,
    "huber": HUBER,
    "huber_slope": HUBER_SLOPE,
}

cdef enum:
    CHUNK = 1 << 13      # elements of one item
    TERMS = 4            # constants of a function, at most
    ROW = 1 << 9         # elements of a row of some pixels' channels, at most


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
    cdef int i, threads = thread_count((count + CHUNK - 1) // CHUNK, work * count)
    assert 0 <= function < MAPS and len(terms) <= TERMS
    for i in range(len(terms)):
        constants[i] = terms[i]
    with nogil:
        map_all(
            &layer_microkernels().maps[function][size == 8], x_ptr, g_ptr, o_ptr, size, count, constants,
            threads,
        )


# Of an array, and of a number a channel

cdef struct Channels:
    Py_ssize_t size              # bytes of an element
    Py_ssize_t pixels            # elements, one behind the other, to which `count` numbers belong
    Py_ssize_t count             # those of one channel, or of all
    Py_ssize_t runs              # of such elements
    Py_ssize_t numbers           # after how many of them the numbers begin anew
    Py_ssize_t together          # runs of one item
    Py_ssize_t parts             # items of a run


cdef void map_run(
    const Channels *job, const Map *function, const char *x, const char *numbers,
    Py_ssize_t length, char *out,
) noexcept nogil:
    """Map `length` elements: with their number, or with their channels' in a row, repeated."""
    cdef double[TERMS] terms = [0, 0, 0, 0]
    cdef double[ROW] row
    cdef Py_ssize_t step = job.count, at = 0
    if job.count == 1:
        terms[0] = (<float *>numbers)[0] if job.size == 4 else (<double *>numbers)[0]
        function.forward(x, length, terms, out)
        return
    if 2 * step <= min(ROW, length):
        memcpy(row, numbers, step * job.size)
        while 2 * step <= min(ROW, length):
            memcpy(<char *>row + step * job.size, row, step * job.size)
            step *= 2
        numbers = <char *>row
    while at < length:
        function.gradient(
            numbers, x + at * job.size, min(step, length - at), terms, out + at * job.size
        )
        at += step


cdef void map_item(
    const Channels *job, const Map *function, Py_ssize_t item, const char *x,
    const char *numbers, char *out,
) noexcept nogil:
    cdef Py_ssize_t length = job.pixels * job.count, part = item % job.parts, run, at
    cdef Py_ssize_t first = item // job.parts * job.together
    cdef Py_ssize_t step = max(1, CHUNK // job.count) * job.count
    for run in range(first, min(first + job.together, job.runs)):
        at = run * length + part * step
        map_run(
            job, function, x + at * job.size,
            numbers + run % job.numbers * job.count * job.size,
            length if job.parts == 1 else min(step, length - part * step), out + at * job.size,
        )


cdef void map_channels(
    const Channels *job, const Map *function, const char *x, const char *numbers, char *out,
    int threads,
) noexcept nogil:
    cdef Py_ssize_t i, items = (job.runs + job.together - 1) // job.together * job.parts
    with parallel(num_threads=threads):
        # A thread owns whole runs of out, or parts of one.
        for i in prange(items, schedule="static"):
            map_item(job, function, i, x, numbers, out)


def apply_channels(
    int function, x, numbers, out, Py_ssize_t images, Py_ssize_t c, Py_ssize_t pixels, bint last,
    double work,
):
    """Write out = f(x, number of its channel), f one of the functions of two arrays.

    Parameters
    ----------
    function : one of FUNCTIONS' numbers
    x, out : (n, c, pixels), or (n, pixels, c) if last, of float32 or float64, not empty
    numbers : (images, c), of x's dtype
        images is n, or 1 for the same numbers in all.
    work : multiply-adds that an element takes as long as
    """
    cdef Buffers arrays = Buffers()
    cdef char *x_ptr = <char *>arrays.borrow(x, False)
    cdef char *n_ptr = <char *>arrays.borrow(numbers, False)
    cdef char *o_ptr = <char *>arrays.borrow(out, True)
    cdef Channels job
    cdef Py_ssize_t total, length, part
    cdef int threads
    assert 0 <= function < MAPS
    job.size = arrays.views[0].itemsize
    total = arrays.views[0].len // job.size
    job.pixels, job.count, job.numbers = pixels, c if last else 1, images if last else images * c
    length = job.pixels * job.count
    job.runs = total // length
    job.together = max(1, CHUNK // length)
    part = max(1, CHUNK // job.count) * job.count
    job.parts = 1 if length <= CHUNK else (length + part - 1) // part
    threads = thread_count(job.runs // job.together * job.parts, work * total)
    with nogil:
        map_channels(
            &job, &layer_microkernels().maps[function][job.size == 8], x_ptr, n_ptr, o_ptr, threads
        )
