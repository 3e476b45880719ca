"""Code shared by the kernels of batch, group, instance and layer norm: calls, scales, slopes."""

from libc.math cimport isfinite, sqrt

from convcore.engine.runtime._isa cimport NormParameters, layer_microkernels


cdef struct Call:
    char *gy                     # arrays that a call does not have are NULL
    char *x
    char *residual
    char *y
    char *masked                 # gradient of the clamp: gy where it passes
    char *gx
    char *parameters
    double *statistics
    double *sums
    double *workspace
    Py_ssize_t size              # bytes of an element
    bint wide                    # float64
    bint narrow                  # bfloat16, with parameters and arithmetic of float32
    double eps
    bint moments                 # whether statistics are computed from x, or given
    double low                   # limits of the clamp
    double high
    int activation               # array that gradients derive the activation from; LINEAR: none


cdef class Norm:
    cdef Py_ssize_t items
    cdef double work             # in multiply-adds
    cdef void forward_all(self, const Call *call, int threads) noexcept nogil
    cdef void backward_all(self, const Call *call, int threads) noexcept nogil


cdef inline char *moved(const Call *call, char *array, Py_ssize_t by) noexcept nogil:
    """Return the array's address advanced by `by` elements."""
    return NULL if array == NULL else array + by * call.size


cdef inline double get(const Call *call, const char *numbers, Py_ssize_t i) noexcept nogil:
    return (<const double *>numbers)[i] if call.wide else (<const float *>numbers)[i]


cdef inline void put(
    const Call *call, char *numbers, Py_ssize_t i, double value
) noexcept nogil:
    if call.wide:
        (<double *>numbers)[i] = value
    else:
        (<float *>numbers)[i] = <float>value


cdef inline char *parameter(const Call *call, Py_ssize_t i) noexcept nogil:
    return call.parameters + i * (8 if call.wide else 4)


cdef inline NormParameters parameters_of(
    const Call *call, Py_ssize_t size, Py_ssize_t first
) noexcept nogil:
    """Return the microkernels' parameters: values [first, ...) of each row of `size` parameters."""
    cdef NormParameters p
    p.mean = parameter(call, first)
    p.scale = parameter(call, size + first)
    p.bias = parameter(call, 2 * size + first)
    p.slope = parameter(call, 3 * size + first)
    p.offset = parameter(call, 4 * size + first)
    p.low, p.high, p.activation = call.low, call.high, call.activation
    return p


cdef inline double shift_of(const Call *call, Py_ssize_t first) noexcept nogil:
    """Return the shift of sums: the first summed element, if it is a finite number."""
    cdef float single
    cdef double x
    if call.narrow:
        layer_microkernels().narrow.widen(call.x + first * call.size, 1, &single)
        x = single
    else:
        x = get(call, call.x, first)
    return x if isfinite(x) else 0


cdef inline void set_moments(
    const Call *call, Py_ssize_t units, Py_ssize_t unit, double shift, const double *sums,
    double count,
) noexcept nogil:
    """Write a unit's mean and variance from the sums of x - shift and of its square."""
    cdef double mean = sums[0] / count, variance = sums[1] / count - mean * mean
    call.statistics[unit] = shift + mean
    call.statistics[units + unit] = 0 if variance < 0 else variance


cdef inline double root_of(const Call *call, double variance) noexcept nogil:
    return 1 / sqrt(variance + call.eps)


cdef inline void set_scale(
    const Call *call, Py_ssize_t size, Py_ssize_t first, Py_ssize_t count, double mean,
    double variance,
) noexcept nogil:
    """Write mean, scale and bias of `count` weights; the bias compensates rounding of the mean."""
    cdef char *p = call.parameters
    cdef double root = root_of(call, variance), scale, bias
    cdef Py_ssize_t i
    for i in range(first, first + count):
        put(call, p, i, mean)
        scale = root * get(call, p, size + i)
        bias = get(call, p, 2 * size + i)
        put(call, p, size + i, scale)
        put(call, p, 2 * size + i, bias + (get(call, p, i) - mean) * scale)


cdef inline void set_slope(
    const Call *call, Py_ssize_t size, Py_ssize_t first, Py_ssize_t count, double mean,
    double slope, double offset,
) noexcept nogil:
    """Write slope and offset of `count` weights: the statistics add slope * x + offset to gx."""
    cdef Py_ssize_t i
    for i in range(first, first + count):
        put(call, call.parameters, 3 * size + i, slope)
        put(call, call.parameters, 4 * size + i,
            offset + (get(call, call.parameters, i) - mean) * slope)
