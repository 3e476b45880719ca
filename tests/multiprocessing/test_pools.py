"""Nets in the threads and processes of others: multiprocessing, joblib, dask."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg.blas
from net_targets import infer, infer_and_count, step

import convcore
from convcore import nn
from convcore.engine.runtime.threads import openmp

pytestmark = [
    pytest.mark.subprocess,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def net():
    convcore.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 5))


@pytest.fixture
def batches(rng):
    return [rng.standard_normal((2, 3, 16, 16)).astype("f4") for _ in range(6)]


def same(found, expected) -> bool:
    return [array.tobytes() for array in found] == [array.tobytes() for array in expected]


def test_threads_convolve_while_others_change_the_number_of_threads(threads):
    """And while SciPy multiplies, whose BLAS is held to one thread now and then."""
    expected = [step(seed) for seed in range(8)]
    a = np.random.default_rng(0).standard_normal((60, 60))
    exact, done, wrong = a @ a, threading.Event(), []

    def change() -> None:
        n = 0
        while not done.is_set():
            n += 1
            threads(n % 4 + 1)

    def multiply() -> None:
        while not done.is_set():
            if not np.allclose(scipy.linalg.blas.dgemm(1.0, a, a), exact):
                wrong.append(1)

    others = [threading.Thread(target=work) for work in (change, multiply)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for other in others:
            other.start()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(step, list(range(8)) * 5))
    finally:
        done.set()
        for other in others:
            other.join()
        sys.setswitchinterval(interval)
    assert found == expected * 5
    assert not wrong


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_compute_the_same_bits(method):
    if method not in convcore.multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    expected = [step(seed) for seed in range(4)]
    with convcore.multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(step, range(4)) == expected


def test_joblib_threads_share_a_net(net, batches):
    joblib = pytest.importorskip("joblib")
    count = convcore.get_num_threads()
    expected = [infer(net, images) for images in batches]
    work = (joblib.delayed(infer)(net, images) for images in batches)
    assert same(joblib.Parallel(3, backend="threading")(work), expected)
    assert convcore.get_num_threads() == count


def test_joblib_processes_get_a_net_and_their_share_of_the_cores(net, batches):
    """Joblib tells each process its share by OMP_NUM_THREADS, with which convcore begins."""
    joblib = pytest.importorskip("joblib")
    count = convcore.get_num_threads()
    expected = [infer(net, images) for images in batches]
    try:
        with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=3):
            work = (joblib.delayed(infer_and_count)(net, images) for images in batches)
            found, counts = zip(*joblib.Parallel()(work), strict=True)
    finally:
        joblib.externals.loky.get_reusable_executor().shutdown(wait=True)
    assert same(found, expected)
    assert set(counts) == {3 if openmp() else 1}
    assert convcore.get_num_threads() == count


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_maps_a_net(scheduler, net, batches):
    dask = pytest.importorskip("dask")
    count = convcore.get_num_threads()
    expected = [infer(net, images) for images in batches]
    work = [dask.delayed(infer)(net, images) for images in batches]
    assert same(dask.compute(*work, scheduler=scheduler, num_workers=2), expected)
    assert convcore.get_num_threads() == count
