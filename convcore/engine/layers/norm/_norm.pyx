"""Base class of the kernels of batch, group, instance and layer norm.

A unit is a set of elements with one mean and variance.  Parameters are five rows, with one value
per weight: mean, scale (initially the weight), bias, slope and offset.  Statistics are two rows of
float64: the units' means and variances.
"""

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport FROM_INPUT, FROM_RESULT, LINEAR
from convcore.engine.runtime._threads cimport thread_count

ACTIVATIONS = {"linear": LINEAR, "from_input": FROM_INPUT, "from_result": FROM_RESULT}


cdef void *borrowed(Buffers buffers, dict arrays, str name, bint write) except? NULL:
    array = arrays.get(name)
    return NULL if array is None else buffers.borrow(array, write)


cdef Call call_of(Buffers buffers, dict arrays, bint forward):
    """Return a call's pointers from arrays by name."""
    cdef Call call
    call.x = <char *>borrowed(buffers, arrays, "x", False)
    call.size = buffers.views[0].itemsize
    call.wide, call.narrow = call.size == 8, call.size == 2
    call.gy = <char *>borrowed(buffers, arrays, "gy", False)
    call.residual = <char *>borrowed(buffers, arrays, "residual", False)
    call.y = <char *>borrowed(buffers, arrays, "y", forward)
    call.masked = <char *>borrowed(buffers, arrays, "masked", True)
    call.gx = <char *>borrowed(buffers, arrays, "gx", True)
    call.parameters = <char *>borrowed(buffers, arrays, "parameters", True)
    call.statistics = <double *>borrowed(buffers, arrays, "statistics", forward)
    call.sums = <double *>borrowed(buffers, arrays, "sums", True)
    call.workspace = <double *>borrowed(buffers, arrays, "workspace", True)
    return call


cdef class Norm:
    """Normalization of arrays of one shape; its fields are those of the subclass's Shape."""

    def threads(self):
        """Return the number of threads that a call may use now."""
        return thread_count(self.items, self.work)

    def run(
        self, dict arrays, double eps, bint moments=True, int activation=LINEAR, double low=0,
        double high=0, int threads=0,
    ):
        """Run the forward pass, or the backward pass if there is a gy.

        Forward: y = (x - mean) / sqrt(variance + eps) * weight + bias (+ residual), then clamped.
        Backward: gx, masked, and the sums for the other gradients.

        Parameters
        ----------
        arrays : dict
            By the names below; missing ones are None.
        eps : float
        moments : bool
            Whether statistics are computed from x, or given.
        activation : one of ACTIVATIONS
        low, high : float
            Limits of the clamp.
        gy, x, residual, y, masked, gx : arrays of one dtype, float32 or float64, and layout
            Or bfloat16, as uint16, if the subclass has a stage.
            residual and gx may be None; so may y and masked in the backward pass unless the
            activation is FROM_RESULT.
        parameters : the same dtype, or float32
            Weight and bias are read, the other rows written.
        statistics : float64
            Read; written in the forward pass if `moments`.
        sums : (2, weights), float64
            Written: sums of gy and of gy * (x - mean), after the clamp.
        workspace : float64, as the subclass says, or None
            For bfloat16 arrays, followed by `stage` bytes for each thread.
        threads : int
            0: as many as allowed.
        """
        cdef Buffers buffers = Buffers()
        cdef bint forward = "gy" not in arrays
        cdef Call call = call_of(buffers, arrays, forward)
        if threads == 0:
            threads = self.threads()
        call.eps, call.moments, call.activation = eps, moments, activation
        call.low, call.high = low, high
        with nogil:
            if forward:
                self.forward_all(&call, threads)
            else:
                self.backward_all(&call, threads)

    cdef void forward_all(self, const Call *call, int threads) noexcept nogil:
        pass

    cdef void backward_all(self, const Call *call, int threads) noexcept nogil:
        pass
