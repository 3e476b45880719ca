"""Depthwise convolution without im2col: one input and one output channel per group.

A gemm would have one row and one column here.  Where the channels are contiguous (channels_last)
the channel loop is vectorised: out[q, c] = sum over t of x[under tap t of q, c] * w[t, c].  The
weight gradient, gw[c, t] = sum over q of gy[q, c] * x[under tap t of q, c], takes either format.
"""

from cython.parallel cimport prange

from convcore.engine.conv.im2col._im2col cimport Place, Window, locate, next_pixel, source
from convcore.engine.conv._kernel cimport AnyEpilogue, AnyKernel, Compute
from convcore.engine.conv._partials cimport add_partials, chunk_begin
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._types cimport number
from convcore.engine.runtime._vectors cimport add, zero

use_team()

cdef enum:
    LANES = 16       # channels whose sums stay in registers
    TAPS = 64        # maximum number of taps of a kernel
    PIECE = 64       # pixels added one after another before their sum joins the total

# Limits for plan.py.
MOST_TAPS = TAPS
WIDTH = LANES

# A tap inside the input: the offset where it reads, and its index.
cdef struct Hit:
    Py_ssize_t offset
    Py_ssize_t tap


cdef inline Py_ssize_t find_hits(const Window *v, Place at, Hit *hits) noexcept nogil:
    """List the taps of one pixel that are not in the padding; return their number."""
    cdef Py_ssize_t td, th, tw, d, h, w, tap = 0, found = 0, line
    for td in range(v.line[0].taps):
        d = source(&v.line[0], at.d, td)
        for th in range(v.line[1].taps):
            h = source(&v.line[1], at.h, th)
            if 0 <= d < v.line[0].size and 0 <= h < v.line[1].size:
                line = at.n * v.s_n + d * v.s[0] + h * v.s[1]
                w = source(&v.line[2], at.w, 0)
                for tw in range(v.line[2].taps):
                    if 0 <= w < v.line[2].size:
                        hits[found].offset = line + w * v.s[2]
                        hits[found].tap = tap + tw
                        found += 1
                    w += v.line[2].step
            tap += v.line[2].taps
    return found


cdef inline void multiply_lanes(
    const number *x, const number *w, Py_ssize_t ldw, const Hit *hits, Py_ssize_t n_hits,
    number *out,
) noexcept nogil:
    """Compute out[c] += sum over hits of x[c] * w[tap, c], for LANES channels."""
    cdef number[LANES] sums
    cdef Py_ssize_t i, c
    cdef const number *a
    cdef const number *b
    for c in range(LANES):
        sums[c] = out[c]
    for i in range(n_hits):
        a = x + hits[i].offset
        b = w + hits[i].tap * ldw
        for c in range(LANES):
            sums[c] = sums[c] + a[c] * b[c]
    for c in range(LANES):
        out[c] = sums[c]


cdef void multiply_channels(
    const number *x, const number *w, const Window *v, Py_ssize_t channels, Py_ssize_t c0,
    Py_ssize_t c1, Py_ssize_t q0, Py_ssize_t q1, number *out, Py_ssize_t ld,
) noexcept nogil:
    """out[q - q0, c - c0] = sum over t of x[under tap t of q, c] * w[t, c] for c in [c0, c1).

    x: channels contiguous.  w: (taps, channels).  out: rows `ld` elements apart.
    nogil, no allocation, no threads.
    """
    cdef Hit[TAPS] hits
    cdef Py_ssize_t c, i, n_hits
    cdef Place at = locate(v, q0)
    for _ in range(q1 - q0):
        zero(out, c1 - c0)
        n_hits = find_hits(v, at, hits)
        c = c0
        while c + LANES <= c1:
            multiply_lanes(x + c, w + c, channels, hits, n_hits, out + (c - c0))
            c += LANES
        while c < c1:
            for i in range(n_hits):
                out[c - c0] = out[c - c0] + x[hits[i].offset + c] * w[hits[i].tap * channels + c]
            c += 1
        out += ld
        next_pixel(v, &at)


