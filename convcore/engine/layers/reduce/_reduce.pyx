"""Sums over pixels per channel: bias gradients, global average pooling, sums over axes."""

cimport cython
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free, malloc

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport MOST_CHANNELS, Sums, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

cdef enum:
    NCHW_CHUNK = 1 << 12   # pixels of a chunk if contiguous: added by vectors
    NHWC_CHUNK = 1 << 7    # pixels of a chunk otherwise, added one after another
    PART = 16              # chunks of one item
    WORK = 16              # multiply-adds per element, read from another core's cache
    STAGE = 1 << 13        # bfloat16 elements converted to float at a time: all of a chunk

# Only real numbers: a complex number is two channels.
cdef struct Job:
    Py_ssize_t groups            # groups of images with separate sums
    Py_ssize_t n                 # images of one group
    Py_ssize_t channels
    Py_ssize_t pixels
    Py_ssize_t s_n               # strides
    Py_ssize_t s_c
    Py_ssize_t s_p
    Py_ssize_t size              # bytes of a number; 2 means bfloat16
    Py_ssize_t together          # channels per microkernel call
    Py_ssize_t width             # channels of one item
    Py_ssize_t blocks            # of channels
    Py_ssize_t chunk             # pixels
    Py_ssize_t image_chunks
    Py_ssize_t chunks            # of a group
    Py_ssize_t parts             # of a group


cdef void plan(Job *job, Py_ssize_t cell) noexcept:
    """Cut the work into items, by its shape alone."""
    job.chunk = NCHW_CHUNK if job.s_p == 1 else NHWC_CHUNK
    job.image_chunks = (job.pixels + job.chunk - 1) // job.chunk
    job.chunks = job.n * job.image_chunks
    job.parts = max(1, (job.chunks + PART - 1) // PART)
    if job.s_c == 1:
        job.together = job.width = MOST_CHANNELS
    else:
        # Many small planes form one item.
        job.together = cell
        job.width = NHWC_CHUNK * PART // max(1, job.n * job.pixels)
        job.width = cell * max(1, min(MOST_CHANNELS, job.width))
    job.blocks = (job.channels + job.width - 1) // job.width


cdef void sum_chunk(
    const Job *job, const Sums *sums, const char *x, Py_ssize_t count, Py_ssize_t width,
    float *stage, double *to,
) noexcept nogil:
    """Add `count` pixels of `width` contiguous channels to the channels' sums."""
    cdef Py_ssize_t step = job.s_p, rows = count, i
    if job.size == 2:
        if step == width:
            rows = 1
        for i in range(rows):
            layer_microkernels().narrow.widen(
                x + i * step * job.size, count // rows * width, stage + i * width
            )
        x, step = <const char *>stage, width
    if width == 1 and step == 1:
        sums.nchw(x, count, to)
    else:
        sums.nhwc(x, count, width, step, to)


cdef void sum_item(
    const Job *job, const Sums *sums, Py_ssize_t item, const char *x, float *stage,
    double *partials,
) noexcept nogil:
    """Write the sums of a range of channels over a range of chunks of one group."""
    cdef Py_ssize_t first = item % job.blocks * job.width, c, i, p, count, width
    cdef Py_ssize_t part = item // job.blocks % job.parts, group = item // job.blocks // job.parts
    cdef Py_ssize_t end = min(first + job.width, job.channels)
    cdef const char *image
    partials += (part * job.groups + group) * job.channels
    for c in range(first, end):
        partials[c] = 0
    for i in range(part * PART, min((part + 1) * PART, job.chunks)):
        p = i % job.image_chunks * job.chunk
        count = min(job.chunk, job.pixels - p)
        image = x + ((group * job.n + i // job.image_chunks) * job.s_n + p * job.s_p) * job.size
        c = first
        while c < end:
            width = min(job.together, end - c)
            sum_chunk(
                job, sums, image + c * job.s_c * job.size, count, width, stage, partials + c
            )
            c += width


cdef inline Py_ssize_t all_partials(const Job *job) noexcept nogil:
    return job.groups * job.parts * job.channels


cdef void sum_all(const Job *job, const char *x, double *partials, int threads) noexcept nogil:
    cdef float *stage = <float *>(partials + all_partials(job))
    cdef Py_ssize_t i
    # A thread owns whole partial sums.
    for i in prange(job.groups * job.parts * job.blocks, schedule="static", num_threads=threads):
        sum_item(
            job, &layer_microkernels().sums[job.size == 8], i, x, stage + threadid() * STAGE,
            partials,
        )


cdef void add_parts(
    const Job *job, const double *partials, void *out, bint wide, Py_ssize_t divisor
) noexcept nogil:
    cdef Py_ssize_t count = job.groups * job.channels, i, part
    cdef double total
    for i in range(count):
        total = 0
        for part in range(job.parts):
            total += partials[part * count + i]
        if wide:
            (<double *>out)[i] = total / divisor
        else:
            (<float *>out)[i] = <float>total / <float>divisor


@cython.no_gc
cdef class BoundSums(Buffers):
    """One call of `channel_sums`; holds its arrays' buffers as long as it lives."""

    cdef Job job
    cdef const char *x
    cdef void *out
    cdef bint wide
    cdef double *partials
    cdef Py_ssize_t divisor
    cdef int threads

    def __dealloc__(self):
        free(self.partials)

    def __call__(self):
        with nogil:
            sum_all(&self.job, self.x, self.partials, self.threads)
            add_parts(&self.job, self.partials, self.out, self.wide, self.divisor)


def channel_sums(
    str kind, x, out, Py_ssize_t groups, Py_ssize_t n, Py_ssize_t channels, Py_ssize_t pixels,
    strides, Py_ssize_t divisor=1, bint later=False,
):
    """Write out[g, c] = (sum over n and p of x[g, n, c, p]) / divisor.

    kind: dtype character of x, one of 'fdFD'; out may be of the wider kind.  Or 'E': the bits of
    bfloat16, with out float32 or float64.
    strides: (s_n, s_c, s_p) in elements; a group follows the images of the one before.
    later: whether to return a callable that does the work when called, instead of doing it now.
    """
    cdef BoundSums call = BoundSums.__new__(BoundSums)
    cdef Job *job = &call.job
    cdef Py_ssize_t cell = 2 if kind in "FD" else 1, staged = 0
    call.x = <const char *>call.borrow(x, False)
    call.out = call.borrow(out, True)
    call.wide = call.views[1].itemsize == 8 * cell
    call.divisor = divisor
    job.groups, job.n, job.channels, job.pixels = groups, n, channels * cell, pixels
    job.s_n, job.s_c, job.s_p = strides
    job.s_n, job.s_p = job.s_n * cell, job.s_p * cell
    job.size = 2 if kind == "E" else 4 if kind in "fF" else 8
    plan(job, cell)
    call.threads = thread_count(
        groups * job.parts * job.blocks, 1.0 * WORK * groups * n * channels * pixels
    )
    if job.size == 2:
        staged = call.threads * STAGE * <Py_ssize_t>sizeof(float)
    call.partials = <double *>malloc(
        max(1, all_partials(job)) * <Py_ssize_t>sizeof(double) + staged
    )
    if call.partials == NULL:
        raise MemoryError("no memory for the partial sums")
    return call if later else call()
