/* Batch, group, instance and layer norm, for numbers of type T; the formulas are in microkernels.h.
 *
 * Sums are of doubles, but for gradients, of which a few vectors are added in T before.  Moments
 * are taken about a shift K that is an element of what is summed.  Then (mean - K)^2 <= n variance,
 * and the error of the variance is at most some n 2^-53 of it, times the length of the longest
 * chain of sums, whatever the numbers.
 *
 * T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample variance", The
 * American Statistician 37 (1983), section 3.
 */

/* Vectors of doubles of a strip: their sums, with what is added to them, stay in registers. */
#undef STRIP
#define STRIP (REGISTERS / 8)

/* Pixels whose channels are read side by side. */
#undef SIDE
#define SIDE 8

/* Lanes of g where y is strictly inside the clamp, or a NaN, and zeros elsewhere. */
#undef LET_PASS
#if LANES > 1
#define LET_PASS(g, y, low, high) \
    (LINE)((LINE_NUMBERS)(g) & ~((LINE_NUMBERS)((y) <= (low)) | (LINE_NUMBERS)((y) >= (high))))
#else
#define LET_PASS(g, y, low, high) (((y) <= (low)) | ((y) >= (high)) ? 0 : (g))
#endif

/* ---- moments ---- */

/* Add R rows of V vectors, `pitch` apart. */
INLINE void OF(add_moments)(const int R, const int V, const T *x, ptrdiff_t pitch, const wide *k,
                            wide *s, wide *q)
{
    UNROLLED for (int r = 0; r < R; r++)
        UNROLLED for (int v = 0; v < V; v++) {
            wide d = OF(wide_of)(x + r * pitch + v * WIDE_LANES) - k[v];
            s[v] += d;
            q[v] += d * d;
        }
}

static void OF(moments_nchw)(const void *from, ptrdiff_t count, ptrdiff_t planes, ptrdiff_t step,
                             double shift, double *sums)
{
    wide k[STRIP], s[STRIP], q[STRIP];
    double sum = 0, squares = 0;
    UNROLLED for (int v = 0; v < STRIP; v++)
        k[v] = broadcast_wide(shift), s[v] = q[v] = broadcast_wide(0);
    for (ptrdiff_t r = 0; r < planes; r++) {
        const T *x = (const T *)from + r * step;
        ptrdiff_t i = 0;
        for (; i + STRIP * WIDE_LANES <= count; i += STRIP * WIDE_LANES)
            OF(add_moments)(1, STRIP, x + i, 0, k, s, q);
        UNROLLED for (int v = 0; v < STRIP - 1; v++)
            if (i + WIDE_LANES <= count) {
                OF(add_moments)(1, 1, x + i, 0, k, s + v, q + v);
                i += WIDE_LANES;
            }
        for (; i < count; i++) {
            double d = x[i] - shift;
            sum += d;
            squares += d * d;
        }
    }
    UNROLLED for (int v = 1; v < STRIP; v++) s[0] += s[v], q[0] += q[v];
    sums[0] += sum_of_wide(s[0]) + sum;
    sums[1] += sum_of_wide(q[0]) + squares;
}

INLINE void OF(moments_strip)(const int R, const int V, const T *x, ptrdiff_t pitch,
                              const double *shift, double *sum, double *squares)
{
    wide k[STRIP], s[STRIP], q[STRIP];
    UNROLLED for (int v = 0; v < V; v++) {
        k[v] = load_wide(shift + v * WIDE_LANES);
        s[v] = load_wide(sum + v * WIDE_LANES);
        q[v] = load_wide(squares + v * WIDE_LANES);
    }
    OF(add_moments)(R, V, x, pitch, k, s, q);
    UNROLLED for (int v = 0; v < V; v++) {
        store_wide(sum + v * WIDE_LANES, s[v]);
        store_wide(squares + v * WIDE_LANES, q[v]);
    }
}

INLINE void OF(moments_rows)(const int R, const T *x, ptrdiff_t channels, const double *shift,
                             double *sum, double *squares)
{
    ptrdiff_t c = 0;
    for (; c + STRIP * WIDE_LANES <= channels; c += STRIP * WIDE_LANES)
        OF(moments_strip)(R, STRIP, x + c, channels, shift + c, sum + c, squares + c);
    for (; c + WIDE_LANES <= channels; c += WIDE_LANES)
        OF(moments_strip)(R, 1, x + c, channels, shift + c, sum + c, squares + c);
    for (; c < channels; c++)
        for (int r = 0; r < R; r++) {
            double d = x[r * channels + c] - shift[c];
            sum[c] += d;
            squares[c] += d * d;
        }
}

