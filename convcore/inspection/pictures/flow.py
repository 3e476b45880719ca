"""Pictures of gradient flow: how large gradients are, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor
from convcore.inspection.capturing import Capture
from convcore.inspection.pictures._drawing import array_of, figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 28  # characters of a layer's name


def gradient_flow(gradients: Any, *, figure: Any = None) -> Figure:
    """Draw gradients by layer: mean and largest absolute value, and the share of zeros.

    Parameters
    ----------
    gradients : Module, Capture or mapping
        A net after ``backward()``, of whose parameters named ``weight`` the gradients are drawn;
        what `capture` found, of whose results they are drawn; or tensors by name, in the order in
        which they are drawn.
    figure : Figure, optional
        What is drawn into; by default a new one.

    Raises
    ------
    TypeError
        ``gradients`` are none of these, or no tensors.
    ValueError
        There are none.
    ImportError
        matplotlib is not installed.

    Notes
    -----
    The upper axis is logarithmic. Gradients that shrink from layer to layer towards the input
    vanish, those that grow explode; a layer whose gradients are all zero is cut off, as by dead
    units. NaN is left out of the means and marked at the lower edge.
    """
    named = _named(gradients)
    sizes = {name: np.abs(array_of(one, name, tuple(range(9)))) for name, one in named.items()}
    places = np.arange(len(sizes))
    drawn = figure_of(figure, max(6.0, 0.32 * len(sizes) + 2), 5)
    upper, lower = drawn.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    finite = [one[np.isfinite(one)] for one in sizes.values()]
    for label, function in (("largest", np.max), ("mean", np.mean)):
        heights = [float(function(one)) if one.size else np.nan for one in finite]
        upper.plot(places, heights, marker="o", label=label)
    broken = [k for k, one in enumerate(sizes.values()) if not np.isfinite(one).all()]
    if broken:
        upper.plot(
            broken, [0.03] * len(broken), "x", color="red", label="NaN or infinite",
            transform=upper.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    if any(one.any() for one in finite):
        upper.set_yscale("log", nonpositive="mask")
    order = "" if isinstance(gradients, Mapping) else ", input at the left"
    upper.set(title=f"Gradients by layer{order}", ylabel="absolute gradient")
    upper.grid(axis="y", alpha=0.4)
    upper.legend()
    zeros = [100 * float((one == 0).mean()) for one in sizes.values()]
    lower.bar(places, zeros, color="tab:gray")
    lower.set(ylim=(0, 100), ylabel="zeros, %")
    lower.set_xticks(places, [_short(name) for name in sizes], rotation=90, fontsize=8)
    return drawn


def _named(gradients: Any) -> dict[str, Any]:
    """Return tensors by name."""
    if isinstance(gradients, nn.Module):
        named: dict[str, Any] = {
            name: parameter.grad
            for name, parameter in gradients.named_parameters()
            if name.rpartition(".")[2] == "weight" and parameter.grad is not None
        }
        what = "the net has no gradients: call backward() first"
    elif isinstance(gradients, Capture):
        named = dict(gradients.grad)
        what = "nothing was captured: call backward() inside the with block"
    elif isinstance(gradients, Mapping):
        named = {name: gradients[name] for name in gradients}
        what = "there are none"
    else:
        raise TypeError(
            f"gradients must be a Module, Capture or mapping, got {type(gradients).__name__}"
        )
    if not named:
        raise ValueError(f"gradients: {what}")
    for name, one in named.items():
        if not isinstance(one, Tensor | np.ndarray):
            raise TypeError(f"gradients[{name!r}] must be a tensor, got {type(one).__name__}")
    return named


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"...{name[3 - _LONGEST :]}"
