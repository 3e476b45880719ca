"""Separable linear maps of images, with weights along each axis, one output line at a time.

Average pooling, interpolation, padding with the image's own elements, and the adjoint of each.
"""

from cython.parallel cimport prange

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport AxisWeights, Separable, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()


cdef void map_lines(
    const Separable *s, bint wide, const char *x, char *y, Py_ssize_t i, Py_ssize_t end,
    Py_ssize_t inputs, char *scratch,
) noexcept nogil:
    """Compute lines [i, end) of y, counted over all images."""
    cdef Py_ssize_t depth = s.axis[0].out, rows = s.axis[1].out
    cdef Py_ssize_t length = s.axis[2].out * max(s.channels, 1) * (8 if wide else 4)
    cdef Py_ssize_t h = i % rows, d = i // rows % depth
    x += i // rows // depth * inputs
    for i in range(i, end):
        layer_microkernels().pooling[wide].separable(s, x, d, h, y + i * length, scratch)
        # Incremented, because divisions take as long as a small plane's line.
        h += 1
        if h == rows:
            h = 0
            d += 1
            if d == depth:
                d = 0
                x += inputs


cdef void map_all(
    const Separable *s, bint wide, const char *x, char *y, Py_ssize_t images, Py_ssize_t inputs,
    char *scratch, Py_ssize_t per_thread, int threads,
) noexcept nogil:
    cdef Py_ssize_t lines = images * s.axis[0].out * s.axis[1].out, part
    # A part has its own lines of y, and its own slice of the scratch.
    for part in prange(threads, schedule="static", num_threads=threads):
        map_lines(
            s, wide, x, y, lines * part // threads, lines * (part + 1) // threads, inputs,
            scratch + part * per_thread,
        )


cdef class SeparableKernel:
    """A separable map of float32 or float64 images, for any number of images and channels.

    Parameters
    ----------
    axes : three tuples (size, out, taps, phases, stride, low, high, run, identity, copies,
        two_tap, reaching, divided)
        As in layers/pooling.h; taps: number of taps; reaching, divided: whether inputs have
        reaches, and outputs divisors.
    places : contiguous array of Py_ssize_t
        For each axis in turn: begin, from, and the reaches if there are any.
    numbers : contiguous array of float32 or float64
        For each axis: the weights of its taps, and the divisors of its outputs if there are any.
    divisor : float
    """

    cdef Separable map
    cdef Buffers tables
    cdef Py_ssize_t size         # bytes of an element
    cdef double taps             # of an output, on average

    def __cinit__(self, axes, places, numbers, double divisor):
        cdef const Py_ssize_t *place
        cdef const char *number
        cdef AxisWeights *a
        cdef Py_ssize_t taps
        cdef int i
        self.tables = Buffers()
        place = <const Py_ssize_t *>self.tables.borrow(places, False)
        number = <const char *>self.tables.borrow(numbers, False)
        self.size = self.tables.views[1].itemsize
        self.taps = 1
        self.map.divisor = divisor
        for i in range(3):
            a = &self.map.axis[i]
            a.size, a.out, taps = axes[i][:3]
            a.phases, a.stride, a.low, a.high, a.run, a.identity, a.copies, a.two_tap = (
                axes[i][3:11]
            )
            reaching, divided = axes[i][11:]
            a.begin, a.source = place, place + a.out + 1
            place += a.out + 1 + taps
            a.gather = NULL
            if reaching:
                a.gather = place
                place += 3 * a.size
            a.weight = number
            number += taps * self.size
            a.divisor = NULL
            if divided:
                a.divisor = number
                number += a.out * self.size
            self.taps += <double>taps / a.out

    def scratch_bytes(self, channels):
        """Return the bytes of scratch a thread needs: a whole number of cache lines."""
        cdef AxisWeights *a = &self.map.axis[2]
        cdef Py_ssize_t length = a.size * max(channels, 1)
        if not channels:
            length += a.size + 2 * a.stride + a.out
        return (length * self.size + 63) // 64 * 64

    def threads(self, images, channels):
        """Return the number of threads that a call may use now."""
        cdef double n_outputs = <double>images * max(channels, 1)
        for i in range(3):
            n_outputs *= self.map.axis[i].out
        return thread_count(
            images * self.map.axis[0].out * self.map.axis[1].out, self.taps * n_outputs
        )

    def run(self, x, y, scratch, images, Py_ssize_t channels, int threads):
        """Apply the map to x and write y.

        x, y : dense arrays of the dtype of `numbers`
        images, channels : of NHWC arrays; for NCHW the number of planes, and 0
        """
        cdef Buffers arrays = Buffers()
        cdef Separable map = self.map
        cdef char *x_ptr = <char *>arrays.borrow(x, False)
        cdef char *y_ptr = <char *>arrays.borrow(y, True)
        cdef char *s_ptr = <char *>arrays.borrow(scratch, True)
        cdef Py_ssize_t inputs = self.size * max(channels, 1), n = images
        cdef Py_ssize_t per_thread = self.scratch_bytes(channels)
        map.channels = channels
        for i in range(3):
            inputs *= map.axis[i].size
        with nogil:
            map_all(
                &map, self.size == 8, x_ptr, y_ptr, n, inputs, s_ptr, per_thread, threads
            )
