"""Negative log likelihood of classes (NLL loss) with label smoothing; gradient; one pass each.

Log-probabilities are (N, C, S) or, in NHWC, (N, S, C), and classes (N, S).  Pixels with class
`ignore` are skipped.  `smoothing` is the share of the target spread over all classes.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t
from libc.string cimport memset

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport MOST_CHANNELS, Sums, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

ctypedef fused real:
    float
    double

cdef enum:
    PIXELS = 1 << 12     # of one item, all of one image
    SUMS = 3             # per item: losses, weights, invalid classes

cdef struct Job:
    Py_ssize_t n
    Py_ssize_t c
    Py_ssize_t s
    Py_ssize_t blocks            # items of an image
    Py_ssize_t pixel             # stride from one pixel to the next, and from one class
    Py_ssize_t plane
    int64_t ignore
    double own                   # share of a target for its own class, and for each class
    double part


cdef Job job_of(
    Py_ssize_t n, Py_ssize_t c, Py_ssize_t s, bint nhwc, int64_t ignore, double smoothing
):
    cdef Job job
    job.n, job.c, job.s, job.ignore = n, c, s, ignore
    job.own, job.part = 1 - smoothing, smoothing / max(c, 1)
    job.blocks = (s + PIXELS - 1) // PIXELS
    job.pixel = c if nhwc else 1
    job.plane = 1 if nhwc else s
    return job


def items_of(Py_ssize_t n, Py_ssize_t s):
    """Return the number of work items for n images of s pixels."""
    return n * ((s + PIXELS - 1) // PIXELS)


cdef void sum_classes(
    const Job *job, Py_ssize_t first, Py_ssize_t count, const real *x, const real *weight,
    double *totals,
) noexcept nogil:
    """Compute totals[i] = sum over k of weight[k] x[first + i, k]."""
    cdef const Sums *microkernel = &layer_microkernels().sums[sizeof(real) == 8]
    cdef Py_ssize_t i, k
    memset(totals, 0, count * sizeof(double))
    if weight != NULL:
        for k in range(job.c):
            for i in range(count):
                totals[i] += <double>weight[k] * x[(first + i) * job.pixel + k * job.plane]
    elif job.plane == 1:
        for i in range(count):
            microkernel.nchw(x + (first + i) * job.pixel, job.c, totals + i)
    else:
        i = 0
        while i < count:
            microkernel.nhwc(
                x + first + i, job.c, min(MOST_CHANNELS, count - i), job.plane, totals + i
            )
            i += MOST_CHANNELS


cdef void add_item(
    const Job *job, Py_ssize_t item, const real *x, const int64_t *classes, const real *weight,
    real *losses, double *sums,
) noexcept nogil:
    """Write a block of losses, -weight x, unless losses is NULL, and the item's sums."""
    cdef Py_ssize_t n = item // job.blocks, first = item % job.blocks * PIXELS, i
    cdef Py_ssize_t at = n * job.s
    cdef Py_ssize_t end = min(first + PIXELS, job.s)
    cdef double[PIXELS] totals
    cdef real w = 1, loss
    cdef int64_t k
    sums[0] = sums[1] = sums[2] = 0
    if job.part != 0:
        sum_classes(job, first, end - first, x + at * job.c, weight, totals)
    for i in range(first, end):
        k = classes[at + i]
        loss = 0
        if k != job.ignore:
            if k < 0 or k >= job.c:
                sums[2] += 1
                continue
            if weight != NULL:
                w = weight[k]
            loss = -x[at * job.c + i * job.pixel + k * job.plane] * w
            if job.part != 0:
                loss = <real>(job.own * loss - job.part * totals[i - first])
            sums[0] += loss
            sums[1] += w
        if losses != NULL:
            losses[at + i] = loss


