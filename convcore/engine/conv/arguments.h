/* Arguments shared by microkernels of several algorithms: epilogue, axes of direct convolutions.
 *
 * A microkernel is a static function on plain pointers: no threads, no allocation, nothing that can
 * fail.  Sizes and strides are in floats.  Each algorithm's folder has a table of its microkernels,
 * declared in a header and defined in a C file that is compiled once an instruction set.
 */
#ifndef CONVCORE_ARGUMENTS_H
#define CONVCORE_ARGUMENTS_H

#include <stddef.h>

/* The epilogue of a convolution: add a bias per channel and the old y, then an activation. */
enum { CONVCORE_PLAIN, CONVCORE_CLAMP, CONVCORE_LEAKY };

typedef struct {
    const float *bias;           /* one float per channel, or NULL */
    int kind;                    /* CONVCORE_CLAMP to [low, high]; CONVCORE_LEAKY: y < 0 by slope */
    float low;
    float high;
    float slope;
    int add;                     /* add to y; only for kernels that declare support */
} convcore_epilogue;

/* Which inputs the outputs of a pass read along one axis.  Output phase + phases * j is a sum
 * over i in [0, begin[phase + 1] - begin[phase]) of input j * stride + first[phase] + i * step under
 * the kernel's tap[phase] + i * tap_step. */
enum { CONVCORE_MAX_TAPS = 1024, CONVCORE_MAX_PHASES = 8 };

typedef struct {
    ptrdiff_t size;              /* inputs */
    ptrdiff_t out;               /* outputs */
    ptrdiff_t stride;
    ptrdiff_t phases;
    ptrdiff_t low;               /* the smallest offset */
    ptrdiff_t span;              /* offsets from the smallest to the largest, both included */
    ptrdiff_t begin[CONVCORE_MAX_PHASES + 1];
    ptrdiff_t first[CONVCORE_MAX_PHASES];
    ptrdiff_t tap[CONVCORE_MAX_PHASES];
    ptrdiff_t step;
    ptrdiff_t tap_step;
} convcore_direct_axis;

/* A depthwise or grouped pass, on arrays that are dense in one memory format.
 *
 * An image is a stack of slices, of which an image of two axes has one; slices are numbered through
 * all images.  specialisation: 10 K + S for a K x K kernel of stride S without dilation; -(10 K + 2)
 * for the input gradient of one of stride 2 with K / 2 zeros before both axes; 0 for all others, and
 * where the kernel has more than one slice, or the depth is padded. */
typedef struct {
    convcore_direct_axis depth;
    convcore_direct_axis row;
    convcore_direct_axis column;
    int channels_last;
    int specialisation;
    ptrdiff_t channels;          /* of the input array */
    ptrdiff_t size;              /* floats of the input array: loads stay below */
    ptrdiff_t kernel_columns;    /* tap (t, i, k) is number t * kernel_plane + i * kernel_columns + k */
    ptrdiff_t kernel_plane;
    ptrdiff_t taps;
    ptrdiff_t rows;              /* rows of outputs of each phase computed at a time */
    int narrow;                  /* both arrays are bfloat16: channels_last with a specialisation */
} convcore_direct;

/* Name of a microkernel table for the instruction set being compiled. */
#define CONVCORE_JOINED(a, b) a##_##b
#define CONVCORE_AT(name, isa) CONVCORE_JOINED(name, isa)
#define CONVCORE_TABLE(name) CONVCORE_AT(name, CONVCORE_ISA)

#endif
