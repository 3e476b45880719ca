"""Compute with the kernels on several threads, and from several Python threads at once.

watch.py runs it under ThreadSanitizer; by itself it only takes a while.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from itertools import islice

import convcore
from convcore import nn
from convcore.engine.conv.algorithms import NAMES
from convcore.engine.runtime import _threads
from convcore.nn import functional as F
from convcore.verify.cases import draw_cases
from convcore.verify.checks import digests

THREADS = 4  # more than the machine may have: a race is seen whether or not threads run at once
N_CASES = 40


def convolutions() -> Counter[str]:
    """Compute each pass of some cases by each algorithm; return how often each was at work."""
    taken: Counter[str] = Counter()
    for case in islice(draw_cases(20), N_CASES):
        for threads in (2, THREADS):
            taken.update(key.split()[-1] for key in digests(case, threads))
    return taken


def layers(images: convcore.Tensor) -> None:
    """Run layers forward and backward: pools, norms, activations, losses, reductions."""
    channels = images.shape[1]
    x = images.clone().requires_grad_()
    parts = [
        F.max_pool2d(x, 3, 2, 1),
        F.max_pool2d(x, 2),
        F.avg_pool2d(x, 3, 2, 1),
        F.adaptive_avg_pool2d(x, 5),
        F.adaptive_max_pool2d(x, 3),
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.interpolate(x, scale_factor=2),
        F.batch_norm(x, None, None, convcore.ones(channels), convcore.zeros(channels), True),
        F.group_norm(x, 4),
        F.instance_norm(x),
        F.layer_norm(x, x.shape[1:]),
        F.softmax(x, 1),
        F.log_softmax(x, -1),
        F.pad(x, (1, 2, 3, 1)),
        convcore.cat([x, x], 1),
        x.mean((0, 2, 3)),
        x.sum(1),
        x.transpose(1, 3).contiguous(),
    ]
    parts += [act(x) for act in (F.relu, F.gelu, F.silu, F.sigmoid, F.tanh, F.elu, F.hardswish)]
    parts += [x * 2 + x, x * x, x.abs(), x.exp()]
    labels = convcore.zeros(x.shape[0], *x.shape[2:], dtype=convcore.int64)
    parts.append(F.cross_entropy(x, labels))
    parts.append(x.flatten(1) @ x.flatten(1).T)
    convcore.stack([part.sum() for part in parts]).sum().backward()


def training(images: convcore.Tensor, make_optimizer: type) -> None:
    """Take two steps of a small net."""
    net = nn.Sequential(
        nn.Conv2d(images.shape[1], 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, 3, padding=1, groups=32),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    optimizer = make_optimizer(net.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(net(images), convcore.zeros(len(images), dtype=convcore.int64)).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


def nets() -> None:
    """Run layers and training steps in both memory formats."""
    generator = convcore.Generator().manual_seed(20)
    images = convcore.randn(2, 16, 24, 25, generator=generator)
    for memory_format in (convcore.contiguous_format, convcore.channels_last):
        laid_out = images.contiguous(memory_format=memory_format)
        layers(laid_out)
        for make_optimizer in (convcore.optim.SGD, convcore.optim.AdamW):
            training(laid_out, make_optimizer)


def together(n_python_threads: int) -> None:
    """Run the nets in several Python threads at once, whose regions take each other's memory."""
    failed = []

    def run() -> None:
        try:
            nets()
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=run) for _ in range(n_python_threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]


def main() -> None:
    taken = convolutions()
    missing = set(NAMES) - taken.keys()
    if missing:
        sys.exit(f"no case was computed by {', '.join(sorted(missing))}")
    _threads.set_limit(THREADS, 0)  # however little work there is
    nets()
    together(THREADS)
    print(f"{taken.total()} results of convolutions by {len(taken)} algorithms;", end=" ")
    print(f"layers and training alone and in {THREADS} Python threads at once")


if __name__ == "__main__":
    main()