static void OF(moments_nhwc)(const void *from, ptrdiff_t pixels, ptrdiff_t channels,
                             const double *shift, double *sums, ptrdiff_t row)
{
    const T *x = from;
    ptrdiff_t p = 0;
    for (; p + SIDE <= pixels; p += SIDE)
        OF(moments_rows)(SIDE, x + p * channels, channels, shift, sums, sums + row);
    for (; p < pixels; p++)
        OF(moments_rows)(1, x + p * channels, channels, shift, sums, sums + row);
}

/* ---- the result ---- */

/* One element's parameter: its own where there is one for `each`, else the same for all. */
#undef PARAMETER
#define PARAMETER(name) (each ? name[i] : name##_of_all)

INLINE void OF(forward_span)(const int each, const int clamped, const int more, const T *x,
                             const T *residual, ptrdiff_t count, const convcore_norm_parameters *t,
                             T *y)
{
    const T *mean = t->mean, *scale = t->scale, *bias = t->bias;
    const T mean_of_all = mean[0], scale_of_all = scale[0], bias_of_all = bias[0];
    const T low = (T)t->low, high = (T)t->high;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T z = (x[i] - PARAMETER(mean)) * PARAMETER(scale) + PARAMETER(bias);
        if (more) z += residual[i];
        if (clamped) {
            z = z < low ? low : z;
            z = z > high ? high : z;
        }
        y[i] = z;
    }
}

/* Planes, or rows of channels, of `count` elements, `step` apart. */
INLINE void OF(forward_any)(const int each, const void *x, const void *residual, ptrdiff_t count,
                            ptrdiff_t planes, ptrdiff_t step, const convcore_norm_parameters *t,
                            void *y)
{
    const int clamped = t->activation != CONVCORE_LINEAR;
    for (ptrdiff_t r = 0; r < planes; r++) {
        const T *from = (const T *)x + r * step;
        const T *more = residual ? (const T *)residual + r * step : NULL;
        T *to = (T *)y + r * step;
        if (more && clamped) OF(forward_span)(each, 1, 1, from, more, count, t, to);
        else if (more) OF(forward_span)(each, 0, 1, from, more, count, t, to);
        else if (clamped) OF(forward_span)(each, 1, 0, from, more, count, t, to);
        else OF(forward_span)(each, 0, 0, from, more, count, t, to);
    }
}

static void OF(forward_nchw)(const void *x, const void *residual, ptrdiff_t count, ptrdiff_t planes,
                             ptrdiff_t step, const convcore_norm_parameters *t, void *y)
{
    OF(forward_any)(0, x, residual, count, planes, step, t, y);
}

static void OF(forward_nhwc)(const void *x, const void *residual, ptrdiff_t pixels,
                             ptrdiff_t channels, const convcore_norm_parameters *t, void *y)
{
    OF(forward_any)(1, x, residual, channels, pixels, channels, t, y);
}

/* ---- sums of gradients ---- */

/* Sums of a few vectors are made in T, and only then in doubles. */
#undef CHAIN
#define CHAIN 8

/* The arrays that are walked side by side. */
#undef POINTERS
#define POINTERS const T *gy, const T *x, const T *y, T *masked
#undef MOVED
#define MOVED(by) gy + (by), x + (by), y ? y + (by) : y, masked ? masked + (by) : masked

INLINE void OF(add_gradients)(const int activation, POINTERS, LINE m, LINE a, LINE b, LINE low,
                              LINE high, LINE *s, LINE *q)
{
    LINE g = LOAD(gy), d = LOAD(x) - m;
    if (activation == CONVCORE_FROM_INPUT) g = LET_PASS(g, d * a + b, low, high);
    if (activation == CONVCORE_FROM_RESULT) {
        LINE result = LOAD(y);
        g = LET_PASS(g, result, low, high);
        STORE(masked, g);
    }
    *s += g;
    *q += g * d;
}

INLINE void OF(add_one_gradient)(const int activation, POINTERS, T m, T a, T b, T low, T high,
                                 double *s, double *q)
{
    T g = *gy, d = *x - m;
    T result = activation == CONVCORE_FROM_INPUT ? d * a + b : activation ? *y : 0;
    if (activation) g = (result <= low) | (result >= high) ? 0 : g;
    if (activation == CONVCORE_FROM_RESULT) *masked = g;
    *s += g;
    *q += (double)g * d;
}

