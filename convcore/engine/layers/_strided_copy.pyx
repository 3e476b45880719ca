"""Strided copies of an array into a larger one, or out of it, on all threads: pad and cat.

        y[j] = x[j - before] where that is within x, else a constant value

    along every axis.  Elements of any type: they are copied as bytes.
"""

from cython.parallel cimport prange
from libc.string cimport memcpy, memset

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

cdef enum:
    AXES = 8
    PARTS = 3            # two buffers each
    WORD = 16            # bytes of the largest element
    CHUNK = 1 << 15      # approximate bytes of the rows of one item

cdef struct Job:
    const char *x
    char *y
    int outer                    # axes except the last
    Py_ssize_t size[AXES]        # of y
    Py_ssize_t inner[AXES]       # of x
    Py_ssize_t before[AXES]
    Py_ssize_t x_step[AXES]      # bytes
    Py_ssize_t y_step[AXES]
    Py_ssize_t rows
    Py_ssize_t low               # bytes of a row of y before x's, and up to their end
    Py_ssize_t high
    Py_ssize_t length            # of a row of y, in bytes
    Py_ssize_t skipped           # bytes skipped at the start of a row of x
    Py_ssize_t word              # bytes of an element
    char value[WORD]
    bint zero                    # whether the value is all zeros


cdef inline void fill(const Job *job, char *y, Py_ssize_t count) noexcept nogil:
    """Write `count` bytes of the value."""
    cdef Py_ssize_t done
    if job.zero:
        memset(y, 0, count)
        return
    done = min(count, job.word)
    memcpy(y, job.value, done)
    while done < count:
        memcpy(y + done, y, min(done, count - done))
        done += min(done, count - done)


cdef inline void put_row(const Job *job, const char *x, char *y) noexcept nogil:
    """Write a row of y that contains a row of x."""
    if job.low > 0:
        fill(job, y, job.low)
    memcpy(y + job.low, x + job.skipped, job.high - job.low)
    if job.high < job.length:
        fill(job, y + job.high, job.length - job.high)


cdef void put_rows(
    const Job *job, Py_ssize_t row, Py_ssize_t end, const char *x, char *y
) noexcept nogil:
    """Write rows [row, end) of y, in runs along the axis before the last."""
    cdef Py_ssize_t j, k, rest, count, last = job.outer - 1
    cdef const char *source
    cdef char *target
    cdef int axis
    cdef bint inside
    while row < end:
        inside = job.low < job.high
        source, target = x, y
        rest = row // job.size[last]
        for axis in range(job.outer - 2, -1, -1):
            j = rest % job.size[axis]
            rest = rest // job.size[axis]
            target += j * job.y_step[axis]
            j -= job.before[axis]
            inside = inside and 0 <= j < job.inner[axis]
            source += j * job.x_step[axis]
        j = row % job.size[last]
        count = min(end - row, job.size[last] - j)
        row += count
        for k in range(j, j + count):
            if inside and 0 <= k - job.before[last] < job.inner[last]:
                put_row(
                    job, source + (k - job.before[last]) * job.x_step[last],
                    target + k * job.y_step[last],
                )
            else:
                fill(job, target + k * job.y_step[last], job.length)


cdef void put_all(const Job *jobs, int parts, int threads) noexcept nogil:
    cdef Py_ssize_t i, length = 1, rows
    cdef int p
    for p in range(parts):
        length += jobs[p].length
    rows = max(CHUNK // length, 1)
    # A thread owns whole rows of every y.
    for i in prange((jobs[0].rows + rows - 1) // rows, schedule="static", num_threads=threads):
        for p in range(parts):
            put_rows(
                &jobs[p], i * rows, min((i + 1) * rows, jobs[p].rows), jobs[p].x, jobs[p].y
            )


cdef int describe(Job *job, axes, bytes value) except -1:
    """Fill in all fields of a job except its pointers."""
    cdef int i
    assert 2 <= len(axes) <= AXES and 1 <= len(value) <= WORD
    job.outer = len(axes) - 1
    job.rows = 1
    for i in range(len(axes)):
        job.size[i], job.inner[i], job.before[i], job.x_step[i], job.y_step[i] = axes[i]
    for i in range(job.outer):
        job.rows *= job.size[i]
    i = job.outer
    job.length = job.size[i]
    job.low = max(0, job.before[i])
    job.high = min(job.length, job.before[i] + job.inner[i])
    job.skipped = max(0, -job.before[i])
    job.word = len(value)
    for i in range(job.word):
        job.value[i] = value[i]
    job.zero = not any(value)
    return 0


def put(parts, bytes value):
    """Write every y from its x; all have the same number of rows.

    Parameters
    ----------
    parts : up to three tuples (x, y, axes)
        x, y : arrays with elements of the same size
            The last axis is contiguous, in bytes.
        axes : two to eight tuples (size, inner, before, x_step, y_step)
            Sizes of y and of x, the offset of x in y (may be negative), and strides in bytes; the
            last axis has strides of 1 and is counted in bytes.
    value : the bytes of one element
    """
    cdef Buffers arrays = Buffers()
    cdef Job[PARTS] jobs
    cdef int n = 0, threads
    cdef double work = 0
    assert 1 <= len(parts) <= PARTS
    for x, y, axes in parts:
        describe(&jobs[n], axes, value)
        jobs[n].x = <const char *>arrays.borrow(x, False)
        jobs[n].y = <char *>arrays.borrow(y, True)
        assert jobs[n].rows == jobs[0].rows
        work += 0.5 * jobs[n].rows * jobs[n].length
        n += 1
    threads = thread_count(jobs[0].rows, work)
    with nogil:
        put_all(jobs, n, threads)
