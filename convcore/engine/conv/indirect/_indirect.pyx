"""Forward pass and input gradient by indirect convolution: rows of the product are pointers.

The sums are those of _im2col_gemm.pyx, phase by phase; here phases that differ only in the last
axis are one phase with several classes (_indirection.pxd).  Patches are not gathered: indirect.c
multiplies the pixels in place.  The weights are first packed into the panels that its products
read.

In bfloat16 a part of the channels is a whole number of blocks of bfloat16.c.  Pixels are packed
into its words, unless they are words already: whole blocks in bfloat16, where a word is a pair.

Work items are (phase, group, block of pixels, block of output channels).  Where one block holds all
the pixels, each item packs the weights of its own panel, a part at a time, and they never leave the
cache; otherwise all weights are packed first.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport uint16_t

from convcore.engine.conv._blocks cimport Blocks, block_begin, block_end
from convcore.engine.conv.indirect._indirection cimport MOST_CLASSES, Rows, pack_pixels, point
from convcore.engine.conv._kernel cimport FloatCorrelation
from convcore.engine.runtime._isa cimport (
    BFLOAT16_BLOCK, Epilogue, PLAIN, TALLEST, bfloat16, microkernels,
)
from convcore.engine.runtime._threads cimport thread_count, use_team
from convcore.engine.runtime._vectors cimport copy, element, zero

use_team()

# Summed channels packed as one unit of work; and the longest run in `pack_chunk`.
cdef enum:
    CHUNK = 16
    MOST_RUN = 32
    MOST_PANEL = 64

cdef struct Phase:
    Rows rows
    Blocks blocks
    Py_ssize_t[3] out_first      # offsets of the outputs in y; classes alternate
    Py_ssize_t[3] out_step
    Py_ssize_t[MOST_CLASSES] taps
    Py_ssize_t[MOST_CLASSES] packed    # where the packed weights of each class begin
    Py_ssize_t first_item

# A tap of the kernel: its position in the weights, and in the packed weights.
cdef struct Tap:
    Py_ssize_t offset
    Py_ssize_t packed            # where the packed weights of its class begin
    Py_ssize_t taps              # taps of its class; 0 if no output reads it
    Py_ssize_t index             # its index in the class

cdef struct Job:
    bint bfloat16                # products of words, whose part is whole blocks of channels
    bint narrow_y                # y is bfloat16, with contiguous channels
    bint by_tile                 # round tile by tile: the scratch holds one tile's sums
    bint direct_y                # a pixel's channels are written in place
    bint joined                  # the outputs of an image are one contiguous range of y
    bint packs                   # an item packs its weights: one panel, one phase and class
    bint tap_runs                # the kernel's taps are contiguous and in order in the weights
    bint channel_runs            # or the summed channels are contiguous
    Py_ssize_t groups
    Py_ssize_t c                 # summed and output channels of one group
    Py_ssize_t o
    Py_ssize_t o_full            # o, padded to whole vectors
    Py_ssize_t o_block           # output channels of one item, whole panels
    Py_ssize_t o_blocks
    Py_ssize_t part              # channels summed at a time, whole chunks
    Py_ssize_t kernel            # taps in all
    Py_ssize_t w_group           # strides of the weights: group, o, c; and the floats they span
    Py_ssize_t w_o
    Py_ssize_t w_c
    Py_ssize_t w_size
    Py_ssize_t y_n
    Py_ssize_t y_c
    Py_ssize_t[3] y_s
    Py_ssize_t row               # floats from a packed output pixel to the next
    Py_ssize_t zeros             # floats of zeros at the start of a thread's scratch
    Py_ssize_t noted             # where a thread records the inputs that it has packed
    Py_ssize_t pointers          # where its pointers begin, then packed inputs, then outputs
    Py_ssize_t inputs
    Py_ssize_t outputs
    Py_ssize_t weights           # and the weights that an item packs
    Py_ssize_t scratch           # floats of scratch per thread
    Py_ssize_t shared            # floats of packed weights, at the start of the workspace
    Py_ssize_t phases
    Py_ssize_t items


# ---- weights ----

cdef inline Py_ssize_t part_end(const Job *job, Py_ssize_t c) noexcept nogil:
    """Return one past the last channel of the part that contains channel c."""
    return min(job.c, (c // job.part + 1) * job.part)


cdef inline Py_ssize_t words(const Job *job, Py_ssize_t channels) noexcept nogil:
    """Return the packed floats of `channels` channels of a pixel, or the rows of packed weights."""
    if not job.bfloat16:
        return channels
    return (channels + BFLOAT16_BLOCK - 1) // BFLOAT16_BLOCK * bfloat16().words


cdef inline float *packed_row(
    const Job *job, const Tap *tap, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t width,
    Py_ssize_t c, float *packed,
) noexcept nogil:
    """Return the address of the packed weights of a tap and channel c, in the panel at o0.

    The weights of a class are (group, part, panel, tap, c of the part, o of the panel); those that
    an item packs are of one group, part and panel.  In bfloat16, c is the first channel of a block.
    """
    cdef Py_ssize_t first = c // job.part * job.part, part = words(job, part_end(job, c) - first)
    cdef Py_ssize_t at = tap.index * part + words(job, c - first)
    if job.packs:
        return packed + at * width
    packed += tap.packed
    packed += tap.taps * ((group * words(job, job.c) + words(job, first)) * job.o_full + part * o0)
    return packed + at * width


cdef void pack_lanes(
    const float *w, Py_ssize_t step, Py_ssize_t count, Py_ssize_t width, float *out
) noexcept nogil:
    """Compute out[i] = w[i * step] for i < count, padded with zeros to `width`."""
    copy(w, step, count, out)
    zero(out + count, width - count)


cdef inline void put_words(
    const Job *job, const Tap *tap, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t width,
    Py_ssize_t c, const float *row, float *packed,
) noexcept nogil:
    """Write the weights of channel c into the words of its block of channels."""
    cdef Py_ssize_t term = c % BFLOAT16_BLOCK
    bfloat16().words_of_weights(
        row, width, term, packed_row(job, tap, group, o0, width, c - term, packed)
    )


cdef void pack_chunk(
    const Job *job, const Tap *taps, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t c0,
    const float *weights, float *packed,
) noexcept nogil:
    """Pack the weights of a chunk of summed channels and a panel of output channels."""
    cdef Py_ssize_t panel = microkernels().panel, o = min(panel, job.o - o0)
    cdef Py_ssize_t c1 = min(job.c, c0 + CHUNK)
    cdef Py_ssize_t width = min(panel, job.o_full - o0), t, c, i, run
    cdef const float *w = weights + group * job.w_group + o0 * job.w_o
    cdef const float *end = weights + job.w_size
    cdef float *out[MOST_RUN]
    cdef float[MOST_RUN * MOST_PANEL] staged
    for i in range(MOST_RUN):
        out[i] = staged + i * width
    if job.tap_runs:
        for c in range(c0, c1):
            t = 0
            while t < job.kernel:
                run = min(MOST_RUN, job.kernel - t)
                if not job.bfloat16:
                    for i in range(run):
                        out[i] = packed_row(job, &taps[t + i], group, o0, width, c, packed)
                microkernels().indirect.rows_of_lanes(
                    w + c * job.w_c + taps[t].offset, end, job.w_o, o, run, out
                )
                if job.bfloat16:
                    for i in range(run):
                        put_words(job, &taps[t + i], group, o0, width, c, out[i], packed)
                t += run
    else:
        for t in range(job.kernel):
            if taps[t].taps == 0:
                continue
            if not job.bfloat16:
                for c in range(c0, c1):
                    out[c - c0] = packed_row(job, &taps[t], group, o0, width, c, packed)
            if job.channel_runs:
                microkernels().indirect.rows_of_lanes(
                    w + c0 + taps[t].offset, end, job.w_o, o, c1 - c0, out
                )
            else:
                for c in range(c0, c1):
                    pack_lanes(
                        w + c * job.w_c + taps[t].offset, job.w_o, o, width, out[c - c0]
                    )
            if job.bfloat16:
                for c in range(c0, c1):
                    put_words(job, &taps[t], group, o0, width, c, out[c - c0], packed)
    if job.bfloat16 and c1 == job.c:
        fill_block(job, taps, group, o0, width, staged, packed)


cdef void fill_block(
    const Job *job, const Tap *taps, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t width,
    float *zeros, float *packed,
) noexcept nogil:
    """Pad the last block of channels with zeros."""
    cdef Py_ssize_t t, c
    zero(zeros, width)
    for c in range(job.c, (job.c + BFLOAT16_BLOCK - 1) // BFLOAT16_BLOCK * BFLOAT16_BLOCK):
        for t in range(job.kernel):
            if taps[t].taps > 0:
                put_words(job, &taps[t], group, o0, width, c, zeros, packed)


cdef void pack_item(
    const Job *job, const Tap *taps, Py_ssize_t item, const float *weights, float *packed
) noexcept nogil:
    """Pack the weights of one work item: one chunk and one panel."""
    cdef Py_ssize_t panel = microkernels().panel, panels = (job.o + panel - 1) // panel
    cdef Py_ssize_t chunks = (job.c + CHUNK - 1) // CHUNK
    pack_chunk(
        job, taps, item // chunks // panels, item // chunks % panels * panel,
        item % chunks * CHUNK, weights, packed,
    )


# ---- outputs ----

cdef inline float *place(
    const Job *job, const Phase *phase, Py_ssize_t q, float *y
) noexcept nogil:
    """Return the address of output pixel q of a phase in y."""
    cdef Py_ssize_t w = phase.rows.window.line[2].count, h = phase.rows.window.line[1].count
    cdef Py_ssize_t line = q // w, plane = line // h, n = plane // phase.rows.window.line[0].count
    return element(
        y,
        n * job.y_n
        + (phase.out_first[0] + (plane - n * phase.rows.window.line[0].count) * phase.out_step[0])
        * job.y_s[0]
        + (phase.out_first[1] + (line - plane * h) * phase.out_step[1]) * job.y_s[1]
        + (q - line * w) * job.y_s[2],
        job.narrow_y,
    )


cdef inline Py_ssize_t run_end(
    const Job *job, const Phase *phase, Py_ssize_t q, Py_ssize_t q1
) noexcept nogil:
    """Return the end of the range of outputs, from q up to q1, that are contiguous in y."""
    cdef Py_ssize_t length = phase.rows.window.line[2].count
    if job.joined:
        length = phase.rows.window.pixels
    return min(q1, (q // length + 1) * length)


cdef void point_out(
    const Job *job, const Phase *phase, Py_ssize_t q0, Py_ssize_t q1, float *y, float *outputs,
    Py_ssize_t row, float **out,
) noexcept nogil:
    """Write pointers to the outputs of a block, class by class, with `pitch` pointers per class.

    Outputs are packed with `row` floats each if `outputs` is not NULL.
    """
    cdef const Rows *r = &phase.rows
    cdef Py_ssize_t[MOST_CLASSES] found
    cdef Py_ssize_t c, end, i
    cdef float *at
    for c in range(r.classes):
        found[c] = c * r.pitch
    while q0 < q1:
        end = run_end(job, phase, q0, q1)
        at = place(job, phase, q0, y)
        c = q0 % r.window.line[2].count % r.classes
        for i in range(end - q0):
            if outputs != NULL:
                out[found[c]] = outputs
                outputs += row
            else:
                out[found[c]] = element(at, i * job.y_s[2], job.narrow_y)
            found[c] += 1
            c += 1
            if c == r.classes:
                c = 0
        q0 = end


cdef void unpack(
    const Job *job, const Phase *phase, Py_ssize_t q0, Py_ssize_t q1, Py_ssize_t channels,
    const float *rows, Py_ssize_t row, float *y,
) noexcept nogil:
    """Copy packed outputs (pixels, channels) to y, whose lines are contiguous."""
    cdef Py_ssize_t end
    while q0 < q1:
        end = run_end(job, phase, q0, q1)
        if job.narrow_y:
            microkernels().indirect.bfloat16_of_rows(
                rows, row, end - q0, place(job, phase, q0, y), job.y_s[2], channels
            )
        else:
            microkernels().indirect.nchw_of_nhwc(
                rows, row, end - q0, place(job, phase, q0, y), job.y_c, channels
            )
        rows += (end - q0) * row
        q0 = end


cdef void widen(
    const Job *job, const Phase *phase, Py_ssize_t q0, Py_ssize_t q1, Py_ssize_t channels,
    const float *y, float *rows, Py_ssize_t row,
) noexcept nogil:
    """Copy bfloat16 outputs to packed float32 outputs, to accumulate on them."""
    cdef Py_ssize_t end
    while q0 < q1:
        end = run_end(job, phase, q0, q1)
        microkernels().indirect.rows_of_bfloat16(
            place(job, phase, q0, <float *>y), 1, channels, job.y_s[2], end - q0, 0, 1, NULL,
            rows, row,
        )
        rows += (end - q0) * row
        q0 = end


# ---- items ----

cdef inline Py_ssize_t class_count(
    const Rows *r, Py_ssize_t c, Py_ssize_t q0, Py_ssize_t q1
) noexcept nogil:
    """Return the number of outputs in [q0, q1) that are of class c."""
    cdef Py_ssize_t width = r.window.line[2].count, each
    if r.classes == 1:
        return q1 - q0
    each = (width - c + r.classes - 1) // r.classes
    return (
        (q1 // width) * each + (q1 % width - c + r.classes - 1) // r.classes
        - (q0 // width) * each - (q0 % width - c + r.classes - 1) // r.classes
    )


cdef inline const float *packed_weights(
    const Job *job, const Phase *phase, Py_ssize_t c, Py_ssize_t group, Py_ssize_t o0,
    Py_ssize_t c0, const float *packed,
) noexcept nogil:
    """Return the address of a class's packed weights, for one part and the panels from o0 on."""
    cdef Py_ssize_t part = words(job, part_end(job, c0) - c0)
    return packed + phase.packed[c] + phase.taps[c] * (
        (group * words(job, job.c) + words(job, c0)) * job.o_full + part * o0
    )


