"""Kernels: objects that hold all that a call needs but the arrays; made once a geometry.

A class of kernels says what it computes, on pointers and without the GIL; what it is called with,
and what of it may be left out, is the same for all of a kind and stands here.
"""

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport PLAIN, Epilogue
from convcore.kernels.runtime._threads cimport thread_count


cdef class Kernel:
    """Some items of work, which threads share."""

    def threads(self):
        """Return the threads that `run` may use now."""
        return thread_count(self.items, self.work)


cdef class FloatCorrelation(Kernel):
    """A forward map or an input gradient, with weights that may be kept and an epilogue."""

    def pack(self, w, kept):
        """Write the weights as the kernel reads them, which `run` may read instead of w."""
        cdef Buffers arrays = Buffers()
        cdef const float *w_ptr = <float *>arrays.borrow(w, False)
        self.pack_weights(w_ptr, <float *>arrays.borrow(kept, True))

    def run(
        self, x, w, y, workspace, int threads, bias=None, int kind=PLAIN, float low=0,
        float high=0, float slope=0, kept=None, bint add=False,
    ):
        """Write y = activation(correlation of x with w + bias); None adds nothing.

        kind, low, high, slope: the activation, as engine/conv/epilogue.py has it.
        workspace: at least shared + threads * scratch floats, contiguous.
        kept: what `pack` made of w, if the kernel was made for that.
        add: whether the correlation is added to what y holds, if the kernel knows how.
        """
        cdef Buffers arrays = Buffers()
        cdef const float *x_ptr = <float *>arrays.borrow(x, False)
        cdef const float *w_ptr = <float *>arrays.borrow(w, False)
        cdef float *y_ptr = <float *>arrays.borrow(y, True)
        cdef float *s_ptr = <float *>arrays.borrow(workspace, True)
        cdef const float *k_ptr = NULL
        cdef Epilogue epilogue = Epilogue(NULL, kind, low, high, slope, add)
        if bias is not None:
            epilogue.bias = <float *>arrays.borrow(bias, False)
        if kept is not None:
            k_ptr = <float *>arrays.borrow(kept, False)
        with nogil:
            self.compute(x_ptr, w_ptr, k_ptr, y_ptr, s_ptr, &epilogue, threads)

    cdef void pack_weights(self, const float *w, float *kept) noexcept:
        pass

    cdef void compute(
        self, const float *x, const float *w, const float *kept, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        pass


cdef class FloatGradient(Kernel):
    """A gradient of the weights, from x and grad_output, or of x, from grad_output and weights."""

    def run(self, left, right, output, workspace, int threads):
        """Write the gradient.

        workspace: at least shared + threads * scratch floats, contiguous.
        """
        cdef Buffers arrays = Buffers()
        cdef const float *l_ptr = <float *>arrays.borrow(left, False)
        cdef const float *r_ptr = <float *>arrays.borrow(right, False)
        cdef float *o_ptr = <float *>arrays.borrow(output, True)
        cdef float *s_ptr = <float *>arrays.borrow(workspace, True)
        with nogil:
            self.compute(l_ptr, r_ptr, o_ptr, s_ptr, threads)

    cdef void compute(
        self, const float *left, const float *right, float *output, float *workspace, int threads
    ) noexcept nogil:
        pass
