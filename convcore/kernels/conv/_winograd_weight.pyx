"""The weight gradient by Winograd's method, where an axis has few taps.

Tiles of the input and of grad_output are transformed into points; at each point the products of all
pairs of channels are summed over the tiles by one matrix product; the sums are transformed into
gradients of the taps at the end (conv/winograd.h).

A stride S makes phases: every S-th element of the input, from each of the first S, gives the
gradients of every S-th tap.

Work items are (group, block of o, phase, block of c, run of tiles).  Where all but the last are
too few, the tiles are cut into `partials` runs, a number fixed by shape, each with a gradient of
its own; those are then added in index order, so the bits never depend on the number of threads.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cython.parallel cimport parallel, prange, threadid

from convcore.kernels.runtime._isa cimport Filters, Tiling, Transforms, filters, microkernels
from convcore.kernels.conv._kernel cimport FloatGradient
from convcore.kernels.runtime._vectors cimport add, zero

cdef struct Phase:
    Tiling x
    Filters filters              # lanes: input channels

cdef struct Job:
    Tiling gy
    int size                     # which of the leaves' transforms
    Py_ssize_t groups
    Py_ssize_t c                 # channels of one group
    Py_ssize_t o
    Py_ssize_t o_block           # channels of one item
    Py_ssize_t o_blocks
    Py_ssize_t c_block           # whole panels
    Py_ssize_t c_blocks
    Py_ssize_t tiles             # of all images
    Py_ssize_t block             # tiles that are transformed at a time
    Py_ssize_t partials
    Py_ssize_t phases
    Py_ssize_t w_o               # floats of the gradient of one output channel
    Py_ssize_t z_tile            # floats from a tile, and from a point, to the next: of grad_output
    Py_ssize_t z_point
    Py_ssize_t v_point           # of the input
    Py_ssize_t sum_point         # of the sums
    Py_ssize_t v_first           # where the input's tiles and the sums begin in the scratch
    Py_ssize_t sum_first
    Py_ssize_t shared            # floats of the partial gradients, which come first
    Py_ssize_t scratch           # floats of one thread
    Py_ssize_t items


cdef void add_tiles(
    const Job *job, const Phase *phase, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t o1,
    Py_ssize_t c0, Py_ssize_t first, Py_ssize_t end, const float *x, const float *gy,
    float *scratch, bint more,
) noexcept nogil:
    """sums[point] = or += gradients[point]^T (o1-o0, tiles) @ data[point] (tiles, c_block).

    What lies in a panel beyond the last channel is multiplied too, and its sums never looked at.
    """
    cdef const Transforms *t = &microkernels().winograd[job.size]
    cdef Py_ssize_t panel = microkernels().panel, count = end - first, c, i, p
    cdef float *v = scratch + job.v_first
    cdef float *sums = scratch + job.sum_first
    t.gradients(
        &job.gy, gy + (group * job.o + o0) * job.gy.channel, o1 - o0, first, end, scratch,
        job.z_tile, job.z_point,
    )
    for p in range(job.c_block // panel):
        c = c0 + p * panel
        if c < job.c:
            t.data(
                &phase.x, x + (group * job.c + c) * phase.x.channel, min(panel, job.c - c), first,
                end, v + p * count * panel, panel, job.v_point,
            )
    for i in range(t.points):
        microkernels().product(
            o1 - o0, job.c_block, count, scratch + i * job.z_point, 1, job.z_tile,
            v + i * job.v_point, sums + i * job.sum_point, job.c_block, more,
        )


cdef void weight_item(
    const Job *job, const Phase *phases, Py_ssize_t item, const float *x, const float *gy,
    float *gw, float *scratch,
) noexcept nogil:
    """Sum one run of tiles into one piece of one of the partial gradients."""
    cdef Py_ssize_t partial, o0, o1, c0, group, begin, first, end, o
    cdef const Phase *phase
    partial, item = item % job.partials, item // job.partials
    c0, item = item % job.c_blocks * job.c_block, item // job.c_blocks
    phase, item = &phases[item % job.phases], item // job.phases
    o0, group = item % job.o_blocks * job.o_block, item // job.o_blocks
    o1 = min(job.o, o0 + job.o_block)
    begin = first = partial * job.tiles // job.partials
    end = (partial + 1) * job.tiles // job.partials
    scratch += threadid() * job.scratch
    while first < end:
        add_tiles(
            job, phase, group, o0, o1, c0, first, min(first + job.block, end), x, gy, scratch,
            first > begin,
        )
        first += job.block
    gw += partial * job.groups * job.o * job.w_o + c0 * phase.filters.lane
    for o in range(o0, o1):
        microkernels().winograd[job.size].weight_sums(
            &phase.filters, scratch + job.sum_first + (o - o0) * job.c_block, job.sum_point,
            min(job.c_block, job.c - c0), gw + (group * job.o + o) * job.w_o,
        )


cdef void add_partials(
    const Job *job, Py_ssize_t row, const float *partials, float *gw
) noexcept nogil:
    """gw[row] = sum of the partial gradients' rows, in index order."""
    cdef Py_ssize_t size = job.groups * job.o * job.w_o, i
    zero(gw + row * job.w_o, job.w_o)
    for i in range(job.partials):
        add(partials + i * size + row * job.w_o, job.w_o, gw + row * job.w_o, 1)


cdef class WinogradWeightGradient(FloatGradient):
    """All that one call needs but the arrays; made once a geometry, used often.

    Parameters
    ----------
    job, phases : dict and list of dicts with the fields of Job and Phase
        Computed by engine/conv/algorithms/winograd.py, which owns every size; strides are those of the
        arrays that `run` will get: float32, with contiguous rows, or channels_last.
    """

    cdef Job job
    cdef Phase *phases

    def __cinit__(self, dict job, list phases):
        self.job, self.items, self.work = job, job["items"], job["work"]
        self.phases = <Phase *>PyMem_Calloc(len(phases), sizeof(Phase))
        if self.phases == NULL:
            raise MemoryError()
        for i in range(len(phases)):
            self.phases[i].x = phases[i]["x"]
            self.phases[i].filters = filters(phases[i]["filters"])

    def __dealloc__(self):
        PyMem_Free(self.phases)

    cdef void compute(
        self, const float *x, const float *gy, float *gw, float *workspace, int threads
    ) noexcept nogil:
        """All items, then the sum of the partial gradients, in one parallel region."""
        cdef const Job *job = &self.job
        cdef const Phase *phases = self.phases
        cdef float *scratch = workspace + job.shared
        cdef float *sums = workspace if job.partials > 1 else gw
        cdef Py_ssize_t i, rows = job.groups * job.o if job.partials > 1 else 0
        with parallel(num_threads=threads):
            # A thread owns whole pieces of the partial gradients, and its own slice of the scratch.
            for i in prange(job.items, schedule="dynamic"):
                weight_item(job, phases, i, x, gy, sums, scratch)
            # A thread owns whole rows of gw; a barrier stands between the loops.
            for i in prange(rows, schedule="static"):
                add_partials(job, i, workspace, gw)
