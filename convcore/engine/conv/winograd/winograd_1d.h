/* Winograd's transforms of one line, for F(4, 3), F(2, 5), F(2, 3) and F(3, 2).
 *
 * A line of M outputs of an R-tap correlation takes M + R - 1 products instead of M R:
 *
 *     y = A' [(G w) * (B' d)],        d: M + R - 1 inputs, w: R weights, y: M outputs
 *
 * `data` is B', `weights` G, `outputs` A'.  Read for w, the same identity is the weight gradient:
 * w = G' [(B' d) * (A y)]; `gradients` is A, and `weight_sums` G'.
 *
 * The matrices follow from the points at which the polynomials behind d and w are multiplied.  For
 * six inputs they are 0, +-3/4, +-3/2 and infinity: all constants but those of G are exact in
 * binary, and the error is a third of that of the customary 0, +-1, +-2.  For four inputs: 0, +-1
 * and infinity.  The points do not ask how the inputs are shared among M and R, so B' is the same
 * for F(4, 3) and F(2, 5), and for F(2, 3) and F(3, 2).  F(5, 2) is not here: its error passes
 * 12 eps where a filter has fewer taps than two.
 *
 * S. Winograd, Arithmetic complexity of computations (1980); A. Lavin and S. Gray, Fast algorithms
 * for convolutional neural networks (2016), arXiv 1509.09308; on points: B. Barabasz and others,
 * Error analysis and improving the accuracy of Winograd convolution for deep neural networks
 * (2018), arXiv 1803.10986.
 *
 * In place, and every element `s` apart, so that a tile's rows and columns are lines alike.  The
 * functions are called after their number of inputs; `n` is M or R, the length that they go from
 * or to.
 */
#ifndef CONVCORE_WINOGRAD_LINES_H
#define CONVCORE_WINOGRAD_LINES_H

#include "runtime/vec.h"

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

/* ---- six inputs: points 0, P, -P, Q, -Q, infinity ---- */

#define P 0.75
#define Q 1.5
#define PP (P * P)
#define QQ (Q * Q)
/* The derivative of x (x^2 - PP) (x^2 - QQ) at 0, +-P and +-Q. */
#define AT_0 (PP * QQ)
#define AT_P (2 * PP * (PP - QQ))
#define AT_Q (2 * QQ * (QQ - PP))

INLINE void data_6(vec *d, const int s)
{
    const float p = P, q = Q, pp = PP, qq = QQ, at_0 = AT_0, sum = PP + QQ;
    vec even_p = d[4 * s] - qq * d[2 * s], odd_p = p * (d[3 * s] - qq * d[s]);
    vec even_q = d[4 * s] - pp * d[2 * s], odd_q = q * (d[3 * s] - pp * d[s]);
    d[0] = at_0 * d[0] - sum * d[2 * s] + d[4 * s];
    d[5 * s] = at_0 * d[s] - sum * d[3 * s] + d[5 * s];
    d[s] = even_p + odd_p;
    d[2 * s] = even_p - odd_p;
    d[3 * s] = even_q + odd_q;
    d[4 * s] = even_q - odd_q;
}

/* The values of a polynomial with the `n` coefficients c[0], c[s], ... at the six points. */
#define VALUES_6(type, number, c, s, n)                                                     \
    do {                                                                                    \
        type even_p = c[0], even_q = c[0], odd_p = {0}, odd_q = {0};                        \
        type last = c[((n) - 1) * s];                                                       \
        double p = 1, q = 1;                                                                \
        UNROLLED for (int k = 1; k < (n); k++) {                                            \
            p *= P, q *= Q;                                                                 \
            if (k % 2)                                                                      \
                odd_p += (number)p * c[k * s], odd_q += (number)q * c[k * s];               \
            else                                                                            \
                even_p += (number)p * c[k * s], even_q += (number)q * c[k * s];             \
        }                                                                                   \
        c[s] = even_p + odd_p;                                                              \
        c[2 * s] = even_p - odd_p;                                                          \
        c[3 * s] = even_q + odd_q;                                                          \
        c[4 * s] = even_q - odd_q;                                                          \
        c[5 * s] = last;                                                                    \
    } while (0)

/* G: the values of the filter, each divided by the derivative at its point. */
INLINE void weights_6(wide *w, const int s, const int n)
{
    VALUES_6(wide, double, w, s, n);
    w[0] *= 1 / AT_0;
    w[s] *= 1 / AT_P;
    w[2 * s] *= 1 / AT_P;
    w[3 * s] *= 1 / AT_Q;
    w[4 * s] *= 1 / AT_Q;
}

/* A: the values of the gradients. */
INLINE void gradients_6(vec *g, const int s, const int n)
{
    VALUES_6(vec, float, g, s, n);
}

/* The transpose of values: sums of the six points' products, each times a power of its point. */
INLINE void sums_6(vec *m, const int s, const int n)
{
    vec even_p = m[s] + m[2 * s], odd_p = m[s] - m[2 * s];
    vec even_q = m[3 * s] + m[4 * s], odd_q = m[3 * s] - m[4 * s];
    vec last = m[5 * s];
    double p = 1, q = 1;
    m[0] += even_p + even_q;
    UNROLLED for (int k = 1; k < n; k++) {
        p *= P, q *= Q;
        m[k * s] = k % 2 ? (float)p * odd_p + (float)q * odd_q
                         : (float)p * even_p + (float)q * even_q;
    }
    m[(n - 1) * s] += last;
}

/* A'. */
INLINE void outputs_6(vec *m, const int s, const int n) { sums_6(m, s, n); }

/* G'. */
INLINE void weight_sums_6(vec *m, const int s, const int n)
{
    m[0] *= (float)(1 / AT_0);
    m[s] *= (float)(1 / AT_P);
    m[2 * s] *= (float)(1 / AT_P);
    m[3 * s] *= (float)(1 / AT_Q);
    m[4 * s] *= (float)(1 / AT_Q);
    sums_6(m, s, n);
}

#undef VALUES_6
#undef P
#undef Q
#undef PP
#undef QQ
#undef AT_0
#undef AT_P
#undef AT_Q

/* ---- four inputs: points 0, 1, -1, infinity ---- */

INLINE void data_4(vec *d, const int s)
{
    vec one = d[s], two = d[2 * s];
    d[0] -= two;
    d[s] = one + two;
    d[2 * s] = two - one;
    d[3 * s] -= one;
}

#define VALUES_4(type, c, s, n)                                             \
    do {                                                                    \
        type even = (n) == 3 ? c[0] + c[2 * s] : c[0], odd = c[s];          \
        c[3 * s] = c[((n) - 1) * s];                                        \
        c[s] = even + odd;                                                  \
        c[2 * s] = even - odd;                                              \
    } while (0)

INLINE void weights_4(wide *w, const int s, const int n)
{
    VALUES_4(wide, w, s, n);
    w[s] *= 0.5;
    w[2 * s] *= 0.5;
}

INLINE void gradients_4(vec *g, const int s, const int n) { VALUES_4(vec, g, s, n); }

INLINE void outputs_4(vec *m, const int s, const int n)
{
    vec even = m[s] + m[2 * s], last = m[3 * s];
    m[0] += even;
    m[s] -= m[2 * s];
    m[2 * s] = even;
    m[(n - 1) * s] += last;
}

INLINE void weight_sums_4(vec *m, const int s, const int n)
{
    m[s] *= 0.5f;
    m[2 * s] *= 0.5f;
    outputs_4(m, s, n);
}

#undef VALUES_4

#endif
