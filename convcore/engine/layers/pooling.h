/* Parameter structs of the max pooling and separable microkernels (average pooling, interpolation,
 * padding). */
#ifndef CONVCORE_POOLING_H
#define CONVCORE_POOLING_H

#include <stddef.h>
#include <stdint.h>

/* One axis of max pooling.  Tap t of window j is input start[j] + t * dilation, and lies within the
 * axis for t in [low[j], high[j]); input i is seen by windows of [first[i], end[i]) alone.
 * stride: of starts that are all as far apart, with start[0] = -before; 0 for others. */
typedef struct {
    ptrdiff_t size;              /* inputs */
    ptrdiff_t out;               /* windows */
    ptrdiff_t kernel;            /* the most taps of a window */
    ptrdiff_t dilation;
    ptrdiff_t stride;
    ptrdiff_t before;
    const ptrdiff_t *start, *low, *high;
    const ptrdiff_t *first, *end;
} convcore_windows;

/* Max pooling of dense images: depth, rows, columns.  Tap (d, h, w) of a window has number
 * (d * kernel of rows + h) * kernel of columns + w, below CONVCORE_NOWHERE, which marks windows
 * that see no input.  A line is a row of an image: in NHWC it is (columns, channels).  Vectors take
 * CONVCORE_PIECE elements of one. */
enum { CONVCORE_NOWHERE = 255, CONVCORE_PIECE = 16 };

typedef struct {
    convcore_windows axis[3];
    ptrdiff_t channels;          /* of NHWC; 0: NCHW, planes one after the other */
} convcore_max_pool;

/* The weights of one axis, a sparse matrix in CSR form: output j is the sum over its taps i, in
 * [begin[j], begin[j + 1]), of input source[i] times weight[i]; weights have the elements' dtype.
 *
 * Where it repeats itself, outputs p + phases * q for q in [low, high) have the taps of
 * p + phases * low, (q - low) * stride inputs further; phases is 0 where nothing repeats.
 * gather: a table by inputs, or NULL: (first, end, i) says that an input is added to the outputs
 * [first, end) with weight[i].  run: each output sums neighbouring inputs, of weight 1.
 * identity: output j is input j.  copies: output j is input source[j].  two_tap: no output has more
 * than two taps. */
typedef struct {
    ptrdiff_t size;              /* inputs */
    ptrdiff_t out;
    const ptrdiff_t *begin;
    const ptrdiff_t *source;
    const ptrdiff_t *gather;
    const void *weight;
    ptrdiff_t phases, stride, low, high;
    int run, identity, copies, two_tap;
    const void *divisor;         /* one an output, or NULL */
} convcore_axis_weights;

/* A separable map of images: weights along each axis; the sums are divided at the end by the
 * product of their axes' divisors, and by `divisor`. */
typedef struct {
    convcore_axis_weights axis[3];
    ptrdiff_t channels;          /* of NHWC; 0: NCHW, planes one after the other */
    double divisor;
} convcore_separable;

typedef struct {
    /* One line of outputs of an image (or plane) x, and, unless taps is NULL, the taps they were
     * found at.  scratch: as _max_pool.pyx says. */
    void (*max_pool)(const convcore_max_pool *m, const void *x, ptrdiff_t d, ptrdiff_t h, void *y,
                     uint8_t *taps, void *scratch);
    /* One line of the gradient of an NHWC image, or the gradient of a plane, from that of all its
     * windows and their taps. */
    void (*max_pool_gradient_nhwc)(const convcore_max_pool *m, const void *gy, const uint8_t *taps,
                                   ptrdiff_t d, ptrdiff_t h, void *gx);
    void (*max_pool_gradient_nchw)(const convcore_max_pool *m, const void *gy, const uint8_t *taps,
                                   void *gx);
    /* One line of outputs of a separable map. */
    void (*separable)(const convcore_separable *s, const void *x, ptrdiff_t d, ptrdiff_t h,
                      void *y, void *scratch);
} convcore_pooling;

#endif
