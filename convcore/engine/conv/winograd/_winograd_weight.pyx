"""Weight gradient by Winograd F(m x m, r x r), where an axis has few taps.

Tiles of the input and of grad_output are transformed into points; at each point the products of all
pairs of channels are summed over the tiles by one matrix product; the sums are transformed into
gradients of the taps at the end (winograd_2d.h).

A stride S creates phases: every S-th element of the input, from each of the first S, gives the
gradients of every S-th tap.

Work items: (group, block of o, phase, block of c, range of tiles); see _partials.pxd for ranges.
"""

from convcore.engine.conv._kernel cimport FloatWeightGradient
from convcore.engine.conv._partials cimport chunk_begin
from convcore.engine.runtime._isa cimport Filters, Tiling, Winograd, filters, microkernels
from convcore.engine.runtime._vectors cimport element

cdef struct Phase:
    Tiling x
    Filters filters              # lanes: input channels

cdef struct Job:
    Tiling gy
    int transforms               # index of the microkernels' transform
    Py_ssize_t groups
    Py_ssize_t c                 # channels of one group
    Py_ssize_t o
    Py_ssize_t o_block           # channels of one item
    Py_ssize_t o_blocks
    Py_ssize_t c_block           # whole panels
    Py_ssize_t c_blocks
    Py_ssize_t tiles             # of all images
    Py_ssize_t block             # tiles transformed at a time
    Py_ssize_t partials
    Py_ssize_t phases
    Py_ssize_t row               # floats of the gradient of one output channel
    Py_ssize_t z_tile            # floats from a tile, and from a point, to the next: of grad_output
    Py_ssize_t z_point
    Py_ssize_t v_point           # of the input
    Py_ssize_t sum_point         # of the sums
    Py_ssize_t v_first           # where the input's tiles and the sums begin in the scratch
    Py_ssize_t sum_first


cdef void add_tiles(
    const Job *job, const Phase *phase, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t o1,
    Py_ssize_t c0, Py_ssize_t first, Py_ssize_t end, const float *x, const float *gy,
    float *scratch, bint more,
) noexcept nogil:
    """sums[point] = or += gradients[point]^T (o1-o0, tiles) @ data[point] (tiles, c_block).

    Columns of a panel beyond the last channel are multiplied too; their sums are ignored.
    """
    cdef const Winograd *t = &microkernels().winograd[job.transforms]
    cdef Py_ssize_t panel = microkernels().panel, count = end - first, c, i, p
    cdef float *v = scratch + job.v_first
    cdef float *sums = scratch + job.sum_first
    t.gradients(
        &job.gy, element(gy, (group * job.o + o0) * job.gy.channel, job.gy.narrow), o1 - o0, first,
        end, scratch, job.z_tile, job.z_point,
    )
    for p in range(job.c_block // panel):
        c = c0 + p * panel
        if c < job.c:
            t.data(
                &phase.x, element(x, (group * job.c + c) * phase.x.channel, phase.x.narrow),
                min(panel, job.c - c), first, end, v + p * count * panel, panel, job.v_point,
            )
    for i in range(t.points):
        microkernels().product(
            o1 - o0, job.c_block, count, scratch + i * job.z_point, 1, job.z_tile,
            v + i * job.v_point, sums + i * job.sum_point, job.c_block, more,
            NULL,
        )


cdef void weight_item(
    const Job *job, const Phase *phases, Py_ssize_t item, const float *x, const float *gy,
    float *gw, float *scratch,
) noexcept nogil:
    """Sum one range of tiles into one block of a partial gradient."""
    cdef Py_ssize_t partial, o0, o1, c0, group, begin, first, end, o
    cdef const Phase *phase
    partial, item = item % job.partials, item // job.partials
    c0, item = item % job.c_blocks * job.c_block, item // job.c_blocks
    phase, item = &phases[item % job.phases], item // job.phases
    o0, group = item % job.o_blocks * job.o_block, item // job.o_blocks
    o1 = min(job.o, o0 + job.o_block)
    begin = first = chunk_begin(partial, job.partials, job.tiles)
    end = chunk_begin(partial + 1, job.partials, job.tiles)
    while first < end:
        add_tiles(
            job, phase, group, o0, o1, c0, first, min(first + job.block, end), x, gy, scratch,
            first > begin,
        )
        first += job.block
    gw += partial * job.groups * job.o * job.row + c0 * phase.filters.lane
    for o in range(o0, o1):
        microkernels().winograd[job.transforms].weight_sums(
            &phase.filters, scratch + job.sum_first + (o - o0) * job.c_block, job.sum_point,
            min(job.c_block, job.c - c0), gw + (group * job.o + o) * job.row,
        )


cdef class WinogradWeightGradient(FloatWeightGradient):
    """Kernel of plan.py's weight gradient; phases: dicts with the fields of Phase.

    Arrays have contiguous rows, or are channels_last.
    """

    cdef Job job
    cdef Phase *phases

    def __cinit__(self, dict job, list phases):
        self.job = job
        self.phases = <Phase *>self.allocate(len(phases), sizeof(Phase))
        for i in range(len(phases)):
            self.phases[i].x = phases[i]["x"]
            self.phases[i].filters = filters(phases[i]["filters"])

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil:
        weight_item(&self.job, self.phases, i, x, gy, sums, scratch)
