"""Forward pass and input gradient by im2col and gemm.

One phase computes, for every image n, output channel o and output pixel j,

    y[n, o, out_first + j*out_step] = sum over taps t and channels c of
        x[n, c, j*stride + first + t*step] * w[o, c, kernel_first + t*kernel_step]

The forward pass is one phase.  The input gradient with stride S has S phases per axis: input pixels
with the same remainder modulo S are read by the same taps, at unit stride, and no multiplication is
by a zero from dilation.  (For a stride of 1 this is the textbook form: correlate grad_output with
the rotated kernel.)

Work items are (group, pixel block, block of output channels); each gathers its patches part by part
into its thread's scratch and multiplies each part while it is in cache.
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv._blocks cimport Blocks, block_begin, block_end
from convcore.engine.conv.depthwise._depthwise cimport multiply_channels
from convcore.engine.conv.im2col._im2col cimport KBlock, Window, gather_nchw, gather_nhwc
from convcore.engine.conv._kernel cimport AnyEpilogue, AnyKernel, Compute
from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._gemm cimport check_sizes, gemm
from convcore.engine.runtime._isa cimport CLAMP, LEAKY, PLAIN
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._types cimport number
from convcore.engine.runtime._vectors cimport copy, scatter, zero

use_team()

cdef struct Phase:
    Window window
    Blocks blocks
    Py_ssize_t out_first[3]
    Py_ssize_t out_step[3]
    Py_ssize_t kernel_first[3]
    Py_ssize_t kernel_step[3]
    Py_ssize_t packed            # where its packed weights begin, in elements
    Py_ssize_t first_item

cdef struct Job:
    bint channels_last           # y is channels_last, and patches are rows rather than columns
    bint channels_outer          # a patch is ordered (c, t), not (t, c)
    bint transposed              # weights are matrices (K, o), not (o, K)
    bint pack                    # copy the weights into that order first
    bint by_channel              # depthwise: o is all channels, and w is (taps, channels)
    bint direct_x                # the input is its own matrix of patches: 1 tap, stride 1
    bint direct_y                # a block of y is a matrix in place (if it lies within one image)
    Py_ssize_t groups
    Py_ssize_t c                 # input and output channels of one group
    Py_ssize_t o
    Py_ssize_t o_block           # output channels of one item
    Py_ssize_t o_blocks
    Py_ssize_t part_taps         # of the patches that are gathered at a time
    Py_ssize_t part_channels
    Py_ssize_t w_group           # weight strides in elements: group, o, c, the three axes
    Py_ssize_t w_o
    Py_ssize_t w_c
    Py_ssize_t w_k[3]
    Py_ssize_t y_n
    Py_ssize_t y_c
    Py_ssize_t y_s[3]
    Py_ssize_t patches           # elements of scratch for patches; the rest packs y
    Py_ssize_t scratch           # elements of scratch per thread
    Py_ssize_t shared            # elements of packed weights, at the start of the workspace
    Py_ssize_t phases
    Py_ssize_t items

# A job and its phases, owned by the kernel.
cdef struct Work:
    Job job
    const Phase *phases


cdef void pack_item(const Job *job, const Phase *phase, Py_ssize_t item, const number *w,
                    number *packed) noexcept nogil:
    """Copy the weights of one outer channel into the order of one phase's matrix.

    (o, t, c) for matrices (o, K), where o is the outer channel; (t, c, o) for (K, o), where c is.
    """
    cdef Py_ssize_t outer = job.c if job.transposed else job.o
    cdef Py_ssize_t inner = job.o if job.transposed else job.c
    cdef Py_ssize_t step = job.w_o if job.transposed else job.w_c
    cdef Py_ssize_t group = item // outer, a = item % outer
    cdef Py_ssize_t taps = phase.window.taps, t = 0, td, th, tw
    packed += phase.packed + group * taps * outer * inner
    w += group * job.w_group + a * (job.w_c if job.transposed else job.w_o)
    for td in range(phase.window.line[0].taps):
        for th in range(phase.window.line[1].taps):
            for tw in range(phase.window.line[2].taps):
                copy(
                    w + (phase.kernel_first[0] + td * phase.kernel_step[0]) * job.w_k[0]
                    + (phase.kernel_first[1] + th * phase.kernel_step[1]) * job.w_k[1]
                    + (phase.kernel_first[2] + tw * phase.kernel_step[2]) * job.w_k[2],
                    step, inner,
                    packed + (t * outer + a if job.transposed else a * taps + t) * inner,
                )
                t += 1


cdef void multiply_part(
    const Job *job, const Phase *phase, KBlock part, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t o1,
    Py_ssize_t q0, Py_ssize_t q1, const number *x, const number *w, number *patches,
    number *y, Py_ssize_t ldy, bint first,
) noexcept nogil:
    """y = or += patches @ weights (rows), or weights @ patches (columns), over one part of K."""
    cdef const Window *v = &phase.window
    cdef Py_ssize_t K = v.taps * job.c
    cdef Py_ssize_t k = (part.t1 - part.t0) * (part.c1 - part.c0), count = q1 - q0, ld, n
    cdef Py_ssize_t k0 = (
        part.c0 * v.taps + part.t0 if job.channels_outer else part.t0 * job.c + part.c0
    )
    cdef Py_ssize_t ldw = job.o if job.transposed else K
    cdef number one = 1, beta = 0 if first else 1
    x += group * job.c * v.s_c
    w += k0 * job.o + o0 if job.transposed else o0 * K + k0
    if job.channels_last:
        if job.direct_x:
            patches = <number *>x + q0 * v.s[2] + part.c0
            ld = v.s[2]
        else:
            gather_nhwc(x, v, part, q0, q1, patches)
            ld = k
        # (count, o1-o0) = (count, k) @ (k, o1-o0)
        gemm(
            False, not job.transposed, count, o1 - o0, k, one, patches, ld, w, ldw, beta, y, ldy
        )
    else:
        n = q0 // v.pixels
        if job.direct_x and q1 <= (n + 1) * v.pixels:
            patches = <number *>x + n * v.s_n + part.c0 * v.s_c + (q0 - n * v.pixels)
            ld = v.s_c
        else:
            gather_nchw(x, v, part, job.channels_outer, q0, q1, patches)
            ld = count
        # (o1-o0, count) = (o1-o0, k) @ (k, count)
        gemm(job.transposed, False, o1 - o0, count, k, one, w, ldw, patches, ld, beta, y, ldy)


cdef inline void activate(const AnyEpilogue *epilogue, Py_ssize_t count, number *y) noexcept nogil:
    """Apply the activation to y in place (real dtypes only); a NaN stays NaN."""
    cdef Py_ssize_t i
    cdef number low, high, slope, v
    if number is float or number is double:
        if epilogue.kind == CLAMP:
            low, high = <number>epilogue.low, <number>epilogue.high
            for i in range(count):
                v = y[i]
                v = low if v < low else v
                y[i] = high if v > high else v
        elif epilogue.kind == LEAKY:
            slope = <number>epilogue.slope
            for i in range(count):
                v = y[i]
                y[i] = v * slope if v < 0 else v


cdef void finish(
    const Job *job, const AnyEpilogue *epilogue, Py_ssize_t channel, Py_ssize_t o, Py_ssize_t count,
    number *y, Py_ssize_t ldy,
) noexcept nogil:
    """y[pixel, o] or y[o, pixel] = activation(y + bias[channel + o])."""
    cdef const number *bias = <const number *>epilogue.bias
    cdef Py_ssize_t rows = count if job.channels_last else o
    cdef Py_ssize_t length = o if job.channels_last else count, i, j
    if bias == NULL and epilogue.kind == PLAIN:
        return
    for i in range(rows):
        if bias != NULL and job.channels_last:
            for j in range(length):
                y[j] += bias[channel + j]
        elif bias != NULL:
            for j in range(length):
                y[j] += bias[channel + i]
        activate(epilogue, length, y)
        y += ldy


cdef void fill_zeros(
    const Job *job, Py_ssize_t o, Py_ssize_t count, number *y, Py_ssize_t ldy
) noexcept nogil:
    """Zero a block of inputs that no output reads: its gradient is an empty sum."""
    cdef Py_ssize_t i
    for i in range(count if job.channels_last else o):
        zero(y + i * ldy, o if job.channels_last else count)


cdef void unpack(
    const Job *job, const Phase *phase, Py_ssize_t channel, Py_ssize_t o, Py_ssize_t q0,
    Py_ssize_t q1, const number *packed, number *y,
) noexcept nogil:
    """Copy a packed block, (pixels, o) or (o, pixels), to y, line by line."""
    cdef const Window *v = &phase.window
    cdef Py_ssize_t n, d, h, w, run, j, count = q1 - q0, done = 0, line
    cdef number *out
    while q0 < q1:
        line = q0 // v.line[2].count
        w = q0 - line * v.line[2].count
        h = line % v.line[1].count
        line //= v.line[1].count
        d = line % v.line[0].count
        n = line // v.line[0].count
        run = min(v.line[2].count - w, q1 - q0)
        out = (
            y + n * job.y_n + channel * job.y_c
            + (phase.out_first[0] + d * phase.out_step[0]) * job.y_s[0]
            + (phase.out_first[1] + h * phase.out_step[1]) * job.y_s[1]
            + (phase.out_first[2] + w * phase.out_step[2]) * job.y_s[2]
        )
        if job.channels_last:
            for j in range(run):
                scatter(
                    packed + (done + j) * o, o, out + j * phase.out_step[2] * job.y_s[2], job.y_c
                )
        else:
            for j in range(o):
                scatter(
                    packed + j * count + done, run, out + j * job.y_c,
                    phase.out_step[2] * job.y_s[2],
                )
        done += run
        q0 += run


cdef void block_item(
    const Job *job, const Phase *phase, Py_ssize_t item, const number *x, const number *w,
    const AnyEpilogue *epilogue, number *y, number *scratch,
) noexcept nogil:
    """Compute one block of pixels by one block of output channels, over all of K."""
    cdef const Window *v = &phase.window
    cdef Py_ssize_t per_group = phase.blocks.count * job.o_blocks
    cdef Py_ssize_t group = item // per_group, block = item % per_group // job.o_blocks
    cdef Py_ssize_t o0 = item % job.o_blocks * job.o_block, o1 = min(job.o, o0 + job.o_block)
    cdef Py_ssize_t q0 = block_begin(&phase.blocks, block), q1 = block_end(&phase.blocks, block)
    cdef Py_ssize_t channel = group * job.o + o0, n = q0 // v.pixels
    cdef bint in_place = job.direct_y and (job.channels_last or q1 <= (n + 1) * v.pixels)
    cdef number *out = scratch + job.patches
    cdef Py_ssize_t ld = o1 - o0 if job.channels_last else q1 - q0
    cdef KBlock part
    if in_place and job.channels_last:
        out = y + q0 * job.y_s[2] + channel
        ld = job.y_s[2]
    elif in_place:
        out = y + n * job.y_n + channel * job.y_c + (q0 - n * v.pixels)
        ld = job.y_c
    w += phase.packed + group * v.taps * job.c * job.o if job.pack else group * job.w_group
    part = KBlock(0, 0, 0, 0)
    if v.taps == 0:
        fill_zeros(job, o1 - o0, q1 - q0, out, ld)
    elif job.by_channel:
        multiply_channels(x, w, v, job.o, o0, o1, q0, q1, out, ld)
        part.t1 = v.taps
    while part.t1 < v.taps:
        part.t0, part.t1 = part.t1, min(part.t1 + job.part_taps, v.taps)
        part.c1 = 0
        while part.c1 < job.c:
            part.c0, part.c1 = part.c1, min(part.c1 + job.part_channels, job.c)
            multiply_part(
                job, phase, part, group, o0, o1, q0, q1, x, w, scratch, out, ld,
                part.t0 == 0 and part.c0 == 0,
            )
    finish(job, epilogue, channel, o1 - o0, q1 - q0, out, ld)
    if not in_place:
        unpack(job, phase, channel, o1 - o0, q0, q1, out, y)


cdef void item_of(
    const Job *job, const Phase *phases, Py_ssize_t item, const number *x, const number *w,
    const AnyEpilogue *epilogue, number *y, number *scratch,
) noexcept nogil:
    """Find the item's phase and compute the item."""
    cdef Py_ssize_t i = 0
    while i + 1 < job.phases and phases[i + 1].first_item <= item:
        i += 1
    block_item(job, &phases[i], item - phases[i].first_item, x, w, epilogue, y,
               scratch + threadid() * job.scratch)


