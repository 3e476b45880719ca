"""Class activation maps: Grad-CAM, Grad-CAM++ and LayerCAM."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from convcore import nn
from convcore._errors import hinted
from convcore._tensor import Tensor, wrap
from convcore.autograd.differentiate import grad
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.graph import GradientEdge, get_gradient_edge
from convcore.engine.runtime._restoring import within
from convcore.engine.runtime.restoring import together
from convcore.inspection._models import channel_axis
from convcore.inspection.attribution._batches import MEMORY, by_chunks
from convcore.inspection.attribution._run import (
    Target,
    check_input,
    check_recorded,
    explaining,
    fresh,
    scores,
)
from convcore.nn import functional
from convcore.nn.modules._hooks import call_hooks

_Map = Callable[[np.ndarray, np.ndarray], np.ndarray]


def grad_cam(
    model: nn.Module,
    input: Tensor,
    layer: str | nn.Module,
    target: Target = None,
    *,
    call: int = -1,
    relu: bool = True,
    upsample: bool = True,
    memory: int = MEMORY,
) -> Tensor:
    """Return Grad-CAM: a layer's feature maps, weighted by their mean gradients.

    Parameters
    ----------
    model, input, target, memory
        As for `saliency`.
    layer : str or Module
        A module of the model, or its name ("layer4"), whose output is (N, C, *sizes): most often
        the last with an image's axes. Its output counts as it is when the layer returns, also if a
        ReLU changes it in place afterwards.
    call : int
        Which call of the layer, if it is called more than once: the last by default.
    relu : bool
        Whether negative values become 0, as in the paper.
    upsample : bool
        Whether the map is resized to the input's sizes, linearly; else it has the layer's.

    Returns
    -------
    Tensor (N, 1, *sizes)

    Raises
    ------
    KeyError
        The model has no such layer.
    ValueError
        The layer was not called, or not so often; its output has no image's axes.
    TypeError, ValueError, RuntimeError
        As for `saliency`; the score does not depend on the layer.

    References
    ----------
    R. R. Selvaraju et al., "Grad-CAM: visual explanations from deep networks via gradient-based
    localization", ICCV 2017.
    """

    def combined(maps: np.ndarray, grads: np.ndarray) -> np.ndarray:
        return grads.mean(axis=_pixels(grads), keepdims=True) * maps

    return _cam(combined, model, input, layer, target, call, relu, upsample, memory)


def grad_cam_plus_plus(
    model: nn.Module,
    input: Tensor,
    layer: str | nn.Module,
    target: Target = None,
    *,
    call: int = -1,
    relu: bool = True,
    upsample: bool = True,
    memory: int = MEMORY,
) -> Tensor:
    """Return Grad-CAM++: feature maps, weighted by sums of positive gradients, pixel by pixel.

    Parameters, result and errors are those of `grad_cam`. The higher derivatives are those of the
    score's exponential, as in the paper: powers of the gradient.

    References
    ----------
    A. Chattopadhay, A. Sarkar, P. Howlader, V. N. Balasubramanian, "Grad-CAM++: generalized
    gradient-based visual explanations for deep convolutional networks", WACV 2018, equation 19.
    """

    def combined(maps: np.ndarray, grads: np.ndarray) -> np.ndarray:
        over = _pixels(grads)
        square = grads * grads
        below = 2 * square + maps.sum(axis=over, keepdims=True) * square * grads
        alpha = np.divide(square, below, out=np.zeros_like(grads), where=below != 0)
        weights = (alpha * np.maximum(grads, 0)).sum(axis=over, keepdims=True)
        return weights * maps

    return _cam(combined, model, input, layer, target, call, relu, upsample, memory)


def layer_cam(
    model: nn.Module,
    input: Tensor,
    layer: str | nn.Module,
    target: Target = None,
    *,
    call: int = -1,
    relu: bool = True,
    upsample: bool = True,
    memory: int = MEMORY,
) -> Tensor:
    """Return LayerCAM: feature maps, each pixel weighted by its own positive gradient.

    Parameters, result and errors are those of `grad_cam`; layers near the input have sharp maps.

    References
    ----------
    P.-T. Jiang, C.-B. Zhang, Q. Hou, M.-M. Cheng, Y. Wei, "LayerCAM: exploring hierarchical class
    activation maps for localization", IEEE Transactions on Image Processing 30, 2021.
    """

    def combined(maps: np.ndarray, grads: np.ndarray) -> np.ndarray:
        return np.maximum(grads, 0) * maps

    return _cam(combined, model, input, layer, target, call, relu, upsample, memory)


def _cam(
    combined: _Map,
    model: nn.Module,
    input: Tensor,
    layer: str | nn.Module,
    target: Target,
    call: int,
    relu: bool,
    upsample: bool,
    memory: int,
) -> Tensor:
    check_input(model, input, target)
    module = _layer(model, layer)

    def explain(images: Tensor, chosen: slice) -> Tensor:
        maps, grads = _maps(model, module, images, target, chosen, call)
        found = combined(maps, grads).sum(axis=1, keepdims=True)
        result = wrap(np.maximum(found, 0) if relu else found)
        sizes = tuple(images.shape[2:] if channel_axis(images.shape) == 1 else images.shape[1:3])
        return _resized(result, sizes) if upsample else result

    with explaining(model, input):
        return by_chunks(explain, model, input, memory)


def _layer(model: nn.Module, layer: str | nn.Module) -> nn.Module:
    names = dict(model.named_modules())
    if isinstance(layer, str):
        if layer not in names:
            known = ", ".join(filter(None, names))
            raise KeyError(f"the model has no layer {layer!r}; it has {known}")
        return names[layer]
    if not any(layer is module for module in names.values()):
        raise KeyError(f"layer must be a module of the model or its name, got {layer!r}")
    return layer


def _maps(
    model: nn.Module, layer: nn.Module, images: Tensor, target: Target, chosen: slice, call: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a layer's output in one call, and its gradient."""
    calls: list[tuple[GradientEdge, np.ndarray]] = []
    unfit: list[str] = []

    def see(module: nn.Module, args: tuple, output: object) -> None:
        if not isinstance(output, Tensor) or output.dim() < 3:
            what = getattr(output, "shape", type(output).__name__)
            unfit.append(f"the layer's output must be (N, C, *sizes), got {what}")
            raise ValueError(unfit[0])
        if output.requires_grad:  # copied: what comes after it may change it in place
            calls.append((get_gradient_edge(output), output._array.copy()))

    try:
        with call_hooks([layer], after=see):
            score = scores(model(fresh(images).clone()), target, chosen)
    except ValueError as error:
        hinted(error, _last_with_maps(model, images) if unfit else "")
        raise
    check_recorded(score, model)
    if not -len(calls) <= call < len(calls):
        raise ValueError(f"the layer was called {len(calls)} times, there is no call {call}")
    place, maps = calls[call]
    (found,) = grad(score.sum(), [place], allow_unused=True)  # type: ignore[list-item]
    if found is None:
        raise RuntimeError("the score does not depend on this call of the layer")
    return maps, found._array


def _last_with_maps(model: nn.Module, images: Tensor) -> str:
    """Say which layer without layers inside is the last to put out maps of an image's axes."""
    found: list[str] = []
    named = [(name, module) for name, module in model.named_modules() if name]
    names = {module: name for name, module in named if next(module.children(), None) is None}

    def see(module: nn.Module, args: tuple, output: object) -> None:
        if isinstance(output, Tensor) and output.dim() > 2 and max(output.shape[2:]) > 1:
            found.append(names[module])

    within(together(call_hooks(names, after=see), no_grad()), model, (fresh(images).clone(),))
    return f"the last of the layers that put out maps is {found[-1]!r}" if found else ""


def _pixels(array: np.ndarray) -> tuple[int, ...]:
    return tuple(range(2, array.ndim))


def _resized(maps: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return maps of the input's sizes; maps over other axes than the input's stay as they are."""
    modes = {1: "linear", 2: "bilinear", 3: "trilinear"}
    if len(sizes) != maps.dim() - 2:
        return maps
    return functional.interpolate(maps, size=sizes, mode=modes[len(sizes)], align_corners=False)
