"""The same bits for any number of threads; BLAS, the environment and forked children left whole."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest

import convcore
from convcore import engine
from convcore.engine.runtime import threads as thread_settings

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
OPENBLAS = pytest.mark.skipif(
    not engine.runtime.threads.blas().limitable, reason="the threads of this BLAS cannot be limited"
)

# Put before every child's program: layers, and the thread count of the BLAS that SciPy links.
PRELUDE = """if True:
    import json, os, sys, warnings
    import numpy as np
    import scipy.linalg
    import convcore
    from convcore import engine

    # Python 3.12 warns of any fork in a process with threads; these tests are about just that.
    warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)

    def numbers(shape, dtype="float32"):
        rng = np.random.default_rng(sum(shape))
        array = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            array = array + 1j * rng.standard_normal(shape)
        return array.astype(dtype)

    def scipys_blas():
        import threadpoolctl
        found = [
            library
            for library in threadpoolctl.ThreadpoolController().lib_controllers
            if library.user_api == "blas" and os.path.realpath(library.filepath)
            == os.path.realpath(engine.runtime.threads.blas().path)
        ]
        assert len(found) == 1, found
        return found[0]

    # Of float64, whose products are BLAS's.
    def convolve():
        x, w = numbers((2, 32, 40, 40), "float64"), numbers((48, 32, 3, 3), "float64")
        return engine.conv_forward(x, w, padding=1)

    def exact():
        from convcore.engine import reference
        x, w = numbers((2, 32, 40, 40), "float64"), numbers((48, 32, 3, 3), "float64")
        return reference.conv_forward(x, w, padding=1)

    def right(result):
        return np.allclose(result, exact(), atol=1e-3)

