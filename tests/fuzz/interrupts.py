"""Press Ctrl-C at random moments of training: it must end the work, and leave nothing behind.

    python tests/fuzz/interrupts.py --count=1000 --seed=20

Each work is interrupted by a timer's signal, whose handler raises KeyboardInterrupt as Python's own
of Ctrl-C does.  Afterwards all settings must be as before, with no thread, process, descriptor or
file left, and another net's forward and backward pass must give the same bits as ever.  The exit
code is 1 if something was not so.  What Python itself leaves is counted apart: what multiprocessing
holds while it makes a pipe, forks or waits, and interrupts that came in a finalizer or in a handler
of a fork, where Python drops them.  `--plain` leaves out the works with contexts of the user's, and
with processes.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import convcore
from convcore import nn, overrides
from convcore.amp import autocast, autocast_mode
from convcore.autograd import anomaly_mode, casting, grad_mode
from convcore.autograd.graph import save_on_cpu
from convcore.backends import conv
from convcore.engine.conv import selection
from convcore.nn import functional as F
from convcore.utils.checkpoint import checkpoint
from convcore.utils.data import DataLoader, TensorDataset

# Where multiprocessing has a descriptor, or a process that has ended, that it has not noted yet.
UNGUARDED = ("popen_fork.", "connection.Pipe", "connection._close")
FIRST = {key: convcore.full((40_000,), key) for key in range(3)}
SECOND = {key: tensor + 10 for key, tensor in FIRST.items()}


def make_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, stride=2, groups=2),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(16 * 3 * 3, 10),
    )


class Works:
    """What is interrupted, each a method; and a pass whose bits must stay."""

    def __init__(self, folder: str) -> None:
        convcore.manual_seed(0)
        self.file = Path(folder, "a.pt")
        convcore.save(FIRST, self.file)
        self.images, self.labels = convcore.randn(4, 3, 16, 16), convcore.randint(0, 10, (4,))
        self.net, self.witness = make_net(), make_net().eval()
        self.net(self.images), self.witness(self.images)
        self.optimizer = convcore.optim.AdamW(self.net.parameters(), lr=0.01)
        self.loader = DataLoader(TensorDataset(convcore.randn(32, 3), convcore.arange(32)), 4)

    def forward(self) -> Any:
        return F.cross_entropy(self.net(self.images), self.labels)

    def forward_in_contexts(self) -> None:
        with convcore.no_grad(), convcore.device("cpu"):
            self.forward()
        with convcore.inference_mode(), conv.flags(strict=True):
            self.forward()
        with autocast("cpu"), save_on_cpu(), convcore.set_grad_enabled(True):
            self.forward()

    def backward(self) -> None:
        self.net.zero_grad()
        self.forward().backward()

    def backward_in_contexts(self) -> None:
        with convcore.autograd.set_detect_anomaly(True):
            checkpoint(lambda: self.forward(), use_reentrant=False).backward()

    def step(self) -> None:
        for parameter in self.net.parameters():
            parameter.grad = convcore.ones_like(parameter)
        self.optimizer.step()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)

    def save(self) -> None:
        convcore.save(SECOND, self.file)

    def load(self) -> None:
        convcore.load(self.file)

    def loader_here(self) -> None:
        list(self.loader)

    def loader_with_workers(self) -> None:
        list(DataLoader(self.loader.dataset, 4, num_workers=2))

    def bits(self) -> str:
        """Return a digest of the witness's loss and gradients."""
        self.witness.zero_grad()
        loss = F.cross_entropy(self.witness(self.images), self.labels)
        loss.backward()
        digest = hashlib.sha256(loss.detach().numpy().tobytes())
        for parameter in self.witness.parameters():
            digest.update(parameter.grad.numpy().tobytes())
        return digest.hexdigest()

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the file and its folder."""
        found = convcore.load(self.file)
        if [int(tensor[-1]) for tensor in found.values()] not in ([0, 1, 2], [10, 11, 12]):
            yield "the file is not whole"
        for other in self.file.parent.iterdir():
            if other != self.file:
                yield "an unfinished file is left"
                other.unlink()


WORKS = [
    name for name, value in vars(Works).items() if name not in ("bits", "faults") and name[0] != "_"
]

PLAIN = [name for name in WORKS if not name.endswith(("_in_contexts", "_with_workers"))]


def settings(blas: list) -> dict[str, Any]:
    """Return all that holds beyond a call: modes, flags, threads, descriptors."""
    mode = grad_mode.mode
    found = {name: getattr(mode, name) for name in vars(type(mode)) if not name.startswith("_")}
    return {
        **found,
        "threads in inference mode": len(convcore._tensor.recording.inferring),
        "anomaly": (anomaly_mode.anomaly.enabled, anomaly_mode.anomaly.check_nan),
        "autocast": (
            autocast_mode.is_autocast_enabled("cpu"),
            autocast_mode.get_autocast_dtype("cpu"),
            casting.here.cache is None,
            (casting.here.nesting, casting.here.inside),
            casting.exchange.holders(),
            F.conv2d.__code__.co_name,
            F.conv2d.__code__.co_argcount,
        ),
        "selection": selection.current(),
        "dtype": convcore.get_default_dtype(),
        "device": convcore.get_default_device(),
        "deterministic": convcore.are_deterministic_algorithms_enabled(),
        "modes": (len(overrides._state.modes), overrides._state.no_subclasses),
        "threads of convcore": convcore.get_num_threads(),
        "threads of BLAS": [library.get_num_threads() for library in blas],
        "threads": threading.active_count(),
        "processes": len(multiprocessing.active_children()),
        "descriptors": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self") else 0,
        "filters of warnings": len(warnings.filters),
    }


def put_back(before: dict[str, Any]) -> None:
    """Set the modes again that an interrupt has left, so that it is counted once."""
    mode = grad_mode.mode
    for name in set(before) & set(vars(type(mode))):
        setattr(mode, name, before[name])
    convcore._tensor.recording.inferring.clear()
    anomaly_mode.anomaly.enabled, anomaly_mode.anomaly.check_nan = before["anomaly"]


class Alarm:
    """A timer whose signal raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.fired = self._armed = False

    def arm(self, seconds: float) -> None:
        self.fired, self._armed = False, True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm(self) -> None:
        self._armed = False  # the signal may be on its way, in another thread
        signal.setitimer(signal.ITIMER_REAL, 0)

    def handle(self, number: int, frame: Any) -> None:
        if self._armed:
            self.fired, self._armed = True, False
            signal.default_int_handler(number, frame)


