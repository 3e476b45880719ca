"""Blocks of memory that go back to a pool, so that the next use does not fault in fresh pages.

A `Block` is the base of the array that lies in it.  When the last view dies so does the block, and
its memory is idle: kept, pages and all, for another block.  Memory comes from the system in
mappings; a mapping is cut into spans where a smaller block can use a part of it, and idle
neighbours are joined again.  A span belongs to one block or is idle.

Small mappings are cut, one after the other, from an arena of huge pages: the system clears 2 MiB at
one fault, and what a net's layers return is mostly smaller than two of those.  The arena's rest has
not been touched, so it is neither reserved nor idle.

Blocks and idle memory together never exceed the most that blocks took at once, so keeping memory
raises no peak of theirs; idle memory alone never exceeds `limit`.  The spans that were idle longest
are unmapped first, each by itself, wherever in their mapping they lie.

Nothing here runs Python while it holds the lock, so a block may die at any time, in the garbage
collector too.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_release_lock,
    PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdlib cimport free, malloc

cdef extern from *:
    """
    #ifdef __linux__
    #include <features.h>
    #endif
    #ifdef __GLIBC__
    #include <malloc.h>
    static void convcore_trim(void) { malloc_trim(0); }
    #else
    static void convcore_trim(void) {}
    #endif
    #ifdef _WIN32
    #include <malloc.h>
    /* Nothing smaller than what was allocated can be freed, so nothing is cut. */
    #define CONVCORE_CUTS 0
    #define CONVCORE_ARENA 0
    static Py_ssize_t convcore_page(void) { return 4096; }
    static void *convcore_map(Py_ssize_t size) { return _aligned_malloc(size, 4096); }
    static void convcore_unmap(void *start, Py_ssize_t size) { (void)size; _aligned_free(start); }
    #else
    #include <sys/mman.h>
    #include <unistd.h>
    #ifndef MAP_ANONYMOUS
    #define MAP_ANONYMOUS MAP_ANON
    #endif
    #define CONVCORE_CUTS 1
    #define CONVCORE_ARENA ((Py_ssize_t)1 << 24)
    static Py_ssize_t convcore_page(void) { return (Py_ssize_t)sysconf(_SC_PAGESIZE); }
    static void *convcore_map(Py_ssize_t size)
    {
        /* Linux gives huge pages where it is asked to and they fit: fewer faults at first use. */
        const Py_ssize_t huge = (Py_ssize_t)1 << 21;
        Py_ssize_t spare = size >= 2 * huge ? huge : 0, before;
        char *start;
        if (size > PY_SSIZE_T_MAX - spare)
            return NULL;
        start = mmap(NULL, size + spare, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == (char *)MAP_FAILED)
            return NULL;
        if (spare) {
            before = (Py_ssize_t)(-(size_t)start % huge);
            if (before)
                munmap(start, before);
            start += before;
            if (spare - before)
                munmap(start + size, spare - before);
    #ifdef MADV_HUGEPAGE
            madvise(start, size, MADV_HUGEPAGE);
    #endif
        }
        return start;
    }
    static void convcore_unmap(void *start, Py_ssize_t size) { munmap(start, size); }
    #endif
    """
    Py_ssize_t PY_SSIZE_T_MAX
    bint CONVCORE_CUTS
    Py_ssize_t CONVCORE_ARENA
    Py_ssize_t convcore_page() noexcept nogil
    void *convcore_map(Py_ssize_t size) noexcept nogil
    void convcore_unmap(void *start, Py_ssize_t size) noexcept nogil
    void convcore_trim() noexcept nogil


cdef struct Span:
    char *start
    Py_ssize_t size
    Span *left          # neighbours in the mapping, NULL at its ends and beside what was unmapped
    Span *right
    bint idle
    Span *newer         # neighbours in the list of idle spans
    Span *older

cdef struct Counts:
    Py_ssize_t used         # bytes in blocks
    Py_ssize_t reserved     # bytes in blocks and idle
    Py_ssize_t most_used    # what bounds `reserved`
    Py_ssize_t peak_used
    Py_ssize_t peak_reserved
    Py_ssize_t blocks
    Py_ssize_t taken        # blocks made since the start
    Py_ssize_t mapped       # mappings made since the start

cdef Py_ssize_t page = convcore_page()
# Idle spans that are looked at for one block: as many as a step of a deep net leaves; looking
# at all of them takes 3.5 us (python benchmarks/reuse.py).
cdef int most_looked_at = 1024
cdef Py_ssize_t limit = 0
cdef Counts counts
cdef char *arena = NULL         # what is left of it
cdef Py_ssize_t arena_size = 0
cdef Span *newest = NULL
cdef Span *oldest = NULL
cdef PyThread_type_lock lock = PyThread_allocate_lock()


# What is called under the lock

cdef void push(Span *span) noexcept:
    """Put a span on the list as the newest."""
    global newest, oldest
    span.idle = True
    span.newer = NULL
    span.older = newest
    if newest != NULL:
        newest.newer = span
    else:
        oldest = span
    newest = span


cdef void unlink(Span *span) noexcept:
    """Take a span off the list."""
    global newest, oldest
    span.idle = False
    if span.newer != NULL:
        span.newer.older = span.older
    else:
        newest = span.older
    if span.older != NULL:
        span.older.newer = span.newer
    else:
        oldest = span.newer


cdef Span *join(Span *left, Span *right) noexcept:
    """Make one span of two neighbours."""
    left.size += right.size
    left.right = right.right
    if left.right != NULL:
        left.right.left = left
    free(right)
    return left


cdef void cut(Span *span, Py_ssize_t size) noexcept:
    """Shorten a span to `size` bytes and leave the rest idle; without memory for that, do not."""
    cdef Span *rest = <Span *>malloc(sizeof(Span))
    if rest == NULL:
        return
    rest.start = span.start + size
    rest.size = span.size - size
    rest.left = span
    rest.right = span.right
    if rest.right != NULL:
        rest.right.left = rest
    span.right = rest
    span.size = size
    push(rest)


cdef Span *evicted(Span *span, Span *others) noexcept:
    """Part a span from its neighbours and put it before `others`, a list by `older`."""
    if span.left != NULL:
        span.left.right = NULL
    if span.right != NULL:
        span.right.left = NULL
    counts.reserved -= span.size
    span.older = others
    return span


cdef Span *evict(Py_ssize_t most) noexcept:
    """Take idle spans off, oldest first, until `most` bytes are reserved; return them."""
    cdef Span *doomed = NULL
    cdef Span *span
    while oldest != NULL and counts.reserved > most:
        span = oldest
        unlink(span)
        doomed = evicted(span, doomed)
    return doomed


cdef Span *find(Py_ssize_t size) noexcept:
    """Take an idle span of at least `size` bytes off the list, or return NULL.

    The newest of the spans that are at most an eighth too large, for it may still be in cache; else
    the smallest of the larger ones, cut, if a new mapping would have others unmapped.
    """
    cdef Span *span = newest
    cdef Span *larger = NULL
    cdef int looked_at = 0
    while span != NULL and looked_at < most_looked_at:
        looked_at += 1
        if span.size >= size:
            if span.size - size <= size // 8:
                unlink(span)
                return span
            if larger == NULL or span.size < larger.size:
                larger = span
        span = span.older
    if not CONVCORE_CUTS or larger == NULL or counts.reserved + size <= counts.most_used:
        return NULL
    unlink(larger)
    cut(larger, size)
    return larger


cdef char *from_arena(Py_ssize_t size) noexcept:
    """Return the next `size` bytes of the arena, or of a new one; NULL if there is none."""
    global arena, arena_size
    cdef char *start
    if size > arena_size:
        start = <char *>convcore_map(CONVCORE_ARENA)
        if start == NULL:
            return NULL
        drop_arena()
        arena = start
        arena_size = CONVCORE_ARENA
    start = arena
    arena += size
    arena_size -= size
    return start


cdef void drop_arena() noexcept:
    """Give the arena's rest back to the system."""
    global arena_size
    if arena_size:
        convcore_unmap(arena, arena_size)
    arena_size = 0


