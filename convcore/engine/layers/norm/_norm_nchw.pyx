"""Batch, group and instance norm of NCHW arrays, forward and backward.

A unit (elements with one mean and variance) is `planes` planes of `pixels` elements.  In batch norm
it is a channel, with a plane per image; in group norm a group of channels of one image, with a
plane per channel.  A unit has one weight and bias, or one for each of its planes.

One thread computes a whole unit, so that what it reads twice is still in cache.
"""

from cython.parallel cimport prange

from convcore.engine.layers.norm._norm cimport (
    Call,
    Norm,
    get,
    moved,
    parameters_of,
    set_moments,
    set_scale,
    set_slope,
    shift_of,
)
from convcore.engine.runtime._isa cimport (
    FROM_RESULT,
    LINEAR,
    NormParameters,
    layer_microkernels,
)
from convcore.engine.runtime._threads cimport use_team

use_team()

cdef struct Shape:
    Py_ssize_t units
    Py_ssize_t planes            # of a unit
    Py_ssize_t pixels            # of a plane
    Py_ssize_t unit_step         # elements from a unit's beginning to the next one's
    Py_ssize_t plane_step
    Py_ssize_t weights           # of a unit: 1 or `planes`
    Py_ssize_t block             # units of one item

# Parameters, and sums, are rows of units * weights.


cdef void take_moments(const Shape *s, const Call *call, Py_ssize_t unit) noexcept nogil:
    """Write a unit's mean and variance."""
    cdef Py_ssize_t at = unit * s.unit_step
    cdef double[2] sums
    cdef double shift = shift_of(call, at)
    sums[0] = sums[1] = 0
    layer_microkernels().norm_nchw[call.wide].moments(
        moved(call, call.x, at), s.pixels, s.planes, s.plane_step, shift, sums
    )
    set_moments(call, s.units, unit, shift, sums, <double>s.planes * s.pixels)


cdef void scale_unit(const Shape *s, const Call *call, Py_ssize_t unit) noexcept nogil:
    set_scale(
        call, s.units * s.weights, unit * s.weights, s.weights, call.statistics[unit],
        call.statistics[s.units + unit],
    )


cdef void forward_item(const Shape *s, const Call *call, Py_ssize_t item) noexcept nogil:
    """Normalise a block of units."""
    cdef Py_ssize_t unit, i, at
    cdef NormParameters p
    for unit in range(item * s.block, min((item + 1) * s.block, s.units)):
        if call.moments:
            take_moments(s, call, unit)
        scale_unit(s, call, unit)
        for i in range(s.weights):
            at = unit * s.unit_step + i * s.plane_step
            p = parameters_of(call, s.units * s.weights, unit * s.weights + i)
            layer_microkernels().norm_nchw[call.wide].forward(
                moved(call, call.x, at), moved(call, call.residual, at), s.pixels,
                s.planes // s.weights, s.plane_step, &p, moved(call, call.y, at),
            )


cdef void sum_unit(const Shape *s, const Call *call, Py_ssize_t unit) noexcept nogil:
    """Write the sums of gy, and of gy * (x - mean), for each weight of a unit."""
    cdef Py_ssize_t first = unit * s.weights, size = s.units * s.weights, i, at
    cdef double[2] sums
    cdef NormParameters p
    for i in range(first, first + s.weights):
        at = unit * s.unit_step + (i - first) * s.plane_step
        p = parameters_of(call, size, i)
        sums[0] = sums[1] = 0
        layer_microkernels().norm_nchw[call.wide].gradient_sums(
            moved(call, call.gy, at), moved(call, call.x, at), moved(call, call.y, at), s.pixels,
            s.planes // s.weights, s.plane_step, &p, moved(call, call.masked, at), sums,
        )
        call.sums[i] = sums[0]
        # The microkernel has subtracted a rounded mean.
        sums[1] += (get(call, call.parameters, i) - call.statistics[unit]) * sums[0]
        call.sums[size + i] = sums[1]


cdef void slope_unit(const Shape *s, const Call *call, Py_ssize_t unit) noexcept nogil:
    cdef Py_ssize_t size = s.units * s.weights, first = unit * s.weights, i
    cdef double by_mean = 0, by_variance = 0, count = <double>s.planes * s.pixels, scale
    if call.moments:
        for i in range(first, first + s.weights):
            # The weight times 1 / sqrt(variance + eps).
            scale = get(call, call.parameters, size + i)
            by_mean += scale * call.sums[i]
            by_variance += scale * call.sums[size + i]
    by_variance = by_variance / count / (call.statistics[s.units + unit] + call.eps)
    set_slope(
        call, size, first, s.weights, call.statistics[unit], by_variance, by_mean / count
    )


cdef void write_gradient(const Shape *s, const Call *call, Py_ssize_t unit) noexcept nogil:
    cdef char *gy = call.gy if call.masked == NULL else call.masked
    cdef Py_ssize_t i, at
    cdef NormParameters p
    for i in range(s.weights):
        at = unit * s.unit_step + i * s.plane_step
        p = parameters_of(call, s.units * s.weights, unit * s.weights + i)
        if call.activation == FROM_RESULT:
            p.activation = LINEAR
        layer_microkernels().norm_nchw[call.wide].gradient(
            moved(call, gy, at), moved(call, call.x, at), s.pixels, s.planes // s.weights,
            s.plane_step, &p, moved(call, call.gx, at),
        )


cdef void backward_item(const Shape *s, const Call *call, Py_ssize_t item) noexcept nogil:
    """Compute the gradients of a block of units."""
    cdef Py_ssize_t unit
    for unit in range(item * s.block, min((item + 1) * s.block, s.units)):
        scale_unit(s, call, unit)
        sum_unit(s, call, unit)
        if call.gx != NULL:
            slope_unit(s, call, unit)
            write_gradient(s, call, unit)


cdef class NormNchw(Norm):
    """Batch, group or instance norm of NCHW arrays, from a dict of Shape's fields."""

    cdef Shape shape

    def __cinit__(self, dict fields, double work):
        self.shape, self.work = fields, work
        self.items = (self.shape.units + self.shape.block - 1) // self.shape.block

    cdef void forward_all(self, const Call *call, int threads) noexcept nogil:
        cdef Py_ssize_t i
        # A thread owns whole units of y, of the parameters and of the statistics.
        for i in prange(self.items, schedule="dynamic", num_threads=threads):
            forward_item(&self.shape, call, i)

    cdef void backward_all(self, const Call *call, int threads) noexcept nogil:
        cdef Py_ssize_t i
        # A thread owns whole units of all outputs.
        for i in prange(self.items, schedule="dynamic", num_threads=threads):
            backward_item(&self.shape, call, i)
