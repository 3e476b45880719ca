"""What tests run in processes of their own: a spawned process imports it by its name."""

import os
import random
import signal
import time

import numpy as np

import convcore
from convcore.utils import data


def add_one(tensor, *others):
    tensor += 1


def add_to(net, tensor):
    with convcore.no_grad():
        net.weight += 1
    tensor[0, 0, 0, 1] = 7


def echo(queue, answers):
    while (tensor := queue.get()) is not None:
        tensor.mul_(2)
        answers.put((tensor, tensor.is_shared()))


def fail(i, how):
    if i == 1:
        if how == "raise":
            raise ValueError("here")
        if how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def put_rank(i, tensor):
    tensor[i] = i + 1


class Squares(data.Dataset):
    """Number -> its square, after a while that differs from number to number."""

    def __init__(self, n=20, wait=0.0):
        self.n, self.wait = n, wait

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if not 0 <= index < self.n:
            raise IndexError(index)
        time.sleep(self.wait * (index % 3))
        return index * index


class Augmented(data.Dataset):
    """Draws of every generator, as random augmentations make them."""

    def __init__(self, library):
        self.library = library

    def __len__(self):
        return 11

    def __getitem__(self, index):
        info = self.library.utils.data.get_worker_info()
        seed = -1 if info is None else info.seed
        return index, np.random.rand(2), random.random(), self.library.rand(2), seed


class AugmentedOfConvcore(Augmented):
    """A dataset that can be pickled."""

    def __init__(self):
        self.n = 11

    library = property(lambda self: convcore)


def drawn(index, alone):
    """An index, the worker's seed, and numbers of the generators that a worker has for itself."""
    info = data.get_worker_info()
    numbers = [index, 0 if info is None else info.seed % 2**40, convcore.rand(1).item()]
    if alone:
        numbers += [np.random.rand(), random.random()]
    return convcore.tensor(numbers, dtype=convcore.float64)


class AugmentedByAll(data.Dataset):
    """Samples that depend on all random states; threads share two of them."""

    def __init__(self, n, alone=True):
        self.n, self.alone = n, alone

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return drawn(index, self.alone)


class Stream(data.IterableDataset):
    """The same as a stream, of which each worker has a part."""

    def __init__(self, n, alone=True):
        self.n, self.alone = n, alone

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, self.n, step):
            yield drawn(index, self.alone)
        convcore.rand(1)
