"""Whether a model holds at other sizes of its free axes: more runs, at such sizes.

Sizes are plain numbers while a net runs.  What it computes from that of a free axis would be
written as it was in that one run, and be wrong, or fail, at every other size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx

from convcore import Tensor, get_rng_state, set_rng_state
from convcore._hints import hinted
from convcore.onnx.axes import Axes
from convcore.onnx.errors import OnnxError
from convcore.onnx.inputs import Inputs
from convcore.onnx.nesting import replaced
from convcore.onnx.recording import Recorder
from convcore.onnx.values import array_of, value_of

# Sizes that are tried until the net runs: some nets halve their input, others need odd sizes.
_TRIED: tuple[Callable[[int], int], ...] = (
    lambda n: 2 * n,
    lambda n: n + 1,
    lambda n: 3 * n,
    lambda n: n + 2,
)
_ADVICE = (
    "give -1 to view, reshape and expand, take mean() for sum() / n, and zeros_like, ones_like or "
    "expand_as for what is made of a size; or leave this axis fixed"
)


def check_sizes(
    recorder: Recorder,
    inputs: Inputs,
    call: Any,
    free: Mapping[str, Axes],
    random_state: Tensor,
) -> None:
    """Raise OnnxError if what was recorded has the size of a free axis in it as a number.

    A net that runs at no other size is taken as it is.

    Parameters
    ----------
    recorder : Recorder
        After its run.
    inputs : Inputs
    call : (tuple, dict)
        The arguments of that run, as they were before it.
    free : dict
        By the inputs' names in the model, their free axes.
    random_state : Tensor
        Of the generator before that run.
    """
    names = dict.fromkeys(text for each in free.values() for text in each.values())
    alone = [
        name for name in names if not _agrees(recorder, inputs, call, free, [name], random_state)
    ]
    if len(alone) > 1:  # axes that have to be equal may have different names
        _agrees(recorder, inputs, call, free, alone, random_state)


def _agrees(
    recorder: Recorder,
    inputs: Inputs,
    call: Any,
    free: Mapping[str, Axes],
    names: Sequence[str],
    random_state: Tensor,
) -> bool:
    """Return whether the net runs at another size of some axes; raise if the model is another."""
    axes = {
        each: [axis for axis, text in free.get(each, {}).items() if text in names]
        for each in inputs.names.values()
    }
    for size in _TRIED:
        with _drawing_from(random_state):
            again = _run(recorder, inputs, call, axes, size)
        if again is not None:
            break
    else:
        return False
    if found := _difference(recorder, again):
        with _drawing_from(random_state):
            same = _run(recorder, inputs, call, {}, size)
        if same is None or _difference(recorder, same):
            return True  # a net that is another at each call
        shown = " and ".join(map(repr, names))
        raise hinted(OnnxError(f"{shown} cannot be a free axis: {found}"), _ADVICE)
    return True


@contextmanager
def _drawing_from(random_state: Tensor) -> Iterator[None]:
    after = get_rng_state()
    set_rng_state(random_state)
    try:
        yield
    finally:
        set_rng_state(after)


def _run(
    recorder: Recorder,
    inputs: Inputs,
    call: Any,
    axes: Mapping[str, Sequence[int]],
    size: Callable[[int], int],
) -> Recorder | None:
    """Return the recorder of a run at other sizes, or None if the net does not run at them."""
    args, kwargs = replaced(call, _copy)  # so that each input is an object of its own
    given = dict(zip(inputs.names.values(), inputs.tensors(args, kwargs), strict=True))
    wanted = {id(given[name]): each for name, each in axes.items()}
    args, kwargs = replaced((args, kwargs), lambda x: _resized(x, wanted.get(id(x), ()), size))
    values = inputs.tensors(args, kwargs)
    again = recorder.again(dict(zip(inputs.names.values(), values, strict=True)))
    try:
        again.results(args, kwargs)
    except Exception:  # what a net raises at sizes that it is not made for may be of any kind
        return None
    return again


def _copy(value: Tensor) -> Tensor:
    return value.detach().clone()


def _resized(value: Tensor, axes: Sequence[int], size: Callable[[int], int]) -> Tensor:
    """Return a tensor of other sizes, in which the values repeat."""
    array = array_of(value)
    for axis in axes:
        old = array.shape[axis]
        array = np.take(array, np.arange(size(old)) % max(old, 1), axis)
    found = value_of(np.ascontiguousarray(array))
    assert isinstance(found, Tensor)
    return found


def _difference(one: Recorder, other: Recorder) -> str:
    """Return what differs first between two runs, and where in the program that was called."""
    for k, (node, another) in enumerate(zip(one.nodes, other.nodes, strict=False)):
        if node.op_type != another.op_type or list(node.input) != list(another.input):
            return f"at another size the net calls something else: {one.origins[k]}"
        for name in node.input:
            if not _is_same(one, other, name):
                return _said(_numbers(one, name), _numbers(other, name), one.origins[k])
        options, others = ([*each.attribute] for each in (node, another))
        if options != others:
            return _said(_options(node, options), _options(another, others), one.origins[k])
    if len(one.nodes) != len(other.nodes):
        longer = max(one, other, key=lambda each: len(each.nodes))
        place = longer.origins[min(len(one.nodes), len(other.nodes))]
        return f"at another size the net calls something else: {place}"
    for name, place in one.numbers.items():
        if not _is_same(one, other, name):
            return _said(_numbers(one, name), _numbers(other, name), place)
    return ""


def _is_same(one: Recorder, other: Recorder, name: str) -> bool:
    """Return whether a name is no constant, is a weight, or is the same in both runs."""
    if name not in one.numbers or name not in other.numbers:
        return (name in one.numbers) == (name in other.numbers)
    a, b = one.constants[name], other.constants[name]
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _said(one: str, other: str, place: str) -> str:
    return (
        f"its size enters the model as a number, {one}, which is {other} at another size: {place}"
    )


def _numbers(recorder: Recorder, name: str) -> str:
    array = recorder.constants.get(name)
    if array is None:
        return "a computed tensor"
    return str(array.tolist()) if array.size < 9 else f"a constant of the shape {array.shape}"


def _options(node: onnx.NodeProto, options: Sequence[onnx.AttributeProto]) -> str:
    return f"{node.op_type}({', '.join(str(onnx.helper.printable_attribute(each)) for each in options)})"
