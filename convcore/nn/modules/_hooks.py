"""Module hooks: where they are stored, and how a call of a module runs them.

Every hook is in an ordered dictionary under the id of its handle: in the module's own dictionaries,
or, for global hooks (on all modules), in those of this file. A hook's options (with_kwargs,
always_call) are in further dictionaries under the same id.

The order of a call: global and own forward pre-hooks, the first node of the boundary that full
backward hooks watch (see `_boundary`), `forward`, global and own forward hooks, the second node of
the boundary, legacy backward hooks. Dictionaries are copied before iteration, so that hooks may
add and remove hooks.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

from convcore._tensor import Tensor
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.nn.modules._boundary import Boundary
from convcore.nn.modules.utils import nested_tensors

if TYPE_CHECKING:
    from convcore.nn.modules.module import Module

# PyTorch's names, because tools look into these.
_global_buffer_registration_hooks: OrderedDict = OrderedDict()
_global_module_registration_hooks: OrderedDict = OrderedDict()
_global_parameter_registration_hooks: OrderedDict = OrderedDict()
_global_backward_pre_hooks: OrderedDict = OrderedDict()
_global_backward_hooks: OrderedDict = OrderedDict()
_global_forward_pre_hooks: OrderedDict = OrderedDict()
_global_forward_hooks: OrderedDict = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict = OrderedDict()
_global_forward_hooks_always_called: OrderedDict = OrderedDict()


class _Global:
    """The owner of the global backward hooks: stands in for a module."""

    _backward_hooks = _global_backward_hooks
    _is_full_backward_hook: bool | None = None


def add_backward_hook(
    owner: Any, hook: Callable, full: bool, prepend: bool, where: str
) -> RemovableHandle:
    """Register a backward hook of `owner`, whose backward hooks are all full or all legacy."""
    if owner._backward_hooks and owner._is_full_backward_hook is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks "
            f"{where}. Please use only one of them."
        )
    owner._is_full_backward_hook = full
    return add_hook(owner._backward_hooks, hook, prepend)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever any module gets a buffer.

    A result other than None is registered instead of the buffer.
    """
    return add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` whenever any module gets a submodule.

    A result other than None is registered instead of the submodule.
    """
    return add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` whenever any module gets a parameter.

    A result other than None is registered instead of the parameter.
    """
    return add_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, args)`` before every module's forward.

    As `Module.register_forward_pre_hook`, for all modules; runs before their own hooks.
    """
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every module's forward.

    As `Module.register_forward_hook`, for all modules; runs before their own hooks.
    """
    options = (
        (_global_forward_hooks_with_kwargs, with_kwargs),
        (_global_forward_hooks_always_called, always_call),
    )
    return add_hook(_global_forward_hooks, hook, options=options)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before every module's backward.

    As `Module.register_full_backward_pre_hook`, for all modules; runs before their own hooks.
    """
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after every module's backward.

    As `Module.register_full_backward_hook`, for all modules; runs before their own hooks.
    """
    return add_backward_hook(_Global, hook, True, False, "as a global Module hook")


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` at the node that made each module's output.

    The legacy hook, see `Module.register_backward_hook`; `register_module_full_backward_hook` is
    the one to use.
    """
    return add_backward_hook(_Global, hook, False, False, "as a global Module hook")


# The dictionaries that have a forward hook or its options under one key.
_FORWARD_HOOKS = (
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
)
HOOK_TABLES = (*_FORWARD_HOOKS, "_backward_hooks", "_backward_pre_hooks")

# By thread: the tables of hooks that its calls of all modules have in place of the modules' own.
_instead: dict[int, dict[str, Any]] = {}


@restoring
def hooks_instead(
    before: Callable | None = None, after: Callable | None = None, *, hidden: bool = False
) -> Iterator[Calls]:
    """Call these hooks in place of those that modules have, in this thread until the block ends.

    Parameters
    ----------
    before : callable(module, args, kwargs), optional
    after : callable(module, args, kwargs, result), optional
    hidden : bool
        Whether `is_watched` does not report them, so that layers stay fused.
    """
    thread, key = get_ident(), RemovableHandle(OrderedDict()).id
    tables: dict[str, Any] = {name: {} for name in HOOK_TABLES}
    tables["are_hidden"] = hidden
    for hook, name in ((before, "_forward_pre_hooks"), (after, "_forward_hooks")):
        if hook is not None:
            tables[name][key] = hook
            tables[f"{name}_with_kwargs"][key] = True
    previous = _instead.get(thread)
    undo = (
        (_instead.pop, (thread, None))
        if previous is None
        else (_instead.__setitem__, (thread, previous))
    )
    yield (_global_forward_pre_hooks.pop, (key, None)), undo
    _instead[thread] = tables
    _global_forward_pre_hooks[key] = _nothing  # so that each call looks: see Module._call_impl


def _nothing(*args: Any) -> None:
    """Do nothing."""


