"""im2col and col2im of blocks of pixels, in both layouts, without a padded copy of the input.

A block is a range [q0, q1) of output pixels, counted over the whole batch: q = (n*OD + d)*OH*OW +
... Its patches are either rows, (q1-q0, taps*channels), with the channels of one tap contiguous, as
in channels_last memory; or columns, (channels*taps, q1-q0), with the pixels contiguous, as in
contiguous memory.  A tap that falls outside the input reads 0.
col2im adds a block's patches back to their source elements: the adjoint of im2col, not its inverse.
col2im adds a block's patches back where they came from: the adjoint of im2col, not its inverse.
"""

from cython.parallel cimport prange

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._threads cimport thread_count, use_team
from convcore.engine.runtime._types cimport number
from convcore.engine.runtime._vectors cimport add, copy, zero

use_team()

cdef inline void gather_line_nhwc(
    const number *x, const Window *v, Py_ssize_t w, Py_ssize_t run, Py_ssize_t t0, Py_ssize_t t1,
    Py_ssize_t channels, number *rows, Py_ssize_t width,
) noexcept nogil:
    """Copy patches of `run` outputs of a line, kernel line taps [t0, t1), to strided rows."""
    cdef const Line *line = &v.line[2]
    cdef Py_ssize_t j, t, i, taps = t1 - t0
    # Neighbouring taps are neighbours in memory: one copy serves the whole kernel line.
    cdef bint joined = v.s_c == 1 and v.s[2] * line.step == channels
    for j in range(run):
        i = source(line, w + j, t0)
        if joined and i >= 0 and i + (taps - 1) * line.step < line.size:
            copy(x + i * v.s[2], 1, taps * channels, rows)
        else:
            for t in range(taps):
                if 0 <= i < line.size:
                    copy(x + i * v.s[2], v.s_c, channels, rows + t * channels)
                else:
                    zero(rows + t * channels, channels)
                i += line.step
        rows += width


