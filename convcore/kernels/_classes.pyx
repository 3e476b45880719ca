"""The negative likelihoods of classes, and their gradient.

Logarithms of likelihoods are (N, C, S) or, with the class last, (N, S, C); classes are (N, S).
A class that is `ignore` counts for nothing.
"""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int64_t
from libc.string cimport memset

from convcore.kernels._buffers cimport Buffers
from convcore.kernels._threads cimport team

ctypedef fused real:
    float
    double

cdef enum:
    ITEM = 1 << 12       # classes of one item, all of one image
    SUMS = 3             # of an item: losses, weights, classes that there are not

cdef struct Job:
    Py_ssize_t n
    Py_ssize_t c
    Py_ssize_t s
    Py_ssize_t blocks            # items of an image
    Py_ssize_t pixel             # from one pixel to the next, and from one class
    Py_ssize_t plane
    int64_t ignore


cdef Job job_of(Py_ssize_t n, Py_ssize_t c, Py_ssize_t s, bint last, int64_t ignore):
    cdef Job job
    job.n, job.c, job.s, job.ignore = n, c, s, ignore
    job.blocks = (s + ITEM - 1) // ITEM
    job.pixel = c if last else 1
    job.plane = 1 if last else s
    return job


def items_of(Py_ssize_t n, Py_ssize_t s):
    """Return how many items the work on n images of s pixels has."""
    return n * ((s + ITEM - 1) // ITEM)


cdef void add_item(
    const Job *job, Py_ssize_t item, const real *x, const int64_t *classes, const real *weight,
    real *losses, double *sums,
) noexcept nogil:
    """Write some losses, -weight x, unless losses is NULL, and the item's sums."""
    cdef Py_ssize_t n = item // job.blocks, first = item % job.blocks * ITEM, i
    cdef Py_ssize_t at = n * job.s
    cdef real w = 1, loss
    cdef int64_t k
    sums[0] = sums[1] = sums[2] = 0
    for i in range(first, min(first + ITEM, job.s)):
        k = classes[at + i]
        loss = 0
        if k != job.ignore:
            if k < 0 or k >= job.c:
                sums[2] += 1
                continue
            if weight != NULL:
                w = weight[k]
            loss = -x[at * job.c + i * job.pixel + k * job.plane] * w
            sums[0] += loss
            sums[1] += w
        if losses != NULL:
            losses[at + i] = loss


cdef void add_all(
    const Job *job, const real *x, const int64_t *classes, const void *weight, void *losses,
    double *sums, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole items of the losses, and their sums.
        for i in prange(job.n * job.blocks, schedule="static"):
            add_item(job, i, x, classes, <const real *>weight, <real *>losses, sums + SUMS * i)


def forward(
    x, classes, weight, losses, sums, Py_ssize_t n, Py_ssize_t c, Py_ssize_t s, bint last,
    int64_t ignore, double work,
):
    """Return the sum of -weight[k] x[k], the sum of weight[k], and how many are no class.

    Parameters
    ----------
    x : (n, c, s), or (n, s, c) if last; float32 or float64, contiguous
    classes : (n, s), int64, contiguous
    weight : (c,) of x's dtype, or None for ones
    losses : (n, s) of x's dtype, or None
        Written: the terms of the first sum.
    sums : (items_of(n, s), 3), float64
        Scratch.
    """
    cdef Job job = job_of(n, c, s, last, ignore)
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef int64_t *k_ptr = <int64_t *>arrays.borrow(classes, False)
    cdef double *s_ptr = <double *>arrays.borrow(sums, True)
    cdef void *w_ptr = NULL if weight is None else arrays.borrow(weight, False)
    cdef void *l_ptr = NULL if losses is None else arrays.borrow(losses, True)
    cdef Py_ssize_t i, items = n * job.blocks
    cdef int threads = team(items, work * n * s)
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


cdef void put_item(
    const Job *job, Py_ssize_t item, const real *grads, const int64_t *classes,
    const real *weight, double factor, real *gx,
) noexcept nogil:
    """Write some pixels of gx: zeros, and -weight times the gradient at their classes."""
    cdef Py_ssize_t n = item // job.blocks, first = item % job.blocks * ITEM, i
    cdef Py_ssize_t at = n * job.s, count = min(ITEM, job.s - first)
    cdef real *to = gx + at * job.c
    cdef double g = factor
    cdef int64_t k
    if job.plane == 1:
        memset(to + first * job.pixel, 0, count * job.c * sizeof(real))
    else:
        for i in range(job.c):
            memset(to + i * job.plane + first, 0, count * sizeof(real))
    for i in range(first, first + count):
        k = classes[at + i]
        if k == job.ignore or k < 0 or k >= job.c:
            continue
        if grads != NULL:
            g = factor * grads[at + i]
        to[i * job.pixel + k * job.plane] = <real>(-g if weight == NULL else -g * weight[k])


cdef void put_all(
    const Job *job, const void *grads, const int64_t *classes, const void *weight,
    double factor, real *gx, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole pixels of gx.
        for i in prange(job.n * job.blocks, schedule="static"):
            put_item(job, i, <const real *>grads, classes, <const real *>weight, factor, gx)


def backward(
    gx, classes, weight, grads, double grad, double total, Py_ssize_t n, Py_ssize_t c,
    Py_ssize_t s, bint last, int64_t ignore, double work,
):
    """Write the gradient of x: -weight[k] grads grad / total at the classes, and zeros.

    Parameters
    ----------
    gx : (n, c, s), or (n, s, c) if last; float32 or float64, contiguous
    grads : (n, s) of gx's dtype, or None for ones
    grad, total : float
    classes, weight, n, c, s, last, ignore, work
        As they went forward.
    """
    cdef Job job = job_of(n, c, s, last, ignore)
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(gx, True)
    cdef int64_t *k_ptr = <int64_t *>arrays.borrow(classes, False)
    cdef void *w_ptr = NULL if weight is None else arrays.borrow(weight, False)
    cdef void *g_ptr = NULL if grads is None else arrays.borrow(grads, False)
    cdef int threads = team(n * job.blocks, work * n * s)
    cdef bint double_ = arrays.views[0].itemsize == 8
    cdef double factor = grad / total
    with nogil:
        if double_:
            put_all(&job, g_ptr, k_ptr, w_ptr, factor, <double *>x_ptr, threads)
        else:
            put_all(&job, g_ptr, k_ptr, w_ptr, factor, <float *>x_ptr, threads)
