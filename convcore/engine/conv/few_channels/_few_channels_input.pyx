"""Input gradient of few input channels (first layers), by tiles of the input.

    gx[place of q + offset of l] += sum over o of w[o, l] * gy[n, o, q]

A panel of pixels of gy is multiplied by all the weights, and each term's result is added to the
tile's halo straight from the registers; the halo is then copied to gx.  Pixels whose patch crosses
the edge of a tile are multiplied once per tile, by the terms that reach that tile.
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv.few_channels._few_channels cimport (
    HaloTiling, Terms, TileCoords, tile_coords, tile_of,
)
from convcore.engine.conv.im2col._im2col cimport Line, Window, source
from convcore.engine.conv._kernel cimport FloatCorrelation
from convcore.engine.runtime._isa cimport Epilogue, Tile, microkernels
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._vectors cimport copy, zero

use_team()

cdef struct Job:
    HaloTiling tiling
    Py_ssize_t panel         # floats of scratch after the halo: a panel of gy, then lines of gx
    Py_ssize_t w_o           # stride of the weights' output channels
    Py_ssize_t gy_n          # strides of gy
    Py_ssize_t gy_d
    Py_ssize_t gy_row
    Py_ssize_t gy_pixel
    Py_ssize_t gy_channel


cdef void outputs_over(
    const Line *line, const Py_ssize_t *inputs, Py_ssize_t *outputs
) noexcept nogil:
    """Compute the outputs [begin, end) that read any of the inputs [begin, end)."""
    cdef Py_ssize_t low = inputs[0] - line.first - (line.taps - 1) * line.step
    cdef Py_ssize_t high = inputs[1] - 1 - line.first
    outputs[0] = (low + line.stride - 1) // line.stride if low > 0 else 0
    outputs[1] = min(high // line.stride + 1, line.count) if high >= 0 else 0


cdef void unpack_row(
    const HaloTiling *t, const float *halo, Py_ssize_t first, Py_ssize_t count, float *x,
    float *lines,
) noexcept nogil:
    """Copy a row of the halo, from its element `first` on, to a row of gx.

    halo: the row of the first channel; lines: scratch of (c, (count / stride + 2) * stride) floats.
    """
    cdef const Window *v = &t.window
    cdef Py_ssize_t stride = v.line[2].stride, step = t.halo_rows * t.row_size, c
    cdef Py_ssize_t begin = first // stride, wide = (count // stride + 2) * stride
    halo += begin
    if stride > 1:
        # Phases become lines of elements.
        for c in range(t.c):
            microkernels().few.interleave(
                stride, halo + c * step, t.pitch,
                min(t.pitch - begin, wide // stride), lines + c * wide,
            )
        halo = lines + first % stride
        step = wide
    if v.s[2] == 1:
        for c in range(t.c):
            copy(halo + c * step, 1, count, x + c * v.s_c)
    else:
        microkernels().few.interleave(t.c, halo, step, count, x)


cdef void clear_row(const HaloTiling *t, Py_ssize_t count, float *x) noexcept nogil:
    """Zero the inputs that no output reads."""
    cdef Py_ssize_t c
    if t.window.s[2] == 1:
        for c in range(t.c):
            zero(x + c * t.window.s_c, count)
    else:
        zero(x, count * t.c)


cdef void unpack_halo(
    const HaloTiling *t, const TileCoords *at, const Py_ssize_t *rows, const Py_ssize_t *columns,
    const float *halo, float *gx, float *lines,
) noexcept nogil:
    """Copy the halo of the outputs [rows), [columns) to a tile of gx."""
    cdef const Window *v = &t.window
    cdef Py_ssize_t first = source(&v.line[1], rows[0], 0)
    cdef Py_ssize_t last = source(&v.line[1], rows[1] - 1, v.line[1].taps - 1)
    cdef Py_ssize_t column = at.columns[0] - source(&v.line[2], columns[0], 0)
    cdef Py_ssize_t h, count = at.columns[1] - at.columns[0]
    # Columns [begin, end) of a row are in the halo.
    cdef Py_ssize_t begin = min(max(-column, 0), count)
    cdef Py_ssize_t end = max(min(t.row_size - column, count), begin)
    cdef float *out
    if rows[0] >= rows[1] or columns[0] >= columns[1]:
        last = first - 1
    for h in range(at.rows[0], at.rows[1]):
        out = gx + at.n * v.s_n + at.d * v.s[0] + h * v.s[1] + at.columns[0] * v.s[2]
        if first <= h <= last:
            clear_row(t, begin, out)
            unpack_row(
                t, halo + (h - first) * t.row_size, column + begin, end - begin,
                out + begin * v.s[2], lines,
            )
            clear_row(t, count - end, out + end * v.s[2])
        else:
            clear_row(t, count, out)


cdef void input_item(
    const Job *job, const Py_ssize_t *offset, const Py_ssize_t *row, Py_ssize_t item,
    const float *gy, const float *w, float *gx, float *scratch,
) noexcept nogil:
    """Compute one tile of gx."""
    cdef const HaloTiling *t = &job.tiling
    cdef const Window *v = &t.window
    cdef TileCoords at = tile_coords(t, item, v.line[1].size, v.line[2].size)
    cdef Py_ssize_t[2] rows
    cdef Py_ssize_t[2] columns
    cdef Py_ssize_t td, d, first, terms = t.terms // v.line[0].taps
    cdef Tile tile
    outputs_over(&v.line[1], at.rows, rows)
    outputs_over(&v.line[2], at.columns, columns)
    if rows[0] < rows[1] and columns[0] < columns[1]:
        zero(scratch, t.halo)
        first = rows[0] * v.line[1].stride + v.line[1].first
        gy += at.n * job.gy_n + rows[0] * job.gy_row + columns[0] * job.gy_pixel
        for td in range(v.line[0].taps):
            d = at.d - v.line[0].first - td * v.line[0].step
            if d < 0 or d % v.line[0].stride or d // v.line[0].stride >= v.line[0].count:
                continue
            tile = tile_of(
                t, terms, offset + td * terms, rows[1] - rows[0], columns[1] - columns[0]
            )
            microkernels().few.input(
                &tile, row + td * terms, v.line[1].stride, at.rows[0] - first,
                at.rows[1] - first, gy + d // v.line[0].stride * job.gy_d, job.gy_row,
                job.gy_pixel, job.gy_channel, t.o, w + td * terms * t.o, scratch + t.halo,
                <Py_ssize_t *>(scratch + t.halo + job.panel), scratch,
            )
    unpack_halo(t, &at, rows, columns, scratch, gx, scratch + t.halo)


cdef class FewChannelsInput(FloatCorrelation):
    """Input gradient, planned in plan.py.

    terms: three lists, the fields of Terms; terms of the same depth tap are adjacent.
    """

    cdef Job job
    cdef Terms terms

    def __cinit__(self, dict job, terms):
        self.job = job
        self.terms = Terms(*terms)

    cdef void compute(
        self, const float *gy, const float *w, const float *prepacked, float *gx,
        float *workspace, const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        cdef const Job *job = &self.job
        cdef const Py_ssize_t *offset = self.terms.offset
        cdef const Py_ssize_t *row = self.terms.row
        cdef float *scratch = workspace + job.tiling.shared
        cdef Py_ssize_t i, o = job.tiling.o
        for i in range(job.tiling.terms):
            copy(w + self.terms.weight[i], job.w_o, o, workspace + i * o)
        # A thread owns whole tiles of gx, and its own slice of the scratch.
        for i in prange(job.tiling.items, schedule="dynamic", num_threads=threads):
            input_item(
                job, offset, row, i, gy, workspace, gx,
                scratch + threadid() * job.tiling.scratch,
            )
