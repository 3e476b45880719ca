"""Reductions of losses, in their names of today and of old."""

from __future__ import annotations

import pytest

import convcore
from convcore.nn import functional as F


def test_older_arguments_of_reduction_are_understood():
    x, y = convcore.ones(4), convcore.zeros(4)
    for arguments, expected in (
        ({"size_average": False}, 4),
        ({"reduce": True}, 1),
        ({"reduce": False}, [1, 1, 1, 1]),
    ):
        with pytest.warns(UserWarning, match="please use reduction="):
            assert F.mse_loss(x, y, **arguments).tolist() == expected


@pytest.mark.parametrize("loss", [F.mse_loss, F.kl_div, F.poisson_nll_loss])
@pytest.mark.parametrize("reduction", ["Mean", "", None])
def test_other_reductions_are_refused(loss, reduction):
    with pytest.raises(ValueError, match=f"{reduction} is not a valid value for reduction"):
        loss(convcore.ones(2), convcore.ones(2), reduction=reduction)
