"""capture: the activations and gradients of a net's calls by name, as they are or reduced."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import is_grad_enabled
from convcore.autograd.hooks import register_hook
from convcore.engine.runtime._restoring import Ending
from convcore.engine.runtime.restoring import Calls as Undo
from convcore.inspection._models import check_model
from convcore.inspection.watching.calls import Calls, leaves, named_modules
from convcore.inspection.watching.fused import FusedCalls
from convcore.inspection.watching.recipes import Recipe
from convcore.inspection.watching.selection import Selection, onnx_name
from convcore.inspection.watching.statistics import chosen, statistics
from convcore.inspection.watching.stream import Stream
from convcore.inspection.watching.values import Values

_KINDS = ("output", "grad")


class Capture(Ending, Mapping):
    """What `capture` found: a mapping of the outputs, with the gradients beside it.

    Attributes
    ----------
    output, grad : mapping
        Values by the names of calls, in the order of the calls: tensors; dictionaries of
        statistics; or names in the file.
    passes : int
        How often the net was called.
    left_out : list of str
        What was not kept of the last call, or written of all, for it would have passed the limit.
    """

    replaces = False

    def __init__(
        self,
        model: nn.Module,
        select: Any,
        of: Collection[str],
        stats: Any,
        detach: bool,
        file: Any,
        limit: int | None,
    ) -> None:
        of_outputs = (
            "nothing was captured: is the net called in the block?"
            if "output" in of
            else "outputs are not captured with of='grad': .grad has the gradients"
        )
        no_grads = "no gradient came: is backward() called in the block?"
        modules = reversed(list(named_modules(model)))  # of nodes of one name the first counts
        nodes = {onnx_name(each): path for path, each in modules if onnx_name(each)}
        self.output = Values(detach, of_outputs, nodes)
        self.grad = Values(detach, no_grads, nodes)
        self.passes = 0
        self.left_out: list[str] = []
        self._detach = detach
        self._of = frozenset(of)
        self._selection = Selection(select)
        self._stats = chosen(stats)
        self._limit = limit
        self._bytes = 0
        self._warned = False
        self._path = file
        self._stream: Stream | None = None
        self._calls = Calls(model)
        self._told: Any = None
        self._grad_hooks: list[Any] = []
        self._reduced: tuple[Any, int, dict] | None = None

    def __getitem__(self, name: str) -> Any:
        """Return an output by the name of its call."""
        return self.output[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.output)

    def __len__(self) -> int:
        return len(self.output)

    def __repr__(self) -> str:
        parts = ("output", self.output), ("grad", self.grad)
        return "\n".join(f"{kind} of\n{values}" for kind, values in parts if values) or "nothing"

    def _back(self) -> Undo:
        fused = FusedCalls(
            *(self._calls, self.made, self._to_compute, self._takes_recipes, self._later)
        )
        self._told = self._calls.told(self, fused)
        undo = self._told._back()
        self._stream = None if self._path is None else Stream(self._path)
        return (*undo, (self._forget_hooks, ()))

    def _enter(self) -> Capture:
        self._told._enter()
        return self

    def _ended(self, error: BaseException | None) -> None:
        self._reduced = self._told = None
        self.output.settle()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close() if error is None else stream.abandon(error)
        if error is None and self.passes:
            self._selection.check(self._calls.known)

    def _forget_hooks(self) -> None:
        for handle in self._grad_hooks:
            handle.remove()
        self._grad_hooks.clear()

    # What `Calls` tells

    def begin(self) -> None:
        """Forget the values of an earlier call of the net."""
        self.passes += 1
        self._forget_hooks()
        self.output.clear()
        self.grad.clear()
        if self._stream is None:
            self._bytes = 0
            self.left_out.clear()

    def before_write(self, tensor: Tensor) -> None:
        """Copy what is about to be changed."""
        self.output.before_write(tensor)
        self.grad.before_write(tensor)

    def wants(self, name: str, maker: Any) -> bool:
        """Return whether a call's result is kept: in plans there are no gradients."""
        return bool("output" in self._of and self._selection.of(name, maker))

    def made(self, name: str, maker: Any, result: Any) -> None:
        """Keep a call's result, and see to its gradient."""
        if not isinstance(result, Tensor):
            for place, tensor in leaves(name, result):
                self.made(place, maker, tensor)
        elif self._selection.of(name, maker):
            if "output" in self._of:
                self._store(self.output, "output", name, result)
            if "grad" in self._of and result.requires_grad:
                self.grad.await_value(name)
                self._grad_hooks.append(register_hook(result, self._keeper(name)))

    def _takes_recipes(self) -> bool:
        """Return whether results may be computed when they are read: not their gradients."""
        if self._stats or self._stream is not None or not self._detach:
            return False
        return "grad" not in self._of or not is_grad_enabled()

    def _later(self, tell: Callable[[], None]) -> None:
        """Keep the values of a plan when they are read, or now if they are to be counted."""
        if self._limit is None:
            self.output.later(tell)
        else:
            tell()

    def _to_compute(self, name: str, maker: Any, recipe: Recipe) -> None:
        """Keep the recipe of a result that was not written."""
        wanted = "output" in self._of and self._selection.of(name, maker)
        if wanted and self._fits("output", name, recipe.array.nbytes):
            self.output.keep_recipe(name, recipe)

    def _keeper(self, name: str) -> Any:
        def keep(grad: Tensor | None) -> None:
            if grad is not None:  # there is none of what nothing reads, as of one half of a split
                self._store(self.grad, "grad", name, grad)

        return keep

    def _store(self, values: Values, kind: str, name: str, tensor: Tensor) -> None:
        if self._stats:
            values.note(name, self._statistics(tensor))
        elif self._limit is None or self._fits(kind, name, tensor._array.nbytes):
            if self._stream is None:
                values.keep(name, tensor)
            else:
                place = f"{self.passes}/{kind}/{name}"
                values.note(name, self._stream.write(place, tensor._array))

    def _statistics(self, tensor: Tensor) -> dict[str, Any]:
        """Return a tensor's statistics; those of the last one are known: modules pass it on."""
        last = self._reduced
        array, version = tensor._array, tensor._counter[0]
        if last is not None and last[0] is array and last[1] == version:
            return dict(last[2])
        found = statistics(tensor, self._stats)
        self._reduced = array, version, found
        return found

    def _fits(self, kind: str, name: str, size: int) -> bool:
        """Count bytes; return whether they are within the limit, if there is one."""
        if self._limit is not None and self._bytes + size > self._limit:
            what = f"{kind} of {name}"
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"capture: {what} and what follows passes the limit of {self._limit} bytes: "
                    "select less, or capture statistics",
                    stacklevel=2,
                )
            self.left_out.append(what)
            return False
        self._bytes += size
        return True


