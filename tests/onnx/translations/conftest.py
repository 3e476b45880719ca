"""What the tests of translations share: the comparison of a function with its model."""

import numpy as np
import pytest
from onnx_nets import Call, runtime_results

import convcore
from convcore import nn

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")


def tensors(result):
    """Return the tensors of a result, those in a tuple and in what lies in it."""
    if isinstance(result, tuple | list):
        return [tensor for each in result for tensor in tensors(each)]
    return [] if result is None else [result.detach()]


@pytest.fixture
def agree():
    """Return a function that exports, and compares with convcore and ONNX Runtime.

    With ``free``, an axis of all inputs is free, and a model is compared for another size too.
    """

    def compared(function, *inputs, free=0, opset_version=None):
        net = (function if isinstance(function, nn.Module) else Call(function)).eval()
        calls, shapes = [inputs], None
        if free is not None:
            longer = tuple(convcore.cat([x, x.roll(1, free)], free) for x in inputs)
            calls.append(longer)
            each = tuple({free: "n"} for _ in inputs)
            shapes = [each] if isinstance(net, Call) else each
        program = convcore.onnx.export(
            net, inputs, dynamic_shapes=shapes, opset_version=opset_version
        )
        for given in calls:
            expected = tensors(net(*given))
            found = program(*given)
            for one, other in zip(found, expected, strict=True):
                assert one.dtype is other.dtype
                convcore.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)
            data = program.model_proto.SerializeToString()
            for one, other in zip(runtime_results(data, *given) or (), expected, strict=False):
                assert one.dtype == other.numpy().dtype
                assert one.shape == other.shape
                np.testing.assert_allclose(one, other.numpy(), rtol=2e-5, atol=2e-5)
        return program

    return compared


@pytest.fixture
def x(rng):
    """Return a batch of three arrays of 4 x 5 x 6."""
    return convcore.tensor(rng.standard_normal((3, 4, 5, 6), dtype=np.float32))