# What takes the lock

cdef void unmap(Span *span) noexcept:
    """Give a list of spans back to the system; not under the lock, for it takes long."""
    cdef Span *following
    while span != NULL:
        following = span.older
        convcore_unmap(span.start, span.size)
        free(span)
        span = following


cdef void release_idle() noexcept:
    """Give all idle memory back to the system; what is used now is the most that was ever used."""
    cdef Span *doomed
    PyThread_acquire_lock(lock, WAIT_LOCK)
    counts.most_used = counts.used
    doomed = evict(0)
    drop_arena()
    PyThread_release_lock(lock)
    unmap(doomed)


cdef char *map_memory(Py_ssize_t size) noexcept:
    """Return `size` bytes of the system's, or NULL."""
    cdef char *start = NULL
    if size <= CONVCORE_ARENA // 4:
        PyThread_acquire_lock(lock, WAIT_LOCK)
        start = from_arena(size)
        PyThread_release_lock(lock)
    return start if start != NULL else <char *>convcore_map(size)


cdef Span *new_mapping(Py_ssize_t size) noexcept:
    """Return a new mapping as one span, not counted yet, or NULL."""
    cdef Span *span = <Span *>malloc(sizeof(Span))
    if span == NULL:
        return NULL
    span.start = map_memory(size)
    if span.start == NULL:
        release_idle()
        span.start = map_memory(size)
    if span.start == NULL:
        free(span)
        return NULL
    span.size = size
    span.left = span.right = NULL
    span.idle = False
    return span


