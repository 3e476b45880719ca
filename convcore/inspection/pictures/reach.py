"""Pictures of receptive fields: which pixels one element of a layer sees, and how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.differentiate import grad
from convcore.autograd.grad_mode import inference_mode
from convcore.engine.conv.selection import selected
from convcore.inspection.attribution._run import check_input, explaining, fresh
from convcore.inspection.capturing import capture
from convcore.inspection.pictures._drawing import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def receptive_field(model: nn.Module, input: Tensor, layer: str, *, figure: Any = None) -> Figure:
    """Draw the receptive field of a layer's middle element: the pixels that it depends on.

    Parameters
    ----------
    model : Module
        Runs in evaluation mode; its modes and gradients are as before afterwards.
    input : (N, C, H, W), floating point
        Images to average over: a few, or noise.
    layer : str
        A call, by its name in `capture`; its result is (N, C', H', W').
    figure : Figure, optional
        What is drawn into; by default a new one.

    Raises
    ------
    TypeError, ValueError
        The arguments are none of the above.
    RuntimeError
        The layer's result has no gradient by the input.
    ImportError
        matplotlib is not installed.

    Notes
    -----
    Drawn is the absolute gradient of the middle element, summed over the layer's channels, by each
    pixel, averaged over images and summed over the input's channels. The box holds all pixels with
    a gradient other than 0: the receptive field, where ReLUs let all of it through. The gradient
    falls off inside it like a Gaussian: the effective receptive field. Pixels far outside the box
    are not in the picture.

    References
    ----------
    W. Luo, Y. Li, R. Urtasun, R. Zemel, "Understanding the effective receptive field in deep
    convolutional neural networks", NeurIPS 2016.
    """
    check_input(model, input)
    if input._array.ndim != 4:
        raise ValueError(f"input must be images (N, C, H, W), got shape {tuple(input.shape)}")
    weight = _gradient(model, input, layer)
    drawn = figure_of(figure, 5, 4.2)
    ax = drawn.subplots()
    image = ax.imshow(weight, cmap="magma")
    rows, columns = (np.flatnonzero(weight.any(axis=axis)) for axis in (1, 0))
    text = "no pixel"
    if rows.size:
        top, left = rows[0], columns[0]
        height, width = rows[-1] - top + 1, columns[-1] - left + 1
        _box(ax, left, top, width, height)
        ax.set_xlim(max(left - width, 0) - 0.5, min(left + 2 * width, weight.shape[1]) - 0.5)
        ax.set_ylim(min(top + 2 * height, weight.shape[0]) - 0.5, max(top - height, 0) - 0.5)
        text = f"{height} x {width} of {weight.shape[0]} x {weight.shape[1]} pixels"
    ax.set_title(f"{layer} sees {text}", fontsize=10)
    drawn.colorbar(image, label="mean absolute gradient")
    return drawn


def _gradient(model: nn.Module, input: Tensor, layer: str) -> np.ndarray:
    """Return the mean absolute gradient of a layer's middle element by pixel, (H, W)."""
    # Winograd's rounding errors reach all pixels of a tile: they would widen the box.
    with selected(strict=True), inference_mode(False):
        images = fresh(input)
        with explaining(model), capture(model, layer, of="output", detach=False) as found:
            model(images)
        maps = found[layer]
        if maps.dim() != 4:
            raise ValueError(f"layer: the result of {layer} must be (N, C, H, W), got {maps.shape}")
        middle = maps[:, :, maps.shape[2] // 2, maps.shape[3] // 2].sum()
        (gradient,) = grad(middle, [images])
    return np.asarray(gradient.detach().abs().sum(dim=1).mean(dim=0)._array)


def _box(ax: Any, left: int, top: int, width: int, height: int) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((left - 0.5, top - 0.5), width, height, fill=False, edgecolor="white", lw=1.5)
    )