/* Add sums in T to those in doubles, and begin anew. */
INLINE void OF(pour)(LINE *v, double *sums)
{
    T lanes[LINE_LANES];
    STORE(lanes, *v);
    UNROLLED for (int i = 0; i < LINE_LANES; i += WIDE_LANES)
        store_wide(sums + i, load_wide(sums + i) + OF(wide_of)(lanes + i));
    *v = SPREAD(0);
}

INLINE void OF(gradient_planes)(const int activation, const T *gys, const T *xs, const T *ys,
                                T *all_masked, ptrdiff_t count, ptrdiff_t planes, ptrdiff_t step,
                                const convcore_norm_parameters *t, double *sums)
{
    const T m = *(const T *)t->mean, a = *(const T *)t->scale, b = *(const T *)t->bias;
    const T low = (T)t->low, high = (T)t->high;
    const LINE M = SPREAD(m), A = SPREAD(a), B = SPREAD(b), L = SPREAD(low), H = SPREAD(high);
    double of_lanes[2][LINE_LANES] = {{0}};
    double sum = 0, products = 0;
    int used = 0;
    LINE s[4], q[4];
    UNROLLED for (int v = 0; v < 4; v++) s[v] = q[v] = SPREAD(0);
    for (ptrdiff_t r = 0; r < planes; r++) {
        const T *gy = gys + r * step, *x = xs + r * step, *y = ys ? ys + r * step : NULL;
        T *masked = all_masked ? all_masked + r * step : NULL;
        ptrdiff_t i = 0;
        for (int whole = 1; whole;) {
            whole = i + 4 * LINE_LANES <= count;
            UNROLLED for (int v = 0; v < 4; v++)
                if (whole || (v < 3 && i + LINE_LANES <= count)) {
                    OF(add_gradients)(activation, MOVED(i), M, A, B, L, H, s + v, q + v);
                    i += LINE_LANES;
                }
            if (++used == CHAIN) {
                UNROLLED for (int v = 0; v < 4; v++)
                    OF(pour)(s + v, of_lanes[0]), OF(pour)(q + v, of_lanes[1]);
                used = 0;
            }
        }
        for (; i < count; i++)
            OF(add_one_gradient)(activation, MOVED(i), m, a, b, low, high, &sum, &products);
    }
    UNROLLED for (int v = 0; v < 4; v++)
        OF(pour)(s + v, of_lanes[0]), OF(pour)(q + v, of_lanes[1]);
    for (int i = 0; i < LINE_LANES; i++) sum += of_lanes[0][i], products += of_lanes[1][i];
    sums[0] += sum;
    sums[1] += products;
}

static void OF(gradient_sums_nchw)(const void *gy, const void *x, const void *y, ptrdiff_t count,
                                   ptrdiff_t planes, ptrdiff_t step,
                                   const convcore_norm_parameters *t, void *masked, double *sums)
{
    switch (t->activation) {
    case CONVCORE_LINEAR:
        OF(gradient_planes)(CONVCORE_LINEAR, gy, x, NULL, NULL, count, planes, step, t, sums);
        break;
    case CONVCORE_FROM_INPUT:
        OF(gradient_planes)(CONVCORE_FROM_INPUT, gy, x, NULL, NULL, count, planes, step, t, sums);
        break;
    case CONVCORE_FROM_RESULT:
        OF(gradient_planes)(CONVCORE_FROM_RESULT, gy, x, y, masked, count, planes, step, t, sums);
        break;
    }
}

INLINE void OF(gradient_strip)(const int activation, const int R, const int V, POINTERS,
                               ptrdiff_t pitch, const convcore_norm_parameters *t, ptrdiff_t c,
                               double *sum, double *products)
{
    const T *mean = t->mean, *scale = t->scale, *bias = t->bias;
    LINE m[STRIP], a[STRIP], b[STRIP], s[STRIP], q[STRIP];
    UNROLLED for (int v = 0; v < V; v++) {
        m[v] = LOAD(mean + c + v * LINE_LANES);
        a[v] = LOAD(scale + c + v * LINE_LANES);
        b[v] = LOAD(bias + c + v * LINE_LANES);
        s[v] = q[v] = SPREAD(0);
    }
    UNROLLED for (int r = 0; r < R; r++)
        UNROLLED for (int v = 0; v < V; v++)
            OF(add_gradients)(activation, MOVED(r * pitch + c + v * LINE_LANES), m[v], a[v], b[v],
                              SPREAD((T)t->low), SPREAD((T)t->high), s + v, q + v);
    UNROLLED for (int v = 0; v < V; v++) {
        OF(pour)(s + v, sum + c + v * LINE_LANES);
        OF(pour)(q + v, products + c + v * LINE_LANES);
    }
}

