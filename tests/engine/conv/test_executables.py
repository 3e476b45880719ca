"""Executables: made once for arrays of one kind, and cached by all that they depend on."""

from __future__ import annotations

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("algorithm", ["winograd", "indirect", "im2col"])
def test_a_transposed_convolution_adds_its_bias(rng, algorithm, channels_last):
    x = rng.standard_normal((2, 24, 9, 9)).astype("f4")
    w = rng.standard_normal((24, 40, 3, 3)).astype("f4")
    if channels_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    bias = rng.standard_normal(40).astype("f4")
    with conv.flags(algorithm=algorithm):
        plain = engine.conv_transpose(x, w, padding=1)
        y = engine.conv_transpose(x, w, bias, padding=1)
        np.testing.assert_allclose(y, plain + bias[:, None, None], atol=2e-5)
        one = engine.conv_transpose(x[0], w, bias, padding=1)
        np.testing.assert_allclose(one, y[0], atol=2e-4)
        with pytest.raises(ValueError, match="bias"):
            engine.conv_transpose(x, w, bias[:-1], padding=1)