cdef inline const float *weights_after(
    const Job *job, const Phase *phase, Py_ssize_t item, int threads, Py_ssize_t c, Py_ssize_t c1,
    const float *packed,
) noexcept nogil:
    """Return the packed weights that a thread reads after those of class c and a part ending at c1.

    The next item is most likely `threads` further.  Return NULL if there is none, or if the weights
    are in a cache, where the first block of pixels has left them.
    """
    cdef Py_ssize_t first = 0, per_group = phase.blocks.count * job.o_blocks
    if job.packs or item % per_group >= job.o_blocks:
        return NULL
    if c + 1 < phase.rows.classes:
        c, first = c + 1, c1 - 1
    elif c1 < job.c:
        c, first = 0, c1
    else:
        c, item = 0, item + threads
        if item % per_group >= job.o_blocks or item // per_group >= job.groups:
            return NULL
    return packed_weights(
        job, phase, c, item // per_group, item % job.o_blocks * job.o_block,
        first // job.part * job.part, packed,
    )


cdef inline bint already_packed(const Job *job, Py_ssize_t inputs, float *scratch) noexcept nogil:
    """Record which inputs a thread packs; return whether its last item packed the same."""
    cdef Py_ssize_t *noted = <Py_ssize_t *>(scratch + job.noted)
    cdef bint same = noted[0] == inputs and job.part >= job.c
    noted[0] = inputs
    return same


