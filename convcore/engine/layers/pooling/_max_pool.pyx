"""Max pooling and its gradient, one line of outputs at a time, multithreaded.

For each maximum, its tap in the window is saved in a byte; indices are computed from the taps.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport NOWHERE, PIECE, MaxPool, Windows, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

# Windows with more taps are not supported by these kernels.
MOST_TAPS = NOWHERE

cdef struct Job:
    MaxPool pool
    Py_ssize_t images            # of NHWC, or planes of NCHW
    Py_ssize_t inputs            # bytes of one
    Py_ssize_t outputs
    Py_ssize_t scratch           # bytes of one thread
    bint wide                    # float64


cdef void forward_lines(
    const Job *job, const char *x, char *y, uint8_t *taps, char *scratch, Py_ssize_t i,
    Py_ssize_t end,
) noexcept nogil:
    """Compute lines [i, end) of y, counted over all images."""
    cdef const MaxPool *m = &job.pool
    cdef Py_ssize_t depth = m.axis[0].out, rows = m.axis[1].out
    cdef Py_ssize_t length = m.axis[2].out * max(m.channels, 1), size = 8 if job.wide else 4
    cdef Py_ssize_t h = i % rows, d = i // rows % depth
    x += i // rows // depth * job.inputs
    for i in range(i, end):
        layer_microkernels().pooling[job.wide].max_pool(
            m, x, d, h, y + i * length * size, NULL if taps == NULL else taps + i * length, scratch
        )
        # Incremented, because divisions take as long as a small plane's line.
        h += 1
        if h == rows:
            h = 0
            d += 1
            if d == depth:
                d = 0
                x += job.inputs


cdef void forward_all(
    const Job *job, const char *x, char *y, uint8_t *taps, char *scratch, int threads
) noexcept nogil:
    cdef Py_ssize_t lines = job.images * job.pool.axis[0].out * job.pool.axis[1].out, part
    # A part has its own lines of y and taps, and its own slice of the scratch.
    for part in prange(threads, schedule="static", num_threads=threads):
        forward_lines(
            job, x, y, taps, scratch + part * job.scratch, lines * part // threads,
            lines * (part + 1) // threads,
        )


cdef void forward_narrow(const Job *job, const char *x, char *y, int threads) noexcept nogil:
    cdef const MaxPool *m = &job.pool
    cdef Py_ssize_t i, line, lines = m.axis[0].out * m.axis[1].out
    # A thread owns whole lines of y.
    for i in prange(job.images * lines, schedule="static", num_threads=threads):
        line = i % lines
        layer_microkernels().narrow.max_pool(
            m, x + i // lines * (job.inputs // 2), line // m.axis[1].out, line % m.axis[1].out,
            y + i * (job.outputs // 2 // lines),
        )


cdef void gradient_all(
    const Job *job, const char *gy, const uint8_t *taps, char *gx, int threads
) noexcept nogil:
    cdef const MaxPool *m = &job.pool
    cdef Py_ssize_t i, line, lines = m.axis[0].size * m.axis[1].size if m.channels else 0
    cdef Py_ssize_t length = job.inputs // max(lines, 1), size = 8 if job.wide else 4
    cdef Py_ssize_t outputs = job.outputs // size, planes = 0 if m.channels else job.images
    # A thread owns whole lines of gx: what several windows give to one element is added there.
    for i in prange(job.images * lines, schedule="static", num_threads=threads):
        line = i % lines
        layer_microkernels().pooling[job.wide].max_pool_gradient_nhwc(
            m, gy + i // lines * job.outputs, taps + i // lines * outputs,
            line // m.axis[1].size, line % m.axis[1].size, gx + i * length,
        )
    # A thread owns whole planes of gx.
    for i in prange(planes, schedule="static", num_threads=threads):
        layer_microkernels().pooling[job.wide].max_pool_gradient_nchw(
            m, gy + i * job.outputs, taps + i * outputs, gx + i * job.inputs
        )


cdef void find_line(
    const MaxPool *m, const uint8_t *taps, Py_ssize_t d, Py_ssize_t h, int64_t *indices
) noexcept nogil:
    """Compute the indices in their plane of one line's maxima."""
    cdef const Windows *rows = &m.axis[1]
    cdef const Windows *columns = &m.axis[2]
    cdef Py_ssize_t unit = m.channels if m.channels else 1, i, tap, row, a, b
    for i in range(columns.out * unit):
        tap = taps[i]
        row = tap // columns.kernel
        a = m.axis[0].start[d] + row // rows.kernel * m.axis[0].dilation
        b = rows.start[h] + row % rows.kernel * rows.dilation
        indices[i] = (
            (a * rows.size + b) * columns.size
            + columns.start[i // unit] + tap % columns.kernel * columns.dilation
        )
        if tap == NOWHERE:
            indices[i] = -1


cdef void find_all(
    const Job *job, const uint8_t *taps, int64_t *indices, int threads
) noexcept nogil:
    cdef const MaxPool *m = &job.pool
    cdef Py_ssize_t i, line, lines = m.axis[0].out * m.axis[1].out
    cdef Py_ssize_t length = m.axis[2].out * max(m.channels, 1)
    # A thread owns whole lines of the indices.
    for i in prange(job.images * lines, schedule="static", num_threads=threads):
        line = i % lines
        find_line(
            m, taps + i * length, line // m.axis[1].out, line % m.axis[1].out,
            indices + i * length,
        )


cdef class MaxPoolKernel:
    """Max pooling windows along three axes, for any number of images and channels.

    Parameters
    ----------
    axes : three tuples (size, out, kernel, dilation, stride, before), as in layers/pooling.h
    tables : contiguous array of Py_ssize_t
        For each axis in turn: start, low and high of its windows, and first and end of its inputs.
    tap_work : float
        Multiply-adds that take as long as one tap.
    """

    cdef MaxPool pool
    cdef Buffers tables
    cdef Py_ssize_t line         # elements of scratch
    cdef double work             # of an output

    def __cinit__(self, axes, tables, double tap_work):
        cdef const Py_ssize_t *table
        cdef Windows *w
        cdef int i
        self.tables = Buffers()
        table = <const Py_ssize_t *>self.tables.borrow(tables, False)
        self.work = tap_work
        for i in range(3):
            w = &self.pool.axis[i]
            w.size, w.out, w.kernel, w.dilation, w.stride, w.before = axes[i]
            w.start, w.low, w.high = table, table + w.out, table + 2 * w.out
            w.first, w.end = table + 3 * w.out, table + 3 * w.out + w.size
            table += 3 * w.out + 2 * w.size
            self.work *= w.kernel
        # Elements of every line that a window reads, in whole blocks: as they are, and in parts.
        self.line = ((w.out + PIECE - 1) // PIECE * PIECE - 1) * w.stride
        self.line = 2 * (self.line + (w.kernel - 1) * w.dilation + 1) + w.stride
        self.line *= self.pool.axis[0].kernel * self.pool.axis[1].kernel if w.stride else 0

    cdef Job job(self, bint wide, Py_ssize_t images, Py_ssize_t channels):
        cdef Job job
        cdef Py_ssize_t size = 8 if wide else 4
        job.wide, job.images = wide, images
        job.pool = self.pool
        job.pool.channels = channels
        job.inputs = job.outputs = max(channels, 1) * size
        for i in range(3):
            job.inputs *= self.pool.axis[i].size
            job.outputs *= self.pool.axis[i].out
        job.scratch = self.scratch_bytes(wide)
        return job

    def scratch_bytes(self, bint wide):
        """Return the bytes of scratch a thread needs: a whole number of cache lines."""
        return (self.line * (8 if wide else 4) + 63) // 64 * 64

    def threads(self, images, channels, bint wide):
        """Return the number of threads that a call may use now."""
        cdef Job job = self.job(wide, images, channels)
        cdef double n_outputs = <double>job.outputs * images / (8 if wide else 4)
        cdef Py_ssize_t lines = min(
            self.pool.axis[0].out * self.pool.axis[1].out,
            self.pool.axis[0].size * self.pool.axis[1].size,
        )
        return thread_count(images * lines, self.work * n_outputs)

    def forward(self, x, y, taps, scratch, images, channels, bint wide, int threads):
        """Write the maxima y, and taps unless it is None.

        x, y : dense float32 arrays, or float64 if wide
        taps : dense uint8 array or None
        images, channels : of NHWC arrays; for NCHW the number of planes, and 0
        """
        cdef Buffers arrays = Buffers()
        cdef Job job = self.job(wide, images, channels)
        cdef char *x_ptr = <char *>arrays.borrow(x, False)
        cdef char *y_ptr = <char *>arrays.borrow(y, True)
        cdef char *s_ptr = <char *>arrays.borrow(scratch, True)
        cdef uint8_t *t_ptr = NULL if taps is None else <uint8_t *>arrays.borrow(taps, True)
        with nogil:
            forward_all(&job, x_ptr, y_ptr, t_ptr, s_ptr, threads)

    def narrow_forward(self, x, y, images, channels, int threads):
        """Write the maxima y of x, dense bfloat16 NHWC arrays, as uint16."""
        cdef Buffers arrays = Buffers()
        cdef Job job = self.job(False, images, channels)
        cdef char *x_ptr = <char *>arrays.borrow(x, False)
        cdef char *y_ptr = <char *>arrays.borrow(y, True)
        with nogil:
            forward_narrow(&job, x_ptr, y_ptr, threads)

    def gradient(self, gy, taps, gx, images, channels, bint wide, int threads):
        """Write gx: each element is the sum of gy over the windows whose maximum it is."""
        cdef Buffers arrays = Buffers()
        cdef Job job = self.job(wide, images, channels)
        cdef char *g_ptr = <char *>arrays.borrow(gy, False)
        cdef uint8_t *t_ptr = <uint8_t *>arrays.borrow(taps, False)
        cdef char *x_ptr = <char *>arrays.borrow(gx, True)
        with nogil:
            gradient_all(&job, g_ptr, t_ptr, x_ptr, threads)

    def indices(self, taps, indices, images, channels, int threads):
        """Write the int64 indices of the elements at taps; -1 for windows without any input."""
        cdef Buffers arrays = Buffers()
        cdef Job job = self.job(False, images, channels)
        cdef uint8_t *t_ptr = <uint8_t *>arrays.borrow(taps, False)
        cdef int64_t *i_ptr = <int64_t *>arrays.borrow(indices, True)
        with nogil:
            find_all(&job, t_ptr, i_ptr, threads)
