"""Pruning: weights multiplied by a mask of zeros and ones before each forward pass."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from convcore._errors import names as _names
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import ones_like
from convcore.functions.reductions.reduce import norm
from convcore.functions.shapes.joining import cat
from convcore.nn.modules.module import Module
from convcore.random import rand, rand_like

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base class of pruning methods: computes masks, and is the hook that applies them.

    A subclass computes a mask in `compute_mask`. Its ``PRUNING_TYPE`` is 'unstructured' if it
    judges elements, 'structured' if it judges whole channels, or 'global'.
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the pruned tensor, before the module's forward pass."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of a tensor; what ``default_mask`` has pruned stays so."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the product of the original tensor and its mask."""
        name = self._tensor_name
        mask, original = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Prune a tensor of a module, more if it is pruned already, and register the hook.

        Parameters
        ----------
        module : Module
        name : str
            It becomes "name_orig", beside the buffer "name_mask".
        args, kwargs
            Of the method.
        importance_scores : Tensor, optional
            Judged instead of the tensor.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = _hooks(module, name)
        assert len(earlier) <= 1, f"{name} has several pruning hooks"
        original = getattr(module, f"{name}_orig" if earlier else name)
        scores = getattr(module, name) if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        hook: Any = method
        if earlier:
            hook = PruningContainer()
            hook._tensor_name = name
            ((key, last),) = earlier.items()
            for one in last if isinstance(last, PruningContainer) else [last]:
                hook.add_pruning_method(one)
            hook.add_pruning_method(method)
            default = getattr(module, f"{name}_mask").detach().clone()
        else:
            default = ones_like(original).detach()
        mask = hook.compute_mask(scores.detach(), default_mask=default)
        if earlier:
            del module._forward_pre_hooks[key]
        else:
            module.register_parameter(f"{name}_orig", module._parameters.pop(name))
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return a pruned version of a tensor that belongs to no module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default = ones_like(t).detach() if default_mask is None else default_mask
        return t * self.compute_mask(scores.detach(), default_mask=default)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor an ordinary parameter, without mask; the hook stays."""
        name = self._tensor_name
        value = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        assert original is not None
        original.data = value.detach()
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one tensor, each applied to what the ones before have left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple = ()
        if args:
            self._tensor_name = args[0]._tensor_name
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method of the same tensor.

        Raises
        ------
        TypeError
            It is no pruning method.
        ValueError
            It is another tensor's.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask after the last method, which sees only what is not pruned yet."""
        method = self._pruning_methods[-1]
        old = default_mask._array
        index = _left(method, old)
        mask = default_mask.detach().to(t.dtype, copy=True)
        part = method.compute_mask(wrap(t._array[index]), default_mask=wrap(old[index]))
        mask._array[index] = part._array
        return mask


def _left(method: Any, mask: np.ndarray) -> Any:
    """Return the index of what earlier methods have left to a method."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        dim = method.dim % mask.ndim
        others = tuple(axis for axis in range(mask.ndim) if axis != dim)
        return (slice(None),) * dim + (mask.any(axis=others),)
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * mask.ndim
    raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


class Identity(BasePruningMethod):
    """Prune nothing, but give the tensor a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask``."""
        return default_mask


class _Amount(BasePruningMethod):
    """A method that prunes an amount: a share, or a number."""

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def _number(self, size: int) -> int:
        """Return how many of ``size`` are pruned."""
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return int(self.amount)


class RandomUnstructured(_Amount):
    """Prune random elements."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with as many more zeros as the amount says."""
        count = self._number(t.numel())
        if not count:
            return default_mask.clone()
        return _without(default_mask, rand_like(t)._array, count, largest=True)


class L1Unstructured(_Amount):
    """Prune the elements with the smallest absolute values."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with as many more zeros as the amount says."""
        count = self._number(t.numel())
        return _without(default_mask, np.abs(t._array), count, largest=False)


class RandomStructured(_Amount):
    """Prune random channels along an axis."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with zeros in as many more channels as the amount says."""
        _check_axis(t, self.dim)
        channels = t.shape[self.dim]
        count = self._number(channels)
        if not count:
            return default_mask
        values = rand(channels)._array
        kept = values > np.sort(values)[count - 1]
        return default_mask * wrap(_along(kept, t, self.dim))