cdef void block_item(
    const Job *job, const Phase *phase, const Tap *taps, Py_ssize_t item, int threads,
    const float *x, const float *w, const float *packed, const Epilogue *epilogue, float *y,
    float *scratch,
) noexcept nogil:
    """Compute one block of pixels by one block of output channels, over all channels and taps."""
    cdef const Rows *r = &phase.rows
    cdef Py_ssize_t per_group = phase.blocks.count * job.o_blocks
    cdef Py_ssize_t group = item // per_group, block = item % per_group // job.o_blocks
    cdef Py_ssize_t o0 = item % job.o_blocks * job.o_block, o = min(job.o - o0, job.o_block)
    cdef Py_ssize_t q0 = block_begin(&phase.blocks, block), q1 = block_end(&phase.blocks, block)
    cdef Py_ssize_t c0 = 0, c1, c, k, taps_before, i
    cdef uint16_t **narrow = NULL
    cdef const float *b
    cdef const float **table = <const float **>(scratch + job.pointers)
    cdef float **out = <float **>(table + job.kernel * r.pitch)
    cdef float *inputs = scratch + job.inputs
    cdef float *outputs = scratch + job.outputs
    cdef Epilogue ending = epilogue[0]
    cdef const float *end = x + r.size
    cdef bint plain = epilogue.bias == NULL and epilogue.kind == PLAIN
    cdef bint packs = r.packed and not already_packed(
        job, phase.first_item + item // job.o_blocks, scratch
    )
    if ending.bias != NULL:
        ending.bias += group * job.o + o0
    x = element(x, group * job.c * r.window.s_c, r.narrow)
    y = element(y, (group * job.o + o0) * job.y_c, job.narrow_y)
    zero(scratch, job.zeros)
    point(r, x, q0, q1, inputs, scratch, table)
    if job.by_tile:
        narrow = <uint16_t **>(out + r.classes * r.pitch)
        point_out(job, phase, q0, q1, y, NULL, job.row, <float **>narrow)
        for i in range(r.classes * r.pitch):
            out[i] = outputs + i % TALLEST * job.row
    else:
        point_out(job, phase, q0, q1, y, NULL if job.direct_y else outputs, job.row, out)
        if job.narrow_y and epilogue.add:
            widen(job, phase, q0, q1, o, y, outputs, job.row)
    while c0 < job.c:
        c1 = part_end(job, c0)
        if packs:
            pack_pixels(
                r, element(x, c0 * r.window.s_c, r.narrow), c1 - c0, end, q0, q1, inputs
            )
        if job.packs:
            c = c0
            while c < c1:
                pack_chunk(job, taps, group, o0, c, w, scratch + job.weights)
                c += CHUNK
        taps_before = 0
        k = words(job, c1 - c0)
        for c in range(r.classes):
            b = scratch + job.weights
            if not job.packs:
                b = packed_weights(job, phase, c, group, o0, c0, packed)
            if job.bfloat16:
                bfloat16().product(
                    class_count(r, c, q0, q1), o, phase.taps[c], k // bfloat16().words,
                    table + taps_before * r.pitch, r.pitch, 0 if r.packed else words(job, c0),
                    b, phase.taps[c] * k * microkernels().panel,
                    (out if narrow == NULL else <float **>narrow) + c * r.pitch, narrow != NULL, 0,
                    c0 > 0 or epilogue.add, NULL if plain or c1 < job.c else &ending,
                )
            else:
                microkernels().indirect.product(
                    class_count(r, c, q0, q1), o, phase.taps[c], k,
                    table + taps_before * r.pitch, r.pitch, scratch, 0 if r.packed else c0,
                    b, phase.taps[c] * k * microkernels().panel, out + c * r.pitch,
                    NULL if narrow == NULL else narrow + c * r.pitch, 0,
                    c0 > 0 or epilogue.add, NULL if plain or c1 < job.c else &ending,
                    weights_after(job, phase, item, threads, c, c1, packed),
                )
            taps_before += phase.taps[c]
        c0 = c1
    if not (job.direct_y or job.by_tile):
        unpack(job, phase, q0, q1, o, outputs, job.row, y)


