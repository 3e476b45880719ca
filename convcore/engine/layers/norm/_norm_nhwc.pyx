"""Batch, group and instance norm of NHWC (channels_last) arrays, forward and backward.

Arrays are (images, pixels, channels); batch norm treats the batch as one image.  A unit (elements
with one mean and variance) is a group of adjacent channels of one image.  Few channels make short
rows: so `repeat` pixels are treated as one row of `repeat` times as many channels, and their sums
are added afterwards.  Rows are cut into chunks, whose sums are added in order.
"""

from cython.parallel cimport prange

from convcore.engine.layers.norm._norm cimport (
    Call,
    Norm,
    get,
    moved,
    parameters_of,
    set_scale,
    set_slope,
    shift_of,
)
from convcore.engine.runtime._isa cimport FROM_RESULT, LINEAR, NormParameters, layer_microkernels
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._vectors cimport add, zero

use_team()

cdef enum:
    SUMS = 64                    # sums of chunks added as one item
    SIDE = 8                     # rows that microkernels process together
    STAGE = 1 << 11              # bfloat16 elements converted to float at a time, or SIDE rows
    ROOMS = 4                    # maximum arrays staged at the same time

cdef struct Shape:
    Py_ssize_t images
    Py_ssize_t pixels            # of an image
    Py_ssize_t channels
    Py_ssize_t groups
    Py_ssize_t repeat
    Py_ssize_t chunks            # of an image
    Py_ssize_t block             # rows of a chunk

# Parameters are (5, images, repeat * channels), sums (2, images, channels).  The workspace has
# (images, chunks, 2, repeat * channels) partial sums and (images, repeat * channels) shifts; for
# bfloat16 arrays, followed by each thread's stage of floats.

cdef struct Chunk:
    Py_ssize_t image
    Py_ssize_t[2] first          # element of its whole rows, and of the remaining pixels
    Py_ssize_t[2] rows
    Py_ssize_t[2] width
    int parts                    # 2 if there are remaining pixels

# Rows of a chunk: all of a part, or as many as fit the stage.
cdef struct Span:
    int part
    Py_ssize_t first             # row of the part
    Py_ssize_t rows
    Py_ssize_t width
    Py_ssize_t at                # element

cdef struct Unit:
    Py_ssize_t image
    Py_ssize_t first             # channel
    Py_ssize_t size              # channels
    double mean
    double variance


cdef inline Py_ssize_t width_of(const Shape *s) noexcept nogil:
    return s.repeat * s.channels


cdef inline double *shifts_of(const Shape *s, const Call *call, Py_ssize_t image) noexcept nogil:
    return call.workspace + (s.images * s.chunks * 2 + image) * width_of(s)


cdef Chunk chunk_of(const Shape *s, Py_ssize_t item) noexcept nogil:
    cdef Chunk chunk
    cdef Py_ssize_t rows = s.pixels // s.repeat, first = item % s.chunks * s.block
    chunk.image = item // s.chunks
    chunk.rows[0], chunk.rows[1] = min(s.block, rows - first), 1
    chunk.width[0], chunk.width[1] = width_of(s), (s.pixels - rows * s.repeat) * s.channels
    chunk.first[0] = chunk.image * s.pixels * s.channels + first * width_of(s)
    chunk.first[1] = chunk.first[0] + chunk.rows[0] * width_of(s)
    chunk.parts = 2 if chunk.width[1] > 0 and item % s.chunks == s.chunks - 1 else 1
    return chunk


cdef inline Span nothing() noexcept nogil:
    cdef Span span
    span.part, span.first, span.rows, span.width, span.at = 0, 0, 0, 0, 0
    return span


