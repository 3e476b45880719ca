/* Functions of each element, and their gradients, for numbers of type T.
 *
 * Plain loops without branches, which compilers vectorise.  The result may take the argument's place.
 * Included once a type: OF(name) is what a function is called for it.
 */

#define FORWARD(name, value)                                                                    \
    static void OF(name)(const void *from, ptrdiff_t count, const double *terms, void *to)      \
    {                                                                                           \
        const T *px = from;                                                            \
        T *py = to;                                                                             \
        const T a = (T)terms[0], b = (T)terms[1], c = (T)terms[2];                              \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                     \
            const T x = px[i];                                                                  \
            py[i] = value;                                                                      \
        }                                                                                       \
        (void)a, (void)b, (void)c;                                                              \
    }

/* In `value`, g is the result's gradient, and x what was kept. */
#define GRADIENT(name, value)                                                                   \
    static void OF(name)(const void *grad, const void *kept, ptrdiff_t count,                   \
                         const double *terms, void *to)                                         \
    {                                                                                           \
        const T *pg = grad;                                                            \
        const T *px = kept;                                                            \
        T *py = to;                                                                             \
        const T a = (T)terms[0], b = (T)terms[1], c = (T)terms[2];                              \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                     \
            const T g = pg[i], x = px[i];                                                       \
            py[i] = value;                                                                      \
        }                                                                                       \
        (void)a, (void)b, (void)c;                                                              \
    }

/* A NaN passes, and lets its gradient pass, for no comparison with it holds. */
FORWARD(relu, x < 0 ? 0 : x)
GRADIENT(relu_gradient, x == 0 ? 0 : g)

/* Between a and b; the result is kept. */
INLINE T OF(clamped)(T x, T low, T high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}
FORWARD(clamp, OF(clamped)(x, a, b))
GRADIENT(clamp_gradient, (x <= a) | (x >= b) ? 0 : g)

FORWARD(leaky, x > 0 ? x : x * a)
GRADIENT(leaky_gradient, x > 0 ? g : g * a)

FORWARD(hardsigmoid, OF(clamped)(x + 3, 0, 6) / 6)
GRADIENT(hardsigmoid_gradient, (x > -3) & (x < 3) ? g / 6 : 0)

FORWARD(hardswish, x * (OF(clamped)(x + 3, 0, 6) / 6))
GRADIENT(hardswish_gradient, (x > -3) & (x < 3) ? g * (x / 3 + (T)0.5) : x >= 3 ? g : 0)

/* The result is kept. */
FORWARD(sigmoid, OF(logistic)(x))
GRADIENT(sigmoid_gradient, g * (x * (1 - x)))
FORWARD(tanh, OF(hyperbolic)(x))
GRADIENT(tanh_gradient, g * (1 - x * x))

INLINE T OF(silu_slope)(T x)
{
    const T s = OF(logistic)(x);
    return s * (1 + x * (1 - s));
}
FORWARD(silu, x * OF(logistic)(x))
GRADIENT(silu_gradient, g * OF(silu_slope)(x))

/* x b above 0, (exp(x c) - 1) a below. */
FORWARD(elu, x > 0 ? x * b : OF(exponential_less_1)((x > 0 ? 0 : x) * c) * a)
GRADIENT(elu_gradient, x > 0 ? g * b : g * OF(exponential)((x > 0 ? 0 : x) * c) * (a * c))

/* log(1 + exp(x a)) / a, and x where x a is above b. */
INLINE T OF(soft)(T z)
{
    return (z > 0 ? z : 0) + OF(log_1_more)(OF(decay)(z > 0 ? -z : z));
}
FORWARD(softplus, x * a > b ? x : OF(soft)(x * a) / a)
GRADIENT(softplus_gradient, x * a > b ? g : g * OF(logistic)(x * a))

FORWARD(logsigmoid, -OF(soft)(-x))
GRADIENT(logsigmoid_gradient, g * OF(logistic)(-x))

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
FORWARD(mish, x * OF(tanh_of_soft)(x))
GRADIENT(mish_gradient, g * OF(mish_slope)(x, OF(tanh_of_soft)(x)))

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
FORWARD(gelu, x * OF(normal)(x, OF(bell)(x)))
GRADIENT(gelu_gradient, g * OF(gelu_slope)(x, OF(bell)(x)))
#endif

/* a = sqrt(2 / pi) */
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
FORWARD(gelu_tanh, OF(tanh_gelu)(x, a))
GRADIENT(gelu_tanh_gradient, g * OF(tanh_gelu_slope)(x, a))

/* Of two arrays, or of one and a number. */
GRADIENT(sum_of_two, g + x)
FORWARD(sum_with, a + x)
GRADIENT(product_of_two, g * x)
FORWARD(product_with, a * x)

/* Of an argument, and the slope where it is negative; and what its gradient is multiplied by. */
GRADIENT(prelu_of_two, x > 0 ? x : g * x)
FORWARD(prelu_with, x > 0 ? x : a * x)
GRADIENT(prelu_slope_of_two, x > 0 ? 1 : g)
FORWARD(prelu_slope_with, x > 0 ? 1 : a)

/* b d^2 / 2 of d = x - g, a straight line from |d| = a on; and its derivative. */
INLINE T OF(huber_value)(T size, T most)
{
    return size > most ? most * (size - (T)0.5 * most) : (T)0.5 * size * size;
}
GRADIENT(huber_of_two, b * OF(huber_value)(OF(absolute)(x - g), a))
GRADIENT(huber_slope_of_two, b * OF(clamped)(x - g, -a, a))

#undef FORWARD
#undef GRADIENT