INLINE void OF(gradient_rows)(const int activation, const int R, POINTERS, ptrdiff_t channels,
                              const convcore_norm_parameters *t, double *sum, double *products)
{
    const T *mean = t->mean, *scale = t->scale, *bias = t->bias;
    ptrdiff_t c = 0;
    for (; c + STRIP * LINE_LANES <= channels; c += STRIP * LINE_LANES)
        OF(gradient_strip)(activation, R, STRIP, MOVED(0), channels, t, c, sum, products);
    for (; c + LINE_LANES <= channels; c += LINE_LANES)
        OF(gradient_strip)(activation, R, 1, MOVED(0), channels, t, c, sum, products);
    for (; c < channels; c++)
        for (int r = 0; r < R; r++)
            OF(add_one_gradient)(activation, MOVED(r * channels + c), mean[c], scale[c], bias[c],
                                 (T)t->low, (T)t->high, sum + c, products + c);
}

INLINE void OF(gradient_sums_any)(const int activation, POINTERS, ptrdiff_t pixels,
                                  ptrdiff_t channels, const convcore_norm_parameters *t,
                                  double *sums, ptrdiff_t row)
{
    ptrdiff_t p = 0;
    for (; p + SIDE <= pixels; p += SIDE)
        OF(gradient_rows)(activation, SIDE, MOVED(p * channels), channels, t, sums,
                          sums + row);
    for (; p < pixels; p++)
        OF(gradient_rows)(activation, 1, MOVED(p * channels), channels, t, sums,
                          sums + row);
}

static void OF(gradient_sums_nhwc)(const void *gy, const void *x, const void *y, ptrdiff_t pixels,
                                   ptrdiff_t channels, const convcore_norm_parameters *t,
                                   void *masked, double *sums, ptrdiff_t row)
{
    switch (t->activation) {
    case CONVCORE_LINEAR:
        OF(gradient_sums_any)(CONVCORE_LINEAR, gy, x, NULL, NULL, pixels, channels, t, sums,
                              row);
        break;
    case CONVCORE_FROM_INPUT:
        OF(gradient_sums_any)(CONVCORE_FROM_INPUT, gy, x, NULL, NULL, pixels, channels, t, sums,
                              row);
        break;
    case CONVCORE_FROM_RESULT:
        OF(gradient_sums_any)(CONVCORE_FROM_RESULT, gy, x, y, masked, pixels, channels, t, sums,
                              row);
        break;
    }
}

/* ---- the gradient ---- */

INLINE void OF(gradient_span)(const int each, const int clamped, const T *gy, const T *x,
                              ptrdiff_t count, const convcore_norm_parameters *t, T *gx)
{
    const T *mean = t->mean, *scale = t->scale, *bias = t->bias, *slope = t->slope,
            *offset = t->offset;
    const T mean_of_all = mean[0], scale_of_all = scale[0], bias_of_all = bias[0],
            slope_of_all = slope[0], offset_of_all = offset[0];
    const T low = (T)t->low, high = (T)t->high;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T g = gy[i], d = x[i] - PARAMETER(mean);
        if (clamped) {
            T z = d * PARAMETER(scale) + PARAMETER(bias);
            g = (z <= low) | (z >= high) ? 0 : g;
        }
        gx[i] = g * PARAMETER(scale) - (d * PARAMETER(slope) + PARAMETER(offset));
    }
}

INLINE void OF(gradient_any)(const int each, const void *gy, const void *x, ptrdiff_t count,
                             ptrdiff_t planes, ptrdiff_t step, const convcore_norm_parameters *t,
                             void *gx)
{
    const int clamped = t->activation == CONVCORE_FROM_INPUT;
    for (ptrdiff_t r = 0; r < planes; r++) {
        const T *grad = (const T *)gy + r * step, *from = (const T *)x + r * step;
        T *to = (T *)gx + r * step;
        if (clamped) OF(gradient_span)(each, 1, grad, from, count, t, to);
        else OF(gradient_span)(each, 0, grad, from, count, t, to);
    }
}

static void OF(gradient_nchw)(const void *gy, const void *x, ptrdiff_t count, ptrdiff_t planes,
                              ptrdiff_t step, const convcore_norm_parameters *t, void *gx)
{
    OF(gradient_any)(0, gy, x, count, planes, step, t, gx);
}

static void OF(gradient_nhwc)(const void *gy, const void *x, ptrdiff_t pixels, ptrdiff_t channels,
                              const convcore_norm_parameters *t, void *gx)
{
    OF(gradient_any)(1, gy, x, channels, pixels, channels, t, gx);
}

/* ---- layer norm: rows with a weight an element ---- */

