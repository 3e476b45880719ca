/* The exponential function and its relatives, for numbers of type T, without branches.
 *
 * exp(x) = 2^n exp(r), |r| <= log(2) / 2: a polynomial (of floats, that of the least largest error;
 * of doubles, Taylor's), and a power of two that is put together as bits.  A number t = n + MAGIC
 * has n in its last bits.  Errors, in units of the last place, over all
 * exponents: tests/engine/layers/test_elementwise.py.
 */

/* 2^n of t = n + MAGIC, n from -126 (-1022) to 127 (1023). */
INLINE T OF(power)(T t)
{
    BITS bits;
    memcpy(&bits, &t, sizeof t);
    bits = (bits << MANTISSA) + ONE;
    memcpy(&t, &bits, sizeof t);
    return t;
}

INLINE T OF(signed_as)(T magnitude, T sign)
{
    BITS bits, of;
    memcpy(&bits, &magnitude, sizeof bits);
    memcpy(&of, &sign, sizeof of);
    bits |= of & SIGN;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude;
}

INLINE T OF(absolute)(T x)
{
    return x < 0 ? -x : x;
}

/* exp(r) - 1 of |r| <= log(2) / 2. */
INLINE T OF(series)(T r)
{
#if MANTISSA == 23
    T p = (T)0.001395053522;
    p = p * r + (T)0.008368917818;
    p = p * r + (T)0.04166620516;
    p = p * r + (T)0.1666651860;
#else
    T p = (T)(1.0 / 87178291200);
    p = p * r + (T)(1.0 / 6227020800);
    p = p * r + (T)(1.0 / 479001600);
    p = p * r + (T)(1.0 / 39916800);
    p = p * r + (T)(1.0 / 3628800);
    p = p * r + (T)(1.0 / 362880);
    p = p * r + (T)(1.0 / 40320);
    p = p * r + (T)(1.0 / 5040);
    p = p * r + (T)(1.0 / 720);
    p = p * r + (T)(1.0 / 120);
    p = p * r + (T)(1.0 / 24);
    p = p * r + (T)(1.0 / 6);
#endif
    p = p * r + (T)0.5;
    return r + r * r * p;
}

/* Return t = n + MAGIC, and r = x - n log(2) in `rest`. */
INLINE T OF(reduced)(T x, T *rest)
{
    const T t = x * (T)1.4426950408889634 + MAGIC, n = t - MAGIC;
    *rest = (x - n * LOG2_HIGH) - n * LOG2_LOW;
    return t;
}

INLINE T OF(exponential)(T x)
{
    T r;
    x = x < EXP_LEAST ? EXP_LEAST : x;
    x = x > EXP_MOST ? EXP_MOST : x;
    const T n = OF(reduced)(x, &r) - MAGIC;
    /* In two steps, each of which has a power that is a number. */
    const T half = n * (T)0.5 + MAGIC;
    return (1 + OF(series)(r)) * OF(power)(half) * OF(power)(n - (half - MAGIC) + MAGIC);
}

/* exp(x) of x up to 0: the first of the two steps is 2^HALF too large, and so a number. */
INLINE T OF(decay)(T x)
{
    T r;
    x = x < EXP_LEAST ? EXP_LEAST : x;
    const T t = OF(reduced)(x, &r);
    return (1 + OF(series)(r)) * OF(power)(t + HALF) * POWER_OF_LESS_HALF;
}

/* exp(x) of x up to 0, and 0 where that is less than the least normal number, which some processors
 * compute with a hundred times as slowly. */
INLINE T OF(cut_decay)(T x)
{
    T r;
    const T clamped = x < DECAY_LEAST ? DECAY_LEAST : x;
    const T t = OF(reduced)(clamped, &r), e = (1 + OF(series)(r)) * OF(power)(t);
    return x < DECAY_LEAST ? 0 : e;
}

/* exp(x) - 1 of x up to 80 (700). */
INLINE T OF(exponential_less_1)(T x)
{
    T r;
    x = x < EXPM1_LEAST ? EXPM1_LEAST : x;
    const T t = OF(reduced)(x, &r), scale = OF(power)(t);
    return (scale - 1) + scale * OF(series)(r);
}

INLINE T OF(logistic)(T x)
{
    const T e = OF(decay)(x > 0 ? -x : x), over = 1 / (1 + e);
    return x > 0 ? over : e * over;
}

INLINE T OF(hyperbolic)(T x)
{
    T twice = 2 * OF(absolute)(x);
    twice = twice > 40 ? 40 : twice;
    const T e = OF(exponential_less_1)(twice);
    return OF(signed_as)(e / (e + 2), x);
}

/* log(1 + u) of u from 0 to 1: twice the artanh of u / (2 + u), as a series. */
INLINE T OF(log_1_more)(T u)
{
    const T s = u / (2 + u), q = s * s;
    T p = (T)(1.0 / 17);
    if (sizeof(T) == 8) {
        p = (T)(1.0 / 35);
        p = p * q + (T)(1.0 / 33);
        p = p * q + (T)(1.0 / 31);
        p = p * q + (T)(1.0 / 29);
        p = p * q + (T)(1.0 / 27);
        p = p * q + (T)(1.0 / 25);
        p = p * q + (T)(1.0 / 23);
        p = p * q + (T)(1.0 / 21);
        p = p * q + (T)(1.0 / 19);
        p = p * q + (T)(1.0 / 17);
    }
    p = p * q + (T)(1.0 / 15);
    p = p * q + (T)(1.0 / 13);
    p = p * q + (T)(1.0 / 11);
    p = p * q + (T)(1.0 / 9);
    p = p * q + (T)(1.0 / 7);
    p = p * q + (T)(1.0 / 5);
    p = p * q + (T)(1.0 / 3);
    return 2 * (s + s * q * p);
}

#if MANTISSA == 23
/* The normal distribution's P(X > a), a from 0 on, of floats' precision, where `density` is
 * exp(-a^2 / 2): t p(t) times that, t = 1 / (1 + 0.29 a), p the polynomial of the least largest
 * relative error (1.1e-8) for a up to 6. */
INLINE T OF(upper_tail)(T a, T density)
{
    const T t = 1 / (1 + (T)0.29 * a);
    T p = (T)0.03949936107;
    p = p * t + (T)-0.1930861324;
    p = p * t + (T)0.3051882684;
    p = p * t + (T)-0.1480562538;
    p = p * t + (T)0.1816940456;
    p = p * t + (T)0.07954536378;
    p = p * t + (T)0.1197964102;
    p = p * t + (T)0.1154189706;
    return t * p * density;
}
#endif
