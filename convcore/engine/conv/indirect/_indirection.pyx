"""Fill indirection buffers: pointers to the pixels under each tap (see _indirection.pxd)."""

from convcore.engine.conv.im2col._im2col cimport Line, clip, source
from convcore.engine.runtime._isa cimport bfloat16, microkernels
from convcore.engine.runtime._vectors cimport element

# A range of outputs of one plane: the lines [h0, h1), from column w0 of the first to column w1 of
# the last; and the bounding box of the inputs that they read, [low, high) on the last two axes.
cdef struct Plane:
    Py_ssize_t n
    Py_ssize_t d
    Py_ssize_t h0
    Py_ssize_t h1
    Py_ssize_t w0
    Py_ssize_t w1
    Py_ssize_t[2] low
    Py_ssize_t[2] high
    Py_ssize_t[2] count          # lines and columns that are copied


cdef inline Plane next_plane(const Rows *r, Py_ssize_t q0, Py_ssize_t q1) noexcept nogil:
    """Return the part of [q0, q1) that is in the same output plane as q0."""
    cdef Plane p
    cdef Py_ssize_t width = r.window.line[2].count, lines = r.window.line[1].count
    cdef Py_ssize_t line = q0 // width, plane = line // lines
    p.w0 = q0 - line * width
    p.h0 = line - plane * lines
    p.n = plane // r.window.line[0].count
    p.d = plane - p.n * r.window.line[0].count
    q1 = min(q1 - plane * lines * width, lines * width)
    p.h1 = (q1 + width - 1) // width
    p.w1 = q1 - (p.h1 - 1) * width
    return p


cdef inline void see(
    const Line *line, Py_ssize_t first, Py_ssize_t last, Py_ssize_t *low, Py_ssize_t *high
) noexcept nogil:
    """Extend [low, high) to include the inputs read by outputs first to last of a line."""
    if line.taps > 0 and first <= last:
        low[0] = min(low[0], source(line, first, 0))
        high[0] = max(high[0], source(line, last, line.taps - 1) + 1)


cdef inline void crop(
    Py_ssize_t size, Py_ssize_t keep, Py_ssize_t *low, Py_ssize_t *high, Py_ssize_t *count
) noexcept nogil:
    """Clip a range of inputs, of which every keep-th counts, to the valid indices."""
    if low[0] < 0:
        low[0] += (keep - 1 - low[0]) // keep * keep
    high[0] = min(high[0], size)
    count[0] = (high[0] - low[0] + keep - 1) // keep if high[0] > low[0] else 0


cdef inline void find_box(const Rows *r, Plane *p) noexcept nogil:
    """Compute the bounding box of a plane's outputs on the input's last two axes."""
    cdef Py_ssize_t c, w0 = 0, w1 = r.window.line[2].count, far = 1 << 60
    if p.h1 - p.h0 == 1:
        w0, w1 = p.w0, p.w1
    p.low[0] = p.low[1] = far
    p.high[0] = p.high[1] = -far
    see(&r.window.line[1], p.h0, p.h1 - 1, &p.low[0], &p.high[0])
    for c in range(r.classes):
        see(
            &r.columns[c], (w0 - c + r.classes - 1) // r.classes,
            (w1 - c + r.classes - 1) // r.classes - 1, &p.low[1], &p.high[1],
        )
    crop(r.window.line[1].size, r.keep[0], &p.low[0], &p.high[0], &p.count[0])
    crop(r.window.line[2].size, r.keep[1], &p.low[1], &p.high[1], &p.count[1])


