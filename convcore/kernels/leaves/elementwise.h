/* Functions of each element, and their gradients, for numbers of type T.
 *
 * Plain loops without branches, which compilers vectorise.  The result may take the argument's place.
 * Included once a type: OF(name) is what a function is called for it.
 */

#define FORWARD(name, value)                                                                    \
    static void OF(name)(const void *from, ptrdiff_t count, const double *terms, void *to)      \
    {                                                                                           \
        const T *px = from;                                                            \
        T *py = to;                                                                    \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                     \
            const T x = px[i];                                                                  \
            py[i] = value;                                                                      \
        }                                                                                       \
        (void)terms;                                                                            \
    }

/* In `value`, g is the result's gradient, and x what was kept. */
#define GRADIENT(name, value)                                                                   \
    static void OF(name)(const void *grad, const void *kept, ptrdiff_t count,                   \
                         const double *terms, void *to)                                         \
    {                                                                                           \
        const T *pg = grad;                                                            \
        const T *px = kept;                                                            \
        T *py = to;                                                                    \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                     \
            const T g = pg[i], x = px[i];                                                       \
            py[i] = value;                                                                      \
        }                                                                                       \
        (void)terms;                                                                            \
    }

/* A NaN passes, and lets its gradient pass, for no comparison with it holds. */
FORWARD(relu, x < 0 ? 0 : x)
GRADIENT(relu_gradient, x == 0 ? 0 : g)

#undef FORWARD
#undef GRADIENT
