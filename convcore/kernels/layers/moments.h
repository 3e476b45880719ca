/* Sum, squared deviations, limits, zeros and NaN of a run, in one pass. */

#include <math.h>
#include <stddef.h>

/* Of one run, or of several that were joined. */
typedef struct {
    double count, mean, squares, least, largest, zeros, nan;
} moments;

/* Lanes are what a compiler makes vectors of. Sums are of the differences to the first element, in
   the elements' type; runs are short. Comparisons with NaN are false, so limits are those of the
   other elements. */
#define MOMENTS_OF(T, INTEGER, LANES)                                                             \
    static void moments_of_##T(const T *v, ptrdiff_t count, moments *found)                       \
    {                                                                                             \
        T sum[LANES], square[LANES], least[LANES], largest[LANES];                                \
        INTEGER zeros[LANES], nan[LANES];                                                         \
        const T shift = v[0] - v[0] == 0 ? v[0] : 0; /* 0 for NaN and infinities */               \
        for (int k = 0; k < LANES; k++) {                                                         \
            sum[k] = square[k] = 0;                                                               \
            least[k] = INFINITY;                                                                  \
            largest[k] = -INFINITY;                                                               \
            zeros[k] = nan[k] = 0;                                                                \
        }                                                                                         \
        ptrdiff_t i = 0;                                                                          \
        for (; i + LANES <= count; i += LANES)                                                    \
            for (int k = 0; k < LANES; k++) {                                                     \
                const T x = v[i + k], d = x - shift;                                              \
                sum[k] += d;                                                                      \
                square[k] += d * d;                                                               \
                least[k] = x < least[k] ? x : least[k];                                           \
                largest[k] = x > largest[k] ? x : largest[k];                                     \
                zeros[k] += x == 0;                                                               \
                nan[k] += x != x;                                                                 \
            }                                                                                     \
        for (int k = 0; i < count; i++, k++) {                                                    \
            const T x = v[i], d = x - shift;                                                      \
            sum[k] += d;                                                                          \
            square[k] += d * d;                                                                   \
            least[k] = x < least[k] ? x : least[k];                                               \
            largest[k] = x > largest[k] ? x : largest[k];                                         \
            zeros[k] += x == 0;                                                                   \
            nan[k] += x != x;                                                                     \
        }                                                                                         \
        double total = 0, squares = 0;                                                            \
        *found = (moments){(double)count, 0, 0, INFINITY, -INFINITY, 0, 0};                       \
        for (int k = 0; k < LANES; k++) {                                                         \
            total += sum[k];                                                                      \
            squares += square[k];                                                                 \
            found->least = least[k] < found->least ? least[k] : found->least;                     \
            found->largest = largest[k] > found->largest ? largest[k] : found->largest;           \
            found->zeros += (double)zeros[k];                                                     \
            found->nan += (double)nan[k];                                                         \
        }                                                                                         \
        found->mean = shift + total / (double)count;                                              \
        squares -= total * (total / (double)count);                                               \
        found->squares = squares < 0 ? 0 : squares;                                               \
    }

MOMENTS_OF(float, int, 16)
MOMENTS_OF(double, long long, 8)

/* The moments of two runs from those of each; `all` may be without elements. */
static void join_moments(moments *all, const moments *one)
{
    const double count = all->count + one->count, step = one->mean - all->mean;
    if (all->count == 0) {
        *all = *one;
        return;
    }
    all->mean += step * (one->count / count);
    all->squares += one->squares + step * step * (all->count * one->count / count);
    all->least = one->least < all->least ? one->least : all->least;
    all->largest = one->largest > all->largest ? one->largest : all->largest;
    all->zeros += one->zeros;
    all->nan += one->nan;
    all->count = count;
}
