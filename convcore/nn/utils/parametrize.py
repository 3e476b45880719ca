"""Parametrizations: a parameter computed by modules from other parameters at each access."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from convcore._errors import names as _names
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.nn.modules.container import ModuleDict, ModuleList
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

# The open contexts of `cached`, and (module, name) -> the computed tensor.
_open: set[object] = set()
_cache: dict[tuple[Module, str], Tensor] = {}


@restoring
def cached() -> Iterator[Calls]:
    """Compute each parametrized tensor once inside this context manager, and then reuse it."""
    token = object()
    yield ((_forget, (token,)),)
    _open.add(token)


def _forget(token: object) -> None:
    """End a context; the last one drops the tensors."""
    _open.discard(token)
    if not _open:
        _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the original tensors that they start from.

    Attributes
    ----------
    original : Parameter or Tensor
        If the first parametrization takes one tensor; else ``original0``, ``original1`` ...

    Raises
    ------
    ValueError
        There are no modules, or what they return has another shape or dtype than the tensor.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new = self._inverted(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        before = original.data
        if isinstance(new, Tensor):
            if new.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {new.dtype}"
                )
            original.data = new.detach()
            _register(self, "original", original)
        else:
            for number, one in enumerate(new):
                if not isinstance(one, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors "
                        f"(list, tuple...). Got element {number} of the sequence with type "
                        f"{type(one).__name__}."
                    )
                if isinstance(original, Parameter):
                    one = Parameter(one.detach(), original.requires_grad)
                _register(self, f"original{number}", one)
        if not unsafe:
            try:
                _check_kept(self(), before, "`unsafe`", "unparametrized ", "parametrized ")
            except Exception:
                original.data = before
                raise

    @no_grad()
    def _inverted(self, value: Tensor) -> Any:
        """Return what the modules would compute a value from, as far as they can tell."""
        new: Any = value
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        return new

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{number}") for number in range(self.ntensors)]

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes ``value``.

        Raises
        ------
        RuntimeError
            A module has no method ``right_inverse``.
        ValueError
            That of the first module returns other tensors than it takes.
        """
        new: Any = value
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(
                    f"parametrization {type(module).__name__} does not implement right_inverse."
                )
            new = module.right_inverse(new)
        if self.is_tensor and not isinstance(new, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
        if not self.is_tensor and len(new) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(new)}."
            )
        news = [new] if self.is_tensor else new
        for original, one in zip(self._originals(), news, strict=True):
            if original.dtype != one.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {one.dtype} while "
                    f"`original` has dtype {original.dtype}"
                )
        for original, one in zip(self._originals(), news, strict=True):
            original.data = one.detach().clone()

    def forward(self) -> Tensor:
        """Return the parametrized tensor."""
        first, *others = list(self)
        x = first(*self._originals())
        for module in others:
            x = module(x)
        return x


def _check_kept(new: Any, old: Tensor, flag: str, was: str, now: str) -> None:
    """Raise ValueError unless a parametrization keeps shape and dtype; the rest is for the text."""
    if not isinstance(new, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
    for what in ("dtype", "shape"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"{flag} flag is enabled.\n{was}{what}: {before}\n{now}{what}: {after}"
            )


# The class of a parametrized module


@functools.cache
def _parametrized(base: type, names: tuple[str, ...]) -> type:
    """Return a subclass of a module's class that computes attributes by parametrizations."""
    members: dict[str, Any] = {name: _computed(name) for name in names}
    members |= {"__getstate__": _refuse_pickling, "__deepcopy__": _deep_copied}
    members |= {"__module__": __name__}
    return type(f"Parametrized{base.__name__}", (base,), members)


def _computed(name: str) -> property:
    def read(self: Any) -> Tensor:
        if not _open:
            return self.parametrizations[name]()
        key = (self, name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def _refuse_pickling(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deep_copied(self: Any, memo: dict) -> Any:
    copied = object.__new__(type(self))
    memo[id(self)] = copied
    copied.__dict__ = copy.deepcopy(self.__dict__, memo)
    return copied


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by another module at each access.

    Parameters
    ----------
    module : Module
        Changed: its class becomes a subclass of its own, the original is
        ``module.parametrizations[tensor_name].original``.
    tensor_name : str
    parametrization : Module
        Its ``forward`` takes the original tensor. If it has a method ``right_inverse``, that
        computes the original from the present value, and assignments go through it; it may return
        several tensors, which ``forward`` then takes.
    unsafe : bool
        Whether shape and dtype may change.

    Returns
    -------
    The same module.

    Raises
    ------
    ValueError
        The module has no such tensor, or shape or dtype change without ``unsafe``.

    Examples
    --------
    >>> from convcore import nn
    >>> layer = register_parametrization(nn.Linear(3, 2), "weight", nn.Softplus())
    >>> bool((layer.weight > 0).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        old = getattr(module, tensor_name)
        if not unsafe:
            names = f"module.{tensor_name}.", f"parametrization(module.{tensor_name})."
            new = parametrization(old)
            _check_kept(new, old, "the `unsafe`", *names)
            _check_inverse(parametrization, new, f"module.{tensor_name}")
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    chain = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    base = type_before_parametrizations(module)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = chain
    module.__class__ = _parametrized(base, tuple(module.parametrizations))
    return module


def _check_inverse(parametrization: Any, value: Tensor, name: str) -> None:
    """Raise ValueError unless a further parametrization's inverse keeps shape and dtype."""
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        new = parametrization.right_inverse(value)
    except NotImplementedError:
        return
    if not isinstance(new, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(new).__name__}"
        )
    for what in ("dtype", "shape"):
        was, now = getattr(value, what), getattr(new, what)
        if was != now:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} "
                f"as {name}, unless the `unsafe` flag is enabled.\n{name}.{what}: {was}\n"
                f"returned {what}: {now}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrizations, or one of the tensor of that name."""
    own = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(own, ModuleDict):
        return False
    return len(own) > 0 if tensor_name is None else tensor_name in own


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary parameter or buffer again.

    Parameters
    ----------
    module : Module
    tensor_name : str
    leave_parametrized : bool
        Whether it keeps the value that was computed, or gets that of the original.

    Returns
    -------
    The same module.

    Raises
    ------
    ValueError
        The tensor is not parametrized; or, without ``leave_parametrized``, there are several
        originals.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    original = chain._originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        if chain.is_tensor and value.dtype == original.dtype:
            original.data = value  # the same object: optimizers know it
        elif isinstance(original, Parameter):
            original = Parameter(value, original.requires_grad)
        else:
            original = value
    elif not chain.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    names = tuple(module.parametrizations)
    module.__class__ = _parametrized(base, names) if names else base
    if not names:
        del module.parametrizations
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Register one module's parametrizations on another, and copy the original tensors.

    Parameters
    ----------
    from_module, to_module : Module
    tensor_name : str, optional
        The tensor whose parametrizations are transferred; those of all by default.

    Returns
    -------
    ``to_module``
    """
    if not is_parametrized(from_module):
        return to_module
    chains = from_module.parametrizations
    for name in [*chains] if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            _register(to_module, name, copy.deepcopy(chains[name]._originals()[0]))
        for parametrization in chains[name]:
            register_parametrization(to_module, name, parametrization, unsafe=True)
        own = to_module.parametrizations[name]._originals()
        for target, source in zip(own, chains[name]._originals(), strict=True):
            target.data = source.detach().clone()
    return to_module


_names.explain_names(__name__)