cdef void gather_nhwc(
    const number *x, const Window *v, KBlock part, Py_ssize_t q0, Py_ssize_t q1, number *rows,
) noexcept nogil:
    """rows[q - q0, (t, c)] = x[n, c, under tap t of q] over the part's taps and channels.

    rows: (q1-q0, (t1-t0)*(c1-c0)).  nogil, no allocation, no threads.
    """
    cdef Py_ssize_t channels = part.c1 - part.c0, width = (part.t1 - part.t0) * channels
    cdef Py_ssize_t run, t, taps, line_of_taps, tw, d, h, j
    cdef Place at = locate(v, q0)
    cdef const number *image
    cdef number *out
    while q0 < q1:
        run = min(v.line[2].count - at.w, q1 - q0)
        image = x + at.n * v.s_n + part.c0 * v.s_c
        t = part.t0
        while t < part.t1:
            line_of_taps = t // v.line[2].taps
            tw = t - line_of_taps * v.line[2].taps
            taps = min(v.line[2].taps - tw, part.t1 - t)
            d = source(&v.line[0], at.d, line_of_taps // v.line[1].taps)
            h = source(&v.line[1], at.h, line_of_taps % v.line[1].taps)
            out = rows + (t - part.t0) * channels
            if 0 <= d < v.line[0].size and 0 <= h < v.line[1].size:
                gather_line_nhwc(
                    image + d * v.s[0] + h * v.s[1], v, at.w, run, tw, tw + taps, channels, out,
                    width,
                )
            else:
                for j in range(run):
                    zero(out + j * width, taps * channels)
            t += taps
        rows += run * width
        q0 += run
        next_line(v, &at)


cdef inline void gather_one_nchw(
    const number *x, const Window *v, Py_ssize_t t, Place at, Py_ssize_t count, number *out,
) noexcept nogil:
    """out[i] = x under tap t of the i-th pixel, counted from `at`, for one channel."""
    cdef Py_ssize_t tw = t % v.line[2].taps, a, b, d, h, end
    cdef Py_ssize_t line_of_taps = t // v.line[2].taps
    cdef Py_ssize_t th = line_of_taps % v.line[1].taps, td = line_of_taps // v.line[1].taps
    cdef Py_ssize_t low = 0, high = v.line[2].count
    cdef Py_ssize_t step = v.line[2].stride * v.s[2]
    clip(&v.line[2], tw, 0, v.line[2].size, &low, &high)
    x += (v.line[2].first + tw * v.line[2].step) * v.s[2]
    out -= at.w
    count += at.w
    while count > 0:
        # Of this line's outputs, [at.w, end) are wanted and [a, b) lie over the input.
        end = min(v.line[2].count, count)
        a = min(max(low, at.w), end)
        b = max(min(high, end), a)
        d = source(&v.line[0], at.d, td)
        h = source(&v.line[1], at.h, th)
        if not (0 <= d < v.line[0].size and 0 <= h < v.line[1].size):
            a = b = end
        zero(out + at.w, a - at.w)
        copy(x + at.n * v.s_n + d * v.s[0] + h * v.s[1] + a * step, step, b - a, out + a)
        zero(out + b, end - b)
        out += v.line[2].count
        count -= v.line[2].count
        next_line(v, &at)


cdef void gather_nchw(
    const number *x, const Window *v, KBlock part, bint channels_outer,
    Py_ssize_t q0, Py_ssize_t q1, number *columns,
) noexcept nogil:
    """columns[(c, t) or (t, c), q - q0] = x[n, c, under tap t of q] over the part.

    columns: ((c1-c0)*(t1-t0), q1-q0); rows of it are ordered channel by channel if channels_outer,
    else tap by tap.  nogil, no allocation, no threads.
    """
    cdef Py_ssize_t c, t, row, count = q1 - q0
    cdef Py_ssize_t taps = part.t1 - part.t0, channels = part.c1 - part.c0
    cdef Place at = locate(v, q0)
    for c in range(channels):
        for t in range(taps):
            row = c * taps + t if channels_outer else t * channels + c
            gather_one_nchw(
                x + (part.c0 + c) * v.s_c, v, part.t0 + t, at, count, columns + row * count
            )


cdef void scatter_nhwc(
    const number *rows, const Window *v, KBlock part, Py_ssize_t q0, Py_ssize_t q1,
    const Py_ssize_t *bounds, number *x,
) noexcept nogil:
    """x[n, c, under tap t of q] += rows[q - q0, (t, c)], only inside the input slice.

    bounds: (begin, end) on each of the three axes, the slice of x that the caller owns.  Pixels are
    added in order, so the sum's bits depend on the slice alone.  nogil, no allocation, no threads.
    """
    cdef Py_ssize_t channels = part.c1 - part.c0, width = (part.t1 - part.t0) * channels
    cdef Py_ssize_t t, j, run, line_of_taps, d, h, i
    cdef Place at = locate(v, q0)
    cdef number *image
    cdef number *line
    while q0 < q1:
        run = min(v.line[2].count - at.w, q1 - q0)
        image = x + at.n * v.s_n + part.c0 * v.s_c
        for t in range(part.t0, part.t1):
            line_of_taps = t // v.line[2].taps
            d = source(&v.line[0], at.d, line_of_taps // v.line[1].taps)
            h = source(&v.line[1], at.h, line_of_taps % v.line[1].taps)
            if not (bounds[0] <= d < bounds[1] and bounds[2] <= h < bounds[3]):
                continue
            line = image + d * v.s[0] + h * v.s[1]
            i = source(&v.line[2], at.w, t % v.line[2].taps)
            for j in range(run):
                if bounds[4] <= i < bounds[5]:
                    add(
                        rows + j * width + (t - part.t0) * channels, channels,
                        line + i * v.s[2], v.s_c,
                    )
                i += v.line[2].stride
        rows += run * width
        q0 += run
        next_line(v, &at)


cdef inline void scatter_one_nchw(
    const number *column, const Window *v, Py_ssize_t t, Place at, Py_ssize_t count,
    const Py_ssize_t *bounds, number *x,
) noexcept nogil:
    """Add column[i] to x under tap t of the i-th pixel, counted from `at`, for one channel."""
    cdef Py_ssize_t tw = t % v.line[2].taps, a, b, d, h, begin, end, left = count
    cdef Py_ssize_t line_of_taps = t // v.line[2].taps
    cdef Py_ssize_t th = line_of_taps % v.line[1].taps, td = line_of_taps // v.line[1].taps
    cdef Py_ssize_t low = 0, high = v.line[2].count
    cdef Py_ssize_t step = v.line[2].stride * v.s[2]
    cdef Py_ssize_t shift = (v.line[2].first + tw * v.line[2].step) * v.s[2]
    clip(&v.line[2], tw, bounds[4], bounds[5], &low, &high)
    while left > 0:
        begin = at.w
        end = min(v.line[2].count, at.w + left)
        d = source(&v.line[0], at.d, td)
        h = source(&v.line[1], at.h, th)
        if bounds[0] <= d < bounds[1] and bounds[2] <= h < bounds[3]:
            a = min(max(low, begin), end)
            b = max(min(high, end), a)
            add(
                column + (a - begin), b - a,
                x + at.n * v.s_n + d * v.s[0] + h * v.s[1] + a * step + shift, step,
            )
        column += end - begin
        left -= end - begin
        next_line(v, &at)


cdef void scatter_nchw(
    const number *columns, const Window *v, KBlock part, bint channels_outer,
    Py_ssize_t q0, Py_ssize_t q1, const Py_ssize_t *bounds, number *x,
) noexcept nogil:
    """x[n, c, under tap t of q] += columns[(c, t) or (t, c), q - q0], only inside the input slice.

    As `scatter_nhwc`, for the layout of `gather_nchw`.  nogil, no allocation, no threads.
    """
    cdef Py_ssize_t c, t, row, count = q1 - q0
    cdef Py_ssize_t taps = part.t1 - part.t0, channels = part.c1 - part.c0
    cdef Place at = locate(v, q0)
    for c in range(channels):
        for t in range(taps):
            row = c * taps + t if channels_outer else t * channels + c
            scatter_one_nchw(
                columns + row * count, v, part.t0 + t, at, count, bounds, x + (part.c0 + c) * v.s_c
            )


# ---- whole arrays: what convcore.engine.im2col and col2im call ----

cdef void move_item(
    Py_ssize_t item, bint back, Py_ssize_t channels, bint nhwc, const Window *v, number *x,
    number *patches,
) noexcept nogil:
    """Copy the patches of an image (nhwc) or of a channel of it; if `back`, add them to x."""
    cdef Py_ssize_t n = item if nhwc else item // channels, c = item % channels
    cdef Py_ssize_t q0 = n * v.pixels, q1 = q0 + v.pixels
    cdef KBlock part = KBlock(0, v.taps, 0, channels)
    cdef Py_ssize_t[6] bounds = [0, v.line[0].size, 0, v.line[1].size, 0, v.line[2].size]
    if nhwc:
        patches += q0 * v.taps * channels
        if back:
            scatter_nhwc(patches, v, part, q0, q1, bounds, x)
        else:
            gather_nhwc(x, v, part, q0, q1, patches)
        return
    part.c0, part.c1 = c, c + 1
    patches += item * v.taps * v.pixels
    if back:
        scatter_nchw(patches, v, part, True, q0, q1, bounds, x)
    else:
        gather_nchw(x, v, part, True, q0, q1, patches)


cdef void move(
    bint back, Py_ssize_t n, Py_ssize_t channels, bint nhwc, const Window *v, number *x,
    number *patches,
) noexcept:
    """Compute im2col of x into patches; if `back`, col2im of patches into x, which is 0."""
    cdef Py_ssize_t item, items = n if nhwc else n * channels
    cdef int threads = thread_count(items, 4.0 * n * channels * v.taps * v.pixels)
    # An item owns one image of what is written, or one channel of one: no place has two writers.
    for item in prange(items, nogil=True, num_threads=threads, schedule="dynamic"):
        move_item(item, back, channels, nhwc, v, x, patches)


def move_patches(
    str kind, bint back, x, patches, Py_ssize_t n, Py_ssize_t channels, bint nhwc, dict window
):
    """Write the patches of x, contiguous (N, P, taps*C) if nhwc, else (N, C*taps, P).

    If `back`, add the patches to x instead.  kind: the dtype's character, one of f d F D.  window:
    the fields of a Window with the strides of x.
    """
    cdef Window v = window
    cdef int code = "fdFD".index(kind)
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, back)
    cdef void *p_ptr = arrays.borrow(patches, not back)
    if code == 0:
        move(back, n, channels, nhwc, &v, <float *>x_ptr, <float *>p_ptr)
    elif code == 1:
        move(back, n, channels, nhwc, &v, <double *>x_ptr, <double *>p_ptr)
    elif code == 2:
        move(back, n, channels, nhwc, &v, <float complex *>x_ptr, <float complex *>p_ptr)
    else:
        move(back, n, channels, nhwc, &v, <double complex *>x_ptr, <double complex *>p_ptr)