cdef void pack_pixels(
    const Rows *r, const float *x, Py_ssize_t channels, const float *end, Py_ssize_t q0,
    Py_ssize_t q1, float *copy,
) noexcept nogil:
    """Pack the inputs of outputs [q0, q1) of `channels` channels, plane by plane."""
    cdef const Window *v = &r.window
    cdef Py_ssize_t width, runs, run, td, d, first
    cdef const float *box
    cdef Plane p
    turn = bfloat16().words_of_nchw if r.bfloat16 else microkernels().indirect.nhwc_of_nchw
    if r.narrow:
        turn = microkernels().indirect.rows_of_bfloat16
        if r.bfloat16:
            turn = bfloat16().words_of_bfloat16
    while q0 < q1:
        p = next_plane(r, q0, q1)
        find_box(r, &p)
        width = p.count[1]
        run, runs = width, p.count[0]
        # Whole lines that are adjacent in memory are one run.
        if r.keep[0] == 1 and r.keep[1] == 1 and v.s[1] == width * v.s[2]:
            run, runs = run * runs, 1
        for td in range(v.line[0].taps):
            d = source(&v.line[0], p.d, td)
            # With an empty box no tap reads an input, and `low` is not a valid index.
            if 0 <= d < v.line[0].size and p.count[0] > 0 and width > 0:
                first = p.n * v.s_n + d * v.s[0] + p.low[0] * v.s[1] + p.low[1] * v.s[2]
                box = element(x, first, r.narrow)
                turn(
                    box, v.s_c, channels, r.keep[1] * v.s[2], run, r.keep[0] * v.s[1], runs, end,
                    copy, r.pixel,
                )
            copy += p.count[0] * width * r.pixel
        q0 += (p.h1 - 1 - p.h0) * v.line[2].count + p.w1 - p.w0


cdef inline void point_run(
    const float *line, bint narrow, Py_ssize_t first, Py_ssize_t step, Py_ssize_t j0,
    Py_ssize_t a, Py_ssize_t b, Py_ssize_t j1, const float *zeros, const float **table,
) noexcept nogil:
    """Write pointers to the pixels of outputs [j0, j1) of a line; outside [a, b), to zeros."""
    cdef Py_ssize_t j
    for j in range(j0, a):
        table[j - j0] = zeros
    for j in range(a, b):
        table[j - j0] = element(line, first + j * step, narrow)
    for j in range(b, j1):
        table[j - j0] = zeros


cdef void point(
    const Rows *r, const float *x, Py_ssize_t q0, Py_ssize_t q1, const float *copy,
    const float *zeros, const float **table,
) noexcept nogil:
    """Fill the tables of all classes; each begins after the taps of the classes before it."""
    cdef const Window *v = &r.window
    cdef const Line *columns
    cdef const float *lines
    cdef const float *line
    cdef const float **entry
    cdef Py_ssize_t[MOST_CLASSES] found
    cdef Py_ssize_t td, th, tw, d, h, i, c, w0, w1, j0, j1, a, b, shift, taps_before, keep
    cdef Py_ssize_t pixel = r.pixel if r.packed else v.s[2]
    cdef bint narrow = r.narrow and not r.packed
    cdef Plane p
    for c in range(r.classes):
        found[c] = 0
    while q0 < q1:
        p = next_plane(r, q0, q1)
        find_box(r, &p)
        for i in range(p.h0, p.h1):
            w0 = p.w0 if i == p.h0 else 0
            w1 = p.w1 if i == p.h1 - 1 else v.line[2].count
            taps_before = 0
            for c in range(r.classes):
                columns = &r.columns[c]
                j0 = (w0 - c + r.classes - 1) // r.classes
                j1 = (w1 - c + r.classes - 1) // r.classes
                entry = table + taps_before * r.pitch + found[c]
                taps_before += v.line[0].taps * v.line[1].taps * columns.taps
                found[c] += j1 - j0
                if j0 == j1:
                    continue
                for td in range(v.line[0].taps):
                    d = source(&v.line[0], p.d, td)
                    lines = copy + td * p.count[0] * p.count[1] * r.pixel
                    keep = r.keep[1]
                    if not r.packed:
                        lines = element(x, p.n * v.s_n + d * v.s[0], narrow)
                        keep = 1
                    for th in range(v.line[1].taps):
                        h = source(&v.line[1], i, th)
                        if r.packed:
                            line = lines + (h - p.low[0]) // r.keep[0] * p.count[1] * r.pixel
                        else:
                            line = element(lines, h * v.s[1], narrow)
                        for tw in range(columns.taps):
                            a, b = j0, j1
                            clip(columns, tw, 0, columns.size, &a, &b)
                            if b < j0 or not (0 <= d < v.line[0].size and 0 <= h < v.line[1].size):
                                a = b = j0
                            shift = columns.first + tw * columns.step
                            if r.packed:
                                shift -= p.low[1]
                            point_run(
                                line, narrow, shift // keep * pixel,
                                columns.stride // keep * pixel, j0, a, b, j1, zeros, entry,
                            )
                            entry += r.pitch
        copy += v.line[0].taps * p.count[0] * p.count[1] * r.pixel
        q0 += (p.h1 - 1 - p.h0) * v.line[2].count + p.w1 - p.w0