@contextmanager
def interrupts() -> Iterator[Alarm]:
    """Have the timer's signal raise KeyboardInterrupt."""
    alarm = Alarm()
    found = signal.signal(signal.SIGALRM, alarm.handle)
    try:
        yield alarm
    finally:
        alarm.disarm()
        signal.signal(signal.SIGALRM, found)


def interrupted(work: Callable[[], Any], after: float, alarm: Alarm) -> tuple[str, str]:
    """Run a work with an interrupt after so many seconds; return how it ended, and where."""
    try:
        alarm.arm(after)
        work()
        alarm.disarm()
    except KeyboardInterrupt as error:
        frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        names = [f"{Path(code.co_filename).stem}.{code.co_name}" for code in frames]
        return "interrupted", " > ".join(names[1:-1])
    return ("swallowed" if alarm.fired else "finished"), ""


def durations(works: Works) -> dict[str, float]:
    """Return how long each work takes, the second time."""
    found = {}
    for name in WORKS * 2:
        start = time.perf_counter()
        getattr(works, name)()
        found[name] = time.perf_counter() - start
    return found


def run(count: int, seed: int, names: Sequence[str] = WORKS) -> tuple[Counter[str], Counter[str]]:
    """Interrupt so many works of these names; return how they ended, and the faults."""
    draw, ends, faults = random.Random(seed), Counter(), Counter()
    dropped: list[str] = []  # names, for an exception would keep alive all that its frames hold
    hook = sys.unraisablehook
    sys.unraisablehook = lambda found: dropped.append(found.exc_type.__name__)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            warnings.catch_warnings(),
            interrupts() as alarm,
        ):
            warnings.simplefilter("ignore")
            works = Works(folder)
            blas = ThreadpoolController().lib_controllers
            lasts, bits = durations(works), works.bits()
            gc.collect()
            before, errors = settings(blas), np.geterr()
            for _ in range(count):
                name = draw.choice(names)
                dropped.clear()
                after = draw.uniform(0, lasts[name]) + 1e-6
                end, where = interrupted(getattr(works, name), after, alarm)
                if end == "swallowed" and "KeyboardInterrupt" in dropped:
                    end = "dropped by Python in a finalizer or a handler of a fork"
                ends[end] += 1
                if end == "swallowed":
                    faults[f"{name}: the interrupt did not propagate"] += 1
                gc.collect()
                now = settings(blas)
                changed = {key for key in now if now[key] != before[key]}
                if any(place in where for place in UNGUARDED) and changed <= {
                    "descriptors",
                    "processes",
                }:
                    ends["left a descriptor of Python's own"] += bool(changed)
                    changed = set()
                for key in sorted(changed):
                    faults[f"{name}: {key} is {now[key]}, not {before[key]}: {where}"] += 1
                put_back(before)
                before = settings(blas)
                if np.geterr() != errors:
                    faults[f"{name}: errstate is {np.geterr()}: {where}"] += 1
                    np.seterr(**errors)
                if works.bits() != bits:
                    faults[f"{name}: other bits"] += 1
                faults.update(f"{name}: {fault}" for fault in works.faults())
    finally:
        sys.unraisablehook = hook
    return ends, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many interrupts")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--plain", action="store_true", help="without contexts and processes")
    options = parser.parse_args()
    ends, faults = run(options.count, options.seed, PLAIN if options.plain else WORKS)
    print(", ".join(f"{number} {end}" for end, number in ends.most_common()))
    for fault, number in faults.most_common():
        print(f"{number} times {fault}")
    print(f"{options.count} works: {faults.total()} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
