"""Linear maps of images that are a product of one along each axis, a line of outputs at a time.

Pools of means, interpolation, borders made of the image's own elements, and the adjoint of each.
"""

from cython.parallel cimport parallel, prange, threadid

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport Separable, Terms, layer_microkernels
from convcore.kernels.runtime._threads cimport thread_count


cdef void map_all(
    const Separable *s, bint wide, const char *x, char *y, Py_ssize_t images, Py_ssize_t inputs,
    char *scratch, Py_ssize_t per_thread, int threads,
) noexcept nogil:
    cdef Py_ssize_t i, line, lines = s.axis[0].out * s.axis[1].out
    cdef Py_ssize_t length = s.axis[2].out * max(s.channels, 1) * (8 if wide else 4)
    with parallel(num_threads=threads):
        # A thread owns whole lines of y, and its own slice of the scratch.
        for i in prange(images * lines, schedule="static"):
            if lines == 1:  # spares divisions, which take as long as a small plane's mean
                layer_microkernels().pools[wide].separable(
                    s, x + i * inputs, 0, 0, y + i * length, scratch + threadid() * per_thread
                )
                continue
            line = i % lines
            layer_microkernels().pools[wide].separable(
                s, x + i // lines * inputs, line // s.axis[1].out, line % s.axis[1].out,
                y + i * length, scratch + threadid() * per_thread,
            )


cdef class SeparableMap:
    """One map, over images of any number and number of channels, of float32 or float64.

    Parameters
    ----------
    axes : three tuples (size, out, terms, phases, stride, low, high, run, same, pairs, reaching,
        divided)
        As in layers/pooling.h; terms: how many there are; reaching, divided: whether inputs have
        reaches, and outputs divisors.
    places : contiguous array of Py_ssize_t
        For each axis one after the other begin, from, and the reaches if there are any.
    numbers : contiguous array of float32 or float64
        For each axis the weights of its terms, and the divisors of its outputs if it has any.
    divisor : float
    """

    cdef Separable map
    cdef Buffers tables
    cdef Py_ssize_t size         # bytes of an element
    cdef double terms            # of an output, on average

    def __cinit__(self, axes, places, numbers, double divisor):
        cdef const Py_ssize_t *place
        cdef const char *number
        cdef Terms *t
        cdef Py_ssize_t terms
        cdef int i
        self.tables = Buffers()
        place = <const Py_ssize_t *>self.tables.borrow(places, False)
        number = <const char *>self.tables.borrow(numbers, False)
        self.size = self.tables.views[1].itemsize
        self.terms = 1
        self.map.divisor = divisor
        for i in range(3):
            t = &self.map.axis[i]
            t.size, t.out, terms = axes[i][:3]
            t.phases, t.stride, t.low, t.high, t.run, t.same, t.pairs = axes[i][3:10]
            reaching, divided = axes[i][10:]
            t.begin, t.source = place, place + t.out + 1
            place += t.out + 1 + terms
            t.reach = NULL
            if reaching:
                t.reach = place
                place += 3 * t.size
            t.weight = number
            number += terms * self.size
            t.divisor = NULL
            if divided:
                t.divisor = number
                number += t.out * self.size
            self.terms += <double>terms / t.out

    def scratch_bytes(self, channels):
        """Return how much scratch a thread needs; a whole number of cache lines."""
        cdef Terms *t = &self.map.axis[2]
        cdef Py_ssize_t length = t.size * max(channels, 1)
        if not channels:
            length += t.size + 2 * t.stride + t.out
        return (length * self.size + 63) // 64 * 64

    def threads(self, images, channels):
        """Return the threads that a call may use now."""
        cdef double n_outputs = <double>images * max(channels, 1)
        for i in range(3):
            n_outputs *= self.map.axis[i].out
        return thread_count(
            images * self.map.axis[0].out * self.map.axis[1].out, self.terms * n_outputs
        )

    def run(self, x, y, scratch, images, Py_ssize_t channels, int threads):
        """Write y, the map of x.

        x, y : dense arrays of the dtype of `numbers`
        images, channels : of channels_last arrays; of others the number of planes, and 0
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
