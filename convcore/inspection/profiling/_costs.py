"""What products cost: multiply-adds by their definition, and the algorithms of convolutions."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.conv.plan import Plan, plan_conv
from convcore.engine.conv.selection import selected
from convcore.engine.geometry import Steps, make_geometry
from convcore.inference.layers import PrepackedConv

# Nodes of products -> the places of both factors among the inputs.
COSTLY = {
    "ConvolutionBackward0": (0, 1),
    "ConvolutionActivationBackward0": (0, 1),
    "MmBackward0": (0, 1),
    "BmmBackward0": (0, 1),
    "AddmmBackward0": (1, 2),
    "BaddbmmBackward0": (1, 2),
}


class CostlyCall:
    """Shapes of one product: a convolution, or a product of matrices.

    Attributes
    ----------
    factors, places
        The shapes of both factors, and their places among the inputs.
    steps, transposed
        Of a convolution; its steps are None where they are not known.
    """

    __slots__ = (
        "dense",
        "dtype",
        "factors",
        "is_convolution",
        "places",
        "result",
        "steps",
        "transposed",
    )

    def __init__(
        self,
        factors: tuple[tuple[int, ...], tuple[int, ...]],
        places: tuple[int, int],
        result: np.ndarray,
        is_convolution: bool,
    ) -> None:
        self.factors, self.places, self.result = factors, places, result.shape
        self.dtype, self.dense = result.dtype, result.flags.c_contiguous
        self.is_convolution = is_convolution
        self.steps: Any = None
        self.transposed = False

    @classmethod
    def of_node(cls, name: str, inputs: tuple, output: Tensor) -> CostlyCall:
        """Return the call that a node was recorded for; `describe` adds a convolution's steps."""
        places = COSTLY[name]
        x, w = inputs[places[0]]._array.shape, inputs[places[1]]._array.shape
        return cls((x, w), places, output._array, name.startswith("Conv"))

    @classmethod
    def of_module(cls, module: Any, args: tuple, result: Any) -> CostlyCall | None:
        """Return the call of a convolution or linear layer that nothing recorded."""
        if not args or not isinstance(args[0], Tensor) or not isinstance(result, Tensor):
            return None
        x = args[0]._array.shape
        if isinstance(module, PrepackedConv):
            call = cls((x, module.prepacked.weight.shape), (0, 1), result._array, True)
            steps = module.steps
            call.describe(steps=tuple(steps[name] for name in Steps._fields))
            return call
        w = module.weight._array.shape
        if len(w) == 2:  # a linear layer's product is by the transposed weight
            return cls((x, w[::-1]), (0, 1), result._array, False)
        call = cls((x, w), (0, 1), result._array, True)
        call.describe(
            steps=(module.stride, module.padding, module.dilation, module.groups),
            transposed=module.transposed,
        )
        return call

    def describe(self, steps: Any = None, transposed: bool = False, **others: Any) -> None:
        """Note a convolution's steps, as its node's attributes have them."""
        self.steps, self.transposed = steps, transposed

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the forward pass, and of each of both gradients."""
        x, w = self.factors
        if not self.is_convolution:
            return math.prod(self.result) * w[-2]
        return math.prod(x if self.transposed else self.result) * math.prod(w[1:])

    def plan(self) -> Plan | None:
        """Return the plan of a convolution's three passes; None of other products."""
        if self.steps is None:
            return None
        x, w = self.factors
        image = self.result if self.transposed else x
        if len(image) < len(w):
            image = (1, *image)
        # float16 is computed as float32, and so is bfloat16, but for products in pairs
        wide = np.dtype(np.float32) if self.dtype.itemsize == 2 else self.dtype
        pairs = selected(precision="bf16") if self.dtype.char == "E" else nullcontext()
        try:
            with pairs:
                return plan_conv(make_geometry(image, w, *self.steps), wide, not self.dense)
        except (TypeError, ValueError):  # of a kind that no plan is made for
            return None

    def algorithms(self) -> dict[str, str]:
        """Return the algorithm of each pass of a convolution; nothing for other products."""
        plan = self.plan()
        if plan is None:
            return {}
        forward, input_grad = plan.forward.algorithm, plan.input_grad.algorithm
        if self.transposed:
            forward, input_grad = input_grad, forward
        weight_grad = plan.weight_grad.algorithm
        return {"forward": forward, "input_grad": input_grad, "weight_grad": weight_grad}
