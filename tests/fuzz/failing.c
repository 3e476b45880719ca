/* Allocations that fail when told to: preloaded into an interpreter by memory.py.
 *
 * Counted, while armed: every allocation by Python's allocators, of all three domains, and malloc,
 * calloc, realloc, posix_memalign, aligned_alloc and mmap where the caller lies in a watched library
 * (convcore's kernels, NumPy), whichever thread it is.  Those numbered `first` to `last` fail.
 * The OpenMP runtime is not watched: it ends the process where it gets no memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

enum { MOST_RANGES = 256, DOMAINS = 3 };

static struct { uintptr_t begin, end; int all; } ranges[MOST_RANGES];
static int n_ranges;
static volatile int armed;
static long counted, first, last, least;

/* Count what a library asks for: all of it, or as of Python. */
void watch(uintptr_t begin, uintptr_t end, int all)
{
    if (n_ranges < MOST_RANGES) {
        ranges[n_ranges].begin = begin;
        ranges[n_ranges].all = all;
        ranges[n_ranges++].end = end;
    }
}

/* Fail the allocations that are numbered so; of Python's, those from `size` bytes on are counted. */
void arm(long from, long to, long size)
{
    counted = 0;
    first = from;
    last = to;
    least = size;
    armed = 1;
}

/* Stop failing; return how many were counted. */
long disarm(void)
{
    armed = 0;
    return counted;
}

static int fails(size_t size, long from)
{
    long number;
    if (!armed || size < (size_t)from)
        return 0;
    number = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
    return first <= number && number <= last;
}

static int fails_for(void *caller, size_t size)
{
    int i;
    if (!armed)
        return 0;
    for (i = 0; i < n_ranges; ++i)
        if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end)
            return fails(size, ranges[i].all ? 0 : least);
    return 0;
}

/* Python's allocators */

typedef struct {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} Allocator;

static Allocator real[DOMAINS];

static void *python_malloc(void *ctx, size_t size)
{
    Allocator *a = ctx;
    return fails(size, least) ? NULL : a->malloc(a->ctx, size);
}

static void *python_calloc(void *ctx, size_t n, size_t size)
{
    Allocator *a = ctx;
    return fails(n * size, least) ? NULL : a->calloc(a->ctx, n, size);
}

static void *python_realloc(void *ctx, void *old, size_t size)
{
    Allocator *a = ctx;
    return fails(size, least) ? NULL : a->realloc(a->ctx, old, size);
}

static void python_free(void *ctx, void *old)
{
    Allocator *a = ctx;
    a->free(a->ctx, old);
}

void hook_python(void)
{
    void (*get)(int, Allocator *) = (void (*)(int, Allocator *))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void (*set)(int, Allocator *) = (void (*)(int, Allocator *))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    int domain;
    for (domain = 0; domain < DOMAINS; ++domain) {
        Allocator mine = {&real[domain], python_malloc, python_calloc, python_realloc, python_free};
        get(domain, &real[domain]);
        set(domain, &mine);
    }
}

/* The C library's, under its own names; glibc has others for the same. */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void *refused(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    return fails_for(__builtin_return_address(0), size) ? refused() : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails_for(__builtin_return_address(0), n * size) ? refused() : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails_for(__builtin_return_address(0), size) ? refused() : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails_for(__builtin_return_address(0), size) ? refused() : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (fails_for(__builtin_return_address(0), size))
        return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out == NULL ? ENOMEM : 0;
}

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (fails_for(__builtin_return_address(0), size)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (next == NULL)
        next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    return next(at, size, protection, flags, file, offset);
}
