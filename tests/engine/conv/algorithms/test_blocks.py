"""Blocking: pieces that cover all work, keep to their bounds and depend on shapes alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from convcore.engine.conv import blocks

MANY = examples(200)
sizes = st.integers(1, 5000)


@MANY
@given(n=st.integers(1, 9), pixels=sizes, channels_last=st.booleans(), most=st.integers(1, 600))
def test_equal_blocks_cover_every_pixel_once(n, pixels, channels_last, most):
    cut = blocks.cut(n, pixels, channels_last, most)
    assert 1 <= cut.size <= most
    assert (cut.per_unit - 1) * cut.size < cut.unit <= cut.per_unit * cut.size
    assert cut.count * cut.unit == n * pixels * cut.per_unit


@MANY
@given(n=st.integers(2, 9), pixels=st.integers(blocks.BLOCK, 5000))
def test_blocks_of_large_contiguous_images_stay_within_one(n, pixels):
    assert blocks.cut(n, pixels, False, blocks.BLOCK).unit == pixels
    assert blocks.cut(n, pixels, True, blocks.BLOCK).unit == n * pixels


@pytest.mark.parametrize(("n", "pixels"), [(0, 5), (3, 0), (0, 0)])
def test_nothing_is_cut_into_no_blocks(n, pixels):
    none = blocks.Blocks(0, 0, 0, 0)
    assert all(blocks.cut(n, pixels, last, blocks.BLOCK) == none for last in (False, True))


@MANY
@given(total=sizes, most=sizes)
def test_shares_are_the_fewest_and_as_equal_as_can_be(total, most):
    share = blocks.share(total, most)
    fewest = -(-total // most)
    assert share <= most
    assert -(-total // share) == fewest
    assert share == 1 or (share - 1) * fewest < total


@MANY
@given(n=st.integers(0, 10_000), unit=st.integers(1, 100))
def test_up_is_the_next_multiple(n, unit):
    assert blocks.up(n, unit) % unit == 0
    assert 0 <= blocks.up(n, unit) - n < unit
    assert blocks.lines(n) == blocks.up(n, 64)


@MANY
@given(pieces=st.integers(1, 20), runs=st.integers(1, 100), n_bytes=st.integers(1, 64 << 20))
def test_partial_gradients_are_bounded_in_number_and_bytes(pieces, runs, n_bytes):
    count = blocks.partials(pieces, runs, n_bytes)
    assert 1 <= count <= min(runs, blocks.MOST_PARTIALS)
    assert count == 1 or count * n_bytes <= blocks.PARTIAL_BYTES
    assert count == 1 or (count - 1) * pieces < blocks.ITEMS


def test_few_pieces_are_summed_in_as_many_partials_as_make_items():
    assert blocks.partials(1, 100, 1) == blocks.ITEMS
    assert blocks.partials(3, 100, 1) * 3 >= blocks.ITEMS
    assert blocks.partials(blocks.ITEMS, 100, 1) == 1


def test_cuts_do_not_depend_on_the_number_of_threads(threads):
    found = []
    for n in (1, 7):
        threads(n)
        found.append(
            (
                blocks.cut(3, 1000, False, blocks.BLOCK),
                blocks.channel_block(512, 2, 512),
                blocks.partials(2, 50, 1 << 20),
                blocks.parts(9, 300, 4096, True),
            )
        )
    assert found[0] == found[1]


@MANY
@given(o=st.integers(1, 3000), items=st.integers(0, 50), most=st.integers(1, 3000))
def test_channels_are_cut_finer_where_items_are_few(o, items, most):
    block = blocks.channel_block(o, items, most)
    assert 1 <= block <= min(o, most)
    if items >= blocks.ITEMS:
        assert block == blocks.share(o, most)
    if most >= o:
        assert block >= min(o, blocks.LEAST_O_BLOCK)


@MANY
@given(taps=st.integers(0, 60), c=st.integers(1, 3000), row_bytes=st.integers(1, 4096))
def test_a_part_fits_its_bytes_and_is_whole_runs_of_the_inner_index(taps, c, row_bytes):
    for channels_outer in (False, True):
        part_taps, part_channels = blocks.parts(taps, c, row_bytes, channels_outer)
        assert part_taps * part_channels * row_bytes <= blocks.PART_BYTES
        outer, inner = part_taps, part_channels
        most = c
        if channels_outer:
            outer, inner, most = part_channels, part_taps, max(taps, 1)
        assert inner == most or outer == 1


@MANY
@given(block=sizes, itemsize=st.sampled_from((4, 8, 16)))
def test_packed_rows_fit_a_part(block, itemsize):
    rows = blocks.most_packed(block, itemsize)
    assert rows * block * itemsize <= blocks.PART_BYTES < (rows + 1) * block * itemsize
