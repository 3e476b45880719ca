"""Linear algebra under its older names, beside PyTorch's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from against_torch import agree

import convcore


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_older_names_have_their_own_arguments_and_results(torch):
    a = np.array([[4.0, 2.0], [2.0, 3.0]])
    agree(torch, lambda m, a: m.cholesky(a, True), a, rtol=1e-9)
    agree(torch, lambda m, a: a.logdet(), a, rtol=1e-9)
    ours, theirs = (m.slogdet(m.tensor(a)) for m in (convcore, torch))
    assert all(hasattr(theirs, field) for field in ours._fields)
    assert type(ours).__name__ == type(theirs).__name__
    with pytest.raises(convcore.linalg.LinAlgError, match=r"^cholesky: The factorization could"):
        convcore.cholesky(convcore.tensor(-a))


@pytest.mark.parametrize("name", ["det", "inverse", "logdet"])
def test_they_are_methods_too(name):
    a = convcore.eye(2) * 2
    assert getattr(a, name)().tolist() == getattr(convcore, name)(a).tolist()


def test_decompositions_are_loaded_when_one_is_called():
    code = (
        "import sys, convcore; a = convcore.eye(2); known = 'convcore.functions.linalg' in "
        "sys.modules; a.det(); assert not known and 'convcore.functions.linalg' in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
