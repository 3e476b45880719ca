"""Forward pass and input gradient by Winograd F(m x m, r x r), where an axis has few taps.

Tiles of the input are transformed into points, the points of all channels are multiplied with the
transformed weights, one matrix product a point, and the sums are transformed back into tiles of the
output (winograd_2d.h).  F(4x4, 3x3) does 36 products for 16 outputs, which take 144 otherwise.

A stride S creates phases.  In the forward pass these are sources: every S-th element of the input,
from each of the first S, is correlated with every S-th tap, and the results are added up: more
summed channels.  In the input gradient they are targets: every S-th element of the result comes
from every S-th tap: more output channels.  Without a stride there is one source and one target.

Two schedules, for many tiles and for few:

pixels first   the weights are transformed once, for all; a work item is a block of tiles, whose
               points stay in its thread's cache while it goes through all output channels; where
               the transformed weights would be too large, in passes of so many output channels
weights first  all tiles are transformed once, for all; a work item is a block of output channels,
               whose weights are transformed part by part in cache and never leave it
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv._kernel cimport FloatCorrelation
from convcore.engine.runtime._isa cimport (
    Epilogue,
    Filters,
    Tiling,
    Winograd,
    filters,
    microkernels,
)
from convcore.engine.runtime._threads cimport thread_count, use_team
from convcore.engine.runtime._vectors cimport element

use_team()

# Multiply-adds per tap that take about as long as transforming a filter.
cdef enum:
    TRANSFORM_WORK = 40

cdef struct Phase:
    Tiling x
    Tiling y
    Filters filters              # lanes: output channels; sums: summed channels

cdef struct Job:
    int transforms               # index of the microkernels' transform
    bint weights_first
    Py_ssize_t groups
    Py_ssize_t c                 # summed and output channels of one group
    Py_ssize_t o
    Py_ssize_t sources           # phases; either sources or targets is 1
    Py_ssize_t targets
    Py_ssize_t o_block           # output channels per block: whole panels
    Py_ssize_t o_blocks
    Py_ssize_t pass_blocks       # (target, block of o) pairs whose weights are shared at a time
    Py_ssize_t part              # summed channels whose weights are transformed at a time
    Py_ssize_t parts
    Py_ssize_t tiles             # of all images
    Py_ssize_t block             # tiles of one item, or of one block of the shared data
    Py_ssize_t blocks
    Py_ssize_t w_group           # stride of the weights' groups
    Py_ssize_t w_size            # floats from the first weight to the last, both included
    Py_ssize_t v_tile            # data: floats from a tile, and from a point, to the next
    Py_ssize_t v_point
    Py_ssize_t u_point           # weights
    Py_ssize_t m_point           # products
    Py_ssize_t shared            # floats of the workspace shared by all threads, at its start
    Py_ssize_t m_first           # offset of products in a thread's scratch
    Py_ssize_t scratch           # floats per thread
    Py_ssize_t items


cdef void transform_data(
    const Job *job, const Phase *phases, Py_ssize_t group, Py_ssize_t first, Py_ssize_t end,
    const float *x, float *v,
) noexcept nogil:
    """Compute v[point, tile, (source, c)] of one block of tiles."""
    cdef const Winograd *t = &microkernels().winograd[job.transforms]
    cdef Py_ssize_t i
    x = element(x, group * job.c * phases[0].x.channel, phases[0].x.narrow)
    # In order: a source's zero padding to whole vectors overlaps the start of the next source.
    for i in range(job.sources):
        t.data(&phases[i].x, x, job.c, first, end, v + i * job.c, job.v_tile, job.v_point)


cdef void transform_weights(
    const Job *job, const Phase *phase, Py_ssize_t group, Py_ssize_t o_block, Py_ssize_t c0,
    Py_ssize_t c1, Py_ssize_t channels, const float *w, float *u,
) noexcept nogil:
    """Compute u[point, panel, c, o] from a phase's filters of one block of o and of c in [c0, c1).

    channels: rows of a panel of u, whose first is c0's.
    """
    cdef const Winograd *t = &microkernels().winograd[job.transforms]
    cdef Py_ssize_t panel = microkernels().panel, o = o_block * job.o_block, i
    cdef Filters f = phase.filters
    f.end = w + job.w_size
    w += group * job.w_group + c0 * f.sum
    for i in range(job.o_block // panel):
        t.weights(
            &f, w + (o + i * panel) * f.lane, max(0, min(panel, job.o - o - i * panel)), c1 - c0,
            u + i * channels * panel, panel, job.u_point,
        )


cdef void multiply(
    const Job *job, Py_ssize_t tiles, Py_ssize_t channels, const float *v, const float *u,
    float *m, bint add,
) noexcept nogil:
    """Compute m[point] = or += v[point] (tiles, channels) @ u[point] (channels, o_block)."""
    cdef Py_ssize_t i, points = microkernels().winograd[job.transforms].points
    for i in range(points):
        microkernels().product(
            tiles, job.o_block, channels, v + i * job.v_point, job.v_tile, 1,
            u + i * job.u_point, m + i * job.m_point, job.o_block, add,
            u + (i + 1) % points * job.u_point,
        )


cdef void put_outputs(
    const Job *job, const Phase *phase, Py_ssize_t group, Py_ssize_t o_block, Py_ssize_t first,
    Py_ssize_t end, const float *m, const Epilogue *epilogue, float *y,
) noexcept nogil:
    cdef Py_ssize_t o = o_block * job.o_block, channel = group * job.o + o
    cdef Epilogue own = epilogue[0]
    if own.bias != NULL:
        own.bias += channel
    microkernels().winograd[job.transforms].outputs_of(
        &phase.y, m, job.o_block, job.m_point, min(job.o_block, job.o - o), first, end, &own,
        element(y, channel * phase.y.channel, phase.y.narrow),
    )


# ---- pixels first ----

cdef void weights_item(
    const Job *job, const Phase *phases, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t item,
    const float *w, float *shared,
) noexcept nogil:
    """Transform one part of one source's c, for one block of o, into the shared weights.

    [begin, end): the pass, of all (target, block of o).
    shared: (group, target, block of o), each (point, panel, (source, c), o).
    """
    cdef Py_ssize_t c0 = item % job.parts * job.part, source, group, made
    item //= job.parts
    source, item = item % job.sources, item // job.sources
    group, made = item // (end - begin), begin + item % (end - begin)
    transform_weights(
        job, &phases[source + made // job.o_blocks], group, made % job.o_blocks, c0,
        min(job.c, c0 + job.part), job.sources * job.c, w,
        shared + item * microkernels().winograd[job.transforms].points * job.u_point
        + (source * job.c + c0) * microkernels().panel,
    )


cdef void pixels_item(
    const Job *job, const Phase *phases, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t item,
    const float *x, const float *shared, const Epilogue *epilogue, float *y, float *scratch,
) noexcept nogil:
    """Compute the output channels of one pass, for one block of tiles."""
    cdef Py_ssize_t group = item // job.blocks, t0 = item % job.blocks * job.block, i
    cdef Py_ssize_t t1 = min(job.tiles, t0 + job.block)
    cdef Py_ssize_t weights = microkernels().winograd[job.transforms].points * job.u_point
    cdef float *v = scratch + threadid() * job.scratch
    cdef float *m = v + job.m_first
    transform_data(job, phases, group, t0, t1, x, v)
    shared += group * (end - begin) * weights
    for i in range(begin, end):
        multiply(job, t1 - t0, job.sources * job.c, v, shared + (i - begin) * weights, m, False)
        put_outputs(
            job, &phases[i // job.o_blocks], group, i % job.o_blocks, t0, t1, m, epilogue, y
        )


cdef inline Py_ssize_t weights_items(const Job *job, Py_ssize_t blocks) noexcept nogil:
    return job.groups * blocks * job.sources * job.parts


cdef void multiply_pixels(
    const Job *job, const Phase *phases, Py_ssize_t begin, Py_ssize_t end, const float *x,
    const float *weights, float *y, float *scratch, const Epilogue *epilogue, int threads,
) noexcept nogil:
    """Compute all blocks of tiles with weights that are already transformed."""
    cdef Py_ssize_t i
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        pixels_item(job, phases, begin, end, i, x, weights, epilogue, y, scratch)


cdef void correlate_pixels(
    const Job *job, const Phase *phases, Py_ssize_t begin, Py_ssize_t end, const float *x,
    const float *w, float *y, float *shared, const Epilogue *epilogue, int threads,
) noexcept nogil:
    """Run one pass: transform its weights, then compute all blocks of tiles."""
    cdef float *scratch = shared + job.shared
    cdef Py_ssize_t i
    # A thread owns whole blocks of the shared weights.
    for i in prange(weights_items(job, end - begin), schedule="dynamic", num_threads=threads):
        weights_item(job, phases, begin, end, i, w, shared)
    # A thread owns whole tiles of y, and its own slice of the scratch.
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        pixels_item(job, phases, begin, end, i, x, shared, epilogue, y, scratch)


# ---- weights first ----

cdef void data_item(
    const Job *job, const Phase *phases, Py_ssize_t item, const float *x, float *shared
) noexcept nogil:
    """Transform one block of tiles of one group into the shared data."""
    cdef Py_ssize_t group = item // job.blocks, first = item % job.blocks * job.block
    transform_data(
        job, phases, group, first, min(job.tiles, first + job.block), x,
        shared + group * microkernels().winograd[job.transforms].points * job.v_point
        + first * job.v_tile,
    )


cdef void filters_item(
    const Job *job, const Phase *phases, Py_ssize_t item, const float *w, const float *prepacked,
    const float *shared, const Epilogue *epilogue, float *y, float *scratch,
) noexcept nogil:
    """Compute all tiles of one block of output channels, of one target."""
    cdef Py_ssize_t o_block = item % job.o_blocks, target = item // job.o_blocks % job.targets
    cdef Py_ssize_t group = item // job.o_blocks // job.targets, source, c0, c1
    cdef float *u = scratch + threadid() * job.scratch
    cdef float *m = u + job.m_first
    cdef Py_ssize_t points = microkernels().winograd[job.transforms].points
    cdef const float *v = shared + group * points * job.v_point
    if prepacked != NULL:
        multiply(job, job.tiles, job.c, v, prepacked + item * points * job.u_point, m, False)
        put_outputs(job, &phases[target], group, o_block, 0, job.tiles, m, epilogue, y)
        return
    for source in range(job.sources):
        c1 = 0
        while c1 < job.c:
            c0, c1 = c1, min(job.c, c1 + job.part)
            transform_weights(
                job, &phases[source + target], group, o_block, c0, c1, c1 - c0, w, u
            )
            multiply(
                job, job.tiles, c1 - c0, v + source * job.c + c0, u, m, source > 0 or c0 > 0
            )
    put_outputs(job, &phases[target], group, o_block, 0, job.tiles, m, epilogue, y)


cdef void correlate_weights(
    const Job *job, const Phase *phases, const float *x, const float *w, const float *prepacked,
    float *y, float *shared, const Epilogue *epilogue, int threads,
) noexcept nogil:
    """Transform the data, then compute every block of output channels."""
    cdef float *scratch = shared + job.shared
    cdef Py_ssize_t i
    # A thread owns whole tiles of the shared data.
    for i in prange(job.groups * job.blocks, schedule="dynamic", num_threads=threads):
        data_item(job, phases, i, x, shared)
    # A thread owns whole channels of y, and its own slice of the scratch.
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        filters_item(job, phases, i, w, prepacked, shared, epilogue, y, scratch)


cdef class WinogradCorrelation(FloatCorrelation):
    """Kernel of plan.py's correlations; phases: dicts with the fields of Phase.

    Arrays have contiguous rows, or are channels_last.
    """

    cdef Job job
    cdef Phase *phases

    def __cinit__(self, dict job, list phases):
        self.job = job
        self.phases = <Phase *>self.allocate(len(phases), sizeof(Phase))
        for i in range(len(phases)):
            self.phases[i].x = phases[i]["x"]
            self.phases[i].y = phases[i]["y"]
            self.phases[i].filters = filters(phases[i]["filters"])

    cdef void pack_weights(self, const float *w, float *prepacked) noexcept:
        """Transform the weights of all blocks of output channels."""
        cdef const Job *job = &self.job
        cdef const Phase *phases = self.phases
        cdef Py_ssize_t made = job.targets * job.o_blocks, items = weights_items(job, made), i
        cdef int threads = thread_count(items, <double>job.w_size * TRANSFORM_WORK)
        for i in prange(items, schedule="dynamic", num_threads=threads, nogil=True):
            weights_item(job, phases, 0, made, i, w, prepacked)

    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        cdef const Job *job = &self.job
        cdef const Phase *phases = self.phases
        cdef Py_ssize_t begin, end = 0, made = job.targets * job.o_blocks
        if job.weights_first:
            correlate_weights(job, phases, x, w, prepacked, y, workspace, epilogue, threads)
            return
        if prepacked != NULL:
            multiply_pixels(job, phases, 0, made, x, prepacked, y, workspace, epilogue, threads)
            return
        while end < made:
            begin, end = end, min(made, end + job.pass_blocks)
            correlate_pixels(job, phases, begin, end, x, w, y, workspace, epilogue, threads)
