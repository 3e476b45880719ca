"""functional_call: call a module with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from convcore._tensor import Tensor
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `convcore.func.functional_call` under its deprecated name, with a FutureWarning."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use torch.func.functional_call instead which is a drop-in replacement for "
        "this API.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Module,
    tensors: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers; see `convcore.func.functional_call`."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, tensors, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


_MISSING = object()


@restoring
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[Calls]:
    """Put other tensors in the place of a module's own, until the end of the context."""
    own = {**_named(module.named_parameters), **_named(module.named_buffers)}
    given = dict(parameters_and_buffers)
    if tie_weights:
        given = _tied(own, given)
    if strict:
        _check_names(module, own, given)
    before: list[tuple[dict, str, Any]] = []
    yield ((_swap_back, (before,)),)
    for path, tensor in given.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
        members, name = _member(module, path)
        before.append((members, name, members.get(name, _MISSING)))
        members[name] = tensor


def _swap_back(before: list[tuple[dict, str, Any]]) -> None:
    while before:
        members, name, old = before[-1]
        if old is _MISSING:
            members.pop(name, None)
        else:
            members[name] = old
        before.pop()


def _named(listing: Any) -> dict[str, Tensor]:
    return dict(listing(remove_duplicate=False))


def _tied(own: dict[str, Tensor], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what is given, also under the other names of the same tensor."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    all_given = dict(given)
    for name, tensor in given.items():
        for other in names[id(own[name])] if name in own else ():
            if given.get(other, tensor) is not tensor:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted([name, other])}, which "
                    "are tied. Consider using tie_weights=False"
                )
            all_given[other] = tensor
    return all_given


def _check_names(module: Module, own: dict[str, Tensor], given: dict[str, Tensor]) -> None:
    missing, unexpected = own.keys() - given.keys(), given.keys() - own.keys()
    faults = []
    for what, names in (("Unexpected", unexpected), ("Missing", missing)):
        if names:
            quoted = ", ".join(f"'{name}'" for name in sorted(names))
            faults.append(f"{what} key(s): {quoted}.")
    if faults:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(faults)
        )


def _member(module: Module, path: str) -> tuple[dict, str]:
    """Return the dictionary that has a tensor, and its name there."""
    parent, _, name = path.rpartition(".")
    owner = module.get_submodule(parent)
    for members in (owner._parameters, owner._buffers):
        if name in members:
            return members, name
    return owner.__dict__, name  # a name that the module has not is an attribute during the call
