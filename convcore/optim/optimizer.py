"""Optimizer, the base class: parameter groups, per-parameter state, hooks around a step."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from convcore._errors import hinted, hints
from convcore._errors.calls import KeywordHints
from convcore._tensor import Tensor
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.autograd.leaf import blank
from convcore.optim._loaded import check_form, check_mapping, check_options

__all__ = [
    "Optimizer",
    "ParamsT",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

# What an optimizer takes, for annotations.
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


# As a default, stands for an option that every parameter group must give.
required: Any = _Required()


class Optimizer(KeywordHints):
    """The base class of optimizers, which update parameters by their gradients.

    A subclass passes its options to ``super().__init__`` as ``defaults`` and updates the parameters
    in ``step``. Hooks run around every ``step`` that a subclass defines.

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        The parameters. A dict is a parameter group: its "params" are such an iterable or one
        Tensor, its other entries override ``defaults``.
    defaults : dict
        Values of the options that a group does not give.

    Attributes
    ----------
    param_groups : list of dict
    state : dict
        Parameter -> its state, a dict: momentum, running means, number of steps.

    Raises
    ------
    TypeError
        ``params`` is one Tensor or holds something else than Tensors.
    ValueError
        There are no parameters, one is no leaf, or one is in two groups.

    Notes
    -----
    Options that mean the same in each optimizer that has them:

    lr : float or Tensor of one element
        Learning rate, the step size.
    weight_decay : float
        L2 penalty: this factor times the parameter is added to its gradient.
    maximize : bool
        Whether to move parameters along the gradient instead of against it.
    differentiable : bool
        Whether steps are recorded in the graph, so that losses after them can be differentiated by
        what was before. Parameters must then not be leaves: clone them first.
    foreach, fused, capturable : bool, optional
        PyTorch's choices among its implementations; they change nothing here.
    """

    # Handle id -> hook, in the order of the calls.
    _optimizer_step_pre_hooks: OrderedDict
    _optimizer_step_post_hooks: OrderedDict
    _optimizer_state_dict_pre_hooks: OrderedDict
    _optimizer_state_dict_post_hooks: OrderedDict
    _optimizer_load_state_dict_pre_hooks: OrderedDict
    _optimizer_load_state_dict_post_hooks: OrderedDict
    _stepping = False  # whether a step runs: a base class's step inside it runs no hooks again
    _opt_called = False  # whether a step was taken; schedulers warn if it was not

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        self._forget_hooks()
        if isinstance(params, Tensor):
            raise hinted(
                TypeError(
                    "params argument given to the optimizer should be an iterable of Tensors or "
                    f"dicts, but got {params.type()}"
                ),
                hints.ONE_TENSOR,
            )
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        try:
            groups = list(params)
        except TypeError as no_list:
            hinted(no_list, hints.not_parameters(params))
            raise
        if not groups:
            raise hinted(
                ValueError("optimizer got an empty parameter list"), hints.EMPTY_PARAMETERS
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _forget_hooks(self) -> None:
        for name in Optimizer.__annotations__:  # they declare nothing but the hook dictionaries
            setattr(self, name, OrderedDict())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once.

        Parameters
        ----------
        closure : callable, optional
            Recomputes the loss and its gradients and returns the loss.

        Returns
        -------
        What ``closure`` returned, or None.
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Whether they become None, or are filled with zeros. A step skips a parameter whose
            gradient is None.
        """
        for group in self.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if set_to_none:
                    parameter.grad = None
                elif grad is not None:
                    blank(grad)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters.

        Parameters
        ----------
        param_group : dict
            "params", and options; missing ones get their defaults.

        Raises
        ------
        TypeError
            It is not a dict, or its parameters are a set or not Tensors.
        ValueError
            A parameter is no leaf or is in another group, only some have names, or a required
            option is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        parameters, names = _separated(param_group["params"])
        param_group["params"] = parameters
        if names:
            param_group["param_names"] = names
        for parameter in parameters:
            self._check_parameter(parameter)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    def _check_parameter(self, parameter: Any) -> None:
        if not isinstance(parameter, Tensor):
            raise hinted(
                TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(parameter).__name__}"
                ),
                hints.not_parameters(parameter),
            )
        leaf = parameter.is_leaf or parameter.retains_grad
        if not leaf and not self.defaults.get("differentiable"):
            raise hinted(ValueError("can't optimize a non-leaf Tensor"), hints.NON_LEAF)

    def _check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError if a group does not fit those of the optimizer."""
        parameters = set(group["params"])
        if len(parameters) < len(group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=4,
            )
        for other in self.param_groups:
            if ("param_names" in group) != ("param_names" in other):
                named = "with names" if "param_names" in group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {named} to the optimizer"
                )
            if not parameters.isdisjoint(other["params"]):
                raise ValueError("some parameters appear in more than one parameter group")

    # State

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups, with numbers in place of the parameters.

        Returns
        -------
        dict
            "state": number -> a parameter's state; "param_groups": the groups, whose "params" are
            the numbers, counted over all groups. The tensors are not copied.
        """
        for hook in tuple(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[Any, int] = {}
        for parameter in self._all_parameters():
            numbers.setdefault(parameter, len(numbers))
        state = {
            "state": {numbers.get(key, key): value for key, value in self.state.items()},
            "param_groups": [
                {
                    **{option: value for option, value in group.items() if option != "params"},
                    "params": [numbers[parameter] for parameter in group["params"]],
                }
                for group in self.param_groups
            ],
        }
        for hook in tuple(self._optimizer_state_dict_post_hooks.values()):
            answer = hook(self, state)
            state = state if answer is None else answer
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned; tensors are cast to their parameter's dtype.

        Parameters
        ----------
        state_dict : dict
            Of an optimizer with groups of the same sizes.

        Raises
        ------
        ValueError
            The groups are not as many, or not as large, as this optimizer's; a part is missing.
        TypeError
            A part, an option or a parameter's state is of another type.
        NotImplementedError
            A tensor is on the meta device, and has no values.

        Notes
        -----
        Where it raises, the optimizer stays as it was.
        """
        check_mapping(state_dict)
        state_dict = dict(state_dict)
        for hook in tuple(self._optimizer_load_state_dict_pre_hooks.values()):
            answer = hook(self, state_dict)
            state_dict = state_dict if answer is None else answer
        check_form(state_dict)
        groups = copy.deepcopy(state_dict["param_groups"])
        self._check_sizes(groups)
        check_options(groups, self.param_groups)
        saved = chain.from_iterable(group["params"] for group in groups)
        parameters = dict(zip(saved, self._all_parameters(), strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in parameters:
                parameter = parameters[number]
                state[parameter] = _fitted(value, parameter)
            else:
                state[number] = value
        self._check_loaded(state)
        for group, own in zip(groups, self.param_groups, strict=True):
            group["params"] = own["params"]
            if "param_names" in own:
                group.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in tuple(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def _check_loaded(self, state: dict[Any, Any]) -> None:
        """Raise TypeError for parameters' states, by parameter, that steps could not use."""

    def _check_sizes(self, groups: list[dict]) -> None:
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, own in zip(groups, self.param_groups, strict=True):
            if len(group["params"]) != len(own["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )

    def _all_parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:  # a copy, or unpickled
            self._forget_hooks()

    def __repr__(self) -> str:
        groups = []
        for number, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            groups.append(f"Parameter Group {number}\n{''.join(lines)}")
        return f"{type(self).__name__} (\n" + "\n".join(groups) + ")"

    # Hooks

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before every step.

        It returns None, or a pair (args, kwargs) to call `step` with instead; ``args`` begins with
        the optimizer.
        """
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after every step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict`; with ``prepend`` before other hooks."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; a result replaces the state."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded; a result replaces it."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state is loaded; with ``prepend`` before other hooks."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer.

    It runs before the optimizer's own hooks; see `Optimizer.register_step_pre_hook`.
    """
    return add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer.

    It runs after the optimizer's own hooks.
    """
    return add_hook(_global_post_hooks, hook)


def _hooked(step: Callable) -> Callable:
    """Wrap ``step`` so that it runs the hooks before and after."""

    @functools.wraps(step)
    def with_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        # A subclass calls the step of its base, or wraps an optimizer and is none itself.
        if self._stepping or "_optimizer_step_pre_hooks" not in vars(self):
            return step(self, *args, **kwargs)
        self._stepping = self._opt_called = True
        try:
            args = (self, *args)
            for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
                answer = hook(self, args, kwargs)
                if answer is not None:
                    args, kwargs = _arguments(answer, step)
            result = step(*args, **kwargs)
            if self._optimizer_step_post_hooks or _global_post_hooks:
                own = self._optimizer_step_post_hooks.values()
                for hook in (*own, *_global_post_hooks.values()):
                    hook(self, args, kwargs)
            return result
        finally:
            del self._stepping

    return with_hooks


def _arguments(answer: Any, step: Callable) -> tuple[tuple, dict]:
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    raise RuntimeError(
        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {answer}."
    )


def _separated(params: Any) -> tuple[list, list[str]]:
    """Return the parameters of a group, and their names if they have any."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    params = list(params)
    names = [item[0] for item in params if isinstance(item, tuple)]
    if names and len(names) != len(params):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    return [item[1] if isinstance(item, tuple) else item for item in params], names


def _fitted(value: Any, parameter: Tensor, name: Any = None) -> Any:
    """Return a copy of a parameter's saved state in the parameter's dtype.

    The step count, "step", keeps its own: half precision cannot count far.
    """
    if isinstance(value, Tensor):
        if value.device != parameter.device:
            value = value.to(parameter.device)  # raises: from the meta device there is nothing
        if name != "step" and parameter.is_floating_point():
            value = value.to(parameter.dtype)
        return value
    if isinstance(value, dict):
        return {key: _fitted(item, parameter, key) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_fitted(item, parameter) for item in value)
    return value
