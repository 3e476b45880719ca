/* The microkernels of all layers but convolutions, of one instruction set: a table as that of
 * conv/microkernels.h, in a file of its own (microkernels.c), so that the two are compiled side by
 * side.
 *
 * A microkernel is a static function on plain pointers: no threads, no allocation, no failure.
 * Sizes and strides are in elements.  Tables with two columns are for float and double.
 */
#ifndef CONVCORE_LAYERS_H
#define CONVCORE_LAYERS_H

#include "pooling.h"

#include <stddef.h>

/* ---- elementwise ops: listed in ops.h, their loops in elementwise.h ---- */

enum {
#define UNARY(name, ...) CONVCORE_OP_##name,
#define UNARY_FLOAT UNARY
#define BINARY UNARY
#define PAIR UNARY
#include "layers/elementwise/ops.h"
    CONVCORE_N_OPS
};

/* forward: y[i] = f(x[i]).  gradient: gx[i] of gy[i] and of what is saved; of an op of two arrays,
 * the op itself.  NULL where ops.h has none.  `params` are three numbers, of which the op says how
 * many it needs; an op of two arrays has the first in place of the other array. */
typedef struct {
    void (*forward)(const void *x, ptrdiff_t count, const double *params, void *y);
    void (*gradient)(const void *gy, const void *saved, ptrdiff_t count, const double *params,
                     void *gx);
} convcore_op_loops;

typedef struct {
    const char *name;
    const char *saved;          /* what the gradient reads: "input" or "result"; "" of two arrays */
    int params;
    double cost;                /* of an element, in multiply-adds */
    convcore_op_loops loops[2];
} convcore_op;

/* ---- normalisations: norm.h ---- */

enum { CONVCORE_LINEAR, CONVCORE_FROM_INPUT, CONVCORE_FROM_RESULT };

/* y = (x - mean) * scale + bias (+ residual), then, unless `activation` is CONVCORE_LINEAR, clamped
 * to [low, high]; gx = gy * scale - (x - mean) * slope - offset.  In NCHW one number each for all
 * planes of `count` elements, `step` apart; in NHWC one a channel.
 *
 * Of a clamp, gradients pass where the result is strictly within, or a NaN.  CONVCORE_FROM_INPUT
 * makes the result anew from x; CONVCORE_FROM_RESULT reads it. */
typedef struct {
    const void *mean, *scale, *bias;
    const void *slope, *offset;
    double low, high;
    int activation;
} convcore_norm_parameters;

/* Sums are added to: sums of x - shift and of its square, or of gy and of gy * (x - mean).  What is
 * left of gy by the clamp is `masked`, where that is CONVCORE_FROM_RESULT.  In NHWC each channel
 * has sums and a shift; `row` is how far the second sums are from the first. */
typedef struct {
    void (*moments)(const void *x, ptrdiff_t count, ptrdiff_t planes, ptrdiff_t step, double shift,
                    double *sums);
    void (*forward)(const void *x, const void *residual, ptrdiff_t count, ptrdiff_t planes,
                    ptrdiff_t step, const convcore_norm_parameters *p, void *y);
    void (*gradient_sums)(const void *gy, const void *x, const void *y, ptrdiff_t count,
                          ptrdiff_t planes, ptrdiff_t step, const convcore_norm_parameters *p,
                          void *masked, double *sums);
    void (*gradient)(const void *gy, const void *x, ptrdiff_t count, ptrdiff_t planes,
                     ptrdiff_t step, const convcore_norm_parameters *p, void *gx);
} convcore_norm_nchw;

typedef struct {
    void (*moments)(const void *x, ptrdiff_t pixels, ptrdiff_t channels, const double *shift,
                    double *sums, ptrdiff_t row);
    void (*forward)(const void *x, const void *residual, ptrdiff_t pixels, ptrdiff_t channels,
                    const convcore_norm_parameters *p, void *y);
    void (*gradient_sums)(const void *gy, const void *x, const void *y, ptrdiff_t pixels,
                          ptrdiff_t channels, const convcore_norm_parameters *p, void *masked,
                          double *sums, ptrdiff_t row);
    void (*gradient)(const void *gy, const void *x, ptrdiff_t pixels, ptrdiff_t channels,
                     const convcore_norm_parameters *p, void *gx);
} convcore_norm_nhwc;

/* Rows of `count` elements: parameters are (2, count), weights and biases, sums (2, count), what is
 * added to the gradients of weights and biases; root is 1 / sqrt(variance + eps).  Gradients are
 * made of at most CONVCORE_ROWS rows. */
enum { CONVCORE_ROWS = 8 };

typedef struct {
    void (*forward)(const void *x, ptrdiff_t count, double mean, double root,
                    const void *parameters, void *y);
    void (*gradient)(const void *gy, const void *x, ptrdiff_t rows, ptrdiff_t count,
                     const double *mean, const double *root, const void *parameters, void *gx,
                     double *sums);
} convcore_layer_norm;

