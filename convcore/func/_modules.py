"""Modules as functions of their parameters, and the parameters of several as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convcore._tensor import Tensor
from convcore.functions.shapes.joining import stack
from convcore.nn.modules.module import Module
from convcore.nn.utils.stateless import _functional_call


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Parameters
    ----------
    module : Module
        As it was, after the call.
    parameter_and_buffer_dicts : dict, or sequence of dicts
        Path -> tensor; the module's own are used for what is not given. Buffers that a forward pass
        changes are changed here.
    args : tuple, or a single argument
    kwargs : dict
    tie_weights : bool
        Whether parameters that are the same in the module are replaced together.
    strict : bool
        Whether all parameters and buffers, and nothing else, must be given.

    Raises
    ------
    ValueError
        A name is in two dictionaries, or tied parameters have different values.
    RuntimeError
        As ``strict`` asks.

    Examples
    --------
    >>> import convcore
    >>> layer = convcore.nn.Linear(2, 1, bias=False)
    >>> functional_call(layer, {"weight": convcore.ones(1, 2)}, convcore.ones(3, 2))
    tensor([[2.],
            [2.],
            [2.]])
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, Sequence) or not all(isinstance(one, dict) for one in given):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
            )
        names = [name for one in given for name in one]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        given = {name: tensor for one in given for name, tensor in one.items()}
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and buffers of several modules of one class, stacked along axis 0.

    Raises
    ------
    RuntimeError
        There are none, or they differ in class or training mode.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    found = {}
    for name, first in states[0].items():
        whole = stack([state[name].detach() for state in states])
        found[name] = whole.requires_grad_() if first.requires_grad else whole
    return found
