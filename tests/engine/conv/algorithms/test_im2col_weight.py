"""Weight gradient by im2col and gemm: runs of pixels, whose partial sums are added in order."""

import pytest
from draws import DTYPES

from convcore.engine.conv.blocks import BLOCK, PART_BYTES, PARTIAL_BYTES
from convcore.engine.conv.im2col import weight as gemm_weight_gradient


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted"])
def test_many_blocks_of_pixels_are_summed_exactly(layout, dtype, forced):
    shapes = (3, 4, 40, 31), (6, 2, 3, 2)
    plan = forced("im2col", "weight_grad", *shapes, dtype, layout, padding=1, groups=2)
    assert plan.partials > 1
    assert plan.items % plan.partials == 0
    assert plan.shared == plan.partials * 6 * 2 * 3 * 2


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_small_images_are_summed_several_at_a_time(layout, forced):
    plan = forced(
        "im2col", "weight_grad", (50, 3, 4, 4), (5, 3, 3, 3), "float32", layout, padding=1
    )
    assert plan.block > 16


def test_partial_gradients_keep_to_their_bytes(forced):
    plan = forced("im2col", "weight_grad", (4, 256, 33, 33), (512, 256, 1, 1), stride=1)
    assert plan.shared_bytes <= PARTIAL_BYTES


def test_one_run_of_pixels_needs_no_partial_sums(forced):
    plan = forced("im2col", "weight_grad", (1, 3, 5, 5), (4, 3, 3, 3))
    assert plan.partials == 1
    assert plan.shared == 0


def test_blocks_are_longer_where_patches_are_small(forced):
    narrow = forced("im2col", "weight_grad", (1, 1, 100, 100), (2, 1, 3, 3))
    wide = forced("im2col", "weight_grad", (1, 64, 30, 30), (2, 64, 3, 3))
    assert wide.block <= BLOCK < narrow.block <= BLOCK * gemm_weight_gradient.MOST_SUMMED_BLOCKS
    assert narrow.block * 9 * 4 <= PART_BYTES