/* ---- steps of optimizers: optimizers.h ---- */

enum {
    CONVCORE_SGD,        /* velocity | sign, decay, lr, momentum, 1 - dampening */
    CONVCORE_ADAM,       /* mean, square, largest square | sign, decay, 1 - lr * decoupled decay,
                          * lr / bias of mean, 1 - beta1, beta2, 1 - beta2, sqrt(bias of square), eps */
    CONVCORE_RMSPROP,    /* square, mean, velocity | sign, decay, lr, momentum, alpha, 1 - alpha, eps */
    CONVCORE_RULES
};

/* Flags of a step, the first of any rule. */
enum {
    CONVCORE_DECAYS = 1,
    CONVCORE_VELOCITY = 2, CONVCORE_FIRST = 4, CONVCORE_NESTEROV = 8,     /* sgd */
    CONVCORE_AMSGRAD = 2,                                                 /* adam */
    CONVCORE_CENTERED = 2, CONVCORE_MOMENTUM = 4                          /* rmsprop */
};

/* Change `count` elements, from `start` on, of a parameter and of its state. */
typedef void (*convcore_step)(void *const *arrays, ptrdiff_t start, ptrdiff_t count,
                              const double *settings, int flags);

/* ---- gradient-norm clipping: clip_grad.h ---- */

typedef struct {
    double (*squares)(const void *v, ptrdiff_t count);
    void (*scale)(void *v, ptrdiff_t count, double factor);
    void (*clip)(void *v, ptrdiff_t count, double bound);
} convcore_clipping;

/* ---- moments of all elements: moments.h ---- */

/* Of one run, or of several that were joined; `squares` are of the deviations. */
typedef struct {
    double count, mean, squares, least, largest, zeros, nan;
} convcore_moments;

typedef void (*convcore_moments_of)(const void *v, ptrdiff_t count, convcore_moments *found);

/* ---- softmax, or its `log`, and their gradients, from the result y: softmax.h ---- */

/* The most columns of one call. */
#define CONVCORE_MOST_COLUMNS 256

/* Rows of `count` elements one behind the other; or columns side by side whose `count` elements are
 * `step` apart. */
typedef struct {
    void (*rows)(const void *x, ptrdiff_t rows, ptrdiff_t count, int log, void *y);
    void (*rows_gradient)(const void *gy, const void *y, ptrdiff_t rows, ptrdiff_t count, int log,
                          void *gx);
    void (*columns)(const void *x, ptrdiff_t columns, ptrdiff_t count, ptrdiff_t step, int log,
                    void *y);
    void (*columns_gradient)(const void *gy, const void *y, ptrdiff_t columns, ptrdiff_t count,
                             ptrdiff_t step, int log, void *gx);
} convcore_softmax;

/* ---- sums over pixels, of each channel: reduce.h ---- */

/* The most channels of one call. */
#define CONVCORE_MOST_CHANNELS 64

typedef struct {
    void (*nchw)(const void *x, ptrdiff_t count, double *sum);
    void (*nhwc)(const void *x, ptrdiff_t pixels, ptrdiff_t channels, ptrdiff_t step,
                 double *sums);
} convcore_sums;

/* ---- matrix products of few rows, of floats: runtime/few_rows.h ---- */

/* c (m, n) = a (m, k) @ b (k, n); in `transposed` b is stored (n, k), and a by rows. */
typedef struct {
    void (*plain)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                  ptrdiff_t a_column, const float *b, ptrdiff_t b_row, float *c, ptrdiff_t c_row);
    void (*transposed)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                       const float *b, ptrdiff_t b_row, float *c, ptrdiff_t c_row);
} convcore_few_rows;

/* ---- bfloat16 in memory: narrow.h ---- */

typedef struct {
    void (*widen)(const void *x, ptrdiff_t count, void *y);
    void (*round)(const void *x, ptrdiff_t count, void *y);
    void (*max_pool)(const convcore_max_pool *m, const void *x, ptrdiff_t d, ptrdiff_t h, void *y);
} convcore_narrow_layers;

typedef struct {
    const char *name;
    convcore_layer_norm layer_norm[2];
    convcore_norm_nchw norm_nchw[2];
    convcore_norm_nhwc norm_nhwc[2];
    convcore_op ops[CONVCORE_N_OPS];
    convcore_step steps[CONVCORE_RULES][2];
    convcore_pooling pooling[2];
    convcore_clipping clipping[2];
    convcore_moments_of moments[2];
    convcore_softmax softmax[2];
    convcore_sums sums[2];
    convcore_few_rows few_rows;
    convcore_narrow_layers narrow;
} convcore_layer_microkernels;

extern const convcore_layer_microkernels convcore_layer_microkernels_base;
#ifdef CONVCORE_HAS_AVX2
extern const convcore_layer_microkernels convcore_layer_microkernels_avx2;
#endif
#ifdef CONVCORE_HAS_AVX512
extern const convcore_layer_microkernels convcore_layer_microkernels_avx512;
#endif

#endif
