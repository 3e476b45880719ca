"""Normalisations of channels_last arrays: batch, group and instance norm, forward and backward.

Arrays are (images, pixels, channels), of which a batch norm has one image.  A unit, what one mean
and variance are of, is a group of neighbouring channels of one image.  Few channels make short
rows: so `repeat` pixels are taken as one row of `repeat` times as many channels, and their sums are
added afterwards.  Rows are cut into runs, whose sums are added in order.
"""

from cython.parallel cimport parallel, prange
from libc.math cimport isfinite, sqrt

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport FROM_RESULT, LINEAR, NormPixels, NormTerms, layer_microkernels
from convcore.kernels.runtime._threads cimport thread_count
from convcore.kernels.runtime._vectors cimport add, zero

ctypedef fused real:
    float
    double

cdef enum:
    COLUMNS = 64                 # sums of runs that are added as one item

cdef struct Job:
    Py_ssize_t images
    Py_ssize_t pixels            # of an image
    Py_ssize_t channels
    Py_ssize_t groups
    Py_ssize_t repeat
    Py_ssize_t runs              # of an image
    Py_ssize_t block             # rows of a run
    double eps
    bint moments                 # whether they are taken of the array, or given
    double low                   # of the clamp
    double high
    int activation               # how gradients learn of it; LINEAR: there is none
    double work                  # in multiply-adds

# Terms are (5, images, repeat * channels): mean, scale (first the weight), bias, slope and offset.
# Statistics are (2, images * groups): mean and variance.  Sums are (2, images, channels).  The
# workspace has (images, runs, 2, repeat * channels) sums and (images, repeat * channels) shifts.

cdef struct Span:
    Py_ssize_t image
    Py_ssize_t run
    Py_ssize_t first             # element
    Py_ssize_t rows
    Py_ssize_t rest              # elements behind the last whole row


cdef inline Py_ssize_t width_of(const Job *job) noexcept nogil:
    return job.repeat * job.channels


cdef Span span_of(const Job *job, Py_ssize_t item) noexcept nogil:
    """The elements of one run of one image."""
    cdef Span span
    cdef Py_ssize_t rows = job.pixels // job.repeat, first
    span.image = item // job.runs
    span.run = item % job.runs
    first = span.run * job.block
    span.rows = min(job.block, rows - first)
    span.first = span.image * job.pixels * job.channels + first * width_of(job)
    span.rest = 0
    if span.run == job.runs - 1:
        span.rest = (job.pixels - rows * job.repeat) * job.channels
    return span


cdef inline void aim(
    const Job *job, NormTerms *at, Py_ssize_t image, const real *terms
) noexcept nogil:
    """Have a leaf's terms point to those of one image."""
    cdef Py_ssize_t width = width_of(job), size = job.images * width
    at.mean = terms + image * width
    at.scale = terms + size + image * width
    at.bias = terms + 2 * size + image * width
    at.slope = terms + 3 * size + image * width
    at.offset = terms + 4 * size + image * width


cdef void take_shifts(
    const Job *job, Py_ssize_t image, const real *x, double *shifts
) noexcept nogil:
    """Write the elements of an image's first pixel, over and over."""
    cdef Py_ssize_t i
    cdef double shift
    for i in range(width_of(job)):
        shift = x[image * job.pixels * job.channels + i % job.channels]
        shifts[image * width_of(job) + i] = shift if isfinite(shift) else 0


cdef void add_runs(
    const Job *job, Py_ssize_t item, double *partials
) noexcept nogil:
    """Add up the runs of some columns of one image's sums, into the first run's."""
    cdef Py_ssize_t width = 2 * width_of(job), items = (width + COLUMNS - 1) // COLUMNS, r
    cdef Py_ssize_t first = item % items * COLUMNS, count = min(COLUMNS, width - first)
    cdef double *sums = partials + item // items * job.runs * width + first
    for r in range(1, job.runs):
        add(sums + r * width, count, sums, 1)


cdef inline double channel_sum(
    const Job *job, Py_ssize_t which, Py_ssize_t image, Py_ssize_t channel, const double *partials
) noexcept nogil:
    """The first or second sum of a channel, of all its places in a row."""
    cdef Py_ssize_t width = width_of(job), i
    cdef const double *sums = partials + (image * job.runs * 2 + which) * width + channel
    cdef double total = sums[0]
    for i in range(1, job.repeat):
        total += sums[i * job.channels]
    return total