cdef void add_all(
    const Job *job, const real *x, const int64_t *classes, const void *weight, void *losses,
    double *sums, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    # A thread owns whole items of the losses, and their sums.
    for i in prange(job.n * job.blocks, schedule="static", num_threads=threads):
        add_item(job, i, x, classes, <const real *>weight, <real *>losses, sums + SUMS * i)


def forward(
    x, classes, weight, each, sums, Py_ssize_t n, Py_ssize_t c, Py_ssize_t s, bint nhwc,
    int64_t ignore, double smoothing, double work,
):
    """Return the sum of -weight[k] x[k], the sum of weight[k], and the number of invalid classes.

    With smoothing, the first sum is (1 - smoothing) of that, plus smoothing / c of it for every k.

    Parameters
    ----------
    x : (n, c, s), or (n, s, c) if nhwc; float32 or float64, contiguous
    classes : (n, s), int64, contiguous
    weight : (c,) of x's dtype, or None for ones
    each : (n, s) of x's dtype, or None
        Written: the terms of the first sum.
    sums : (items_of(n, s), 3), float64
        Scratch.
    """
    cdef Job job = job_of(n, c, s, nhwc, ignore, smoothing)
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef int64_t *k_ptr = <int64_t *>arrays.borrow(classes, False)
    cdef double *s_ptr = <double *>arrays.borrow(sums, True)
    cdef void *w_ptr = NULL if weight is None else arrays.borrow(weight, False)
    cdef void *l_ptr = NULL if each is None else arrays.borrow(each, True)
    cdef Py_ssize_t i, items = n * job.blocks
    cdef int threads = thread_count(items, work * n * s)
    cdef bint double_ = arrays.views[0].itemsize == 8
    cdef double loss = 0, total = 0, wrong = 0
    with nogil:
        if double_:
            add_all(&job, <double *>x_ptr, k_ptr, w_ptr, l_ptr, s_ptr, threads)
        else:
            add_all(&job, <float *>x_ptr, k_ptr, w_ptr, l_ptr, s_ptr, threads)
    for i in range(items):
        loss += s_ptr[SUMS * i]
        total += s_ptr[SUMS * i + 1]
        wrong += s_ptr[SUMS * i + 2]
    return loss, total, wrong


cdef inline double grad_of(
    const Job *job, Py_ssize_t at, const real *grads, const int64_t *classes, double factor
) noexcept nogil:
    """Return the gradient of one pixel's loss, 0 if the pixel is ignored."""
    cdef int64_t k = classes[at]
    if k == job.ignore or k < 0 or k >= job.c:
        return 0
    return factor if grads == NULL else factor * grads[at]


cdef void put_parts(
    const Job *job, Py_ssize_t at, Py_ssize_t first, Py_ssize_t count, const real *grads,
    const int64_t *classes, const real *weight, double factor, real *to,
) noexcept nogil:
    """Write the equal shares of all classes of a range of pixels, with their weights."""
    cdef real[PIXELS] parts
    cdef real w = 1
    cdef Py_ssize_t i, k
    for i in range(count):
        parts[i] = <real>(-job.part * grad_of(job, at + first + i, grads, classes, factor))
    if job.plane == 1:
        for i in range(count):
            for k in range(job.c):
                to[(first + i) * job.pixel + k] = parts[i] if weight == NULL else (
                    parts[i] * weight[k]
                )
        return
    for k in range(job.c):
        if weight != NULL:
            w = weight[k]
        for i in range(count):
            to[k * job.plane + first + i] = parts[i] * w


cdef void put_item(
    const Job *job, Py_ssize_t item, const real *grads, const int64_t *classes,
    const real *weight, double factor, real *gx,
) noexcept nogil:
    """Write a range of gx: zeros, or shares, and -weight times the gradient at the classes."""
    cdef Py_ssize_t n = item // job.blocks, first = item % job.blocks * PIXELS, i
    cdef Py_ssize_t at = n * job.s, count = min(PIXELS, job.s - first)
    cdef real *to = gx + at * job.c
    cdef double g
    cdef int64_t k
    if job.part != 0:
        put_parts(job, at, first, count, grads, classes, weight, factor, to)
    elif job.plane == 1:
        memset(to + first * job.pixel, 0, count * job.c * sizeof(real))
    else:
        for i in range(job.c):
            memset(to + i * job.plane + first, 0, count * sizeof(real))
    for i in range(first, first + count):
        k = classes[at + i]
        if k == job.ignore or k < 0 or k >= job.c:
            continue
        g = job.own * grad_of(job, at + i, grads, classes, factor)
        to[i * job.pixel + k * job.plane] -= <real>(g if weight == NULL else g * weight[k])


cdef void put_all(
    const Job *job, const void *grads, const int64_t *classes, const void *weight,
    double factor, real *gx, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    # A thread owns whole pixels of gx.
    for i in prange(job.n * job.blocks, schedule="static", num_threads=threads):
        put_item(job, i, <const real *>grads, classes, <const real *>weight, factor, gx)


def gradient(
    gx, classes, weight, grads, double grad, double total, Py_ssize_t n, Py_ssize_t c,
    Py_ssize_t s, bint nhwc, int64_t ignore, double smoothing, double work,
):
    """Write the gradient of x: -weight[k] grads grad / total at the classes, else 0; smoothed.

    Parameters
    ----------
    gx : (n, c, s), or (n, s, c) if nhwc; float32 or float64, contiguous
    grads : (n, s) of gx's dtype, or None for ones
    grad, total : float
    classes, weight, n, c, s, nhwc, ignore, smoothing, work
        As in the forward pass.
    """
    cdef Job job = job_of(n, c, s, nhwc, ignore, smoothing)
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(gx, True)
    cdef int64_t *k_ptr = <int64_t *>arrays.borrow(classes, False)
    cdef void *w_ptr = NULL if weight is None else arrays.borrow(weight, False)
    cdef void *g_ptr = NULL if grads is None else arrays.borrow(grads, False)
    cdef int threads = thread_count(n * job.blocks, work * n * s)
    cdef bint double_ = arrays.views[0].itemsize == 8
    cdef double factor = grad / total
    with nogil:
        if double_:
            put_all(&job, g_ptr, k_ptr, w_ptr, factor, <double *>x_ptr, threads)
        else:
            put_all(&job, g_ptr, k_ptr, w_ptr, factor, <float *>x_ptr, threads)