cdef Span *take(Py_ssize_t size) noexcept:
    """Return a span of at least `size` bytes, or NULL."""
    cdef bint is_new
    cdef Span *span
    cdef Span *doomed
    PyThread_acquire_lock(lock, WAIT_LOCK)
    span = find(size)
    PyThread_release_lock(lock)
    is_new = span == NULL
    if is_new:
        # Mapped before others are unmapped to make room: it has no pages before it is written.
        span = new_mapping(size)
        if span == NULL:
            return NULL
    PyThread_acquire_lock(lock, WAIT_LOCK)
    counts.blocks += 1
    counts.taken += 1
    counts.mapped += is_new
    counts.reserved += size if is_new else 0
    counts.used += span.size
    counts.most_used = max(counts.most_used, counts.used)
    doomed = evict(counts.most_used)
    counts.peak_used = max(counts.peak_used, counts.used)
    counts.peak_reserved = max(counts.peak_reserved, counts.reserved)
    PyThread_release_lock(lock)
    unmap(doomed)
    return span


cdef void give(Span *span) noexcept:
    """Make a block's span idle."""
    cdef Span *doomed
    PyThread_acquire_lock(lock, WAIT_LOCK)
    counts.blocks -= 1
    counts.used -= span.size
    if span.left != NULL and span.left.idle:
        unlink(span.left)
        span = join(span.left, span)
    if span.right != NULL and span.right.idle:
        unlink(span.right)
        span = join(span, span.right)
    if span.size > limit:
        doomed = evicted(span, NULL)
    else:
        push(span)
        doomed = evict(counts.used + limit)
    PyThread_release_lock(lock)
    unmap(doomed)


cdef class Block:
    """``n_bytes`` bytes that can be written, aligned to a page and not cleared.

    They come from the pool, and go back to it when the block dies.
    """

    cdef Span *span
    cdef Py_ssize_t n_bytes

    def __cinit__(self, Py_ssize_t n_bytes):
        if n_bytes <= 0 or n_bytes > PY_SSIZE_T_MAX - page:
            raise ValueError(f"a block cannot have {n_bytes} bytes")
        self.n_bytes = n_bytes
        self.span = take((n_bytes + page - 1) // page * page)
        if self.span == NULL:
            raise MemoryError(f"cannot allocate {n_bytes} bytes")

    def __len__(self):
        return self.n_bytes

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.span.start, self.n_bytes, False, flags)

    def __dealloc__(self):
        if self.span != NULL:
            give(self.span)


def release():
    """Give all idle memory back to the system, and forget how much was ever used.

    NumPy's, too: after a large array has died, glibc takes arrays of its size from the heap, which
    it gives back from its end only, until it is asked to.
    """
    release_idle()
    with nogil:
        convcore_trim()


def set_limit(Py_ssize_t n_bytes):
    """Keep at most so many bytes idle."""
    global limit
    cdef Span *doomed
    PyThread_acquire_lock(lock, WAIT_LOCK)
    limit = n_bytes
    doomed = evict(counts.used + limit)
    PyThread_release_lock(lock)
    unmap(doomed)


def get_limit():
    """Return how many bytes are kept idle at most."""
    return limit


def get_counts():
    """Return what was counted, by the names of the struct's members."""
    cdef Counts now
    PyThread_acquire_lock(lock, WAIT_LOCK)
    now = counts
    PyThread_release_lock(lock)
    return now


def reset_peaks():
    """Begin the peaks anew from what is there now."""
    PyThread_acquire_lock(lock, WAIT_LOCK)
    counts.peak_used = counts.used
    counts.peak_reserved = counts.reserved
    PyThread_release_lock(lock)


def after_fork():
    """Mend the child: a lock that nobody holds.  Blocks and idle memory are its own copies."""
    global lock
    lock = PyThread_allocate_lock()
