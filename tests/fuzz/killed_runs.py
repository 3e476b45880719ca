"""Kill a training run at random moments and resume it: it must end in the bits of one that was not.

    python tests/fuzz/killed_runs.py --count=100

A child trains a net with dropout, momentum, a schedule, and random augmentations in workers, and
saves after every other step; after each kill -9 a new one resumes.  When it is through, and kills
are left, a new run begins.  The exit code is 1 if the SHA-256 of weights, buffers and optimizer of
any run differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import convcore
from convcore import nn, optim
from convcore.serialization import TrainingState
from convcore.utils.data import DataLoader, Dataset

KINDS = ("none", "fork", "thread")
EPOCHS = 4


class Images(Dataset):
    """Images with noise, anew each time."""

    def __init__(self, alone: bool) -> None:
        self.images = convcore.randn(64, 1, 8, 8, generator=convcore.Generator().manual_seed(1))
        self.alone = alone  # threads share NumPy's and Python's generators

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple:
        noise = convcore.randn(1, 8, 8)
        if self.alone:
            noise = noise * float(np.random.rand()) + random.random()
        return self.images[number] + 0.1 * noise, number % 4


def backward_of(net: nn.Module) -> Callable:
    """Return what computes the gradients of a batch."""
    return lambda loss_of, *batch: loss_of(*batch).backward()


def train(
    file: Path,
    kind: str,
    backward_of: Callable[[nn.Module], Callable] = backward_of,
    saves: bool = True,
) -> str:
    """Train from where the file stands, and return the digest of all that was learnt."""
    convcore.manual_seed(2)
    np.random.seed(3)
    random.seed(4)
    convcore.set_num_threads(1)
    net = nn.Sequential(
        *(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.Conv2d(8, 8, 3)),
        *(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)),
    )
    sgd = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    schedule = optim.lr_scheduler.CosineAnnealingLR(sgd, EPOCHS)
    workers = {} if kind == "none" else {"num_workers": 2, "multiprocessing_context": kind}
    loader = DataLoader(Images(kind != "thread"), batch_size=8, shuffle=True, **workers)
    state = TrainingState(model=net, optimizer=sgd, schedule=schedule, loader=loader)
    state.resume(file)
    backward = backward_of(net)
    while state.epoch < EPOCHS:
        for images, labels in loader:
            sgd.zero_grad()
            backward(lambda x, y: nn.functional.cross_entropy(net(x), y), images, labels)
            sgd.step()
            state.step += 1
            if saves and state.step % 2 == 0:
                state.save(file)
        schedule.step()
        state.epoch += 1
        if saves:
            state.save(file)
    learnt = [value.numpy().tobytes() for value in net.state_dict().values()]
    learnt += [entry["momentum_buffer"].numpy().tobytes() for entry in sgd.state.values()]
    learnt.append(convcore.get_rng_state().numpy().tobytes())
    return hashlib.sha256(pickle.dumps(learnt)).hexdigest()


class Runner:
    """Runs children one after the other, and kills them."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self._kind, self._file = kind, folder / f"{kind}.pt"
        self._draw = random.Random(f"{seed} {kind}")
        start = time.perf_counter()
        self.expected = self._finish(self._start())
        self._seconds = time.perf_counter() - start
        self.kills, self.runs, self.different = 0, 0, 0

    def _start(self) -> subprocess.Popen:
        command = [sys.executable, __file__, f"--child={self._file}", f"--workers={self._kind}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def _finish(self, child: subprocess.Popen) -> str:
        printed = child.communicate()[0].split()
        if child.returncode:
            raise RuntimeError(f"the child ended with {child.returncode}")
        self._file.unlink()
        return printed[-1]

    def _is_killed(self, child: subprocess.Popen) -> bool:
        """Kill a child at a random moment, unless it is through by then."""
        try:
            child.wait(self._draw.uniform(0.3, 1) * self._seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            return True
        return False

    def kill(self, count: int) -> None:
        """Kill so many children, and let the last run end."""
        while True:
            child = self._start()
            if self.kills < count and self._is_killed(child):
                self.kills += 1
                continue
            self.runs += 1
            self.different += self._finish(child) != self.expected
            if self.kills >= count:
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="how many kills, of each kind")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--workers", choices=KINDS, help="one kind alone")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(train(options.child, options.workers))
        return 0
    different = 0
    folder = Path(tempfile.mkdtemp())
    try:
        for kind in [options.workers] if options.workers else KINDS:
            runner = Runner(kind, folder, options.seed)
            runner.kill(options.count)
            different += runner.different
            print(
                f"workers {kind}: {runner.kills} kills, {runner.runs} runs, {runner.different} "
                f"different from {runner.expected[:16]}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)
    return bool(different)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
