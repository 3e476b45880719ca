/* The microkernels of Winograd's method: its transforms, see winograd_2d.h. */
#ifndef CONVCORE_WINOGRAD_H
#define CONVCORE_WINOGRAD_H

#include "conv/arguments.h"

/* Square tiles of the images of an array.  With dilation d an axis splits into d residues, each a
 * convolution of its own over every d-th element; tile i of a residue begins at element first +
 * residue * residue_step + i * advance, and its elements are `step` apart.  Tiles are ordered by
 * image, residue of row, residue of column, row, column.  Elements outside the array read as zeros
 * and are not stored. */
typedef struct {
    ptrdiff_t image, channel;    /* strides */
    ptrdiff_t line[2];           /* strides of rows and columns */
    ptrdiff_t size[2];           /* rows and columns of an image */
    ptrdiff_t first[2];
    ptrdiff_t step[2];
    ptrdiff_t advance[2];
    ptrdiff_t residue_step[2];
    ptrdiff_t residues[2];
    ptrdiff_t tiles[2];          /* of one residue */
    int narrow;                  /* elements are bfloat16, channels side by side */
} convcore_tiling;

/* How filters lie in memory: from one that becomes a lane, and one that is summed, to the next, and
 * from a tap to the next; tap (0, 0) is `first` floats from a filter's beginning.  Taps outside
 * [begin, to) are zeros that fill up the tile.  `run`: floats of a filter, if its taps lie side by
 * side and are at most CONVCORE_MAX_RUN, else 0.  No float is read at or beyond `end`. */
enum { CONVCORE_MAX_RUN = 64 };

/* Columns that a tile in contiguous memory may span: winograd_2d.h has a buffer of so many. */
enum { CONVCORE_MAX_STRIP = 72 };

typedef struct {
    const float *end;
    ptrdiff_t lane, sum, first, run;
    ptrdiff_t line[2];
    ptrdiff_t begin[2];
    ptrdiff_t to[2];
} convcore_filters;

/* The transforms of Winograd's method for tiles of one size.  Transformed tiles are (points, tiles,
 * channels): `tile` floats from a tile to the next and `point` from a point to the next; channels
 * are filled up with zeros to whole vectors. */
typedef struct {
    ptrdiff_t outputs;           /* of a tile, an axis: F(outputs, taps) */
    ptrdiff_t taps;
    ptrdiff_t points;            /* products a tile, channel and output channel */
    void (*data)(const convcore_tiling *at, const float *x, ptrdiff_t channels, ptrdiff_t first,
                 ptrdiff_t end, float *v, ptrdiff_t tile, ptrdiff_t point);
    void (*gradients)(const convcore_tiling *at, const float *gy, ptrdiff_t channels,
                      ptrdiff_t first, ptrdiff_t end, float *v, ptrdiff_t tile, ptrdiff_t point);
    void (*outputs_of)(const convcore_tiling *at, const float *m, ptrdiff_t tile, ptrdiff_t point,
                       ptrdiff_t channels, ptrdiff_t first, ptrdiff_t end,
                       const convcore_epilogue *epilogue, float *y);
    void (*weights)(const convcore_filters *f, const float *w, ptrdiff_t lanes, ptrdiff_t sums,
                    float *u, ptrdiff_t panel, ptrdiff_t point);
    void (*weight_sums)(const convcore_filters *f, const float *p, ptrdiff_t point,
                        ptrdiff_t lanes, float *gw);
} convcore_winograd;

/* F(2, 3), F(4, 3), F(3, 2), F(2, 5) on both axes. */
extern const convcore_winograd convcore_winograd_base[4], convcore_winograd_avx2[4],
    convcore_winograd_avx512[4];

#endif
