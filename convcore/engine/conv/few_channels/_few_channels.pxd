"""Tiles of convolutions of few input channels, and the halo tiles of input that they read.

A tile is a range of rows and columns of output pixels of one image and depth.  Its halo tile (halo
for short) is the input that it reads, with zero padding, in rows of `row_size` floats:

    by phases    (channel, tap of depth, row, phase, column): phase p of a row holds every
                 stride-th element from the p-th on, and the pixels of a tile stand side by side
    interleaved  (tap of depth, row, column, channel), the channels_last order
"""

from convcore.engine.conv.im2col._im2col cimport Window
from convcore.engine.runtime._isa cimport Tile

cdef struct HaloTiling:
    Window window            # the inputs that output pixels read, and the input's strides
    bint interleaved
    Py_ssize_t c             # input and output channels
    Py_ssize_t o
    Py_ssize_t terms         # taps * c
    Py_ssize_t rows          # of a tile, of outputs; of inputs for the input gradient
    Py_ssize_t columns
    Py_ssize_t tiles[3]      # of one image: depths, tiles of rows, tiles of columns
    Py_ssize_t items
    Py_ssize_t halo_rows     # rows of the halo for each channel and tap of depth
    Py_ssize_t phases
    Py_ssize_t pitch         # floats of a phase
    Py_ssize_t row_size
    Py_ssize_t halo          # floats of scratch a thread: for the halo, and in all
    Py_ssize_t scratch
    Py_ssize_t shared        # floats before the threads' scratch

# Coordinates of a tile: its image, depth, and [begin, end) rows and columns.
cdef struct TileCoords:
    Py_ssize_t n
    Py_ssize_t d
    Py_ssize_t rows[2]
    Py_ssize_t columns[2]


cdef inline TileCoords tile_coords(
    const HaloTiling *t, Py_ssize_t item, Py_ssize_t rows, Py_ssize_t columns
) noexcept nogil:
    """Return the coordinates of an item's tile; `rows` and `columns` are the sizes of the axes."""
    cdef TileCoords at
    at.columns[0] = item % t.tiles[2] * t.columns
    at.columns[1] = min(at.columns[0] + t.columns, columns)
    item //= t.tiles[2]
    at.rows[0] = item % t.tiles[1] * t.rows
    at.rows[1] = min(at.rows[0] + t.rows, rows)
    item //= t.tiles[1]
    at.d = item % t.tiles[0]
    at.n = item // t.tiles[0]
    return at


# Tables over the terms of the sum, in memory owned by the object.
cdef class Terms:
    cdef Py_ssize_t *offset      # offset in the halo from the pixel's position
    cdef Py_ssize_t *row         # row of the halo, relative to the pixel's
    cdef Py_ssize_t *weight      # offset of its weight from the output channel's first


cdef inline Tile tile_of(
    const HaloTiling *t, Py_ssize_t terms, const Py_ssize_t *offset, Py_ssize_t rows,
    Py_ssize_t columns
) noexcept nogil:
    """Return the description of a tile of rows x columns outputs for the microkernels."""
    return Tile(
        terms, offset, t.window.line[1].stride * t.row_size,
        t.window.line[2].stride * t.c if t.interleaved else 1, rows, columns, False,
    )


cdef void pack_halo(
    const HaloTiling *t, const TileCoords *at, const float *x, float *halo
) noexcept nogil
