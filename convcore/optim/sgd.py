"""Stochastic gradient descent, with momentum if wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import enable_grad, no_grad
from convcore.autograd.views import check_writable
from convcore.functions.quiet import quiet
from convcore.optim.optimizer import Optimizer

__all__ = ["SGD"]


class SGD(Optimizer):
    """Move each parameter against its gradient.

    With the gradient g of a parameter p, in each step::

        g = g + weight_decay * p
        b = momentum * b + (1 - dampening) * g        (b = g in the first step)
        p = p - lr * b                                (p - lr * (g + momentum * b) with nesterov)

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        What is optimized; see `Optimizer`.
    lr : float or Tensor of one element
        Step size.
    momentum : float
        Share of the last direction that is kept; 0 remembers nothing.
    dampening : float
        Share of the gradient that the remembered direction does not take up.
    weight_decay : float
        Factor of the parameter that is added to its gradient (an L2 penalty).
    nesterov : bool
        Whether the gradient is taken, to first order, where the momentum leads.
    maximize : bool
        Whether parameters are moved along the gradient.
    foreach, fused : bool, optional
        PyTorch's choices among its implementations; they change nothing here.
    differentiable : bool
        Only False: a step is not recorded.

    Raises
    ------
    ValueError
        An option is out of its range, or nesterov without momentum or with dampening.

    References
    ----------
    I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and momentum
    in deep learning", ICML 2013, section 2. As in PyTorch, the velocity here does not contain the
    step size.

    Examples
    --------
    >>> import convcore
    >>> w = convcore.ones(2, requires_grad=True)
    >>> (w * 2).sum().backward()
    >>> convcore.optim.SGD([w], lr=0.1).step()
    >>> w
    tensor([0.8000, 0.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (
            ("learning rate", lr),
            ("momentum value", momentum),
            ("weight_decay value", weight_decay),
        ):
            if value < 0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if differentiable:
            raise ValueError("differentiable must be False: a step is not recorded")
        if foreach and fused:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # states from before there were these options
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; see `Optimizer.step`. Those without a gradient stay."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    quiet(self._move, parameter, parameter.grad, group)
        return loss

    def _move(self, parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        check_writable(parameter)
        options = {name: _number(group[name]) for name in _OPTIONS}
        arrays = [parameter._array, grad._array]
        if options["momentum"]:
            state = self.state[parameter]
            remembered = state.get("momentum_buffer")
            options["is_first"] = remembered is None
            if remembered is None:
                remembered = state["momentum_buffer"] = wrap(np.empty_like(parameter._array))
            arrays.append(remembered._array)
            remembered._counter[0] += 1
        for part in _parts(*arrays):
            _descend(*part, **options)
        parameter._counter[0] += 1


_OPTIONS = ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")

# Elements at a time: intermediate results have this size, not the parameter's, and stay in the
# cache. A step of 4 M float32 parameters with momentum, weight decay and nesterov took 4.0 ms so
# and 7.4 ms in whole arrays; a plain step took 1.3 and 1.2 ms (one thread, AVX-512).
_PART = 1 << 16


def _parts(*arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield views of arrays of one shape, part by part where they lie alike in memory."""
    first = arrays[0]
    alike = all(array.strides == first.strides for array in arrays)
    flat = [array.ravel(order="K") for array in arrays] if alike and first.size > _PART else []
    if not flat or not np.may_share_memory(flat[0], first):  # a copy: there are gaps in memory
        yield list(arrays)
        return
    for start in range(0, first.size, _PART):
        yield [array[start : start + _PART] for array in flat]


def _descend(
    values: np.ndarray,
    direction: np.ndarray,
    velocity: np.ndarray | None = None,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    is_first: bool = False,
) -> None:
    """Change values, and velocity if there is one, by one step along a gradient."""
    if maximize:
        direction = np.negative(direction)
    if weight_decay:
        direction = direction + weight_decay * values
    if velocity is not None:
        if is_first:
            velocity[...] = direction
        else:
            np.multiply(velocity, momentum, out=velocity)
            np.add(velocity, (1 - dampening) * direction if dampening else direction, out=velocity)
        direction = direction + momentum * velocity if nesterov else velocity
    np.subtract(values, lr * direction, out=values)


def _number(value: Any) -> Any:
    """Return a number, or the element of a tensor, as a Python number.

    A Python number leaves the arrays' dtype alone.
    """
    return value.item() if hasattr(value, "item") else value