cdef void item_of(
    const Job *job, const Phase *phases, const Tap *taps, Py_ssize_t item, int threads,
    const float *x, const float *w, const float *packed, const Epilogue *epilogue, float *y,
    float *scratch,
) noexcept nogil:
    """Find the item's phase and compute the item."""
    cdef Py_ssize_t i = 0
    while i + 1 < job.phases and phases[i + 1].first_item <= item:
        i += 1
    block_item(
        job, &phases[i], taps, item - phases[i].first_item, threads, x, w, packed, epilogue, y,
        scratch + threadid() * job.scratch,
    )


cdef inline Py_ssize_t all_chunks(const Job *job) noexcept nogil:
    """Return the number of work items of `pack_item`."""
    cdef Py_ssize_t panels = (job.o + microkernels().panel - 1) // microkernels().panel
    return job.groups * panels * ((job.c + CHUNK - 1) // CHUNK)


cdef class IndirectCorrelation(FloatCorrelation):
    """Kernel of correlation.py; phases, taps: dicts with the structs' fields."""

    cdef Job job
    cdef Phase *phases
    cdef Tap *taps

    def __cinit__(self, dict job, list phases, list taps):
        self.job = job
        self.phases = <Phase *>self.allocate(
            1, len(phases) * sizeof(Phase) + len(taps) * sizeof(Tap)
        )
        self.taps = <Tap *>(self.phases + <Py_ssize_t>len(phases))
        for i in range(len(phases)):
            self.phases[i] = phases[i]
        for i in range(len(taps)):
            self.taps[i] = taps[i]

    cdef void pack_weights(self, const float *w, float *prepacked) noexcept:
        cdef const Job *job = &self.job
        cdef const Tap *taps = self.taps
        cdef Py_ssize_t i, chunks = all_chunks(job)
        cdef int threads = thread_count(chunks, job.w_size)
        for i in prange(chunks, schedule="static", num_threads=threads, nogil=True):
            pack_item(job, taps, i, w, prepacked)

    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        """Pack the weights, unless they are prepacked, then run every item."""
        cdef const Job *job = &self.job
        cdef const Phase *phases = self.phases
        cdef const Tap *taps = self.taps
        cdef float *scratch = workspace + job.shared
        cdef const float *packed = prepacked
        cdef Py_ssize_t i, chunks = 0 if job.packs or prepacked != NULL else all_chunks(job)
        if prepacked == NULL:
            packed = workspace
        for i in range(threads):
            (<Py_ssize_t *>(scratch + i * job.scratch + job.noted))[0] = -1
        # A thread owns whole rows of the packed weights.
        for i in prange(chunks, schedule="static", num_threads=threads):
            pack_item(job, taps, i, w, workspace)
        # A thread owns whole blocks of y, and its own slice of the scratch.
        for i in prange(job.items, schedule="dynamic", num_threads=threads):
            item_of(job, phases, taps, i, threads, x, w, packed, epilogue, y, scratch)
