"""Saliency maps, input times gradient, and SmoothGrad: attribution by the plain gradient."""

from __future__ import annotations

import convcore
from convcore import nn
from convcore._tensor import Tensor
from convcore.inspection.attribution._batches import MEMORY, Bar, by_chunks, images_at_once, parts
from convcore.inspection.attribution._run import Target, check_input, explaining, fixed, gradients


def saliency(
    model: nn.Module,
    input: Tensor,
    target: Target = None,
    *,
    absolute: bool = True,
    memory: int = MEMORY,
) -> Tensor:
    """Return a saliency map: the absolute gradient of a class score by the input.

    Parameters
    ----------
    model : Module
        Returns (N, C) scores, or what ``target`` understands. It is run in evaluation mode; its
        modes, its gradients and the input's are as before afterwards.
    input : (N, ...), floating point
    target : int, N ints, callable or None
        The class to explain, of all images or of each; a function from the model's result to one
        score an image, (N,); None for each image's largest score.
    absolute : bool
        Whether the sign is dropped, as in the paper.
    memory : int
        Bytes that the results of one batch may take; larger inputs are run in parts.

    Returns
    -------
    Tensor of the input's shape

    Raises
    ------
    TypeError
        ``model`` is no Module, ``input`` no floating-point tensor, ``target`` of another kind.
    ValueError
        The model's result is not (N, C) and ``target`` is no function; no such class.
    RuntimeError
        The result has no gradient by the input, as that of a net made by `optimize_for_inference`.

    References
    ----------
    K. Simonyan, A. Vedaldi, A. Zisserman, "Deep inside convolutional networks: visualising image
    classification models and saliency maps", ICLR workshop 2014.

    Examples
    --------
    >>> import convcore
    >>> from convcore.inspection import attribution
    >>> net = convcore.nn.Linear(2, 2)
    >>> net.weight.data = convcore.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> attribution.saliency(net, convcore.ones(1, 2), target=0)
    tensor([[1., 2.]])
    """
    check_input(model, input, target)
    with explaining(model, input):
        found = by_chunks(
            lambda images, chosen: gradients(model, images, target, chosen)[1],
            *(model, input, memory),
        )
    return found.abs() if absolute else found


def input_x_gradient(
    model: nn.Module, input: Tensor, target: Target = None, *, memory: int = MEMORY
) -> Tensor:
    """Return the input times the gradient of a class score by it.

    Parameters and errors are those of `saliency`; the result has the input's shape.

    References
    ----------
    A. Shrikumar, P. Greenside, A. Shcherbina, A. Kundaje, "Not just a black box: learning important
    features through propagating activation differences", 2016.
    """
    return saliency(model, input, target, absolute=False, memory=memory) * input.detach()


def smooth_grad(
    model: nn.Module,
    input: Tensor,
    target: Target = None,
    *,
    n_samples: int = 50,
    noise: float = 0.15,
    absolute: bool = False,
    generator: convcore.Generator | None = None,
    memory: int = MEMORY,
    progress: bool = False,
) -> Tensor:
    """Return SmoothGrad: the mean gradient over noisy copies of the input.

    Parameters
    ----------
    model, input, target, memory
        As for `saliency`. A target of None is the class of the image without noise.
    n_samples : int
    noise : float
        The noise's standard deviation, over the range of the image's values.
    absolute : bool
        Whether the absolute values of the gradients are averaged.
    generator : Generator, optional
    progress : bool
        Whether a bar is shown on standard error.

    Returns
    -------
    Tensor of the input's shape

    Raises
    ------
    ValueError
        ``n_samples`` is below 1, or ``noise`` negative; and what `saliency` raises.

    References
    ----------
    D. Smilkov, N. Thorat, B. Kim, F. Viégas, M. Wattenberg, "SmoothGrad: removing noise by adding
    noise", 2017.
    """
    check_input(model, input, target)
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}")
    if noise < 0:
        raise ValueError(f"noise must not be negative, got {noise}")
    with explaining(model, input), Bar("SmoothGrad", n_samples * len(input), progress) as bar:
        total = convcore.zeros_like(input).detach()
        size = images_at_once(model, input, memory)
        for chosen in parts(len(input), size):
            images = input[chosen].detach()
            deviation = noise * _ranges(images)
            resolved = fixed(model, input, target, chosen)
            for _ in range(n_samples):
                noisy = convcore.randn(images.shape, dtype=images.dtype, generator=generator)
                found = gradients(model, images + noisy * deviation, resolved)[1].detach()
                total[chosen] += found.abs() if absolute else found
                bar.advance(len(images))
        return total / n_samples


def _ranges(images: Tensor) -> Tensor:
    """Return the largest less the smallest value of each image, (N, 1, ...)."""
    flat = images.flatten(1) if images.dim() > 1 else images.unsqueeze(1)
    return (flat.amax(1) - flat.amin(1)).reshape(-1, *[1] * (images.dim() - 1))
