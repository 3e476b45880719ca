"""Whether a model holds at other sizes of its free axes: more runs, at such sizes.

Sizes are numbers in a first run.  Where the model would be another at other sizes, the net runs
again at all of them, and sizes that differ are followed, until the models are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from convcore import Tensor, set_rng_state
from convcore._errors import hinted
from convcore._errors.frames import is_from_signal_handler
from convcore.onnx.axes import Axes
from convcore.onnx.errors import OnnxError
from convcore.onnx.inputs import Inputs
from convcore.onnx.nesting import replaced
from convcore.onnx.recording import Recorder
from convcore.onnx.values import array_of, value_of
from convcore.random.generator import fork_rng

_Size = Callable[[int], int]
_Names = tuple[str, ...]

# Sizes that are tried until the net runs: some nets halve their input, others need odd sizes.
_TRIED: tuple[_Size, ...] = (lambda n: 2 * n, lambda n: n + 1, lambda n: 3 * n, lambda n: n + 2)
# Sizes of what is made of sizes are known one round later.
_MOST_ROUNDS = 5
_ADVICE = (
    "+, -, *, // and % of x.shape[0] are followed; int(n), n / 2 and math.sqrt(n) are not, and no "
    "loop of as many turns; or leave this axis fixed"
)


def follow_sizes(
    recorder: Recorder,
    results: list[Tensor],
    inputs: Inputs,
    call: Any,
    free: Mapping[str, Axes],
    random_state: Tensor,
) -> tuple[Recorder, list[Tensor]]:
    """Return a recorder and the outputs of its run, in which sizes of free axes are followed.

    A net that runs at no other size is taken as it is, and so is one that is another at each call.

    Parameters
    ----------
    recorder, results
        Of a run in which sizes are numbers.
    inputs : Inputs
    call : (tuple, dict)
        The arguments of that run, as they were before it.
    free : dict
        By the inputs' names in the model, their free axes.
    random_state : Tensor
        Of the generator before that run.

    Raises
    ------
    OnnxError
        The model would hold the size of a free axis as a number.
    """
    runs = _Runs(inputs, call, free, random_state)
    others = runs.at_other_sizes(recorder)
    error = _error(recorder, others)
    same = error and runs.run(recorder, (), _TRIED[0])
    if error is None or not same or _difference(recorder, same[0]):
        return recorder, results
    logs: list[Any] = []
    current = recorder
    for _ in range(_MOST_ROUNDS):
        before, logs = logs, [each.log for each in (current, *(o[1] for o in others.values()))]
        if logs == before:
            break
        current = recorder.again({})
        current.earlier = logs
        base = runs.run(current, (), _TRIED[0], copies_weights=True)
        again = {names: runs.run(current, names, size) for names, (size, _) in others.items()}
        if base is None or None in again.values():
            break
        others = {names: (others[names][0], run[0]) for names, run in again.items() if run}
        current, results = base
        if _error(current, others) is None:
            return current, results
    raise error


class _Runs:
    """Runs of a net at the sizes that are given, and at others."""

    def __init__(
        self, inputs: Inputs, call: Any, free: Mapping[str, Axes], random_state: Tensor
    ) -> None:
        self._inputs, self._call, self._free = inputs, call, free
        self._random_state = random_state

    def at_other_sizes(self, recorder: Recorder) -> dict[_Names, tuple[_Size, Recorder]]:
        """Return a run for each free axis, where there is one: by the names that have changed."""
        names = dict.fromkeys(text for each in self._free.values() for text in each.values())
        found: dict[_Names, tuple[_Size, Recorder]] = {
            (name,): run for name in names if (run := self._first(recorder, (name,)))
        }
        alone = tuple(name for name in names if (name,) not in found)
        # Axes whose sizes have to be equal may have different names.
        if len(alone) > 1 and (run := self._first(recorder, alone)):
            found[alone] = run
        return found

    def _first(self, recorder: Recorder, names: _Names) -> tuple[_Size, Recorder] | None:
        for size in _TRIED:
            if run := self.run(recorder, names, size):
                return size, run[0]
        return None

    def run(
        self, recorder: Recorder, names: _Names, size: _Size, copies_weights: bool = False
    ) -> tuple[Recorder, list[Tensor]] | None:
        """Return a run in which axes have another size, or None if the net does not run there."""
        args, kwargs = replaced(self._call, _copy)  # so that each input is an object of its own
        given = self._by_name(args, kwargs)
        wanted = {
            id(given[each]): [axis for axis, text in axes.items() if text in names]
            for each, axes in self._free.items()
        }
        args, kwargs = replaced((args, kwargs), lambda x: _resized(x, wanted.get(id(x), ()), size))
        again = recorder.again(self._by_name(args, kwargs), copies_weights)
        with fork_rng():
            set_rng_state(self._random_state)
            try:
                return again, again.results(args, kwargs)
            except Exception as error:  # what a net raises at other sizes may be of any kind
                if is_from_signal_handler(error):
                    raise
                return None

    def _by_name(self, args: Any, kwargs: Any) -> dict[str, Tensor]:
        values = self._inputs.tensors(args, kwargs)
        return dict(zip(self._inputs.names.values(), values, strict=True))


def _error(recorder: Recorder, others: Mapping[_Names, tuple[_Size, Recorder]]) -> OnnxError | None:
    """Return the error of a model that is another at other sizes, or None."""
    for names, (_, other) in others.items():
        if found := _difference(recorder, other):
            shown = " and ".join(map(repr, names))
            return hinted(OnnxError(f"{shown} cannot be a free axis: {found}"), _ADVICE)
    return None


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
    return f"{node.op_type}({', '.join(map(str, map(onnx.helper.printable_attribute, options)))})"