cdef inline bint next_span(const Call *call, const Chunk *chunk, Span *span) noexcept nogil:
    """Advance to a chunk's next rows (initially its first); return False at its end."""
    span.first += span.rows
    if span.first == chunk.rows[span.part]:
        span.part += 1
        span.first = 0
    if span.part == chunk.parts:
        return False
    span.width = chunk.width[span.part]
    span.rows = chunk.rows[span.part] - span.first
    if call.narrow:
        span.rows = min(span.rows, max(1, STAGE // SIDE // span.width) * SIDE)
    span.at = chunk.first[span.part] + span.first * span.width
    return True


cdef inline Py_ssize_t room_size(const Shape *s) noexcept nogil:
    """Return the maximum elements of a span of bfloat16."""
    return max(STAGE, SIDE * width_of(s))


cdef inline char *room(
    const Shape *s, const Call *call, char *array, const Span *span, Py_ssize_t share, int number
) noexcept nogil:
    """Return the address of a span's elements or, for bfloat16, of its place in the stage."""
    cdef float *stage = <float *>(call.workspace + s.images * (2 * s.chunks + 1) * width_of(s))
    if array == NULL or not call.narrow:
        return moved(call, array, span.at)
    return <char *>(stage + (share * ROOMS + number) * room_size(s))


cdef inline char *read(
    const Shape *s, const Call *call, char *array, const Span *span, Py_ssize_t share, int number
) noexcept nogil:
    """Return a span's elements; bfloat16 is converted to float in the stage."""
    cdef char *to = room(s, call, array, span, share, number)
    if array != NULL and call.narrow:
        layer_microkernels().narrow.widen(
            moved(call, array, span.at), span.rows * span.width, to
        )
    return to


cdef inline void write(
    const Shape *s, const Call *call, char *array, const Span *span, Py_ssize_t share, int number
) noexcept nogil:
    """Round a staged span to bfloat16; other dtypes have been written in place."""
    if array != NULL and call.narrow:
        layer_microkernels().narrow.round(
            room(s, call, array, span, share, number), span.rows * span.width,
            moved(call, array, span.at),
        )


cdef Unit unit_of(const Shape *s, const Call *call, Py_ssize_t number) noexcept nogil:
    cdef Unit unit
    unit.image, unit.size = number // s.groups, s.channels // s.groups
    unit.first = number % s.groups * unit.size
    unit.mean = call.statistics[number]
    unit.variance = call.statistics[s.images * s.groups + number]
    return unit


cdef inline Py_ssize_t first_item(const Shape *s, Py_ssize_t share, int shares) noexcept nogil:
    """Return the item at which a thread's share begins."""
    return share * (s.images * s.chunks) // shares


cdef void add_chunks(const Shape *s, Py_ssize_t item, double *partials) noexcept nogil:
    """Add a range of an image's sums over its chunks, into the first chunk's."""
    cdef Py_ssize_t width = 2 * width_of(s), items = (width + SUMS - 1) // SUMS, i
    cdef Py_ssize_t first = item % items * SUMS, count = min(SUMS, width - first)
    cdef double *sums = partials + item // items * s.chunks * width + first
    for i in range(1, s.chunks):
        add(sums + i * width, count, sums, 1)


cdef inline double channel_sum(
    const Shape *s, Py_ssize_t which, Py_ssize_t image, Py_ssize_t channel, const double *partials
) noexcept nogil:
    """Return the first or second sum of a channel, over its repetitions in a row."""
    cdef Py_ssize_t i
    cdef const double *sums = partials + (image * s.chunks * 2 + which) * width_of(s) + channel
    cdef double total = sums[0]
    for i in range(1, s.repeat):
        total += sums[i * s.channels]
    return total


cdef void scale_unit(const Shape *s, const Call *call, Py_ssize_t number) noexcept nogil:
    cdef Unit unit = unit_of(s, call, number)
    cdef Py_ssize_t width = width_of(s), first = unit.image * width + unit.first, i
    for i in range(s.repeat):
        set_scale(
            call, s.images * width, first + i * s.channels, unit.size, unit.mean, unit.variance
        )


# ---- forward ----

cdef void take_shifts(const Shape *s, const Call *call, Py_ssize_t image) noexcept nogil:
    """Write the elements of an image's first pixel, repeated."""
    cdef double *shifts = shifts_of(s, call, image)
    cdef Py_ssize_t i
    for i in range(width_of(s)):
        shifts[i] = shift_of(call, image * s.pixels * s.channels + i % s.channels)


cdef void take_moments(const Shape *s, const Call *call, Py_ssize_t number) noexcept nogil:
    """Write a unit's mean and variance, from its channels' shifted sums."""
    cdef Unit unit = unit_of(s, call, number)
    cdef const double *shifts = shifts_of(s, call, unit.image)
    cdef double pixels = s.pixels, mean = 0, squares = 0, own, total
    cdef Py_ssize_t c
    for c in range(unit.first, unit.first + unit.size):
        mean += shifts[c] + channel_sum(s, 0, unit.image, c, call.workspace) / pixels
    mean /= unit.size
    for c in range(unit.first, unit.first + unit.size):
        total = channel_sum(s, 0, unit.image, c, call.workspace)
        own = channel_sum(s, 1, unit.image, c, call.workspace) - total * total / pixels
        squares += 0 if own < 0 else own
        if unit.size > 1:
            own = shifts[c] + total / pixels - mean
            squares += own * own * pixels
    call.statistics[number] = mean
    call.statistics[s.images * s.groups + number] = squares / (unit.size * pixels)


cdef void sum_share(
    const Shape *s, const Call *call, Py_ssize_t share, int shares
) noexcept nogil:
    """Compute the moments' sums of a thread's chunks."""
    cdef Py_ssize_t width = width_of(s), item
    cdef double *sums
    cdef Chunk chunk
    cdef Span span
    for item in range(first_item(s, share, shares), first_item(s, share + 1, shares)):
        chunk, span = chunk_of(s, item), nothing()
        sums = call.workspace + item * 2 * width
        zero(sums, 2 * width)
        while next_span(call, &chunk, &span):
            layer_microkernels().norm_nhwc[call.wide].moments(
                read(s, call, call.x, &span, share, 0), span.rows, span.width,
                shifts_of(s, call, chunk.image), sums, width,
            )


cdef void write_share(
    const Shape *s, const Call *call, Py_ssize_t share, int shares
) noexcept nogil:
    """Compute y of a thread's chunks in reverse order: the last ones are still in its cache."""
    cdef Py_ssize_t width = width_of(s), item
    cdef NormParameters p
    cdef Chunk chunk
    cdef Span span
    for item in reversed(range(first_item(s, share, shares), first_item(s, share + 1, shares))):
        chunk, span = chunk_of(s, item), nothing()
        p = parameters_of(call, s.images * width, chunk.image * width)
        while next_span(call, &chunk, &span):
            layer_microkernels().norm_nhwc[call.wide].forward(
                read(s, call, call.x, &span, share, 0),
                read(s, call, call.residual, &span, share, 1), span.rows, span.width, &p,
                room(s, call, call.y, &span, share, 2),
            )
            write(s, call, call.y, &span, share, 2)


# ---- backward ----

cdef void sum_gradients_share(
    const Shape *s, const Call *call, Py_ssize_t share, int shares
) noexcept nogil:
    """Compute the gradients' sums of a thread's chunks, and the masked gy."""
    cdef Py_ssize_t width = width_of(s), item
    cdef double *sums
    cdef NormParameters p
    cdef Chunk chunk
    cdef Span span
    for item in range(first_item(s, share, shares), first_item(s, share + 1, shares)):
        chunk, span = chunk_of(s, item), nothing()
        sums = call.workspace + item * 2 * width
        p = parameters_of(call, s.images * width, chunk.image * width)
        zero(sums, 2 * width)
        while next_span(call, &chunk, &span):
            layer_microkernels().norm_nhwc[call.wide].gradient_sums(
                read(s, call, call.gy, &span, share, 0), read(s, call, call.x, &span, share, 1),
                read(s, call, call.y, &span, share, 2), span.rows, span.width, &p,
                room(s, call, call.masked, &span, share, 3), sums, width,
            )
            write(s, call, call.masked, &span, share, 3)


cdef void finish_unit(const Shape *s, const Call *call, Py_ssize_t number) noexcept nogil:
    """Write the sums of a unit's channels, then slope and offset."""
    cdef Unit unit = unit_of(s, call, number)
    cdef Py_ssize_t whole = s.images * width_of(s), i
    cdef Py_ssize_t first = unit.image * width_of(s) + unit.first
    cdef double by_mean = 0, by_variance = 0, count = <double>s.pixels * unit.size, scale
    cdef double *plain = call.sums + unit.image * s.channels + unit.first
    cdef double *products = plain + s.images * s.channels
    for i in range(unit.size):
        plain[i] = channel_sum(s, 0, unit.image, unit.first + i, call.workspace)
        products[i] = channel_sum(s, 1, unit.image, unit.first + i, call.workspace)
        # The microkernel has subtracted a rounded mean.
        products[i] += (get(call, call.parameters, first + i) - unit.mean) * plain[i]
        if call.moments:
            scale = get(call, call.parameters, whole + first + i)
            by_mean += scale * plain[i]
            by_variance += scale * products[i]
    by_variance = by_variance / count / (unit.variance + call.eps)
    for i in range(s.repeat):
        set_slope(
            call, whole, first + i * s.channels, unit.size, unit.mean, by_variance,
            by_mean / count,
        )


cdef void write_gradients_share(
    const Shape *s, const Call *call, Py_ssize_t share, int shares
) noexcept nogil:
    """Compute gx of a thread's chunks in reverse order: see write_share."""
    cdef char *gy = call.gy if call.masked == NULL else call.masked
    cdef Py_ssize_t width = width_of(s), item
    cdef NormParameters p
    cdef Chunk chunk
    cdef Span span
    for item in reversed(range(first_item(s, share, shares), first_item(s, share + 1, shares))):
        chunk, span = chunk_of(s, item), nothing()
        p = parameters_of(call, s.images * width, chunk.image * width)
        if call.activation == FROM_RESULT:
            p.activation = LINEAR
        while next_span(call, &chunk, &span):
            layer_microkernels().norm_nhwc[call.wide].gradient(
                read(s, call, gy, &span, share, 0), read(s, call, call.x, &span, share, 1),
                span.rows, span.width, &p, room(s, call, call.gx, &span, share, 2),
            )
            write(s, call, call.gx, &span, share, 2)


cdef class NormNhwc(Norm):
    """Batch, group or instance norm of NHWC arrays, from a dict of Shape's fields."""

    cdef Shape shape
    cdef Py_ssize_t units
    cdef readonly Py_ssize_t stage    # bytes that a thread needs for bfloat16
    cdef Py_ssize_t blocks       # of sums over chunks

    def __cinit__(self, dict fields, double work):
        self.shape, self.work = fields, work
        self.items = self.shape.images * self.shape.chunks
        self.units = self.shape.images * self.shape.groups
        self.stage = 4 * ROOMS * room_size(&self.shape)
        self.blocks = self.shape.images * ((2 * width_of(&self.shape) + SUMS - 1) // SUMS)

    cdef void forward_all(self, const Call *call, int threads) noexcept nogil:
        cdef Py_ssize_t i
        if call.moments:
            # A thread owns whole images' shifts, whole chunks' sums, parts of all chunks' sums.
            for i in prange(self.shape.images, schedule="static", num_threads=threads):
                take_shifts(&self.shape, call, i)
            for i in prange(threads, schedule="static", num_threads=threads):
                sum_share(&self.shape, call, i, threads)
            for i in prange(self.blocks, schedule="static", num_threads=threads):
                add_chunks(&self.shape, i, call.workspace)
            # A thread owns whole units' statistics.
            for i in prange(self.units, schedule="static", num_threads=threads):
                take_moments(&self.shape, call, i)
        # A thread owns whole units' parameters, then whole chunks of y.
        for i in prange(self.units, schedule="static", num_threads=threads):
            scale_unit(&self.shape, call, i)
        for i in prange(threads, schedule="static", num_threads=threads):
            write_share(&self.shape, call, i, threads)

    cdef void backward_all(self, const Call *call, int threads) noexcept nogil:
        cdef Py_ssize_t i
        # A thread owns whole units' parameters, whole chunks' sums, parts of all chunks' sums.
        for i in prange(self.units, schedule="static", num_threads=threads):
            scale_unit(&self.shape, call, i)
        for i in prange(threads, schedule="static", num_threads=threads):
            sum_gradients_share(&self.shape, call, i, threads)
        for i in prange(self.blocks, schedule="static", num_threads=threads):
            add_chunks(&self.shape, i, call.workspace)
        for i in prange(self.units, schedule="static", num_threads=threads):
            finish_unit(&self.shape, call, i)
        # A thread owns whole chunks of gx.
        if call.gx != NULL:
            for i in prange(threads, schedule="static", num_threads=threads):
                write_gradients_share(&self.shape, call, i, threads)