def hook_tables(module: Module) -> dict[str, Any]:
    """Return the tables of hooks that a call of a module has in this thread, by their names."""
    return (_instead and _instead.get(get_ident())) or module.__dict__


def is_watched(module: Module) -> bool:
    """Return whether a call of ``module`` would run hooks."""
    own = hook_tables(module)
    if own.get("are_hidden"):
        return False
    return bool(
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or has_global_hooks()
    )


@restoring
def call_hooks(
    modules: Iterable[Module],
    before: Callable | None = None,
    after: Callable | None = None,
    *,
    with_kwargs: bool = False,
    always_call: bool = False,
    prepend: bool = False,
) -> Iterator[Calls]:
    """Register a hook before and one after each call of some modules, until the block ends.

    Parameters
    ----------
    modules : iterable of Module
    before : callable(module, args)
    after : callable(module, args, result)
    with_kwargs : bool
        Whether both get the keyword arguments too, after ``args``.
    always_call : bool
        Whether ``after`` is called whatever happens.
    prepend : bool
        Whether ``after`` comes before the hooks that are there.

    Notes
    -----
    A handle for each hook would take twenty times as long: longer than a pass of a small net.
    """
    modules, key = list(modules), RemovableHandle(OrderedDict()).id
    tables = [vars(module)[name] for module in modules for name in _FORWARD_HOOKS]
    yield tuple([(table.pop, (key, None)) for table in tables])
    for module in modules:
        if before is not None:
            module._forward_pre_hooks[key] = before
            if with_kwargs:
                module._forward_pre_hooks_with_kwargs[key] = True
        if after is None:
            continue
        module._forward_hooks[key] = after
        if with_kwargs:
            module._forward_hooks_with_kwargs[key] = True
        if always_call:
            module._forward_hooks_always_called[key] = True
        if prepend:
            module._forward_hooks.move_to_end(key, last=False)


@restoring
def evaluating(model: Module) -> Iterator[Calls]:
    """Put a net in evaluation mode, and each of its modules back in its own when the block ends."""
    members = [vars(module) for module in model.modules() if "training" in vars(module)]
    yield tuple([(each.__setitem__, ("training", each["training"])) for each in members])
    model.eval()


class FusedListener(Protocol):
    """What a hook has as its attribute ``fused`` if it can do without calls of the module alone."""

    def accepts(self, norm: Module) -> bool:
        """Return whether the modules may run as one function now."""

    def tell(self, norm: Module, activation: Module, x: Any, residual: Any, result: Any) -> None:
        """Hear that ``result = activation(norm(x) + residual)``."""


def fused_listeners(norm: Module, activation: Module) -> list[FusedListener] | None:
    """Return who hears of two modules that run as one; None: a hook has to see each run alone."""
    if not is_watched(norm) and not is_watched(activation):
        return []
    if has_global_hooks():
        return None
    found = {}
    for module in (norm, activation):
        if module._backward_hooks or module._backward_pre_hooks:
            return None
        for hook in (*module._forward_pre_hooks.values(), *module._forward_hooks.values()):
            listener = getattr(hook, "fused", None)
            if listener is None:
                return None
            found[id(listener)] = listener
    listeners = list(found.values())
    return listeners if all(one.accepts(norm) for one in listeners) else None


def has_global_hooks() -> bool:
    """Return whether calls of all modules run hooks."""
    if _instead and get_ident() in _instead:
        return False
    return bool(
        _global_forward_hooks
        or _global_forward_pre_hooks
        or _global_backward_hooks
        or _global_backward_pre_hooks
    )


def registered(hooks: OrderedDict, module: Any, name: str, value: Any) -> Any:
    """Run the registration hooks; return the value to register, which they may replace."""
    for hook in tuple(hooks.values()):
        answer = hook(module, name, value)
        if answer is not None:
            value = answer
    return value