static void OF(layer_norm)(const void *from, ptrdiff_t count, double mean, double root,
                           const void *parameters, void *to)
{
    const T *x = from, *weight = parameters, *bias = weight + count;
    T *y = to;
    /* What the rounded mean lacks is added behind it. */
    const T near = (T)mean, scale = (T)root, lacks = (T)((near - mean) * root);
    IVDEP for (ptrdiff_t i = 0; i < count; i++)
        y[i] = ((x[i] - near) * scale + lacks) * weight[i] + bias[i];
}

/* Sums of h = gy * weight and of h * z over a row, z = (x - near) * scale + lacks. */
INLINE void OF(layer_norm_sums)(const T *gy, const T *x, const T *weight, ptrdiff_t count, T near,
                                T scale, T lacks, double *sum, double *products)
{
    const LINE n = SPREAD(near), a = SPREAD(scale), b = SPREAD(lacks);
    double of_lanes[2][LINE_LANES] = {{0}};
    LINE s[2], q[2];
    int used = 0;
    ptrdiff_t i = 0;
    UNROLLED for (int v = 0; v < 2; v++) s[v] = q[v] = SPREAD(0);
    for (int whole = 1; whole;) {
        whole = i + 2 * LINE_LANES <= count;
        UNROLLED for (int v = 0; v < 2; v++)
            if (whole || (v < 1 && i + LINE_LANES <= count)) {
                LINE h = LOAD(gy + i) * LOAD(weight + i);
                s[v] += h;
                q[v] += h * ((LOAD(x + i) - n) * a + b);
                i += LINE_LANES;
            }
        if (++used < CHAIN && whole) continue;
        UNROLLED for (int v = 0; v < 2; v++)
            OF(pour)(s + v, of_lanes[0]), OF(pour)(q + v, of_lanes[1]);
        used = 0;
    }
    *sum = *products = 0;
    for (; i < count; i++) {
        const double h = (double)gy[i] * weight[i];
        *sum += h;
        *products += h * ((x[i] - near) * scale + lacks);
    }
    for (int l = 0; l < LINE_LANES; l++) *sum += of_lanes[0][l], *products += of_lanes[1][l];
}

/* gx of at most CONVCORE_ROWS rows, and what they add to the gradients of weight (sums) and bias
 * (sums + count), of which the rows' are made in T, and only then in doubles.
 *
 * With z = (x - mean) * root and h = gy * weight: gx = (h - mean(h) - z * mean(h * z)) * root. */
static void OF(layer_norm_gradient)(const void *grad, const void *from, ptrdiff_t rows,
                                    ptrdiff_t count, const double *mean, const double *root,
                                    const void *parameters, void *to, double *sums)
{
    const T *gy = grad, *x = from, *weight = parameters;
    T *gx = to, near[CONVCORE_ROWS], scale[CONVCORE_ROWS], lacks[CONVCORE_ROWS],
      slope[CONVCORE_ROWS], offset[CONVCORE_ROWS];
    for (ptrdiff_t r = 0; r < rows; r++) {
        double sum, products;
        near[r] = (T)mean[r], scale[r] = (T)root[r], lacks[r] = (T)((near[r] - mean[r]) * root[r]);
        OF(layer_norm_sums)(gy + r * count, x + r * count, weight, count, near[r], scale[r],
                            lacks[r], &sum, &products);
        sum /= count, products /= count;
        slope[r] = (T)(products * root[r] * root[r]);
        offset[r] = (T)((sum + (near[r] - mean[r]) * root[r] * products) * root[r]);
    }
    ptrdiff_t i = 0;
    for (; i + LINE_LANES <= count; i += LINE_LANES) {
        LINE w = LOAD(weight + i), s = SPREAD(0), q = SPREAD(0);
        for (ptrdiff_t r = 0, at = i; r < rows; r++, at += count) {
            LINE g = LOAD(gy + at), d = LOAD(x + at) - SPREAD(near[r]);
            s += g;
            q += g * (d * SPREAD(scale[r]) + SPREAD(lacks[r]));
            STORE(gx + at, g * w * SPREAD(scale[r]) - (d * SPREAD(slope[r]) + SPREAD(offset[r])));
        }
        OF(pour)(&q, sums + i);
        OF(pour)(&s, sums + count + i);
    }
    for (; i < count; i++)
        for (ptrdiff_t r = 0, at = i; r < rows; r++, at += count) {
            const T g = gy[at], d = x[at] - near[r];
            sums[i] += (double)g * (d * scale[r] + lacks[r]);
            sums[count + i] += g;
            gx[at] = g * weight[i] * scale[r] - (d * slope[r] + offset[r]);
        }
}
