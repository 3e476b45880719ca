"""Model summary: a net's modules in call order, with shapes, parameters, multiply-adds, memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from convcore import nn, overrides
from convcore._errors import hinted, hints, replace_hint
from convcore._errors.frames import is_from_signal_handler
from convcore._tensor import Tensor
from convcore._tensor.creation import zeros
from convcore._tensor.dtypes import dtype as _dtype
from convcore._tensor.dtypes import float32
from convcore.autograd.grad_mode import no_grad
from convcore.engine.runtime._restoring import within
from convcore.engine.runtime.restoring import together
from convcore.inference.hidden_runs import HiddenRun
from convcore.inspection import table
from convcore.inspection._models import check_model
from convcore.inspection._optimized import refuse_optimized
from convcore.inspection.work import COUNTED, PRODUCTS, multiply_adds
from convcore.nn.modules._hooks import call_hooks, evaluating
from convcore.nn.modules.utils import nested_tensors


@dataclass
class Row:
    """One call of a module: a row of the summary.

    ``name`` is the module's path from the root, "" for the root itself; ``output`` its result with
    shapes in place of tensors; ``parameters`` the parameters of the module and its descendants;
    ``multiply_adds`` those of the call, and ``output_bytes`` the memory of its new results (not of
    views and in-place results), both including nested calls; ``again`` whether the module was
    called before.
    """

    name: str
    type: str
    depth: int
    is_leaf: bool
    parameters: int
    again: bool
    output: Any = None
    multiply_adds: int = 0
    output_bytes: int = 0


@dataclass
class Summary:
    """The result of `summary`, which prints as a table.

    ``rows`` are the calls, each before those inside it. The other attributes are totals: a shared
    parameter counts once, and the parameters of modules that were not called (``not_called`` lists
    these) count too. ``not_counted`` lists the functions of products, such as matmul, that modules
    called themselves: their multiply-adds are in no number here.
    """

    rows: list[Row]
    total_params: int
    trainable_params: int
    buffers: int
    multiply_adds: int
    input_bytes: int
    output_bytes: int
    param_bytes: int
    not_called: list[str]
    not_counted: list[str] = field(default_factory=list)
    depth: int | None = field(default=None, repr=False)

    @property
    def total_bytes(self) -> int:
        """Bytes of input, results, parameters and buffers."""
        return self.input_bytes + self.output_bytes + self.param_bytes

    def __str__(self) -> str:
        return table.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table.page(self)


def summary(
    model: nn.Module,
    input: Any = (),
    *,
    kwargs: dict[str, Any] | None = None,
    dtype: _dtype = float32,
    depth: int | None = None,
) -> Summary:
    """Summarize a net: call it once, and list its modules with shapes, parameters and costs.

    Parameters
    ----------
    model : Module
    input : object
        The argument: a tensor of any dtype, or a dict or a list with tensors; or a tuple of all
        arguments; or a tuple of ints, the shape of one argument, which is filled with zeros.
    kwargs : dict, optional
        Keyword arguments.
    dtype : dtype
        Dtype of an argument that is given by its shape.
    depth : int, optional
        Depth of the printed table: 1 shows the model's direct children. Unlimited by default.

    Raises
    ------
    TypeError
        ``model`` is not a Module.
    ValueError
        ``depth`` is negative.
    RuntimeError
        ``model`` was made by `optimize_for_inference`: summarize the net that it was made of.

    Notes
    -----
    The model is called once, in evaluation mode and under `no_grad`. Its modes are restored, and so
    is the state that its code can change, such as buffers and attributes; not random generators.
    Multiply-adds are those of convolutions, linear, recurrent and attention layers that are called
    as modules, by their definition; of functions that a ``forward`` calls itself, those that
    multiply are named below the total. Sizes are those of the given input, including its batch.

    Examples
    --------
    >>> import convcore
    >>> net = convcore.nn.Sequential(convcore.nn.Conv2d(1, 2, 3), convcore.nn.ReLU())
    >>> found = convcore.summary(net, (1, 1, 5, 5))
    >>> found.total_params, found.multiply_adds, [row.name for row in found.rows]
    (20, 162, ['', '0', '1'])
    """
    check_model(model)
    if depth is not None and depth < 0:
        raise ValueError(f"depth must not be negative, got {depth}")
    refuse_optimized(model, "summary")
    args, kwargs = _arguments(input, dtype), kwargs or {}
    watch = _Watch(model)
    hooks = call_hooks(model.modules(), watch.enter, watch.leave, with_kwargs=True)
    watched = together(
        HiddenRun(model, effects=True, draws=True),
        evaluating(model),
        hooks,
        no_grad(),
        overrides.watching(watch.function),
    )
    try:
        within(watched, model, args, kwargs)
    except Exception as error:
        if not args and not kwargs and isinstance(error, TypeError):
            hinted(error, hints.NO_INPUT)
        elif _is_shape(input) and _runs(model, (zeros((1, *input), dtype=dtype),), kwargs):
            replace_hint(error, f"the net takes a batch: summary(model, {(1, *input)})")
        raise
    return watch.found(_bytes(args) + _bytes(kwargs), depth)


class _Watch:
    """The rows of a summary, as hooks record them during the call."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.names = {module: name for name, module in model.named_modules()}
        self.rows: list[Row] = []
        self.inside: list[Row] = []
        self.called: set[nn.Module] = set()
        self.counted: list[bool] = []  # of each row inside: whether its products are
        self.not_counted: dict[str, None] = {}

    def enter(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        """Start the row of a call (a forward pre-hook)."""
        row = Row(
            name=self.names[module],
            type=module._get_name(),  # the name that the module's printed form has
            depth=len(self.inside),
            is_leaf=next(module.children(), None) is None,
            parameters=sum(parameter.numel() for parameter in module.parameters()),
            again=module in self.called,
        )
        self.called.add(module)
        if isinstance(module, nn.MultiheadAttention):
            self.called.add(module.out_proj)  # a function computes with its weight
        self.rows.append(row)
        self.inside.append(row)
        self.counted.append(isinstance(module, COUNTED))

    def function(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """Call a function, and note it if it multiplies and no layer counts that."""
        if name in PRODUCTS and self.counted and not self.counted[-1]:
            self.not_counted[name] = None
        return function(*args, **kwargs)

    def leave(self, module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        """Finish the row, and add its costs to the enclosing call's (a forward hook)."""
        row = self.inside.pop()
        self.counted.pop()
        row.output = shapes(output)
        row.multiply_adds += multiply_adds(module, args, output, kwargs)
        if row.is_leaf:
            taken = {tensor.data_ptr() for tensor in nested_tensors(args)}
            made = {tensor.data_ptr(): tensor.nbytes for tensor in nested_tensors(output)}
            row.output_bytes = sum(n for place, n in made.items() if place not in taken)
        if self.inside:
            self.inside[-1].multiply_adds += row.multiply_adds
            self.inside[-1].output_bytes += row.output_bytes

    def found(self, input_bytes: int, depth: int | None) -> Summary:
        """Return the summary: the rows and their totals."""
        parameters = list(self.model.parameters())
        buffers = list(self.model.buffers())
        leaves = (m for m in self.model.modules() if next(m.children(), None) is None)
        return Summary(
            rows=self.rows,
            total_params=sum(parameter.numel() for parameter in parameters),
            trainable_params=sum(p.numel() for p in parameters if p.requires_grad),
            buffers=sum(buffer.numel() for buffer in buffers),
            multiply_adds=self.rows[0].multiply_adds,
            input_bytes=input_bytes,
            output_bytes=self.rows[0].output_bytes,
            param_bytes=sum(tensor.nbytes for tensor in itertools.chain(parameters, buffers)),
            not_called=[self.names[m] for m in leaves if m not in self.called],
            not_counted=list(self.not_counted),
            depth=depth,
        )


def _arguments(input: Any, dtype: _dtype) -> tuple:
    """Return the positional arguments that ``input`` stands for."""
    if _is_shape(input):
        return (zeros(input, dtype=dtype),)
    return input if isinstance(input, tuple) else (input,)


def _is_shape(input: Any) -> bool:
    return isinstance(input, tuple) and bool(input) and all(type(size) is int for size in input)


def _runs(model: nn.Module, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Return whether the net takes these arguments."""
    run = together(HiddenRun(model, effects=True), evaluating(model), no_grad())
    try:
        within(run, model, args, kwargs)
    except Exception as error:
        if is_from_signal_handler(error):
            raise
        return False
    return True


def shapes(value: Any) -> Any:
    """Return a nested value with lists of sizes in place of tensors, and None for other objects."""
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, dict):
        return {key: shapes(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(shapes(item) for item in value)
    return None


def _bytes(value: Any) -> int:
    return sum(tensor.nbytes for tensor in nested_tensors(value))