cdef void pack_phases(
    const Job *job, const Phase *phases, Py_ssize_t item, const number *w, number *packed
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(job.phases):
        pack_item(job, &phases[i], item, w, packed)


cdef void correlate(
    const Work *all, const number *x, const void *weights, void *out, void *workspace,
    const AnyEpilogue *epilogue, int threads,
) noexcept nogil:
    """Pack the weights if necessary, then run every item."""
    cdef const Job *job = &all.job
    cdef const Phase *phases = all.phases
    cdef Py_ssize_t i
    cdef Py_ssize_t outer = job.groups * (job.c if job.transposed else job.o) if job.pack else 0
    cdef const number *w = <const number *>weights
    cdef number *y = <number *>out
    cdef number *packed = <number *>workspace
    cdef number *scratch = packed + job.shared
    if job.pack:
        w = packed
    # A thread owns whole outer channels of the packed weights.
    for i in prange(outer, schedule="static", num_threads=threads):
        pack_phases(job, phases, i, <const number *>weights, packed)
    # A thread owns whole blocks of y, and its own slice of the scratch.
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        item_of(job, phases, i, x, w, epilogue, y, scratch)


cdef class Correlation(AnyKernel):
    """Kernel of gemm.py; phases: dicts with the fields of Phase.

    largest: the largest size or leading dimension of any gemm.
    """

    cdef Work all

    def __cinit__(self, dict job, list phases, str kind, Py_ssize_t largest):
        cdef Phase *made = <Phase *>self.allocate(len(phases), sizeof(Phase))
        check_sizes(largest)
        for i in range(len(phases)):
            made[i] = phases[i]
        self.all.job, self.all.phases = job, made
        self.set_compute(
            kind, &self.all, <Compute>correlate[float], <Compute>correlate[double],
            <Compute>correlate[floatcomplex], <Compute>correlate[doublecomplex],
        )

    def run(
        self, x, w, y, workspace, int threads, bias=None, int kind=PLAIN, double low=0,
        double high=0, double slope=0,
    ):
        """Compute y = activation(correlation of x with w + bias); a bias of None adds nothing.

        kind, low, high, slope: parameters of the activation, see engine/conv/epilogue.py.
        workspace: at least shared + threads * scratch elements, contiguous.
        """
        cdef Buffers arrays = Buffers()
        cdef AnyEpilogue epilogue = AnyEpilogue(NULL, kind, low, high, slope)
        if bias is not None:
            epilogue.bias = arrays.borrow(bias, False)
        self.call(x, w, y, workspace, threads, &epilogue)
