/* The exponential function and its relatives, for numbers of type T, without branches.
 *
 * exp(x) = 2^n exp(r), |r| <= log(2) / 2: Taylor's series, and a power of two that is put together as
 * bits.  A number t = n + MAGIC has n in its last bits.  Errors, in units of the last place, over all
 * exponents: tests/test_elementwise_kernels.py.
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
    T p = (T)(1.0 / 40320);
    if (sizeof(T) == 8) {
        p = (T)(1.0 / 87178291200);
        p = p * r + (T)(1.0 / 6227020800);
        p = p * r + (T)(1.0 / 479001600);
        p = p * r + (T)(1.0 / 39916800);
        p = p * r + (T)(1.0 / 3628800);
        p = p * r + (T)(1.0 / 362880);
        p = p * r + (T)(1.0 / 40320);
    }
    p = p * r + (T)(1.0 / 5040);
    p = p * r + (T)(1.0 / 720);
    p = p * r + (T)(1.0 / 120);
    p = p * r + (T)(1.0 / 24);
    p = p * r + (T)(1.0 / 6);
    p = p * r + (T)0.5;
    return r + r * r * p;
}

/* Return n as a whole number, and r = x - n log(2) in `rest`. */
INLINE T OF(reduced)(T x, T *rest)
{
    const T n = (x * (T)1.4426950408889634 + MAGIC) - MAGIC;
    *rest = (x - n * LOG2_HIGH) - n * LOG2_LOW;
    return n;
}

INLINE T OF(exponential)(T x)
{
    T r;
    x = x < EXP_LEAST ? EXP_LEAST : x;
    x = x > EXP_MOST ? EXP_MOST : x;
    const T n = OF(reduced)(x, &r);
    /* In two steps, each of which has a power that is a number. */
    const T half = (n * (T)0.5 + MAGIC) - MAGIC;
    return (1 + OF(series)(r)) * OF(power)(half + MAGIC) * OF(power)(n - half + MAGIC);
}

/* exp(x) - 1 of x up to 80 (700). */
INLINE T OF(exponential_less_1)(T x)
{
    T r;
    x = x < EXPM1_LEAST ? EXPM1_LEAST : x;
    const T n = OF(reduced)(x, &r), scale = OF(power)(n + MAGIC);
    return (scale - 1) + scale * OF(series)(r);
}

INLINE T OF(logistic)(T x)
{
    const T e = OF(exponential)(x > 0 ? -x : x), over = 1 / (1 + e);
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
/* erf(a) = 1 - exp(-a p(a)), of floats' precision: p interpolates -log(1 - erf(a)) / a between 0 and
 * 4 in 14 Chebyshev points; beyond, 1 is the nearest float. */
INLINE T OF(error_function)(T x)
{
    T a = OF(absolute)(x);
    a = a > 4 ? 4 : a;
    const T t = a * (T)0.5 - 1;
    T p = (T)-1.014064485e-05;
    p = p * t + (T)7.877852957e-06;
    p = p * t + (T)5.236288873e-05;
    p = p * t + (T)-0.000125482383;
    p = p * t + (T)0.0001765319555;
    p = p * t + (T)-0.000218235212;
    p = p * t + (T)-8.048334415e-06;
    p = p * t + (T)0.001329427738;
    p = p * t + (T)-0.005667171986;
    p = p * t + (T)0.01738621821;
    p = p * t + (T)-0.04595100137;
    p = p * t + (T)0.1118114324;
    p = p * t + (T)1.735690173;
    p = p * t + (T)2.682470633;
    return OF(signed_as)(-OF(exponential_less_1)(-a * p), x);
}
#endif
