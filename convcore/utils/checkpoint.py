"""Activation checkpointing: recompute a part of the forward pass in backward, to save memory."""

from __future__ import annotations

import contextlib
import enum
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from convcore import autograd
from convcore._errors import names as _names
from convcore._tensor import Tensor
from convcore.autograd.casting import Casting
from convcore.autograd.casting import state as casting_state
from convcore.autograd.grad_mode import enable_grad, is_grad_enabled, mode, no_grad
from convcore.autograd.saved import saved_tensors_hooks
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.random import get_rng_state, set_rng_state

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


class CheckpointError(RuntimeError):
    """The recomputation does not save the tensors that the forward pass saved."""


def noop_context_fn() -> tuple[Any, Any]:
    """Return two context managers that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointPolicy(enum.Enum):
    """What a policy of selective checkpointing says of an operation; see the error below."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> NoReturn:
    """Raise NotImplementedError: here a checkpoint recomputes the whole function."""
    raise NotImplementedError(
        "create_selective_checkpoint_contexts: a checkpoint recomputes its whole function. Call "
        "checkpoint for the parts to recompute, and the parts to save outside of it."
    )


_early_stop = True


@restoring
def set_checkpoint_early_stop(enable: bool) -> Iterator[Calls]:
    """Set, as a context manager, whether recomputations stop once they have what is needed."""
    global _early_stop
    yield ((globals().__setitem__, ("_early_stop", _early_stop)),)
    _early_stop = enable


@restoring
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[Calls]:
    """Do nothing: PyTorch's longer error messages are not there."""
    yield ()


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what its backward needs; backward calls it again.

    Parameters
    ----------
    function : callable
        It must compute the same each time.
    args, kwargs
        Its arguments.
    use_reentrant : bool
        Whether the whole function is one node of the graph, whose backward is a pass of its own;
        keyword arguments, `autograd.grad` and the options below do not go with that. False is
        better in every way; PyTorch's default is True, with a warning.
    preserve_rng_state : bool
        Keyword only, True by default: whether the second call draws the random numbers of the
        first.
    context_fn : callable
        Returns two context managers, for the first call and for the others.
    determinism_check : 'default' or 'none'
        Whether shapes and dtypes of the second call are compared with those of the first.
    debug : ignored
    early_stop : bool
        Whether the second call stops once all is there that backward needs.

    Raises
    ------
    ValueError
        An option is none of these, or does not go with ``use_reentrant``.
    CheckpointError
        In backward: the second call is not like the first.

    References
    ----------
    T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", arXiv
    1604.06174.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: (x * x).exp().sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([5.4366, 5.4366])
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        if determinism_check not in ("default", "none"):
            raise ValueError(
                "determinism_check should be one of ['default', 'none'], but got "
                f"{determinism_check}"
            )
        stop = early_stop and _early_stop
        frame = _Frame(function, args, kwargs, preserve, context_fn, determinism_check, stop)
        return frame.forward()
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


def _warn_of_default(name: str) -> None:
    warnings.warn(
        f"torch.utils.checkpoint{'' if name == 'checkpoint' else '.' + name}: the use_reentrant "
        "parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint "
        "without use_reentrant will raise an exception. use_reentrant=False is recommended, but if "
        "you need to preserve the current default behavior, you can pass use_reentrant=True. Refer "
        "to docs for more details on the differences between the two variants.",
        stacklevel=3,
    )


@restoring
def _random_state(state: Any) -> Iterator[Calls]:
    """Draw from a state of the generator, and put the present one back; None does nothing."""
    if state is None:
        yield ()
        return
    yield ((set_rng_state, (get_rng_state(),)),)
    set_rng_state(state)


