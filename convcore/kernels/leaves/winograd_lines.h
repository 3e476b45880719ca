/* Winograd's transforms of one line, for F(4, 3) and F(2, 3).
 *
 * A line of M outputs of a 3-tap correlation takes M + 2 products instead of 3 M:
 *
 *     y = A' [(G w) * (B' d)],        d: M + 2 inputs, w: 3 weights, y: M outputs
 *
 * `data` is B', `weights` G, `outputs` A'.  Read for w, the same identity is the weight gradient:
 * w = G' [(B' d) * (A y)]; `gradients` is A, and `weight_sums` G'.
 *
 * The matrices follow from the points at which the polynomials behind d and w are multiplied.  For
 * F(4, 3) they are 0, +-3/4, +-3/2 and infinity: all constants but those of G are exact in binary,
 * and the error is a third of that of the customary 0, +-1, +-2.  For F(2, 3): 0, +-1, infinity.
 *
 * S. Winograd, Arithmetic complexity of computations (1980); A. Lavin and S. Gray, Fast algorithms
 * for convolutional neural networks (2016), arXiv 1509.09308; on points: B. Barabasz and others,
 * Error analysis and improving the accuracy of Winograd convolution for deep neural networks
 * (2018), arXiv 1803.10986.
 *
 * In place, and every element `s` apart, so that a tile's rows and columns are lines alike.
 */
#ifndef CONVCORE_WINOGRAD_LINES_H
#define CONVCORE_WINOGRAD_LINES_H

#include "vec.h"

/* Weights are transformed in double precision and rounded once. */
#if LANES > 1
typedef double wide __attribute__((vector_size(8 * LANES)));
#define WIDEN(v) __builtin_convertvector(v, wide)
#define NARROW(v) __builtin_convertvector(v, vec)
#else
typedef double wide;
#define WIDEN(v) ((wide)(v))
#define NARROW(v) ((vec)(v))
#endif

/* ---- F(4, 3): points 0, P, -P, Q, -Q, infinity ---- */

#define P 0.75f
#define Q 1.5f
#define PP (P * P)
#define QQ (Q * Q)
/* The derivative of x (x^2 - PP) (x^2 - QQ) at 0, +-P and +-Q. */
#define AT_0 (PP * QQ)
#define AT_P (2 * PP * (PP - QQ))
#define AT_Q (2 * QQ * (QQ - PP))

INLINE void data_4(vec *d, const int s)
{
    vec even_p = d[4 * s] - QQ * d[2 * s], odd_p = P * (d[3 * s] - QQ * d[s]);
    vec even_q = d[4 * s] - PP * d[2 * s], odd_q = Q * (d[3 * s] - PP * d[s]);
    d[0] = AT_0 * d[0] - (PP + QQ) * d[2 * s] + d[4 * s];
    d[5 * s] = AT_0 * d[s] - (PP + QQ) * d[3 * s] + d[5 * s];
    d[s] = even_p + odd_p;
    d[2 * s] = even_p - odd_p;
    d[3 * s] = even_q + odd_q;
    d[4 * s] = even_q - odd_q;
}

INLINE void weights_4(wide *w, const int s)
{
    wide zero = w[0], one = w[s], two = w[2 * s];
    wide even_p = (zero + PP * two) * (1.0 / AT_P), odd_p = one * (P * (1.0 / AT_P));
    wide even_q = (zero + QQ * two) * (1.0 / AT_Q), odd_q = one * (Q * (1.0 / AT_Q));
    w[0] = zero * (1.0 / AT_0);
    w[s] = even_p + odd_p;
    w[2 * s] = even_p - odd_p;
    w[3 * s] = even_q + odd_q;
    w[4 * s] = even_q - odd_q;
    w[5 * s] = two;
}

INLINE void outputs_4(vec *m, const int s)
{
    vec even_p = m[s] + m[2 * s], odd_p = m[s] - m[2 * s];
    vec even_q = m[3 * s] + m[4 * s], odd_q = m[3 * s] - m[4 * s];
    m[0] += even_p + even_q;
    m[s] = P * odd_p + Q * odd_q;
    m[2 * s] = PP * even_p + QQ * even_q;
    m[3 * s] = P * PP * odd_p + Q * QQ * odd_q + m[5 * s];
}

INLINE void gradients_4(vec *g, const int s)
{
    vec even_p = g[0] + PP * g[2 * s], odd_p = P * g[s] + P * PP * g[3 * s];
    vec even_q = g[0] + QQ * g[2 * s], odd_q = Q * g[s] + Q * QQ * g[3 * s];
    g[5 * s] = g[3 * s];
    g[s] = even_p + odd_p;
    g[2 * s] = even_p - odd_p;
    g[3 * s] = even_q + odd_q;
    g[4 * s] = even_q - odd_q;
}

INLINE void weight_sums_4(vec *p, const int s)
{
    vec even_p = (p[s] + p[2 * s]) * (1 / AT_P), odd_p = (p[s] - p[2 * s]) * (P / AT_P);
    vec even_q = (p[3 * s] + p[4 * s]) * (1 / AT_Q), odd_q = (p[3 * s] - p[4 * s]) * (Q / AT_Q);
    p[0] = p[0] * (1 / AT_0) + even_p + even_q;
    p[s] = odd_p + odd_q;
    p[2 * s] = PP * even_p + QQ * even_q + p[5 * s];
}

#undef P
#undef Q
#undef PP
#undef QQ
#undef AT_0
#undef AT_P
#undef AT_Q

/* ---- F(2, 3): points 0, 1, -1, infinity ---- */

INLINE void data_2(vec *d, const int s)
{
    vec one = d[s], two = d[2 * s];
    d[0] -= two;
    d[s] = one + two;
    d[2 * s] = two - one;
    d[3 * s] -= one;
}

INLINE void weights_2(wide *w, const int s)
{
    wide even = (w[0] + w[2 * s]) * 0.5, odd = w[s] * 0.5;
    w[3 * s] = w[2 * s];
    w[s] = even + odd;
    w[2 * s] = even - odd;
}

INLINE void outputs_2(vec *m, const int s)
{
    vec odd = m[s] - m[2 * s];
    m[0] += m[s] + m[2 * s];
    m[s] = odd + m[3 * s];
}

INLINE void gradients_2(vec *g, const int s)
{
    vec sum = g[0] + g[s], difference = g[0] - g[s];
    g[3 * s] = g[s];
    g[s] = sum;
    g[2 * s] = difference;
}

INLINE void weight_sums_2(vec *p, const int s)
{
    vec even = (p[s] + p[2 * s]) * 0.5f, odd = (p[s] - p[2 * s]) * 0.5f;
    p[0] += even;
    p[s] = odd;
    p[2 * s] = even + p[3 * s];
}

#endif
