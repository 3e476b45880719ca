"""Elementwise operations and their gradients, multithreaded.

The arrays of one call have the same layout, without gaps, so that their elements are contiguous; or
one of two operands has one value per channel.
"""

from cython.parallel cimport prange
from libc.string cimport memcpy

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport N_OPS, Op, OpLoops, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()


cdef dict table():
    """Return the table of ops.h: name -> (number, saved array, parameters, cost, has float64)."""
    cdef const Op *op
    cdef int i
    found = {}
    for i in range(N_OPS):
        op = &layer_microkernels().ops[i]
        found[op.name.decode()] = (
            i, op.saved.decode(), op.params, op.cost, op.loops[1].gradient != NULL
        )
    return found

OPS = table()

cdef enum:
    CHUNK = 1 << 13      # elements of one item
    STAGE = 1 << 10      # elements of bfloat16 converted to float at a time
    PARAMS = 3           # maximum parameters of an op
    ROW = 1 << 9         # maximum elements of a row of several pixels' channels


cdef inline void apply_run(
    const OpLoops *op, const char *x, const char *gy, Py_ssize_t count, const double *params,
    char *out,
) noexcept nogil:
    """out[i] = f(x[i]); or, if gy is not NULL, the gradient with respect to x."""
    if gy == NULL:
        op.forward(x, count, params, out)
    else:
        op.gradient(gy, x, count, params, out)


cdef void apply_narrow(
    const OpLoops *op, const char *x, const char *gy, Py_ssize_t count, const double *params,
    char *out,
) noexcept nogil:
    """Apply an op to bfloat16 arrays; each result is rounded once."""
    cdef float[STAGE] values, gradients
    cdef Py_ssize_t first, size, stages = (count + STAGE - 1) // STAGE, i
    for i in range(stages):
        first = i * STAGE
        size = min(STAGE, count - first)
        layer_microkernels().narrow.widen(x + 2 * first, size, values)
        if gy != NULL:
            layer_microkernels().narrow.widen(gy + 2 * first, size, gradients)
        apply_run(
            op, <const char *>values, NULL if gy == NULL else <const char *>gradients, size,
            params, <char *>values,
        )
        layer_microkernels().narrow.round(values, size, out + 2 * first)


cdef void apply_chunk(
    const OpLoops *op, Py_ssize_t item, const char *x, const char *gy, char *out, Py_ssize_t size,
    Py_ssize_t count, const double *params,
) noexcept nogil:
    """Apply an op to a chunk of x; size: bytes of an element."""
    cdef Py_ssize_t first = item * CHUNK * size, some = min(CHUNK, count - item * CHUNK)
    if gy != NULL:
        gy += first
    if size == 2:
        apply_narrow(op, x + first, gy, some, params, out + first)
    else:
        apply_run(op, x + first, gy, some, params, out + first)


cdef void apply_all(
    const OpLoops *op, const char *x, const char *gy, char *out, Py_ssize_t size,
    Py_ssize_t count, const double *params, int threads,
) noexcept nogil:
    cdef Py_ssize_t i, items = (count + CHUNK - 1) // CHUNK
    # A thread owns whole chunks of out.
    for i in prange(items, schedule="static", num_threads=threads):
        apply_chunk(op, i, x, gy, out, size, count, params)


