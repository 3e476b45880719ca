"""One optimizer step for many parameters, in place, in one parallel region."""

from cpython.buffer cimport (
    PyBUF_STRIDED,
    PyBUF_STRIDED_RO,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cython.parallel cimport prange
from libc.stdlib cimport free, malloc

from convcore.engine.runtime._isa cimport ADAM, RMSPROP, RULES, SGD, Step, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

# Numbers of the update rules by name, for engine/layers/optimizers/optimizers.py.
RULE_NUMBERS = {"sgd": SGD, "adam": ADAM, "rmsprop": RMSPROP}

cdef enum:
    CHUNK = 1 << 13      # elements of one item
    ARRAYS = 5           # maximum arrays of a row
    SETTINGS = 9

cdef struct Row:
    void *arrays[ARRAYS]         # parameter, gradient, the optimizer's state; one layout, no gaps
    Py_ssize_t count             # elements
    Py_ssize_t first             # the row's first item
    Step step
    double[SETTINGS] settings
    int flags


cdef void step_all(const Row *rows, Py_ssize_t n, Py_ssize_t items, int threads) noexcept nogil:
    """Update every row; item i is a chunk of the row with the largest first item <= i."""
    cdef Py_ssize_t i, low, high, middle, start
    # A thread owns whole chunks of a parameter and of its state.
    for i in prange(items, schedule="static", num_threads=threads):
        low, high = 0, n
        while high - low > 1:
            middle = (low + high) // 2
            if rows[middle].first <= i:
                low = middle
            else:
                high = middle
        start = (i - rows[low].first) * CHUNK
        rows[low].step(
            rows[low].arrays, start, min(CHUNK, rows[low].count - start), rows[low].settings,
            rows[low].flags,
        )


cdef bint overlap(const Row *rows, Py_ssize_t n, Py_ssize_t *sizes) noexcept nogil:
    """Return whether the parameters of two rows share memory."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(i):
            if (
                <char *>rows[i].arrays[0] < <char *>rows[j].arrays[0] + sizes[j]
                and <char *>rows[j].arrays[0] < <char *>rows[i].arrays[0] + sizes[i]
            ):
                return True
    return False


cdef Py_ssize_t fill(Row *row, int rule, arrays, settings, int flags) except -1:
    """Fill in one row except its first item; return the bytes of its parameter.

    The pointers stay valid because the caller holds the arrays.
    """
    cdef Py_buffer view
    cdef Py_ssize_t size = 0
    cdef int i
    assert 2 <= len(arrays) <= ARRAYS and len(settings) <= SETTINGS
    for i, array in enumerate(arrays):
        PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO if i == 1 else PyBUF_STRIDED)
        row.arrays[i] = view.buf
        if i == 0:
            size = view.len
            row.count = size // view.itemsize
            row.step = layer_microkernels().steps[rule][view.itemsize == 8]
        PyBuffer_Release(&view)
    for i, setting in enumerate(settings):
        row.settings[i] = setting
    row.flags = flags
    return size


def step(list rows, double work):
    """Run the updates of rows (rule number, arrays, settings, flags).

    Parameters
    ----------
    rows : list of tuple
        The arrays of a row are parameter, gradient and state, of the same dtype (float32 or
        float64) and the same dense layout; layers/microkernels.h lists them, the settings and the
        flags. If two rows' parameters share memory, rows are updated one after another.
    work : multiply-adds that take as long as one element
    """
    cdef Py_ssize_t n = len(rows), i, items = 0
    cdef double elements = 0
    cdef int threads
    cdef Row *table = <Row *>malloc(max(n, 1) * sizeof(Row))
    cdef Py_ssize_t *sizes = <Py_ssize_t *>malloc(max(n, 1) * sizeof(Py_ssize_t))
    try:
        if table == NULL or sizes == NULL:
            raise MemoryError("cannot allocate the table of an optimizer's step")
        for i, (rule, arrays, settings, flags) in enumerate(rows):
            assert 0 <= rule < RULES
            sizes[i] = fill(&table[i], rule, arrays, settings, flags)
            table[i].first = items
            items += (table[i].count + CHUNK - 1) // CHUNK
            elements += table[i].count
        threads = 1 if overlap(table, n, sizes) else thread_count(items, work * elements)
        with nogil:
            step_all(table, n, items, threads)
    finally:
        free(sizes)
        free(table)