class HookedCall:
    """One call of a module that has hooks (or of any module, if there are global hooks).

    Parameters
    ----------
    module : Module
    args, kwargs
        The arguments; pre-hooks may replace them.
    """

    __slots__ = ("args", "called", "kwargs", "module", "own", "result")

    def __init__(self, module: Module, args: tuple, kwargs: dict):
        self.module = module
        self.own = hook_tables(module)
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()  # forward hooks that ran

    def __call__(self) -> Any:
        """Run the hooks and `forward`; after an error, the always_call hooks that did not run."""
        try:
            self.run_pre_hooks()
            boundary = self.enter_boundary()
            self.result = self.module.forward(*self.args, **self.kwargs)
            self.run_forward_hooks()
            if boundary is not None:
                self.result = boundary.leave(self.result)
            self.attach_legacy_hooks()
        except Exception:
            self.run_remaining_hooks()
            raise
        return self.result

    def run_pre_hooks(self) -> None:
        """Run the forward pre-hooks, which may replace the arguments."""
        module, own = self.module, self.own
        with_kwargs = own["_forward_pre_hooks_with_kwargs"]
        hooks = own["_forward_pre_hooks"].items()
        for number, hook in (*_global_forward_pre_hooks.items(), *hooks):
            if number in with_kwargs:
                answer = hook(module, self.args, self.kwargs)
                if answer is None:
                    continue
                if not isinstance(answer, tuple) or len(answer) != 2:
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {answer}."
                    )
                self.args, self.kwargs = answer
            else:
                answer = hook(module, self.args)
                if answer is not None:
                    self.args = answer if isinstance(answer, tuple) else (answer,)

    def run_forward_hooks(self) -> None:
        """Run the forward hooks, which may replace the result."""
        for number, hook in self.forward_hooks():
            self.run_forward_hook(number, hook)

    def forward_hooks(self) -> tuple:
        """Return the current pairs (id, forward hook)."""
        return (*_global_forward_hooks.items(), *self.own["_forward_hooks"].items())

    def run_forward_hook(self, number: int, hook: Callable) -> None:
        """Call one forward hook."""
        self.called.add(number)
        if (
            number in self.own["_forward_hooks_with_kwargs"]
            or number in _global_forward_hooks_with_kwargs
        ):
            answer = hook(self.module, self.args, self.kwargs, self.result)
        else:
            answer = hook(self.module, self.args, self.result)
        if answer is not None:
            self.result = answer

    def run_remaining_hooks(self) -> None:
        """After an error, run the always_call hooks that did not run."""
        for number, hook in self.forward_hooks():
            is_global = number in _global_forward_hooks_always_called
            if number in self.called or not (
                is_global or number in self.own["_forward_hooks_always_called"]
            ):
                continue
            try:
                self.run_forward_hook(number, hook)
            except Exception as error:
                warnings.warn(
                    f"{'global ' if is_global else ''}module forward hook with "
                    "``always_call=True`` raised an exception that was silenced as another error "
                    f"was raised in forward: {error}",
                    stacklevel=4,
                )

    def has_backward_hooks(self) -> bool:
        """Return whether there are any: which ones takes longer to say."""
        return bool(
            self.own["_backward_hooks"]
            or self.own["_backward_pre_hooks"]
            or _global_backward_hooks
            or _global_backward_pre_hooks
        )

    def enter_boundary(self) -> Boundary | None:
        """If there are full backward hooks, put the boundary's first node behind the inputs."""
        module = self.module
        if not self.has_backward_hooks():
            return None
        before = (*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values())
        after = backward_hooks(module, full=True)
        if not before and not after:
            return None
        boundary = Boundary(module, before, after)
        self.args = boundary.enter(self.args)
        return boundary

    def attach_legacy_hooks(self) -> None:
        """Register legacy backward hooks on the node that computed the (first) result."""
        if not self.has_backward_hooks():
            return
        hooks = backward_hooks(self.module, full=False)
        tensor = next(nested_tensors(self.result), None) if hooks else None
        node = None if tensor is None else tensor.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(with_module(hook, self.module))
        shortcoming = legacy_shortcoming(self.args, self.result, node)
        if shortcoming:
            warnings.warn(shortcoming, FutureWarning, stacklevel=4)


def backward_hooks(module: Module, full: bool) -> tuple[Callable, ...]:
    """Return the backward hooks of one kind that a call of `module` has."""
    owners = (_Global, module)
    chosen = (o._backward_hooks.values() for o in owners if o._is_full_backward_hook is full)
    return tuple(chain.from_iterable(chosen))


def with_module(hook: Callable, module: Module) -> Callable:
    """Return a hook for a node that calls a module's hook."""

    def node_hook(grad_inputs: tuple, grad_outputs: tuple) -> Any:
        return hook(module, grad_inputs, grad_outputs)

    return functools.update_wrapper(node_hook, hook)  # errors name the user's hook


def legacy_shortcoming(args: tuple, result: Any, node: Any) -> str | None:
    """Return the warning about gradients that legacy hooks on `node` miss, or None."""
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(part, Tensor) for part in results):
        what = "on a Module that does not return a single Tensor or a tuple of Tensors"
        missing = "grad_output"
    elif not all(isinstance(part, Tensor) for part in args):
        what = "on a Module that does not take as input a single Tensor or a tuple of Tensors"
        missing = "grad_input"
    elif len(makers := {part.grad_fn for part in results} - {None}) > 1:
        what = "when outputs are generated by different autograd Nodes"
        missing = "grad_output"
    elif node not in makers:
        what = "when outputs are nested in python data structure"
        missing = "grad_output"
    elif {part.grad_fn for part in args} - {None} != {source for source, _ in node.next_functions}:
        what = "when the forward contains multiple autograd Nodes"
        missing = "grad_input"
    else:
        return None
    return (
        f"Using a non-full backward hook {what} is deprecated and will be removed in future "
        f"versions. This hook will be missing some {missing}. Please use "
        "register_full_backward_hook to get the documented behavior."
    )