def apply(int number, x, gy, out, params=()):
    """Write out = op(x); or, if gy is not None, the gradient.  All have the same dtype and layout.

    Parameters
    ----------
    number : index of an op in OPS
    x, gy, out : arrays of float32 or float64, or of bfloat16 as uint16
        For an op of two arrays, gy and x are the operands.
    params : the op's parameters
    """
    cdef Buffers arrays = Buffers()
    cdef char *x_ptr = <char *>arrays.borrow(x, False)
    cdef char *g_ptr = NULL if gy is None else <char *>arrays.borrow(gy, False)
    cdef char *o_ptr = <char *>arrays.borrow(out, True)
    cdef Py_ssize_t size = arrays.views[0].itemsize, count = arrays.views[0].len // size
    cdef double[PARAMS] given = [0, 0, 0]
    assert 0 <= number < N_OPS
    cdef const Op *op = &layer_microkernels().ops[number]
    cdef int i, threads = thread_count((count + CHUNK - 1) // CHUNK, op.cost * count)
    assert len(params) == op.params
    for i in range(op.params):
        given[i] = params[i]
    with nogil:
        apply_all(&op.loops[size == 8], x_ptr, g_ptr, o_ptr, size, count, given, threads)


# Operands: an array, and one value per channel

cdef struct Channels:
    Py_ssize_t size              # bytes of an element
    Py_ssize_t pixels            # contiguous elements that share `count` values
    Py_ssize_t count             # values of one run: 1 channel's, or all channels'
    Py_ssize_t runs              # number of such runs
    Py_ssize_t numbers           # runs after which the values repeat
    Py_ssize_t together          # runs of one item
    Py_ssize_t parts             # items of a run


cdef void apply_channel_run(
    const Channels *job, const OpLoops *op, const char *x, const char *numbers,
    Py_ssize_t length, char *out,
) noexcept nogil:
    """Apply the op to `length` elements and their channel's value, or a repeated row of values."""
    cdef double[PARAMS] params = [0, 0, 0]
    cdef double[ROW] row
    cdef Py_ssize_t step = job.count, at = 0
    if job.count == 1:
        params[0] = (<float *>numbers)[0] if job.size == 4 else (<double *>numbers)[0]
        op.forward(x, length, params, out)
        return
    if 2 * step <= min(ROW, length):
        memcpy(row, numbers, step * job.size)
        while 2 * step <= min(ROW, length):
            memcpy(<char *>row + step * job.size, row, step * job.size)
            step *= 2
        numbers = <char *>row
    while at < length:
        op.gradient(
            numbers, x + at * job.size, min(step, length - at), params, out + at * job.size
        )
        at += step


cdef void apply_item(
    const Channels *job, const OpLoops *op, Py_ssize_t item, const char *x,
    const char *numbers, char *out,
) noexcept nogil:
    cdef Py_ssize_t length = job.pixels * job.count, part = item % job.parts, run, at
    cdef Py_ssize_t first = item // job.parts * job.together
    cdef Py_ssize_t step = max(1, CHUNK // job.count) * job.count
    for run in range(first, min(first + job.together, job.runs)):
        at = run * length + part * step
        apply_channel_run(
            job, op, x + at * job.size,
            numbers + run % job.numbers * job.count * job.size,
            length if job.parts == 1 else min(step, length - part * step), out + at * job.size,
        )


cdef void apply_to_channels(
    const Channels *job, const OpLoops *op, const char *x, const char *numbers, char *out,
    int threads,
) noexcept nogil:
    cdef Py_ssize_t i, items = (job.runs + job.together - 1) // job.together * job.parts
    # A thread owns whole runs of out, or parts of one.
    for i in prange(items, schedule="static", num_threads=threads):
        apply_item(job, op, i, x, numbers, out)


def apply_channels(
    int number, x, numbers, out, Py_ssize_t images, Py_ssize_t c, Py_ssize_t pixels, bint last,
):
    """Write out = op(x, value of its channel), for an op of two arrays.

    Parameters
    ----------
    number : index of an op in OPS
    x, out : (n, c, pixels), or (n, pixels, c) if last, of float32 or float64, not empty
    numbers : (images, c), of x's dtype
        images is n, or 1 for the same values in all images.
    """
    cdef Buffers arrays = Buffers()
    cdef char *x_ptr = <char *>arrays.borrow(x, False)
    cdef char *n_ptr = <char *>arrays.borrow(numbers, False)
    cdef char *o_ptr = <char *>arrays.borrow(out, True)
    cdef Channels job
    cdef Py_ssize_t total, length, part
    cdef int threads
    assert 0 <= number < N_OPS
    cdef const Op *op = &layer_microkernels().ops[number]
    job.size = arrays.views[0].itemsize
    total = arrays.views[0].len // job.size
    job.pixels, job.count, job.numbers = pixels, c if last else 1, images if last else images * c
    length = job.pixels * job.count
    job.runs = total // length
    job.together = max(1, CHUNK // length)
    part = max(1, CHUNK // job.count) * job.count
    job.parts = 1 if length <= CHUNK else (length + part - 1) // part
    threads = thread_count(job.runs // job.together * job.parts, op.cost * total)
    with nogil:
        apply_to_channels(&job, &op.loops[job.size == 8], x_ptr, n_ptr, o_ptr, threads)
