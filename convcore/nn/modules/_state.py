"""state_dict and load_state_dict: a module's state as a flat dictionary, dotted path -> tensor."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.nn.parameter import Parameter, is_lazy

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The result of `load_state_dict`: the missing and the unexpected keys."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _ModuleHook:
    """A hook that receives its module first, through a weak reference.

    The module holds the hook; a strong reference back would be a reference cycle.
    """

    def __init__(self, hook: Callable, module: State):
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> tuple:
        return self.hook, self.module()

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)  # type: ignore[misc]  # of exactly this class


class _SilentHook:
    """A hook that may change the state dictionary in place, but must return None."""

    def __init__(self, hook: Callable):
        self.hook = hook

    def __call__(self, *args: Any) -> None:
        if self.hook(*args) is not None:
            raise RuntimeError("state_dict post-hook must return None")


class State:
    """The part of Module that saves and loads its state."""

    _version: int = 1

    _state_dict_hooks: OrderedDict
    _state_dict_pre_hooks: OrderedDict
    _load_state_dict_pre_hooks: OrderedDict
    _load_state_dict_post_hooks: OrderedDict

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # Saving

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return the parameters and persistent buffers of this module and its descendants.

        Parameters
        ----------
        destination : dict, optional
            Receives them; a new OrderedDict by default.
        prefix : str
            Prepended to every key.
        keep_vars : bool
            Whether the values are the parameters themselves; by default they are detached tensors
            that share their memory.

        Returns
        -------
        dict
            Dotted path -> tensor. Its attribute ``_metadata`` has the version of each module.

        Notes
        -----
        The values share the module's memory: use ``copy.deepcopy`` for a snapshot.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=3,  # of who calls it through `hinting`
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given["destination"] if destination is None else destination
            prefix = prefix or given.get("prefix", "")
            keep_vars = keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in tuple(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in tuple(self._state_dict_hooks.values()):
            answer = hook(self, destination, prefix, metadata)
            destination = destination if answer is None else answer
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Save this module's own state, without its submodules', to ``destination``."""
        for name, tensor in self._state_members().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def _state_members(self) -> dict[str, Tensor]:
        """Return the module's own parameters and persistent buffers."""
        members = dict(self._parameters)
        for name, buffer in self._buffers.items():
            if name not in self._non_persistent_buffers_set:
                members[name] = buffer
        return {name: tensor for name, tensor in members.items() if tensor is not None}

    def get_extra_state(self) -> Any:
        """Return further state, saved with the rest; for subclasses to override."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: override get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned; for subclasses to override."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: override set_extra_state")

    # Loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy a state into the parameters and buffers of this module and its descendants.

        Parameters
        ----------
        state_dict : mapping
            As `state_dict` returns it.
        strict : bool
            Whether the keys must match exactly: none missing, none unexpected.
        assign : bool
            Whether the tensors replace the module's, with their dtype and memory format, instead of
            being copied into them; ``requires_grad`` stays as it is.

        Returns
        -------
        (missing_keys, unexpected_keys)

        Raises
        ------
        RuntimeError
            Keys do not match and ``strict`` is true, or shapes do not match.
        TypeError
            ``state_dict`` is not a mapping of strings, or its ``_metadata`` not one of versions.
        """
        if not isinstance(state_dict, Mapping):
            raise hinted(
                TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}."),
                "pass its state: load_state_dict(other.state_dict())"
                if hasattr(state_dict, "state_dict")
                else "read the file first: load_state_dict(torch.load(path))"
                if isinstance(state_dict, str)
                else "",
            )
        loading = _Loading(state_dict, assign)
        _check_form(loading.state)
        loading.load(self, loading.state)
        errors = loading.errors
        if strict and loading.unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(loading.unexpected)}. ")
        if strict and loading.missing:
            errors.insert(0, f"Missing key(s) in state_dict: {_quoted(loading.missing)}. ")
        if errors:
            lines = "\n\t".join(errors)
            mismatch = RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
            module: Any = self
            members = [*module.named_parameters(), *module.named_buffers()]
            shapes = {name: tensor.shape for name, tensor in members}
            hint = hints.state_keys(loading.missing, loading.unexpected, state_dict, shapes)
            raise hinted(mismatch, hint)
        return _IncompatibleKeys(loading.missing, loading.unexpected)

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state, without its submodules', from ``state_dict``.

        Keys and errors are added to the three lists. Subclasses override this to accept states
        of older versions; ``local_metadata["version"]`` is the version.
        """
        for hook in tuple(self._load_state_dict_pre_hooks.values()):
            judged = strict, missing_keys, unexpected_keys, error_msgs
            hook(state_dict, prefix, local_metadata, *judged)
        assign = local_metadata.get("assign_to_params_buffers", False)
        members = self._state_members()
        for name, tensor in members.items():
            key = prefix + name
            if key in state_dict:
                fault = _load_member(self, name, tensor, key, state_dict[key], assign)
                if fault is not None:
                    error_msgs.append(fault)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE
        takes_extra = _overrides(self, "set_extra_state")
        if takes_extra and extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif takes_extra and strict:
            missing_keys.append(extra_key)
        if strict:
            known = {*members, *([_EXTRA_STATE] if takes_extra else [])}
            unexpected_keys += self._unexpected(state_dict, prefix, known)

    def _unexpected(self, state_dict: dict, prefix: str, known: set[str]) -> list[str]:
        """Return the keys below ``prefix`` that belong to no member and no child."""
        unexpected = []
        for key in state_dict:
            if key.startswith(prefix):
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (self._modules if dot else known):
                    unexpected.append(key)
        return unexpected

    # Hooks

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module's state is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after the state is saved.

        The hook may change ``state_dict`` in place; it must return None.
        """
        return add_hook(self._state_dict_hooks, _SilentHook(hook))

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """Register as `register_state_dict_post_hook`; the hook may return another dictionary.

        The replacement counts only for the module that `state_dict` was called on.
        """
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call a hook before this module's own state is loaded.

        It is called with (module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs), and may change the dictionary and the lists. ``strict`` is
        always true here: missing and unexpected keys are judged at the end.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable, with_module: bool = False
    ) -> RemovableHandle:
        """Register as `register_load_state_dict_pre_hook`; called without the module by default."""
        hook = _ModuleHook(hook, self) if with_module else hook
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after this module and all below it are loaded.

        The hook may change the lists ``missing_keys`` and ``unexpected_keys``, which decide whether
        a strict load fails; it must return None.
        """
        return add_hook(self._load_state_dict_post_hooks, hook)


def _check_form(state_dict: Mapping[str, Any]) -> None:
    """Raise TypeError for keys that are no paths, and versions that are no ints."""
    for key in state_dict:
        if not isinstance(key, str):
            raise TypeError(
                f"keys of state_dict must be str, got {type(key).__name__}: {key!r:.99}"
            )
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        raise TypeError(f"state_dict._metadata must be a dict, got {type(metadata).__name__}")
    for path, entry in metadata.items():
        version = entry.get("version") if isinstance(entry, Mapping) else str(entry)
        if not isinstance(version, int | None):
            raise TypeError(
                f"state_dict._metadata[{path!r:.99}] must be a dict with a version, an int, got "
                f"{entry!r:.99}"
            )


class _Loading:
    """One call of `load_state_dict`: the state, and the errors so far."""

    def __init__(self, state_dict: Mapping[str, Any], assign: bool):
        self.state = OrderedDict(state_dict)  # hooks may change it, so it is a copy
        self.metadata = getattr(state_dict, "_metadata", None)
        if self.metadata is not None:
            self.state._metadata = self.metadata  # type: ignore[attr-defined]
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Any, state: dict, prefix: str = "") -> None:
        """Load ``module``, whose keys start with ``prefix``, and its descendants."""
        metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            metadata = {**metadata, "assign_to_params_buffers": True}
        # Always strict: the lists collect every mismatch, and the caller judges.
        module._load_from_state_dict(
            state, prefix, metadata, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                self.load(child, part, below)
        incompatible = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in tuple(module._load_state_dict_post_hooks.values()):
            if hook(module, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )


def _load_member(
    module: State, name: str, tensor: Tensor, key: str, value: Any, assign: bool
) -> str | None:
    """Load one parameter or buffer; return an error message, or None."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(value)}"
        )
    if is_lazy(value) and is_lazy(tensor):
        return None  # nothing to load yet
    if tensor.dim() == 0 and value.shape == (1,):
        value = value[0]  # old states store tensors without axes as shape (1,)
    if value.shape != tensor.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {tensor.shape}."
        )
    if tensor.is_meta and not value.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter "
            "in the current model, which is a no-op. (Did you mean to pass `assign=True` to assign "
            "items in the state dictionary to their corresponding key in the module instead of "
            "copying them in place?)",
            stacklevel=6,
        )
    try:
        with no_grad():
            if assign:
                setattr(module, name, _as_member(value, tensor))
            else:
                tensor.copy_(value)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{tensor.size()} and whose dimensions in the checkpoint are {value.size()}, an "
            f"exception occurred : {error.args}."
        )
    return None


def _as_member(value: Tensor, tensor: Tensor) -> Tensor:
    """Return ``value`` as a replacement of ``tensor``: a Parameter if that is one."""
    if not isinstance(tensor, Parameter):
        return value
    if not isinstance(value, Parameter):
        return Parameter(value, requires_grad=tensor.requires_grad)
    return value.requires_grad_(tensor.requires_grad)


def _overrides(module: State, name: str) -> bool:
    """Return whether the module's class overrides a method of State."""
    return getattr(type(module), name) is not getattr(State, name)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
