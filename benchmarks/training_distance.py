"""Agreement of training with PyTorch: how far the weights and losses of ResNet-18 drift apart.

The same weights, images and labels, step by step: PyTorch in its contiguous format is what all are
compared with, and how far its own channels_last format comes from it is the measure in float32: the
order of a sum changes rounding, and training makes of rounding what it will.  In float64 nothing of
that is seen in the first losses, and they have to agree.

With ``--dtype bfloat16`` the nets are trained under ``autocast("cpu", bfloat16)``, and the measure
is how far PyTorch's autocast leads from its own float32.

A distance is the length of the difference of all parameters, over the length of the way that the
reference has gone since the start; beside it the difference of the losses.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from children import conclude

import convcore

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/helpers"))

LIMIT = 3.0  # times the distance of PyTorch's channels_last format, or of its autocast
LOSS_LIMIT = 1e-9  # of the first losses in float64
_FIRST = 5
_BATCH, _CLASSES = 8, 1000
_FORMATS = ("contiguous", "channels_last")


class Trained:
    """A ResNet-18 of a library and a format, while it is trained, under autocast if asked."""

    def __init__(
        self, library: Any, net: Any, dtype: str, format: str, autocast: bool = False
    ) -> None:
        self.library, self.dtype = library, dtype
        self.autocast = library.autocast("cpu", dtype=library.bfloat16, enabled=autocast)
        name = "contiguous_format" if format == "contiguous" else format
        self.format = {"memory_format": getattr(library, name)}
        self.net = net.to(getattr(library, dtype)).to(**self.format).train()
        self.sgd = library.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)

    def step(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Take a step; return the loss before it."""
        x = self.library.from_numpy(images.astype(self.dtype)).contiguous(**self.format)
        target = self.library.from_numpy(labels)
        with self.autocast:
            loss = self.library.nn.functional.cross_entropy(self.net(x), target)
        self.sgd.zero_grad()
        loss.backward()
        self.sgd.step()
        return float(loss.item())

    def parameters(self) -> list[np.ndarray]:
        """Return all parameters, as they lie."""
        return [parameter.detach().numpy() for parameter in self.net.parameters()]


def length(arrays: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Return the Euclidean length of the difference."""
    differences = (a.astype(np.float64) - b for a, b in zip(arrays, others, strict=True))
    return float(np.sqrt(sum(np.square(difference).sum() for difference in differences)))


def nets(dtype: str) -> dict[str, Trained]:
    """Make the net of both libraries in both formats, with the same weights; reference first."""
    from torch_twins import copied_state, models_of_torch

    torch = importlib.import_module("torch")
    convcore.manual_seed(0)
    first = convcore.models.resnet18()
    rooms = {"PyTorch": (torch, models_of_torch()), "convcore": (convcore, convcore.models)}

    def trained(name: str, dtype: str, format: str, autocast: bool = False) -> Trained:
        library, models = rooms[name]
        net = models.resnet18()
        net.load_state_dict(copied_state(first, library))
        return Trained(library, net, dtype, format, autocast)

    if dtype == "bfloat16":
        made = {"PyTorch float32": trained("PyTorch", "float32", "contiguous")}
        for name in rooms:
            made[f"{name} autocast"] = trained(name, "float32", "contiguous", autocast=True)
        return made
    return {
        f"{name} {format}": trained(name, dtype, format) for name in rooms for format in _FORMATS
    }


def distances(
    trained: dict[str, Trained], size: int, steps: int
) -> Iterator[dict[str, tuple[float, float]]]:
    """Yield each step's distances of all nets from the first: of weights and of losses."""
    rng = np.random.default_rng(0)
    reference, *others = trained
    start = [parameter.copy() for parameter in trained[reference].parameters()]
    for _ in range(steps):
        images = rng.standard_normal((_BATCH, 3, size, size), dtype=np.float32)
        labels = rng.integers(0, _CLASSES, _BATCH)
        losses = {name: one.step(images, labels) for name, one in trained.items()}
        weights = trained[reference].parameters()
        way = length(weights, start)
        yield {
            name: (
                length(trained[name].parameters(), weights) / way,
                abs(losses[name] - losses[reference]),
            )
            for name in others
        }


def judge(found: Sequence[dict[str, tuple[float, float]]], dtype: str, check: bool) -> int:
    """Print what is promised beside what was measured; return the exit code."""
    measure, *ours = found[0]
    failed = 0
    for name in ours:
        if dtype == "float64":
            losses = worst_loss(found[:_FIRST], name)
            failed |= conclude(f"{name}: first {_FIRST} losses", losses, LOSS_LIMIT, "", check)
        else:
            weights = found[-1][name][0] / found[-1][measure][0]
            losses = worst_loss(found, name) / worst_loss(found, measure)
            beside = f"over {measure}"
            failed |= conclude(f"{name}: weights at the end, {beside}", weights, LIMIT, " x", check)
            failed |= conclude(f"{name}: losses, {beside}", losses, LIMIT, " x", check)
    return failed


def worst_loss(found: Sequence[dict[str, tuple[float, float]]], name: str) -> float:
    """Return the largest difference of losses."""
    return max(step[name][1] for step in found)


def main() -> int:
    """Train, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=64, help="pixels of a side (default: 64)")
    parser.add_argument("--steps", type=int, default=20, help="steps of training (default: 20)")
    parser.add_argument("--dtype", choices=("float32", "float64", "bfloat16"), default="float32")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is exceeded")
    arguments = parser.parse_args()
    trained = nets(arguments.dtype)
    print("step  " + "".join(f"{name:>26}" for name in list(trained)[1:]))
    found = []
    for step in distances(trained, arguments.size, arguments.steps):
        found.append(step)
        cells = (f"{weights:14.2e}, {loss:.2e}  " for weights, loss in step.values())
        print(f"{len(found):4}  " + "".join(f"{cell:>26}" for cell in cells), flush=True)
    return judge(found, arguments.dtype, arguments.check)


if __name__ == "__main__":
    sys.exit(main())
