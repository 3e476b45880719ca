"""torch.signal: windows by their number of values."""

import numpy as np
import pytest

import convcore
from convcore.compat.torch.signal import windows

OWN = {"general_cosine": {"a": [0.5, 0.3, 0.2]}, "exponential": {"tau": 3.0}, "kaiser": {"beta": 4}}


@pytest.mark.parametrize("name", windows.__all__)
def test_windows_are_pytorchs(torch, name):
    ours, theirs = getattr(windows, name), getattr(torch.signal.windows, name)
    for sym in (True, False):
        found, expected = (one(7, sym=sym, **OWN.get(name, {})) for one in (ours, theirs))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-6)


def test_a_symmetric_window_without_pytorch():
    found = windows.gaussian(5, std=2.0, dtype=convcore.float64)
    expected = np.exp(-(np.arange(-2, 3) ** 2) / 8)
    np.testing.assert_allclose(found.numpy(), expected)


def test_wrong_arguments_are_named():
    for wrong in (
        {"M": -1},
        {"M": 3, "dtype": convcore.int64},
        {"M": 3, "layout": convcore.sparse_coo},
    ):
        with pytest.raises(ValueError, match=r"kaiser (requires|expects|is implemented)"):
            windows.kaiser(**wrong)
    with pytest.raises(ValueError, match="Tau must be positive, got: 0 instead"):
        windows.exponential(3, tau=0)
    with pytest.raises(ValueError, match="Center must be None for symmetric windows"):
        windows.exponential(3, center=1)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        windows.general_cosine(3, a=[])
    with pytest.raises(TypeError, match="unexpected keyword argument 'std'"):
        windows.kaiser(3, std=1)
