"""Module, the base class of layers and networks: calls, hooks, modes, printing.

Parameters, buffers and submodules are in `_members`, their dtype and device in `_conversion`,
saving and loading in `_state`, what a call with hooks does in `_hooks`, and how full backward hooks
fire in `_boundary`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, TypeVar

from convcore._errors import hinted, hints
from convcore._errors.calls import KeywordHints, hint_call, hint_methods
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.autograd.leaf import blank
from convcore.nn.modules._conversion import Conversion
from convcore.nn.modules._hooks import (
    HookedCall,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    add_backward_hook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from convcore.nn.modules._members import Members
from convcore.nn.modules._state import State, _IncompatibleKeys

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Self = TypeVar("Self", bound="Module")

# Hook dictionaries that every module has of its own; see `_hooks` and `_state`.
_HOOK_DICTIONARIES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


if TYPE_CHECKING:
    _P = ParamSpec("_P")
    _R = TypeVar("_R", covariant=True)

    class _HasForward(Protocol[_P, _R]):
        def forward(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


class Module(Members, State, Conversion, KeywordHints):
    """The base class of layers and networks.

    A subclass calls ``super().__init__()`` first, assigns parameters (`Parameter`), buffers and
    other modules as attributes, and computes its output in ``forward``. Calling the module calls
    ``forward``, and the hooks around it.

    Attributes
    ----------
    training : bool
        Whether layers that behave differently in training do so; see `train` and `eval`.

    Examples
    --------
    >>> import convcore
    >>> class Scale(convcore.nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Scale()(convcore.ones(2))
    tensor([2., 2.])
    """

    training: bool
    call_super_init: bool = False  # whether __init__ goes on to the next class, with its arguments
    _is_full_backward_hook: bool | None
    # Names of attributes that the printed form shows: as values alone, as name=value, and of these
    # the ones that are left out where they have a given value.
    _printed_values: tuple[str, ...] = ()
    _printed_attributes: tuple[str, ...] = ()
    _printed_unless: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            self._refuse_arguments(args, kwargs)
        own = self.__dict__  # what is set here is no member: __setattr__ need not look at it
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_modules"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for name in _HOOK_DICTIONARIES:
            own[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _refuse_arguments(self, args: tuple, kwargs: dict) -> None:
        where = f"{type(self).__name__}.__init__()"
        for name in kwargs:
            raise TypeError(f"{where} got an unexpected keyword argument '{name}'")
        if args:
            raise TypeError(f"{where} takes 1 positional argument but {len(args) + 1} were given")

    # Calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass overrides this.

        Call the module itself, not this method: only that runs hooks.
        """
        raise hinted(
            NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function'
            ),
            hints.no_forward(self),
        )

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` and the hooks around it."""
        # One look at the dictionary: reading an attribute of a class that has __getattr__ costs
        # more, and this is all that a call without hooks pays for them.
        own = self.__dict__
        try:
            watched = (
                own["_forward_hooks"]
                or own["_forward_pre_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
                or _global_forward_hooks
                or _global_forward_pre_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            )
        except KeyError:
            raise AttributeError("cannot call module before Module.__init__() call") from None
        if watched:
            return HookedCall(self, args, kwargs)()
        try:
            return self.forward(*args, **kwargs)
        except TypeError as error:
            hint_call(error, self.forward, args, kwargs)
            raise

    if TYPE_CHECKING:  # a call has the arguments and the result of the subclass's forward

        def __call__(self: _HasForward[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
            """Call `forward` and the hooks around it."""
            ...

    else:
        __call__ = _call_impl

    # Hooks

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call a hook before each call of `forward`.

        Parameters
        ----------
        hook : callable
            ``hook(module, args)``. A result other than None replaces the positional arguments; one
            that is no tuple is the only argument. With ``with_kwargs``, ``hook(module, args,
            kwargs)``, which returns None or the pair (args, kwargs).
        prepend : bool
            Whether it runs before the module's other forward pre-hooks, or after them.
        with_kwargs : bool
            Whether the hook receives keyword arguments.
        """
        options = ((self._forward_pre_hooks_with_kwargs, with_kwargs),)
        return add_hook(self._forward_pre_hooks, hook, prepend, options)

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call a hook after each call of `forward`.

        Parameters
        ----------
        hook : callable
            ``hook(module, args, output)``, or ``hook(module, args, kwargs, output)`` with
            ``with_kwargs``. A result other than None replaces the output.
        prepend : bool
            Whether it runs before the module's other forward hooks, or after them.
        with_kwargs : bool
            Whether the hook receives keyword arguments.
        always_call : bool
            Whether it is called also if a pre-hook, `forward` or another hook raises. The error
            goes on after that; errors of the hook itself become warnings then.
        """
        options = (
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        )
        return add_hook(self._forward_hooks, hook, prepend, options)

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call a hook in each backward pass, when the gradients of the outputs have been computed.

        Parameters
        ----------
        hook : callable
            ``hook(module, grad_output)``; ``grad_output`` is a tuple, None where no gradient
            arrived. A tuple that it returns replaces ``grad_output``.
        prepend : bool
            Whether it runs before the module's other backward pre-hooks, or after them.

        Notes
        -----
        As for `register_full_backward_hook`.
        """
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call a hook in each backward pass, when the gradients of the inputs have been computed.

        Parameters
        ----------
        hook : callable
            ``hook(module, grad_input, grad_output)``; both are tuples, with None for what is no
            tensor. A sequence as long as ``grad_input`` that it returns replaces ``grad_input``.
        prepend : bool
            Whether it runs before the module's other backward hooks, or after them.

        Raises
        ------
        RuntimeError
            The module has legacy backward hooks.

        Notes
        -----
        ``grad_input`` has positional arguments only, not keyword arguments or tensors inside lists
        and dicts. If no input requires grad, the hook is called when the gradients of the outputs
        have been computed. `forward` receives, and the caller gets, views of the tensors; unlike
        PyTorch's, they may be changed in place.

        Examples
        --------
        >>> import convcore
        >>> net = convcore.nn.Sequential()
        >>> handle = net.register_full_backward_hook(lambda net, gi, go: print(gi))
        >>> net(convcore.ones(2, requires_grad=True)).sum().backward()
        (tensor([1., 1.]),)
        """
        return add_backward_hook(self, hook, True, prepend, "on a single Module")

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Register a legacy backward hook; use `register_full_backward_hook` instead.

        It is called when the node that computed the module's output has run. ``grad_input`` is the
        result of that one node: not the gradient of the module's input if the module is more than
        one operation. Calls of such modules warn.

        Parameters
        ----------
        hook : callable
            ``hook(module, grad_input, grad_output)``. A tuple that it returns replaces
            ``grad_input``.

        Raises
        ------
        RuntimeError
            The module has full backward hooks.
        """
        return add_backward_hook(self, hook, False, False, "on a single Module")

    # Changing all members at once

    def apply(self: Self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` with every descendant, children first, and then with this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode (or with False evaluation mode) of this module and its descendants.

        Raises
        ------
        ValueError
            ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode of this module and its descendants."""
        return self.train(False)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, whatever is given: there is no compiler, and programs go on as they are.

        `convcore.optimize_for_inference` makes a net faster.
        """

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of the parameters of this module and its descendants."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Whether they become None, or are filled with zeros.
        """
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is not None and set_to_none:
                parameter.grad = None
            elif grad is not None:
                blank(grad)

    # Printing, copying

    def extra_repr(self) -> str:
        """Return what is printed between the parentheses; subclasses may override it."""
        parts = [str(getattr(self, name)) for name in self._printed_values]
        for name in self._printed_attributes:
            value = getattr(self, name)
            if name == "bias" and not isinstance(value, bool):  # the parameter, or None
                value = value is not None
            if name not in self._printed_unless or value != self._printed_unless[name]:
                parts.append(f"{name}={_quoted(value)}")
        return ", ".join(parts)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({extra})"
        lines += [f"({name}): {_addindent(repr(child))}" for name, child in self._modules.items()]
        return in_parentheses(self._get_name(), lines)

    def _repr_html_(self) -> str:
        """Return what notebooks show: a tree that unfolds."""
        from convcore.nn.modules._html import module_html

        return module_html(self)

    def __setstate__(self, state: dict) -> None:
        # Modules that an older version pickled lack what has been added since.
        self.__dict__.update(vars(Module()) | state)


hint_methods("Module", (Members, State, Conversion, Module))


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def in_parentheses(name: str, lines: list[str]) -> str:
    """Return "name(...)" with the lines between the parentheses, indented."""
    if not lines:
        return f"{name}()"
    return "\n  ".join([f"{name}(", *lines]) + "\n)"


def _addindent(text: str, numSpaces: int = 2) -> str:
    """Indent all lines but the first and blank ones."""
    first, *others = text.split("\n")
    return "\n".join([first, *[numSpaces * " " + line if line.strip() else "" for line in others]])
