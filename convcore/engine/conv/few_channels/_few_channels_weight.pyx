"""Weight gradient of few input channels, by tiles over a packed halo tile of the input.

    gw[o, l] = sum over n, q of gy[n, o, q] * halo[place of q + offset of l]

Work items are chunks of tiles, each summed into its own matrix (taps * c, o): _partials.pxd.
"""

from convcore.engine.conv.few_channels._few_channels cimport (
    HaloTiling,
    Terms,
    TileCoords,
    pack_halo,
    tile_coords,
    tile_of,
)
from convcore.engine.conv._kernel cimport FloatWeightGradient
from convcore.engine.conv._partials cimport add_partials, chunk_begin
from convcore.engine.runtime._isa cimport Tile, microkernels
from convcore.engine.runtime._vectors cimport scatter, zero

cdef struct Job:
    HaloTiling tiling
    Py_ssize_t partials
    Py_ssize_t row           # floats of a tap and channel's sums: o, rounded up to whole vectors
    Py_ssize_t gw_o          # stride of the gradient's output channels
    Py_ssize_t gy_n          # strides of gy
    Py_ssize_t gy_d
    Py_ssize_t gy_row
    Py_ssize_t gy_pixel
    Py_ssize_t gy_channel


cdef void add_tile(
    const Job *job, const Py_ssize_t *offset, Py_ssize_t item, const float *x, const float *gy,
    float *sums, float *scratch,
) noexcept nogil:
    """Add one tile's part of the gradient to sums."""
    cdef const HaloTiling *t = &job.tiling
    cdef TileCoords at = tile_coords(t, item, t.window.line[1].count, t.window.line[2].count)
    cdef Tile tile = tile_of(
        t, t.terms, offset, at.rows[1] - at.rows[0], at.columns[1] - at.columns[0]
    )
    pack_halo(t, &at, x, scratch)
    gy += at.n * job.gy_n + at.d * job.gy_d + at.rows[0] * job.gy_row
    gy += at.columns[0] * job.gy_pixel
    microkernels().few.weight(
        &tile, scratch, gy, job.gy_row, job.gy_pixel, job.gy_channel, t.o, scratch + t.halo, sums,
        job.row,
    )


cdef void weight_item(
    const Job *job, const Py_ssize_t *offset, Py_ssize_t partial, const float *x, const float *gy,
    float *sums, float *scratch,
) noexcept nogil:
    """Sum one chunk of tiles into its partial gradient."""
    cdef Py_ssize_t size = job.tiling.terms * job.row, item
    cdef Py_ssize_t begin = chunk_begin(partial, job.partials, job.tiling.items)
    cdef Py_ssize_t end = chunk_begin(partial + 1, job.partials, job.tiling.items)
    sums += partial * size
    zero(sums, size)
    for item in range(begin, end):
        add_tile(job, offset, item, x, gy, sums, scratch)


cdef class FewChannelsWeight(FloatWeightGradient):
    """Weight gradient, planned in plan.py; terms: three lists, the fields of Terms."""

    cdef Job job
    cdef Terms terms

    def __cinit__(self, dict job, terms):
        self.job = job
        self.terms = Terms(*terms)

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil:
        weight_item(&self.job, self.terms.offset, i, x, gy, sums, scratch)

    cdef void put(self, Py_ssize_t i, float *sums, float *gw) noexcept nogil:
        """Write the gradients of term i (a tap of a channel) for all output channels to gw."""
        cdef float *total = sums + i * self.row
        add_partials(sums, self.partials, self.size, i * self.row, self.job.tiling.o, total)
        scatter(total, self.job.tiling.o, gw + self.terms.weight[i], self.job.gw_o)
