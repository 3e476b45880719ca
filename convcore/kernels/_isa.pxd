"""The leaf loops of the instruction set that was chosen at import."""

cdef extern from "leaves/leaves.h":
    enum:
        PLAIN "CONVCORE_PLAIN"
        CLAMP "CONVCORE_CLAMP"
        LEAKY "CONVCORE_LEAKY"

    ctypedef struct Epilogue "convcore_epilogue":
        const float *bias
        int kind
        float low
        float high
        float slope

    ctypedef struct Leaves "convcore_leaves":
        const char *name
        Py_ssize_t lanes
        Py_ssize_t panel
        Py_ssize_t rows
        void (*product)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float *a, Py_ssize_t a_row,
            Py_ssize_t a_column, const float *b, float *c, Py_ssize_t c_row, int add,
        ) noexcept nogil

cdef const Leaves *leaves() noexcept nogil
