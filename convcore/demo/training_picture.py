"""The training demo's picture: losses, accuracies, learning rates and example predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convcore.demo.training import Step, Task

SHOWN = 16  # images of each task
_SMOOTHED = 0.9  # decay of the running mean of losses


@dataclass(frozen=True)
class Run:
    """A task, the training steps, and some test images with the net's predictions."""

    task: Task
    steps: Sequence[Step]
    images: np.ndarray
    labels: Sequence[int]
    answers: Sequence[int]


def save_picture(runs: Sequence[Run], file: Path) -> None:
    """Draw a row for each run and save it; the file's suffix is the format."""
    figure = Figure(figsize=(15, 4.4 * len(runs)), layout="constrained")
    figure.suptitle("ResNet-8 learning with convcore", fontsize=15)
    rows = figure.subfigures(len(runs), 1, squeeze=False)[:, 0]
    for row, run in zip(rows, runs, strict=True):
        curves, images = row.subfigures(1, 2, width_ratios=(2.1, 1))
        losses, accuracies = curves.subplots(1, 2)
        _draw_losses(losses, run)
        _draw_accuracies(accuracies, run)
        _draw_images(images, run)
    figure.savefig(file, dpi=100)


def _draw_losses(ax: Axes, run: Run) -> None:
    numbers = [step.number for step in run.steps]
    losses = [step.loss for step in run.steps]
    ax.plot(numbers, losses, color="tab:blue", alpha=0.3, linewidth=0.8, label="a batch's")
    ax.plot(numbers, _smooth(losses), color="tab:blue", label="running mean")
    tested = [step for step in run.steps if step.test_loss is not None]
    at, held_out = [step.number for step in tested], [step.test_loss for step in tested]
    ax.plot(at, held_out, color="tab:orange", marker="o", markersize=4, label="held out")
    ax.set_yscale("log")
    ax.set_xlabel("batch")
    ax.set_ylabel("cross-entropy")
    ax.set_title(f"{run.task.name}: loss of {len(run.task.train):,} images", fontsize=12)
    ax.legend(loc="lower left")
    rates = ax.twinx()
    rates.plot(numbers, [step.lr for step in run.steps], color="tab:gray", linestyle=":")
    rates.set_ylim(bottom=0)
    rates.set_ylabel("learning rate (dotted)")


def _smooth(losses: Sequence[float]) -> list[float]:
    smoothed = [losses[0]]
    for loss in losses[1:]:
        smoothed.append(_SMOOTHED * smoothed[-1] + (1 - _SMOOTHED) * loss)
    return smoothed


def _draw_accuracies(ax: Axes, run: Run) -> None:
    tested = [step for step in run.steps if step.accuracy is not None]
    shares = [100 * step.accuracy for step in tested if step.accuracy is not None]
    ax.plot([step.epoch for step in tested], shares, color="tab:orange", marker="o", markersize=4)
    ax.set_ylim(top=101)
    ax.grid(alpha=0.3)
    ax.set_xlabel("epoch")
    ax.set_ylabel("right, per cent")
    ax.set_title(f"of {len(run.task.test):,} held out: {shares[-1]:.1f} % at the end", fontsize=12)


def _draw_images(figure: Figure, run: Run) -> None:
    figure.suptitle("held out: answers; if wrong, the truth", fontsize=12)
    side = int(np.sqrt(SHOWN))
    for ax, image, label, answer in zip(
        figure.subplots(side, side).flat, run.images, run.labels, run.answers, strict=False
    ):
        ax.imshow(np.moveaxis(image, 0, -1), cmap="Greys", vmin=0, vmax=1)
        said, right = run.task.classes[answer], answer == label
        text = said if right else f"{said}, not {run.task.classes[label]}"
        ax.set_title(text, fontsize=9, color="black" if right else "red", pad=2)
        ax.set_xticks([])
        ax.set_yticks([])