"""


FORKED = """
    import signal, time, traceback

    def fork_and_wait(work, seconds=30):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        for _ in range(seconds * 100):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                assert status == 0, status
                return
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError("the child hung")
"""


def with_prelude(program: str) -> str:
    """Return a child's whole program; its lines are as deep as the prelude's."""
    return PRELUDE + program


# The same bits

BITS = """
    import hashlib, itertools

    # input, C_out, kernel, stride, padding, dilation, groups
    LAYERS = {
        "small maps, blocks cross images": ((8, 64, 7, 7), 64, 3, 1, 1, 1, 1),
        "one large map": ((1, 16, 96, 96), 24, 3, 1, 1, 1, 1),
        "few channels": ((2, 3, 64, 64), 16, 7, 2, 3, 1, 1),
        "strided": ((2, 32, 29, 28), 48, 3, 2, 1, 1, 1),
        "stride beyond the kernel": ((2, 20, 30, 31), 24, 2, 3, 0, 1, 1),
        "dilated": ((2, 24, 24, 24), 24, 3, 1, 2, 2, 1),
        "pointwise": ((3, 64, 14, 14), 100, 1, 1, 0, 1, 1),
        "pointwise, strided": ((3, 64, 14, 14), 100, 1, 2, 0, 1, 1),
        "grouped": ((2, 32, 20, 20), 64, 3, 1, 1, 1, 4),
        "depthwise": ((2, 48, 28, 28), 48, 3, 1, 1, 1, 48),
        "small gradient of the weight": ((16, 8, 40, 40), 8, 3, 1, 1, 1, 1),
        "large gradient of the weight": ((1, 256, 6, 6), 200, 3, 1, 1, 1, 1),
        "rank 1": ((3, 20, 1000), 33, 5, 2, 3, 2, 1),
        "rank 3": ((1, 8, 10, 12, 14), 24, 3, 1, 1, 1, 1),
    }
    PRODUCTS = {
        "matmul": ((300, 500), (500, 600)),
        "matmul, long sum": ((8, 50000), (50000, 8)),
        "batched matmul": ((6, 70, 80), (6, 80, 90)),
        "matrix-vector": ((2000, 700), (700,)),
        "vector-matrix": ((700,), (700, 2000)),
        "vector-vector": ((100000,), (100000,)),
    }
    THREADS = (1, 2, 3, 7)

    def laid_out(array, channels_last):
        if not channels_last:
            return array
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)

    def digest(array):
        return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]

    blas = scipys_blas()

    def digests(compute):
        found = []
        for n in THREADS:
            convcore.set_num_threads(n)
            blas.set_num_threads(n)  # which may change nothing, because it is held to 1
            found.append(digest(compute()))
        return found

    found = {}
    for name, (shape, c_out, kernel, stride, padding, dilation, groups) in LAYERS.items():
        rank = len(shape) - 2
        steps = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        dtypes = ("float32", "complex64", "float64") if name == "strided" else ("float32",)
        for dtype, last in itertools.product(dtypes, (False, True)):
            x = laid_out(numbers(shape, dtype), last)
            w = laid_out(numbers((c_out, shape[1] // groups) + (kernel,) * rank, dtype), last)
            b = numbers((c_out,), dtype)
            y = laid_out(numbers(engine.conv_forward(x, w, **steps).shape, dtype), last)
            key = f"{name}, {dtype}, {'channels_last' if last else 'contiguous'}: "
            found[key + "forward"] = digests(lambda: engine.conv_forward(x, w, b, **steps))
            found[key + "input_grad"] = digests(
                lambda: engine.conv_input_grad(y, w, shape[2:], **steps))
            found[key + "weight_grad"] = digests(
                lambda: engine.conv_weight_grad(x, y, (kernel,) * rank, **steps))
            found[key + "bias_grad"] = digests(lambda: engine.conv_bias_grad(y))
    for name, (a, b) in PRODUCTS.items():
        for dtype in ("float32", "float64", "complex64", "complex128"):
            left, right_ = numbers(a, dtype), numbers(b, dtype)
            found[f"{name}, {dtype}"] = digests(lambda: engine.matmul(left, right_))
            if left.ndim > 1:
                found[f"{name}, {dtype}, transposed"] = digests(
                    lambda: engine.matmul(np.asfortranarray(left), right_))
    x = numbers((4, 16, 50, 50))
    columns = engine.im2col(x, 3, padding=1)
    found["im2col"] = digests(lambda: engine.im2col(x, 3, padding=1))
    found["col2im"] = digests(lambda: engine.col2im(columns, (50, 50), (3, 3), padding=1))
    tasks = "/proc/self/task"
    threads = len(os.listdir(tasks)) if os.path.isdir(tasks) else None
    print(json.dumps({
        "digests": found,
        "openmp": engine.runtime.threads.openmp(),
        "threads": threads,
        "architecture": engine.runtime.threads.blas().architecture,
    }))
"""


@pytest.mark.subprocess
@OPENBLAS
@pytest.mark.parametrize("coretype", [None, "Haswell"])
def test_bits_do_not_depend_on_the_number_of_threads(coretype, run_child):
    found = json.loads(run_child(with_prelude(BITS), coretype=coretype, timeout=300))
    if coretype is not None and sys.platform == "linux":
        assert found["architecture"] == coretype
    differing = [name for name, digests in found["digests"].items() if len(set(digests)) > 1]
    assert not differing
    assert len(found["digests"]) > 150
    # Agreement would be no wonder if only one thread had ever run.
    if found["openmp"] and found["threads"] is not None:
        assert found["threads"] >= 7


# BLAS


@pytest.mark.subprocess
@OPENBLAS
def test_blas_thread_count_is_as_found_after_work_and_changes_no_bit(run_child):
    run_child(
        with_prelude("""
    blas, found = scipys_blas(), set()
    for count in (1, 2, 3):
        blas.set_num_threads(count)
        if blas.get_num_threads() != count:
            continue  # a BLAS built for fewer
        for threads in (1, 2, 4):
            convcore.set_num_threads(threads)
            y = convolve()
            assert right(y)
            found.add(y.tobytes())
            assert blas.get_num_threads() == count
            engine.matmul(np.ones((300, 300)), np.ones((300, 300)))
            assert blas.get_num_threads() == count
    assert len(found) == 1
    """)
    )


@pytest.mark.subprocess
@OPENBLAS
def test_blas_thread_count_is_as_found_after_an_exception(run_child):
    run_child(
        with_prelude("""
    blas = scipys_blas()
    convolve()
    blas.set_num_threads(2)
    count = blas.get_num_threads()
    x, w = np.ones((1, 4, 8, 8)), np.ones((4, 4, 3, 3))
    for call in (
        lambda: engine.conv_forward(x, w, stride=0),
        lambda: engine.conv_forward(x, w, np.ones(3)),
        lambda: engine.conv_forward(x, w.astype("float32")),
        lambda: engine.conv_input_grad(x, w, (8, 8)),
        lambda: engine.conv_weight_grad(x, x, (9, 9)),
        lambda: engine.matmul(x, np.ones((3, 3))),
        lambda: engine.conv_forward(x, w, padding=1 << 40),
    ):
        try:
            call()
        except (TypeError, ValueError, MemoryError):
            assert blas.get_num_threads() == count
        else:
            raise AssertionError("no error")
    assert right(convolve())
    assert blas.get_num_threads() == count
    """)
    )


@LINUX
@pytest.mark.subprocess
@OPENBLAS
def test_failed_allocation_is_a_memory_error_and_the_process_goes_on(run_child):
    """At limits from nothing to plenty, so that each allocation of a call fails once."""
    out = run_child(
        with_prelude("""
    import gc, resource
    convcore.set_num_threads(2)
    blas = scipys_blas()
    x, w = numbers((4, 64, 128, 128)), numbers((64, 64, 3, 3))
    y = engine.conv_forward(x, w, padding=1)
    passes = {
        "forward": lambda: engine.conv_forward(x, w, padding=1),
        "input_grad": lambda: engine.conv_input_grad(y, w, (128, 128), padding=1),
        "weight_grad": lambda: engine.conv_weight_grad(x, y, (3, 3), padding=1),
        "im2col": lambda: engine.im2col(x, 3, padding=1),
        "matmul": lambda: engine.matmul(x.reshape(256, -1).T, x.reshape(256, -1)[:, :512]),
    }
    right_ = {name: compute() for name, compute in passes.items()}
    blas.set_num_threads(2)
    count = blas.get_num_threads()
    failed = passed = 0
    for name, compute in passes.items():
        for megabytes in (0, 1, 2, 4, 8, 15, 16, 17, 20, 32, 64, 256, 1024):
            engine.empty_cache()
            gc.collect()
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS,
                               (used + (megabytes << 20), resource.RLIM_INFINITY))
            try:
                result = compute()
            except MemoryError:
                failed += 1
                result = None
            finally:
                resource.setrlimit(resource.RLIMIT_AS,
                                   (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert blas.get_num_threads() == count
            if result is not None:
                passed += 1
                assert (result == right_[name]).all(), (name, megabytes)
        assert (compute() == right_[name]).all()
    print(failed, passed)
    """),
        timeout=300,
    )
    failed, passed = map(int, out.split())
    assert failed > 10
    assert passed > 10


@pytest.mark.subprocess
@OPENBLAS
def test_eight_python_threads_at_once_are_right_and_leave_blas_as_found(run_child):
    run_child(
        with_prelude("""
    from concurrent.futures import ThreadPoolExecutor
    convcore.set_num_threads(2)
    jobs = []
    for i in range(8):
        x, w = numbers((2, 8 + i, 20 + i, 24)), numbers((16 + i, 8 + i, 3, 3))
        y = engine.conv_forward(x, w, padding=1)
        jobs.append((
            lambda x=x, w=w: engine.conv_forward(x, w, padding=1),
            lambda y=y, w=w, x=x: engine.conv_input_grad(y, w, x.shape[2:], padding=1),
            lambda x=x, y=y: engine.conv_weight_grad(x, y, (3, 3), padding=1),
            lambda x=x: engine.matmul(x, x.swapaxes(-1, -2)),
        ))
    # One job for all as well: what a call remembers must not be shared while it runs.
    jobs += [jobs[0]] * 8
    alone = [[compute().tobytes() for compute in job] for job in jobs]
    blas = scipys_blas()
    blas.set_num_threads(2)
    count = blas.get_num_threads()

    def work(job, expected):
        for _ in range(20):
            for compute, bits in zip(job, expected):
                assert compute().tobytes() == bits

    sys.setswitchinterval(1e-5)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, jobs, alone))
    assert blas.get_num_threads() == count
    """),
        timeout=300,
    )


@pytest.mark.subprocess
def test_first_calls_of_eight_python_threads_find_blas_once(run_child):
    """The library is looked for at the first region, which eight threads may reach together."""
    run_child(
        with_prelude("""
    import threading
    barrier, failures = threading.Barrier(8), []

    def work():
        barrier.wait()
        if not right(convolve()):
            failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    if engine.runtime.threads.blas().limitable:
        blas = scipys_blas()
        blas.set_num_threads(2)
        assert blas.get_num_threads() == 2
        convolve()
        assert blas.get_num_threads() == 2
    """)
    )


@pytest.mark.subprocess
def test_all_calls_together_stay_within_what_blas_serves(run_child):
    """More than 64 callers at once and OpenBLAS complains on standard error."""
    run_child("""if True:
    import os, tempfile, threading
    import numpy as np
    import convcore
    from convcore import engine

    convcore.set_num_threads(1000)
    assert convcore.get_num_threads() <= 64
    x, w = np.ones((8, 64, 28, 28)), np.ones((64, 64, 3, 3))  # of float64: BLAS's products
    exact = engine.conv2d(x, w)
    wrong = []
    complaints = tempfile.TemporaryFile()
    os.dup2(complaints.fileno(), 2)

    def work():
        for _ in range(3):
            if engine.conv2d(x, w).tobytes() != exact.tobytes():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    complaints.seek(0)
    assert not wrong and not complaints.read()
    """)


@pytest.mark.subprocess
def test_build_without_openmp_says_one_thread(run_child):
    run_child("""if True:
    import convcore
    from convcore.engine.runtime import threads

    convcore.set_num_threads(5)
    assert convcore.get_num_threads() == (5 if threads.openmp() else 1)
    """)


@pytest.mark.subprocess
def test_huge_omp_num_threads_is_no_error(run_child):
    run_child("""if True:
    import os
    # As the shell would have had it: the variable is read when the engine is imported.
    os.environ["OMP_NUM_THREADS"] = "99999999999"
    import convcore

    assert convcore.get_num_threads() >= 1
    """)


# The process around it


@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform == "win32", reason="has no environ to read")
def test_environment_is_untouched_by_import_and_work(run_child):
    """Both Python's copy and the C library's, which setenv would change alone."""
    run_child("""if True:
    import ctypes, os

    def environment():
        entries = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
        found, i = [], 0
        while entries[i] is not None:
            found.append(entries[i])
            i += 1
        return sorted(found), dict(os.environ)

    import numpy, scipy.linalg.cython_blas
    before = environment()
    import convcore
    from convcore import engine
    assert environment() == before
    convcore.set_num_threads(2)
    x = numpy.ones((2, 32, 40, 40), "float32")
    engine.conv_forward(x, numpy.ones((32, 32, 3, 3), "float32"))
    engine.matmul(x, x)
    assert environment() == before
    """)


@FORK
@pytest.mark.subprocess
@pytest.mark.parametrize("parent_threads", [1, 2])
def test_child_forked_after_work_convolves_with_the_same_bits(parent_threads, run_child):
    out = run_child(
        with_prelude(
            FORKED
            + f"""
    convcore.set_num_threads({parent_threads})
    expected = convolve().tobytes()
    blas = scipys_blas() if engine.runtime.threads.blas().limitable else None
    count = blas and blas.get_num_threads()

    own_pool = engine.runtime.threads.build()[1]

    def child():
        assert convolve().tobytes() == expected
        assert convcore.get_num_threads() == ({parent_threads} if own_pool else 1)
        if own_pool:  # it has started threads of its own
            assert len(os.listdir("/proc/self/task")) >= {parent_threads}
        # Asking for more threads must not hang either.
        convcore.set_num_threads(4)
        assert convolve().tobytes() == expected
        assert count is None or blas.get_num_threads() == count

    for _ in range(3):
        fork_and_wait(child)
        assert convolve().tobytes() == expected
    assert convcore.get_num_threads() == {parent_threads}
    print("done")
    """
        ),
        timeout=120,
    )
    assert out.split() == ["done"]


@FORK
@pytest.mark.subprocess
def test_fork_waits_for_another_threads_region(run_child):
    """Within it a lock of BLAS's may be taken: by a thread that the child does not have."""
    out = run_child(
        # Handlers of before run in reverse order: this one last, when nothing may run any more.
        """if True:
    import os
    counts = []
    os.register_at_fork(before=lambda: counts.append(blas and blas.get_num_threads()))
"""
        + with_prelude(
            FORKED
            + """
    import threading, time
    convcore.set_num_threads(2)
    expected = convolve().tobytes()
    blas = scipys_blas() if engine.runtime.threads.blas().limitable else None
    if blas:
        blas.set_num_threads(2)
    count = blas and blas.get_num_threads()
    x, w = numbers((8, 64, 64, 64), "float64"), numbers((64, 64, 3, 3), "float64")
    running = True

    def work():
        while running:
            engine.conv_forward(x, w, padding=1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()

    def child():
        assert convolve().tobytes() == expected
        assert count is None or blas.get_num_threads() == count, blas.get_num_threads()

    try:
        for i in range(10):
            time.sleep(0.003 * i)
            fork_and_wait(child)
    finally:
        running = False
        for thread in threads:
            thread.join()
    assert counts == [count] * 10, counts
    assert convolve().tobytes() == expected
    assert count is None or blas.get_num_threads() == count
    print("done")
    """
        ),
        timeout=180,
    )
    assert out.split() == ["done"]


# When convcore's own handler runs: those of before run in reverse order, the others in order.
REGISTER = """
    for when in ("before", "after_in_parent", "after_in_child"):
        os.register_at_fork(**{when: lambda when=when: ran.append((when, convolve().tobytes()))})
"""


@FORK
@pytest.mark.subprocess
@pytest.mark.parametrize("registered", ["before the import", "after it"])
def test_handlers_of_a_fork_may_convolve(registered, run_child):
    early, late = (REGISTER, "") if registered == "before the import" else ("", REGISTER)
    out = run_child(
        "if True:\n    import os\n    ran = []\n"
        + early
        + with_prelude(
            FORKED
            + late
            + """
    convcore.set_num_threads(2)
    expected = convolve().tobytes()
    blas = scipys_blas() if engine.runtime.threads.blas().limitable else None
    count = blas and blas.get_num_threads()

    def child():
        assert ran == [("before", expected), ("after_in_child", expected)]
        assert convolve().tobytes() == expected
        assert count is None or blas.get_num_threads() == count

    fork_and_wait(child)
    assert ran == [("before", expected), ("after_in_parent", expected)]
    ran.clear()
    fork_and_wait(child)
    assert convolve().tobytes() == expected
    assert count is None or blas.get_num_threads() == count
    print("done")
    """
        )
    )
    assert out.split() == ["done"]


@FORK
@pytest.mark.subprocess
def test_forked_child_finds_the_locks_of_the_process_free(run_child):
    """Also where another thread held them at the fork."""
    out = run_child(
        with_prelude(
            FORKED
            + """
    import contextlib, threading
    from convcore import random
    from convcore.autograd import handle, traversal
    from convcore.engine.conv import selection

    locks = (
        random.default_generator._lock, traversal._accumulating, handle._ids, selection._changing
    )
    held, forked = threading.Event(), threading.Event()

    def hold():
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            held.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def child():
        x = convcore.rand(3, requires_grad=True)
        x.register_hook(lambda grad: None)
        x.sum().backward()
        selection.select(strict=False)

    try:
        fork_and_wait(child)
    finally:
        forked.set()
        thread.join()
    print("done")
    """
        )
    )
    assert out.split() == ["done"]


# The number of threads


@pytest.mark.skipif(not engine.runtime.threads.openmp(), reason="built without OpenMP: one thread")
def test_num_threads_is_what_was_set(threads):
    for n in (1, 2, 3, 7, np.int64(5)):
        threads(n)
        assert convcore.get_num_threads() == n
        assert engine.get_num_threads() == n


@pytest.mark.parametrize("bad", [0, -1, -(2**70), 1.5, "2", None, True, [2]])
def test_num_threads_refuses_what_is_no_positive_int(bad, threads):
    threads(3)
    found = convcore.get_num_threads()
    error = ValueError if isinstance(bad, int) and not isinstance(bad, bool) else TypeError
    with pytest.raises(error, match="n must be") as caught:
        threads(bad)
    shown = type(bad).__name__ if error is TypeError else str(bad)
    assert shown in str(caught.value)
    assert convcore.get_num_threads() == found


def test_more_threads_than_anything_needs_are_taken(threads):
    x = np.ones((4, 32, 40, 40))
    w = np.ones((32, 32, 3, 3))
    for n in (64, 65, 1000, 2**40, 2**100):
        threads(n)
        assert (engine.conv_forward(x, w) == 9 * 32).all()


@LINUX
@pytest.mark.subprocess
def test_num_threads_begins_with_the_affinity_of_the_process(run_child):
    out = run_child("""if True:
    import os
    os.environ.pop("OMP_NUM_THREADS", None)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import convcore
    print(convcore.get_num_threads())
    """)
    assert int(out) == 1


@pytest.mark.parametrize("size", ["16K", "16", "131071B", " 64 k "])
@pytest.mark.parametrize("name", ["OMP_STACKSIZE", "GOMP_STACKSIZE"])
def test_too_small_stacks_of_threads_are_an_error_at_import(name, size):
    with pytest.raises(ImportError, match=f"{name}=.*set it to 128K or more"):
        thread_settings.check_stack({name: size})


def test_other_stacks_of_threads_are_taken():
    for size in ("128K", "1M", "131072B", "2g", "nonsense", ""):
        thread_settings.check_stack({"OMP_STACKSIZE": size})


WITHIN_THE_LEAST_STACK = """
import convcore
from convcore.nn import functional as F

convcore.set_num_threads(2)
for name in ("contiguous_format", "channels_last"):
    x = convcore.ones(4, 32, 28, 28).contiguous(memory_format=getattr(convcore, name))
    w = convcore.ones(32, 32, 3, 3, requires_grad=True)
    F.conv2d(x.requires_grad_(), w, padding=1).sum().backward()
"""


@pytest.mark.subprocess
def test_least_stack_is_enough_for_winograd(run_child, monkeypatch):
    monkeypatch.setenv("OMP_STACKSIZE", "128K")
    run_child(WITHIN_THE_LEAST_STACK)


WITHOUT_DESCRIPTORS = """
import os, resource
import convcore

x = convcore.ones(3, 3)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    x @ x
except RuntimeError as error:
    print(error)
for one in held:
    os.close(one)
print((x @ x).tolist()[0])
"""


@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform == "win32", reason="no limit on descriptors")
def test_first_product_without_descriptors_is_a_clear_error_and_the_next_works(run_child):
    first, second = run_child(WITHOUT_DESCRIPTORS).splitlines()
    assert "BLAS" in first and "first use" in first
    assert second == "[3.0, 3.0, 3.0]"


# How threads wait


@pytest.mark.parametrize(
    ("variables", "has_quota", "expected"),
    [
        ({}, False, (thread_settings.IDLE_SPIN, thread_settings.JOIN_SPIN, True)),
        ({}, True, (0, 0, False)),
        ({"OMP_WAIT_POLICY": "PASSIVE"}, False, (0, 0, False)),
        ({"OMP_WAIT_POLICY": " active "}, True, (2**62, 2**62, False)),
        ({"OMP_WAIT_POLICY": "nonsense"}, False, (300_000, 50_000, True)),
        ({"GOMP_SPINCOUNT": "300000"}, False, (3_000_000, 3_000_000, False)),
        ({"GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "active"}, False, (0, 0, False)),
        ({"GOMP_SPINCOUNT": "infinity"}, False, (2**62, 2**62, False)),
        ({"GOMP_SPINCOUNT": "9" * 25}, False, (2**62, 2**62, False)),
        ({"GOMP_SPINCOUNT": "10ms"}, False, (300_000, 50_000, True)),
        ({"KMP_BLOCKTIME": "1 hour"}, False, (300_000, 50_000, True)),
        ({"GOMP_SPINCOUNT": "-1"}, False, (300_000, 50_000, True)),
        ({"KMP_BLOCKTIME": "200"}, False, (200_000_000, 200_000_000, False)),
        ({"KMP_BLOCKTIME": "20us"}, False, (20_000, 20_000, False)),
        ({"KMP_BLOCKTIME": "infinite"}, False, (2**62, 2**62, False)),
        ({"KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": "active"}, False, (2**62, 2**62, False)),
    ],
)
def test_the_users_openmp_variables_decide_how_threads_wait(variables, has_quota, expected):
    assert thread_settings.spin_settings(variables, has_quota) == expected


POOL = pytest.mark.skipif(
    not thread_settings.build()[1], reason="the compiler's OpenMP runtime is used"
)


@POOL
@pytest.mark.subprocess
def test_idle_threads_sleep(run_child):
    """A process that has stopped computing uses no CPU time."""
    out = run_child(
        with_prelude("""
    import time
    convcore.set_num_threads(4)
    convolve()
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    print(time.process_time() - before)
    """)
    )
    assert float(out) < 0.1  # libgomp's would spin for some milliseconds, an endless spin for 1.5 s


@POOL
@pytest.mark.subprocess
def test_callers_share_the_threads_of_the_process(run_child):
    """Sixteen callers have the pool's three workers together, and the bits of one caller."""
    run_child(
        with_prelude("""
    from concurrent.futures import ThreadPoolExecutor
    convcore.set_num_threads(4)
    expected = convolve().tobytes()
    before = len(os.listdir("/proc/self/task"))
    most = []

    def work(_):
        for _ in range(10):
            assert convolve().tobytes() == expected
            most.append(len(os.listdir("/proc/self/task")))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert max(most) <= before + 16, (before, max(most))
    """),
        timeout=300,
    )


@POOL
@pytest.mark.subprocess
@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "OMP_PLACES"])
@pytest.mark.parametrize("first", ["convcore", "torch"])
def test_binding_variables_leave_all_cpus(name, first, run_child, monkeypatch):
    """Another library's OpenMP runtime binds the importing thread to one CPU, not the pool."""
    pytest.importorskip(first)
    monkeypatch.setenv(name, {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}[name])
    out = run_child(
        f"import os; before = os.sched_getaffinity(0); import {first}\n"
        + with_prelude("""
    import time
    assert convcore.get_num_threads() == len(before), (convcore.get_num_threads(), before)
    convolve()
    end = time.monotonic() + 10  # a worker frees itself when it first runs, on the caller's CPU
    while True:
        masks = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
        if before in masks:
            break
        assert time.monotonic() < end, masks
        time.sleep(0.01)
    print("done")
    """)
    )
    assert out.split() == ["done"]


@POOL
@pytest.mark.subprocess
def test_another_librarys_openmp_is_not_affected(run_child):
    """convcore loads no OpenMP runtime, and changes no setting of one that is there."""
    pytest.importorskip("torch")
    run_child("""if True:
    import torch, threadpoolctl
    def runtimes():
        return [
            {name: info[name] for name in ("filepath", "num_threads")}
            for info in threadpoolctl.threadpool_info() if info["user_api"] == "openmp"
        ]
    before = runtimes()
    import numpy as np
    import convcore
    from convcore import engine
    convcore.set_num_threads(3)
    x, w = np.ones((2, 32, 40, 40), "float32"), np.ones((32, 32, 3, 3), "float32")
    y = engine.conv_forward(x, w, padding=1)
    z = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), padding=1)
    assert np.allclose(y, z.numpy(), rtol=1e-4)
    assert runtimes() == before, (runtimes(), before)
    """)


@POOL
@pytest.mark.subprocess
def test_no_openmp_runtime_is_loaded(run_child):
    out = run_child("""if True:
    import numpy as np
    from convcore import engine
    engine.conv_forward(np.ones((2, 32, 40, 40)), np.ones((32, 32, 3, 3)))
    print([line for line in open("/proc/self/maps") if "omp" in line.rpartition("/")[2]])
    """)
    assert out.strip() == "[]"
