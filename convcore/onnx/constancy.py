"""Whether what a recorded run took for constants is constant: another run, on other values.

Not every function is seen while a net is recorded: one that is kept in a list is not, nor what
copies a tensor.  What they compute from an input would be written as it was in that one run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore import Tensor, set_rng_state
from convcore._errors import hinted
from convcore._errors.frames import is_from_signal_handler
from convcore.onnx.errors import OnnxError
from convcore.onnx.inputs import Inputs
from convcore.onnx.nesting import replaced
from convcore.onnx.recording import Recorder
from convcore.onnx.values import array_of, value_of
from convcore.random.generator import fork_rng


def check_constants(recorder: Recorder, inputs: Inputs, call: Any, random_state: Tensor) -> None:
    """Raise OnnxError if a constant of a recorded run depends on the inputs.

    Parameters
    ----------
    recorder : Recorder
        After its run.
    inputs : Inputs
    call : (tuple, dict)
        The arguments of that run, as they were before it.
    random_state : Tensor
        Of the generator before that run.
    """
    args, kwargs = replaced(call, _other)
    values = inputs.tensors(args, kwargs)
    again = recorder.again(dict(zip(inputs.names.values(), values, strict=True)))
    with fork_rng():
        set_rng_state(random_state)
        try:
            again.results(args, kwargs)
        except Exception as error:  # the net may refuse values that are none of its caller's
            if is_from_signal_handler(error):
                raise
            return
    if [each.op_type for each in again.nodes] != [each.op_type for each in recorder.nodes]:
        return  # a net that is another at its first call
    for (module, one), (_, other) in zip(recorder.taken, again.taken, strict=False):
        if one.tobytes() != other.tobytes():
            unseen = OnnxError(
                f"module {module!r} cannot be exported: it uses what a function that has no "
                "translation to ONNX, and is not seen, computes from the input"
            )
            raise hinted(unseen, "what is called as torch.f(x), F.f(x) or x.f() is seen")


def _other(value: Tensor) -> Tensor:
    """Return a tensor of the same kind with other values; integers are some that were there."""
    array = array_of(value)
    new = array.reshape(-1)[::-1].reshape(array.shape).copy()
    if value.is_floating_point():
        new += np.random.default_rng(0).random(new.shape).astype(new.dtype)
    found = value_of(new)
    assert isinstance(found, Tensor)
    return found
