/* The loops of the ops in ops.h, for numbers of type T.
 *
 * Plain loops without branches, which compilers vectorise.  The result may take an argument's place.
 * Included once a type: OF(name) is what a function is called for it.
 */

#define SQRT_2_OVER_PI 0.7978845608028654

INLINE T OF(clamped)(T x, T low, T high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

INLINE T OF(silu_slope)(T x)
{
    const T s = OF(logistic)(x);
    return s * (1 + x * (1 - s));
}

/* log(1 + exp(z)) */
INLINE T OF(soft)(T z)
{
    return (z > 0 ? z : 0) + OF(log_1_more)(OF(decay)(z > 0 ? -z : z));
}

/* tanh(log(1 + e)) = n / (n + 2) of n = e (e + 2), e = exp(x); beyond 20 it is 1. */
INLINE T OF(tanh_of_soft)(T x)
{
    const T e = OF(exponential)(x > 20 ? 20 : x), n = e * (e + 2);
    return n / (n + 2);
}
INLINE T OF(mish_slope)(T x, T t)
{
    return t + x * OF(logistic)(x) * (1 - t * t);
}

#if MANTISSA == 23
INLINE T OF(normal)(T x, T density)
{
    const T tail = OF(upper_tail)(OF(absolute)(x), density);
    return x > 0 ? 1 - tail : tail;
}
INLINE T OF(bell)(T x)
{
    return OF(decay)(x * x * (T)-0.5);
}
INLINE T OF(gelu_slope)(T x, T density)
{
    return OF(normal)(x, density) + x * density * (T)0.3989422804014327;
}
#endif

INLINE T OF(tanh_gelu)(T x, T root)
{
    return (T)0.5 * x * (1 + OF(hyperbolic)(root * x * (1 + (T)0.044715 * x * x)));
}
INLINE T OF(tanh_gelu_slope)(T x, T root)
{
    const T high = OF(hyperbolic)(root * x * (1 + (T)0.044715 * x * x));
    const T inner = root * (1 + (T)(3 * 0.044715) * x * x);
    return (T)0.5 * (1 + high + x * (1 - high * high) * inner);
}

INLINE T OF(huber_value)(T size, T most)
{
    return size > most ? most * (size - (T)0.5 * most) : (T)0.5 * size * size;
}

/* Of one array; g is the number that may take a second array's place. */
#define FORWARD(name, value)                                                                    \
    static void OF(forward_##name)(const void *from, ptrdiff_t count, const double *params,     \
                                   void *to)                                                    \
    {                                                                                           \
        const T *px = from;                                                                     \
        T *py = to;                                                                             \
        const T a = (T)params[0], b = (T)params[1], c = (T)params[2], g = a;                    \
        IVDEP for (ptrdiff_t i = 0; i < count; i++) {                                     \
            const T x = px[i];                                                                  \
            py[i] = value;                                                                      \
        }                                                                                       \
        (void)a, (void)b, (void)c, (void)g;                                                     \
    }

/* Of two arrays: a gradient and what is saved, or two operands. */
#define GRADIENT(name, value)                                                                   \
    static void OF(gradient_##name)(const void *grad, const void *saved, ptrdiff_t count,       \
                                    const double *params, void *to)                             \
    {                                                                                           \
        const T *pg = grad;                                                                     \
        const T *px = saved;                                                                    \
        T *py = to;                                                                             \
        const T a = (T)params[0], b = (T)params[1], c = (T)params[2];                           \
        IVDEP for (ptrdiff_t i = 0; i < count; i++) {                                     \
            const T g = pg[i], x = px[i];                                                       \
            py[i] = value;                                                                      \
        }                                                                                       \
        (void)a, (void)b, (void)c;                                                              \
    }

#define UNARY(name, saved, params, cost, value, gradient)                                       \
    FORWARD(name, value)                                                                        \
    GRADIENT(name, gradient)
#if MANTISSA == 23
#define UNARY_FLOAT UNARY
#else
#define UNARY_FLOAT(...)
#endif
#define BINARY(name, cost, value)                                                               \
    FORWARD(name, value)                                                                        \
    GRADIENT(name, value)
#define PAIR(name, params, cost, value) GRADIENT(name, value)
#include "ops.h"

#undef FORWARD
#undef GRADIENT
#undef SQRT_2_OVER_PI
