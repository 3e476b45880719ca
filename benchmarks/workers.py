"""Images a second of an optimised ResNet-18 in joblib's processes, by workers and threads of each.

    python benchmarks/workers.py

A worker of a thread a core, one of all threads, too many threads, and too few; samples in turn,
best of three.
"""

from __future__ import annotations

import functools
import time

import joblib

import convcore
from convcore import models
from convcore.engine.runtime.cpus import cpu_limit

BATCH, BATCHES, ROUNDS = 8, 6, 3


@functools.cache  # once in each process; the first call makes the plan
def made():
    net = convcore.optimize_for_inference(models.resnet18())
    images = convcore.rand(BATCH, 3, 224, 224)
    net(images)
    return net, images


def run(_):
    net, images = made()
    net(images)
    return convcore.get_num_threads()


def sample(workers, threads):
    """Return images a second, and the threads that workers had."""
    convcore.set_num_threads(threads)  # a single worker is this process
    with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=threads):
        parallel = joblib.Parallel(batch_size=1)
        parallel(joblib.delayed(run)(i) for i in range(4 * workers))  # workers have the net
        start = time.perf_counter()
        counts = parallel(joblib.delayed(run)(i) for i in range(BATCHES))
        return BATCH * BATCHES / (time.perf_counter() - start), set(counts)


def main():
    cores = cpu_limit()
    cells = list(dict.fromkeys([(cores, 1), (1, cores), (cores, cores), (1, 1)]))
    best = dict.fromkeys(cells, 0.0)
    for _ in range(ROUNDS):
        for cell in cells:
            speed, counts = sample(*cell)
            best[cell] = max(best[cell], speed)
            assert counts == {cell[1]}, counts
    print(f"{cores} cores")
    for (workers, threads), speed in best.items():
        print(f"{workers} x {threads}: {speed:6.1f} images a second")


if __name__ == "__main__":
    import workers  # by name, so that processes find its functions, and keep their nets

    workers.main()
