/* One step of an optimizer on a run of a parameter's elements, for numbers of type T.
 *
 * arrays[0] is the parameter, arrays[1] its gradient, which is only read; the others are the
 * optimizer's state, as microkernels.h lists it with the settings and flags.  A loop is written
 * once for all flags: they are constants where it is called, so that each case becomes a loop
 * without branches.  ROOT is the type's square root.
 */

#define CASE(rule, n)                                                                           \
    case n:                                                                                     \
        OF(rule##_run)(arrays, start, count, settings, n);                                         \
        break;
#define CASES_4(rule, n) CASE(rule, n) CASE(rule, n + 1) CASE(rule, n + 2) CASE(rule, n + 3)
#define CASES_8(rule, n) CASES_4(rule, n) CASES_4(rule, n + 4)
#define CASES_16(rule, n) CASES_8(rule, n) CASES_8(rule, n + 8)

#define STEP(rule, cases)                                                                       \
    static void OF(rule)(void *const *arrays, ptrdiff_t start, ptrdiff_t count,                 \
                         const double *settings, int flags)                                        \
    {                                                                                           \
        switch (flags) { cases(rule, 0) }                                                       \
    }

#define RUN(rule)                                                                               \
    INLINE void OF(rule##_run)(void *const *arrays, ptrdiff_t start, ptrdiff_t count,           \
                               const double *settings, const int flags)

/* The i-th of `arrays` where the run begins. */
#define FROM(i) ((T *)arrays[i] + start)

/* g = sign gradient + decay p: where all rules start. */
#define DIRECTION(i)                                                                            \
    (flags & CONVCORE_DECAYS ? sign * grads[i] + decay * values[i] : sign * grads[i])

/* b = momentum b + share g, or g at first; p -= lr b, or lr (g + momentum b). */
RUN(sgd)
{
    T *values = FROM(0), *velocities = flags & CONVCORE_VELOCITY ? FROM(2) : NULL;
    const T *grads = FROM(1);
    const T sign = settings[0], decay = settings[1], lr = settings[2], momentum = settings[3];
    const T share = settings[4];
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T g = DIRECTION(i);
        if (flags & CONVCORE_VELOCITY) {
            const T b = flags & CONVCORE_FIRST ? g : momentum * velocities[i] + share * g;
            velocities[i] = b;
            g = flags & CONVCORE_NESTEROV ? g + momentum * b : b;
        }
        values[i] -= lr * g;
    }
}
STEP(sgd, CASES_16)

/* m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g g; w = max(w, v) with amsgrad, else v;
 * p = keep p - rate m / (sqrt(w) / root + eps). */
RUN(adam)
{
    T *values = FROM(0), *means = FROM(2), *squares = FROM(3);
    T *largest = flags & CONVCORE_AMSGRAD ? FROM(4) : NULL;
    const T *grads = FROM(1);
    const T sign = settings[0], decay = settings[1], keep = settings[2], rate = settings[3];
    const T fresh_mean = settings[4], old_square = settings[5], fresh_square = settings[6];
    const T root = settings[7], eps = settings[8];
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        const T g = DIRECTION(i);
        const T m = means[i] + fresh_mean * (g - means[i]);
        T v = old_square * squares[i] + fresh_square * g * g;
        means[i] = m;
        squares[i] = v;
        if (flags & CONVCORE_AMSGRAD) {
            v = largest[i] > v ? largest[i] : v;
            largest[i] = v;
        }
        values[i] = keep * values[i] - rate * m / (ROOT(v) / root + eps);
    }
}
STEP(adam, CASES_4)

/* v = alpha v + (1 - alpha) g g; if centered, m += (1 - alpha) (g - m) and v - m m stands for v;
 * g = g / (sqrt(v) + eps); with momentum b = momentum b + g stands for g; p -= lr g. */
RUN(rmsprop)
{
    T *values = FROM(0), *squares = FROM(2);
    T *means = flags & CONVCORE_CENTERED ? FROM(3) : NULL;
    T *velocities = flags & CONVCORE_MOMENTUM ? FROM(flags & CONVCORE_CENTERED ? 4 : 3) : NULL;
    const T *grads = FROM(1);
    const T sign = settings[0], decay = settings[1], lr = settings[2], momentum = settings[3];
    const T alpha = settings[4], fresh = settings[5], eps = settings[6];
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T g = DIRECTION(i), v = alpha * squares[i] + fresh * g * g;
        squares[i] = v;
        if (flags & CONVCORE_CENTERED) {
            const T m = means[i] + fresh * (g - means[i]);
            means[i] = m;
            v -= m * m;
        }
        g /= ROOT(v) + eps;
        if (flags & CONVCORE_MOMENTUM) {
            g += momentum * velocities[i];
            velocities[i] = g;
        }
        values[i] -= lr * g;
    }
}
STEP(rmsprop, CASES_8)

#undef CASE
#undef CASES_4
#undef CASES_8
#undef CASES_16
#undef STEP
#undef RUN
#undef FROM
#undef DIRECTION
