"""Weight gradient of few input channels, by tiles over a staged band of the input.

    gw[o, l] = sum over n, q of gy[n, o, q] * band[place of q + offset of l]

The tiles are cut into `partials` runs, a number fixed by shape; a run is summed tile by tile into a
matrix of its own, (terms, o), and the matrices are then added in index order.  So the bits never
depend on the number of threads.
"""

from cython.parallel cimport parallel, prange, threadid

from convcore.kernels.conv._few_channels cimport Spot, Terms, Tiling, spot_of, stage_band, tile_of
from convcore.kernels.runtime._isa cimport Tile, microkernels
from convcore.kernels.conv._kernel cimport FloatGradient
from convcore.kernels.runtime._vectors cimport zero

cdef struct Job:
    Tiling tiling
    Py_ssize_t partials
    Py_ssize_t sums_term     # o, rounded up to whole vectors
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
    """sums += one tile's part of the gradient."""
    cdef const Tiling *t = &job.tiling
    cdef Spot at = spot_of(t, item, t.window.line[1].count, t.window.line[2].count)
    cdef Tile tile = tile_of(
        t, t.terms, offset, at.rows[1] - at.rows[0], at.columns[1] - at.columns[0]
    )
    stage_band(t, &at, x, scratch)
    gy += at.n * job.gy_n + at.d * job.gy_d + at.rows[0] * job.gy_row
    gy += at.columns[0] * job.gy_pixel
    microkernels().few.weight(
        &tile, scratch, gy, job.gy_row, job.gy_pixel, job.gy_channel, t.o, scratch + t.band, sums,
        job.sums_term,
    )


cdef void weight_item(
    const Job *job, const Py_ssize_t *offset, Py_ssize_t partial, const float *x, const float *gy,
    float *sums, float *scratch,
) noexcept nogil:
    """Sum one run of tiles into its matrix."""
    cdef Py_ssize_t size = job.tiling.terms * job.sums_term, item
    cdef Py_ssize_t begin = partial * job.tiling.items // job.partials
    cdef Py_ssize_t end = (partial + 1) * job.tiling.items // job.partials
    sums += partial * size
    zero(sums, size)
    for item in range(begin, end):
        add_tile(job, offset, item, x, gy, sums, scratch)


cdef void add_partials(
    const Job *job, Py_ssize_t weight, Py_ssize_t term, float *sums, float *gw
) noexcept nogil:
    """gw[:, term] = sum of the partial matrices' rows, in index order."""
    cdef Py_ssize_t size = job.tiling.terms * job.sums_term, i, o
    cdef float *total = sums + term * job.sums_term
    for i in range(1, job.partials):
        for o in range(job.tiling.o):
            total[o] += total[i * size + o]
    for o in range(job.tiling.o):
        gw[o * job.gw_o + weight] = total[o]


cdef class FewChannelsWeight(FloatGradient):
    """All that one call of the weight gradient needs but the arrays; made once a geometry.

    Parameters
    ----------
    job : dict with the fields of Job
    terms : three lists, of the fields of Terms
    """

    cdef Job job
    cdef Terms terms

    def __cinit__(self, dict job, terms):
        self.job = job
        self.items, self.work = self.job.partials, job["tiling"]["work"]
        self.terms = Terms(*terms)

    cdef void compute(
        self, const float *x, const float *gy, float *gw, float *workspace, int threads
    ) noexcept nogil:
        cdef const Job *job = &self.job
        cdef const Py_ssize_t *offset = self.terms.offset
        cdef const Py_ssize_t *weight = self.terms.weight
        cdef float *scratch = workspace + job.tiling.shared
        cdef Py_ssize_t i
        with parallel(num_threads=threads):
            # A thread owns whole partial matrices, and its own slice of the scratch.
            for i in prange(job.partials, schedule="dynamic"):
                weight_item(
                    job, offset, i, x, gy, workspace, scratch + threadid() * job.tiling.scratch
                )
            # A thread owns whole columns of gw; a barrier stands between the loops.
            for i in prange(job.tiling.terms, schedule="static"):
                add_partials(job, weight[i], i, workspace, gw)
