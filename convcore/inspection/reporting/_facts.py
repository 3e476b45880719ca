"""All that a report is written from: what several runs of a net found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import inference_mode
from convcore.inspection._models import channel_axis
from convcore.inspection.attribution import grad_cam, saliency
from convcore.inspection.attribution._run import explaining
from convcore.inspection.nonfinite import NonFiniteError
from convcore.inspection.profiling import Profile, profile
from convcore.inspection.reporting._calls import Call, calls_of
from convcore.inspection.reporting._values import Values, first_nonfinite, gradients, values_of
from convcore.nn.modules._hooks import evaluating

_PASSES = 3  # that times are a mean of


@dataclass
class Facts:
    """What a report says.

    ``bad`` are the calls whose result has NaN or infinities, ``trouble`` is the error of the first
    such. ``pictures`` are maps (H, W) by what they show; ``profile`` is None without times.
    """

    model: nn.Module
    title: str
    given: tuple
    calls: list[Call]
    values: Values
    trouble: NonFiniteError | None
    bad: set[int]
    pictures: dict[str, np.ndarray] = field(default_factory=dict)
    profile: Profile | None = None
    forward: dict[str, float] = field(default_factory=dict)
    backward: dict[str, float] = field(default_factory=dict)

    @property
    def times(self) -> dict[str, float]:
        """Seconds of both passes by the names of calls."""
        return {name: self.forward[name] + self.backward[name] for name in self.forward}


def facts_of(model: nn.Module, given: tuple, title: str, times: bool) -> Facts:
    """Run a net and return what a report is written from; modes and gradients stay as they were."""
    given = fresh(given)

    def run() -> Any:
        return model(*given)

    with explaining(model):
        calls = calls_of(model, run)
        values = values_of(model, given, run)
        trouble = first_nonfinite(model, given, run)
    bad = {call.number for call in calls if _is_bad(values.outputs.get(call.name))}
    found = Facts(model, title, given, calls, values, trouble, bad)
    if not bad:
        found.pictures = _explained(model, given, calls, values)
    if times:
        found.profile, found.forward, found.backward = times_of(model, given, run)
    return found


def fresh(given: tuple) -> tuple:
    """Return arguments with copies of floating-point tensors that gradients are taken by.

    They are recorded whatever the caller has set, as for attributions.
    """
    with inference_mode(False):
        return tuple(
            one.detach().clone().requires_grad_()
            if isinstance(one, Tensor) and one.is_floating_point()
            else one
            for one in given
        )


def _is_bad(found: dict | None) -> bool:
    return found is not None and bool(found["nan"] or found["inf"])


def _explained(
    model: nn.Module, given: tuple, calls: list[Call], values: Values
) -> dict[str, np.ndarray]:
    """Return saliency maps of the first image, where the net ends in class scores of images."""
    if values.scores is None or len(given) != 1 or not isinstance(given[0], Tensor):
        return {}
    image = given[0].detach()
    if image._array.ndim != 4 or image._array.dtype.kind != "f":
        return {}
    maps: dict[str, np.ndarray] = {}
    try:
        found = saliency(model, image[:1])
        largest = found.numpy()[0].max(axis=channel_axis(image.shape) - 1)
        maps["Saliency: how much each pixel changes the score"] = largest
        name = _last_convolution(calls, values)
        if name is not None:
            where = grad_cam(model, image[:1], name).numpy()[0, 0]
            best = values.scores[0].argmax()
            maps[f"Grad-CAM at layer {name}: the regions that speak for class {best}"] = where
    except (RuntimeError, TypeError, ValueError):  # the net is of a kind that has no gradients
        return maps
    return maps


def _last_convolution(calls: list[Call], values: Values) -> str | None:
    """Return the path of the last convolution whose result is more than a pixel."""
    for call in reversed(calls):
        array = values.arrays.get(call.name)
        if call.plan and array is not None and array.ndim == 4 and min(array.shape[2:]) > 1:
            return call.name.partition(":")[0]
    return None


def times_of(
    model: nn.Module, given: tuple, run: Callable[[], Any]
) -> tuple[Profile, dict[str, float], dict[str, float]]:
    """Return a profile of a few passes in evaluation mode, and their mean times by names of calls.

    The times are seconds forward, and seconds backward.
    """
    with inference_mode(False), evaluating(model):
        gradients(model, given, run)
        with profile(model) as measured:
            for _ in range(_PASSES):
                gradients(model, given, run)
    forward: dict[str, float] = {}
    backward: dict[str, float] = {}
    for row in measured.rows.all():
        name = row.name or ("output" if row.type != "total" else "")
        for seconds, sums in ((row.forward, forward), (row.backward, backward)):
            sums[name] = sums.get(name, 0.0) + seconds / _PASSES
    return measured, forward, backward
