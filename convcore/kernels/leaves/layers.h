/* The leaf loops of all layers but convolutions, of one instruction set: a second table beside
 * leaves.h's, in a file of its own (layers.c), so that the two are compiled side by side.
 *
 * A leaf is a static function on plain pointers: no threads, no allocation, nothing that can fail.
 * Sizes and strides are in elements.  Tables with two columns are for float and double.
 */
#ifndef CONVCORE_LAYERS_H
#define CONVCORE_LAYERS_H

#include <stddef.h>

/* ---- element by element: elementwise.h ---- */

enum {
    CONVCORE_RELU,
    CONVCORE_MAPS
};

/* y[i] = f(x[i]); gx[i] = gy[i] f', told from `kept`, which is x or y as the function says.  `terms`
 * are the function's constants. */
typedef struct {
    void (*forward)(const void *x, ptrdiff_t count, const double *terms, void *y);
    void (*gradient)(const void *gy, const void *kept, ptrdiff_t count, const double *terms,
                     void *gx);
} convcore_map;

typedef struct {
    const char *name;
    convcore_map maps[CONVCORE_MAPS][2];
} convcore_layers;

extern const convcore_layers convcore_layers_base;
#ifdef CONVCORE_HAS_AVX2
extern const convcore_layers convcore_layers_avx2;
#endif
#ifdef CONVCORE_HAS_AVX512
extern const convcore_layers convcore_layers_avx512;
#endif

#endif