def capture(
    model: nn.Module,
    select: Any = None,
    *,
    of: str | Collection[str] = _KINDS,
    stats: Any = (),
    detach: bool = True,
    file: str | os.PathLike[str] | None = None,
    limit: int | None = None,
) -> Capture:
    """Capture activations and gradients of a net's layers and functions, as a context manager.

    Parameters
    ----------
    model : Module
    select : str, Module, class, callable, or list of those, optional
        Which calls: globs such as ``"layer1.*"`` (``*`` matches dots too), modules of the net,
        classes such as ``nn.Conv2d``, predicates ``(name, module or function) -> bool``.
        Names of nodes in an ONNX file select them too. Default: all.
    of : 'output', 'grad', or a sequence of both
        Activations, gradients of the same, or both. Gradients are those of backward passes within
        the ``with`` block.
    stats : bool, str or sequence of str
        Statistics to keep in place of tensors: 'mean', 'std', 'min', 'max', 'zeros' (the share of
        zeros), 'nan' (how many), 'histogram' (64 counts, and 65 edges). True: all but the last.
    detach : bool
        Whether tensors are kept outside the graph. With False a loss may be computed of them.
    file : path, optional
        An .npz or .safetensors file that values are written to instead, as they come, under
        ``"{pass}/{output or grad}/{name}"``. It is there after the block, unless that raised.
    limit : int, optional
        Bytes to keep, or to write: what would pass them is left out, with one warning.

    Returns
    -------
    Capture
        ``found.output[name]``, or ``found[name]``, and ``found.grad[name]``.

    Raises
    ------
    TypeError, ValueError
        An argument is of another kind; at the end of the block: a glob fitted no call.
    KeyError
        Reading a name that is not there; the message has the nearest.
    RuntimeError
        The net is an optimized one that was never called. Reading a tensor that was changed in
        place unseen.

    Notes
    -----
    A call's name is the module's path, ``"layer1.0.conv1"``, and ``":2"`` after it from the second
    call of that name on. Functions have the name of the module in whose ``forward`` they are
    called before theirs: ``"layer1.0.add"``; operators the names of their functions. The net's own
    result is ``"output"``. Parts of tuples and dicts are ``"lstm[0]"``, ``"lstm[1][0]"``,
    ``"net[logits]"``. Functions inside convcore's own layers are not shown. A new call of the net
    forgets the values of the one before.

    Nothing is copied: a value that is a view stays one, of memory that the net computes with. If a
    function is about to change a kept value in place, the value is copied first. What is changed
    past the functions (through ``x.numpy()`` or ``x.data``) is not seen.

    Only calls of the thread that opened the block count; those of copies of the net that are made
    in the block do not. Plans of `optimize_for_inference` are cut at the calls that are captured,
    whose names are those of the net that was optimized.

    A batch norm that runs fused with the ReLU after it, as in convcore's nets, never writes its
    result: in evaluation, where no gradients and no statistics are asked for, the result is
    computed when it is read, of the convolution's, which is kept, and of copies of the batch
    norm's numbers. The bits are those that the layers would have had alone. In an optimized net,
    results of convolutions and batch norms that run fused are computed of the convolution's input.

    Examples
    --------
    >>> import convcore
    >>> from convcore import inspection, nn
    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True))
    >>> with inspection.capture(net) as found:
    ...     net(convcore.ones(1, 1, 4, 4)).sum().backward()
    >>> list(found.output)
    ['0', '1', 'output']
    >>> found.grad["1"].shape
    torch.Size([1, 2, 2, 2])
    """
    check_model(model)
    kinds = (of,) if isinstance(of, str) else of
    if not isinstance(kinds, Collection):
        raise TypeError(f"of must be 'output', 'grad' or both, got {type(of).__name__}")
    for kind in kinds:
        if kind not in _KINDS:
            raise ValueError(f"of: {kind!r:.99} is neither 'output' nor 'grad'")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise ValueError(f"limit must be a number of bytes, got {limit!r:.99}")
    return Capture(model, select, kinds, stats, detach, file, limit)