cdef void take_moments(
    const Job *job, Py_ssize_t unit, const double *partials, const double *shifts,
    double *statistics,
) noexcept nogil:
    """Write a unit's mean and variance, from its channels' shifted sums."""
    cdef Py_ssize_t image = unit // job.groups, size = job.channels // job.groups, c
    cdef Py_ssize_t first = unit % job.groups * size
    cdef double pixels = job.pixels, mean = 0, squares = 0, own, s
    for c in range(first, first + size):
        s = channel_sum(job, 0, image, c, partials)
        mean += shifts[image * width_of(job) + c] + s / pixels
    mean /= size
    for c in range(first, first + size):
        s = channel_sum(job, 0, image, c, partials)
        own = channel_sum(job, 1, image, c, partials) - s * s / pixels
        squares += 0 if own < 0 else own
        if size > 1:
            own = shifts[image * width_of(job) + c] + s / pixels - mean
            squares += own * own * pixels
    statistics[unit] = mean
    statistics[job.images * job.groups + unit] = squares / (size * pixels)


cdef void make_terms(
    const Job *job, Py_ssize_t unit, const double *statistics, real *terms
) noexcept nogil:
    """Write a unit's mean, scales and biases; what the rounded mean lacks is in the bias."""
    cdef Py_ssize_t width = width_of(job), whole = job.images * width, i, c
    cdef Py_ssize_t image = unit // job.groups, size = job.channels // job.groups
    cdef double mean = statistics[unit], scale
    cdef double root = 1 / sqrt(statistics[job.images * job.groups + unit] + job.eps)
    cdef real *at = terms + image * width + unit % job.groups * size
    for i in range(job.repeat):
        for c in range(i * job.channels, i * job.channels + size):
            at[c] = <real>mean
            scale = root * at[whole + c]
            at[whole + c] = <real>scale
            at[2 * whole + c] = <real>(at[2 * whole + c] + (at[c] - mean) * scale)


cdef inline Py_ssize_t first_item(const Job *job, Py_ssize_t share, int shares) noexcept nogil:
    """The item with which a thread's share begins."""
    return share * (job.images * job.runs) // shares


cdef void sum_moments(
    const Job *job, Py_ssize_t item, const real *x, double *partials, const double *shifts
) noexcept nogil:
    """The sums of one run."""
    cdef const NormPixels *leaf = &layer_microkernels().norm_pixels[sizeof(real) == 8]
    cdef Span span = span_of(job, item)
    cdef Py_ssize_t width = width_of(job)
    cdef double *sums = partials + item * 2 * width
    shifts += span.image * width
    zero(sums, 2 * width)
    leaf.moments(x + span.first, span.rows, width, shifts, sums, width)
    if span.rest > 0:
        leaf.moments(x + span.first + span.rows * width, 1, span.rest, shifts, sums, width)


cdef void write_run(
    const Job *job, Py_ssize_t item, const real *x, real *residual, real *y,
    const real *terms,
) noexcept nogil:
    cdef const NormPixels *leaf = &layer_microkernels().norm_pixels[sizeof(real) == 8]
    cdef Span span = span_of(job, item)
    cdef Py_ssize_t width = width_of(job), rest = span.first + span.rows * width
    cdef NormTerms row
    row.low, row.high, row.activation = job.low, job.high, job.activation
    aim(job, &row, span.image, terms)
    leaf.forward(
        x + span.first, NULL if residual == NULL else residual + span.first, span.rows, width,
        &row, y + span.first,
    )
    if span.rest > 0:
        leaf.forward(
            x + rest, NULL if residual == NULL else residual + rest, 1, span.rest, &row, y + rest
        )


cdef void sum_share(
    const Job *job, Py_ssize_t share, int shares, const real *x, double *partials,
    const double *shifts,
) noexcept nogil:
    cdef Py_ssize_t item
    for item in range(first_item(job, share, shares), first_item(job, share + 1, shares)):
        sum_moments(job, item, x, partials, shifts)


cdef void write_share(
    const Job *job, Py_ssize_t share, int shares, const real *x, real *residual, real *y,
    const real *terms,
) noexcept nogil:
    """The thread's own runs, the last first: those that it has read last are still in its cache."""
    cdef Py_ssize_t item
    for item in reversed(range(first_item(job, share, shares), first_item(job, share + 1, shares))):
        write_run(job, item, x, residual, y, terms)


