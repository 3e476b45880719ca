"""Sums over pixels, a channel at a time: the bias gradient, over all images; and planes' means."""

from cython.parallel cimport parallel, prange

from convcore.kernels._buffers cimport Buffers
from convcore.kernels._threads cimport team
from convcore.kernels._types cimport number

cdef enum:
    LEAF = 128       # pixels added one after another
    WIDTH = 64       # channels of one item, where they are neighbours in memory: few cache lines
    RUN = 16         # sums of one run of floats
    WORK = 16        # multiply-adds that an element takes as long as, out of another core's cache
    LEVELS = 48      # of the tree above the leaves: enough for 2**55 pixels

cdef struct Job:
    Py_ssize_t groups            # of images, that are summed apart
    Py_ssize_t n                 # images of one group
    Py_ssize_t channels
    Py_ssize_t pixels
    Py_ssize_t s_n               # strides in elements
    Py_ssize_t s_c
    Py_ssize_t s_p
    Py_ssize_t width             # channels of one item


cdef number sum_run(const number *x, Py_ssize_t count) noexcept nogil:
    """The sum of floats that lie side by side: in RUN sums, as vectors add them."""
    cdef number[RUN] sums
    cdef number total = 0
    cdef Py_ssize_t i, p = 0
    for i in range(RUN):
        sums[i] = 0
    while p + RUN <= count:
        for i in range(RUN):
            sums[i] = sums[i] + x[p + i]
        p += RUN
    for i in range(count - p):
        sums[i] = sums[i] + x[p + i]
    for i in range(RUN):
        total = total + sums[i]
    return total


cdef void sum_leaf(
    const number *x, const Job *job, Py_ssize_t width, Py_ssize_t count, number *sums
) noexcept nogil:
    """sums[c] = sum over `count` pixels of x[pixel, c]."""
    cdef Py_ssize_t c, p, _p
    for c in range(width):
        sums[c] = 0
    if width == 1 and job.s_p == 1:
        sums[0] = sum_run(x, count)
        return
    if width == WIDTH and job.s_c == 1:
        # The same as below, in whole vectors.
        for _p in range(count):
            for c in range(WIDTH):
                sums[c] = sums[c] + x[c]
            x += job.s_p
        return
    for p in range(count):
        for c in range(width):
            sums[c] = sums[c] + x[p * job.s_p + c * job.s_c]


cdef void sum_item(const Job *job, Py_ssize_t item, const number *x, number *out) noexcept nogil:
    """Add leaves pairwise, so that rounding grows with the logarithm of the number of pixels.

    tree[i] holds the sum of 2**i leaves wherever bit i of `leaves` is set, as in a binary counter.
    """
    cdef number[LEVELS * WIDTH] tree
    cdef number[WIDTH] sums
    cdef Py_ssize_t blocks = (job.channels + job.width - 1) // job.width
    cdef Py_ssize_t first = item % blocks * job.width, width = min(job.width, job.channels - first)
    cdef Py_ssize_t leaves = 0, level, c, n, i, p
    x += item // blocks * job.n * job.s_n
    out += item // blocks * job.channels
    for n in range(job.n):
        for i in range((job.pixels + LEAF - 1) // LEAF):
            p = i * LEAF
            sum_leaf(
                x + n * job.s_n + first * job.s_c + p * job.s_p, job, width,
                min(LEAF, job.pixels - p), sums,
            )
            level = 0
            while leaves >> level & 1:
                for c in range(width):
                    sums[c] = tree[level * WIDTH + c] + sums[c]
                level += 1
            for c in range(width):
                tree[level * WIDTH + c] = sums[c]
            leaves += 1
    for c in range(width):
        out[first + c] = 0
    level = 0
    while leaves >> level:
        if leaves >> level & 1:
            for c in range(width):
                out[first + c] = tree[level * WIDTH + c] + out[first + c]
        level += 1


cdef void sum_all(const Job *job, const number *x, void *sums, int threads) noexcept nogil:
    cdef number *out = <number *>sums
    cdef Py_ssize_t i, items = job.groups * ((job.channels + job.width - 1) // job.width)
    with parallel(num_threads=threads):
        # A thread owns whole channels of the result.
        for i in prange(items, schedule="static"):
            sum_item(job, i, x, out)


def channel_sums(
    str kind, x, out, Py_ssize_t groups, Py_ssize_t n, Py_ssize_t channels, Py_ssize_t pixels,
    strides,
):
    """Write out[g, c] = sum over n and p of x[g, n, c, p].

    strides: (s_n, s_c, s_p) in elements; a group follows the images of the one before.
    """
    cdef Job job
    cdef Py_ssize_t items
    cdef int code = "fdFD".index(kind)
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *o_ptr = arrays.borrow(out, True)
    cdef int threads
    job.groups, job.n, job.channels, job.pixels = groups, n, channels, pixels
    job.s_n, job.s_c, job.s_p = strides
    # Alone in its item, a channel streams through its pixels; neighbours are summed side by side.
    job.width = WIDTH if job.s_c == 1 else 1
    items = groups * ((channels + job.width - 1) // job.width)
    threads = team(items, 1.0 * WORK * groups * n * channels * pixels)
    with nogil:
        if code == 0:
            sum_all(&job, <float *>x_ptr, o_ptr, threads)
        elif code == 1:
            sum_all(&job, <double *>x_ptr, o_ptr, threads)
        elif code == 2:
            sum_all(&job, <float complex *>x_ptr, o_ptr, threads)
        else:
            sum_all(&job, <double complex *>x_ptr, o_ptr, threads)
