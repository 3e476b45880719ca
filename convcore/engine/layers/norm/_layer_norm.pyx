"""Layer norm: each row by its own mean and variance, with a weight and bias per element."""

from cython.parallel cimport prange

from convcore.engine.layers.norm._norm cimport Call, Norm, moved, root_of, set_moments, shift_of
from convcore.engine.runtime._isa cimport ROWS, layer_microkernels
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._vectors cimport add, zero

use_team()

cdef enum:
    SUMS = 64                    # sums per item that are added together
    FEW = 1 << 14                # elements of the rows that are read twice, from cache

cdef struct Shape:
    Py_ssize_t rows
    Py_ssize_t length
    Py_ssize_t block             # rows of one item

# Parameters are weight and bias, (2, length), sums their gradients.  The workspace has (items, 2,
# length) partial sums.


cdef void forward_item(const Shape *s, const Call *call, Py_ssize_t item) noexcept nogil:
    """Normalise a block of rows."""
    cdef Py_ssize_t row
    cdef double shift
    cdef double[2] sums
    cdef char *x
    for row in range(item * s.block, min((item + 1) * s.block, s.rows)):
        x = moved(call, call.x, row * s.length)
        shift = shift_of(call, row * s.length)
        sums[0] = sums[1] = 0
        layer_microkernels().norm_nchw[call.wide].moments(x, s.length, 1, 0, shift, sums)
        set_moments(call, s.rows, row, shift, sums, s.length)
        layer_microkernels().layer_norm[call.wide].forward(
            x, s.length, call.statistics[row], root_of(call, call.statistics[s.rows + row]),
            call.parameters, moved(call, call.y, row * s.length),
        )


cdef void backward_item(const Shape *s, const Call *call, Py_ssize_t item) noexcept nogil:
    """Compute gradients of a block of rows, and its part of the weight and bias gradients."""
    cdef Py_ssize_t few = max(1, min(<Py_ssize_t>ROWS, FEW // s.length)), end, i
    cdef Py_ssize_t row = item * s.block
    cdef Py_ssize_t last = min((item + 1) * s.block, s.rows)
    cdef double *sums = call.workspace + item * 2 * s.length
    cdef double[ROWS] roots
    zero(sums, 2 * s.length)
    while row < last:
        end = min(row + few, last)
        for i in range(row, end):
            roots[i - row] = root_of(call, call.statistics[s.rows + i])
        layer_microkernels().layer_norm[call.wide].gradient(
            moved(call, call.gy, row * s.length), moved(call, call.x, row * s.length), end - row,
            s.length, call.statistics + row, roots, call.parameters,
            moved(call, call.gx, row * s.length), sums,
        )
        row = end


cdef void add_items(
    const Shape *s, Py_ssize_t items, Py_ssize_t block, const double *partials, double *sums
) noexcept nogil:
    """Add a range of all items' partial sums, in index order."""
    cdef Py_ssize_t width = 2 * s.length, first = block * SUMS, i
    cdef Py_ssize_t count = min(SUMS, width - first)
    zero(sums + first, count)
    for i in range(items):
        add(partials + i * width + first, count, sums + first, 1)


cdef class LayerNorm(Norm):
    """Layer normalization of contiguous rows, from a dict of Shape's fields."""

    cdef Shape shape

    def __cinit__(self, dict fields, double work):
        self.shape, self.work = fields, work
        self.items = (self.shape.rows + self.shape.block - 1) // self.shape.block

    cdef void forward_all(self, const Call *call, int threads) noexcept nogil:
        cdef Py_ssize_t i
        # A thread owns whole rows of y and of the statistics.
        for i in prange(self.items, schedule="dynamic", num_threads=threads):
            forward_item(&self.shape, call, i)

    cdef void backward_all(self, const Call *call, int threads) noexcept nogil:
        cdef Py_ssize_t i, blocks = (2 * self.shape.length + SUMS - 1) // SUMS
        # A thread owns whole rows of gx, and the sums of its items.
        for i in prange(self.items, schedule="dynamic", num_threads=threads):
            backward_item(&self.shape, call, i)
        # A thread owns a range of the sums, over all items.
        for i in prange(blocks, schedule="static", num_threads=threads):
            add_items(&self.shape, self.items, i, call.workspace, call.sums)