# ---- the weight gradient ----

cdef struct Job:
    Window x                     # the inputs that an output pixel reads
    Window gy                    # its gradient, as one tap without pads
    Py_ssize_t n
    Py_ssize_t channels
    Py_ssize_t partials          # chunks of pixels, each with its own partial gradient
    Py_ssize_t items


cdef void add_pixels(
    const Job *job, Py_ssize_t c0, Py_ssize_t width, Place *at, Py_ssize_t count,
    const number *x, const number *gy, number *total,
) noexcept nogil:
    """total[t, c - c0] += sum over `count` pixels from `at` on of gy[q, c] * x[under t of q, c]."""
    cdef number[TAPS * LANES] sums
    cdef Hit[TAPS] hits
    cdef Hit own
    cdef Py_ssize_t i, c, n_hits
    cdef bint joined = width == LANES and job.x.s_c == 1 and job.gy.s_c == 1
    cdef number *s
    cdef const number *a
    cdef const number *g
    zero(sums, job.x.taps * LANES)
    for _ in range(count):
        n_hits = find_hits(&job.x, at[0], hits)
        find_hits(&job.gy, at[0], &own)
        g = gy + own.offset + c0 * job.gy.s_c
        for i in range(n_hits):
            s = sums + hits[i].tap * LANES
            a = x + hits[i].offset + c0 * job.x.s_c
            if joined:
                for c in range(LANES):
                    s[c] = s[c] + g[c] * a[c]
            else:
                for c in range(width):
                    s[c] = s[c] + g[c * job.gy.s_c] * a[c * job.x.s_c]
        next_pixel(&job.x, at)
    for i in range(job.x.taps):
        add(sums + i * LANES, width, total + i * LANES, 1)


cdef void weight_item(
    const Job *job, Py_ssize_t item, const number *x, const number *gy, number *partials
) noexcept nogil:
    """Sum one chunk of pixels for LANES channels into partials[run, c, t]."""
    cdef Py_ssize_t run = item % job.partials, c0 = item // job.partials * LANES
    cdef Py_ssize_t width = min(LANES, job.channels - c0), taps = job.x.taps
    cdef Py_ssize_t pixels = job.n * job.x.pixels, c, t
    cdef Py_ssize_t q = chunk_begin(run, job.partials, pixels)
    cdef Py_ssize_t end = chunk_begin(run + 1, job.partials, pixels)
    cdef Place at = locate(&job.x, q)
    cdef number[TAPS * LANES] total
    zero(total, taps * LANES)
    while q < end:
        add_pixels(job, c0, width, &at, min(PIECE, end - q), x, gy, total)
        q += PIECE
    for c in range(width):
        for t in range(taps):
            partials[(run * job.channels + c0 + c) * taps + t] = total[t * LANES + c]


cdef void weight_gradient(
    const Job *job, const number *x, const void *grad, void *out, void *workspace,
    const AnyEpilogue *epilogue, int threads,
) noexcept nogil:
    """Run all items, then sum the partial gradients."""
    cdef const number *gy = <const number *>grad
    cdef number *gw = <number *>out
    cdef number *sums = <number *>workspace
    cdef Py_ssize_t i, taps = job.x.taps, size = job.channels * taps
    # A thread owns whole runs of whole channels.
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        weight_item(job, i, x, gy, sums)
    # A thread owns whole channels of gw.
    for i in prange(job.channels, schedule="static", num_threads=threads):
        add_partials(sums, job.partials, size, i * taps, taps, gw + i * taps)


cdef class DepthwiseWeight(AnyKernel):
    """Weight gradient of any dtype and strides, planned in plan.py; gw is contiguous (C, taps)."""

    cdef Job job

    def __cinit__(self, dict job, str kind):
        self.job = job
        self.set_compute(
            kind, &self.job, <Compute>weight_gradient[float], <Compute>weight_gradient[double],
            <Compute>weight_gradient[floatcomplex], <Compute>weight_gradient[doublecomplex],
        )
