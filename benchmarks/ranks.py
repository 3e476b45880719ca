"""Data-parallel training on one machine: ranks of a thread beside the threads of one process.

    python benchmarks/ranks.py [--nets resnet18,lenet] [--ranks 1,2] [--rounds 3]   # '.[bench,mpi]'

Each rank trains on a batch of its own; one process of as many threads trains on all of these
batches at once. The setups take turns, each in processes of its own, and the shortest step counts.
Efficiency is images per second / (n_ranks * those of one rank); the ceiling is the efficiency
without communication (`no_sync`); overlap is the share of the gradients' bytes that was reduced
when the backward pass ended; over threads is the speed of the ranks over that of the one process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import convcore
from convcore import distributed as dist
from convcore.bench import nets
from convcore.bench.process import worker_environment
from convcore.engine.runtime.cpus import cpu_limit
from convcore.nn.parallel import DistributedDataParallel

SECONDS = 1.0  # of a sample


def train(name, n_batches):
    """Train as one of the ranks that mpiexec started; the first prints what it measured."""
    dist.init_process_group(timeout=600)
    net = nets.own_net(name)
    net = replace(net, batch=n_batches * net.batch)
    model = nets.make_net(convcore, net).train()
    if dist.get_world_size() > 1:
        model = DistributedDataParallel(model)
    step = nets.training_step(
        convcore, net, model, convcore.from_numpy(nets.pictures(net, nets.TRAIN))
    )
    for _ in range(2):  # the buckets are put in order after the first step
        step()
    n_steps = convcore.tensor(max(1, round(SECONDS / timed(step, 1))))
    dist.broadcast(n_steps, 0)
    found = {"step": timed(step, int(n_steps))}
    if dist.get_world_size() > 1:
        found["overlap"] = model._reducer.overlap
        with model.no_sync():
            found["computing"] = timed(step, int(n_steps))
    if dist.get_rank() == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def timed(step, n_steps):
    """Return the seconds per step, from the first rank's start to the last one's end."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(n_steps):
        step()
    dist.barrier()
    return (time.perf_counter() - start) / n_steps


def measured(net, n_ranks, n_threads, n_batches):
    """Return what a setup measured in processes of its own."""
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    launcher = [beside or "mpiexec", "-n", str(n_ranks)] if n_ranks > 1 else []
    done = subprocess.run(
        [*launcher, sys.executable, __file__, "--train", f"{net},{n_batches}"],
        env=worker_environment(os.environ, n_threads),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def compared(net, setups, n_rounds):
    """Return the shortest times, and the last overlap, of each setup."""
    best = {setup: {} for setup in setups}
    for _ in range(n_rounds):
        for setup, times in best.items():
            for key, value in measured(net, *setup).items():
                times[key] = min(value, times.get(key, value)) if key != "overlap" else value
    return best


def row(setup, best):
    """Return the columns of a setup's row after its name."""
    n_ranks, _, n_batches = setup
    times, one = best[setup], best[1, 1, 1]["step"]
    columns = [f"{1e3 * times['step']:.1f}", f"{n_ranks * n_batches * one / times['step']:.2f}"]
    if n_ranks == 1:
        return columns
    threads = best[1, n_ranks, n_ranks]["step"]
    shares = one / times["step"], one / times["computing"], times["overlap"]
    return [*columns, *(f"{share:.0%}" for share in shares), f"{threads / times['step']:.2f}"]


def main():
    """Print a table for each net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", default="resnet18,mobilenet_v2,lenet")
    parser.add_argument("--ranks", help="default: 1 to the number of cores")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        name, n_batches = options.train.split(",")
        train(name, int(n_batches))
        return
    ranks = map(int, options.ranks.split(",")) if options.ranks else range(1, cpu_limit() + 1)
    pairs = [((n, 1, 1), (1, n, n)) for n in ranks if n > 1]
    setups = [(1, 1, 1), *(setup for pair in pairs for setup in pair)]
    headings = ("ms a step", "speed", "efficiency", "ceiling", "overlap", "over threads")
    for net in options.nets.split(","):
        best = compared(net, setups, options.rounds)
        print(f"{net:24}", *(f"{heading:>13}" for heading in headings))
        for setup in setups:
            name = "{} ranks x {} threads".format(*setup)
            print(f"{name:24}", *(f"{column:>13}" for column in row(setup, best)), flush=True)


if __name__ == "__main__":
    main()
