"""Forward pass of few input channels (first layers), by tiles over a packed halo tile.

    y[n, o, q] = sum over terms l (a channel and a tap) of w[o, l] * halo[place of q + offset of l]

The halo tile ("halo") is read in place: by broadcast weights and vectors of pixels (contiguous y),
or by broadcast inputs and vectors of output channels (channels_last y).  No matrix of patches is
created.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cython.parallel cimport prange, threadid

from convcore.engine.conv.im2col._im2col cimport source
from convcore.engine.conv._kernel cimport FloatCorrelation
from convcore.engine.runtime._isa cimport Epilogue, Tile, microkernels
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._vectors cimport copy, element, zero

use_team()


def microkernel_sizes():
    """Return the block sizes, in floats, of the microkernels in use."""
    return {
        "lanes": microkernels().lanes,
        "wide": microkernels().few.wide,
        "panel": microkernels().few.panel,
    }


cdef class Terms:
    """Tables of offset, halo row and weight offset over the terms of the sum."""

    def __cinit__(self, offset, row, weight):
        cdef Py_ssize_t i, n = len(offset)
        self.offset = <Py_ssize_t *>PyMem_Malloc(3 * max(n, 1) * sizeof(Py_ssize_t))
        if self.offset == NULL:
            raise MemoryError()
        self.row = self.offset + n
        self.weight = self.row + n
        for i in range(n):
            self.offset[i] = offset[i]
            self.row[i] = row[i]
            self.weight[i] = weight[i]

    def __dealloc__(self):
        PyMem_Free(self.offset)


cdef void pack_phases(
    const HaloTiling *t, const float *x, Py_ssize_t row, Py_ssize_t column, float *out
) noexcept nogil:
    """Pack one row of all channels by phases; if x is NULL, write zeros."""
    cdef const Window *v = &t.window
    cdef Py_ssize_t c
    out += row * t.row_size
    for c in range(t.c):
        if x == NULL:
            zero(out, t.row_size)
        else:
            microkernels().few.pack(
                x + c * v.s_c, v.s[2], v.line[2].size, column, v.line[2].stride, t.phases, out,
                t.pitch,
            )
        out += v.line[0].taps * t.halo_rows * t.row_size


cdef void pack_interleaved(
    const HaloTiling *t, const float *x, Py_ssize_t row, Py_ssize_t column, float *out
) noexcept nogil:
    """Pack one row with interleaved channels; if x is NULL, write zeros."""
    cdef const Window *v = &t.window
    cdef Py_ssize_t columns = t.row_size // t.c, c
    cdef Py_ssize_t begin = min(max(-column, 0), columns)
    cdef Py_ssize_t end = max(min(v.line[2].size - column, columns), begin)
    out += row * t.row_size
    if x == NULL:
        zero(out, t.row_size)
        return
    zero(out, begin * t.c)
    zero(out + end * t.c, t.row_size - end * t.c)
    x += (column + begin) * v.s[2]
    out += begin * t.c
    if v.s[2] == t.c and (v.s_c == 1 or t.c == 1):
        copy(x, 1, (end - begin) * t.c, out)
    else:
        for c in range(t.c):
            for column in range(end - begin):
                out[column * t.c + c] = x[c * v.s_c + column * v.s[2]]


cdef void pack_halo(
    const HaloTiling *t, const TileCoords *at, const float *x, float *halo
) noexcept nogil:
    """Copy the input that a tile of output pixels reads, including zero padding."""
    cdef const Window *v = &t.window
    cdef Py_ssize_t td, b, d, h
    cdef Py_ssize_t first = source(&v.line[1], at.rows[0], 0)
    cdef Py_ssize_t last = source(&v.line[1], at.rows[1] - 1, v.line[1].taps - 1)
    cdef Py_ssize_t extent = (v.line[1].taps - 1) * v.line[1].step + 1
    cdef Py_ssize_t column = source(&v.line[2], at.columns[0], 0)
    cdef const float *line
    x += at.n * v.s_n
    for td in range(v.line[0].taps):
        d = source(&v.line[0], at.d, td)
        for b in range(last - first + 1):
            h = first + b
            line = NULL
            if 0 <= d < v.line[0].size and 0 <= h < v.line[1].size:
                line = x + d * v.s[0] + h * v.s[1]
            if b % v.line[1].stride >= extent:
                continue
            if t.interleaved:
                pack_interleaved(t, line, td * t.halo_rows + b, column, halo)
            else:
                pack_phases(t, line, td * t.halo_rows + b, column, halo)


cdef struct Job:
    HaloTiling tiling
    bint stream              # y is best stored past the caches (streaming stores), if it is aligned
    bint narrow_y            # y is bfloat16: a tile is computed in the scratch, after the halo
    Py_ssize_t w_o           # stride of the weights' output channels
    Py_ssize_t y_n           # strides of y
    Py_ssize_t y_d
    Py_ssize_t y_row
    Py_ssize_t y_pixel
    Py_ssize_t y_channel


cdef void pack_group(
    const Job *job, const Py_ssize_t *weight, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t width,
    const float *w, float *packed,
) noexcept nogil:
    """Copy the weights of output channels [begin, end) to (terms, width), padded with zeros."""
    cdef Py_ssize_t term
    packed += begin * job.tiling.terms
    w += begin * job.w_o
    for term in range(job.tiling.terms):
        copy(w + weight[term], job.w_o, end - begin, packed)
        zero(packed + end - begin, width - (end - begin))
        packed += width


cdef void pack(
    const Job *job, const Py_ssize_t *weight, const float *w, float *packed
) noexcept nogil:
    """Pack the weights into the groups that the microkernels read."""
    cdef Py_ssize_t begin = 0, end, groups, o = job.tiling.o, width
    while begin < o:
        if job.tiling.interleaved:
            end = min(o, begin + microkernels().few.wide)
            width = microkernels().lanes
            if end - begin > width:
                width = microkernels().few.wide
        else:
            # Equal groups, as few_end in few_channels.c cuts them.
            groups = (o - begin + microkernels().few.group - 1) // microkernels().few.group
            end = begin + (o - begin + groups - 1) // groups
            width = end - begin
        pack_group(job, weight, begin, end, width, w, packed)
        begin = end


cdef void narrow_tile(
    const Job *job, const Tile *tile, const float *halo, const float *w,
    const Epilogue *epilogue, float *made, float *y,
) noexcept nogil:
    """Compute a tile in float32 and round it to bfloat16 into y."""
    cdef Py_ssize_t o = job.tiling.o, row = tile.columns * o, i
    microkernels().few.forward_nhwc(tile, halo, w, o, epilogue, made, row, o)
    for i in range(tile.rows):
        microkernels().indirect.bfloat16_of_rows(
            made + i * row, o, tile.columns, element(y, i * job.y_row, True), job.y_pixel, o
        )


cdef void forward_item(
    const Job *job, const Py_ssize_t *offset, Py_ssize_t item, const float *x, const float *w,
    const Epilogue *epilogue, float *y, float *scratch, bint stream,
) noexcept nogil:
    """Pack one tile's halo and compute all its outputs."""
    cdef const HaloTiling *t = &job.tiling
    cdef TileCoords at = tile_coords(t, item, t.window.line[1].count, t.window.line[2].count)
    cdef Tile tile = tile_of(
        t, t.terms, offset, at.rows[1] - at.rows[0], at.columns[1] - at.columns[0]
    )
    tile.stream = stream
    pack_halo(t, &at, x, scratch)
    y = element(
        y,
        at.n * job.y_n + at.d * job.y_d + at.rows[0] * job.y_row + at.columns[0] * job.y_pixel,
        job.narrow_y,
    )
    if job.narrow_y:
        narrow_tile(job, &tile, scratch, w, epilogue, scratch + t.halo, y)
    elif job.tiling.interleaved:
        microkernels().few.forward_nhwc(
            &tile, scratch, w, t.o, epilogue, y, job.y_row, job.y_pixel
        )
    else:
        microkernels().few.forward_nchw(
            &tile, scratch, w, t.o, epilogue, y, job.y_row, job.y_channel
        )


cdef class FewChannels(FloatCorrelation):
    """Forward pass, planned in plan.py; terms: three lists, the fields of Terms."""

    cdef Job job
    cdef Terms terms

    def __cinit__(self, dict job, terms):
        self.job = job
        self.terms = Terms(*terms)

    cdef void pack_weights(self, const float *w, float *prepacked) noexcept:
        pack(&self.job, self.terms.weight, w, prepacked)

    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        """Pack the weights, unless they are prepacked, then compute every tile."""
        cdef const Job *job = &self.job
        cdef const Py_ssize_t *offset = self.terms.offset
        cdef const float *packed = prepacked
        cdef float *scratch = workspace + job.tiling.shared
        cdef bint aligned = <size_t>y % (microkernels().lanes * sizeof(float)) == 0
        cdef bint stream = job.stream and aligned and not job.narrow_y
        cdef Py_ssize_t i
        if prepacked == NULL:
            packed = workspace
            pack(job, self.terms.weight, w, workspace)
        # A thread owns whole tiles of y, and its own slice of the scratch.
        for i in prange(job.tiling.items, schedule="dynamic", num_threads=threads):
            forward_item(
                job, offset, i, x, packed, epilogue, y,
                scratch + threadid() * job.tiling.scratch, stream,
            )
