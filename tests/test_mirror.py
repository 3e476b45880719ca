"""A subject has the same name everywhere: each module of two rooms has the test file of its name.

`functions/_support/axes.py` is tested in `tests/functions/_support/test_axes.py`, `_bind.py` in
`tests/functions/test_bind.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import convcore

TESTS = Path(__file__).resolve().parent
PACKAGE = Path(convcore.__file__).parent

# Modules that still have no test file.  May only shrink.
MISSING = {
    "engine/conv/algorithms/blocks.py",
    "engine/conv/algorithms/direct.py",
    "engine/conv/algorithms/gemm.py",
    "engine/conv/algorithms/gemm_col2im.py",
    "engine/conv/algorithms/gemm_weight_gradient.py",
    "engine/conv/algorithms/im2col.py",
    "engine/conv/algorithms/indirect_correlation.py",
    "engine/conv/algorithms/indirect_weight.py",
    "engine/conv/algorithms/indirection.py",
    "engine/conv/algorithms/pointwise.py",
    "engine/conv/algorithms/problem.py",
    "engine/conv/algorithms/stride_decomposition.py",
    "engine/conv/algorithms/winograd_tiles.py",
    "engine/conv/conv_nd.py",
    "engine/conv/epilogue.py",
    "engine/conv/executables.py",
    "engine/conv/patches.py",
    "engine/conv/shaping.py",
    "engine/conv/stride_phases.py",
    "engine/conv/struct_fields.py",
    "engine/layers/avg_pooling.py",
    "engine/layers/global_avg_pooling.py",
    "engine/layers/images.py",
    "engine/layers/interpolation.py",
    "engine/layers/layer_norm.py",
    "engine/layers/max_pooling.py",
    "engine/layers/max_pooling_numpy.py",
    "engine/layers/max_unpooling.py",
    "engine/layers/norm.py",
    "engine/layers/optimizers.py",
    "engine/layers/padding.py",
    "engine/layers/pooling.py",
    "engine/layers/separable.py",
    "engine/layers/softmax.py",
    "engine/layers/windows.py",
    "engine/matmul.py",
    "engine/runtime/checks.py",
    "engine/runtime/cpus.py",
    "engine/runtime/layout.py",
    "engine/runtime/locks.py",
}


def modules(room: str) -> list[str]:
    """Return the paths inside the package of a room's modules."""
    found = sorted((PACKAGE / room).rglob("*.py"))
    return [file.relative_to(PACKAGE).as_posix() for file in found if file.stem != "__init__"]


def home_of(module: str) -> Path:
    """Return where a module's tests are."""
    file = Path(module)
    return TESTS / file.parent / f"test_{file.stem.removeprefix('_')}.py"


@pytest.mark.parametrize("room", ["engine", "functions"])
def test_each_module_has_the_test_file_of_its_name(room):
    missing = {module for module in modules(room) if not home_of(module).exists()}
    assert missing == {module for module in MISSING if module.startswith(f"{room}/")}


def test_a_file_that_is_not_there_is_missed():
    assert not home_of("functions/_support/no_such_module.py").exists()
    assert home_of("functions/_bind.py") == TESTS / "functions" / "test_bind.py"