class LnStructured(_Amount):
    """Prune the channels along an axis that have the smallest n-norms."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with zeros in as many more channels as the amount says."""
        _check_axis(t, self.dim)
        count = self._number(t.shape[self.dim])
        if not count:
            return default_mask
        others = [axis for axis in range(t.dim()) if axis != self.dim % t.dim()]
        norms = norm(t, self.n, dim=others)._array
        kept = np.ones(norms.shape, bool)
        kept[np.argsort(norms, kind="stable")[:count]] = False
        return default_mask * wrap(_along(kept, t, self.dim))


class CustomFromMask(BasePruningMethod):
    """Prune by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("the mask must have the shape of the tensor")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def _without(mask: Tensor, scores: np.ndarray, count: int, largest: bool) -> Tensor:
    """Return a mask with zeros also where the scores are the largest, or the smallest."""
    order = np.argsort(-scores if largest else scores, axis=None, kind="stable")
    pruned = mask._array.copy()
    pruned[np.unravel_index(order[:count], pruned.shape)] = 0
    return wrap(pruned)


def _along(kept: np.ndarray, t: Tensor, dim: int) -> np.ndarray:
    """Return channels' mask as numbers of the tensor's dtype, for broadcasting along ``dim``."""
    shape = [1] * t.dim()
    shape[dim] = -1
    return kept.reshape(shape).astype(t._array.dtype)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, (int, float, numbers.Integral)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _check_axis(t: Tensor, dim: int) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _hooks(module: Module, name: str | None = None) -> dict[int, Any]:
    """Return the pruning hooks of a module, or of one of its tensors."""
    hooks = module._forward_pre_hooks.items()
    pruning = {key: hook for key, hook in hooks if isinstance(hook, BasePruningMethod)}
    return {key: hook for key, hook in pruning.items() if name in (None, hook._tensor_name)}


# Functions: each prunes ``module.name`` and returns the module


def identity(module: Module, name: str) -> Module:
    """Give a tensor a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of a tensor.

    Parameters
    ----------
    module : Module
        Changed and returned.
    name : str
        Of the parameter, which becomes "name_orig" beside the buffer "name_mask".
    amount : int or float
        The number of elements, or the share from 0 to 1.

    Raises
    ------
    ValueError, TypeError
        ``amount`` is out of its range, or no number.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements with the smallest absolute values; see `random_unstructured`."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random channels along the axis ``dim``; see `random_unstructured`."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the channels along ``dim`` with the smallest n-norms; see `random_unstructured`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict | None = None,
    **kwargs: Any,
) -> None:
    """Prune several tensors as if they were one.

    Parameters
    ----------
    parameters : iterable of (module, name)
    pruning_method : class
        Unstructured.
    importance_scores : dict, optional
        (module, name) -> what is judged instead of the tensor.
    kwargs
        Of the method, such as ``amount``.

    Raises
    ------
    TypeError
        ``parameters`` is no iterable, or the method is not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs, given = [*parameters], importance_scores or {}
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores = [given.get((module, name), getattr(module, name)) for module, name in pairs]
    masks = [
        getattr(module, f"{name}_mask", ones_like(getattr(module, name))) for module, name in pairs
    ]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    whole = container.compute_mask(_joined(scores), _joined(masks))
    start = 0
    for (module, name), mask in zip(pairs, masks, strict=True):
        part = whole[start : start + mask.numel()].reshape(mask.shape)
        custom_from_mask(module, name, mask=part)
        start += mask.numel()


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return cat([tensor.detach().reshape(-1) for tensor in tensors])


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a tensor where ``mask``, of its shape, is 0; see `random_unstructured`."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make a pruned tensor an ordinary parameter again, with its zeros, which training may change.

    Raises
    ------
    ValueError
        The tensor is not pruned.
    """
    for key, hook in _hooks(module, name).items():
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Return whether a tensor of the module, or of one inside it, is pruned."""
    return any(_hooks(one) for one in module.modules())


_names.explain_names(__name__)
