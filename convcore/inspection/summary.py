"""A net's modules in the order of their calls: shapes, parameters, multiply-adds, memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from convcore import nn
from convcore._creation import zeros
from convcore._dtype import dtype as _dtype
from convcore._dtype import float32
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.inspection import table
from convcore.inspection.work import multiply_adds

__all__ = ["Row", "Summary", "summary"]


@dataclass
class Row:
    """One call of a module.

    ``name`` is the module's path from the root, "" for the root itself; ``output`` what it
    returned, with shapes in the place of tensors; ``parameters`` those of the module and of all
    below it; ``multiply_adds`` those of the call, and ``output_bytes`` the memory of results that
    it made, views and in-place operations aside, both with all calls inside it; ``again`` tells
    that the module was called before.
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
    """What `summary` found; printed, it is a table.

    ``rows`` are the calls, each before those inside it. The other attributes are totals: a
    parameter that several modules share counts once, and modules that were not called, which
    ``not_called`` names, have theirs counted too.
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
    depth: int | None = field(default=None, repr=False)

    @property
    def total_bytes(self) -> int:
        """The memory of input, results, parameters and buffers."""
        return self.input_bytes + self.output_bytes + self.param_bytes

    def __str__(self) -> str:
        return table.text(self)

    __repr__ = __str__


def summary(
    model: nn.Module,
    input: Any = (),
    *,
    kwargs: dict[str, Any] | None = None,
    dtype: _dtype = float32,
    depth: int | None = None,
) -> Summary:
    """Call a net and note what each of its modules makes.

    Parameters
    ----------
    model : Module
    input : object
        The argument: a tensor of any dtype, or a dict or a list with tensors. A tuple holds all
        arguments. A tuple of ints is the shape of one, which is filled with zeros.
    kwargs : dict, optional
        Keyword arguments.
    dtype : dtype
        Of an argument whose shape is given.
    depth : int, optional
        How deep the table goes: 1 shows the modules right inside the model. All by default.

    Returns
    -------
    Summary

    Raises
    ------
    TypeError
        ``model`` is no Module.
    ValueError
        ``depth`` is negative.

    Notes
    -----
    The model is called once, as for inference: without a graph, in evaluation mode, which it leaves
    as it was. Multiply-adds are those that the definitions of convolutions and linear layers have,
    called as modules; what a ``forward`` computes by functions of its own is not seen. Sizes are
    those of the given input: nothing is put in the place of the batch.

    Examples
    --------
    >>> import convcore
    >>> net = convcore.nn.Sequential(convcore.nn.Conv2d(1, 2, 3), convcore.nn.ReLU())
    >>> found = convcore.summary(net, (1, 1, 5, 5))
    >>> found.total_params, found.multiply_adds, [row.name for row in found.rows]
    (20, 162, ['', '0', '1'])
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a Module, got {type(model).__name__}")
    if depth is not None and depth < 0:
        raise ValueError(f"depth must not be negative, got {depth}")
    args, kwargs = _arguments(input, dtype), kwargs or {}
    watch = _Watch(model)
    modes = [(module, module.training) for module in model.modules()]
    handles = [
        handle
        for module in model.modules()
        for handle in (
            module.register_forward_pre_hook(watch.enter),
            module.register_forward_hook(watch.leave),
        )
    ]
    try:
        model.eval()
        with no_grad():
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:
            module.training = training
    return watch.found(_bytes(args) + _bytes(kwargs), depth)


class _Watch:
    """What hooks tell of the calls while they are made."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.names = {module: name for name, module in model.named_modules()}
        self.rows: list[Row] = []
        self.inside: list[Row] = []
        self.called: set[nn.Module] = set()

    def enter(self, module: nn.Module, args: tuple) -> None:
        """Begin a row."""
        row = Row(
            name=self.names[module],
            type=module._get_name(),  # as the module prints itself
            depth=len(self.inside),
            is_leaf=next(module.children(), None) is None,
            parameters=sum(parameter.numel() for parameter in module.parameters()),
            again=module in self.called,
        )
        self.called.add(module)
        self.rows.append(row)
        self.inside.append(row)

    def leave(self, module: nn.Module, args: tuple, output: Any) -> None:
        """End the row, and add its costs to those of the calls that it is inside of."""
        row = self.inside.pop()
        row.output = shapes(output)
        row.multiply_adds += multiply_adds(module, args, output)
        if row.is_leaf:
            taken = {tensor.data_ptr() for tensor in tensors(args)}
            made = {tensor.data_ptr(): tensor.nbytes for tensor in tensors(output)}
            row.output_bytes = sum(n for place, n in made.items() if place not in taken)
        if self.inside:
            self.inside[-1].multiply_adds += row.multiply_adds
            self.inside[-1].output_bytes += row.output_bytes

    def found(self, input_bytes: int, depth: int | None) -> Summary:
        """Return the rows and their totals."""
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
            depth=depth,
        )


def _arguments(input: Any, dtype: _dtype) -> tuple:
    """Return the positional arguments that ``input`` stands for."""
    if isinstance(input, tuple) and input and all(type(size) is int for size in input):
        return (zeros(input, dtype=dtype),)
    return input if isinstance(input, tuple) else (input,)


def tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, in mappings and sequences too."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(tensors, value.values()))
    elif isinstance(value, (tuple, list)):
        yield from itertools.chain.from_iterable(map(tensors, value))


def shapes(value: Any) -> Any:
    """Return a value with lists of sizes for its tensors, and None for what has none."""
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, dict):
        return {key: shapes(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(shapes(item) for item in value)
    return None


def _bytes(value: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors(value))
