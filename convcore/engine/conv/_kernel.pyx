"""Base classes of the convolution kernels: `run` holds the arrays' buffers and starts the threads.

A kernel is created once per geometry and holds everything but the arrays.  Subclasses compute on
pointers, without the GIL; all kernels of a base class take the same arguments in `run`.
"""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cython.parallel cimport prange, threadid

from convcore.engine.conv._partials cimport add_partials
from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport PLAIN, Epilogue
from convcore.engine.runtime._threads cimport acquire_blas, release_blas, thread_count, use_team

use_team()


cdef class Kernel:
    """Base class of a kernel: a number of work items that threads share.

    Parameters
    ----------
    job : dict with the fields of the struct Job, ``items`` and ``work``
        Computed by the algorithm's plan.py.  Strides are in elements and are those of the arrays
        that `run` will receive.  Fields that the struct lacks are ignored.
    """

    def __cinit__(self, dict job, *others):
        self.items, self.work = job["items"], job["work"]

    def __dealloc__(self):
        PyMem_Free(self.records)

    cdef void *allocate(self, Py_ssize_t count, size_t size) except NULL:
        """Return zeroed memory for `count` structs, owned by the kernel; call it only once."""
        self.records = PyMem_Calloc(max(count, 1), size)
        if self.records == NULL:
            raise MemoryError()
        return self.records

    def threads(self):
        """Return the number of threads that `run` may use now."""
        return thread_count(self.items, self.work)


cdef class AnyKernel(Kernel):
    """Base class for dtypes 'f', 'd', 'F' and 'D' whose gemms are single-threaded BLAS calls."""

    cdef int set_compute(
        self, str kind, const void *job, Compute f, Compute d, Compute F, Compute D
    ) except -1:
        """Select the compute function of the element type and store the job that it receives."""
        cdef Compute[4] functions = [f, d, F, D]
        self.compute, self.job_address = functions["fdFD".index(kind)], job
        return 0

    def run(self, left, right, output, workspace, int threads):
        """Compute the pass and write the output.

        workspace: at least shared + threads * scratch elements, contiguous.
        """
        cdef AnyEpilogue none = AnyEpilogue(NULL, PLAIN, 0, 0, 0)
        self.call(left, right, output, workspace, threads, &none)

    cdef int call(
        self, left, right, output, workspace, int threads, const AnyEpilogue *epilogue
    ) except -1:
        cdef Buffers arrays = Buffers()
        cdef const void *l_ptr = arrays.borrow(left, False)
        cdef const void *r_ptr = arrays.borrow(right, False)
        cdef void *o_ptr = arrays.borrow(output, True)
        cdef void *s_ptr = arrays.borrow(workspace, True)
        threads = acquire_blas(threads)
        try:
            with nogil:
                self.compute(self.job_address, l_ptr, r_ptr, o_ptr, s_ptr, epilogue, threads)
        finally:
            release_blas(threads)
        return 0


@cython.no_gc
cdef class BoundCorrelation(Buffers):
    """One call of a FloatCorrelation; holds the buffers of its arrays as long as it lives."""

    cdef FloatCorrelation kernel
    cdef const float *x
    cdef const float *w
    cdef const float *prepacked
    cdef float *y
    cdef float *workspace
    cdef Epilogue epilogue
    cdef int threads

    def __call__(self):
        with nogil:
            self.kernel.compute(
                self.x, self.w, self.prepacked, self.y, self.workspace, &self.epilogue,
                self.threads,
            )


cdef class FloatCorrelation(Kernel):
    """Base class of float32 forward passes and input gradients; optionally packs weights."""

    def pack(self, w, prepacked):
        """Pack the weights into the kernel's format, which `run` may read instead of w."""
        cdef Buffers arrays = Buffers()
        cdef const float *w_ptr = <float *>arrays.borrow(w, False)
        self.pack_weights(w_ptr, <float *>arrays.borrow(prepacked, True))

    def run(
        self, x, w, y, workspace, int threads, bias=None, int kind=PLAIN, float low=0,
        float high=0, float slope=0, prepacked=None, bint add=False, bint later=False,
    ):
        """Compute y = activation(correlation of x with w + bias); a bias of None adds nothing.

        kind, low, high, slope: parameters of the activation, see engine/conv/epilogue.py.
        workspace: at least shared + threads * scratch floats, contiguous.
        prepacked: weights packed by `pack`, if the kernel supports that.
        add: whether the result is added to y, if the kernel supports that.
        later: whether to return a callable that does the work when called, instead of doing it now.
        """
        cdef BoundCorrelation call = BoundCorrelation.__new__(BoundCorrelation)
        call.kernel, call.threads = self, threads
        call.x = <float *>call.borrow(x, False)
        call.w = <float *>call.borrow(w, False)
        call.y = <float *>call.borrow(y, True)
        call.workspace = <float *>call.borrow(workspace, True)
        call.epilogue = Epilogue(NULL, kind, low, high, slope, add)
        if bias is not None:
            call.epilogue.bias = <float *>call.borrow(bias, False)
        if prepacked is not None:
            call.prepacked = <float *>call.borrow(prepacked, False)
        return call if later else call()

    cdef void pack_weights(self, const float *w, float *prepacked) noexcept:
        pass

    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        pass


cdef class FloatWeightGradient(Kernel):
    """Base class of float32 weight gradients: partial gradients, which are then summed.

    Partial gradients are added in index order and their number is fixed by shape
    (`blocks.partials`), so the bits never depend on the number of threads.
    """

    def __cinit__(self, dict job, *others):
        self.partials, self.size, self.row = job["partials"], job["size"], job["row"]
        self.shared, self.scratch = job["shared"], job["scratch"]

    def run(self, x, gy, gw, workspace, int threads):
        """Compute the weight gradient and write gw.

        workspace: at least shared + threads * scratch floats, contiguous.
        """
        cdef Buffers arrays = Buffers()
        cdef const float *x_ptr = <float *>arrays.borrow(x, False)
        cdef const float *gy_ptr = <float *>arrays.borrow(gy, False)
        cdef float *gw_ptr = <float *>arrays.borrow(gw, True)
        cdef float *sums = <float *>arrays.borrow(workspace, True)
        cdef float *scratch = sums + self.shared
        cdef Py_ssize_t i, rows = self.size // self.row if self.shared else 0
        if not self.shared:
            sums = gw_ptr
        with nogil:
            # A thread owns whole pieces of the partial gradients, and its own slice of the scratch.
            for i in prange(self.items, schedule="dynamic", num_threads=threads):
                self.item(i, x_ptr, gy_ptr, sums, scratch + threadid() * self.scratch)
            # A thread owns whole rows of gw.
            for i in prange(rows, schedule="static", num_threads=threads):
                self.put(i, sums, gw_ptr)

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil:
        """Sum one chunk of work into one block of a partial gradient, in sums."""

    cdef void put(self, Py_ssize_t i, float *sums, float *gw) noexcept nogil:
        """Write one row of gw, the sum of that row over the partial gradients."""
        add_partials(sums, self.partials, self.size, i * self.row, self.row, gw + i * self.row)