class CheckpointFunction(autograd.Function):
    """The node of a checkpoint with ``use_reentrant``: its backward is a pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve: bool, *args: Any) -> Any:
        """Call the function without recording it."""
        if not any(isinstance(one, Tensor) and one.requires_grad for one in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
            )
        ctx.run_function = run_function
        ctx.state = get_rng_state() if preserve else None
        ctx.casting = Casting(casting_state())
        ctx.others = [None if isinstance(one, Tensor) else one for one in args]
        ctx.numbers = [n for n, one in enumerate(args) if isinstance(one, Tensor)]
        ctx.save_for_backward(*[args[n] for n in ctx.numbers])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call the function again, recorded, and run backward through it."""
        traversal = mode.traversal
        if not traversal.accumulate or traversal.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.others)
        for number, tensor in zip(ctx.numbers, ctx.saved_tensors, strict=True):
            inputs[number] = tensor.detach().requires_grad_(tensor.requires_grad)
        with enable_grad(), _random_state(ctx.state), ctx.casting:
            outs = ctx.run_function(*inputs)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        pairs = [
            (out, grad)
            for out, grad in zip(outs, grads, strict=True)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        found = [one.grad if isinstance(one, Tensor) else None for one in inputs]
        return (None, None, *found)


class _Enough(BaseException):
    """Ends a recomputation: all that backward needs is there."""


class _Frame:
    """One checkpoint without ``use_reentrant``: the call, and what its recomputations saved.

    The first call saves numbers instead of tensors. When backward asks for one, the call is
    repeated, and the tensors that it saves are the answers for this backward pass.
    """

    def __init__(
        self,
        function: Callable,
        args: tuple,
        kwargs: dict,
        preserve: bool,
        context_fn: Callable[[], tuple[Any, Any]],
        check: str,
        early_stop: bool,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.state = get_rng_state() if preserve else None
        self.casting = Casting(casting_state())
        self.first_context, self.next_context = context_fn()
        self.check, self.early_stop = check, early_stop
        self.saved: list[tuple] = []  # what each saved tensor is like
        self.complete = False  # whether the first call is over: backward may run within it
        # Backward pass -> number -> tensor; the tensors go when their pass is over.
        self.answers: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def forward(self) -> Any:
        if not is_grad_enabled():
            with self.first_context:
                return self.function(*self.args, **self.kwargs)
        with saved_tensors_hooks(self._number, self._tensor), self.first_context:
            result = self.function(*self.args, **self.kwargs)
        self.complete = True
        return result

    def _number(self, tensor: Tensor) -> int:
        self.saved.append(_like(tensor))
        return len(self.saved) - 1

    def _tensor(self, number: int) -> Tensor:
        traversal = mode.traversal
        known = {} if traversal is None else self.answers.setdefault(traversal, {})
        if number not in known:
            known.update(self._recomputed())
        return known.pop(number)  # each is asked for once a pass

    def _recomputed(self) -> dict[int, Tensor]:
        """Call the function again; return what it saves, by number."""
        found: list[Tensor] = []

        def keep(tensor: Tensor) -> int:
            if self.complete and len(found) == len(self.saved):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    "than during the original forward pass."
                )
            found.append(tensor.detach())
            if self.early_stop and len(found) == len(self.saved):
                raise _Enough
            return len(found) - 1

        hooks = saved_tensors_hooks(keep, lambda number: found[number])
        traversal = mode.traversal
        try:
            mode.traversal = None  # the call may run passes of its own
            with (
                contextlib.suppress(_Enough),
                enable_grad(),
                _random_state(self.state),
                self.casting,
                hooks,
                self.next_context,
            ):
                self.function(*self.args, **self.kwargs)
        finally:
            mode.traversal = traversal
        self._compare(found)
        return dict(enumerate(found))

    def _compare(self, found: list[Tensor]) -> None:
        """Raise CheckpointError unless the recomputation has saved what the first call has."""
        if len(found) < len(self.saved):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.saved)}\n"
                f"Number of tensors saved during recomputation: {len(found)}."
            )
        if self.check == "none":
            return
        lines = [
            f"tensor at position {number}:\nsaved metadata: {old}\nrecomputed metadata: {new}\n"
            for number, (old, new) in enumerate(zip(self.saved, map(_like, found), strict=False))
            if old != new
        ]
        if lines:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{''.join(lines)}."
            )


def _like(tensor: Tensor) -> Any:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Checkpoint a sequence of functions in segments, all but the last of which are recomputed.

    Parameters
    ----------
    functions : Sequential, or list of callables
    segments : int
    input : Tensor
    use_reentrant, preserve_rng_state
        As for `checkpoint`.

    Raises
    ------
    ValueError
        Further keyword arguments.
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint_sequential")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    size, end = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size) if size else ():
        end = start + size
        part = _composed(steps[start:end])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _composed(steps[end:])(input)


def _composed(steps: list[Callable]) -> Callable:
    def run(input: Any) -> Any:
        for step in steps:
            input = step(input)
        return input

    return run


_names.explain_names(__name__)