cdef void forward_all(
    const Job *job, const real *x, const void *residual, void *y, void *terms,
    double *statistics, double *workspace, int threads,
) noexcept nogil:
    cdef Py_ssize_t i, items = job.images * job.runs, units = job.images * job.groups
    cdef Py_ssize_t columns = job.images * ((2 * width_of(job) + COLUMNS - 1) // COLUMNS)
    cdef double *shifts = workspace + items * 2 * width_of(job)
    with parallel(num_threads=threads):
        if job.moments:
            # A thread owns whole images' shifts, then whole runs' sums, then whole columns.
            for i in prange(job.images, schedule="static"):
                take_shifts(job, i, x, shifts)
            for i in prange(threads, schedule="static"):
                sum_share(job, i, threads, x, workspace, shifts)
            for i in prange(columns, schedule="static"):
                add_runs(job, i, workspace)
            # A thread owns whole units' statistics.
            for i in prange(units, schedule="static"):
                take_moments(job, i, workspace, shifts, statistics)
        # A thread owns whole units' terms.
        for i in prange(units, schedule="static"):
            make_terms(job, i, statistics, <real *>terms)
        # A thread owns whole runs of y.
        for i in prange(threads, schedule="static"):
            write_share(
                job, i, threads, x, <real *>residual, <real *>y, <const real *>terms
            )


def forward(dict fields, x, residual, y, terms, statistics, workspace):
    """Write y = (x - mean) / sqrt(variance + eps) * weight + bias (+ residual), then clamped.

    Parameters
    ----------
    fields : dict with the fields of Job
    x, residual, y : arrays of one dtype and layout; residual may be None
    terms : (5, images, repeat * channels), the same dtype
        Rows 1 and 2 hold weight and bias; all rows are written.
    statistics : (2, images * groups), float64
        Read, or written where `moments` is true.
    workspace : (images, 2 * runs + 1, repeat * channels), float64
    """
    cdef Job job = fields
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *r_ptr = NULL if residual is None else arrays.borrow(residual, False)
    cdef void *y_ptr = arrays.borrow(y, True)
    cdef void *t_ptr = arrays.borrow(terms, True)
    cdef double *s_ptr = <double *>arrays.borrow(statistics, True)
    cdef double *w_ptr = <double *>arrays.borrow(workspace, True)
    cdef int threads = thread_count(job.images * job.runs, job.work)
    cdef bint double_ = arrays.views[0].itemsize == 8
    with nogil:
        if double_:
            forward_all(&job, <double *>x_ptr, r_ptr, y_ptr, t_ptr, s_ptr, w_ptr, threads)
        else:
            forward_all(&job, <float *>x_ptr, r_ptr, y_ptr, t_ptr, s_ptr, w_ptr, threads)


# ---- backward ----

cdef void sum_gradients(
    const Job *job, Py_ssize_t item, const real *gy, const real *x, real *y, real *kept,
    const real *terms, double *partials,
) noexcept nogil:
    cdef const NormPixels *leaf = &layer_microkernels().norm_pixels[sizeof(real) == 8]
    cdef Span span = span_of(job, item)
    cdef Py_ssize_t width = width_of(job), at = span.first, part
    cdef double *sums = partials + item * 2 * width
    cdef NormTerms row
    row.low, row.high, row.activation = job.low, job.high, job.activation
    aim(job, &row, span.image, terms)
    zero(sums, 2 * width)
    for part in range(2 if span.rest > 0 else 1):
        leaf.gradient_sums(
            gy + at, x + at, NULL if y == NULL else y + at, 1 if part else span.rows,
            span.rest if part else width, &row, NULL if kept == NULL else kept + at, sums, width,
        )
        at += span.rows * width


cdef void finish_sums(
    const Job *job, Py_ssize_t unit, const double *partials, const double *statistics,
    double *sums, real *terms,
) noexcept nogil:
    """Write the sums of a unit's channels, then slope and offset: see _norm_nchw.pyx."""
    cdef Py_ssize_t width = width_of(job), whole = job.images * width, i, c
    cdef Py_ssize_t image = unit // job.groups, size = job.channels // job.groups
    cdef Py_ssize_t first = unit % job.groups * size
    cdef double mean = statistics[unit], variance = statistics[job.images * job.groups + unit]
    cdef double by_mean = 0, by_variance = 0, count = <double>job.pixels * size, slope, offset
    cdef real *at = terms + image * width + first
    cdef double *s = sums + image * job.channels + first
    cdef double *q = s + job.images * job.channels
    for c in range(size):
        s[c] = channel_sum(job, 0, image, first + c, partials)
        # The leaf has subtracted a rounded mean.
        q[c] = channel_sum(job, 1, image, first + c, partials) + (at[c] - mean) * s[c]
        if job.moments:
            by_mean += at[whole + c] * s[c]
            by_variance += at[whole + c] * q[c]
    slope = by_variance / count / (variance + job.eps)
    for i in range(job.repeat):
        for c in range(i * job.channels, i * job.channels + size):
            offset = by_mean / count + (at[c] - mean) * slope
            at[3 * whole + c] = <real>slope
            at[4 * whole + c] = <real>offset


cdef void write_gradients(
    const Job *job, Py_ssize_t item, const real *gy, const real *x, real *gx, const real *terms
) noexcept nogil:
    cdef const NormPixels *leaf = &layer_microkernels().norm_pixels[sizeof(real) == 8]
    cdef Span span = span_of(job, item)
    cdef Py_ssize_t width = width_of(job), rest = span.first + span.rows * width
    cdef NormTerms row
    row.low, row.high = job.low, job.high
    row.activation = LINEAR if job.activation == FROM_RESULT else job.activation
    aim(job, &row, span.image, terms)
    leaf.gradient(gy + span.first, x + span.first, span.rows, width, &row, gx + span.first)
    if span.rest > 0:
        leaf.gradient(gy + rest, x + rest, 1, span.rest, &row, gx + rest)


cdef void sum_gradients_share(
    const Job *job, Py_ssize_t share, int shares, const real *gy, const real *x, real *y,
    real *kept, const real *terms, double *partials,
) noexcept nogil:
    cdef Py_ssize_t item
    for item in range(first_item(job, share, shares), first_item(job, share + 1, shares)):
        sum_gradients(job, item, gy, x, y, kept, terms, partials)


cdef void write_gradients_share(
    const Job *job, Py_ssize_t share, int shares, const real *gy, const real *x, real *gx,
    const real *terms,
) noexcept nogil:
    """The thread's own runs, the last first: see write_share."""
    cdef Py_ssize_t item
    for item in reversed(range(first_item(job, share, shares), first_item(job, share + 1, shares))):
        write_gradients(job, item, gy, x, gx, terms)


cdef void backward_all(
    const Job *job, const real *gy, const void *x, const void *y, void *kept, void *gx,
    void *terms, const double *statistics, double *sums, double *workspace, int threads,
) noexcept nogil:
    cdef Py_ssize_t i, units = job.images * job.groups
    cdef Py_ssize_t columns = job.images * ((2 * width_of(job) + COLUMNS - 1) // COLUMNS)
    cdef const real *grad = gy if kept == NULL else <const real *>kept
    with parallel(num_threads=threads):
        # A thread owns whole units' terms, then whole runs' sums, then whole columns of them.
        for i in prange(units, schedule="static"):
            make_terms(job, i, statistics, <real *>terms)
        for i in prange(threads, schedule="static"):
            sum_gradients_share(
                job, i, threads, gy, <const real *>x, <real *>y, <real *>kept,
                <const real *>terms, workspace,
            )
        for i in prange(columns, schedule="static"):
            add_runs(job, i, workspace)
        for i in prange(units, schedule="static"):
            finish_sums(job, i, workspace, statistics, sums, <real *>terms)
        # A thread owns whole runs of gx.
        if gx != NULL:
            for i in prange(threads, schedule="static"):
                write_gradients_share(
                    job, i, threads, grad, <const real *>x, <real *>gx, <const real *>terms
                )


def backward(dict fields, gy, x, y, kept, gx, terms, statistics, sums, workspace):
    """Write gx, what the clamp leaves of gy, and the sums that the other gradients are made of.

    Parameters
    ----------
    fields : dict with the fields of Job
    gy, x, y, kept, gx : arrays of one dtype and layout
        y and kept are None unless the activation is FROM_RESULT; gx may be None.
    terms : (5, images, repeat * channels), the same dtype
        Rows 1 and 2 hold weight and bias; all rows are written.
    statistics : (2, images * groups), float64
    sums : (2, images, channels), float64
        Written: sums of gy and of gy * (x - mean), after the clamp.
    workspace : (images, 2 * runs + 1, repeat * channels), float64
    """
    cdef Job job = fields
    cdef Buffers arrays = Buffers()
    cdef void *g_ptr = arrays.borrow(gy, False)
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *y_ptr = NULL if y is None else arrays.borrow(y, False)
    cdef void *k_ptr = NULL if kept is None else arrays.borrow(kept, True)
    cdef void *gx_ptr = NULL if gx is None else arrays.borrow(gx, True)
    cdef void *t_ptr = arrays.borrow(terms, True)
    cdef double *st_ptr = <double *>arrays.borrow(statistics, False)
    cdef double *s_ptr = <double *>arrays.borrow(sums, True)
    cdef double *w_ptr = <double *>arrays.borrow(workspace, True)
    cdef int threads = thread_count(job.images * job.runs, job.work)
    cdef bint double_ = arrays.views[0].itemsize == 8
    with nogil:
        if double_:
            backward_all(
                &job, <double *>g_ptr, x_ptr, y_ptr, k_ptr, gx_ptr, t_ptr, st_ptr, s_ptr, w_ptr,
                threads,
            )
        else:
            backward_all(
                &job, <float *>g_ptr, x_ptr, y_ptr, k_ptr, gx_ptr, t_ptr, st_ptr, s_ptr, w_ptr,
                threads,
            )
